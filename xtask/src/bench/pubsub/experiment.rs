//! Processes of `respool bench pubsub` that subscribe to all channels, wait for each other, and publish.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use respool_testkit::{Address, Client, Process, proc_stats, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use super::super::client::samples::Sample;
use super::subject::Server;

/// What subscribing may take.
const SUBSCRIBE_LIMIT: Duration = Duration::from_secs(120);
/// What a process may take beyond the time in which it publishes.
const END_LIMIT: Duration = Duration::from_secs(60);
/// The key and channel by which the processes meet, see `docs/bench.md`.
const COUNTER: &str = "nsubscribers";
const READY: &str = "ready";

pub(super) struct Experiment<'a> {
    pub(super) generator: &'a Path,
    pub(super) channels: u32,
    pub(super) processes: u32,
}

/// Processes that have subscribed to everything.
pub(super) struct Gathered {
    processes: Vec<Process>,
    control: Client,
}

impl Experiment<'_> {
    /// One process subscribes, and ends.
    pub(super) fn subscribe(&self, server: &Server) -> io::Result<Sample> {
        let gathered = self.gather(server, "subscribe", &[])?;
        for process in &gathered.processes {
            process.signal(Signal::TERM)?;
        }
        let documents = gathered.end(Duration::ZERO)?;
        let seconds = documents.iter().map(|document| figure(document, "subscribed_s")).fold(0.0, f64::max);
        Ok(Sample::from([("subscribed s".to_owned(), seconds)]))
    }

    /// All processes publish as much as they can, so many messages together.
    pub(super) fn publish(&self, server: &Server, batch: u16, length: Duration) -> io::Result<Sample> {
        let before = proc_stats::resident_bytes(server.pid())?;
        let node_before = server.node().map(|node| proc_stats::resident_bytes(node.pid())).transpose()?;
        let gathered = self.gather(server, "both", &rate(batch, length))?;
        let pairs = f64::from(self.channels) * f64::from(self.processes);
        let grown = proc_stats::resident_bytes(server.pid())?.saturating_sub(before);
        let mut sample = Sample::from([("bytes a pair".to_owned(), grown as f64 / pairs)]);
        if let (Some(node), Some(before)) = (server.node(), node_before) {
            let grown = proc_stats::resident_bytes(node.pid())?.saturating_sub(before);
            sample.insert("bytes a pair, server behind".to_owned(), grown as f64 / pairs);
        }
        if let Some(count) = server.subscriptions_behind()? {
            sample.insert("subscriptions behind".to_owned(), count as f64);
        }
        let used_before = used(server)?;
        let documents = gathered.go(length)?;
        let used_us = (used(server)? - used_before).as_secs_f64() * 1e6;
        count(&documents, &mut sample);
        let received = sample["received"];
        sample.insert("us a delivery, server".to_owned(), used_us / received);
        Ok(sample)
    }

    /// Starts the processes and waits until all have subscribed. They wait for [`Gathered::go`].
    pub(super) fn gather(&self, server: &Server, mode: &str, arguments: &[String]) -> io::Result<Gathered> {
        let mut control = server.client()?;
        control.set_timeout(END_LIMIT)?;
        // The processes count up to one less than they wait for: none of them begins by itself.
        control.command(&["SET", COUNTER, "-1"])?;
        let Address::Tcp(address) = server.address() else { return Err(io::Error::other("over TCP only")) };
        let start = |number: u32| {
            let mut command = Command::new(self.generator);
            command.args(["bench", "pubsub", mode, "--json", "--no-progress", "--address", &address.to_string()]);
            command.args(["-n", &self.channels.to_string(), "-s", &self.processes.to_string()]);
            command.args(["--seed", &(number + 1).to_string()]).args(arguments);
            Process::spawn(format!("process {number} of the experiment"), &mut command)
        };
        let mut processes = (0..self.processes).map(start).collect::<io::Result<Vec<_>>>()?;
        let wanted = format!("{}", self.processes - 1);
        wait_until("all processes have subscribed", SUBSCRIBE_LIMIT, || {
            for process in &mut processes {
                if let Some(status) = process.try_wait()? {
                    let said = process.output().join(" / ");
                    return Err(io::Error::other(format!("a process has ended: {status}: {said}")));
                }
            }
            Ok(control.ask(&format!("GET {COUNTER}"))?.lines().nth(1) == Some(&wanted))
        })?;
        Ok(Gathered { processes, control })
    }
}

impl Gathered {
    /// Lets them publish, and waits for what they have counted.
    pub(super) fn go(mut self, length: Duration) -> io::Result<Vec<Value>> {
        self.control.command(&["DEL", COUNTER])?;
        self.control.command(&["PUBLISH", READY, "go"])?;
        self.end(length)
    }

    fn end(mut self, length: Duration) -> io::Result<Vec<Value>> {
        let mut documents = Vec::new();
        for process in &mut self.processes {
            let (status, said) = process.finish(length + END_LIMIT)?;
            let said = said.join("\n");
            if !status.success() {
                return Err(io::Error::other(format!("a process failed: {status}: {said}")));
            }
            documents.push(serde_json::from_str(&said)?);
        }
        Ok(documents)
    }
}

/// The arguments of processes that publish as much as they can for so long.
pub(super) fn rate(batch: u16, length: Duration) -> Vec<String> {
    let duration = format!("{}ms", length.as_millis());
    ["-r", "0", "-b", &batch.to_string(), "--duration", &duration].map(str::to_owned).into()
}

/// Adds what the processes have counted together.
pub(super) fn count(documents: &[Value], sample: &mut Sample) {
    let sum = |name: &str| documents.iter().map(|document| figure(document, name)).sum::<f64>();
    sample.insert("deliveries/s".to_owned(), sum("received_per_s"));
    sample.insert("received".to_owned(), sum("received"));
    let lost = ["missing", "out_of_order", "duplicates"].map(sum);
    sample.insert("lost, late or twice".to_owned(), lost.iter().sum());
    sample.insert("us a delivery, load".to_owned(), sum("own_processor_s") * 1e6 / sum("received"));
    let latest = documents.iter().map(|document| figure(&document["others_latency_ms"], "p99")).fold(0.0, f64::max);
    sample.insert("p99 ms".to_owned(), latest);
    let subscribed = documents.iter().map(|document| figure(document, "subscribed_s")).fold(0.0, f64::max);
    sample.insert("subscribed s".to_owned(), subscribed);
}

fn figure(document: &Value, name: &str) -> f64 {
    document[name].as_f64().unwrap_or(f64::NAN)
}

/// Processor time of the subject, what is behind it included.
fn used(server: &Server) -> io::Result<Duration> {
    let behind = server.node().map_or(Ok(Duration::ZERO), |node| proc_stats::processor_time(node.pid()))?;
    Ok(proc_stats::processor_time(server.pid())? + behind)
}
