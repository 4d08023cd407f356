//! What depends on when a caller comes: the means of reading are held here while others come.

mod lone;

use super::submit::Looking;
use super::{Core, Ended, Leader, SlotId, Wakes};
use crate::run::Progress;
use crate::{Command, Config, Error, ErrorKind, Outcome, Overload, cmd};
use respool_testkit::{Act, Address, FakeBackend, Gate, RedisServer, wait_until};
use rustix::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

fn connected() -> (RedisServer, Arc<Core>) {
    let server = RedisServer::start().unwrap();
    let core = Core::new(Config::from_url(&format!("127.0.0.1:{}", server.port())).unwrap());
    Progress::new(None).wait(&core, &[cmd("PING")]).unwrap();
    (server, core)
}

#[cfg(feature = "tokio")]
async fn ping(core: Arc<Core>) -> Result<(), Error> {
    let commands = [cmd("PING")];
    let mut progress = Progress::new(Some(Duration::from_secs(20)));
    std::future::poll_fn(|cx| progress.poll(&core, &commands, cx)).await
}

#[cfg(feature = "tokio")]
#[test]
fn a_driver_that_came_while_a_task_read_is_woken() {
    use std::future::Future;
    let (_server, core) = connected();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let half = core.lock().read_half.take().unwrap();
        let mut first = Box::pin(ping(Arc::clone(&core)));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(first.as_mut().poll(&mut cx).is_pending());
        let reader = core.lock().leader;
        assert!(matches!(reader, Leader::Task(_)));
        let second = tokio::spawn(ping(Arc::clone(&core)));
        // The driver is told that there is something to read, and finds that another reads.
        while core.lock().leader != Leader::Driver || !core.lock().link.as_ref().unwrap().is_spoilt() {
            tokio::task::yield_now().await;
        }
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        drop(half.read_by(&core, reader, |_, _| Err(std::io::ErrorKind::WouldBlock.into())));
        second.await.unwrap().unwrap();
        first.await.unwrap();
    });
}

#[test]
fn a_thread_that_leads_is_not_replaced_by_the_one_that_serves() {
    let (_server, core) = connected();
    let half = core.lock().read_half.take();
    core.lock().leader = Leader::Thread(SlotId::NONE);
    core.serve_by_thread();
    let mut state = core.lock();
    assert_eq!((state.leader, state.is_served), (Leader::Thread(SlotId::NONE), false));
    (state.read_half, state.leader) = (half, Leader::None);
}

#[test]
fn nothing_leads_where_there_is_no_connection() {
    let core = Core::new(Config::from_url("127.0.0.1:1").unwrap());
    core.serve_by_thread();
    let state = core.lock();
    assert_eq!((state.leader, state.is_served), (Leader::None, false));
}

#[test]
fn what_begins_to_read_during_a_look_is_woken_behind_it() {
    let (_server, core) = connected();
    let mut wakes = Wakes::default();
    let mut state = core.lock();
    let looking = Looking::Taking(state.read_half.take());
    let mut asker = None;
    let look = || {
        let other = Arc::clone(&core);
        asker = Some(std::thread::spawn(move || Progress::new(None).wait(&other, &[cmd("PING")])));
        // Its reply may be taken from the socket by the look.
        while core.lock().slots.threads() == 0 {
            std::thread::yield_now();
        }
        false
    };
    let looked = core.look_by(state, looking, look, &mut wakes);
    assert!(looked.read_half.is_some());
    drop(looked);
    wakes.run_on(&core);
    asker.unwrap().join().unwrap().unwrap();
}

