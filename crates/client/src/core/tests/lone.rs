//! Behind a burst of callers a lone one writes and reads by itself again, as the first one did.

use super::connected;
use crate::cmd;
use crate::core::{Core, Leader};
use crate::run::Progress;
use respool_testkit::{RedisServer, wait_until};
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Callers of a burst, and calls of each.
const CALLERS: usize = 50;
const CALLS: usize = 20;

fn call_in_thread(core: &Arc<Core>) {
    Progress::new(Some(LIMIT)).wait(core, &[cmd("PING")]).unwrap();
}

fn burst_of_threads(core: &Arc<Core>) {
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| (0..CALLS).for_each(|_| call_in_thread(core)));
        }
    });
}

/// A lone thread waits in the kernel for its reply, and nothing else does anything.
fn a_thread_is_alone(server: &RedisServer, core: &Arc<Core>) {
    server.pause().unwrap();
    let before = core.counts();
    std::thread::scope(|scope| {
        scope.spawn(|| call_in_thread(core));
        let reads = || {
            let state = core.lock();
            Ok(state.counts.requests > before.requests && state.read_half.is_none())
        };
        wait_until("it reads", LIMIT, reads).unwrap();
        let state = core.lock();
        assert!(matches!(state.leader, Leader::Thread(_)), "{:?}", state.leader);
        // It is not parked, and no thread serves beside it.
        assert_eq!((state.slots.threads(), state.is_served), (0, false));
        assert_eq!(state.counts.writes, before.writes + 1);
        drop(state);
        server.resume().unwrap();
    });
    assert_eq!(core.counts().reads, before.reads + 1);
    assert_eq!(core.lock().leader, Leader::None);
}

#[test]
fn a_thread_reads_and_writes_itself_behind_a_burst() {
    let (server, core) = connected();
    a_thread_is_alone(&server, &core);
    burst_of_threads(&core);
    a_thread_is_alone(&server, &core);
}

#[cfg(feature = "tokio")]
mod tasks {
    use super::*;
    use crate::core::driver::CALM_READS;
    use crate::core::tests::ping;
    use std::future::Future;
    use std::pin::Pin;
    use std::task::Poll;
    use tokio::runtime::Runtime;

    fn runtime() -> Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    async fn burst(core: &Arc<Core>) {
        let calls = |core: Arc<Core>| async move {
            for _ in 0..CALLS {
                ping(Arc::clone(&core)).await.unwrap();
            }
        };
        let tasks: Vec<_> = (0..CALLERS).map(|_| tokio::spawn(calls(Arc::clone(core)))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    }

    /// One call behind the other of a task that is alone: whether it has written its request itself, and is the one that reads.
    async fn alone(core: &Arc<Core>, calls: u32) -> Vec<bool> {
        let mut all = Vec::new();
        for _ in 0..calls {
            let before = core.counts().writes;
            let mut call = Box::pin(ping(Arc::clone(core)));
            // As this task polls it, so that it is this task that is woken.
            let first = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut call).poll(cx))).await;
            all.push({
                let state = core.lock();
                matches!(state.leader, Leader::Task(_)) && state.counts.writes == before + 1
            });
            match first {
                Poll::Ready(result) => result.unwrap(),
                Poll::Pending => call.await.unwrap(),
            }
        }
        all
    }

    /// The first so many calls may go by way of the driver, or of a thread, before it is found that one caller is left.
    #[track_caller]
    fn assert_soon_alone(calls: &[bool], soon: u32) {
        assert!(calls[soon as usize..].iter().all(|is_alone| *is_alone), "{calls:?}");
    }

    /// One more than the reads that are counted: the first call may still be taken for one of those of the burst.
    const SOON: u32 = 1 + CALM_READS;

    /// Threads that serve may take turns, which counts for less.
    const SOON_OF_THREADS: u32 = 3 * CALM_READS;

    const LONE_CALLS: u32 = 5 * CALM_READS;

    #[test]
    fn a_task_reads_and_writes_itself_behind_a_burst() {
        let (_server, core) = connected();
        runtime().block_on(async {
            assert_eq!(alone(&core, 3).await, [true; 3]);
            for _ in 0..3 {
                burst(&core).await;
                assert_soon_alone(&alone(&core, LONE_CALLS).await, SOON);
            }
            // The one driver, however often it was woken.
            assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 1);
        });
    }

    #[test]
    fn a_lone_task_of_many_runtimes_reads_and_writes_itself() {
        let (_server, core) = connected();
        let lone = runtime();
        for _ in 0..3 {
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| runtime().block_on(burst(&core)));
                }
            });
            // Tasks of several runtimes are read for by a thread, which stays for a while. As if the last of them had been such.
            core.serve_by_thread();
            assert!(core.lock().is_served);
            let calls = lone.block_on(alone(&core, LONE_CALLS));
            assert!(!calls[0], "the thread reads");
            assert_soon_alone(&calls, SOON_OF_THREADS);
            wait_until("the thread ends", LIMIT, || Ok(!core.lock().is_served)).unwrap();
            burst_of_threads(&core);
            // The first may be taken for one of those that the last read of the burst has woken, and others waited for.
            assert_soon_alone(&lone.block_on(alone(&core, LONE_CALLS)), 1);
        }
    }

    #[test]
    fn a_thread_goes_on_reading_where_a_runtime_watches_no_sockets() {
        let (_server, core) = connected();
        let blind = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let calls = blind.block_on(alone(&core, LONE_CALLS));
        assert!(calls[1..].iter().all(|is_alone| !is_alone), "{calls:?}");
        assert_eq!(core.counts().connections, 1);
    }

    #[test]
    fn a_thread_is_alone_behind_a_burst_of_tasks() {
        let (server, core) = connected();
        for _ in 0..3 {
            runtime().block_on(burst(&core));
            // The first takes over from the driver; there is no driver where its runtime has ended.
            call_in_thread(&core);
            a_thread_is_alone(&server, &core);
        }
        let stays = runtime();
        stays.block_on(burst(&core));
        call_in_thread(&core);
        a_thread_is_alone(&server, &core);
    }
}
