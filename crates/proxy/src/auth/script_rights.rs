//! The rights that a script of an embedded server has: those of the user whose request runs it, as they were when it began.

use crate::auth::permissions::{count_denial, sort_refusal};
use crate::env::Env;
use crate::ids::ClientId;
use crate::observe::counters::Counters;
use crate::workers::shared::Shared;
use respool_access::{Denial, Denied, Place, User};
use respool_command::{Execute, KeyPositions, Row, ScriptRights, text as texts};
use respool_wire::Args;
use std::sync::Arc;

/// The rights of one script.
#[derive(Debug)]
struct UserRights {
    user: Arc<User>,
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    /// The client in the words of CLIENT LIST, for ACL LOG.
    client: String,
    unix_ms: u64,
}

impl UserRights {
    fn denial(&self, row: &'static Row, args: Args<'_>, keys: &mut KeyPositions) -> Option<Denial> {
        self.user.check(row, args, keys).err()
    }
}

impl ScriptRights for UserRights {
    fn refusal(&self, row: &'static Row, args: Args<'_>) -> Option<&'static str> {
        let mut keys = KeyPositions::new();
        match self.denial(row, args, &mut keys) {
            None => sort_refusal(&self.user, row, args, &mut keys),
            Some(Denial::Command) => Some(texts::SCRIPT_COMMAND_DENIED),
            Some(Denial::Key(_)) => Some(texts::SCRIPT_KEY_DENIED),
            Some(Denial::Channel(_)) => Some(texts::SCRIPT_CHANNEL_DENIED),
        }
    }

    fn note_refusal(&self, row: &'static Row, args: Args<'_>) {
        let Some(denial) = self.denial(row, args, &mut KeyPositions::new()) else {
            return self.counters.denied_commands.add(1);
        };
        count_denial(&self.counters, denial);
        let (reason, object) = denial.described(row, args);
        let (user, client, unix_ms) = (self.user.name(), self.client.as_str(), self.unix_ms);
        self.shared.access.log().add(Denied { reason, place: Place::Lua, object, user, client, unix_ms });
    }
}

impl<E: Execute> Env<E> {
    /// What a script of a client may do, as this user. `None`: everything.
    pub(crate) fn script_rights(&self, index: ClientId, user: Arc<User>) -> Option<Box<dyn ScriptRights>> {
        if user.is_all_powerful() {
            return None;
        }
        Some(Box::new(UserRights {
            user,
            shared: Arc::clone(&self.shared),
            counters: Arc::clone(&self.counters),
            client: self.clients.describe_client(self.now, index, None),
            unix_ms: self.now.unix_us / 1_000,
        }))
    }
}
