//! A very large reply to a client that takes it slowly, beside clients that want small ones of the same node.

use std::io::{self, Read, Write};
use std::thread;
use std::time::Duration;

use respool_testkit::{Address, proc_stats, request};

use super::bystanders::{self, P99};
use super::node::Pair;
use super::{Bench, Finding, Wanted};

const VALUE_BYTES: usize = 50 << 20;
/// The reader takes a piece and rests: 50 MB last about four seconds.
const PIECE_BYTES: usize = 64 << 10;
const PAUSE: Duration = Duration::from_millis(5);
const ROUNDS: usize = 3;
const ALONE: Duration = Duration::from_secs(4);
/// What Respool may hold in buffers, and the share beyond it that belongs to the allocator and the program.
const PROCESS_BYTES: &str = "64mb";
const RESIDENT_MAX_MB: f64 = 64.0 * 1.05 + 16.0;
const SILENCE_LIMIT: Duration = Duration::from_secs(30);

pub(super) fn run(bench: &Bench) -> io::Result<Vec<Finding>> {
    let pair = Pair::start(bench, &["--workers", "1", "--process-bytes", PROCESS_BYTES])?;
    let value: Vec<u8> = (0..VALUE_BYTES as u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    pair.server.client()?.command(&[b"SET".as_slice(), b"elephant", &value])?;
    let address = pair.respool.tcp();
    proc_stats::reset_peak(pair.respool.pid())?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(bystanders::alone(&address, ALONE)?);
        with.push(bystanders::measure(&address, || read_slowly(&address, &value))?.0);
    }
    let peak = proc_stats::peak_resident_bytes(pair.respool.pid())?;
    let (without, with): (P99, P99) = (bystanders::median(without), bystanders::median(with));
    println!("slow-reader: p99 of the others {:?} without, {:?} with", without.0, with.0);
    Ok(vec![
        Finding::new(
            "p99 of 50 clients beside a slow reader of 50 MB",
            with.ratio(without),
            Wanted::AtMost(3.0),
            "x without",
        ),
        Finding::new(
            format!("peak memory then, --process-bytes {PROCESS_BYTES}"),
            peak as f64 / (1 << 20) as f64,
            Wanted::AtMost(RESIDENT_MAX_MB),
            "MB",
        ),
    ])
}

/// GETs the large value and checks every byte of it.
fn read_slowly(address: &Address, value: &[u8]) -> io::Result<()> {
    let mut stream = address.connect()?;
    stream.set_read_timeout(Some(SILENCE_LIMIT))?;
    stream.write_all(&request(&["GET", "elephant"]))?;
    let head = format!("${}\r\n", value.len());
    let whole = head.len() + value.len() + 2;
    let mut received = Vec::with_capacity(whole);
    let mut piece = vec![0; PIECE_BYTES];
    while received.len() < whole {
        let count = stream.read(&mut piece)?;
        received.extend_from_slice(&piece[..count]);
        if count == 0 || (received.len() == count && received[0] == b'-') {
            let shown = String::from_utf8_lossy(&received[..received.len().min(100)]).into_owned();
            return Err(io::Error::other(format!("the slow reader got {} bytes: {shown:?}", received.len())));
        }
        thread::sleep(PAUSE);
    }
    let is_right = received.starts_with(head.as_bytes()) && &received[head.len()..whole - 2] == value;
    if is_right { Ok(()) } else { Err(io::Error::other("the slow reader got other bytes than were stored")) }
}
