//! A sentinel of the installed redis-server as a child.

use std::process::Command;
use std::time::Duration;
use std::{fs, io};

use crate::{PATIENCE, Process, TempDir, free_port};

const PORTS_MAX: usize = 10;

/// A running sentinel of one master, which it calls `main`. It ends when this is dropped.
#[derive(Debug)]
pub struct RedisSentinel {
    port: u16,
    _process: Process,
    _directory: TempDir,
}

impl RedisSentinel {
    /// Starts a sentinel of the master on this port of 127.0.0.1. `quorum`: so many sentinels have to agree that the master is down, which
    /// each says once it was silent for `down_after`. `listen` gives the lines of its configuration file that open its port.
    ///
    /// # Errors
    /// It does not start, on none of several ports.
    pub fn start(
        master: u16,
        quorum: u8,
        down_after: Duration,
        listen: impl Fn(u16) -> String,
    ) -> io::Result<RedisSentinel> {
        let mut failure = None;
        for _ in 0..PORTS_MAX {
            let (port, directory) = (free_port()?, TempDir::new()?);
            let path = directory.join("sentinel.conf");
            let settings = format!(
                "{}\nbind 127.0.0.1\ndir {}\nsentinel monitor main 127.0.0.1 {master} {quorum}\n\
                 sentinel down-after-milliseconds main {}\nsentinel failover-timeout main 20000\n",
                listen(port),
                directory.path().display(),
                down_after.as_millis()
            );
            fs::write(&path, settings)?;
            let mut command = Command::new("redis-server");
            let process = Process::spawn(format!("sentinel on port {port}"), command.arg(&path).arg("--sentinel"))?;
            match process.wait_for_line("+monitor master main", PATIENCE) {
                Ok(_) => return Ok(RedisSentinel { port, _process: process, _directory: directory }),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.expect("at least one start was tried"))
    }

    /// Its port of 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }
}
