//! Tasks and threads, which are the same to the scenarios: a crowd of callers that begin together.

use crate::peers::Peer;
use std::pin::pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Runs a future whose calls wait in the thread.
pub(crate) fn run_in_thread<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("a call in a thread did not wait"),
    }
}

/// Waits, as the callers of this client do.
pub(crate) async fn sleep<P: Peer>(time: Duration) {
    if P::IN_THREADS { std::thread::sleep(time) } else { tokio::time::sleep(time).await }
}

/// Runs `call` with the numbers of so many callers, and gives what they return and when they began.
pub(crate) async fn crowd<P, T, F>(callers: usize, call: impl Fn(usize) -> F) -> (Instant, Vec<T>)
where
    P: Peer,
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    if !P::IN_THREADS {
        let began = Instant::now();
        let tasks: Vec<_> = (0..callers).map(|caller| Handle::current().spawn(call(caller))).collect();
        let mut results = Vec::with_capacity(callers);
        for task in tasks {
            results.push(task.await.expect("a caller has panicked"));
        }
        return (began, results);
    }
    let all_there = Arc::new(Barrier::new(callers + 1));
    let threads: Vec<_> = (0..callers)
        .map(|caller| {
            let (future, all_there) = (call(caller), Arc::clone(&all_there));
            let body = move || {
                all_there.wait();
                (Instant::now(), run_in_thread(future))
            };
            std::thread::Builder::new().stack_size(256 * 1024).spawn(body).expect("a thread")
        })
        .collect();
    all_there.wait();
    let results = threads.into_iter().map(|thread| thread.join().expect("a caller has panicked"));
    let (begun, results): (Vec<Instant>, Vec<T>) = results.unzip();
    // This thread may have its turn long after all others have had theirs.
    (begun.into_iter().min().unwrap_or_else(Instant::now), results)
}
