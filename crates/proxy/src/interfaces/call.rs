//! A request of a client on its way, with what has been found out about it.

use crate::ids::ClientId;
use respool_command::Row;
use respool_wire::Request;

/// A request with the client that it is of, and its row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) index: ClientId,
    pub(crate) row: &'static Row,
    pub(crate) request: &'a Request<'a>,
}

/// What one request took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) us: u64,
    pub(crate) reply_bytes: usize,
}
