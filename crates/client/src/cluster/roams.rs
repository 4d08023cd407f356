//! Requests on a connection of their own at the node that has their slot, through redirects.
//!
//! A node whose slot goes away lets its blocked clients go with a redirect, so a request that waits follows its key. What is at one
//! node at a time is a [`LaneCall`]; here it is decided at which.

use super::plan::together;
use super::unit::{How, Rest, Seen};
use super::{Cluster, Table, left_us};
use crate::core::Ended;
use crate::fitness::{limit_of, only_reads};
use crate::lanes::{Kind, LaneCall};
use crate::topology::Node;
use crate::{Command, Config, Error, ErrorKind, Outcome, Reply};
use respool_route::cluster::{Address, Attempt, Next, Redirect, Trigger};
use respool_route::limits::RETRY_PAUSE_MAX_US;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Requests of a cluster.
pub(crate) struct Roams {
    cluster: Arc<Cluster>,
    commands: Vec<Command>,
    kind: Kind,
    /// How long it may take, if its caller has said so.
    explicit: Option<Duration>,
    until_us: Option<u64>,
    attempt: Attempt,
    /// Where a redirect has sent it.
    redirected: Option<Arc<Node>>,
    /// The slot of its keys, once it was looked for.
    slot: Option<u16>,
    /// The node that it was at last.
    at: Option<Address>,
    /// When it was sent there.
    sent_us: u64,
    /// How often it was sent to a node.
    sent: u64,
    step: Step,
}

enum Step {
    Place,
    At(Arc<Node>, LaneCall),
    Pausing(Rest),
    /// With its connection, which is not free again yet.
    Over(Option<(Arc<Node>, LaneCall)>, Vec<Ended>),
}

impl Roams {
    /// `explicit` is how long it may take if its caller has said so.
    pub(crate) fn new(cluster: &Arc<Cluster>, commands: Vec<Command>, explicit: Option<Duration>, kind: Kind) -> Self {
        let limit = limit_of(&commands, explicit, cluster.config.deadline);
        let micros = |limit: Duration| u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        Self {
            cluster: Arc::clone(cluster),
            commands,
            kind,
            explicit,
            until_us: limit.map(|limit| cluster.now_us().saturating_add(micros(limit))),
            attempt: cluster.attempt(),
            redirected: None,
            slot: None,
            at: None,
            sent_us: 0,
            sent: 0,
            step: Step::Place,
        }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.advance(&mut How::Task(cx)).map_or(Poll::Pending, Poll::Ready)
    }

    /// Waits in this thread.
    pub(crate) fn wait(&mut self) -> Result<(), Error> {
        loop {
            if let Some(result) = self.advance(&mut How::Thread) {
                return result;
            }
            if let Step::Pausing(rest) = &self.step {
                rest.park(&self.cluster);
            }
        }
    }

    /// The replies, in order, once it is over.
    pub(crate) fn take_ended(&mut self) -> Vec<Ended> {
        match &mut self.step {
            Step::Over(_, ended) => std::mem::take(ended),
            _ => Vec::new(),
        }
    }

    /// Its call at the node that it was at last, once it is over.
    pub(crate) fn call(&mut self) -> Option<&mut LaneCall> {
        match &mut self.step {
            Step::Over(Some((_, call)), _) => Some(call),
            _ => None,
        }
    }

    /// The settings of the client.
    pub(crate) fn config(&self) -> &Config {
        &self.cluster.config
    }

    pub(crate) fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Says of an error where its requests were.
    pub(crate) fn locate(&self, error: Error) -> Error {
        error.at(self.at.as_ref().map(ToString::to_string), self.slot)
    }

    /// Where it goes by the table.
    fn place(&mut self) -> Result<Step, Error> {
        let unsent = |kind| Error::new(kind, Outcome::NotSent);
        if self.cluster.is_closed() {
            return Err(unsent(ErrorKind::Closed));
        }
        if let Some(node) = self.redirected.take() {
            return Ok(self.go_to(node));
        }
        let table = self.cluster.table();
        let only = if table.is_known() { together(&self.commands, &table).map_err(unsent)? } else { None };
        self.slot = only.or(self.slot);
        let node = match only {
            Some(slot) => table.shard_of(slot).map(|shard| &shard.primary),
            None => table.any(self.cluster.chance()),
        };
        match node.cloned() {
            Some(node) => Ok(self.go_to(node)),
            None => {
                let why = ErrorKind::Lost("no node of the cluster is known for it".into());
                self.unreachable(&table, unsent(why))
            }
        }
    }

