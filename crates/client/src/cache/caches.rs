//! The caches of a client, which forget what the client writes: the server's word of it may come behind the reply to the write.

use super::Shared;
use crate::Command;
use crate::fitness::{Written, written};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// All that exist.
#[derive(Debug, Default)]
pub(crate) struct Caches {
    are_there: AtomicBool,
    all: Mutex<Vec<Weak<Shared>>>,
}

impl Caches {
    pub(crate) fn add(&self, shared: &Arc<Shared>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|shared| shared.strong_count() > 0);
        all.push(Arc::downgrade(shared));
        self.are_there.store(true, Ordering::Release);
    }

    fn each(&self) -> Vec<Arc<Shared>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).collect()
    }

    /// Requests are over, or may have been executed.
    #[inline]
    pub(crate) fn note_written(&self, commands: &[Command]) {
        if self.are_there.load(Ordering::Acquire) {
            self.forget(commands);
        }
    }

    #[cold]
    fn forget(&self, commands: &[Command]) {
        let caches = self.each();
        for command in commands.iter().filter(|_| !caches.is_empty()) {
            match written(command) {
                Written::Nothing => {}
                Written::Keys(keys) => {
                    caches.iter().for_each(|cache| keys.iter().for_each(|key| cache.forget(key)));
                }
                Written::All => caches.iter().for_each(|cache| cache.forget_all()),
            }
        }
    }

    /// Ends all of them.
    pub(crate) fn close(&self) {
        self.each().iter().for_each(|cache| cache.close());
    }
}
