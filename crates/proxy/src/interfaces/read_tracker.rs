//! What others tell of a client to the feature that knows which keys it has read, and on which connections it hears of changes.
//!
//! A client becomes another user, selects a database or speaks another dialect: that concerns its tracking. The features in which
//! that happens know nothing of tracking but this.

use crate::env::Env;
use crate::ids::{ClientId, LaneKeyId};
use crate::pool::key_id::LaneKey;
use crate::session::Flow;
use respool_access::User;
use respool_command::{Execute, Row};
use respool_wire::Args;

/// The feature that tracks what clients read.
pub(crate) trait ReadTracker {
    /// A request may read keys that its client is to hear of.
    fn track_request(&mut self, env: &mut Env<impl Execute>, index: ClientId, row: &'static Row, args: Args<'_>);

    /// The same for a part of a transaction that is done here; the client hears of it behind the last part.
    fn track_part(&mut self, env: &mut Env<impl Execute>, index: ClientId, row: &'static Row, args: Args<'_>);

    /// All parts of a client's transaction have been done.
    fn end_parts(&mut self, env: &mut Env<impl Execute>, index: ClientId);

    /// What a client has asked to hear or to hear no more is answered before its session changes. `Some`: it is not, yet.
    fn hear_out(&mut self, env: &mut Env<impl Execute>, index: ClientId) -> Option<Flow>;

    /// A client speaks another dialect from now on and is the same otherwise: its own connections do, too. Nothing is owed on
    /// them. `false`: it has none, or is not the same.
    fn speak_otherwise(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        class: LaneKeyId,
        state: LaneKey,
    ) -> bool;

    /// A client has other connections than before, because it selected another database.
    fn restart_noloop(&mut self, env: &mut Env<impl Execute>, index: ClientId);

    /// A client is another user from now on: it may have read keys that are placed elsewhere for that user.
    fn forget_read_as_other(&mut self, env: &mut Env<impl Execute>, index: ClientId);

    /// Whether a client has a subscription that its user is no longer permitted.
    fn has_forbidden_subscription(&self, env: &Env<impl Execute>, index: ClientId, user: &User) -> bool;
}