    fn go_to(&mut self, node: Arc<Node>) -> Step {
        self.at = Some(node.address());
        self.sent_us = self.cluster.now_us();
        self.sent += 1;
        let left = left_us(self.until_us, self.cluster.now_us());
        let mut call = LaneCall::new(&node.side, self.commands.clone(), self.explicit.and(left), self.kind);
        // Also if its requests say how long they wait, of which a part has passed elsewhere.
        call.limit(left);
        if let Some(slot) = self.slot {
            let shared = Arc::clone(self.cluster.shared());
            let primary = move || shared.table().shard_of(slot).map(|shard| shard.primary.address());
            let (at, before) = (Some(node.address()), primary());
            // A redirect may know better than the table from which it was sent.
            call.watch(move || {
                let now = primary();
                now.is_some() && now != at && now != before
            });
        }
        Step::At(node, call)
    }

    /// A pause, and to where the table says then; the error if there is no time for it.
    fn unreachable(&mut self, table: &Table, error: Error) -> Result<Step, Error> {
        self.cluster.trigger(Trigger::Stuck);
        let next = self.attempt.on_unreachable(self.cluster.now_us(), self.until_us, self.cluster.chance());
        match next {
            Next::Wait(until_us) => Ok(Step::Pausing(Rest::new(until_us, Seen::new(table, self.slot)))),
            Next::Send { .. } | Next::GiveUp => Err(error),
        }
    }

    /// It comes back from its node, to which it was sent. One that a node has let wait there was not sent in a circle: a request that waits without
    /// end outlives any number of redirects and failovers. One that waited for a connection alone has come to no node.
    fn note_back(&mut self) {
        if self.cluster.now_us().saturating_sub(self.sent_us) > RETRY_PAUSE_MAX_US {
            self.attempt = self.cluster.attempt();
        }
    }

    /// What a node has said about the cluster.
    fn note(&self, redirect: &Redirect) {
        if let Redirect::Moved { slot, to } = redirect {
            self.cluster.note_moved(*slot, to);
        } else if redirect.is_news() {
            self.cluster.trigger(Trigger::Stuck);
        }
    }

    /// The node has answered.
    fn take_replies(&mut self, node: Arc<Node>, mut call: LaneCall) -> Step {
        let table = self.cluster.table();
        let ended: Vec<Ended> = call.take_ended().collect();
        let redirects: Vec<Option<Redirect>> = ended.iter().map(|ended| redirect_of(ended, &node)).collect();
        if let Some(redirect) = redirects.iter().flatten().next() {
            self.note(redirect);
        }
        // It is sent again whole, so nothing of it may have been written. What only reads is asked once more.
        let is_undone = |(redirect, command): (&Option<Redirect>, &Command)| redirect.is_some() || only_reads(command);
        let is_undone = redirects.len() == self.commands.len() && redirects.iter().zip(&self.commands).all(is_undone);
        let redirect = redirects.into_iter().next().flatten().filter(|_| is_undone);
        let Some(redirect) = redirect else { return Step::Over(Some((node, call)), ended) };
        // What a slot on its way answers is about this request alone, and not about the next on the same connection.
        let followed = if matches!(redirect, Redirect::Ask { .. }) { Redirect::TryAgain } else { redirect };
        match self.attempt.on_redirect(&followed, self.cluster.now_us(), self.until_us, self.cluster.chance()) {
            Next::Send { to, is_asking } => {
                self.cluster.note_redirect(&to, is_asking);
                self.redirected = Some(self.cluster.node_at(&to));
                Step::Place
            }
            Next::Wait(until_us) => Step::Pausing(Rest::new(until_us, Seen::new(&table, self.slot))),
            Next::GiveUp => Step::Over(Some((node, call)), ended),
        }
    }

    /// It was let go by its node, or given up there. Goes on elsewhere, `None`, if its slot did and nothing was taken; over with what it has taken, which is
    /// nothing, if the time is over for which it was to wait.
    fn let_go(&mut self, call: &mut LaneCall, error: Error) -> Result<Option<Vec<Ended>>, Error> {
        let is_let_go = error.is_timeout() && error.outcome() == Outcome::Replied;
        if !call.was_astray() {
            // A part of the time was spent elsewhere, so the call's is over before the server's.
            let is_nothing = is_let_go && self.explicit.is_none() && self.sent > 1;
            return if is_nothing { Ok(Some(call.take_ended().collect())) } else { Err(error) };
        }
        if is_let_go || error.outcome() == Outcome::NotSent || self.commands.iter().all(only_reads) {
            self.note_back();
            return Ok(None);
        }
        let why = "its slot has another node, and the one at which it waited does not answer";
        Err(Error::new(ErrorKind::Lost(why.into()), error.outcome()))
    }

