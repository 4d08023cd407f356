//! Every rule, at its bounds.

use super::*;

const LIMITS: FlushLimits = FLUSH_LIMITS;
const NOW_US: u64 = 10_000_000;
const DELAY_US: u64 = 200;
const ADAPTIVE: FlushPolicy = FlushPolicy::Adaptive { delay_us_max: DELAY_US };

/// One request, queued just now on an idle link of 60 us.
fn one() -> (Pending, Link) {
    let pending =
        Pending { requests: 1, bytes: 30, since_us: NOW_US, usual_requests: Usual::of(1), usual_senders: Usual::of(1) };
    (pending, Link { awaits_reply: false, round_trip_us: 60, shortest_us: 60, queue_us: 0, outstanding: 0 })
}

/// Requests every 20 us of clients that sent 10 ms before.
fn arriving() -> Arrivals {
    let mut arrivals = Arrivals::NONE;
    let mut pace = ClientPace::default();
    for read in 0..5_000 {
        let now_us = NOW_US - 20 * (5_000 - read);
        arrivals.begin_turn(now_us, read, false, 500);
        arrivals.note_request(&mut pace, 10_000, now_us);
    }
    arrivals
}

/// So many clients that are about to send again.
fn returning(count: usize) -> Arrivals {
    let mut arrivals = Arrivals::NONE;
    for _ in 0..count {
        let mut pace = ClientPace::default();
        arrivals.note_answered(&mut pace, NOW_US - 100);
        arrivals.note_request(&mut pace, 0, NOW_US - 90);
        arrivals.note_answered(&mut pace, NOW_US - 10);
    }
    assert_eq!(arrivals.returning(), count);
    arrivals
}

fn hold(until_us: u64, wake_on: WakeOn) -> Flush {
    Flush::Hold { until_us, wake_on }
}

#[test]
fn nothing_is_held_without_a_reason() {
    let (pending, link) = one();
    for policy in [FlushPolicy::EachTurn, FlushPolicy::Immediate, ADAPTIVE] {
        assert_eq!(policy.decide(NOW_US, &pending, &link, &Arrivals::NONE), Flush::Now);
        let unknown = Link::default();
        assert_eq!(policy.decide(NOW_US, &pending, &unknown, &arriving()), Flush::Now, "nothing is known of the link");
    }
}

#[test]
fn each_turn_holds_nothing_whatever_is_expected() {
    let (pending, link) = one();
    let pending = Pending { usual_requests: Usual::of(1_000), ..pending };
    let link = Link { awaits_reply: true, queue_us: 10_000, outstanding: 1_000, ..link };
    for arrivals in [arriving(), returning(1_000)] {
        assert_eq!(FlushPolicy::EachTurn.decide(NOW_US, &pending, &link, &arrivals), Flush::Now);
    }
}

#[test]
fn requests_leave_with_the_next_replies_on_a_short_link() {
    let (pending, link) = one();
    let link = Link { awaits_reply: true, outstanding: LIMITS.senders_min, ..link };
    let until_us = NOW_US + LIMITS.replies_us_max;
    for policy in [FlushPolicy::Immediate, ADAPTIVE] {
        let decide = |now_us, pending: &Pending, link: &Link| policy.decide(now_us, pending, link, &Arrivals::NONE);
        assert_eq!(decide(NOW_US, &pending, &link), hold(until_us, WakeOn::Replies));
        assert_eq!(decide(until_us - 1, &pending, &link), hold(until_us, WakeOn::Replies));
        assert_eq!(decide(until_us, &pending, &link), Flush::Now, "a node that has stopped holds nothing for longer");
        let full = Pending { bytes: LIMITS.bytes_max, ..pending };
        assert_eq!(decide(NOW_US, &full, &link), Flush::Now);
        let long = Link { shortest_us: LIMITS.link_us_max, ..link };
        assert_eq!(decide(NOW_US, &pending, &long), Flush::Now);
        let few = Link { outstanding: LIMITS.senders_min - 1, ..link };
        assert_eq!(decide(NOW_US, &pending, &few), Flush::Now);
        let shared = Pending { usual_senders: Usual::of(LIMITS.usual_senders_min), ..pending };
        assert_eq!(decide(NOW_US, &shared, &few), hold(until_us, WakeOn::Replies), "many usually share a write");
        let alone = Pending { usual_senders: Usual::of(LIMITS.usual_senders_min - 1), ..pending };
        assert_eq!(decide(NOW_US, &alone, &few), Flush::Now);
        let pipelines = Pending { usual_requests: Usual::of(10), usual_senders: Usual::of(1), ..pending };
        let outstanding = |requests| Link { outstanding: requests, ..link };
        assert_eq!(
            decide(NOW_US, &pipelines, &outstanding(10 * LIMITS.senders_min - 1)),
            Flush::Now,
            "few have sent them"
        );
        let many = outstanding(10 * LIMITS.senders_min);
        assert_eq!(decide(NOW_US, &pipelines, &many), hold(until_us, WakeOn::Replies));
    }
}