#[test]
fn an_ended_connection_that_owes_a_reply_is_not_written_to() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = FakeBackend::start(move |request| match &*request.command() {
        "GET" => {
            held.pass();
            Act::Close
        }
        _ => Act::Usual,
    });
    let server = server.unwrap();
    let Address::Tcp(address) = server.address() else { panic!("no TCP") };
    let core = Core::new(Config::from_url(&address.to_string()).unwrap());
    Progress::new(None).wait(&core, &[cmd("PING")]).unwrap();
    Progress::new(Some(Duration::from_millis(50))).wait(&core, &[cmd("GET").key("k")]).unwrap_err();
    assert_eq!(core.in_flight(), (1, 0));
    let link = core.link().unwrap();
    gate.open();
    let is_idle = || Ok(link.has_ended() && core.now_us() - core.lock().last_used_us > 200_000);
    wait_until("it has ended, and was not used for a while", Duration::from_secs(60), is_idle).unwrap();
    // What may not be executed twice is sent on another connection.
    let mut progress = Progress::new(Some(Duration::from_secs(20)));
    progress.is_last_time = true;
    progress.wait(&core, &[cmd("INCR").key("k")]).unwrap();
    assert!(matches!(progress.ended, Some(Ended::Reply(_))), "{:?}", progress.ended);
    assert_eq!(core.counts().connections, 2);
}

#[test]
fn a_connection_whose_server_breaks_the_protocol_is_reset() {
    let server = FakeBackend::start(|request| match &*request.command() {
        "GET" => Act::Bytes(b"no reply\r\n".to_vec()),
        _ => Act::Usual,
    });
    let server = server.unwrap();
    let Address::Tcp(address) = server.address() else { panic!("no TCP") };
    let core = Core::new(Config::from_url(&address.to_string()).unwrap());
    Progress::new(None).wait(&core, &[cmd("PING")]).unwrap();
    let link = core.lock().link.clone().unwrap();
    let linger = || rustix::net::sockopt::socket_linger(link.as_fd()).unwrap();
    assert_eq!(linger(), None);
    let mut progress = Progress::new(None);
    progress.is_last_time = true;
    progress.wait(&core, &[cmd("GET").key("k")]).unwrap();
    assert!(matches!(progress.ended, Some(Ended::Failed(_, Outcome::MaybeExecuted))), "{:?}", progress.ended);
    // What the kernel has not sent yet must not arrive behind what is repeated elsewhere.
    assert_eq!(linger(), Some(Duration::ZERO));
}

#[test]
fn what_is_queued_together_is_sent_together() {
    let gate = Gate::new();
    // While it does not answer this, it reads nothing.
    let server = FakeBackend::start_holding("GET", &gate).unwrap();
    let Address::Tcp(address) = server.address() else { panic!("no TCP") };
    let core = Core::new(Config::from_url(&address.to_string()).unwrap());
    Progress::new(None).wait(&core, &[cmd("PING")]).unwrap();
    std::thread::scope(|scope| {
        let get = scope.spawn(|| {
            let mut progress = Progress::new(None);
            progress.is_last_time = true;
            progress.wait(&core, &[cmd("GET").key("k")])
        });
        let value = bytes::Bytes::from(vec![b'v'; 32 << 20]);
        let whole = scope.spawn(|| {
            let mut progress = Progress::new(None);
            let commands = [cmd("MULTI"), cmd("SET").key("k").arg(value), cmd("EXEC")];
            progress.wait(&core, &commands).map(|()| (progress.ended_before, progress.ended))
        });
        let is_cut = || Ok(core.lock().counts.requests == 5 && core.lock().write_half.is_none());
        let cut = wait_until("the kernel takes no more", Duration::from_secs(60), is_cut);
        let mut wakes = Wakes::default();
        core.lock().lose_link(&"a test", 0, &mut wakes);
        wakes.run_on(&core);
        gate.open();
        cut.unwrap();
        get.join().unwrap().unwrap();
        // No byte of EXEC was given to the kernel.
        let (before, last) = whole.join().unwrap().unwrap();
        let is_in_doubt = |ended: &Ended| matches!(ended, Ended::Failed(_, Outcome::MaybeExecuted));
        assert!(before.len() == 2 && before.iter().chain(&last).all(is_in_doubt), "{before:?} {last:?}");
    });
}

