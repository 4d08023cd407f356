//! Requests that are at one node at a time: sent, redirected, paused and sent again until each has a reply or its time is over.
//!
//! ```text
//!   [place] --table, or a redirect--> [sent] --replies--> over, or those that were redirected: [place]
//!      ^  '--no node--.                 '--lost, and may be sent again--.
//!      '-----------[pausing] <-----------------------------------------'
//! ```
//!
//! It waits in no queue of the cluster: its pauses are its own. What was lost is sent again if it was not sent, or if a second
//! execution changes nothing.

use super::environment::Exchange;
use super::keeper::asking;
use super::table::Shard;
use super::{Cluster, Pause, Table, left_us};
use crate::call::is_any_sent;
use crate::core::{Ended, Waiter};
use crate::fitness::{is_retry_safe, only_reads};
use crate::limits::{CLUSTER_SILENCE, REPEATS_MAX};
use crate::topology::Node;
use crate::{Command, Error, ErrorKind, Outcome, Reply};
use respool_route::cluster::{Address, Attempt, Next, Redirect, Trigger, of_transaction};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

/// Where a request goes.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// To the shard of this slot; whether a replica may answer it.
    Slot(u16, bool),
    /// To any node.
    Any,
    /// To this node, by a connection for reading if it is a replica.
    Node(Arc<Node>, bool),
    /// To the shard of this primary. When it is none any longer, to the primary of this slot, which the shard had.
    Shard(Arc<Node>, u16),
}

impl Target {
    /// All of a shard: whichever slots come and go, it is asked once.
    pub(super) fn shard(shard: &Shard) -> Self {
        Self::Shard(Arc::clone(&shard.primary), shard.slot)
    }

    /// No replica answers it.
    pub(super) fn use_primary(&mut self) {
        if let Self::Slot(_, may_be_replica) = self {
            *may_be_replica = false;
        }
    }

    /// The slot whose shard it is.
    pub(super) fn slot(&self) -> Option<u16> {
        match self {
            Self::Slot(slot, _) => Some(*slot),
            Self::Any | Self::Node(..) | Self::Shard(..) => None,
        }
    }
}

/// How its requests hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Together {
    /// Each has its own reply and may be redirected alone.
    Each,
    /// `MULTI`, requests, `EXEC`: redirected as a whole.
    Whole,
}

/// What is under way.
pub(super) struct Sent {
    pub(super) node: Arc<Node>,
    /// Whether it is on the connection that a replica answers on.
    pub(super) is_replica: bool,
    /// The requests, with `ASKING` in front where the node was named by a slot on its way.
    pub(super) exchange: Box<dyn Exchange>,
    /// Which of the requests, in order.
    pub(super) which: Vec<usize>,
    pub(super) is_asking: bool,
}

enum Step {
    Place,
    Sent(Sent),
    Pausing(Rest),
    Over,
}

/// Requests of a caller.
pub(super) struct Unit {
    cluster: Arc<Cluster>,
    commands: Vec<Command>,
    targets: Vec<Target>,
    together: Together,
    /// The table by which each shard, or each node, is asked by a unit of its own.
    begun: Option<Arc<Table>>,
    /// How each has ended.
    ended: Vec<Option<Ended>>,
    /// Why those are not over that are not: what their callers are told if they stay so.
    last: Vec<Option<Ended>>,
    /// Where a redirect has sent some of them.
    redirected: Option<(Address, bool, Vec<usize>)>,
    attempt: Attempt,
    repeats: u32,
    until_us: Option<u64>,
    /// The node that it was at last.
    at: Option<Address>,
    step: Step,
}

impl Unit {
    pub(super) fn new(
        cluster: &Arc<Cluster>,
        commands: Vec<Command>,
        targets: Vec<Target>,
        together: Together,
        until_us: Option<u64>,
    ) -> Self {
        let count = commands.len();
        Self {
            cluster: Arc::clone(cluster),
            commands,
            targets,
            together,
            begun: None,
            ended: vec![None; count],
            last: vec![None; count],
            redirected: None,
            attempt: cluster.attempt(),
            repeats: 0,
            until_us,
            at: None,
            step: Step::Place,
        }
    }

