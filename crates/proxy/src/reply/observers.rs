//! What is kept in step with the tickets of a connection.

use crate::reply::owner::Owner;
use respool_command::ReplyShapes;
use respool_connection::echo_check::EchoCheck;

/// What is kept beside the tickets of a lane, in step with them.
#[derive(Debug, Default)]
pub(crate) struct ReplyObservers {
    /// What its replies look like, if they have to be converted.
    pub(crate) dues: Option<ReplyShapes>,
    /// What proves them, if that is wanted.
    pub(crate) proof: Option<EchoCheck<Owner>>,
}

impl ReplyObservers {
    /// For a lane with this proof and nothing else; `None` if there is nothing to keep.
    pub(crate) fn proving(proof: Option<EchoCheck<Owner>>) -> Option<Box<Self>> {
        proof.map(|proof| Box::new(Self { dues: None, proof: Some(proof) }))
    }
}