/// Callers that wait outside, half of them threads and half tasks.
const OUTSIDE: usize = 16;

/// A connection that is full of `inside`, of which none is answered, and then closed while others wait for room.
fn close_while_full(limits: (usize, usize), inside: &[Command]) {
    let gate = Gate::new();
    let held = gate.clone();
    let server = FakeBackend::start(move |request| match &*request.command() {
        // While it does not answer this, it reads nothing.
        "SET" => Act::Hold(held.clone()),
        "GET" => Act::Skip,
        _ => Act::Usual,
    });
    let server = server.unwrap();
    let Address::Tcp(address) = server.address() else { panic!("no TCP") };
    let config = Config::from_url(&address.to_string()).unwrap().deadline(None).overload(Overload::Wait);
    let core = Core::new(config.limits(limits.0, limits.1));
    Progress::new(None).wait(&core, &[cmd("PING")]).unwrap();
    let (ended, ends) = std::sync::mpsc::channel();
    let call = |command: Command| {
        let (core, ended) = (Arc::clone(&core), ended.clone());
        std::thread::spawn(move || {
            let mut progress = Progress::new(None);
            let result = progress.wait(&core, &[command]);
            ended.send((result, progress.ended)).unwrap();
        });
    };
    for (number, command) in (1..).zip(inside) {
        call(command.clone());
        wait_until("it is queued", Duration::from_secs(60), || Ok(core.lock().slots.waiting() == number)).unwrap();
    }
    (0..OUTSIDE / 2).for_each(|_| call(cmd("GET").key("k")));
    #[cfg(feature = "tokio")]
    for _ in 0..OUTSIDE / 2 {
        let (core, ended) = (Arc::clone(&core), ended.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let (mut progress, commands) = (Progress::new(None), [cmd("GET").key("k")]);
            let result = runtime.block_on(std::future::poll_fn(|cx| progress.poll(&core, &commands, cx)));
            ended.send((result, progress.ended)).unwrap();
        });
    }
    #[cfg(not(feature = "tokio"))]
    (0..OUTSIDE / 2).for_each(|_| call(cmd("GET").key("k")));
    wait_until("the others wait outside", Duration::from_secs(60), || Ok(core.lock().lobby.len() == OUTSIDE)).unwrap();
    core.close();
    gate.open();
    let mut refused = 0;
    for _ in 0..OUTSIDE + inside.len() {
        match ends.recv_timeout(Duration::from_secs(60)).expect("every call ends") {
            (Ok(()), Some(Ended::Failed(ErrorKind::Closed, _))) => {}
            (Err(error), None) => {
                assert!(matches!(error.kind(), ErrorKind::Closed), "{error:?}");
                assert_eq!(error.outcome(), Outcome::NotSent);
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(refused, OUTSIDE);
    let state = core.lock();
    assert_eq!((state.lobby.len(), state.slots.taken(), state.upstream.tickets().len()), (0, 0, 0));
}

#[test]
fn a_full_connection_that_closes_ends_all_who_wait_outside() {
    // Full of requests, and full of bytes: the server reads nothing behind the first.
    close_while_full((2, 1 << 20), &[cmd("GET").key("k"), cmd("GET").key("k")]);
    let set = |bytes| cmd("SET").key("k").arg(bytes::Bytes::from(vec![b'v'; bytes]));
    close_while_full((100, 1 << 20), &[set(1), set(32 << 20), set(2 << 20)]);
}

/// A connection that is full of requests whose callers have left. What comes behind them has room once the server has answered.
fn call_behind_the_abandoned(overload: Overload, abandons: impl Fn(&Arc<Core>), calls: impl Fn(&Arc<Core>, &Gate)) {
    let gate = Gate::new();
    // While it does not answer this, it reads nothing.
    let server = FakeBackend::start_holding("GET", &gate);
    let server = server.unwrap();
    let Address::Tcp(address) = server.address() else { panic!("no TCP") };
    let config = Config::from_url(&address.to_string()).unwrap().overload(overload).limits(FULL, 1 << 20);
    let core = Core::new(config);
    Progress::new(None).wait(&core, &[cmd("PING")]).unwrap();
    abandons(&core);
    calls(&core, &gate);
    assert_eq!((core.in_flight().1, core.counts().connections), (0, 1));
}

/// Requests for which there is room.
const FULL: usize = 4;

fn abandon_by_threads(core: &Arc<Core>) {
    std::thread::scope(|scope| {
        for _ in 0..FULL {
            let call = || Progress::new(Some(Duration::from_millis(50))).wait(core, &[cmd("GET").key("k")]);
            scope.spawn(move || call().unwrap_err());
        }
    });
    assert_eq!(core.in_flight(), (FULL, 0));
}

/// The tasks are dropped, and their runtime stands still from then on.
#[cfg(feature = "tokio")]
fn abandon_by_tasks(runtime: &tokio::runtime::Runtime, core: &Arc<Core>) {
    use std::future::Future;
    struct Abandoned<'c>(&'c Arc<Core>, Progress);
    impl Drop for Abandoned<'_> {
        fn drop(&mut self) {
            self.1.abandon(self.0);
        }
    }
    let commands = vec![cmd("GET").key("k"); FULL / 2];
    runtime.block_on(async {
        let mut calls: Vec<_> = (0..2).map(|_| Abandoned(core, Progress::new(None))).collect();
        for Abandoned(core, progress) in &mut calls {
            let mut call = std::pin::pin!(std::future::poll_fn(|cx| progress.poll(core, &commands, cx)));
            assert!(call.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending());
        }
        wait_until("it is full", Duration::from_secs(60), || Ok(core.in_flight().0 == FULL)).unwrap();
    });
    assert_eq!(core.in_flight(), (FULL, 0));
}

