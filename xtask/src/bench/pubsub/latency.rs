//! What `respool bench` says of a server that answers each request a millisecond after it has come: the truth is known.
//!
//! Server and load generator have a processor each and look again and again instead of sleeping, so that neither is woken late. What each has
//! waited for its processor is a figure of its own, and so is how late the server itself was: the machine may have other work.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use respool_testkit::{Address, TempDir, proc_stats};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;

use super::super::client::samples::Sample;
use super::super::load::{command_line, output};

/// How long the server takes to answer.
const DELAY: Duration = Duration::from_millis(1);
const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const PONG: &[u8] = b"+PONG\r\n";

/// A server of PINGs. Ends with the value.
struct Fake {
    address: Address,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Truth>>>,
}

/// What the server knows of its own exactness.
#[derive(Debug, Default)]
struct Truth {
    /// From the read that brought each request to the write of its reply, in nanoseconds.
    delays_ns: Vec<u64>,
    /// How long it was ready to run while others had its processor, in nanoseconds.
    waited_ns: u64,
}

impl Truth {
    /// In milliseconds.
    fn percentile_ms(&mut self, percent: usize) -> f64 {
        self.delays_ns.sort_unstable();
        let place = (self.delays_ns.len() * percent / 100).min(self.delays_ns.len().saturating_sub(1));
        self.delays_ns.get(place).map_or(f64::NAN, |ns| *ns as f64 / 1e6)
    }
}

/// How long this thread has been ready to run while others had its processor, in nanoseconds.
fn waited_ns() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let number = text.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    number.ok_or_else(|| io::Error::other(format!("/proc/thread-self/schedstat reads {text:?}")))
}

impl Fake {
    fn start() -> io::Result<Fake> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let (address, is_over) = (Address::Tcp(listener.local_addr()?), Arc::new(AtomicBool::new(false)));
        let is_told = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || serve(&listener, &is_told));
        Ok(Fake { address, is_over, thread: Some(thread) })
    }

    fn end(mut self) -> io::Result<Truth> {
        self.is_over.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            _ => Err(io::Error::other("the server with a known delay has panicked")),
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

struct Connection {
    stream: TcpStream,
    /// Bytes of a request that has not come whole.
    partial: usize,
    /// The times at which replies are due.
    due: VecDeque<Instant>,
}

fn serve(listener: &TcpListener, is_over: &AtomicBool) -> io::Result<Truth> {
    let mut cores = CpuSet::new();
    cores.set(0);
    sched_setaffinity(None, &cores)?;
    let mut connections: Vec<Connection> = Vec::new();
    let mut piece = [0; 4096];
    let mut delays_ns = Vec::new();
    let waited_before_ns = waited_ns()?;
    while !is_over.load(Ordering::Relaxed) {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            connections.push(Connection { stream, partial: 0, due: VecDeque::new() });
        }
        for connection in &mut connections {
            if let Ok(count) = connection.stream.read(&mut piece) {
                let due = Instant::now() + DELAY;
                let bytes = connection.partial + count;
                connection.due.extend(std::iter::repeat_n(due, bytes / PING.len()));
                connection.partial = bytes % PING.len();
            }
            while connection.due.front().is_some_and(|due| *due <= Instant::now()) {
                if let Some(due) = connection.due.pop_front() {
                    delays_ns.push((DELAY + due.elapsed()).as_nanos() as u64);
                }
                connection.stream.write_all(PONG)?;
            }
        }
    }
    Ok(Truth { delays_ns, waited_ns: waited_ns()? - waited_before_ns })
}

/// By how much the load generator's figures differ from the truth, in microseconds.
pub(super) fn measure(generator: &Path) -> io::Result<Sample> {
    let fake = Fake::start()?;
    let directory = TempDir::new()?;
    let file = directory.join("results.json");
    let mut words = command_line(generator, 1, &fake.address);
    words.extend(
        ["-t", "ping_mbulk", "-c", "4", "--rate", "2000", "--warm-up", "500ms", "--duration", "3s", "--json"]
            .map(str::to_owned),
    );
    words.push(file.display().to_string());
    let stolen = proc_stats::stolen_time()?;
    output(&words)?;
    let stolen = proc_stats::stolen_time()?.saturating_sub(stolen);
    let mut truth = fake.end()?;
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
    let result = &document["results"][0];
    let ms = |of: &str, name: &str| result[of][name].as_f64().unwrap_or(f64::NAN);
    let mut sample = Sample::default();
    for (name, percent) in [("p50", 50), ("p99", 99)] {
        let truth_ms = truth.percentile_ms(percent);
        sample.insert(format!("{name} us off"), (ms("latency_ms", name) - truth_ms) * 1e3);
        sample.insert(format!("{name} us late, server"), (truth_ms - DELAY.as_secs_f64() * 1e3) * 1e3);
        sample.insert(format!("{name} us late, load"), ms("sent_late_ms", name) * 1e3);
    }
    sample.insert("ms without a processor, server".to_owned(), truth.waited_ns as f64 / 1e6);
    let waited_s = result["own_waited_s"].as_f64().unwrap_or(f64::NAN);
    sample.insert("ms without a processor, load".to_owned(), waited_s * 1e3);
    sample.insert("ms stolen from the machine".to_owned(), stolen.as_secs_f64() * 1e3);
    Ok(sample)
}
