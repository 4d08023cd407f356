//! One request on its way through redirects: where it goes next, or when it is tried again.
//!
//! ```text
//!   MOVED, ASK ------------ followed at once, so many times, HOPS_MAX unless set; then as below
//!   TRYAGAIN and the rest - a pause that doubles, then to where the map says by then
//! ```
//!
//! Its pauses are the request's own: it waits in no queue, and no other request waits for it.

use super::address::Address;
use super::redirect::Redirect;
use crate::limits::{HOPS_MAX, PAUSES_MAX, RETRY_PAUSE_MAX_US, RETRY_PAUSE_MIN_US};

/// What a request has been through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Redirects that are still followed at once.
    hops_left: u8,
    pauses: u8,
}

impl Default for Attempt {
    fn default() -> Self {
        Self::following(HOPS_MAX)
    }
}

/// What happens to the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is sent to this member at once.
    Send {
        /// The member.
        to: Address,
        /// Whether `ASKING` goes in front of it, with nothing between them. In front of a transaction it counts until `EXEC`.
        is_asking: bool,
    },
    /// It is sent to where the map says at this time, in microseconds.
    Wait(u64),
    /// Its time is over, or without a deadline it has waited [`PAUSES_MAX`] times: the error is the caller's.
    GiveUp,
}

impl Attempt {
    /// A request that was never redirected.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`Self::new`], with another bound for the redirects that are followed at once.
    pub fn following(redirects_max: u8) -> Self {
        Self { hops_left: redirects_max, pauses: 0 }
    }

    /// The node has redirected it. `deadline_us` is the request's own; `chance`, a random number, keeps requests that were redirected together
    /// from coming back together.
    pub fn on_redirect(&mut self, redirect: &Redirect, now_us: u64, deadline_us: Option<u64>, chance: u64) -> Next {
        let (to, is_asking) = match redirect {
            Redirect::Moved { to, .. } => (to, false),
            Redirect::Ask { to, .. } => (to, true),
            _ => return self.pause(now_us, deadline_us, chance),
        };
        if self.hops_left == 0 {
            return self.pause(now_us, deadline_us, chance);
        }
        self.hops_left -= 1;
        Next::Send { to: to.clone(), is_asking }
    }

    /// It was not sent, or may be sent again, because the node cannot be reached.
    pub fn on_unreachable(&mut self, now_us: u64, deadline_us: Option<u64>, chance: u64) -> Next {
        self.pause(now_us, deadline_us, chance)
    }

    /// Between half of what the pauses amount to and all of it. A deadline alone bounds their number, if there is one.
    fn pause(&mut self, now_us: u64, deadline_us: Option<u64>, chance: u64) -> Next {
        let pause = RETRY_PAUSE_MIN_US.saturating_mul(1 << self.pauses.min(20)).min(RETRY_PAUSE_MAX_US);
        let until = now_us.saturating_add(pause / 2).saturating_add(chance % (pause / 2 + 1));
        if deadline_us.map_or(self.pauses >= PAUSES_MAX, |deadline| until >= deadline) {
            return Next::GiveUp;
        }
        self.pauses = self.pauses.saturating_add(1);
        Next::Wait(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(port: u16) -> Redirect {
        Redirect::Moved { slot: 1, to: Address::new("a", port).unwrap() }
    }

    #[test]
    fn redirects_are_followed_at_once_and_not_for_ever() {
        let mut attempt = Attempt::new();
        for port in 1..=u16::from(HOPS_MAX) {
            let to = Address::new("a", port).unwrap();
            assert_eq!(attempt.on_redirect(&moved(port), 0, None, 0), Next::Send { to, is_asking: false });
        }
        let mut now = 0;
        let mut pauses = 0;
        while let Next::Wait(until) = attempt.on_redirect(&moved(9), now, None, u64::MAX) {
            assert!(until > now && until - now <= RETRY_PAUSE_MAX_US, "{now} {until}");
            (now, pauses) = (until, pauses + 1);
        }
        assert_eq!(pauses, PAUSES_MAX);
    }

    #[test]
    fn a_request_that_asks_goes_behind_asking() {
        let to = Address::new("a", 1).unwrap();
        let ask = Redirect::Ask { slot: 1, to: to.clone() };
        assert_eq!(Attempt::new().on_redirect(&ask, 0, None, 0), Next::Send { to, is_asking: true });
    }

    #[test]
    fn a_deadline_alone_ends_a_request_that_has_one() {
        // Ten minutes, of which the longest pauses make 1,200 at least.
        let (mut attempt, mut now, mut pauses) = (Attempt::new(), 0, 0);
        let deadline = 600 * 1_000_000;
        while let Next::Wait(until) = attempt.on_redirect(&Redirect::ClusterDown, now, Some(deadline), u64::MAX) {
            assert!(until > now && until < deadline, "{now} {until}");
            (now, pauses) = (until, pauses + 1);
        }
        assert!(pauses > u32::from(u8::MAX) && deadline - now <= RETRY_PAUSE_MAX_US, "{pauses} pauses until {now}");
    }

    #[test]
    fn no_pause_goes_beyond_the_deadline() {
        let mut attempt = Attempt::new();
        assert_eq!(attempt.on_redirect(&Redirect::TryAgain, 100, Some(1_000), 0), Next::GiveUp);
        assert_eq!(attempt.on_redirect(&Redirect::TryAgain, 100, Some(100_000), 0), Next::Wait(2_600));
        assert_eq!(attempt.on_unreachable(u64::MAX, None, 7), Next::Wait(u64::MAX));
    }
}
