//! The connection and its callers without sockets, threads and a clock: a seed decides what happens next, at each place where the lock is free.
//!
//! What runs is the library's own code: [`Progress`] as threads and as tasks of two runtimes and of none, [`Core`] with the state, the places, the
//! driver, and the work of its threads in steps. In the place of the process there is a [`World`]: it has the time, chance, the threads that were
//! begun, and the kernel's side of connections, at whose other ends are [`Node`]s. A system call is a place where other steps may come in between.
//!
//! What is checked: a reply belongs to its request (it has its number); what is told of a request is true (the node's log is the judge); what goes together is executed
//! together; without faults nothing fails; when nothing more happens no call is left that could go on (a wake was lost), and no place.
//!
//! `RESPOOL_CORE_SEED` repeats one seed, `RESPOOL_CORE_SEEDS` runs others: so many, or `FIRST..END`.

mod calls;
mod node;
mod pipe;

pub(crate) use pipe::{End, Watcher};

use super::Core;
use super::system::{Job, Step};
use crate::{Config, Outcome, Overload};
use calls::{Call, Face};
use node::{Manner, Node};
use pipe::{Ending, Pipe};
use respool_connection::ReconnectTerms;
use respool_testkit::Rng;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;
use std::thread::Thread;
use std::time::Duration;

/// What becomes of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    Outcome(Outcome),
    /// Its caller has left.
    Left,
}

/// A request, as the books have it.
#[derive(Debug)]
struct Entry {
    executed: u32,
    is_safe: bool,
    /// The first of its call.
    first: u64,
    told: Told,
}

/// Whether something was woken.
#[derive(Debug, Default)]
pub(crate) struct Flag(AtomicBool);

impl Flag {
    fn set() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(true)))
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A thread that may be parked: one of the process, or of a script.
#[derive(Clone, Debug)]
pub(crate) enum Parked {
    Thread(Thread),
    Simulated(Arc<Flag>),
}

impl Parked {
    pub(crate) fn current() -> Self {
        let simulated = world().and_then(|world| world.thread.borrow().clone());
        simulated.map_or_else(|| Self::Thread(std::thread::current()), Self::Simulated)
    }

    pub(crate) fn unpark(&self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Simulated(flag) => flag.0.store(true, Ordering::Relaxed),
        }
    }
}

/// A runtime, which the script polls the tasks of.
#[derive(Clone)]
pub(super) struct Runtime {
    #[cfg(feature = "tokio")]
    runtime: Rc<tokio::runtime::Runtime>,
    is_gone: Arc<AtomicBool>,
}

impl Runtime {
    fn new() -> Self {
        Self {
            #[cfg(feature = "tokio")]
            runtime: Rc::new(tokio::runtime::Builder::new_current_thread().build().unwrap()),
            is_gone: Arc::default(),
        }
    }
}

/// A thread of the library.
struct Begun {
    job: Job,
    due_us: u64,
}

/// A task of the library.
#[cfg(feature = "tokio")]
struct Task {
    future: std::pin::Pin<Box<super::driver::Driver>>,
    runtime: Runtime,
    woken: Arc<Flag>,
}

/// What there is beside the library.
pub(super) struct World {
    rng: RefCell<Rng>,
    now_us: Cell<u64>,
    /// Nodes end connections, runtimes end, threads cannot be begun.
    has_faults: bool,
    /// Nothing comes in between any more, and nothing fails.
    settles: Cell<bool>,
    depth: Cell<u32>,
    core: RefCell<Option<Arc<Core>>>,
    nodes: RefCell<Vec<Rc<RefCell<Node>>>>,
    threads: RefCell<Vec<Begun>>,
    #[cfg(feature = "tokio")]
    tasks: RefCell<Vec<Task>>,
    calls: RefCell<Vec<Call>>,
    /// Calls that are being polled, or whose threads run.
    running: Cell<usize>,
    books: RefCell<Vec<Entry>>,
    runtimes: RefCell<[Runtime; 2]>,
    /// What runs now is of this runtime.
    runtime: RefCell<Option<Runtime>>,
    /// It is this thread.
    thread: RefCell<Option<Arc<Flag>>>,
    /// The connection whose handshake is made.
    shaking: RefCell<Option<Arc<Pipe>>>,
    keeper_us: Cell<u64>,
    /// What has gone on, for what is printed.
    figures: RefCell<Figures>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    requests: u64,
    replied: u64,
    unsent: u64,
    doubted: u64,
    left: u64,
    connections: u64,
    steps: u64,
}

