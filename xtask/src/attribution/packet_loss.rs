//! When the kernel has lost packets, on the loopback interface too.
//!
//! A processor whose queue of received packets is full drops what comes. TCP sends it again after 200 ms at the earliest, a request
//! to connect after a second. That is longer than the proxy waits for a node in an attribution run, and the connections of the
//! watch need not be those that lost something. The kernel counts what it drops: an error at another time is not explained by it.

use std::fs;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A line for each processor; the second of its hexadecimal columns counts dropped packets.
const COUNTERS: &str = "/proc/net/softnet_stat";
/// The counters are read so often.
pub(super) const INTERVAL: Duration = Duration::from_millis(20);

/// All losses of a run so far.
#[derive(Debug, Default)]
pub(super) struct PacketLoss {
    lost: Mutex<Lost>,
}

#[derive(Debug, Default)]
struct Lost {
    /// `None` before the first reading.
    last: Option<u64>,
    /// When a reading found that more packets were lost than before.
    at: Vec<Instant>,
    packets: u64,
}

impl PacketLoss {
    /// Reads the counters. A system without them loses nothing as far as is known.
    pub(super) fn sample(&self) {
        if let Some(dropped) = fs::read_to_string(COUNTERS).ok().and_then(|text| dropped(&text)) {
            self.note(dropped, Instant::now());
        }
    }

    fn note(&self, dropped: u64, now: Instant) {
        let mut lost = self.lost.lock().expect("no client panics");
        let more = lost.last.replace(dropped).map_or(0, |last| dropped.saturating_sub(last));
        if more > 0 {
            lost.packets += more;
            lost.at.push(now);
        }
    }

    /// Whether packets were lost then or later.
    pub(super) fn has_been(&self, since: Instant) -> bool {
        self.lost.lock().expect("no client panics").at.last().is_some_and(|at| *at >= since)
    }

    /// How many packets were lost since the first reading.
    pub(super) fn packets(&self) -> u64 {
        self.lost.lock().expect("no client panics").packets
    }
}

/// The packets that all processors together have dropped.
fn dropped(text: &str) -> Option<u64> {
    text.lines().map(|line| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok()).sum()
}

#[cfg(test)]
impl PacketLoss {
    /// One packet was lost then.
    pub(super) fn of(at: Instant) -> PacketLoss {
        let loss = PacketLoss::default();
        loss.note(7, at);
        loss.note(8, at);
        loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_packets_of_all_processors_are_added() {
        let text = "0d646776 00000002 00000032 00000000\n0bbbd909 0000001f 00000029 00000000\n";
        assert_eq!(dropped(text), Some(33));
        assert_eq!(dropped("0d646776\n"), None);
    }

    #[test]
    fn packets_that_were_lost_before_the_run_do_not_count() {
        let (loss, begin) = (PacketLoss::default(), Instant::now());
        loss.note(500, begin);
        assert!(!loss.has_been(begin) && loss.packets() == 0);
        loss.note(500, begin);
        assert!(!loss.has_been(begin));
        let later = begin + INTERVAL;
        loss.note(503, later);
        assert!(loss.has_been(begin) && loss.has_been(later) && loss.packets() == 3);
        assert!(!loss.has_been(later + INTERVAL), "it was over before");
    }
}
