//! A call on a connection of its own, and what happens when its caller does not wait any longer.
//!
//! ```text
//!   [wanting] --a connection is free--> [running] --reply--> over, the connection is free again
//!                                          |  '--time is over--> its number is known --> CLIENT UNBLOCK --> reply: over
//!                                          '--dropped--> the same, by a thread
//! ```
//!
//! A server that has taken an element for a request does not put it back. So the caller does not simply close the connection: it
//! asks the server to let the request go, and then the reply says whether an element was taken. A request that was released has
//! its connection to itself until the answer to `CLIENT UNBLOCK` has come, which would release the next caller's otherwise.

use super::Side;
use super::lane::Lane;
use super::shelf::{Lease, Wanting};
use crate::core::{Core, Ended};
use crate::events::Event;
use crate::fitness::{is_retry_safe, limit_of};
use crate::limits::MOVED_LOOK_INTERVAL;
use crate::parts::Kind::Each;
use crate::run::{Progress, SameServer};
use crate::told::Told;
use crate::{Command, Error, ErrorKind, Outcome, Reply, ServerError, cmd};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

/// What may be done with a request whose caller has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The server lets it go by `CLIENT UNBLOCK`.
    Blocking,
    /// Its connection is closed.
    Plain,
}

/// What is looked at while a request waits on its server.
struct Watch {
    /// Whether the request belongs to another server by now.
    is_astray: Box<dyn Fn() -> bool + Send + Sync>,
    /// How long the call may take.
    limit: Option<Duration>,
    /// When its time is over, on the clock of its connection, once it has one.
    until_us: Option<u64>,
    /// It was found to be astray.
    was_astray: bool,
}

/// How far it is with letting a request go that waits on the server.
enum Release {
    /// It is not to go.
    No,
    /// The number of its connection is waited for, which was asked for in front of it.
    Number(Box<Progress>),
    /// The server is asked, on the shared connection.
    Asked(Box<(Progress, Command)>),
    /// The server has answered. The reply to the request comes, or has come.
    Done,
}

/// Requests on a connection of their own.
pub(crate) struct LaneCall {
    side: Arc<Side>,
    wanting: Wanting,
    lease: Option<Lease>,
    progress: Progress,
    commands: Vec<Command>,
    kind: Kind,
    /// How far it is with letting the request go.
    release: Release,
    is_over: bool,
    watch: Option<Box<Watch>>,
}

impl LaneCall {
    /// `explicit` is how long it may take if its caller has said so. Otherwise it may take as long as its requests say, and what calls
    /// usually take beyond that.
    pub(crate) fn new(side: &Arc<Side>, commands: Vec<Command>, explicit: Option<Duration>, kind: Kind) -> Self {
        let usual = side.core.config.deadline;
        let limit = limit_of(&commands, explicit, usual);
        let mut commands = commands;
        if kind == Kind::Blocking {
            commands.insert(0, cmd("CLIENT ID"));
        }
        let mut progress = Progress::new(limit);
        progress.keeps_place = kind == Kind::Blocking;
        Self {
            side: Arc::clone(side),
            wanting: Wanting::new(&side.shelf, explicit.or(usual)),
            lease: None,
            progress,
            commands,
            kind,
            release: Release::No,
            is_over: false,
            watch: None,
        }
    }

    /// It may take no longer than this.
    #[cfg(feature = "cluster")]
    pub(crate) fn limit(&mut self, limit: Option<Duration>) {
        self.progress.limit = limit;
    }

    /// It is looked now and then whether the request belongs to another server, and it is let go then.
    #[cfg(feature = "cluster")]
    pub(crate) fn watch(&mut self, is_astray: impl Fn() -> bool + Send + Sync + 'static) {
        if self.kind == Kind::Blocking {
            let (is_astray, limit) = (Box::new(is_astray), self.progress.limit);
            self.watch = Some(Box::new(Watch { is_astray, limit, until_us: None, was_astray: false }));
            self.progress.limit = Some(limit.map_or(MOVED_LOOK_INTERVAL, |limit| limit.min(MOVED_LOOK_INTERVAL)));
        }
    }

    /// How long it may take.
    #[cfg(all(test, feature = "cluster"))]
    pub(crate) fn limit_of_all(&self) -> Option<Duration> {
        self.watch.as_ref().map_or(self.progress.limit, |watch| watch.limit)
    }

