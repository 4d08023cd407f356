//! One caller beside a socket without a client, in blocks that alternate, so that both see the same machine; then again on the
//! connection that has had a crowd of callers.

use super::{Keys, load};
use crate::allocations::allocations;
use crate::measure::{Report, Times, cpu_us};
use crate::options::Options;
use crate::peers::{Peer, UNIX};
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Calls of one kind before it is the next one's turn.
const BLOCK: usize = 250;

/// Callers of the crowd.
const CROWD: usize = 1000;

/// How long they ask.
const CROWD_TIME: Duration = Duration::from_secs(2);

/// A socket, read from and written to as its kind of caller does it.
enum Raw {
    Thread(std::net::TcpStream),
    Task(tokio::net::TcpStream),
    UnixThread(std::os::unix::net::UnixStream),
    UnixTask(tokio::net::UnixStream),
}

/// Writes the request and reads the reply, in a thread.
fn ask_in_thread(socket: &mut (impl Read + Write), request: &[u8], reply: &mut [u8]) {
    socket.write_all(request).expect("a server that reads");
    let mut got = 0;
    while got < reply.len() {
        got += socket.read(&mut reply[got..]).expect("a server that answers");
    }
}

/// As [`ask_in_thread`], in a task.
async fn ask_in_task(socket: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin), request: &[u8], reply: &mut [u8]) {
    socket.write_all(request).await.expect("a server that reads");
    let mut got = 0;
    while got < reply.len() {
        got += socket.read(&mut reply[got..]).await.expect("a server that answers");
    }
}

impl Raw {
    async fn connect<P: Peer>(address: &str) -> Self {
        if let Some(path) = address.strip_prefix(UNIX) {
            return match P::IN_THREADS {
                true => Self::UnixThread(std::os::unix::net::UnixStream::connect(path).expect("a connection")),
                false => Self::UnixTask(tokio::net::UnixStream::connect(path).await.expect("a connection")),
            };
        }
        if P::IN_THREADS {
            let socket = std::net::TcpStream::connect(address).expect("a connection");
            socket.set_nodelay(true).expect("a socket");
            Self::Thread(socket)
        } else {
            let socket = tokio::net::TcpStream::connect(address).await.expect("a connection");
            socket.set_nodelay(true).expect("a socket");
            Self::Task(socket)
        }
    }

    /// A socket of a thread whose reads end after a time, as those of a call with a deadline do: the kernel sets a timer for each.
    fn connect_limited(address: &str) -> Self {
        let limit = Some(Duration::from_secs(5));
        if let Some(path) = address.strip_prefix(UNIX) {
            let socket = std::os::unix::net::UnixStream::connect(path).expect("a connection");
            socket.set_read_timeout(limit).expect("a socket");
            return Self::UnixThread(socket);
        }
        let socket = std::net::TcpStream::connect(address).expect("a connection");
        socket.set_nodelay(true).expect("a socket");
        socket.set_read_timeout(limit).expect("a socket");
        Self::Thread(socket)
    }

    /// Writes the request and reads the reply, of so many bytes.
    async fn ask(&mut self, request: &[u8], buffer: &mut [u8], reply: usize) {
        let reply = &mut buffer[..reply];
        match self {
            Self::Thread(socket) => ask_in_thread(socket, request, reply),
            Self::UnixThread(socket) => ask_in_thread(socket, request, reply),
            Self::Task(socket) => ask_in_task(socket, request, reply).await,
            Self::UnixTask(socket) => ask_in_task(socket, request, reply).await,
        }
    }
}

/// What the calls of one kind have taken.
#[derive(Default)]
struct Kind {
    times: Times,
    cpu_us: f64,
    allocations: u64,
}

impl Kind {
    fn report(&mut self, prefix: &str, report: &mut Report) {
        let calls = self.times.len() as f64;
        report.add_times(prefix, &mut self.times);
        report.add(&format!("{prefix}cpu_us"), self.cpu_us / calls);
        report.add(&format!("{prefix}allocations"), self.allocations as f64 / calls);
    }
}

/// What is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Raw,
    /// As `Raw`, with a limit of time. Of threads alone.
    Limited,
    Get,
    Set,
}

