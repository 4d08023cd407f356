//! The respool binary as a child.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;
use std::{env, io};

use rustix::process::Signal;

use crate::{Address, Client, PATIENCE, Process, TempDir, free_port};

const READY_LINE: &str = "Ready to accept connections";
const PORTS_MAX: usize = 5;

/// A running `respool serve` that listens on a TCP port of the loopback interface and on a unix socket.
#[derive(Debug)]
pub struct Respool {
    process: Process,
    place: Place,
}

/// What a process and its successors have in common.
#[derive(Debug)]
struct Place {
    port: u16,
    directory: TempDir,
    environment: Vec<(OsString, OsString)>,
}

impl Respool {
    /// Starts `binary` as a proxy in front of `nodes`, or as the embedded server when there is none; `arguments` are
    /// added as they are.
    pub fn start(binary: &Path, nodes: &[Address], arguments: &[&str]) -> io::Result<Respool> {
        Self::start_in(binary, Vec::new(), nodes, arguments)
    }

    /// The same with variables added to its environment, and to that of its successors.
    pub fn start_in(
        binary: &Path,
        environment: Vec<(OsString, OsString)>,
        nodes: &[Address],
        arguments: &[&str],
    ) -> io::Result<Respool> {
        let mut place = Place { port: 0, directory: TempDir::new()?, environment };
        let mut failure = None;
        for _ in 0..PORTS_MAX {
            place.port = free_port()?;
            match place.spawn(binary, nodes, arguments) {
                Ok(process) => return Ok(Respool { process, place }),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.expect("at least one start was tried"))
    }

    /// The binary that cargo built beside the running test or tool; `RESPOOL_BIN` names another one.
    pub fn binary() -> io::Result<PathBuf> {
        if let Some(path) = env::var_os("RESPOOL_BIN") {
            return Ok(path.into());
        }
        let own = env::current_exe()?;
        own.ancestors()
            .skip(1)
            .take(2)
            .map(|directory| directory.join("respool"))
            .find(|path| path.is_file())
            .ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, "no respool binary: run `cargo build -p respool` first")
            })
    }

    /// Starts `binary` in the place of the running process, with the same addresses, and gives that one, which retires. Both need
    /// arguments that let the one take over from the other.
    pub fn succeed(&mut self, binary: &Path, arguments: &[&str]) -> io::Result<Process> {
        let successor = self.place.spawn(binary, &[], arguments)?;
        Ok(std::mem::replace(&mut self.process, successor))
    }

    /// Where it listens for TCP.
    pub fn tcp(&self) -> Address {
        Address::loopback(self.place.port)
    }

    /// Where it listens for unix streams.
    pub fn unix(&self) -> Address {
        Address::Unix(self.place.socket_path())
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// A client of it over TCP.
    pub fn client(&self) -> io::Result<Client> {
        Client::connect(&self.tcp())
    }

    /// What it printed lately, on both streams.
    pub fn output(&self) -> Vec<String> {
        self.process.output()
    }

    /// Waits at most `limit` until it has printed a line with this text.
    ///
    /// # Errors
    /// It has not.
    pub fn wait_for_line(&self, text: &str, limit: Duration) -> io::Result<String> {
        self.process.wait_for_line(text, limit)
    }

    /// Stops the process where it is (SIGSTOP): connections stay open, nothing is read or answered.
    ///
    /// # Errors
    /// There is no such process any more.
    pub fn pause(&self) -> io::Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Lets a paused process go on.
    ///
    /// # Errors
    /// There is no such process any more.
    pub fn resume(&self) -> io::Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Asks it to end (SIGTERM) and waits at most `limit` for it.
    pub fn terminate(&mut self, limit: Duration) -> io::Result<ExitStatus> {
        self.process.signal(Signal::TERM)?;
        self.process.wait(limit)
    }

    /// The process itself.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

impl Place {
    fn socket_path(&self) -> PathBuf {
        self.directory.join("respool.sock")
    }

    fn spawn(&self, binary: &Path, nodes: &[Address], arguments: &[&str]) -> io::Result<Process> {
        let mut command = Command::new(binary);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.arg("serve").current_dir(self.directory.path());
        command.args(["--listen", &Address::loopback(self.port).to_string()]);
        command.args(["--listen", &Address::Unix(self.socket_path()).to_string()]);
        for node in nodes {
            command.args(["--node", &node.to_string()]);
        }
        command.args(arguments);
        let process = Process::spawn("respool", &mut command)?;
        process.wait_for_line(READY_LINE, PATIENCE)?;
        Ok(process)
    }
}