/// Long enough for what is answered, and a test that fails ends.
fn in_time() -> Progress {
    Progress::new(Some(Duration::from_secs(20)))
}

#[test]
fn replies_to_callers_that_have_left_are_read_for_those_outside() {
    let wait = |core: &Arc<Core>, gate: &Gate| {
        gate.open();
        for _ in 0..3 {
            in_time().wait(core, &[cmd("PING")]).unwrap();
        }
    };
    call_behind_the_abandoned(Overload::Wait, abandon_by_threads, wait);
    let comes_again = |core: &Arc<Core>, gate: &Gate| {
        let call = || Progress::new(None).wait(core, &[cmd("PING")]).is_ok();
        assert!(!call());
        gate.open();
        wait_until("there is room", Duration::from_secs(20), || Ok(call())).unwrap();
    };
    call_behind_the_abandoned(Overload::Fail, abandon_by_threads, comes_again);
}

#[test]
fn those_outside_have_a_reader_when_the_last_inside_leaves() {
    let outside = |core: &Arc<Core>, gate: &Gate| {
        std::thread::scope(|scope| {
            let calls = [(); 3].map(|()| scope.spawn(|| in_time().wait(core, &[cmd("PING")])));
            wait_until("they wait outside", Duration::from_secs(60), || Ok(core.lock().lobby.len() == 3)).unwrap();
            gate.open();
            calls.into_iter().for_each(|call| call.join().unwrap().unwrap());
        });
    };
    call_behind_the_abandoned(
        Overload::Wait,
        |_| {},
        |core, gate| {
            std::thread::scope(|scope| {
                let inside = scope.spawn(|| {
                    let limit = Some(Duration::from_millis(200));
                    Progress::new(limit).wait(core, &vec![cmd("GET").key("k"); FULL]).unwrap_err();
                });
                wait_until("it is full", Duration::from_secs(60), || Ok(core.in_flight().0 == FULL)).unwrap();
                let calls = [(); 3].map(|()| scope.spawn(|| in_time().wait(core, &[cmd("PING")])));
                inside.join().unwrap();
                gate.open();
                calls.into_iter().for_each(|call| call.join().unwrap().unwrap());
            });
        },
    );
    call_behind_the_abandoned(Overload::Wait, abandon_by_threads, outside);
}