    /// Whether it was let go, or given up, because its request belongs to another server.
    #[cfg(feature = "cluster")]
    pub(crate) fn was_astray(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.was_astray)
    }

    /// It has its connection: its time begins.
    fn begin_watch(&mut self, core: &Core) {
        if let Some(watch) = &mut self.watch {
            let until_us = |limit: Duration| core.now_us().saturating_add(limit.as_micros() as u64);
            watch.until_us.get_or_insert(watch.limit.map_or(u64::MAX, until_us));
        }
    }

    /// The time until the next look is over. Whether the request waits on: its own time is not over, and it belongs where it is.
    fn waits_on(&mut self, core: &Arc<Core>, error: &Error) -> bool {
        let Some(watch) = self.watch.as_deref_mut().filter(|_| error.is_timeout()) else { return false };
        let left_us = watch.until_us.unwrap_or(u64::MAX).saturating_sub(core.now_us());
        let next = MOVED_LOOK_INTERVAL.min(Duration::from_micros(left_us));
        watch.was_astray = left_us > 0 && (watch.is_astray)();
        if left_us == 0 || watch.was_astray {
            return false;
        }
        if self.progress.is_sent() {
            self.progress.extend(core, next);
        } else if error.outcome() == Outcome::NotSent {
            // It has waited for its connection to be made.
            self.progress = Progress::new(Some(next));
            self.progress.keeps_place = true;
        } else {
            return false;
        }
        true
    }

    /// The request is to go. Whether that can be done.
    fn begin_release(&mut self) -> bool {
        let Some(core) = self.core() else { return false };
        let Some(number) = self.progress.split_first(&core, core.config.release_limit) else { return false };
        self.release = Release::Number(Box::new(number));
        true
    }

    /// The number of its connection has come, or has not.
    fn ask_release(&mut self, number: Result<(), Error>) -> Result<(), Error> {
        let Release::Number(first) = &mut self.release else { return Ok(()) };
        let Some(Ended::Reply(Reply::Integer(number))) = number.ok().and_then(|()| first.ended.take()) else {
            return Err(Self::late(Outcome::MaybeExecuted));
        };
        // On another server the number is that of another client, and so it is once the server has been started anew.
        let Some(link) = self.core().and_then(|core| core.link()) else {
            return Err(Self::late(Outcome::MaybeExecuted));
        };
        let mut release = Progress::new(Some(self.side.core.config.release_limit));
        release.only_to = Some(SameServer::new(link));
        self.release = Release::Asked(Box::new((release, cmd("CLIENT UNBLOCK").arg(number))));
        Ok(())
    }

    /// The server has answered that it lets the request go, or has not.
    fn end_release(&mut self, asked: Result<(), Error>) -> Result<(), Error> {
        let Release::Asked(release) = &mut self.release else { return Ok(()) };
        let is_answered = asked.is_ok() && matches!(release.0.ended, Some(Ended::Reply(Reply::Integer(_))));
        self.release = Release::Done;
        self.progress.keeps_place = false;
        let Some(core) = self.core().filter(|_| is_answered) else { return Err(Self::late(Outcome::MaybeExecuted)) };
        self.progress.extend(&core, core.config.release_limit);
        Ok(())
    }

    fn core(&self) -> Option<Arc<Core>> {
        self.lease.as_ref().map(|lease| Arc::clone(&lease.core))
    }

    fn late(outcome: Outcome) -> Error {
        Error::new(ErrorKind::Timeout(None), outcome)
    }

    /// Whether a failure says that the request is to go.
    fn is_to_go(&self, error: &Error) -> bool {
        error.is_timeout() && self.progress.keeps_place && self.progress.is_sent()
    }

    /// It is over with a reply, or was let go and has none.
    fn finish(&mut self) -> Result<(), Error> {
        self.is_over = true;
        if let Some(lease) = &mut self.lease {
            self.progress.note_errors(&lease.core);
            // After a failure the next request would make a new connection.
            lease.is_clean = matches!(self.progress.ended, Some(Ended::Reply(_)));
        }
        let was_let_go = matches!(self.release, Release::Done);
        if was_let_go && matches!(&self.progress.ended, Some(Ended::Reply(reply)) if is_nothing(reply)) {
            return Err(Self::late(Outcome::Replied));
        }
        Ok(())
    }

    /// What is not over is not tried again, and its connection is in doubt.
    fn end(&mut self, result: &Result<(), Error>) {
        if result.is_err() && !self.is_over {
            self.is_over = true;
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        let release = std::mem::replace(&mut self.release, Release::Done);
        if let Some(lease) = self.lease.take() {
            match release {
                Release::Number(mut number) => number.abandon(&lease.core),
                Release::Asked(mut asked) => asked.0.abandon(&self.side.core),
                Release::No | Release::Done => {}
            }
            self.progress.abandon(&lease.core);
        }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if self.is_over {
            return Poll::Pending;
        }
        let result = std::task::ready!(self.poll_on(cx));
        self.end(&result);
        Poll::Ready(result)
    }

    fn poll_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if self.lease.is_none() {
            match std::task::ready!(self.wanting.poll(cx)) {
                Ok(lease) => self.lease = Some(lease),
                Err(kind) => return Poll::Ready(Err(Error::new(kind, Outcome::NotSent))),
            }
        }
        let Some(core) = self.core() else { return Poll::Pending };
        self.begin_watch(&core);
        loop {
            match &mut self.release {
                Release::Number(number) => {
                    let number = std::task::ready!(number.poll(&core, &self.commands[..1], cx));
                    self.ask_release(number)?;
                }
                Release::Asked(asked) => {
                    let (release, command) = &mut **asked;
                    let asked = std::task::ready!(release.poll(&self.side.core, std::slice::from_ref(command), cx));
                    self.end_release(asked)?;
                }
                Release::No | Release::Done => match std::task::ready!(self.progress.poll(&core, &self.commands, cx)) {
                    Ok(()) => return Poll::Ready(self.finish()),
                    Err(error) if matches!(self.release, Release::No) && self.waits_on(&core, &error) => {}
                    Err(error) if self.is_to_go(&error) => {
                        if !self.begin_release() {
                            return Poll::Ready(Err(error));
                        }
                    }
                    Err(error) => return Poll::Ready(Err(error)),
                },
            }
        }
    }

    /// Waits in this thread.
    pub(crate) fn wait(&mut self) -> Result<(), Error> {
        let result = self.wait_on();
        self.end(&result);
        result
    }

    fn wait_on(&mut self) -> Result<(), Error> {
        if self.lease.is_none() {
            let lease = self.wanting.wait().map_err(|kind| Error::new(kind, Outcome::NotSent))?;
            self.lease = Some(lease);
        }
        let Some(core) = self.core() else { return Ok(()) };
        self.begin_watch(&core);
        loop {
            match &mut self.release {
                Release::Number(number) => {
                    let number = number.wait(&core, &self.commands[..1]);
                    self.ask_release(number)?;
                }
                Release::Asked(asked) => {
                    let (release, command) = &mut **asked;
                    let asked = release.wait(&self.side.core, std::slice::from_ref(command));
                    self.end_release(asked)?;
                }
                Release::No | Release::Done => match self.progress.wait(&core, &self.commands) {
                    Ok(()) => return self.finish(),
                    Err(error) if matches!(self.release, Release::No) && self.waits_on(&core, &error) => {}
                    Err(error) if self.is_to_go(&error) => {
                        if !self.begin_release() {
                            return Err(error);
                        }
                    }
                    Err(error) => return Err(error),
                },
            }
        }
    }

    /// The replies, in order, once it is over.
    pub(crate) fn take_ended(&mut self) -> impl Iterator<Item = Ended> {
        let mut all = std::mem::take(&mut self.progress.ended_before);
        if self.kind == Kind::Blocking {
            // The number of the connection is not the caller's.
            all.clear();
        }
        all.into_iter().chain(self.progress.ended.take())
    }

    /// Its connection, which is not free again yet.
    pub(crate) fn take_lease(&mut self) -> Option<Lease> {
        self.lease.take()
    }

    /// Where its connection leads to, or would.
    pub(crate) fn shown(&self) -> String {
        self.core().map_or_else(|| self.side.core.shown(), |core| core.shown())
    }

    /// Its requests, and those in front of them.
    pub(crate) fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// What else there is at its node.
    pub(crate) fn side(&self) -> &Arc<Side> {
        &self.side
    }

    /// Whether none of its requests was sent.
    pub(crate) fn is_lost_unsent(&self) -> bool {
        let is_unsent = |ended: &Ended| matches!(ended, Ended::Failed(ErrorKind::Lost(_), Outcome::NotSent));
        let mut all = self.progress.ended_before.iter().chain(&self.progress.ended);
        self.progress.ended.is_some() && all.all(is_unsent)
    }

    /// The name of the first request.
    pub(crate) fn name(&self) -> &[u8] {
        self.commands.get(usize::from(self.kind == Kind::Blocking)).map_or(&b""[..], Command::name)
    }

    /// Its caller has left. What was taken for it is not lost without a word.
    fn rescue(mut self) {
        self.progress.is_last_time = true;
        let has_reply = self.core().is_some_and(|core| self.progress.has_reply(&core));
        let is_new = matches!(self.release, Release::No);
        if is_new && !has_reply && !self.begin_release() {
            self.is_over = true;
            return self.give_up();
        }
        let result = self.wait_on();
        self.end(&result);
        let (name, is_harmless) = (self.name().to_vec(), self.commands.iter().all(is_retry_safe));
        let Some(Ended::Reply(reply)) = self.take_ended().last() else { return };
        if !is_nothing(&reply) && !matches!(reply, Reply::Error(_)) && !is_harmless {
            self.side.orphans.fetch_add(1, Ordering::Relaxed);
            self.side.core.config.tell(&Event::Orphan { command: &String::from_utf8_lossy(&name), reply: &reply });
        }
    }
}