    /// Goes on until it has to wait: `None`.
    fn advance(&mut self, how: &mut How<'_, '_>) -> Option<Result<(), Error>> {
        loop {
            let over = || Step::Over(None, Vec::new());
            self.step = match std::mem::replace(&mut self.step, over()) {
                Step::Over(call, ended) => {
                    self.step = Step::Over(call, ended);
                    return Some(Ok(()));
                }
                Step::Place => match self.place() {
                    Ok(step) => step,
                    Err(error) => return Some(Err(error)),
                },
                Step::Pausing(mut rest) => {
                    if !rest.is_over(&self.cluster, how) {
                        self.step = Step::Pausing(rest);
                        return None;
                    }
                    Step::Place
                }
                Step::At(node, mut call) => {
                    let result = match how {
                        How::Task(cx) => match call.poll(cx) {
                            Poll::Ready(result) => result,
                            Poll::Pending => {
                                self.step = Step::At(node, call);
                                return None;
                            }
                        },
                        How::Thread => call.wait(),
                    };
                    let table = self.cluster.table();
                    let failed = match &result {
                        Ok(()) if call.is_lost_unsent() => {
                            Some(Error::new(ErrorKind::Lost("the connection was lost".into()), Outcome::NotSent))
                        }
                        Ok(()) => None,
                        Err(error)
                            if matches!(error.kind(), ErrorKind::Lost(_)) && error.outcome() == Outcome::NotSent =>
                        {
                            Some(error.clone())
                        }
                        Err(error) => match self.let_go(&mut call, error.clone()) {
                            Ok(None) => {
                                self.step = Step::Place;
                                continue;
                            }
                            Ok(Some(ended)) => {
                                self.step = Step::Over(Some((node, call)), ended);
                                continue;
                            }
                            Err(error) => return Some(Err(error)),
                        },
                    };
                    match failed {
                        None => {
                            self.note_back();
                            self.take_replies(node, call)
                        }
                        Some(error) => match self.unreachable(&table, error) {
                            Ok(step) => step,
                            Err(error) => return Some(Err(error)),
                        },
                    }
                }
            };
        }
    }
}

/// What a reply asks for, if it is a redirect.
fn redirect_of(ended: &Ended, node: &Node) -> Option<Redirect> {
    let Ended::Reply(Reply::Error(error)) = ended else { return None };
    match error.code() {
        // A node that is no primary any longer lets go of what waits there. An operator that does so means it.
        "UNBLOCKED" if error.text().contains("instance state changed") => Some(Redirect::ReadOnly),
        _ => Redirect::parse(error.bytes(), &node.address()),
    }
}

