//! What depends on when a caller comes: the means of reading are held here while others come.

use super::submit::Looking;
use super::{Core, Leader, SlotId, Wakes};
use crate::run::Progress;
use crate::{Config, Error, cmd};
use respool_testkit::RedisServer;
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