    /// Other units ask the other shards of this table, or its other nodes.
    pub(super) fn among(mut self, begun: &Arc<Table>) -> Self {
        self.begun = Some(Arc::clone(begun));
        self
    }

    /// What it asks for was done before, in another round: it does not end as what was never sent.
    pub(super) fn note_executed(&mut self) {
        self.repeats += 1;
    }

    /// Whether what it asks is no part of the cluster any longer: a shard whose slots are at one that another unit asks, or a node that the
    /// table does not name.
    fn has_left(&self, at: usize) -> bool {
        let Some(begun) = &self.begun else { return false };
        let table = self.cluster.table();
        match &self.targets[at] {
            Target::Shard(node, slot) => {
                let is_asked = || table.shard_of(*slot).is_some_and(|shard| begun.is_primary(&shard.primary));
                !table.is_primary(node) && is_asked()
            }
            Target::Node(node, _) => !table.has(&node.address()),
            Target::Slot(..) | Target::Any => false,
        }
    }

    /// It goes on from what was sent already, which has come to this.
    pub(super) fn resumed(mut self, sent: Sent, result: Result<(), Error>) -> Self {
        self.at = Some(sent.node.address());
        self.step = self.take_result(sent, result);
        self
    }

    /// The node that it was at last.
    pub(super) fn at(&self) -> Option<&Address> {
        self.at.as_ref()
    }

    /// Whether its requests have ended with no error, or it has none any longer.
    pub(super) fn has_succeeded(&self) -> bool {
        let is_plain =
            |ended: &Option<Ended>| matches!(ended, Some(Ended::Reply(reply)) if !matches!(reply, Reply::Error(_)));
        self.ended.iter().all(is_plain)
    }

    /// How its requests have ended, once it is over.
    pub(super) fn take_ended(&mut self) -> Vec<Ended> {
        let missing = || Ended::Failed(ErrorKind::Closed, Outcome::NotSent);
        let last = std::mem::take(&mut self.last);
        let ended = std::mem::take(&mut self.ended).into_iter().zip(last);
        ended.map(|(ended, last)| ended.or(last).unwrap_or_else(missing)).collect()
    }

