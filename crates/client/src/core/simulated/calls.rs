//! Calls: who makes them, how they go on, and whether what they are told is true.

use super::node::is_reply_to;
use super::{Entry, Flag, Runtime, Told, World};
use crate::core::{Ended, ReadHalf, Wait, Wakes};
use crate::fitness::is_retry_safe;
use crate::run::{Idle, Progress};
use crate::{Command, Error, ErrorKind, Outcome, cmd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Calls at a time.
const CALLS_MAX: usize = 16;

/// Requests of a batch.
const BATCH_MAX: usize = 24;

/// Who makes a call.
pub(super) enum Face {
    Thread,
    /// A task of a runtime, or of none.
    Task(Option<Runtime>),
}

pub(super) struct Call {
    face: Face,
    commands: Vec<Command>,
    first: u64,
    progress: Progress,
    woken: Arc<Flag>,
    /// What its thread does meanwhile.
    idle: Option<Idle>,
    /// When its thread looks at the time.
    wakes_us: u64,
    until_us: Option<u64>,
    is_new: bool,
}

impl Call {
    pub(super) fn until_us(&self) -> Option<u64> {
        self.until_us.filter(|_| !self.is_new)
    }

    pub(super) fn is_of(&self, runtime: &Runtime) -> bool {
        matches!(&self.face, Face::Task(Some(own)) if Arc::ptr_eq(&own.is_gone, &runtime.is_gone))
    }

    pub(super) fn describe(&self) -> String {
        let face = match (&self.face, &self.idle) {
            (Face::Thread, None) => "new thread",
            (Face::Thread, Some(Idle::Reads(..))) => "thread that reads",
            (Face::Thread, Some(_)) => "parked thread",
            (Face::Task(None), _) => "task",
            (Face::Task(Some(_)), _) => "task of a runtime",
        };
        let (first, count, until) = (self.first, self.commands.len(), self.until_us);
        format!(
            "{first} and {count}: {face}, until {until:?}, sent {}, woken {}",
            self.progress.is_sent(),
            self.woken.is_set()
        )
    }

    /// Whether it can go on.
    fn can_run(&self, now_us: u64) -> bool {
        match &self.idle {
            Some(Idle::Reads(half, _)) => is_readable(half) || now_us >= self.wakes_us,
            Some(_) => self.woken.is_set() || now_us >= self.wakes_us,
            None => self.woken.is_set(),
        }
    }
}

fn is_readable(half: &ReadHalf) -> bool {
    half.link().end().is_none_or(|end| end.is_readable())
}

impl World {
    pub(super) fn begin_call(self: &Rc<Self>) {
        if self.calls.borrow().len() < CALLS_MAX {
            let runtimes = self.runtimes.borrow().clone();
            let face = match self.below(6) {
                0 | 1 => Face::Thread,
                2 => Face::Task(None),
                3 => Face::Task(Some(runtimes[1].clone())),
                _ => Face::Task(Some(runtimes[0].clone())),
            };
            self.call(face);
        }
    }

    pub(super) fn call(self: &Rc<Self>, face: Face) {
        let count = if self.once_in(4) { 1 + self.below(BATCH_MAX) } else { 1 };
        let first = self.books.borrow().len() as u64;
        let mut commands = Vec::with_capacity(count);
        for number in first..first + count as u64 {
            let command = match self.below(16) {
                0..8 => cmd("GET").key(number),
                8..12 => cmd("INCR").key(number),
                12 => cmd("SET").key(number).arg(bytes::Bytes::from(vec![b'v'; 1 + self.below(40_000)])),
                _ => cmd("SET").key(number).arg("v"),
            };
            self.books.borrow_mut().push(Entry {
                executed: 0,
                is_safe: is_retry_safe(&command),
                first,
                told: Told::Nothing,
            });
            commands.push(command);
        }
        self.figures.borrow_mut().requests += count as u64;
        let limit = self.once_in(3).then(|| Duration::from_micros(1 + self.below(300_000) as u64));
        let limit = limit.filter(|_| !self.settles.get());
        let until_us = limit.map(|limit| self.now_us.get() + limit.as_micros() as u64);
        let call = Call {
            face,
            commands,
            first,
            progress: Progress::new(limit),
            woken: Flag::set(),
            idle: None,
            wakes_us: u64::MAX,
            until_us,
            is_new: true,
        };
        self.calls.borrow_mut().push(call);
    }

    /// One of the calls that can go on does. Whether there was one.
    pub(super) fn go_on(self: &Rc<Self>, is_in_order: bool) -> bool {
        let count = self.calls.borrow().len();
        if count == 0 {
            return false;
        }
        let start = if is_in_order { 0 } else { self.below(count) };
        let now_us = self.now_us.get();
        let can_run = |at: &usize| self.calls.borrow()[*at].can_run(now_us);
        let place = (0..count).map(|at| (start + at) % count).find(can_run);
        if let Some(place) = place {
            self.step(place);
        }
        place.is_some()
    }

    /// A task is polled that nothing has woken, or a thread wakes for no reason.
    pub(super) fn poll_any(self: &Rc<Self>) {
        let count = self.calls.borrow().len();
        if count > 0 {
            let place = self.below(count);
            // What waits in the kernel does not wake for no reason.
            let waits = matches!(self.calls.borrow()[place].idle, Some(Idle::Reads(..)));
            if !waits {
                self.step(place);
            }
        } else {
            #[cfg(feature = "tokio")]
            self.run_task(true);
        }
    }

    pub(super) fn cancel_any(self: &Rc<Self>) {
        let count = self.calls.borrow().len();
        if count > 0 {
            let place = self.below(count);
            let is_task = matches!(self.calls.borrow()[place].face, Face::Task(_));
            if is_task {
                let call = self.calls.borrow_mut().swap_remove(place);
                self.cancel(call);
            }
        }
    }

    pub(super) fn cancel_where(self: &Rc<Self>, is_over: impl Fn(&Call) -> bool) {
        loop {
            let place = self.calls.borrow().iter().position(&is_over);
            let Some(place) = place else { return };
            let call = self.calls.borrow_mut().swap_remove(place);
            self.cancel(call);
        }
    }

    fn cancel(self: &Rc<Self>, mut call: Call) {
        call.progress.abandon(&self.core());
        for number in call.first..call.first + call.commands.len() as u64 {
            self.books.borrow_mut()[number as usize].told = Told::Left;
        }
        self.figures.borrow_mut().left += call.commands.len() as u64;
    }

    fn step(self: &Rc<Self>, place: usize) {
        let mut call = self.calls.borrow_mut().swap_remove(place);
        self.running.set(self.running.get() + 1);
        if std::mem::take(&mut call.is_new)
            && let Some(limit) = call.progress.limit
        {
            call.until_us = Some(self.now_us.get() + limit.as_micros() as u64);
        }
        call.woken.take();
        let result = match &call.face {
            Face::Thread => self.step_in_thread(&mut call),
            Face::Task(runtime) => {
                let runtime = runtime.clone();
                self.poll(&mut call, runtime)
            }
        };
        self.running.set(self.running.get() - 1);
        match result {
            None => self.calls.borrow_mut().push(call),
            Some(result) => self.judge(call, result),
        }
    }

    fn poll(self: &Rc<Self>, call: &mut Call, runtime: Option<Runtime>) -> Option<Result<(), Error>> {
        let (before, thread) = (self.runtime.replace(runtime), self.thread.take());
        let waker = Waker::from(Arc::clone(&call.woken));
        let polled = call.progress.poll(&self.core(), &call.commands, &mut Context::from_waker(&waker));
        self.runtime.replace(before);
        self.thread.replace(thread);
        match polled {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }

    fn step_in_thread(self: &Rc<Self>, call: &mut Call) -> Option<Result<(), Error>> {
        let thread = self.thread.replace(Some(Arc::clone(&call.woken)));
        let runtime = self.runtime.take();
        let core = self.core();
        let mut wakes = Wakes::default();
        let state = match call.idle.take() {
            None => core.lock(),
            Some(Idle::Reads(half, wait)) => call.progress.read(&core, half, wait),
            Some(_) => call.progress.come_back(&core),
        };
        let idle = call.progress.go_on_in_thread(&core, state, &call.commands, &mut wakes);
        self.thread.replace(thread);
        self.runtime.replace(runtime);
        let left_us = match &idle {
            Idle::Over(_) => None,
            Idle::Reads(_, Wait::For { left_us, .. }) => Some(*left_us),
            Idle::Reads(..) => None,
            Idle::Parked(left_us) => *left_us,
        };
        call.wakes_us = left_us.map_or(u64::MAX, |left_us| self.now_us.get().saturating_add(left_us));
        match idle {
            Idle::Over(result) => Some(result),
            idle => {
                call.idle = Some(idle);
                None
            }
        }
    }

    /// A call is over.
    fn judge(&self, mut call: Call, result: Result<(), Error>) {
        match result {
            Err(error) => {
                self.excuse(error.kind());
                for number in call.first..call.first + call.commands.len() as u64 {
                    self.tell(number, error.outcome());
                }
            }
            Ok(()) => {
                let ended = call.progress.ended_before.drain(..).chain(call.progress.ended.take());
                let ended: Vec<Ended> = ended.collect();
                assert_eq!(ended.len(), call.commands.len(), "each request ends");
                for (number, ended) in (call.first..).zip(ended) {
                    match ended {
                        Ended::Reply(reply) => {
                            assert!(is_reply_to(number, &reply), "{number} was answered by {reply:?}");
                            self.tell(number, Outcome::Replied);
                        }
                        Ended::Failed(kind, outcome) => {
                            assert_ne!(outcome, Outcome::Replied, "{number}: {kind:?}");
                            self.excuse(&kind);
                            self.tell(number, outcome);
                        }
                    }
                }
            }
        }
    }

    /// Without faults nothing fails but what has a time of its own.
    fn excuse(&self, kind: &ErrorKind) {
        let is_own = matches!(kind, ErrorKind::Timeout(_) | ErrorKind::Closed);
        assert!(self.has_faults || is_own, "nothing was wrong, and a call fails: {kind:?}");
    }

    fn tell(&self, number: u64, outcome: Outcome) {
        let mut books = self.books.borrow_mut();
        let entry = &mut books[number as usize];
        entry.told = Told::Outcome(outcome);
        let mut figures = self.figures.borrow_mut();
        match outcome {
            Outcome::NotSent => {
                figures.unsent += 1;
                assert_eq!(entry.executed, 0, "{number} was executed, and was not sent");
            }
            Outcome::Replied => {
                figures.replied += 1;
                assert!(entry.executed > 0, "{number} was answered, and not executed");
            }
            _ => figures.doubted += 1,
        }
    }
}
