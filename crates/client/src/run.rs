//! A call on its way: queued, waited for, and made again where that can do no harm.
//!
//! ```text
//!   [new] -> queue -> [outside] until there is a connection or room -> [new]
//!              '----> [sent] -> ended, or lost: [new] again if that can do no harm
//! ```
//!
//! The same for threads and tasks. What differs is how they wait.

mod client_call;

pub(crate) use client_call::Run;

use crate::call::is_any_sent;
#[cfg(feature = "tokio")]
use crate::core::Spent;
use crate::core::{Asked, Core, Ended, Face, Leader, Link, ReadHalf, SlotId, State, Submitted, Wait, Waiter, Wakes};
use crate::fitness::is_retry_safe;
use crate::limits::REPEATS_MAX;
use crate::{Command, Error, ErrorKind, Outcome};
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    New,
    Outside,
    Sent,
    Over,
}

/// A call on its way, on the connection that it is brought to with every step. Its requests are brought, too, so that they lie where
/// the caller has them. It has to be left by [`Self::abandon`] if it is not over.
pub(crate) struct Progress {
    /// How long it may take.
    pub(crate) limit: Option<Duration>,
    until_us: Option<u64>,
    /// When it was queued first.
    began_us: Option<u64>,
    step: Step,
    /// The place of the last request, which is answered last.
    last: SlotId,
    /// The places of those before it.
    before: Vec<SlotId>,
    failed_dials: u64,
    /// The connection on which it was queued last.
    epoch: u64,
    /// What there was of that connection then.
    asked: Asked,
    /// How often it was made again though it may have been executed.
    repeats: u32,
    /// Where it waits outside.
    outside: Option<u64>,
    /// It has waited, so time has passed: until then the clock is not asked again.
    has_waited: bool,
    /// As `has_waited`, of the time that is left.
    has_read: bool,
    /// How the last request has ended.
    pub(crate) ended: Option<Ended>,
    /// How those before it have.
    pub(crate) ended_before: Vec<Ended>,
    /// It keeps its place when its time is over, so that it can be waited for again.
    pub(crate) keeps_place: bool,
    /// It is not made again when its connection is lost: its caller does not want it any longer.
    pub(crate) is_last_time: bool,
    /// It was steered to a second connection, and goes by the first while there is none.
    may_go_back: bool,
    /// It does so now.
    goes_back: bool,
    /// It is sent to this server alone.
    pub(crate) only_to: Option<Box<SameServer>>,
}

/// The server that another connection leads to, as long as it is that one.
///
/// An address says which, but not whether it has been started anew since: then its numbers of connections begin anew as well. A
/// connection on which the server has not ended proves that it has not. So the one to be proved is noted first, and then the kernel is
/// asked about the other.
pub(crate) struct SameServer {
    link: Arc<Link>,
    /// The connection that has been proved to lead there.
    proved: Option<u64>,
}

impl SameServer {
    pub(crate) fn new(link: Arc<Link>) -> Box<Self> {
        Box::new(Self { link, proved: None })
    }

    /// Proves it of the connection that there is now, if there is one. The state is given back locked. `false`: it leads to another
    /// server, or may do so.
    fn prove<'s>(&mut self, core: &'s Core, mut state: MutexGuard<'s, State>) -> (MutexGuard<'s, State>, bool) {
        while let Some(link) = &state.link {
            let epoch = state.epoch;
            if link.peer() != self.link.peer() {
                return (state, false);
            }
            if self.proved == Some(epoch) {
                break;
            }
            drop(state);
            let has_ended = self.link.has_ended();
            state = core.lock();
            if has_ended {
                return (state, false);
            }
            self.proved = Some(epoch);
        }
        (state, true)
    }
}

/// What a call does next.
enum Next {
    /// It is over.
    Over(Result<(), Error>),
    /// It is made anew.
    Again,
    /// It waits.
    Waits,
}