#[cfg(feature = "tokio")]
#[test]
fn tasks_that_have_left_a_runtime_that_stands_still_jam_nothing() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let still = runtime();
    let thread = |core: &Arc<Core>, gate: &Gate| {
        gate.open();
        in_time().wait(core, &[cmd("PING")]).unwrap();
    };
    call_behind_the_abandoned(Overload::Wait, |core| abandon_by_tasks(&still, core), thread);
    let tasks = |core: &Arc<Core>, gate: &Gate| {
        gate.open();
        runtime().block_on(async {
            let calls: Vec<_> = (0..20).map(|_| tokio::spawn(ping(Arc::clone(core)))).collect();
            for call in calls {
                call.await.unwrap().unwrap();
            }
        });
    };
    call_behind_the_abandoned(Overload::Wait, |core| abandon_by_tasks(&still, core), tasks);
}

/// Does something when the last of its wakers is dropped.
#[cfg(feature = "tokio")]
struct OnDrop(Box<dyn Fn() + Send + Sync>);

#[cfg(feature = "tokio")]
impl std::task::Wake for OnDrop {
    fn wake(self: Arc<Self>) {}
}

#[cfg(feature = "tokio")]
impl Drop for OnDrop {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[cfg(feature = "tokio")]
#[test]
fn a_socket_is_watched_in_the_runtime_of_the_task_that_waits() {
    use std::future::Future;
    use std::task::{Context, Waker};
    let (_server, core) = connected();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (one, other) = (runtime(), runtime());
    let mut first = Box::pin(ping(Arc::clone(&core)));
    // While the lock is free a task of the other runtime comes, and is about to write.
    let (noted, handle) = (Arc::clone(&core), other.handle().clone());
    let waker = Waker::from(Arc::new(OnDrop(Box::new(move || {
        let _in_other = handle.enter();
        let mut wakes = Wakes::default();
        noted.lock().driver.note_runtime(1, &mut wakes);
        wakes.run_on(&noted);
    }))));
    let in_one = one.enter();
    // At first another reads.
    core.lock().leader = Leader::Thread(SlotId::NONE);
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    core.lock().leader = Leader::None;
    let _ = first.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    drop(in_one);
    let state = core.lock();
    assert_eq!(state.driver.runtime(), Some(other.handle().id()));
    assert_eq!(state.driver.watched_in(), Some(one.handle().id()));
    drop(state);
    // The first stands still from now on.
    drop(first);
    other.block_on(ping(Arc::clone(&core))).unwrap();
}

#[cfg(feature = "tokio")]
#[test]
fn half_of_many_callers_is_written_while_the_others_come() {
    use std::future::Future;
    let (server, core) = connected();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Behind which of so many callers that one read has woken something is written. The first find no driver yet.
    let written = |callers: usize| {
        runtime.block_on(async {
            server.pause().unwrap();
            core.lock().gathering.note_woken(callers);
            let mut writes = core.lock().counts.writes;
            let mut calls: Vec<_> = (0..callers).map(|_| Box::pin(ping(Arc::clone(&core)))).collect();
            let mut behind = Vec::new();
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            for (number, call) in (1..).zip(&mut calls) {
                assert!(call.as_mut().poll(&mut cx).is_pending());
                let writes_now = core.lock().counts.writes;
                if std::mem::replace(&mut writes, writes_now) < writes_now && number > 10 {
                    behind.push(number);
                }
            }
            server.resume().unwrap();
            for call in calls {
                call.await.unwrap();
            }
            behind
        })
    };
    let behind = written(128);
    assert!(matches!(behind[..], [60..=70]), "{behind:?}");
    assert_eq!(written(90), Vec::<usize>::new(), "neither half is worth a write");
}