#[test]
fn replies_wait_for_their_pipeline_by_the_same_rule() {
    let decide = |now_us, bytes, outstanding| FlushPolicy::Immediate.decide_replies(now_us, NOW_US, bytes, outstanding);
    let until_us = NOW_US + LIMITS.replies_us_max;
    assert_eq!(decide(NOW_US, 100, 1), hold(until_us, WakeOn::Replies));
    assert_eq!(decide(NOW_US, 100, 0), Flush::Now);
    assert_eq!(decide(NOW_US, LIMITS.bytes_max, 1), Flush::Now);
    assert_eq!(decide(until_us, 100, 1), Flush::Now);
}

#[test]
fn only_the_adaptive_policy_delays_for_arrivals() {
    let (pending, link) = one();
    let link = Link { queue_us: 10_000, ..link };
    let (busy, deadline) = (arriving(), hold(NOW_US + DELAY_US, WakeOn::Deadline));
    assert_eq!(FlushPolicy::Immediate.decide(NOW_US, &pending, &link, &busy), Flush::Now);
    let decide = |now_us, pending: &Pending, link: &Link| ADAPTIVE.decide(now_us, pending, link, &busy);
    assert_eq!(decide(NOW_US, &pending, &link), deadline);
    assert_eq!(decide(NOW_US + DELAY_US - 1, &pending, &link), deadline);
    assert_eq!(decide(NOW_US + DELAY_US, &pending, &link), Flush::Now);
    let enough = Pending { requests: LIMITS.batch_enough, ..pending };
    assert_eq!(decide(NOW_US, &enough, &link), Flush::Now);
    let large = Pending { usual_requests: Usual::of(LIMITS.batch_enough), ..pending };
    assert_eq!(decide(NOW_US, &large, &link), Flush::Now, "batches are large without it");
    let long = Link { shortest_us: LIMITS.link_us_max, ..link };
    assert_eq!(decide(NOW_US, &pending, &long), Flush::Now);
    let off = FlushPolicy::Adaptive { delay_us_max: 0 };
    assert_eq!(off.decide(NOW_US, &pending, &link, &busy), Flush::Now);
    let unbounded = FlushPolicy::Adaptive { delay_us_max: u64::MAX };
    let part_us = 10_000 / LIMITS.delay_divisor;
    assert_eq!(unbounded.decide(NOW_US, &pending, &link, &busy), hold(NOW_US + part_us, WakeOn::Deadline));
}

#[test]
fn a_request_is_delayed_only_where_it_would_wait_anyway() {
    let (pending, link) = one();
    let queue = |queue_us| ADAPTIVE.decide(NOW_US, &pending, &Link { queue_us, ..link }, &arriving());
    assert_eq!(queue(0), Flush::Now);
    let deadline = |delay_us| hold(NOW_US + delay_us, WakeOn::Deadline);
    assert_eq!(queue(LIMITS.queue_divisor * DELAY_US), deadline(DELAY_US));
    assert_eq!(queue(LIMITS.queue_divisor * DELAY_US / 2), deadline(DELAY_US / 2), "half of what it would wait");
    let few_us = 20 * LIMITS.arrivals_min;
    assert_eq!(queue(LIMITS.queue_divisor * few_us), deadline(few_us));
    assert_eq!(queue(LIMITS.queue_divisor * few_us - 1), Flush::Now, "too few come in that time");
}

