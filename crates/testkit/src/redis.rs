//! A real redis-server as a child: on a TCP port and a unix socket, with nothing kept on disk.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::{Address, Client, PATIENCE, Process, TempDir, free_port};

/// Starts that are tried with different ports before giving up.
const PORTS_MAX: usize = 10;

/// A redis-server that lives as long as the value. Empty, no persistence, reachable over TCP and a unix socket.
#[derive(Debug)]
pub struct RedisServer {
    process: Process,
    program: PathBuf,
    port: u16,
    arguments: Vec<String>,
    directory: TempDir,
}

impl RedisServer {
    /// Starts one with default settings.
    pub fn start() -> io::Result<RedisServer> {
        RedisServer::start_with(&[])
    }

    /// Starts one with further command-line settings (`&["--maxmemory", "1mb"]`), which win over the usual ones.
    pub fn start_with(arguments: &[&str]) -> io::Result<RedisServer> {
        RedisServer::start_program(Path::new("redis-server"), arguments)
    }

    /// Starts another program that takes redis-server's command line, in its place.
    pub fn start_program(program: &Path, arguments: &[&str]) -> io::Result<RedisServer> {
        let directory = TempDir::new()?;
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let mut failure = None;
        for _ in 0..PORTS_MAX {
            let port = free_port()?;
            match spawn(program, port, &directory, &arguments) {
                Ok(process) => {
                    let program = program.to_owned();
                    return Ok(RedisServer { process, program, port, arguments, directory });
                }
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.expect("at least one start was tried"))
    }

    /// Starts one that refuses HELLO, as if it were from before RESP3.
    pub fn start_without_hello() -> io::Result<RedisServer> {
        // Rights do not hold for HELLO, which asks for none.
        RedisServer::start_with(&["--rename-command", "HELLO", "HELLO-OF-LATER-SERVERS"])
    }

    /// Where it listens for TCP.
    pub fn tcp(&self) -> Address {
        Address::loopback(self.port)
    }

    /// Where it listens for unix streams.
    pub fn unix(&self) -> Address {
        Address::Unix(self.socket_path())
    }

    /// The path of the unix socket.
    pub fn socket_path(&self) -> PathBuf {
        socket_path(&self.directory)
    }

    /// Where it keeps its files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// A client of it over the unix socket.
    pub fn client(&self) -> io::Result<Client> {
        Client::connect(&self.unix())
    }

    /// Stops the process where it is: connections stay open, nothing is answered.
    pub fn pause(&self) -> io::Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Lets a paused process go on.
    pub fn resume(&self) -> io::Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Kills the process; its port and socket refuse connections until [`RedisServer::restart`].
    pub fn kill(&mut self) -> io::Result<()> {
        self.process.kill()
    }

    /// Kills the process if it still runs and starts an empty one at the same port and socket.
    pub fn restart(&mut self) -> io::Result<()> {
        self.process.kill()?;
        let mut failure = None;
        for _ in 0..PORTS_MAX {
            match spawn(&self.program, self.port, &self.directory, &self.arguments) {
                Ok(process) => {
                    self.process = process;
                    return Ok(());
                }
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.expect("at least one start was tried"))
    }
}

fn socket_path(directory: &TempDir) -> PathBuf {
    directory.join("redis.sock")
}

fn spawn(program: &Path, port: u16, directory: &TempDir, arguments: &[String]) -> io::Result<Process> {
    let mut command = Command::new(program);
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--protected-mode", "no"])
        .arg("--unixsocket")
        .arg(socket_path(directory))
        .arg("--dir")
        .arg(directory.path())
        .args(["--save", "", "--appendonly", "no", "--maxclients", "15000"])
        .args(arguments);
    let process = Process::spawn(format!("{} on port {port}", program.display()), &mut command)?;
    // Printed once both listeners are open, the unix socket's line last.
    process.wait_for_line("The server is now ready to accept connections at", PATIENCE)?;
    Ok(process)
}
