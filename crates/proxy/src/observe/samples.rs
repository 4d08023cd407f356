//! Requests of which a sample is taken, and what is counted of them.

use crate::limits::{RANKED_AGE_SAMPLES, RANKED_KEY_BYTES_MAX, RANKED_KEYS_MAX, SAMPLED_REQUESTS_MAX};
use crate::observe::histogram::Histogram;
use crate::observe::slow_log::SlowLog;
use crate::observe::terms::Terms;
use crate::observe::top_keys::{FrequentKeys, LargestKeys};
use respool_command::{KeyPositions, Row};
use respool_wire::{Args, ReplyScanner, RequestDecoder, RequestLimits, Scan, Step, Strictness};
use std::sync::Arc;

/// What a worker has seen.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) countdown: u32,
    pub(crate) slow: SlowLog,
    pub(crate) often: FrequentKeys,
    pub(crate) largest: LargestKeys,
    keys: KeyPositions,
    /// Times at nodes, by command.
    pub(crate) commands: Vec<(&'static Row, Arc<Histogram>)>,
}

/// A batch, and which of its requests is next.
pub(crate) struct Flight {
    pub(crate) batch: Vec<u8>,
    pub(crate) number: usize,
}

impl Samples {
    /// Nothing yet.
    pub(crate) fn new(terms: Terms) -> Self {
        let mut seen = Self::default();
        seen.begin_countdown(terms);
        seen
    }

    /// How many reads from nodes it is until the next sample.
    pub(crate) fn begin_countdown(&mut self, terms: Terms) {
        self.countdown = if terms.sample_every == 0 { u32::MAX } else { terms.sample_every };
    }

    pub(crate) fn latency_of(&mut self, row: &'static Row, make: impl FnOnce(&str) -> Arc<Histogram>) -> &Histogram {
        let known = self.commands.iter().position(|(known, _)| known.command == row.command);
        let at = known.unwrap_or_else(|| {
            self.commands.push((row, make(row.full_name())));
            self.commands.len() - 1
        });
        &self.commands[at].1
    }

    pub(crate) fn note_keys(&mut self, row: &'static Row, args: Args<'_>, reply_bytes: Option<usize>) {
        if row.keys.positions(args, &mut self.keys).is_err() {
            return;
        }
        let request_bytes: usize = args.iter().map(<[u8]>::len).sum();
        let keys = self.keys.len().max(1);
        // What comes or goes with several keys is shared out among them.
        let bytes = (request_bytes.max(reply_bytes.unwrap_or(0)) / keys) as u64;
        for key in self.keys.iter().filter(|key| key.access.is_key()).take(SAMPLED_REQUESTS_MAX) {
            let key = args.get(key.index as usize).unwrap_or_default();
            let key = key.get(..RANKED_KEY_BYTES_MAX).unwrap_or(key);
            self.often.note(key, row.name, RANKED_KEYS_MAX);
            self.largest.note(key, row.name, bytes, RANKED_KEYS_MAX);
        }
        if self.often.seen > RANKED_AGE_SAMPLES {
            self.often.age();
        }
    }
}

/// Gives the requests of a batch to `each`, until it says `false`.
pub(crate) fn each_request(batch: &[u8], mut each: impl FnMut(Args<'_>) -> bool) {
    let limits = RequestLimits::authenticated(Strictness::Strict);
    let mut decoder = RequestDecoder::new();
    let mut rest = batch;
    while !rest.is_empty() {
        let Ok(Step::Request(request)) = decoder.decode(rest, &limits) else { return };
        let consumed = request.consumed;
        if !each(request.args) {
            return;
        }
        rest = rest.get(consumed..).unwrap_or_default();
    }
}

/// The length of the first reply, if it is there as a whole.
pub(crate) fn length_of(bytes: &[u8]) -> Option<usize> {
    match ReplyScanner::default().scan(bytes, &respool_wire::ReplyLimits::default()) {
        Ok(Scan::Complete { consumed, .. }) => Some(consumed),
        _ => Some(bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_takes_no_samples_never_comes_to_one() {
        assert_eq!(Samples::new(Terms::default()).countdown, u32::MAX);
        assert_eq!(Samples::new(Terms { sample_every: 7, ..Terms::default() }).countdown, 7);
    }

    #[test]
    fn the_requests_of_a_batch_are_given_until_one_is_enough() {
        let batch = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGE";
        let mut names = Vec::new();
        each_request(batch, |args| {
            names.push(args.name().to_vec());
            true
        });
        assert_eq!(names, [b"GET".to_vec(), b"PING".to_vec()], "the last is not there as a whole");
        let mut count = 0;
        each_request(batch, |_| {
            count += 1;
            false
        });
        assert_eq!(count, 1);
    }

    #[test]
    fn the_first_reply_has_its_own_length() {
        assert_eq!(length_of(b"$1\r\na\r\n+OK\r\n"), Some(7));
        assert_eq!(length_of(b"$9\r\nab"), Some(6), "as much of it as is there");
    }
}
