//! Whether a node is of use to the clients that share its connections: what is evidence against it, what heals it, and when it is tried
//! again.
//!
//! ```text
//!              a dial fails and nothing vouches for the node;          a lane is ready,
//!              a lane is silent and nothing vouches for it             or anything was heard on any
//!   [of use] ---------------------------------------------> [out] -----------------------------------> [of use]
//!      |                                                     |  ^
//!      |  a PING is not answered in time                     '--' the pause is over: one dial, or a PING
//!      '---------------------------------------> [suspect] ----- anything was heard on any lane -----> [of use]
//! ```
//!
//! Two questions are kept apart. Whether a node is *out*: then requests go elsewhere if there is an elsewhere, so it takes
//! evidence that the node does not answer at all. And whether a *new connection* may be tried now: a pause follows every failed
//! dial, longer with each one. A node that is full, or that is busy while one more connection is wanted, is not out; a database
//! or a user that it refuses has a pause of its own.
//!
//! No clock, no lane: the caller says what happened, when, and whether something vouches for the node.

use crate::Backoff;

/// What the end of a connection, or of an attempt to make one, is evidence of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureEvidence {
    /// The node cannot be reached, or is of no use to anyone.
    Node,
    /// The node owes replies and has said nothing for too long. Whether it can be connected to is another question, which the
    /// next dial answers.
    Silence,
    /// The node has no room for another connection. Those that it has are as good as before.
    Room,
    /// The node refuses what this connection was for: one database, or one of its users.
    Key,
}

impl FailureEvidence {
    /// What a node's refusal of a new connection is about, by its words. `is_plain`: nothing was asked of it but what it is
    /// configured with.
    pub fn of_refusal(words: &str, is_plain: bool) -> Self {
        let is = |start: &str| words.starts_with(start);
        if is("ERR max number of clients") {
            Self::Room
        } else if is_plain || is("LOADING") || is("MASTERDOWN") {
            Self::Node
        } else {
            Self::Key
        }
    }
}

/// A pause after failures, and what went wrong.
#[derive(Clone, Debug, Default)]
struct Pause {
    backoff: Backoff,
    /// What went wrong.
    why: String,
    /// The node's own words, if it refused.
    words: Option<String>,
}

impl Pause {
    /// Something has failed.
    fn note(&mut self, failure: Failure<'_>, terms: Terms) {
        self.why = failure.why.to_owned();
        self.words = failure.words.map(str::to_owned);
        let Terms { now_us, backoff_min_us, backoff_max_us, chance, .. } = terms;
        self.backoff.note_failure(failure.began_us, now_us, backoff_min_us, backoff_max_us, chance);
    }

    fn is_over(&self, now_us: u64) -> bool {
        self.backoff.is_over(now_us)
    }
}

/// What has failed.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// What it is evidence of.
    pub blame: FailureEvidence,
    /// When the attempt began, or the silence.
    pub began_us: u64,
    /// What went wrong.
    pub why: &'a str,
    /// The node's own words, if it refused.
    pub words: Option<&'a str>,
    /// Another lane says that the node is there: one that is watched for silence, or one on which it was heard of since.
    pub is_vouched_for: bool,
}

/// The time, the settings, and chance for the pause.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The time on the monotonic clock, in microseconds.
    pub now_us: u64,
    /// The first pause.
    pub backoff_min_us: u64,
    /// The longest pause.
    pub backoff_max_us: u64,
    /// How many databases and users are remembered to be refused.
    pub keys_max: usize,
    /// A random number.
    pub chance: u64,
}

/// Why no new connection is tried for the time being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// What went wrong.
    pub why: &'a str,
    /// The node's own words, if it refused this database or user.
    pub words: Option<&'a str>,
}

/// What is known of whether a node is there. `K` is what a connection is for: a database and a user.
#[derive(Debug)]
pub struct NodeHealth<K> {
    /// New connections to it fail.
    dials: Pause,
    /// It had no room for the last one.
    is_full: bool,
    /// Databases and users that it refuses.
    keys: Vec<(K, Pause)>,
    /// Since when it has been out; 0 if it is not.
    out_us: u64,
    /// Since when it has left a PING unanswered; 0 if it has not.
    suspect_us: u64,
    /// A connection that all share was lost, and none has been made since.
    has_lost: bool,
    /// A dial failed while a shared lane was ready: that lane is to be asked at once.
    is_to_be_asked: bool,
    /// It was away, and is spared until then.
    pub spared_until_us: u64,
}

