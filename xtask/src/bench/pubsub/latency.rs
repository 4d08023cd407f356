//! What `respool bench` says of a server that answers each request a millisecond after it has come: the truth is known.
//!
//! Server and load generator have a processor each and look again and again instead of sleeping, so that neither is woken late.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use respool_testkit::{Address, TempDir};
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
    thread: Option<JoinHandle<io::Result<()>>>,
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

    fn end(mut self) -> io::Result<()> {
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

fn serve(listener: &TcpListener, is_over: &AtomicBool) -> io::Result<()> {
    let mut cores = CpuSet::new();
    cores.set(0);
    sched_setaffinity(None, &cores)?;
    let mut connections: Vec<Connection> = Vec::new();
    let mut piece = [0; 4096];
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
                connection.due.pop_front();
                connection.stream.write_all(PONG)?;
            }
        }
    }
    Ok(())
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
    output(&words)?;
    fake.end()?;
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
    let latencies = &document["results"][0]["latency_ms"];
    let off = |name: &str| latencies[name].as_f64().map_or(f64::NAN, |ms| (ms - 1.0) * 1e3);
    Ok(Sample::from([("p50 us off".to_owned(), off("p50")), ("p99 us off".to_owned(), off("p99"))]))
}