impl Drop for Roams {
    fn drop(&mut self) {
        if let Step::Pausing(rest) = &mut self.step {
            rest.leave(&self.cluster);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd;
    use respool_route::limits::PAUSES_MAX;
    use respool_testkit::{Act, FakeBackend, Gate, Received, wait_until};
    use std::net::TcpListener;

    #[test]
    fn a_call_without_a_deadline_ends_if_its_node_never_answers() {
        // The kernel takes connections, and nothing is said on them. To make one takes longer than a pause.
        let mute = TcpListener::bind("127.0.0.1:0").unwrap();
        let config = Config::from_url("redis+cluster://127.0.0.1:1").unwrap().deadline(None);
        let limit = Duration::from_micros(RETRY_PAUSE_MAX_US) + Duration::from_millis(100);
        let cluster = Cluster::of(&config.connect_limit(limit)).unwrap();
        cluster.show(&[(mute.local_addr().unwrap().port(), 16_383)]);
        let (tells, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut roams = Roams::new(&cluster, vec![cmd("BLPOP").key("k").arg(0)], None, Kind::Blocking);
            // It was tried nearly as often as it may be.
            for _ in 1..PAUSES_MAX {
                roams.attempt.on_unreachable(0, None, 0);
            }
            let _ = tells.send(roams.wait());
        });
        let error = told.recv_timeout(Duration::from_secs(20)).expect("it ends").unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Lost(_)), "{error}");
        assert_eq!(error.outcome(), Outcome::NotSent);
    }

    /// What a call comes to at a node that does this with it, behind the move of its slot to another.
    fn follow(command: Command, vanishes: bool, first: impl Fn(&Received) -> Act + Send + Sync + 'static) -> Followed {
        let number = |request: &Received| match request.key() {
            b"ID" => Act::Bytes(b":7\r\n".to_vec()),
            _ => Act::Usual,
        };
        let one = FakeBackend::start(move |request| match &*request.command() {
            "CLIENT" if request.key() == b"ID" => number(request),
            _ => first(request),
        });
        let other = FakeBackend::start(move |request| match &*request.command() {
            "CLIENT" => number(request),
            "BLPOP" | "XREAD" => Act::Bytes(b"*2\r\n$1\r\nk\r\n$1\r\nv\r\n".to_vec()),
            _ => Act::Usual,
        });
        let (one, other) = (one.unwrap(), other.unwrap());
        let port = |node: &FakeBackend| match node.address() {
            respool_testkit::Address::Tcp(address) => address.port(),
            _ => panic!("no TCP"),
        };
        let config = Config::from_url("redis+cluster://127.0.0.1:1").unwrap().deadline(None);
        let cluster = Cluster::of(&config.release_limit(Duration::from_millis(200))).unwrap();
        cluster.show(&[(port(&one), 16_383)]);
        std::thread::scope(|scope| {
            let call = scope.spawn(|| {
                let mut roams = Roams::new(&cluster, vec![command], None, Kind::Blocking);
                (roams.wait(), roams.take_ended())
            });
            let is_there = || Ok(one.received().iter().any(|request| request.command() != "CLIENT"));
            wait_until("it waits at its node", Duration::from_secs(20), is_there).unwrap();
            if vanishes {
                one.vanish().unwrap();
            }
            cluster.show(&[(port(&other), 16_383)]);
            let is_over = || Ok(call.is_finished());
            let ended = wait_until("it ends", Duration::from_secs(20), is_over);
            // A test that fails ends.
            cluster.shared().close();
            drop(one);
            ended.unwrap();
            call.join().unwrap()
        })
    }

    type Followed = (Result<(), Error>, Vec<Ended>);

    fn is_value((result, ended): &Followed) -> bool {
        result.is_ok() && matches!(ended.last(), Some(Ended::Reply(Reply::Array(_))))
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_blocking_request_leaves_a_node_that_has_vanished() {
        let silent = |request: &Received| match &*request.command() {
            "BLPOP" | "XREAD" => Act::Skip,
            _ => Act::Usual,
        };
        let (result, _) = follow(cmd("BLPOP").key("k").arg(0), true, silent);
        let error = result.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Lost(_)), "{error}");
        assert_eq!(error.outcome(), Outcome::MaybeExecuted, "the node may have taken an element");
        // What only reads is asked elsewhere.
        let read = cmd("XREAD").arg("BLOCK").arg(0).arg("STREAMS").key("k").arg("$");
        let followed = follow(read, true, silent);
        assert!(is_value(&followed), "{followed:?}");
    }

    #[test]
    fn a_blocking_request_is_let_go_by_a_node_that_knows_of_no_move() {
        let gate = Gate::new();
        let followed = follow(cmd("BLPOP").key("k").arg(0), false, move |request| match request.key() {
            b"UNBLOCK" => {
                gate.open();
                Act::Bytes(b":1\r\n".to_vec())
            }
            b"k" => {
                gate.pass();
                Act::Bytes(b"*-1\r\n".to_vec())
            }
            _ => Act::Usual,
        });
        assert!(is_value(&followed), "{followed:?}");
    }

    #[test]
    fn the_time_of_a_blocking_request_does_not_begin_anew_elsewhere() {
        let config = Config::from_url("redis+cluster://127.0.0.1:1").unwrap();
        let cluster = Cluster::of(&config.deadline(Some(Duration::from_secs(5)))).unwrap();
        let mut roams = Roams::new(&cluster, vec![cmd("BLPOP").key("k").arg(60)], None, Kind::Blocking);
        // It has waited for nearly all of its time.
        let left = Duration::from_millis(500);
        roams.until_us = Some(cluster.now_us() + left.as_micros() as u64);
        let node = cluster.node_at(&Address::new("127.0.0.1", 1).unwrap());
        let Step::At(_, call) = roams.go_to(node) else { panic!("it goes nowhere") };
        let taken = call.limit_of_all().unwrap();
        assert!(taken <= left, "{taken:?}");
    }

    #[test]
    fn a_request_that_waited_may_be_redirected_any_number_of_times() {
        let config = Config::from_url("redis+cluster://127.0.0.1:1").unwrap();
        let cluster = Cluster::of(&config.deadline(None)).unwrap();
        let mut roams = Roams::new(&cluster, vec![cmd("BLPOP").key("k").arg(0)], None, Kind::Blocking);
        while cluster.now_us() <= RETRY_PAUSE_MAX_US {
            std::thread::sleep(Duration::from_millis(10));
        }
        for _ in 0..2 * PAUSES_MAX {
            // By the cluster's clock it has waited since the beginning.
            roams.sent_us = 0;
            roams.note_back();
            assert!(matches!(roams.attempt.on_redirect(&Redirect::MasterDown, 0, None, 0), Next::Wait(_)));
        }
        // One that comes back at once is sent in a circle.
        for number in 1..=PAUSES_MAX {
            roams.sent_us = cluster.now_us();
            roams.note_back();
            let next = roams.attempt.on_redirect(&Redirect::MasterDown, 0, None, 0);
            assert_eq!(next == Next::GiveUp, number == PAUSES_MAX, "{number}");
        }
    }
}
