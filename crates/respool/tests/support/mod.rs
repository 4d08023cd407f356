//! What tests of the program have in common: the running program, and the two sides of a TLS connection.

#![allow(dead_code, reason = "every test file uses its part")]

pub(crate) mod encrypted;

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use respool_testkit::{Address, Client, PATIENCE, Process};
use rustix::process::Signal;

pub(crate) const READY: &str = "Ready to accept connections";
pub(crate) const LIMIT: Duration = PATIENCE;

/// A running program that has said that it is ready.
pub(crate) struct Running {
    pub(crate) process: Process,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let process = Process::spawn("respool", command).expect("the program starts");
        process.wait_for_line(READY, LIMIT).expect("it becomes ready");
        Self { process }
    }

    /// The TCP addresses of its banner, in order, those with TLS included.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let lines = self.process.output();
        let texts = lines.iter().filter_map(|line| line.trim().strip_prefix("listening on ")?.split(',').next());
        texts.filter_map(|text| text.strip_prefix("tls:").unwrap_or(text).parse().ok()).collect()
    }

    pub(crate) fn client(&self, listener: usize) -> Client {
        Client::connect(&Address::Tcp(self.addresses()[listener])).expect("it accepts")
    }

    /// Waits for a line that holds `text`.
    pub(crate) fn says(&self, text: &str) -> String {
        self.process.wait_for_line(text, LIMIT).expect("it says so")
    }

    /// Ends it as a service manager would; it must end well.
    pub(crate) fn end(mut self) -> Vec<String> {
        self.process.signal(Signal::TERM).expect("it is there");
        self.await_end()
    }

    /// Waits until it ends by itself; it must end well.
    pub(crate) fn await_end(&mut self) -> Vec<String> {
        let status = self.process.wait(LIMIT).expect("it ends");
        assert!(status.success(), "{status}\n{}", self.process.output().join("\n"));
        self.process.output()
    }
}

pub(crate) fn respool(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_respool"));
    command.env_clear().args(args);
    command
}

/// `respool serve` with these arguments; it listens on nothing else.
pub(crate) fn serve(args: &[&str]) -> Running {
    Running::start(respool(&["serve"]).args(args))
}