/// Whether a reply says that nothing was taken.
fn is_nothing(reply: &Reply) -> bool {
    matches!(reply, Reply::Null)
}

impl Drop for LaneCall {
    fn drop(&mut self) {
        if self.is_over || self.lease.is_none() {
            return;
        }
        if self.kind == Kind::Plain || !self.progress.is_sent() {
            return self.give_up();
        }
        let call = LaneCall {
            side: Arc::clone(&self.side),
            wanting: Wanting::new(&self.side.shelf, None),
            lease: self.lease.take(),
            progress: std::mem::replace(&mut self.progress, Progress::new(None)),
            commands: std::mem::take(&mut self.commands),
            kind: self.kind,
            release: std::mem::replace(&mut self.release, Release::No),
            is_over: false,
            watch: None,
        };
        // Without a thread its connection is closed, as what the thread would have owned is dropped.
        let call = Rescued(Some(call));
        let _ = std::thread::Builder::new().name("respool-release".to_owned()).spawn(move || call.run());
    }
}

/// A call on its way to the thread that ends it.
struct Rescued(Option<LaneCall>);

impl Rescued {
    fn run(mut self) {
        if let Some(call) = self.0.take() {
            call.rescue();
        }
    }
}

impl Drop for Rescued {
    fn drop(&mut self) {
        if let Some(call) = &mut self.0 {
            call.is_over = true;
            call.give_up();
        }
    }
}

