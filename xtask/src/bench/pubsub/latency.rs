//! What `respool bench` says of a server that answers each request a millisecond after it has come: the truth is known.
//!
//! Even there it is known only if it is asked for where it is: a thread that is not scheduled reads a request late and answers it late,
//! and the load generator sends and reads late. So neither end's own clock is believed. The kernel says when each request came
//! (`SO_TIMESTAMPNS`) and when each reply left (`SO_TIMESTAMPING`), which over the loopback device is when it arrives. Requests are due
//! at even distances, so when each was due follows from when they came: none comes before its time, and the one that took the shortest
//! way came at it. What a client felt of each request is the time from when it was due until its reply arrived, and that is what the load
//! generator's percentiles are compared with.
//!
//! The kernel's stamps show how late the server is, so the server sleeps between requests. Its core is then free for other processes,
//! which leave that of the polling load generator alone. How long each of the two waited for its core is a figure of its own.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, RecvMsg, TimestampingFlag, recvmsg, setsockopt, sockopt};
use respool_testkit::{Address, TempDir, proc_stats};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;

use super::super::client::samples::Sample;
use super::super::load::{command_line, output};

/// How long the server takes to answer, in nanoseconds.
const DELAY_NS: u64 = 1_000_000;
const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const PONG: &[u8] = b"+PONG\r\n";
const CONNECTIONS: usize = 4;
/// Requests a second, at even distances.
const RATE: u64 = 2_000;
const GAP_NS: u64 = 1_000_000_000 / RATE;
const WARM_UP: Duration = Duration::from_millis(500);
/// How often the server looks whether it is to end.
const LOOK_NS: u64 = 10_000_000;
const LENGTH: Duration = Duration::from_secs(3);

/// A server of PINGs. Ends with the value.
struct Fake {
    address: Address,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Witness>>>,
}

/// What was seen of each request, by the clock of the kernel's time stamps, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    /// When it had come.
    came_ns: u64,
    /// When its reply left, which is when it arrived.
    answered_ns: Option<u64>,
}

/// What the server has seen.
#[derive(Debug, Default)]
struct Witness {
    /// Of each connection, in order.
    seen: Vec<Vec<Seen>>,
    /// How long it was ready to run while others had its processor, in nanoseconds.
    waited_ns: u64,
}

/// What was felt of the requests that count.
#[derive(Debug)]
struct Truth {
    /// From when each was due until its reply arrived, in nanoseconds.
    felt_ns: Vec<u64>,
    /// How long the server took for each.
    served_ns: Vec<u64>,
}

impl Witness {
    /// The requests that were due behind the warm-up.
    fn truth(&self) -> Result<Truth, String> {
        // Connections take turns. Which began is what their requests say.
        let first_of = |seen: &Vec<Seen>| {
            let own =
                |(place, seen): (usize, &Seen)| seen.came_ns.saturating_sub(place as u64 * CONNECTIONS as u64 * GAP_NS);
            seen.iter().enumerate().map(own).min()
        };
        let mut order: Vec<(u64, &Vec<Seen>)> =
            self.seen.iter().filter_map(|seen| first_of(seen).map(|first_ns| (first_ns, seen))).collect();
        order.sort_unstable_by_key(|(first_ns, _)| *first_ns);
        if order.len() != CONNECTIONS {
            return Err(format!("requests came on {} connections", order.len()));
        }
        let firsts = order.iter().enumerate().map(|(turn, (first_ns, _))| first_ns - turn as u64 * GAP_NS);
        let first_ns = firsts.min().unwrap_or_default();
        let mut truth = Truth { felt_ns: Vec::new(), served_ns: Vec::new() };
        for (turn, (_, seen)) in order.iter().enumerate() {
            for (place, seen) in seen.iter().enumerate() {
                // The first request is due one gap after the beginning.
                let elapsed_ns = (place * CONNECTIONS + turn) as u64 * GAP_NS;
                if elapsed_ns + GAP_NS < WARM_UP.as_nanos() as u64 {
                    continue;
                }
                let answered_ns = seen.answered_ns.ok_or("the kernel does not say when a reply left")?;
                truth.felt_ns.push(answered_ns.saturating_sub(first_ns + elapsed_ns));
                truth.served_ns.push(answered_ns.saturating_sub(seen.came_ns));
            }
        }
        truth.felt_ns.sort_unstable();
        truth.served_ns.sort_unstable();
        Ok(truth)
    }
}