    /// Those without a reply, in order.
    fn pending(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.ended.len()).filter(|at| self.ended[*at].is_none())
    }

    /// The node and the connection of a request by the table; `None` if the table knows none.
    fn node_of(&self, at: usize) -> Option<(Arc<Node>, bool)> {
        let table = self.cluster.table();
        let (node, is_replica) = match &self.targets[at] {
            Target::Slot(slot, false) => (&table.shard_of(*slot)?.primary, false),
            Target::Slot(slot, true) => table.shard_of(*slot)?.reader(self.cluster.policy.get(), self.cluster.chance()),
            Target::Any => (table.any(self.cluster.chance())?, false),
            Target::Node(node, is_replica) => (node, *is_replica),
            Target::Shard(node, _) if table.is_primary(node) => (node, false),
            Target::Shard(_, slot) => (&table.shard_of(*slot)?.primary, false),
        };
        Some((Arc::clone(node), is_replica))
    }

    /// Decides where the first request without a reply goes, and which others go with it.
    fn place(&mut self) -> Step {
        if self.cluster.is_closed() {
            return self.end_all(ErrorKind::Closed);
        }
        if let Some((address, is_asking, which)) = self.redirected.take() {
            let node = self.cluster.node_at(&address);
            return self.send(node, false, which, is_asking);
        }
        let Some(first) = self.pending().next() else { return Step::Over };
        if self.has_left(first) {
            // It has no reply of its own: what it had is counted where it is now.
            (self.ended, self.last) = (Vec::new(), Vec::new());
            return Step::Over;
        }
        let Some((node, is_replica)) = self.node_of(first) else { return self.unreachable() };
        let which = match self.together {
            Together::Whole => self.pending().collect(),
            Together::Each => {
                let table = self.cluster.table();
                let shard = |slot: u16| table.shard_of(slot).map(|shard| Arc::as_ptr(&shard.primary));
                let is_there = |at: usize| self.node_of(at).is_some_and(|(other, _)| Arc::ptr_eq(&other, &node));
                let along = |at: &usize| match (&self.targets[first], &self.targets[*at]) {
                    _ if *at == first => true,
                    // What a replica may answer goes to one replica of the shard.
                    (Target::Slot(slot, true), Target::Slot(other, true)) => shard(*slot) == shard(*other),
                    (Target::Slot(_, true), _) | (_, Target::Slot(_, true)) => false,
                    (_, Target::Any) => true,
                    _ => is_there(*at),
                };
                self.pending().filter(along).collect()
            }
        };
        self.send(node, is_replica, which, false)
    }

    fn send(&mut self, node: Arc<Node>, is_replica: bool, which: Vec<usize>, is_asking: bool) -> Step {
        let mut commands = Vec::with_capacity(which.len() * (1 + usize::from(is_asking)));
        for (number, at) in which.iter().enumerate() {
            // In front of a transaction it counts until EXEC.
            if is_asking && (number == 0 || self.together == Together::Each) {
                commands.push(asking());
            }
            commands.push(self.commands[*at].clone());
        }
        let left = left_us(self.until_us, self.cluster.now_us());
        let limit = left.map_or(CLUSTER_SILENCE, |left| left.min(CLUSTER_SILENCE));
        self.at = Some(node.address());
        let exchange = self.cluster.environment.exchange(&node, is_replica, commands, limit);
        Step::Sent(Sent { node, is_replica, exchange, which, is_asking })
    }

    /// All that are not over end like this.
    fn end_all(&mut self, kind: ErrorKind) -> Step {
        let outcome = if self.repeats > 0 { Outcome::MaybeExecuted } else { Outcome::NotSent };
        let pending: Vec<usize> = self.pending().collect();
        pending.into_iter().for_each(|at| self.ended[at] = Some(Ended::Failed(kind.clone(), outcome)));
        Step::Over
    }

    /// The node cannot be reached, or there is none: a pause, and to where the table says then.
    fn unreachable(&mut self) -> Step {
        self.redirected = None;
        let seen = self.seen(&self.cluster.table(), self.pending().next());
        self.cluster.trigger(Trigger::Stuck);
        let next = self.attempt.on_unreachable(self.cluster.now_us(), self.until_us, self.cluster.chance());
        self.follow(next, Vec::new(), seen)
    }

    /// What a pause for a request looks at.
    fn seen(&self, table: &Table, at: Option<usize>) -> Seen {
        Seen::new(table, at.and_then(|at| self.targets[at].slot()))
    }

    fn follow(&mut self, next: Next, which: Vec<usize>, seen: Seen) -> Step {
        match next {
            Next::Send { to, is_asking } => {
                self.cluster.note_redirect(&to, is_asking);
                self.redirected = Some((to, is_asking, which));
                Step::Place
            }
            Next::Wait(until_us) => Step::Pausing(Rest::new(until_us, seen)),
            Next::GiveUp => self.give_up(),
        }
    }

    /// Its time is over, or it was tried often enough: each ends as it last did.
    fn give_up(&mut self) -> Step {
        let late = if self.repeats > 0 { Outcome::MaybeExecuted } else { Outcome::NotSent };
        for at in 0..self.ended.len() {
            if self.ended[at].is_none() {
                let last = match self.last[at].take() {
                    Some(Ended::Failed(kind, Outcome::NotSent)) => Ended::Failed(kind, late),
                    Some(last) => last,
                    None => Ended::Failed(ErrorKind::Timeout(None), late),
                };
                self.ended[at] = Some(last);
            }
        }
        Step::Over
    }

    /// What a node has said about the cluster.
    fn note(&self, redirect: &Redirect) {
        if let Redirect::Moved { slot, to } = redirect {
            self.cluster.note_moved(*slot, to);
        } else if redirect.is_news() {
            self.cluster.trigger(Trigger::Stuck);
        }
    }

    /// Which of the requests that were not executed cannot be sent again, as one behind them in their slot was executed: the later one
    /// would have been first.
    fn overtaken(&self, which: &[usize], is_executed: &[bool]) -> Vec<bool> {
        let mut overtaken = vec![false; which.len()];
        if is_executed.iter().all(|is_executed| *is_executed) {
            return overtaken;
        }
        for (number, at) in which.iter().enumerate().filter(|(number, _)| !is_executed[*number]) {
            let behind = which[number + 1..].iter().zip(&is_executed[number + 1..]);
            let mut executed = behind.filter(|(_, is_executed)| **is_executed).map(|(at, _)| *at);
            let is_of_slot = |other: usize| self.targets[other].slot() == self.targets[*at].slot();
            overtaken[number] =
                executed.any(|other| is_of_slot(other) && has_order(&self.commands[*at], &self.commands[other]));
        }
        overtaken
    }

    /// The connection gave an answer to each, or lost them.
    fn take_round(&mut self, mut sent: Sent) -> Step {
        let mut all = sent.exchange.take_ended();
        if self.together == Together::Each {
            sent.exchange.note_sizes(&all);
        }
        if sent.is_asking {
            let width = if self.together == Together::Each { 2 } else { usize::MAX };
            let mut at = 0;
            all.retain(|_| {
                let is_asking = at % width == 0;
                at += 1;
                !is_asking
            });
        }
        if all.iter().any(|ended| matches!(ended, Ended::Failed(..))) {
            return self.take_lost(&sent, all);
        }
        let table = self.cluster.table();
        let is_whole = self.together == Together::Whole;
        let error = |ended: &Ended| match ended {
            Ended::Reply(Reply::Error(error)) => Some(error.bytes().clone()),
            _ => None,
        };
        let errors: Vec<Option<bytes::Bytes>> = all.iter().map(error).collect();
        let whole = || of_transaction(errors.iter().map(Option::as_deref), &sent.node.address());
        let redirects: Vec<Option<Redirect>> = match is_whole {
            true => vec![whole(); all.len()],
            false => {
                let parse = |error: &Option<bytes::Bytes>| Redirect::parse(error.as_deref()?, &sent.node.address());
                errors.iter().map(parse).collect()
            }
        };
        let mut first: Option<(Redirect, Vec<usize>)> = None;
        let mut left: Vec<usize> = Vec::new();
        let is_overtaken = if is_whole {
            vec![false; all.len()]
        } else {
            let is_executed: Vec<bool> = redirects.iter().map(Option::is_none).collect();
            self.overtaken(&sent.which, &is_executed)
        };
        for (((at, ended), redirect), is_overtaken) in sent.which.iter().zip(all).zip(redirects).zip(is_overtaken) {
            let Some(redirect) = redirect else {
                self.ended[*at] = Some(ended);
                continue;
            };
            if is_overtaken {
                self.note(&redirect);
                self.ended[*at] = Some(ended);
                continue;
            }
            self.last[*at] = Some(ended);
            let goes_along = match &first {
                None => true,
                Some((Redirect::Ask { to, .. }, _)) => {
                    matches!(&redirect, Redirect::Ask { to: other, .. } if other == to)
                }
                Some((earlier, _)) => *earlier == redirect,
            };
            // Those that follow later go to where the table says by then, and none of their slot goes in front of them.
            let is_behind = |left: &usize| self.targets[*left].slot() == self.targets[*at].slot();
            if !goes_along || (!is_whole && left.iter().any(is_behind)) {
                left.push(*at);
                continue;
            }
            first.get_or_insert_with(|| (redirect, Vec::new())).1.push(*at);
        }
        let Some((redirect, which)) = first else { return Step::Place };
        let seen = self.seen(&table, which.first().copied());
        self.note(&redirect);
        let next = self.attempt.on_redirect(&redirect, self.cluster.now_us(), self.until_us, self.cluster.chance());
        self.follow(next, which, seen)
    }

    /// The connection was lost. What was not sent, or may be executed twice, is sent again.
    fn take_lost(&mut self, sent: &Sent, all: Vec<Ended>) -> Step {
        let (mut is_repeated, mut is_final) = (false, false);
        let is_whole = self.together == Together::Whole;
        let is_whole_sent = is_whole && is_any_sent(all.iter());
        let is_redirect = |ended: &Ended| match ended {
            Ended::Reply(Reply::Error(error)) => Redirect::parse(error.bytes(), &sent.node.address()).is_some(),
            _ => false,
        };
        let is_executed: Vec<bool> =
            all.iter().map(|ended| matches!(ended, Ended::Reply(_)) && !is_redirect(ended)).collect();
        let is_overtaken = if is_whole { vec![false; all.len()] } else { self.overtaken(&sent.which, &is_executed) };
        for ((at, ended), is_overtaken) in sent.which.iter().zip(all).zip(is_overtaken) {
            let is_safe = || self.repeats < REPEATS_MAX && is_retry_safe(&self.commands[*at]);
            match &ended {
                Ended::Reply(_) if !is_whole && is_redirect(&ended) && !is_overtaken => {}
                Ended::Reply(_) if !is_whole => {
                    self.ended[*at] = Some(ended);
                    continue;
                }
                Ended::Failed(ErrorKind::Lost(_), Outcome::NotSent) if !is_whole_sent => {}
                Ended::Failed(ErrorKind::Lost(_), Outcome::NotSent | Outcome::MaybeExecuted) | Ended::Reply(_)
                    if is_safe() =>
                {
                    is_repeated = true;
                }
                _ => is_final = true,
            }
            self.last[*at] = Some(ended);
        }
        if is_final {
            // What was not sent stays so: it follows what is in doubt.
            self.cluster.trigger(Trigger::Stuck);
            return self.give_up();
        }
        self.repeats += u32::from(is_repeated);
        self.unreachable()
    }

    /// Whether another node than the one that is silent has the slot or the shard of what was sent.
    fn is_elsewhere(&self, sent: &Sent) -> bool {
        let table = self.cluster.table();
        let primary = match &self.targets[sent.which[0]] {
            // Whichever slots of it come and go.
            Target::Shard(node, _) if table.is_primary(node) => Some(node),
            Target::Slot(slot, _) | Target::Shard(_, slot) => table.shard_of(*slot).map(|shard| &shard.primary),
            Target::Any | Target::Node(..) => None,
        };
        primary.is_some_and(|primary| !Arc::ptr_eq(primary, &sent.node))
    }

    /// Whether it does no harm that what was sent may still be executed there. A write would be, behind others that its caller has made since at
    /// the other node, if the slot is there again when it arrives: so its connection ends first, or it is waited for on.
    ///
    /// The connection that a replica answers on ends as well, if it is silent, since nothing but reads are on it. Each read would wait for it
    /// otherwise, and it is known for a node that is down or up again by the next one.
    fn leaves_nothing(&self, sent: &mut Sent) -> bool {
        let only_reads = sent.which.iter().all(|at| only_reads(&self.commands[*at]));
        let has_ended = (sent.is_replica || !only_reads) && sent.exchange.forsake();
        only_reads || has_ended
    }

    /// The call on the connection has ended early. `None`: it is waited for on.
    fn take_error(&mut self, sent: &mut Sent, error: &Error) -> Option<Step> {
        let left = left_us(self.until_us, self.cluster.now_us());
        let is_over = left.is_some_and(|left| left.is_zero());
        match error.kind() {
            ErrorKind::Timeout(_) if sent.exchange.is_sent() => {
                self.cluster.trigger(Trigger::Stuck);
                if is_over {
                    return Some(self.end_round(sent, error.kind(), Outcome::MaybeExecuted));
                }
                let is_safe = sent.which.iter().all(|at| is_retry_safe(&self.commands[*at]));
                let may_repeat = is_safe && self.repeats < REPEATS_MAX && !sent.is_asking;
                if may_repeat && self.is_elsewhere(sent) && self.leaves_nothing(sent) {
                    // What a replica does not answer its primary does, also if the cluster holds the replica for up.
                    sent.which.iter().for_each(|at| self.targets[*at].use_primary());
                    self.repeats += 1;
                    return Some(Step::Place);
                }
                let limit = left.map_or(CLUSTER_SILENCE, |left| left.min(CLUSTER_SILENCE));
                sent.exchange.extend(limit);
                None
            }
            ErrorKind::Timeout(_) | ErrorKind::Lost(_) if error.outcome() == Outcome::NotSent => {
                let failed = Ended::Failed(error.kind().clone(), Outcome::NotSent);
                sent.which.iter().for_each(|at| self.last[*at] = Some(failed.clone()));
                Some(if is_over { self.give_up() } else { self.unreachable() })
            }
            kind => {
                let kind = kind.clone();
                Some(self.end_round(sent, &kind, error.outcome()))
            }
        }
    }

    /// What was sent last ends like this, and what was not sent does not follow it.
    fn end_round(&mut self, sent: &Sent, kind: &ErrorKind, outcome: Outcome) -> Step {
        let outcome = if self.repeats > 0 { Outcome::MaybeExecuted } else { outcome };
        let failed = Ended::Failed(kind.clone(), outcome);
        sent.which.iter().for_each(|at| self.ended[*at] = Some(failed.clone()));
        self.give_up()
    }

    /// What the exchange has come to.
    fn take_result(&mut self, mut sent: Sent, result: Result<(), Error>) -> Step {
        match result {
            Ok(()) => self.take_round(sent),
            Err(error) => self.take_error(&mut sent, &error).unwrap_or(Step::Sent(sent)),
        }
    }

    /// One step. `None`: it waits.
    fn advance(&mut self, how: &mut How<'_, '_>) -> Option<()> {
        self.step = match std::mem::replace(&mut self.step, Step::Over) {
            Step::Over => Step::Over,
            Step::Place => self.place(),
            Step::Sent(mut sent) => {
                let result = match how {
                    How::Task(cx) => match sent.exchange.poll(cx) {
                        Poll::Ready(result) => result,
                        Poll::Pending => {
                            self.step = Step::Sent(sent);
                            return None;
                        }
                    },
                    How::Thread => sent.exchange.wait(),
                };
                self.take_result(sent, result)
            }
            Step::Pausing(mut rest) => {
                if !rest.is_over(&self.cluster, how) {
                    self.step = Step::Pausing(rest);
                    return None;
                }
                Step::Place
            }
        };
        Some(())
    }

    /// Goes on in a task.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !matches!(self.step, Step::Over) {
            if self.advance(&mut How::Task(cx)).is_none() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Waits in this thread.
    pub(super) fn wait(&mut self) {
        while !matches!(self.step, Step::Over) {
            if self.advance(&mut How::Thread).is_none()
                && let Step::Pausing(rest) = &self.step
            {
                rest.park(&self.cluster);
            }
        }
    }
}

