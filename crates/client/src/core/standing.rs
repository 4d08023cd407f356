//! A thread that waits for several connections, as a task does.
//!
//! It may be the thread of a runtime. That runtime stands still meanwhile: it would never tell that something can be read. So what is
//! polled here finds no runtime, and a thread reads for it.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
#[cfg(feature = "tokio")]
use tokio::runtime::Handle;

thread_local! {
    static STANDS_STILL: Cell<bool> = const { Cell::new(false) };
}

/// While it is there, the runtime of this thread is not asked for anything.
struct Standing(bool);

impl Standing {
    fn begin() -> Self {
        Self(STANDS_STILL.replace(true))
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        STANDS_STILL.set(self.0);
    }
}

/// The runtime of this thread, if it runs while its tasks wait.
#[cfg(feature = "tokio")]
pub(super) fn runtime() -> Option<Handle> {
    #[cfg(test)]
    if let Some(runtime) = super::simulated::runtime() {
        return runtime;
    }
    if STANDS_STILL.get() { None } else { Handle::try_current().ok() }
}

/// Polls in this thread, which is parked in between, until it is ready.
pub(crate) fn wait<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        let polled = {
            let _standing = Standing::begin();
            poll(&mut cx)
        };
        match polled {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::park(),
        }
    }
}

struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
