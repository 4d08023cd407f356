//! When a node is dialled again: a pause that grows with every failure, and a rate that all attempts share.
//!
//! ```text
//!             poll: Dial                ready
//!   [idle] -------------> [dialling] ----------> [connected]
//!      ^                      |                       |
//!      |  the pause is over   | failed                | lost: no pause, but the rate counts
//!      '----- [pausing] <-----'                       |
//!      '----------------------------------------------'
//! ```
//!
//! No clock and no chance: the caller says what happened and when, and brings a random number where a pause needs one.

/// How long the pause after a failure is, and how many attempts there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconnectTerms {
    /// The first pause, in microseconds. Each further failure doubles it.
    pub backoff_min_us: u64,
    /// The longest pause, in microseconds.
    pub backoff_max_us: u64,
    /// Attempts a second in the long run.
    pub dials_per_second: u64,
    /// Attempts that may follow each other without regard to the rate.
    pub dials_burst: u64,
}

impl Default for ReconnectTerms {
    /// 50 ms to 5 s, at ten attempts a second.
    fn default() -> Self {
        Self { backoff_min_us: 50_000, backoff_max_us: 5_000_000, dials_per_second: 10, dials_burst: 10 }
    }
}

/// A pause after failures, which grows with each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
    failed_us: u64,
    retry_us: u64,
}

impl Backoff {
    /// An attempt that began at `began_us` has failed at `now_us`. Attempts that were under way together count once. The pause
    /// lies between half of what the failures amount to and all of it, as `chance`, a random number, decides: so callers do not come
    /// back in step. Returns whether it counts.
    pub fn note_failure(&mut self, began_us: u64, now_us: u64, min_us: u64, max_us: u64, chance: u64) -> bool {
        if self.failures > 0 && began_us < self.failed_us {
            return false;
        }
        let doubled = min_us.saturating_mul(1 << self.failures.min(20));
        let pause = doubled.clamp(min_us, max_us.max(min_us));
        self.failures = self.failures.saturating_add(1);
        self.failed_us = now_us;
        self.retry_us = now_us.saturating_add(pause / 2).saturating_add(chance % (pause / 2 + 1));
        true
    }

    /// Failures since the last success, without those that count with another.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// The time before which no attempt is made, on the monotonic clock in microseconds.
    pub fn retry_us(&self) -> u64 {
        self.retry_us
    }

    /// Whether the pause is over.
    pub fn is_over(&self, now_us: u64) -> bool {
        now_us >= self.retry_us
    }
}

/// How often a node is dialled, as a leaky bucket counts it. Callers that share one share the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DialRate {
    paid_us: u64,
}

impl DialRate {
    /// Takes one attempt. `Err`: none is left before this time, in microseconds.
    pub fn take(&mut self, now_us: u64, per_second: u64, burst: u64) -> Result<(), u64> {
        let step_us = 1_000_000 / per_second.max(1);
        let next_us = now_us.max(self.paid_us) + step_us;
        let burst_us = now_us + step_us * burst.max(1);
        if next_us > burst_us {
            return Err(now_us + (next_us - burst_us));
        }
        self.paid_us = next_us;
        Ok(())
    }

    /// Whether all attempts have been paid for: then it is as good as new.
    pub fn is_paid(&self, now_us: u64) -> bool {
        self.paid_us <= now_us
    }
}

/// What a connection needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialAdvice {
    /// It is dialled now; [`Reconnect::note_ready`] or [`Reconnect::note_lost`] follows.
    Dial,
    /// Nothing before this time, in microseconds.
    Wait(u64),
    /// Nothing: a dial is under way, or the connection is there.
    Nothing,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    Dialling {
        began_us: u64,
    },
    Connected,
}

/// The life of one connection that is made anew whenever it is lost.
#[derive(Clone, Debug, Default)]
pub struct Reconnect {
    terms: ReconnectTerms,
    backoff: Backoff,
    rate: DialRate,
    state: State,
}

impl Reconnect {
    /// A connection that does not exist yet.
    pub fn new(terms: ReconnectTerms) -> Self {
        Self { terms, ..Self::default() }
    }