#[derive(Default)]
struct Blocks {
    raw: Kind,
    limited: Kind,
    get: Kind,
    set: Kind,
    wrong: usize,
    errors: usize,
}

async fn blocks<P: Peer>(
    peer: &mut P,
    (raw, limited): (&mut Raw, &mut Option<Raw>),
    keys: &Keys,
    time: Duration,
) -> Blocks {
    let (key, value) = keys.get(0);
    let request = format!("*2\r\n$3\r\nGET\r\n${}\r\n{key}\r\n", key.len()).into_bytes();
    let reply = format!("${}\r\n", value.len()).len() + value.len() + 2;
    let mut buffer = vec![0; reply.max(64 * 1024)];
    let mut blocks = Blocks::default();
    let until = Instant::now() + time;
    while Instant::now() < until {
        for what in [What::Raw, What::Limited, What::Get, What::Set] {
            let mut taken = Kind { times: Times::with_room(BLOCK), ..Kind::default() };
            let (cpu, allocated) = (cpu_us(), allocations());
            for _ in 0..BLOCK {
                let began = Instant::now();
                let is_right = match what {
                    What::Raw => {
                        raw.ask(&request, &mut buffer, reply).await;
                        Ok(true)
                    }
                    What::Limited => match limited {
                        Some(raw) => {
                            raw.ask(&request, &mut buffer, reply).await;
                            Ok(true)
                        }
                        None => break,
                    },
                    What::Get => peer.get_is(key, value).await,
                    What::Set => peer.set(key, value).await.map(|()| true),
                };
                taken.times.push(began.elapsed());
                match is_right {
                    Ok(true) => {}
                    Ok(false) => blocks.wrong += 1,
                    Err(_) => blocks.errors += 1,
                }
            }
            (taken.cpu_us, taken.allocations) = (cpu_us() - cpu, allocations() - allocated);
            let kind = match what {
                What::Raw => &mut blocks.raw,
                What::Limited => &mut blocks.limited,
                What::Get => &mut blocks.get,
                What::Set => &mut blocks.set,
            };
            kind.cpu_us += taken.cpu_us;
            kind.allocations += taken.allocations;
            kind.times.append(taken.times);
        }
    }
    blocks
}

pub(super) async fn serial<P: Peer>(mut peer: P, keys: &Keys, options: &Options) -> Report {
    let mut raw = Raw::connect::<P>(&options.address).await;
    let mut limited = P::IN_THREADS.then(|| Raw::connect_limited(&options.address));
    let (key, value) = keys.get(0);
    peer.set(key, value).await.expect("the key is set");
    let warm_up = super::WARM_UP / 2;
    blocks(&mut peer, (&mut raw, &mut limited), keys, warm_up).await;
    let mut before = blocks(&mut peer, (&mut raw, &mut limited), keys, options.time / 2).await;
    load(&peer, keys, CROWD, CROWD_TIME, false).await;
    let mut after = blocks(&mut peer, (&mut raw, &mut limited), keys, options.time / 2).await;
    let mut report = Report::default();
    before.raw.report("raw_", &mut report);
    before.get.report("", &mut report);
    before.set.report("set_", &mut report);
    after.raw.report("after_raw_", &mut report);
    after.get.report("after_", &mut report);
    // Of a call and of the socket, in blocks beside each other.
    let ratio = |call: &mut Kind, raw: &mut Kind| call.times.at(500) / raw.times.at(500);
    let first = ratio(&mut before.get, &mut before.raw);
    let second = ratio(&mut after.get, &mut after.raw);
    report.add("to_raw", first);
    if limited.is_some() {
        before.limited.report("raw_limited_", &mut report);
        report.add("to_raw_limited", ratio(&mut before.get, &mut before.limited));
    }
    report.add("set_to_raw", ratio(&mut before.set, &mut before.raw));
    report.add("after_to_raw", second);
    report.add("after_to_before", second / first);
    report.add("ops", (before.get.times.len() + after.get.times.len()) as f64);
    report.add("errors", (before.errors + after.errors) as f64);
    report.add("wrong", (before.wrong + after.wrong) as f64);
    report
}