/// Requests that follow each other on a connection that no other caller uses meanwhile. They may wait on the server, and `WAIT` counts
/// those in front of it.
///
/// Made by [`Batch::dedicated`](crate::Batch::dedicated). Dropping it closes the connection.
#[must_use = "nothing is sent before it is awaited"]
pub struct DedicatedBatch {
    call: Lane,
    refusal: Option<Error>,
    told: Told,
}

impl DedicatedBatch {
    pub(crate) fn new(call: Lane, refusal: Option<Error>) -> Self {
        Self { call, refusal, told: Told::default() }
    }

    fn begin_span(&mut self) {
        let (config, commands) = self.call.subject();
        self.told.begin(config, commands, Each);
    }

    /// Waits in this thread.
    pub fn wait(mut self) -> Result<Vec<Result<Reply, ServerError>>, Error> {
        if let Some(error) = self.refusal.take() {
            return Err(error);
        }
        self.begin_span();
        let result = self.call.wait();
        self.finish(result)
    }

    fn finish(&mut self, result: Result<(), Error>) -> Result<Vec<Result<Reply, ServerError>>, Error> {
        let ended = self.call.take_ended();
        let received_bytes = ended.iter().map(Ended::payload).sum();
        let replies = self.take_replies(ended, result).map_err(|error| self.call.locate(error));
        let (config, commands) = self.call.subject();
        self.told.end(config, commands, received_bytes, replies.as_ref().err());
        replies
    }

    fn take_replies(
        &self,
        ended: Vec<Ended>,
        result: Result<(), Error>,
    ) -> Result<Vec<Result<Reply, ServerError>>, Error> {
        self.call.note_written();
        result.map_err(|error| error.of(self.call.name()))?;
        let is_any_sent = crate::call::is_any_sent(ended.iter());
        let replies = ended.into_iter().map(|ended| match ended {
            Ended::Reply(Reply::Error(error)) => Ok(Err(error)),
            Ended::Reply(reply) => Ok(Ok(reply)),
            Ended::Failed(kind, outcome) => Err(Error::new(kind, outcome).of_several(is_any_sent)),
        });
        replies.collect::<Result<_, Error>>().map_err(|error| error.of(self.call.name()))
    }
}