#[test]
fn a_small_batch_waits_for_clients_that_return() {
    let (pending, link) = one();
    let (least, enough) = (LIMITS.usual_senders_min, LIMITS.returning_min);
    let small = Pending { usual_requests: Usual::of(least), usual_senders: Usual::of(least), ..pending };
    let clients = hold(NOW_US + link.round_trip_us / 2, WakeOn::Clients);
    for policy in [FlushPolicy::Immediate, ADAPTIVE] {
        let decide = |pending: &Pending, link: &Link, count| policy.decide(NOW_US, pending, link, &returning(count));
        assert_eq!(decide(&small, &link, enough), clients);
        assert_eq!(decide(&small, &link, enough - 1), Flush::Now, "a few are not waited for");
        let usual = Pending { requests: least, ..small };
        assert_eq!(decide(&usual, &link, enough), Flush::Now);
        let lone = Pending { usual_senders: Usual::of(least - 1), ..small };
        assert_eq!(decide(&lone, &link, enough), Flush::Now, "few share a write as a rule");
        let slow = Link { round_trip_us: 10_000, ..link };
        assert_eq!(decide(&small, &slow, enough), hold(NOW_US + LIMITS.returning_us_max, WakeOn::Clients));
        let late = policy.decide(NOW_US + link.round_trip_us / 2, &small, &link, &returning(enough));
        assert_eq!(late, Flush::Now);
    }
}

#[test]
fn a_loop_waits_for_nodes_alone_while_they_are_prompt() {
    let (_, link) = one();
    let due = |policy: FlushPolicy, now_us, link: &Link, outstanding| {
        policy.replies_due(now_us, &Link { outstanding, ..*link }, NOW_US)
    };
    let until_us = NOW_US + LIMITS.replies_us_max;
    let most = LIMITS.replies_outstanding_max;
    for policy in [FlushPolicy::Immediate, ADAPTIVE] {
        assert_eq!(due(policy, NOW_US, &link, most), RepliesDue::Until(until_us));
        assert_eq!(due(policy, NOW_US, &link, most + 1), RepliesDue::Late);
        assert_eq!(due(policy, until_us, &link, 1), RepliesDue::Late, "a stopped node");
        for shortest_us in [0, LIMITS.link_us_max] {
            assert_eq!(due(policy, NOW_US, &Link { shortest_us, ..link }, 1), RepliesDue::Late);
        }
    }
    assert_eq!(due(FlushPolicy::EachTurn, NOW_US, &link, 1), RepliesDue::Late);
}

/// A small generator (xorshift), so that a failure can be repeated.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[test]
fn every_hold_ends_in_time_whatever_is_known() {
    let all = [arriving(), arriving(), returning(3), returning(500), Arrivals::NONE];
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    let mut held = [0; 3];
    for _ in 0..600_000 {
        let delay_us_max = chance.below(2_000);
        let policy = [FlushPolicy::EachTurn, FlushPolicy::Immediate, FlushPolicy::Adaptive { delay_us_max }]
            [chance.below(3) as usize];
        let now_us = NOW_US + chance.below(2_000);
        let pending = Pending {
            requests: chance.below(40) as usize,
            bytes: chance.below(20_000) as usize,
            since_us: NOW_US + chance.below(now_us - NOW_US + 1),
            usual_requests: Usual::of(chance.below(24) as usize),
            usual_senders: Usual::of(chance.below(16) as usize),
        };
        let link = Link {
            awaits_reply: chance.below(4) == 0,
            round_trip_us: chance.below(2_000),
            shortest_us: chance.below(400),
            queue_us: chance.below(2_000),
            outstanding: chance.below(40) as usize,
        };
        let Flush::Hold { until_us, wake_on } =
            policy.decide(now_us, &pending, &link, &all[chance.below(all.len() as u64) as usize])
        else {
            continue;
        };
        let (kind, most_us) = match wake_on {
            WakeOn::Replies => (0, LIMITS.replies_us_max),
            WakeOn::Clients => (1, LIMITS.returning_us_max),
            WakeOn::Deadline => (2, delay_us_max.min(LIMITS.delay_us_max)),
            WakeOn::Anything => panic!("the policy holds nothing without a reason"),
        };
        held[kind] += 1;
        assert!(now_us < until_us, "{policy:?} {pending:?} {link:?}: the wait is over already");
        assert!(until_us <= pending.since_us + most_us, "{policy:?} {pending:?} {link:?}: too long");
        assert!(pending.bytes < LIMITS.bytes_max && link.shortest_us < LIMITS.link_us_max);
        assert!(policy != FlushPolicy::EachTurn && (kind != 2 || policy.is_adaptive()));
        let mut turn = Held::default();
        turn.note(until_us, wake_on);
        let is_woken = match turn.wait(|| None) {
            crate::Wait::Anything | crate::Wait::Nodes { .. } => turn.until_us() <= until_us,
            crate::Wait::Yielding { until_us: yields_us } => yields_us <= until_us,
        };
        assert!(is_woken, "a hold without a wake-up");
    }
    assert!(held.iter().all(|count| *count > 1_000), "all rules were tried: {held:?}");
}