impl<K> Default for NodeHealth<K> {
    fn default() -> Self {
        Self {
            dials: Pause::default(),
            is_full: false,
            keys: Vec::new(),
            out_us: 0,
            suspect_us: 0,
            has_lost: false,
            is_to_be_asked: false,
            spared_until_us: 0,
        }
    }
}

impl<K: Copy + PartialEq> NodeHealth<K> {
    /// Whether nothing is to be sent to it that can go elsewhere.
    pub fn is_in_doubt(&self) -> bool {
        self.is_down() || self.is_suspect()
    }

    /// Whether it counts as not there.
    pub fn is_down(&self) -> bool {
        self.out_us > 0
    }

    /// Whether it acknowledges what it is sent and does not answer.
    pub fn is_suspect(&self) -> bool {
        self.suspect_us > 0
    }

    /// Whether it had no room for the last connection that was tried.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Failed attempts to connect since the last that succeeded.
    pub fn failures(&self) -> u32 {
        self.dials.backoff.failures()
    }

    /// What went wrong with the last one.
    pub fn last_failure(&self) -> &str {
        &self.dials.why
    }

    /// Why a request for a new connection is refused at once instead of waiting for it.
    pub fn refuses(&self, key: K, now_us: u64) -> Option<Refusal<'_>> {
        if (self.is_down() || self.is_full) && !self.dials.is_over(now_us) {
            return Some(Refusal { why: &self.dials.why, words: None });
        }
        let pause = self.pause_of(key).filter(|pause| !pause.is_over(now_us))?;
        Some(Refusal { why: &pause.why, words: pause.words.as_deref() })
    }

    /// Whether the last connection that was tried failed: then the next is an attempt that counts.
    pub fn is_on_trial(&self) -> bool {
        self.dials.backoff.failures() > 0
    }

    /// Whether one connection is tried at a time, since it may well fail.
    pub fn is_tried_singly(&self) -> bool {
        self.is_on_trial() || self.is_down()
    }

    /// Whether the last one for this database and user did.
    pub fn is_key_on_trial(&self, key: K) -> bool {
        self.pause_of(key).is_some()
    }

    /// Before then no connection is tried.
    pub fn retry_us(&self) -> u64 {
        self.dials.backoff.retry_us()
    }

    /// Something has failed. Returns whether the node is out from now on.
    pub fn note_failure(&mut self, failure: Failure<'_>, key: K, terms: Terms) -> bool {
        match failure.blame {
            FailureEvidence::Key => {
                self.pause_of_mut(key, terms).note(failure, terms);
                return false;
            }
            FailureEvidence::Silence => {}
            FailureEvidence::Room => {
                self.is_full = true;
                self.dials.note(failure, terms);
            }
            FailureEvidence::Node => {
                self.is_full = false;
                self.dials.note(failure, terms);
            }
        }
        let is_evidence = failure.blame != FailureEvidence::Room;
        self.is_to_be_asked |= is_evidence && failure.is_vouched_for;
        let is_out_now = is_evidence && !failure.is_vouched_for && !self.is_down();
        if is_out_now {
            self.out_us = terms.now_us.max(1);
        }
        is_out_now
    }

    /// Whether the node is to be sent a PING, however lately it was heard of.
    pub fn is_to_be_asked(&self) -> bool {
        self.is_to_be_asked
    }

    /// The node has been asked, or owes an answer to something else.
    pub fn note_asked(&mut self) {
        self.is_to_be_asked = false;
    }

    /// A connection that all share was lost. That says nothing yet: the next dial does.
    pub fn note_lost(&mut self) {
        self.has_lost = true;
    }

    /// A PING has not been answered for too long.
    pub fn note_unanswered(&mut self, now_us: u64) {
        if self.suspect_us == 0 {
            self.suspect_us = now_us.max(1);
        }
    }

    /// Something was heard of the node at this time, on a lane that is ready. Returns whether it was out.
    pub fn note_heard(&mut self, heard_us: u64) -> bool {
        if heard_us > self.suspect_us {
            self.suspect_us = 0;
        }
        let is_back = self.is_down() && heard_us > self.out_us;
        if is_back {
            self.out_us = 0;
        }
        is_back
    }

    /// A connection has been made for this key. Returns whether the node was out.
    pub fn note_ready(&mut self, key: K) -> bool {
        let was_out = self.is_down();
        self.dials = Pause::default();
        self.keys.retain(|(refused, _)| *refused != key);
        (self.out_us, self.suspect_us, self.is_full) = (0, 0, false);
        was_out
    }

    /// Whether the node was away until now, as far as its shared connections tell. Asked once for each time.
    pub fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.has_lost)
    }

    /// The credentials that were refused, those `of` these users, have been replaced: the next connection is dialled at once.
    pub fn forget_refusals(&mut self, of: impl Fn(&K) -> bool) {
        self.dials = Pause::default();
        self.forget_keys(of);
    }

    /// These databases or users are others from now on.
    pub fn forget_keys(&mut self, of: impl Fn(&K) -> bool) {
        self.keys.retain(|(key, _)| !of(key));
    }

    fn pause_of(&self, key: K) -> Option<&Pause> {
        self.keys.iter().find(|(refused, _)| *refused == key).map(|(_, pause)| pause)
    }

    fn pause_of_mut(&mut self, key: K, terms: Terms) -> &mut Pause {
        let place = match self.keys.iter().position(|(refused, _)| *refused == key) {
            Some(place) => place,
            None => {
                // Those of long ago are as good as none; there are no more than those that connections are for.
                let terms_us = 2 * terms.backoff_max_us;
                self.keys.retain(|(_, pause)| terms.now_us < pause.backoff.retry_us().saturating_add(terms_us));
                if self.keys.len() >= terms.keys_max {
                    self.keys.remove(0);
                }
                self.keys.push((key, Pause::default()));
                self.keys.len() - 1
            }
        };
        &mut self.keys[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl NodeHealth<u32> {
        fn may_dial(&self, key: u32, now_us: u64) -> bool {
            now_us >= self.retry_us() && self.pause_of(key).is_none_or(|pause| pause.is_over(now_us))
        }
    }

    const PLAIN: u32 = 0;
    const OTHER: u32 = 1;
    const KEYS_MAX: usize = 64;

    fn terms(now_us: u64) -> Terms {
        Terms { now_us, backoff_min_us: 100, backoff_max_us: 1_000, keys_max: KEYS_MAX, chance: 0 }
    }

    fn failure(blame: FailureEvidence, began_us: u64) -> Failure<'static> {
        Failure { blame, began_us, why: "could not be reached", words: None, is_vouched_for: false }
    }

    #[test]
    fn a_failed_dial_is_evidence_unless_another_lane_vouches() {
        let mut health = NodeHealth::default();
        let vouched = Failure { is_vouched_for: true, ..failure(FailureEvidence::Node, 1_000) };
        assert!(!health.note_failure(vouched, PLAIN, terms(2_000)));
        assert!(!health.is_in_doubt(), "no request goes elsewhere");
        assert_eq!(health.refuses(PLAIN, 2_001), None, "who wants a connection waits");
        assert!(!health.may_dial(PLAIN, 2_001) && health.may_dial(PLAIN, 2_050), "but not without a pause");
        assert!(health.note_failure(failure(FailureEvidence::Node, 2_100), PLAIN, terms(2_200)));
        assert!(health.is_down() && health.refuses(PLAIN, 2_201).is_some());
        assert!(!health.note_failure(failure(FailureEvidence::Node, 2_300), PLAIN, terms(2_400)), "it is out already");
    }

    #[test]
    fn a_silent_node_is_out_and_may_be_dialled_at_once() {
        let mut health = NodeHealth::default();
        let vouched = Failure { is_vouched_for: true, ..failure(FailureEvidence::Silence, 1_000) };
        assert!(!health.note_failure(vouched, PLAIN, terms(2_000)) && !health.is_down());
        assert!(health.note_failure(failure(FailureEvidence::Silence, 2_000), PLAIN, terms(3_000)));
        assert!(health.is_down() && health.is_tried_singly() && health.may_dial(PLAIN, 3_000));
        assert_eq!(health.refuses(PLAIN, 3_000), None, "the next dial says what to think of it");
        assert!(health.note_ready(PLAIN) && !health.is_tried_singly());
    }

    #[test]
    fn a_full_node_is_not_out_and_takes_no_more() {
        let mut health = NodeHealth::default();
        let words = "ERR max number of clients reached";
        let blame = FailureEvidence::of_refusal(words, true);
        assert_eq!(blame, FailureEvidence::Room);
        assert!(!health.note_failure(failure(blame, 1_000), PLAIN, terms(1_001)));
        assert!(!health.is_in_doubt() && health.is_full());
        assert!(health.refuses(PLAIN, 1_010).is_some() && health.refuses(OTHER, 1_010).is_some());
        assert!(health.refuses(PLAIN, 1_051).is_none(), "it is asked again after a pause");
        assert!(!health.note_ready(PLAIN) && !health.is_full());
    }

    #[test]
    fn a_class_that_is_refused_has_a_pause_of_its_own() {
        let mut health = NodeHealth::default();
        let words = "NOAUTH no";
        assert_eq!(FailureEvidence::of_refusal(words, false), FailureEvidence::Key);
        assert_eq!(FailureEvidence::of_refusal(words, true), FailureEvidence::Node);
        assert_eq!(FailureEvidence::of_refusal("LOADING Redis is loading", false), FailureEvidence::Node);
        let refused = Failure { words: Some(words), ..failure(FailureEvidence::Key, 1_000) };
        assert!(!health.note_failure(refused, OTHER, terms(1_001)));
        assert_eq!(health.refuses(OTHER, 1_010).and_then(|refusal| refusal.words), Some(words));
        assert!(health.refuses(PLAIN, 1_010).is_none() && health.may_dial(PLAIN, 1_010) && !health.is_in_doubt());
        assert!(!health.may_dial(OTHER, 1_010) && health.may_dial(OTHER, 1_051));
        health.note_failure(Failure { began_us: 1_060, ..refused }, OTHER, terms(1_070));
        assert!(!health.may_dial(OTHER, 1_140) && health.may_dial(OTHER, 1_170), "twice as long");
        assert!(health.is_key_on_trial(OTHER) && !health.is_on_trial());
        health.note_ready(OTHER);
        assert!(!health.is_key_on_trial(OTHER));
    }

    #[test]
    fn refused_keys_are_bounded_and_go_with_their_user() {
        let mut health = NodeHealth::default();
        for key in 0..10 * KEYS_MAX as u32 {
            health.note_failure(failure(FailureEvidence::Key, 1_000), key, terms(1_001));
        }
        assert_eq!(health.keys.len(), KEYS_MAX);
        health.forget_keys(|key| key % 3 == 1);
        assert!(!health.keys.is_empty() && health.keys.iter().all(|(key, _)| key % 3 != 1));
        health.note_failure(failure(FailureEvidence::Key, 9_000_000), u32::MAX, terms(9_000_001));
        assert_eq!(health.keys.len(), 1, "those of long ago are forgotten");
    }

    #[test]
    fn what_is_heard_on_any_lane_heals() {
        let mut health = NodeHealth::default();
        health.note_failure(failure(FailureEvidence::Node, 1_000), PLAIN, terms(2_000));
        health.note_unanswered(2_100);
        assert!(!health.note_heard(2_000) && health.is_down(), "it was heard of before");
        assert!(health.note_heard(2_050) && !health.is_down() && health.is_suspect());
        health.note_heard(2_101);
        assert!(!health.is_in_doubt());
        assert!(!health.may_dial(PLAIN, 2_040), "new connections have their pause all the same");
    }

    #[test]
    fn attempts_that_fail_together_count_once() {
        let mut health = NodeHealth::default();
        for later in 0..10 {
            health.note_failure(failure(FailureEvidence::Node, 1_000), PLAIN, terms(2_000 + later));
        }
        assert_eq!(health.failures(), 1);
        assert_eq!(health.retry_us(), 2_050);
        let mut now_us = 3_000;
        for _ in 0..10 {
            health.note_failure(failure(FailureEvidence::Node, now_us), PLAIN, terms(now_us));
            now_us = health.retry_us();
        }
        assert_eq!((health.failures(), health.retry_us() - now_us), (11, 0));
        assert!(health.note_ready(PLAIN));
        assert_eq!((health.failures(), health.last_failure(), health.retry_us()), (0, "", 0));
    }

    #[test]
    fn every_state_ends_when_its_pause_does() {
        let mut health = NodeHealth::default();
        for (number, blame) in [FailureEvidence::Node, FailureEvidence::Room, FailureEvidence::Key]
            .into_iter()
            .cycle()
            .take(60)
            .enumerate()
        {
            let now_us = 10_000 * (number as u64 + 1);
            health.note_failure(failure(blame, now_us), OTHER, terms(now_us));
            assert!(health.refuses(OTHER, now_us).is_some(), "{blame:?}");
            assert!(
                health.refuses(OTHER, now_us + 1_000).is_none(),
                "{blame:?} lasts for no longer than the longest pause"
            );
            assert!(health.may_dial(OTHER, now_us + 1_000), "{blame:?}");
        }
    }
}