/// What a thread does whose call cannot go on.
pub(crate) enum Idle {
    /// Nothing: the call is over.
    Over(Result<(), Error>),
    /// It reads for all.
    Reads(Box<ReadHalf>, Wait),
    /// It is parked, for so many microseconds at most, and [comes back](Progress::come_back).
    Parked(Option<u64>),
}

impl Progress {
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self {
            limit,
            until_us: None,
            began_us: None,
            step: Step::New,
            last: SlotId::NONE,
            before: Vec::new(),
            failed_dials: 0,
            epoch: 0,
            asked: Asked::default(),
            repeats: 0,
            outside: None,
            has_waited: false,
            has_read: false,
            ended: None,
            ended_before: Vec::new(),
            keeps_place: false,
            is_last_time: false,
            may_go_back: false,
            goes_back: false,
            only_to: None,
        }
    }

    /// The server has answered with an error.
    #[cold]
    pub(crate) fn note_error(&self, core: &Arc<Core>, error: &crate::ServerError) {
        if error.code() == "READONLY" {
            core.note_readonly(self.epoch);
        }
    }

    /// As [`Self::note_error`], of all that has come.
    pub(crate) fn note_errors(&self, core: &Arc<Core>) {
        for ended in self.ended_before.iter().chain(&self.ended) {
            if let Ended::Reply(crate::Reply::Error(error)) = ended {
                self.note_error(core, error);
            }
        }
    }

    /// Whether its requests were queued, and no reply was taken.
    pub(crate) fn is_sent(&self) -> bool {
        self.step == Step::Sent
    }

    /// How long ago it was queued first.
    pub(crate) fn spent(&self, core: &Core) -> Duration {
        let now_us = core.now_us();
        Duration::from_micros(now_us.saturating_sub(self.began_us.unwrap_or(now_us)))
    }

    fn is_over(&self) -> bool {
        self.step == Step::Over
    }

    /// Whether it has not been on any connection yet.
    #[inline]
    fn is_new(&self) -> bool {
        self.step == Step::New && self.until_us.is_none()
    }

    /// Whether its last request has ended.
    pub(crate) fn has_reply(&self, core: &Core) -> bool {
        self.is_sent() && core.lock().slots.has_ended(self.last)
    }

    /// Its first request, if that is not its last and it was sent: waited for apart from the others, and for so long. Neither is made
    /// again from then on.
    pub(crate) fn split_first(&mut self, core: &Arc<Core>, limit: Duration) -> Option<Self> {
        if !self.is_sent() || self.before.is_empty() {
            return None;
        }
        let mut first = Self::new(Some(limit));
        (first.is_last_time, self.is_last_time) = (true, true);
        first.asked = self.asked.of_first(self.before.len() + 1);
        (first.step, first.last, first.has_waited) = (Step::Sent, self.before.remove(0), true);
        first.extend(core, limit);
        Some(first)
    }

    /// It may take so long from now on, and is waited for again.
    pub(crate) fn extend(&mut self, core: &Arc<Core>, limit: Duration) {
        let until_us = core.now_us().saturating_add(micros(limit));
        (self.limit, self.until_us) = (Some(limit), Some(until_us));
        let mut wakes = Wakes::default();
        let mut state = core.lock();
        state.slots.set_until(self.last, until_us);
        state.note_deadline(until_us, &mut wakes);
        drop(state);
        wakes.run_on(core);
    }

    /// Ends the connection on which it was queued, unless it is another by now, or something has come on it since then or since this was called
    /// before. Whether it has done so.
    #[cold]
    #[cfg(feature = "cluster")]
    pub(crate) fn forsake(&mut self, core: &Arc<Core>) -> bool {
        let mut wakes = Wakes::default();
        let mut state = core.lock();
        let is_silent = self.is_sent() && state.lose_unheard(&mut self.asked, core.now_us(), &mut wakes);
        drop(state);
        wakes.run_on(core);
        is_silent
    }

    /// Queues the requests.
    fn submit(
        &mut self,
        core: &Core,
        state: &mut State,
        commands: &[Command],
        face: Face,
        wakes: &mut Wakes,
    ) -> Submitted {
        let now_us = core.now_us();
        let limit = self.limit;
        let until = || limit.map_or(u64::MAX, |limit| now_us.saturating_add(micros(limit)));
        let until_us = *self.until_us.get_or_insert_with(until);
        self.began_us.get_or_insert(now_us);
        self.before.clear();
        let (last, before) = (&mut self.last, &mut self.before);
        *last = SlotId::NONE;
        let place = |id| {
            if *last != SlotId::NONE {
                before.push(*last);
            }
            *last = id;
        };
        state.submit(core, commands.iter(), (now_us, until_us), place, face, wakes)
    }

    /// Takes how it has ended, if it has.
    fn take_ended(&mut self, state: &mut State, commands: &[Command]) -> Option<Next> {
        let ended = state.slots.take_ended(self.last)?;
        self.step = Step::Over;
        self.ended_before.clear();
        if !self.before.is_empty() {
            for id in self.before.drain(..) {
                let missing = || Ended::Failed(ErrorKind::Closed, Outcome::MaybeExecuted);
                self.ended_before.push(state.slots.take_ended(id).unwrap_or_else(missing));
            }
        }
        let has_failed = matches!(ended, Ended::Failed(..));
        self.ended = Some(ended);
        if has_failed && self.begins_anew(commands) {
            return Some(Next::Again);
        }
        Some(Next::Over(Ok(())))
    }

    /// It has ended without a reply. Whether it is made again.
    #[cold]
    fn begins_anew(&mut self, commands: &[Command]) -> bool {
        let Some(ended) = self.ended.take() else { return false };
        if matches!(ended, Ended::Failed(ErrorKind::Lost(_), _)) && self.may_repeat(&ended, commands) {
            self.step = Step::New;
            return true;
        }
        self.ended = Some(match ended {
            Ended::Failed(kind, Outcome::NotSent) => Ended::Failed(kind, self.unsent()),
            ended => ended,
        });
        false
    }

    /// Whether requests that were lost may be sent again: none was sent, or a second execution changes nothing.
    fn may_repeat(&mut self, last: &Ended, commands: &[Command]) -> bool {
        if self.is_last_time {
            return false;
        }
        let has = |ended: &Ended, wanted| matches!(ended, Ended::Failed(_, outcome) if *outcome == wanted);
        let all = || self.ended_before.iter().chain([last]);
        // What is queued together is sent together, so of a transaction either all was sent or nothing.
        if !is_any_sent(all()) {
            return true;
        }
        // A reply that cannot be read is no other the next time, and a request that ends connections does so each time.
        if self.repeats >= REPEATS_MAX
            || all().any(|ended| has(ended, Outcome::Replied))
            || !commands.iter().all(is_retry_safe)
        {
            return false;
        }
        self.repeats += 1;
        true
    }

    fn is_late(&mut self, core: &Core) -> bool {
        if !std::mem::replace(&mut self.has_waited, true) {
            return false;
        }
        self.until_us.is_some_and(|until_us| until_us < u64::MAX && core.now_us() >= until_us)
    }

    /// The caller gives up.
    fn give_up(&mut self, core: &Core, state: &mut State, wakes: &mut Wakes) -> Error {
        let mut waited = None;
        if self.step == Step::Sent {
            waited = Some(state.waited(self.asked.of_first(self.before.len() + 1), core.now_us()));
            state.note_unanswered(core, self.asked, core.now_us(), wakes);
        }
        if self.keeps_place && self.step == Step::Sent {
            if matches!(state.leader, Leader::Thread(leader) | Leader::Task(leader) if leader == self.last) {
                // It does not wait at this place meanwhile, so it does not read either.
                wakes.push_trash(state.slots.take_waiter(self.last));
                state.appoint(wakes);
            }
            return Error::new(ErrorKind::Timeout(waited), Outcome::MaybeExecuted);
        }
        let outcome = if self.step == Step::Sent { Outcome::MaybeExecuted } else { self.unsent() };
        let kind = if self.step == Step::Sent { ErrorKind::Timeout(waited) } else { state.why_late() };
        self.leave(core, state, wakes);
        Error::new(kind, outcome)
    }

    fn leave(&mut self, core: &Core, state: &mut State, wakes: &mut Wakes) {
        if self.step == Step::Sent {
            for id in self.before.drain(..) {
                state.leave(id, wakes);
            }
            state.leave(self.last, wakes);
        } else if self.step == Step::Outside {
            let old = state.leave_outside(core, self.outside.take(), wakes);
            wakes.push_trash(old);
        }
        self.step = Step::Over;
    }

    /// What became of it if it is not sent this time.
    fn unsent(&self) -> Outcome {
        if self.repeats > 0 { Outcome::MaybeExecuted } else { Outcome::NotSent }
    }

    /// What waiting outside has come to.
    fn why_outside(&self, core: &Core, state: &State) -> Option<Error> {
        let waits = !core.config.is_member() && self.until_us.is_some_and(|until_us| until_us < u64::MAX);
        let why = state.why_outside(self.failed_dials, waits);
        why.map(|kind| Error::new(kind, self.unsent()))
    }

    /// Begins, or goes on after waiting outside. The state is given back locked.
    fn enter<'s>(
        &mut self,
        core: &'s Arc<Core>,
        mut state: MutexGuard<'s, State>,
        commands: &[Command],
        face: Face,
        wakes: &mut Wakes,
    ) -> (MutexGuard<'s, State>, Result<(), Error>) {
        if self.step == Step::Outside && !(self.may_go_back && state.link.is_none()) {
            if let Some(error) = self.why_outside(core, &state) {
                self.leave(core, &mut state, wakes);
                return (state, Err(error));
            }
            if self.is_late(core) {
                let error = self.give_up(core, &mut state, wakes);
                return (state, Err(error));
            }
        }
        loop {
            if let Some(same) = &mut self.only_to {
                let is_same;
                (state, is_same) = same.prove(core, state);
                if !is_same {
                    self.leave(core, &mut state, wakes);
                    self.step = Step::Over;
                    let lost = ErrorKind::Lost("the connection leads to another server".into());
                    return (state, Err(Error::new(lost, self.unsent())));
                }
            }
            match self.submit(core, &mut state, commands, face, wakes) {
                Submitted::Unseen(link) => state = core.look(state, &link, wakes),
                Submitted::Queued => {
                    (self.epoch, self.asked) = (state.epoch, state.asked());
                    let old = state.enter_from_outside(self.outside.take());
                    wakes.push_trash(old);
                    self.step = Step::Sent;
                    state = core.flush(state, commands.len(), face, wakes);
                    return (state, Ok(()));
                }
                Submitted::Outside if self.may_go_back && state.link.is_none() => {
                    self.leave(core, &mut state, wakes);
                    (self.step, self.may_go_back, self.goes_back) = (Step::New, false, true);
                    let lost = ErrorKind::Lost("the second connection is lost".into());
                    return (state, Err(Error::new(lost, self.unsent())));
                }
                Submitted::Outside => {
                    if self.step == Step::New {
                        self.failed_dials = state.failed_dials;
                    }
                    self.step = Step::Outside;
                    return (state, Ok(()));
                }
                Submitted::Refused(kind) => {
                    self.leave(core, &mut state, wakes);
                    self.step = Step::Over;
                    return (state, Err(Error::new(kind, self.unsent())));
                }
            }
        }
    }

    /// Waits in this thread.
    pub(crate) fn wait(&mut self, core: &Arc<Core>, commands: &[Command]) -> Result<(), Error> {
        if commands.is_empty() {
            return Ok(());
        }
        let mut wakes = Wakes::default();
        let mut state = core.lock();
        loop {
            match self.go_on_in_thread(core, state, commands, &mut wakes) {
                Idle::Over(result) => return result,
                Idle::Reads(half, wait) => state = self.read(core, half, wait),
                Idle::Parked(left_us) => {
                    match left_us {
                        Some(left_us) => std::thread::park_timeout(Duration::from_micros(left_us)),
                        None => std::thread::park(),
                    }
                    state = self.come_back(core);
                }
            }
        }
    }

    /// Goes on in a thread, until that has to wait for something, or it is over.
    #[inline]
    pub(crate) fn go_on_in_thread<'s>(
        &mut self,
        core: &'s Arc<Core>,
        mut state: MutexGuard<'s, State>,
        commands: &[Command],
        wakes: &mut Wakes,
    ) -> Idle {
        loop {
            if matches!(self.step, Step::New | Step::Outside) {
                let entered;
                (state, entered) = self.enter(core, state, commands, Face::Thread, wakes);
                if let Err(error) = entered {
                    drop(state);
                    wakes.run_on(core);
                    return Idle::Over(Err(error));
                }
            }
            let next = if self.step == Step::Sent { self.take_ended(&mut state, commands) } else { None };
            match next {
                Some(next) => {
                    if state.leader == Leader::Thread(self.last) {
                        state.appoint(wakes);
                    }
                    drop(state);
                    wakes.run_on(core);
                    match next {
                        Next::Over(result) => return Idle::Over(result),
                        Next::Again | Next::Waits => state = core.lock(),
                    }
                }
                None if self.is_late(core) => {
                    let error = self.give_up(core, &mut state, wakes);
                    drop(state);
                    wakes.run_on(core);
                    return Idle::Over(Err(error));
                }
                None => return self.wait_once(core, state, wakes),
            }
        }
    }

    /// Leads, or is parked until there is something to look at.
    #[inline]
    fn wait_once(&mut self, core: &Arc<Core>, mut guard: MutexGuard<'_, State>, wakes: &mut Wakes) -> Idle {
        let state = &mut *guard;
        let until_us = self.until_us.unwrap_or(u64::MAX);
        let usual_us = self.limit.map_or(u64::MAX, micros);
        let is_first = !std::mem::replace(&mut self.has_read, true);
        let left_us = || match until_us {
            u64::MAX => None,
            _ if is_first && usual_us < u64::MAX => Some(usual_us),
            _ => Some(until_us.saturating_sub(core.now_us())),
        };
        let mut half = None;
        if self.step == Step::Outside {
            let waiter = Waiter::Thread(crate::core::current());
            let old = state.wait_outside(&mut self.outside, until_us, waiter, wakes);
            wakes.push_trash(old);
        } else {
            if !matches!(state.leader, Leader::Thread(leader) if leader != self.last) {
                state.leader = Leader::Thread(self.last);
                half = state.read_half.take();
            }
            if half.is_none() {
                let old = state.slots.wait_as_thread(self.last, Some(crate::core::current()));
                wakes.push_trash(old);
            }
        }
        drop(guard);
        wakes.run_on(core);
        match half {
            Some(half) => {
                let wait = left_us().map_or(Wait::Forever, |left_us| Wait::For { usual_us, left_us });
                Idle::Reads(half, wait)
            }
            None => Idle::Parked(left_us()),
        }
    }

    /// Reads for all. The state is given back locked.
    #[inline]
    pub(crate) fn read<'s>(&self, core: &'s Arc<Core>, half: Box<ReadHalf>, wait: Wait) -> MutexGuard<'s, State> {
        half.read(core, wait, Leader::Thread(self.last)).0
    }

    /// Is not parked any longer. The state is given back locked.
    pub(crate) fn come_back<'s>(&self, core: &'s Core) -> MutexGuard<'s, State> {
        let mut state = core.lock();
        if self.step == Step::Sent {
            let old = state.slots.wait_as_thread(self.last, None);
            if !matches!(old, Waiter::None) {
                drop(state);
                drop(old);
                state = core.lock();
            }
        }
        state
    }

    /// Goes on in a task.
    pub(crate) fn poll(
        &mut self,
        core: &Arc<Core>,
        commands: &[Command],
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        if commands.is_empty() {
            return Poll::Ready(Ok(()));
        }
        if self.step == Step::Over {
            // It was over before: nothing comes any more.
            return Poll::Pending;
        }
        let mut wakes = Wakes::default();
        loop {
            let mut state = core.lock();
            if matches!(self.step, Step::New | Step::Outside) {
                let entered;
                (state, entered) = self.enter(core, state, commands, Face::Task, &mut wakes);
                if let Err(error) = entered {
                    drop(state);
                    wakes.run_on(core);
                    return Poll::Ready(Err(error));
                }
            }
            if self.step == Step::Outside {
                let late = if self.is_late(core) { Some(self.give_up(core, &mut state, &mut wakes)) } else { None };
                if late.is_none() {
                    let until_us = self.until_us.unwrap_or(u64::MAX);
                    let waiter = Waiter::Task(cx.waker().clone());
                    let old = state.wait_outside(&mut self.outside, until_us, waiter, &mut wakes);
                    wakes.push_trash(old);
                }
                drop(state);
                wakes.run_on(core);
                return late.map_or(Poll::Pending, |error| Poll::Ready(Err(error)));
            }
            match self.poll_sent(core, state, &mut wakes, commands, cx) {
                Next::Over(result) => return Poll::Ready(result),
                Next::Again => {}
                Next::Waits => return Poll::Pending,
            }
        }
    }

    fn poll_sent<'s>(
        &mut self,
        core: &'s Arc<Core>,
        mut state: MutexGuard<'s, State>,
        wakes: &mut Wakes,
        commands: &[Command],
        cx: &mut Context<'_>,
    ) -> Next {
        // Dropped behind the lock.
        #[cfg(feature = "tokio")]
        let mut spent = Spent::default();
        loop {
            if let Some(next) = self.take_ended(&mut state, commands) {
                if state.leader == Leader::Task(self.last) {
                    state.appoint(wakes);
                }
                drop(state);
                wakes.run_on(core);
                return next;
            }
            let is_again = state.leader == Leader::Task(self.last);
            let old = state.slots.wait_as_task(self.last, cx.waker());
            if is_again || state.task_waits(self.last, wakes) {
                // While the lock is free another task may come, of another runtime.
                #[cfg(feature = "tokio")]
                let runtime = state.driver.runtime();
                if !matches!(old, Waiter::None) || !wakes.is_quiet() {
                    drop(state);
                    drop(old);
                    wakes.run_on(core);
                    state = core.lock();
                }
                #[cfg(feature = "tokio")]
                {
                    state = core.poll_lead(state, self.last, (is_again, runtime), &mut spent, cx);
                }
                #[cfg(not(feature = "tokio"))]
                {
                    drop(state);
                    core.serve_by_thread();
                    state = core.lock();
                }
                // While this task read, one that led may have found no other that waits.
                if state.slots.has_ended(self.last) || state.leader == Leader::None {
                    continue;
                }
            } else {
                wakes.push_trash(old);
            }
            // It was looked for late calls before this one waited, and is not for its sake again.
            self.has_waited |= state.slots.is_passed(self.last);
            if self.is_late(core) {
                let error = self.give_up(core, &mut state, wakes);
                drop(state);
                wakes.run_on(core);
                return Next::Over(Err(error));
            }
            drop(state);
            wakes.run_on(core);
            return Next::Waits;
        }
    }

    /// The caller does not wait any longer.
    #[inline]
    pub(crate) fn abandon(&mut self, core: &Arc<Core>) {
        if matches!(self.step, Step::New | Step::Over) {
            return;
        }
        let mut wakes = Wakes::default();
        let mut state = core.lock();
        self.leave(core, &mut state, &mut wakes);
        drop(state);
        wakes.run_on(core);
    }
}

#[inline]
fn micros(limit: Duration) -> u64 {
    u64::try_from(limit.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_whose_caller_has_left_is_not_made_again() {
        let unsent = Ended::Failed(ErrorKind::Lost("closed".into()), Outcome::NotSent);
        let mut progress = Progress::new(None);
        assert!(progress.may_repeat(&unsent, &[]));
        progress.is_last_time = true;
        assert!(!progress.may_repeat(&unsent, &[]));
    }
}
