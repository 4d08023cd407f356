//! From which nodes of a shard is read.

use std::sync::atomic::{AtomicU8, Ordering};

/// Which nodes of a shard answer what only reads.
///
/// A replica may lag behind its primary: what was written a moment ago may be missing there. The first three send to replicas only
/// commands that read and nothing else. The last two send everything there, and a replica sends what writes back to its primary. Several
/// requests in a batch go to replicas only if each of them reads and nothing else, whatever the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reads {
    /// The primary alone.
    #[default]
    Primary,
    /// The primary and the replicas, each as often.
    All,
    /// The primary and the replicas, each replica three times as often.
    PreferReplicas,
    /// As [`Self::All`], whatever the command.
    ForceAll,
    /// As [`Self::PreferReplicas`], whatever the command.
    ForcePreferReplicas,
}

impl Reads {
    /// In the order of their numbers.
    const EACH: [Self; 5] = [Self::Primary, Self::All, Self::PreferReplicas, Self::ForceAll, Self::ForcePreferReplicas];

    pub(super) fn weight_of_primary(self) -> u64 {
        1
    }

    pub(super) fn weight_of_replica(self) -> u64 {
        match self {
            Self::Primary => 0,
            Self::All | Self::ForceAll => 1,
            Self::PreferReplicas | Self::ForcePreferReplicas => 3,
        }
    }

    /// The same for commands that read and nothing else.
    pub(super) fn unforced(self) -> Self {
        match self {
            Self::ForceAll => Self::All,
            Self::ForcePreferReplicas => Self::PreferReplicas,
            other => other,
        }
    }

    /// Whether a command goes to replicas, of which `is_readable` says whether a replica may answer it.
    pub(super) fn includes(self, is_readable: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Primary => false,
            Self::All | Self::PreferReplicas => is_readable(),
            Self::ForceAll | Self::ForcePreferReplicas => true,
        }
    }
}

/// The choice of a client, which may change while it runs.
#[derive(Debug)]
pub(crate) struct Policy(AtomicU8);

impl Policy {
    pub(super) fn new(reads: Reads) -> Self {
        let this = Self(AtomicU8::new(0));
        this.set(reads);
        this
    }

    #[inline]
    pub(crate) fn get(&self) -> Reads {
        Reads::EACH.get(usize::from(self.0.load(Ordering::Relaxed))).copied().unwrap_or_default()
    }

    pub(crate) fn set(&self, reads: Reads) {
        self.0.store(reads as u8, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_is_read_as_it_was_set() {
        let policy = Policy::new(Reads::Primary);
        for reads in Reads::EACH {
            policy.set(reads);
            assert_eq!(policy.get(), reads);
        }
    }
}
