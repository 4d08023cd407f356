//! The ids of a worker's clients.
//!
//! Only the table of sessions makes an id, when a client is accepted. A place is used again after its client has gone; a handle
//! says which of them is meant.

use crate::slab::Handle;
use crate::slab::id_vec::id;
use respool_connection::ConnId;
use std::fmt::{Display, Formatter};

/// The place of a client in its worker's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientId(u32);

id!(ClientId, u32);

/// One of the clients that were in a place, and none of the others.
pub(crate) type ClientHandle = Handle<ClientId>;

impl ClientId {
    /// The client of a connection that the loop names.
    #[inline(always)]
    pub(crate) fn of(conn: ConnId) -> Self {
        Self(conn.index() as u32)
    }

    /// As the loop knows its connection.
    #[inline(always)]
    pub(crate) fn conn(self) -> ConnId {
        ConnId::client(self.0)
    }
}

/// The number by which clients know each other (`CLIENT ID`): no other client of the process has had it, whichever worker it is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientNumber(u64);

impl ClientNumber {
    /// The client of a number that was given out, or that a request names.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, to be shown.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Display for ClientNumber {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        Display::fmt(&self.0, f)
    }
}

/// Who asked, for answers that take their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) session: ClientHandle,
    /// The place of the reply.
    pub(crate) seq: respool_connection::Seq,
    /// The client has not switched replies off; otherwise nothing is written in the place.
    pub(crate) is_wanted: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::id_vec::Id;

    #[test]
    fn a_connection_of_the_loop_leads_back_to_its_client() {
        for place in [0, 7, 1 << 20] {
            let client = ClientId::nth(place);
            assert!(!client.conn().is_upstream());
            assert_eq!((ClientId::of(client.conn()), client.index()), (client, place));
        }
    }
}