/// In milliseconds, of sorted times.
fn percentile_ms(sorted_ns: &[u64], percent: usize) -> f64 {
    let place = (sorted_ns.len() * percent).div_ceil(100).max(1) - 1;
    sorted_ns.get(place).map_or(f64::NAN, |ns| *ns as f64 / 1e6)
}

/// How long this thread has been ready to run while others had its processor, in nanoseconds.
fn waited_ns() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let number = text.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    number.ok_or_else(|| io::Error::other(format!("/proc/thread-self/schedstat reads {text:?}")))
}

/// The clock of the kernel's time stamps.
fn stamp_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// The time that the kernel tells with a message, in nanoseconds.
fn stamp_of<S>(message: &RecvMsg<'_, '_, S>) -> io::Result<Option<u64>> {
    let stamp = message.cmsgs()?.find_map(|said| match said {
        ControlMessageOwned::ScmTimestampns(at) => Some(at),
        ControlMessageOwned::ScmTimestampsns(times) => Some(times.system),
        _ => None,
    });
    Ok(stamp.map(|at| at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64))
}

impl Fake {
    fn start() -> io::Result<Fake> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        // Connections inherit it: it would come too late for what was sent at once.
        setsockopt(&listener, sockopt::ReceiveTimestampns, &true)?;
        let (address, is_over) = (Address::Tcp(listener.local_addr()?), Arc::new(AtomicBool::new(false)));
        let is_told = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || serve(&listener, &is_told));
        Ok(Fake { address, is_over, thread: Some(thread) })
    }

    fn end(mut self) -> io::Result<Witness> {
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
    /// The times at which requests came that are not answered.
    unanswered: VecDeque<u64>,
    seen: Vec<Seen>,
    /// How many of the replies have left.
    departed: usize,
}