/// Whether it matters which of two requests of one slot is executed first. If one of them only reads, it does if they may be about the
/// same key: if they have an argument in common.
fn has_order(one: &Command, other: &Command) -> bool {
    match (only_reads(one), only_reads(other)) {
        (true, true) => false,
        (false, false) => true,
        _ => {
            let (one, other) = (one.all_arguments(), other.all_arguments());
            one.iter().skip(1).any(|argument| other.iter().skip(1).any(|other| argument == other))
        }
    }
}

/// How its caller waits.
pub(super) enum How<'a, 'c> {
    Task(&'a mut Context<'c>),
    Thread,
}

/// What the table said when a pause began. The pause ends early when it says something else of the same slot: what it says of others is
/// no reason to ask again.
#[derive(Debug)]
pub(super) struct Seen {
    version: u64,
    /// The slot, and its primary.
    primary: Option<(u16, Weak<Node>)>,
}

impl Seen {
    /// Without a slot every other table is news.
    pub(super) fn new(table: &Table, slot: Option<u16>) -> Self {
        Self { version: table.version, primary: slot.map(|slot| (slot, primary(table, slot))) }
    }

    fn is_news(&self, table: &Table) -> bool {
        let is_other = |(slot, node): &(u16, Weak<Node>)| !primary(table, *slot).ptr_eq(node);
        table.version != self.version && self.primary.as_ref().is_none_or(is_other)
    }
}

