//! What is kept in step with the tickets of a connection.

use crate::reply::integrity::EchoCheck;
use respool_command::ReplyShapes;

/// What is kept beside the tickets of a lane, in step with them.
#[derive(Debug, Default)]
pub(crate) struct ReplyObservers {
    /// What its replies look like, if they have to be converted.
    pub(crate) dues: Option<ReplyShapes>,
    /// What proves them, if that is wanted.
    pub(crate) proof: Option<EchoCheck>,
}

impl ReplyObservers {
    /// For a lane with this proof and nothing else; `None` if there is nothing to keep.
    pub(crate) fn proving(proof: Option<EchoCheck>) -> Option<Box<Self>> {
        proof.map(|proof| Box::new(Self { dues: None, proof: Some(proof) }))
    }
}