impl Figures {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.replied += other.replied;
        self.unsent += other.unsent;
        self.doubted += other.doubted;
        self.left += other.left;
        self.connections += other.connections;
        self.steps += other.steps;
    }
}

thread_local! {
    static WORLD: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

/// The world of this thread, if a script runs here.
fn world() -> Option<Rc<World>> {
    WORLD.with(|world| world.try_borrow().ok().and_then(|world| world.clone()))
}

/// The lock is free: others may come in between.
pub(super) fn interleave() {
    if let Some(world) = world() {
        world.interleave();
    }
}

pub(super) fn now_us() -> Option<u64> {
    world().map(|world| world.now_us.get())
}

pub(super) fn chance() -> Option<u64> {
    world().map(|world| world.rng.borrow_mut().next_u64())
}

/// A thread is begun, if no script runs here.
pub(super) fn take_job(job: Job) -> io::Result<Option<Job>> {
    let Some(world) = world() else { return Ok(Some(job)) };
    if world.may_fail() && world.once_in(300) {
        return Err(io::Error::other("no more threads"));
    }
    world.threads.borrow_mut().push(Begun { job, due_us: 0 });
    Ok(None)
}

/// Whether a script looks after deadlines.
pub(super) fn keep_deadlines() -> bool {
    world().is_some_and(|world| {
        world.keeper_us.set(0);
        true
    })
}

/// The connection that was dialled, if a script runs here.
pub(super) fn connect() -> Option<io::Result<Arc<End>>> {
    world().map(|world| world.connect())
}

/// The runtime of what runs now, if a script runs here.
#[cfg(feature = "tokio")]
pub(super) fn runtime() -> Option<Option<tokio::runtime::Handle>> {
    let world = world()?;
    let runtime = world.runtime.borrow();
    Some(runtime.as_ref().map(|runtime| runtime.runtime.handle().clone()))
}

/// The driver begins, if no script runs here.
#[cfg(feature = "tokio")]
pub(super) fn take_driver(
    handle: &tokio::runtime::Handle,
    driver: super::driver::Driver,
) -> Option<super::driver::Driver> {
    let Some(world) = world() else { return Some(driver) };
    let runtimes = world.runtimes.borrow().clone();
    // In one that is gone it ends at once.
    let runtime = runtimes.into_iter().find(|runtime| runtime.runtime.handle().id() == handle.id())?;
    world.tasks.borrow_mut().push(Task { future: Box::pin(driver), runtime, woken: Flag::set() });
    None
}

impl World {
    fn below(&self, bound: usize) -> usize {
        self.rng.borrow_mut().below(bound)
    }

    fn once_in(&self, count: usize) -> bool {
        self.rng.borrow_mut().once_in(count)
    }

    fn core(&self) -> Arc<Core> {
        self.core.borrow().clone().expect("it lives as long as the script")
    }

    fn may_fail(&self) -> bool {
        self.has_faults && !self.settles.get()
    }

    fn runtime_in(&self) -> Option<Runtime> {
        self.runtime.borrow().clone()
    }

    fn interleave(self: &Rc<Self>) {
        if self.settles.get() || self.depth.get() >= 3 || !self.once_in(4) {
            return;
        }
        self.depth.set(self.depth.get() + 1);
        // What runs next is another.
        let (runtime, thread) = (self.runtime.take(), self.thread.take());
        for _ in 0..=self.below(3) {
            self.act();
        }
        self.runtime.replace(runtime);
        self.thread.replace(thread);
        self.depth.set(self.depth.get() - 1);
    }

    fn short_write(&self) -> usize {
        if self.settles.get() || !self.once_in(6) { usize::MAX } else { 1 + self.below(40) }
    }

    fn connect(&self) -> io::Result<Arc<End>> {
        if self.may_fail() && self.once_in(6) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let manner = if self.may_fail() && self.once_in(3) {
            let manners = [Manner::Refuses, Manner::Loads, Manner::Ends, Manner::Silent, Manner::Babbles];
            manners[self.below(manners.len())]
        } else {
            Manner::Kind
        };
        let pipe = Arc::new(Pipe::default());
        let capacities = [150, 4_000, 200_000, usize::MAX];
        pipe.lock().capacity = capacities[self.below(capacities.len())];
        self.nodes.borrow_mut().push(Rc::new(RefCell::new(Node::new(Arc::clone(&pipe), manner))));
        self.shaking.replace(Some(Arc::clone(&pipe)));
        self.figures.borrow_mut().connections += 1;
        Ok(Arc::new(End(pipe)))
    }

    /// The library waits for this node in its handshake: it answers, or time passes.
    fn answer_handshake(self: &Rc<Self>, pipe: &Arc<Pipe>) {
        if !self.shaking.borrow().as_ref().is_some_and(|shaking| Arc::ptr_eq(shaking, pipe)) {
            return;
        }
        let node = self.nodes.borrow().iter().find(|node| Arc::ptr_eq(&node.borrow().pipe, pipe)).cloned();
        let Some(node) = node else { return };
        for _ in 0..64 {
            self.take(&node, 1 + self.below(100));
            if pipe.lock().is_readable() || node.borrow_mut().deliver(1 + self.below(60)) {
                return;
            }
        }
    }

    /// A node takes bytes, and executes what is whole. Whether it has taken some.
    fn take(&self, node: &RefCell<Node>, count: usize) -> bool {
        let mut books = self.books.borrow_mut();
        node.borrow_mut().take(count, |number, before| {
            let entry = &mut books[number as usize];
            entry.executed += 1;
            assert!(entry.is_safe || entry.executed == 1, "{number} was executed again");
            assert!(
                entry.told != Told::Outcome(Outcome::NotSent),
                "{number} was executed, and its caller was told that it was not sent"
            );
            let is_behind = number == entry.first || before == Some(number - 1);
            assert!(is_behind, "{number} does not follow {}, with which it was queued", number - 1);
        })
    }

    /// What happens next.
    fn act(self: &Rc<Self>) {
        self.figures.borrow_mut().steps += 1;
        match self.below(1_000) {
            0..180 => self.begin_call(),
            180..500 => drop(self.go_on(false)),
            500..530 => self.poll_any(),
            530..545 => self.cancel_any(),
            545..640 => drop(self.run_thread(false)),
            640..730 => drop(self.run_task(false)),
            730..850 => self.any_node(|world, node| _ = world.take(node, 1 + world.size())),
            850..960 => self.any_node(|world, node| _ = node.borrow_mut().deliver(1 + world.size())),
            960..965 => self.any_node(|_, node| node.borrow_mut().push()),
            965..990 => self.pass(1 + self.below(40) as u64),
            990..996 => self.keep(),
            _ if self.may_fail() => self.fail(),
            _ => {}
        }
    }

    fn size(&self) -> usize {
        let sizes = [3, 40, 400, 100_000];
        self.below(sizes[self.below(sizes.len())])
    }

    fn any_node(self: &Rc<Self>, does: impl FnOnce(&Rc<Self>, &Rc<RefCell<Node>>)) {
        let count = self.nodes.borrow().len();
        if count > 0 {
            // Most of what happens is at the newest.
            let place = if self.once_in(4) { self.below(count) } else { count - 1 };
            let node = Rc::clone(&self.nodes.borrow()[place]);
            does(self, &node);
        }
    }

    fn pass(&self, us: u64) {
        self.now_us.set(self.now_us.get() + us);
    }

    /// Looks after deadlines, if it is time.
    fn keep(&self) {
        if self.keeper_us.get() <= self.now_us.get() {
            self.keeper_us.set(u64::MAX);
            let next = self.core().wake_late();
            let next_us = next.map_or(u64::MAX, |limit| self.now_us.get() + limit.as_micros() as u64);
            self.keeper_us.set(self.keeper_us.get().min(next_us));
        }
    }

    fn fail(self: &Rc<Self>) {
        match self.below(12) {
            0..2 => self.any_node(|_, node| node.borrow().pipe.end(Ending::Half)),
            2..4 => self.any_node(|_, node| node.borrow().pipe.end(Ending::Closed)),
            4..6 => self.any_node(|_, node| node.borrow().pipe.end(Ending::Reset)),
            6 => self.any_node(|_, node| node.borrow_mut().babble()),
            7..9 => self.any_node(|_, node| {
                let mut node = node.borrow_mut();
                node.is_silent = !node.is_silent;
            }),
            9 => self.pass(self.below(400_000) as u64),
            10 => self.end_runtime(),
            _ => {
                // As where a write or a thread fails.
                let core = self.core();
                let state = core.lock();
                if state.link.is_some() {
                    core.end_link(state, &io::Error::other("a test"));
                }
            }
        }
    }

    /// A runtime is shut down: its tasks are dropped.
    fn end_runtime(self: &Rc<Self>) {
        if self.running.get() > 0 || self.depth.get() > 0 {
            return;
        }
        let place = self.below(2);
        let old = std::mem::replace(&mut self.runtimes.borrow_mut()[place], Runtime::new());
        old.is_gone.store(true, Ordering::Relaxed);
        #[cfg(feature = "tokio")]
        {
            let mut tasks = self.tasks.borrow_mut();
            let (gone, others) = tasks.drain(..).partition(|task| Arc::ptr_eq(&task.runtime.is_gone, &old.is_gone));
            *tasks = others;
            drop(tasks);
            let gone: Vec<Task> = gone;
            drop(gone);
        }
        self.cancel_where(|call| call.is_of(&old));
    }

    /// Runs a thread of the library. Whether there was one that could run.
    fn run_thread(self: &Rc<Self>, is_any_time: bool) -> bool {
        let count = self.threads.borrow().len();
        if count == 0 {
            return false;
        }
        let start = self.below(count);
        // A thread that waits for its socket may find that time has passed.
        let is_impatient = !self.settles.get() && self.once_in(20);
        let can_run = |thread: &Begun| {
            let is_due = thread.due_us <= self.now_us.get() || is_any_time;
            let is_served = match &thread.job {
                Job::Dial(_) => true,
                Job::Serve(server) => server.link().and_then(|link| link.end()).is_none_or(|end| end.is_readable()),
                Job::Write(tail) => tail.link().and_then(|link| link.end()).is_none_or(|end| end.is_writable()),
            };
            is_due && (is_served || is_impatient)
        };
        let place = (0..count).map(|at| (start + at) % count).find(|at| can_run(&self.threads.borrow()[*at]));
        let Some(place) = place else { return false };
        let mut thread = self.threads.borrow_mut().swap_remove(place);
        if thread.due_us > self.now_us.get() {
            self.now_us.set(thread.due_us);
        }
        // A connection that was made in front of it has shaken hands.
        let is_dial = matches!(thread.job, Job::Dial(_));
        let step = thread.job.step();
        if is_dial {
            self.shaking.replace(None);
        }
        match step {
            Step::Next => self.threads.borrow_mut().push(thread),
            Step::Pause(pause) => {
                thread.due_us = self.now_us.get() + pause.as_micros() as u64;
                self.threads.borrow_mut().push(thread);
            }
            Step::Over => {}
        }
        true
    }

    #[cfg(not(feature = "tokio"))]
    fn run_task(self: &Rc<Self>, _is_any: bool) -> bool {
        false
    }

    /// Polls a driver. Whether one was woken.
    #[cfg(feature = "tokio")]
    fn run_task(self: &Rc<Self>, is_any: bool) -> bool {
        use std::future::Future;
        let place = self.tasks.borrow().iter().position(|task| task.woken.is_set() || is_any);
        let Some(place) = place else { return false };
        let mut task = self.tasks.borrow_mut().swap_remove(place);
        task.woken.take();
        let waker = std::task::Waker::from(Arc::clone(&task.woken));
        let before = self.runtime.replace(Some(task.runtime.clone()));
        let thread = self.thread.take();
        let polled = task.future.as_mut().poll(&mut std::task::Context::from_waker(&waker));
        if polled.is_pending() {
            self.tasks.borrow_mut().push(task);
        } else {
            drop(task);
        }
        self.runtime.replace(before);
        self.thread.replace(thread);
        true
    }

    /// Everything goes on until nothing does, without faults, and without time passing but where something dials. No call is left then.
    fn settle(self: &Rc<Self>) {
        self.settles.set(true);
        for round in 0.. {
            assert!(round < 200_000, "it goes on without end: {}", self.describe());
            for node in self.nodes.borrow().iter() {
                node.borrow_mut().is_silent = false;
            }
            let mut goes_on = self.go_on(true);
            goes_on |= self.run_task(false);
            goes_on |= self.run_thread(false);
            let nodes = self.nodes.borrow().clone();
            for node in nodes {
                goes_on |= self.take(&node, usize::MAX);
                let output = 1 + self.size();
                goes_on |= node.borrow_mut().deliver(output);
            }
            if goes_on {
                continue;
            }
            if self.calls.borrow().is_empty() {
                break;
            }
            let is_paused = self.threads.borrow().iter().any(|thread| thread.due_us > self.now_us.get());
            assert!(is_paused && self.run_thread(true), "a call is left that nothing wakes: {}", self.describe());
        }
        self.nodes.borrow_mut().retain(|node| {
            let node = node.borrow();
            let kernel = node.pipe.lock();
            kernel.ending.is_none() || !kernel.sent.is_empty() || node.has_output()
        });
        let nodes = self.nodes.borrow().len();
        self.nodes.borrow_mut().drain(..nodes.saturating_sub(4));
        let core = self.core();
        let state = core.lock();
        let left = (state.slots.taken(), state.slots.waiting(), state.slots.tasks(), state.slots.threads());
        assert_eq!((left, state.lobby.len()), ((0, 0, 0, 0), 0), "places are left");
        drop(state);
        self.settles.set(false);
    }

    /// Time passes, and nothing comes from nodes: calls end by their deadlines.
    fn end_by_deadlines(self: &Rc<Self>) {
        self.settles.set(true);
        for _ in 0..400 {
            let next = self.calls.borrow().iter().filter_map(Call::until_us).min();
            let Some(next_us) = next else { break };
            self.now_us.set(self.now_us.get().max(next_us.min(self.keeper_us.get())));
            self.keep();
            while self.go_on(true) || self.run_task(false) {}
            let late = |call: &Call| call.until_us().is_some_and(|until_us| until_us < self.now_us.get());
            let is_late = self.calls.borrow().iter().any(late);
            assert!(!is_late || self.keeper_us.get() <= self.now_us.get(), "a call is late: {}", self.describe());
        }
        self.settles.set(false);
    }

    fn describe(&self) -> String {
        let core = self.core();
        let state = core.lock();
        let threads: Vec<String> =
            self.threads.borrow().iter().map(|thread| format!("{:?} at {}", thread.job, thread.due_us)).collect();
        let calls: Vec<String> = self.calls.borrow().iter().map(Call::describe).collect();
        let nodes: Vec<String> = self.nodes.borrow().iter().map(|node| node.borrow().describe()).collect();
        format!(
            "at {}: leader {:?}, read half {}, write half {}, link {}, dialling {}, served {}, due {}, {} tickets, {} slots ({} tasks, {} threads), {} outside; threads: {threads:?}; calls: {calls:?}; nodes: {nodes:?}",
            self.now_us.get(),
            state.leader,
            state.read_half.is_some(),
            state.write_half.is_some(),
            state.link.is_some(),
            state.is_dialling,
            state.is_served,
            state.is_serve_due,
            state.upstream.tickets().len(),
            state.slots.taken(),
            state.slots.tasks(),
            state.slots.threads(),
            state.lobby.len(),
        )
    }
}

/// Rounds of a script, and what happens in each before everything is brought to its end.
const ROUNDS: usize = 20;
const STEPS: usize = 1_500;

fn settings(rng: &mut Rng, has_faults: bool) -> Config {
    let config = Config::from_url("127.0.0.1:1").unwrap().deadline(None).connect_limit(Duration::from_secs(3_600));
    let terms =
        ReconnectTerms { backoff_min_us: 500, backoff_max_us: 5_000, dials_per_second: 10_000, dials_burst: 100 };
    let requests_max = *rng.pick(&[1, 4, 16, 1_000]);
    let bytes_max = *rng.pick(&[100, 1_000, 100_000]);
    let overload = if has_faults && rng.once_in(10) { Overload::Fail } else { Overload::Wait };
    let silence = (has_faults && rng.once_in(2)).then_some(Duration::from_millis(100));
    config.reconnect(terms).limits(requests_max, bytes_max).overload(overload).silence(silence)
}

fn run(seed: u64) -> Figures {
    let mut rng = Rng::new(seed);
    let has_faults = !seed.is_multiple_of(4);
    let core = Core::new_with(settings(&mut rng, has_faults), std::time::Instant::now(), None);
    let world = Rc::new(World {
        rng: RefCell::new(rng),
        now_us: Cell::new(1_000_000),
        has_faults,
        settles: Cell::new(false),
        depth: Cell::new(0),
        core: RefCell::new(Some(Arc::clone(&core))),
        nodes: RefCell::default(),
        threads: RefCell::default(),
        #[cfg(feature = "tokio")]
        tasks: RefCell::default(),
        calls: RefCell::default(),
        running: Cell::new(0),
        books: RefCell::default(),
        runtimes: RefCell::new([Runtime::new(), Runtime::new()]),
        runtime: RefCell::default(),
        thread: RefCell::default(),
        shaking: RefCell::default(),
        keeper_us: Cell::new(u64::MAX),
        figures: RefCell::default(),
    });
    WORLD.set(Some(Rc::clone(&world)));
    let _over = Over(seed);
    for round in 0..ROUNDS {
        for _ in 0..STEPS {
            world.act();
        }
        if world.once_in(4) {
            world.end_by_deadlines();
        }
        if round + 1 == ROUNDS && world.once_in(2) {
            core.close();
        }
        world.settle();
    }
    world.finish(core);
    *world.figures.borrow()
}

impl World {
    /// Nothing is left of the library but what its callers hold.
    fn finish(self: &Rc<Self>, core: Arc<Core>) {
        self.settles.set(true);
        if !core.is_closed() {
            // A lone thread reads whatever was left by those that have gone, and then its own reply.
            self.call(Face::Thread);
            self.settle();
            assert_eq!(core.in_flight(), (0, 0), "{}", self.describe());
        }
        drop(self.core.take());
        assert_eq!(Arc::strong_count(&core), 1);
        drop(core);
        while !self.threads.borrow().is_empty() {
            self.threads.borrow_mut().retain(|thread| thread.due_us <= self.now_us.get() || self.now_us.get() == 0);
            let thread = self.threads.borrow_mut().pop();
            if let Some(mut thread) = thread {
                assert_eq!(thread.job.step(), Step::Over, "{:?}", thread.job);
            }
        }
    }
}

/// The end of a script. Says which it was, if it has failed.
struct Over(u64);

impl Drop for Over {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("RESPOOL_CORE_SEED={} repeats it", self.0);
        }
        let world = WORLD.take();
        if std::thread::panicking() {
            // What its parts would do as they end is of no interest any more.
            std::mem::forget(world);
        }
    }
}

fn seeds() -> std::ops::Range<u64> {
    let number = |text: &str| text.trim().parse::<u64>().expect("a number");
    if let Ok(seed) = std::env::var("RESPOOL_CORE_SEED") {
        return number(&seed)..number(&seed) + 1;
    }
    match std::env::var("RESPOOL_CORE_SEEDS") {
        Ok(text) => match text.split_once("..") {
            Some((first, end)) => number(first)..number(end),
            None => 0..number(&text),
        },
        Err(_) => 0..SEEDS,
    }
}

/// Some 10^6 requests.
const SEEDS: u64 = 180;

#[test]
fn callers_of_a_connection_are_told_the_truth_whatever_happens() {
    let mut all = Figures::default();
    let began = std::time::Instant::now();
    for seed in seeds() {
        all.add(&run(seed));
    }
    println!("{all:?} in {:?}", began.elapsed());
    assert!(all.replied > all.requests / 4, "too few requests have had a reply to tell");
}