fn primary(table: &Table, slot: u16) -> Weak<Node> {
    table.shard_of(slot).map_or_else(Weak::new, |shard| Arc::downgrade(&shard.primary))
}

/// A pause, until its time or until there is news.
#[derive(Debug)]
pub(super) struct Rest {
    until_us: u64,
    seen: Seen,
    pause: Option<Pause>,
}

impl Rest {
    pub(super) fn new(until_us: u64, seen: Seen) -> Self {
        Self { until_us, seen, pause: None }
    }

    /// Whether it is over. Otherwise its caller is woken when it is.
    pub(super) fn is_over(&mut self, cluster: &Arc<Cluster>, how: &How<'_, '_>) -> bool {
        let waiter = match how {
            How::Task(cx) => Waiter::Task(cx.waker().clone()),
            How::Thread => Waiter::Thread(crate::core::current()),
        };
        let waits = cluster.now_us() < self.until_us
            && cluster.pause(&mut self.pause, self.until_us, |table| self.seen.is_news(table), waiter).is_some();
        if !waits {
            self.leave(cluster);
        }
        !waits
    }

    /// Waits in this thread for what wakes it.
    pub(super) fn park(&self, cluster: &Arc<Cluster>) {
        let left = self.until_us.saturating_sub(cluster.now_us());
        std::thread::park_timeout(Duration::from_micros(left));
    }