    /// What is due at `now_us`, on the monotonic clock in microseconds.
    pub fn poll(&mut self, now_us: u64) -> DialAdvice {
        if self.state != State::Idle {
            return DialAdvice::Nothing;
        }
        if !self.backoff.is_over(now_us) {
            return DialAdvice::Wait(self.backoff.retry_us());
        }
        match self.rate.take(now_us, self.terms.dials_per_second, self.terms.dials_burst) {
            Ok(()) => {
                self.state = State::Dialling { began_us: now_us };
                DialAdvice::Dial
            }
            Err(until_us) => DialAdvice::Wait(until_us),
        }
    }

    /// The handshake is through: the next failure is the first again.
    pub fn note_ready(&mut self) {
        self.backoff = Backoff::default();
        self.state = State::Connected;
    }

    /// The dial failed, the handshake was refused, or the connection was lost. `chance` is a random number. After a loss the next dial
    /// has no pause; a node that accepts connections and drops them is held off by the rate.
    pub fn note_lost(&mut self, now_us: u64, chance: u64) {
        if let State::Dialling { began_us } = self.state {
            let ReconnectTerms { backoff_min_us, backoff_max_us, .. } = self.terms;
            self.backoff.note_failure(began_us, now_us, backoff_min_us, backoff_max_us, chance);
        }
        self.state = State::Idle;
    }

    /// Failed attempts since the last that succeeded.
    pub fn failures(&self) -> u32 {
        self.backoff.failures()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: ReconnectTerms =
        ReconnectTerms { backoff_min_us: 100, backoff_max_us: 1_000, dials_per_second: 10, dials_burst: 3 };

    #[test]
    fn every_failure_doubles_the_pause_up_to_the_longest() {
        let mut backoff = Backoff::default();
        let mut now_us = 1;
        let pauses: Vec<u64> = (0..6)
            .map(|_| {
                assert!(backoff.note_failure(now_us, now_us, 100, 1_000, 0));
                let pause = backoff.retry_us() - now_us;
                now_us = backoff.retry_us();
                pause
            })
            .collect();
        assert_eq!(pauses, [50, 100, 200, 400, 500, 500]);
    }

    #[test]
    fn chance_spreads_the_pause_over_its_second_half() {
        let retry_us = |chance| {
            let mut backoff = Backoff::default();
            backoff.note_failure(0, 0, 100, 1_000, chance);
            backoff.retry_us()
        };
        let all: Vec<u64> = (0..1_000).map(retry_us).collect();
        assert_eq!((all.iter().min(), all.iter().max()), (Some(&50), Some(&100)));
        assert!(retry_us(u64::MAX) <= 100);
    }

    #[test]
    fn attempts_that_fail_together_count_once() {
        let mut backoff = Backoff::default();
        assert!(backoff.note_failure(10, 20, 100, 1_000, 0));
        assert!(!backoff.note_failure(11, 25, 100, 1_000, 0));
        assert!(backoff.note_failure(20, 30, 100, 1_000, 0));
        assert_eq!(backoff.failures(), 2);
    }

    #[test]
    fn no_clock_and_no_setting_overflows_a_pause() {
        let mut backoff = Backoff::default();
        for _ in 0..100 {
            backoff.note_failure(u64::MAX, u64::MAX, u64::MAX, 1, u64::MAX);
        }
        assert!(backoff.is_over(u64::MAX));
    }

    #[test]
    fn a_dial_that_fails_is_repeated_after_its_pause() {
        let mut reconnect = Reconnect::new(TERMS);
        assert_eq!(reconnect.poll(1), DialAdvice::Dial);
        assert_eq!(reconnect.poll(2), DialAdvice::Nothing, "one dial at a time");
        reconnect.note_lost(5, 0);
        assert_eq!(reconnect.poll(6), DialAdvice::Wait(55));
        assert_eq!(reconnect.poll(55), DialAdvice::Dial);
        reconnect.note_ready();
        assert_eq!((reconnect.poll(56), reconnect.failures()), (DialAdvice::Nothing, 0));
    }

    #[test]
    fn a_lost_connection_is_dialled_at_once_and_at_a_rate() {
        let mut reconnect = Reconnect::new(TERMS);
        let mut dials = 0;
        for now_us in 0..1_000 {
            if reconnect.poll(now_us * 1_000) == DialAdvice::Dial {
                dials += 1;
                reconnect.note_ready();
                reconnect.note_lost(now_us * 1_000, 0);
            }
        }
        assert_eq!(dials, 3 + 9, "the burst, and ten a second");
    }
}