impl Connection {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let of_sent = [
            TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE,
            TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE,
            TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY,
            TimestampingFlag::SOF_TIMESTAMPING_OPT_ID,
        ];
        setsockopt(&stream, sockopt::Timestamping, &of_sent.into_iter().collect())?;
        Ok(Self { stream, unanswered: VecDeque::new(), seen: Vec::new(), departed: 0 })
    }

    /// Takes no more than one request, so that the kernel's stamp is its own. False: it ends, because it asks for something else. So
    /// does the connection on which the load generator wants to know how the server is configured.
    fn take(&mut self, space: &mut [u8]) -> io::Result<bool> {
        let mut piece = [0; PING.len()];
        let mut room = [IoSliceMut::new(&mut piece)];
        let message = match recvmsg::<()>(self.stream.as_raw_fd(), &mut room, Some(space), MsgFlags::empty()) {
            Ok(message) if message.bytes == 0 => return Ok(true),
            Ok(message) => message,
            Err(nix::Error::EAGAIN | nix::Error::ECONNRESET) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        let bytes = message.bytes;
        let came_ns = stamp_of(&message)?;
        if bytes != PING.len() || piece != *PING {
            return Ok(false);
        }
        self.unanswered
            .push_back(came_ns.ok_or_else(|| io::Error::other("the kernel does not say when a request came"))?);
        Ok(true)
    }

    /// Takes what the kernel has to say about replies that have left. It tells it of bytes, and of those that left together once; of
    /// what it sends a second time it tells again.
    fn take_departures(&mut self, space: &mut [u8]) -> io::Result<()> {
        loop {
            let message = match recvmsg::<()>(self.stream.as_raw_fd(), &mut [], Some(space), MsgFlags::MSG_ERRQUEUE) {
                Ok(message) => message,
                Err(nix::Error::EAGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let last_byte = message.cmsgs()?.find_map(|said| match said {
                ControlMessageOwned::Ipv4RecvErr(about, _) => Some(about.ee_data as usize),
                _ => None,
            });
            let Some((last_byte, left_ns)) = last_byte.zip(stamp_of(&message)?) else { continue };
            let departed = ((last_byte + 1) / PONG.len()).clamp(self.departed, self.seen.len());
            self.seen[self.departed..departed].iter_mut().for_each(|seen| seen.answered_ns = Some(left_ns));
            self.departed = departed;
        }
    }

    fn answer(&mut self) -> io::Result<()> {
        while let Some(came_ns) = self.unanswered.front().copied() {
            if stamp_ns() < came_ns + DELAY_NS {
                break;
            }
            self.stream.write_all(PONG)?;
            self.seen.push(Seen { came_ns, answered_ns: None });
            self.unanswered.pop_front();
        }
        Ok(())
    }
}

/// Until something comes or is due, or the end may have been told.
fn sleep(listener: &TcpListener, connections: &[Connection]) -> io::Result<()> {
    let came_first = connections.iter().filter_map(|connection| connection.unanswered.front()).min();
    let due_ns = came_first.map(|came_ns| (came_ns + DELAY_NS).saturating_sub(stamp_ns()));
    let limit = Duration::from_nanos(due_ns.unwrap_or(LOOK_NS).min(LOOK_NS));
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    let mut ends: Vec<PollFd<'_>> =
        connections.iter().map(|connection| PollFd::new(&connection.stream, PollFlags::IN)).collect();
    ends.push(PollFd::new(listener, PollFlags::IN));
    match poll(&mut ends, Some(&limit)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn serve(listener: &TcpListener, is_over: &AtomicBool) -> io::Result<Witness> {
    let mut cores = CpuSet::new();
    cores.set(0);
    sched_setaffinity(None, &cores)?;
    let mut connections: Vec<Connection> = Vec::new();
    // Room for both kinds of stamps, and for what an error would say.
    let mut space = vec![0; 256];
    let waited_before_ns = waited_ns()?;
    while !is_over.load(Ordering::Relaxed) {
        sleep(listener, &connections)?;
        if let Ok((stream, _)) = listener.accept() {
            connections.push(Connection::new(stream)?);
        }
        let mut is_over = Ok(());
        connections.retain_mut(|connection| {
            let outcome = connection.take(&mut space).and_then(|goes_on| {
                connection.answer()?;
                connection.take_departures(&mut space)?;
                Ok(goes_on)
            });
            outcome.unwrap_or_else(|error| {
                is_over = Err(error);
                false
            })
        });
        is_over?;
    }
    let seen = connections.into_iter().map(|connection| connection.seen).collect();
    Ok(Witness { seen, waited_ns: waited_ns()? - waited_before_ns })
}

/// By how much the load generator's figures differ from the truth, in microseconds.
pub(super) fn measure(generator: &Path) -> io::Result<Sample> {
    let fake = Fake::start()?;
    let directory = TempDir::new()?;
    let file = directory.join("results.json");
    let mut words = command_line(generator, 1, &fake.address);
    words.extend(["-t", "ping_mbulk", "--arrivals", "even"].map(str::to_owned));
    let ms = |time: Duration| format!("{}ms", time.as_millis());
    words.extend(["-c".into(), CONNECTIONS.to_string(), "--rate".into(), RATE.to_string()]);
    words.extend(["--warm-up".into(), ms(WARM_UP), "--duration".into(), ms(LENGTH), "--json".into()]);
    words.push(file.display().to_string());
    let stolen = proc_stats::stolen_time()?;
    let outcome = output(&words);
    let stolen = proc_stats::stolen_time()?.saturating_sub(stolen);
    // First what the server says: where it has failed, so has the load generator.
    let witness = fake.end()?;
    outcome?;
    let truth = witness.truth().map_err(io::Error::other)?;
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
    let result = &document["results"][0];
    let counted = result["replies"].as_u64();
    if counted != Some(truth.felt_ns.len() as u64) {
        let came = truth.felt_ns.len();
        return Err(io::Error::other(format!("{came} requests count, and the load generator has counted {counted:?}")));
    }
    let said = |of: &str, name: &str| result[of][name].as_f64().unwrap_or(f64::NAN);
    let mut sample = Sample::default();
    let us = |ms: f64| ms * 1e3;
    for (name, percent) in [("p50", 50), ("p99", 99)] {
        let (said_ms, nominal_ms) = (said("latency_ms", name), DELAY_NS as f64 / 1e6);
        let felt_ms = percentile_ms(&truth.felt_ns, percent);
        sample.insert(format!("{name} us off"), us((said_ms - felt_ms).abs()));
        sample.insert(format!("{name} us above the delay"), us(said_ms - nominal_ms));
        sample.insert(format!("{name} us late, server"), us(percentile_ms(&truth.served_ns, percent) - nominal_ms));
        sample.insert(format!("{name} us late, load"), us(said("sent_late_ms", name)));
    }
    sample.insert("ms without a processor, server".to_owned(), witness.waited_ns as f64 / 1e6);
    let waited_s = result["own_waited_s"].as_f64().unwrap_or(f64::NAN);
    sample.insert("ms without a processor, load".to_owned(), waited_s * 1e3);
    sample.insert("ms stolen from the machine".to_owned(), stolen.as_secs_f64() * 1e3);
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON_ITS_WAY_NS: u64 = 5_000;
    const WRITTEN_NS: u64 = 4_000;
    const COUNT: u64 = 7_000;

    /// What is seen of a run whose requests come on connections in this order, so late.
    fn witness(order: [usize; CONNECTIONS], late_ns: impl Fn(u64) -> u64) -> Witness {
        let mut seen = vec![Vec::new(); CONNECTIONS];
        for number in 0..COUNT {
            let came_ns = 1_000_000_000_000 + number * GAP_NS + ON_ITS_WAY_NS + late_ns(number);
            let place = order[number as usize % CONNECTIONS];
            seen[place].push(Seen { came_ns, answered_ns: Some(came_ns + DELAY_NS + WRITTEN_NS) });
        }
        // A connection on which something else was asked.
        seen.push(Vec::new());
        Witness { seen, waited_ns: 0 }
    }

    #[test]
    fn what_is_felt_begins_when_a_request_was_due() {
        for order in [[0, 1, 2, 3], [3, 1, 0, 2]] {
            let truth = witness(order, |_| 0).truth().unwrap();
            assert_eq!(truth.felt_ns.len() as u64, COUNT + 1 - WARM_UP.as_nanos() as u64 / GAP_NS);
            let is_right = |ns: &u64| *ns == DELAY_NS + WRITTEN_NS;
            assert!(truth.felt_ns.iter().all(is_right), "the shortest way is no delay");
            // Of a hundred requests two are sent a millisecond late: no server was, and they are felt.
            let truth = witness(order, |number| 1_000_000 * u64::from(number % 50 == 7)).truth().unwrap();
            assert_eq!(percentile_ms(&truth.felt_ns, 50), 1.004);
            assert_eq!(percentile_ms(&truth.felt_ns, 99), 2.004);
            assert_eq!(percentile_ms(&truth.served_ns, 99), 1.004);
        }
    }

    #[test]
    fn a_run_on_fewer_connections_has_no_truth() {
        let mut few = witness([0, 1, 2, 3], |_| 0);
        few.seen[2].clear();
        assert_eq!(few.truth().unwrap_err(), "requests came on 3 connections");
    }

    #[test]
    fn a_reply_of_which_the_kernel_says_nothing_leaves_no_truth() {
        let mut silent = witness([0, 1, 2, 3], |_| 0);
        silent.seen[1].last_mut().unwrap().answered_ns = None;
        assert_eq!(silent.truth().unwrap_err(), "the kernel does not say when a reply left");
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let sorted: Vec<u64> = (1..=200).map(|ms| ms * 1_000_000).collect();
        assert_eq!([50, 99, 100].map(|percent| percentile_ms(&sorted, percent)), [100.0, 198.0, 200.0]);
        assert!(percentile_ms(&[], 50).is_nan());
    }
}