    pub(super) fn leave(&mut self, cluster: &Arc<Cluster>) {
        cluster.end_pause(&mut self.pause);
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        match &mut self.step {
            Step::Pausing(rest) => rest.leave(&self.cluster),
            Step::Sent(_) | Step::Place | Step::Over => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use respool_route::cluster::{Refresh, RefreshStep, RefreshTerms, Report};
    use respool_wire::Value;
    use std::collections::HashMap;

    #[test]
    fn what_a_table_says_of_other_slots_ends_no_pause() {
        let [one, other] = [1, 2].map(|port| Address::new("127.0.0.1", port).unwrap());
        let mut refresh = Refresh::new(RefreshTerms::default(), vec![one.clone()]);
        refresh.on_trigger(Trigger::Stuck, 0, 0);
        let RefreshStep::Ask { number, address } = refresh.poll(0, 0).step else { panic!("nothing is asked") };
        let node = |port| format!("*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$40\r\n{port:040}\r\n");
        let (first, second) = (node(1), node(2));
        let slots = format!("*2\r\n*3\r\n:0\r\n:99\r\n{first}*3\r\n:100\r\n:16383\r\n{second}");
        let report = Report::from_slots(&Value::parse(slots.as_bytes()).unwrap(), &address).unwrap();
        let map = refresh.on_answer(number, Some(report)).unwrap();
        let mut nodes = HashMap::new();
        let mut table = |map, version| {
            let node = |address: &Address| {
                let new = || Arc::new(Node::new(Config::from_url(&address.to_string()).unwrap()));
                Arc::clone(nodes.entry(address.clone()).or_insert_with(new))
            };
            let mut table = Table::new(map, node);
            table.version = version;
            table
        };
        let old = table(Arc::clone(&map), 1);
        let moved = table(Arc::new(map.moved(7, &other).unwrap()), 2);
        let seen = |slot| Seen::new(&old, slot);
        assert!([None, Some(7), Some(8)].into_iter().all(|slot| !seen(slot).is_news(&old)));
        assert!(seen(None).is_news(&moved) && seen(Some(7)).is_news(&moved));
        assert!(!seen(Some(8)).is_news(&moved) && !seen(Some(100)).is_news(&moved));
    }
}
