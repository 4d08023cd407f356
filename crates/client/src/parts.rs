//! A call that is in parts at several nodes: how its requests hang together, and how the replies of the parts become its own.

use crate::core::Ended;
use crate::{Error, ErrorKind, Outcome, Reply};
use bytes::Bytes;
use respool_route::Gather;

/// How the requests of a call hang together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Requests, each for itself. Those for one node follow each other there.
    #[default]
    Each,
    /// A transaction.
    Whole,
    /// The one request, to the primary of each shard.
    EachShard,
    /// The one request, to the primary of this slot's shard.
    At(u16),
}

/// How the replies of a call's parts, of which each is at one node, become its own.
pub(crate) enum Join {
    /// They are those of the parts, one after the other.
    Only,
    /// Each part's requests are these of the call's, of so many.
    Placed(Vec<Vec<usize>>, usize),
    /// They are parts of one reply: which of them each part of the call has.
    Gathered(Vec<Vec<usize>>, Box<Gather>),
}

impl Join {
    pub(crate) fn join(self, ended: Vec<Vec<Ended>>) -> Result<Vec<Ended>, Error> {
        match self {
            Self::Only => Ok(ended.into_iter().flatten().collect()),
            Self::Placed(places, count) => {
                let missing = || Ended::Failed(ErrorKind::Closed, Outcome::NotSent);
                let mut all: Vec<Ended> = (0..count).map(|_| missing()).collect();
                for (place, ended) in places.into_iter().flatten().zip(ended.into_iter().flatten()) {
                    all[place] = ended;
                }
                Ok(all)
            }
            Self::Gathered(places, mut gather) => {
                let parts = || ended.iter().flatten();
                let failed = parts().find_map(|ended| match ended {
                    Ended::Failed(kind, _) => Some(kind.clone()),
                    Ended::Reply(_) => None,
                });
                if let Some(kind) = failed {
                    let is_unsent = |ended: &Ended| matches!(ended, Ended::Failed(_, Outcome::NotSent));
                    // Of the parts, some were executed and others not.
                    let outcome = if parts().all(is_unsent) { Outcome::NotSent } else { Outcome::MaybeExecuted };
                    return Err(Error::new(kind, outcome));
                }
                if parts().next().is_none() {
                    let why = "the cluster changes faster than its nodes are asked";
                    return Err(Error::new(ErrorKind::Lost(why.into()), Outcome::MaybeExecuted));
                }
                let mut bytes = Vec::new();
                for (places, ended) in places.iter().zip(&ended) {
                    for (at, place) in places.iter().enumerate() {
                        match ended.get(at) {
                            Some(Ended::Reply(reply)) => {
                                bytes.clear();
                                let kind = reply.write(&mut bytes);
                                gather.accept(*place, kind, &bytes);
                            }
                            // Its node is none of the cluster's any longer, or another part asks for what it had.
                            _ => gather.pass_over(*place),
                        }
                    }
                }
                let mut joint = Vec::new();
                gather.finish(&mut joint);
                let reply = Reply::owned(&Bytes::from(joint));
                let unreadable = || Error::new(ErrorKind::Lost("a reply cannot be read".into()), Outcome::Replied);
                Ok(vec![Ended::Reply(reply.ok_or_else(unreadable)?)])
            }
        }
    }
}