impl Future for DedicatedBatch {
    type Output = Result<Vec<Result<Reply, ServerError>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(error) = this.refusal.take() {
            return Poll::Ready(Err(error));
        }
        this.begin_span();
        let result = std::task::ready!(this.call.poll(cx));
        Poll::Ready(this.finish(result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use respool_testkit::{Act, Address, FakeBackend};
    use std::sync::atomic::AtomicUsize;

    fn config(node: &FakeBackend) -> Config {
        let Address::Tcp(address) = node.address() else { panic!("no TCP") };
        Config::from_url(&address.to_string()).unwrap().release_limit(Duration::from_secs(60))
    }

    #[test]
    fn a_server_is_asked_to_let_go_of_its_own_requests_alone() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let shared = FakeBackend::start(|request| {
            if &*request.command() == "CLIENT" && request.key() == b"UNBLOCK" {
                ASKED.fetch_add(1, Ordering::Relaxed);
                return Act::Bytes(b":1\r\n".to_vec());
            }
            Act::Usual
        })
        .unwrap();
        let other = FakeBackend::start(|request| match (&*request.command(), request.key()) {
            ("CLIENT", b"ID") => Act::Bytes(b":7\r\n".to_vec()),
            ("BLPOP", b"warm") => Act::Bytes(b"_\r\n".to_vec()),
            ("BLPOP", _) => Act::Skip,
            _ => Act::Usual,
        })
        .unwrap();
        let mut side = Arc::into_inner(Side::new(&Core::new(config(&other)), &config(&other), None)).unwrap();
        side.core = Core::new(config(&shared));
        let side = Arc::new(side);
        let pop = |key: &str, limit| LaneCall::new(&side, vec![cmd("BLPOP").key(key).arg(0)], limit, Kind::Blocking);
        pop("warm", None).wait().unwrap();
        let error = pop("list", Some(Duration::from_millis(50))).wait().unwrap_err();
        assert!(error.is_timeout() && error.outcome() == Outcome::MaybeExecuted, "{error:?}");
        assert_eq!((ASKED.load(Ordering::Relaxed), side.shelf.counts()), (0, (0, 0)));
    }

    #[test]
    fn a_server_that_was_started_anew_is_not_asked_to_let_go() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let server = FakeBackend::start(|request| {
            if &*request.command() == "CLIENT" && request.key() == b"UNBLOCK" {
                ASKED.fetch_add(1, Ordering::Relaxed);
                return Act::Bytes(b":1\r\n".to_vec());
            }
            Act::Usual
        })
        .unwrap();
        let config = config(&server);
        let shared = Core::new(config.clone());
        let own = Core::new(config);
        for core in [&shared, &own] {
            Progress::new(None).wait(core, &[cmd("PING")]).unwrap();
        }
        let own = own.link().unwrap();
        let ask = || {
            let mut release = Progress::new(Some(Duration::from_secs(60)));
            release.only_to = Some(SameServer::new(Arc::clone(&own)));
            release.wait(&shared, &[cmd("CLIENT UNBLOCK").arg(7)])
        };
        ask().unwrap();
        assert_eq!(ASKED.load(Ordering::Relaxed), 1, "both lead to one server");
        // The number is one that the server before it has given.
        own.shut();
        assert_eq!(ask().unwrap_err().outcome(), Outcome::NotSent);
        assert_eq!(ASKED.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_call_may_wait_on_the_server_for_longer_than_calls_take() {
        let config = Config::from_url("localhost").unwrap().deadline(Some(Duration::from_secs(5)));
        let side = Side::new(&Core::new(config.clone()), &config, None);
        let limit =
            |command: Command, explicit| LaneCall::new(&side, vec![command], explicit, Kind::Blocking).progress.limit;
        let pop = |timeout: u32| cmd("BLPOP").key("list").arg(timeout);
        let seconds = |count| Some(Duration::from_secs(count));
        assert_eq!(limit(pop(60), None), seconds(65));
        assert_eq!(limit(pop(0), None), None);
        assert_eq!(limit(pop(60), seconds(7)), seconds(7));
    }
}
