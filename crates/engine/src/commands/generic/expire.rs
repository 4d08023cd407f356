//! Deadlines of keys: the families of `EXPIRE`, `TTL` and `EXPIRETIME`, and `PERSIST`.

use super::super::arguments::{Conditions, Moment};
use super::super::{Answer, Call};
use crate::keyspace::{Found, events};

/// Sets a deadline. One that has passed removes the key.
pub(super) fn expire(call: &mut Call<'_, '_>, moment: Moment) -> Answer {
    let key = call.arg(1);
    let conditions = Conditions::read(call, 3..call.args.len())?;
    let deadline = call.deadline_from(2, moment, i64::MIN)?;
    let Some(found) = call.keyspace.find(call.at, key) else { return call.reply_integer(0) };
    if !conditions.allow(call.keyspace.deadline(found), deadline) {
        return call.reply_integer(0);
    }
    if deadline <= call.at.now {
        call.keyspace.delete(call.at.database, found);
    } else {
        call.keyspace.set_deadline(call.at, key, deadline);
        call.notify(events::EXPIRE, key);
    }
    call.reply_integer(1)
}

/// Tells a deadline: -2 if there is no such key, -1 if it has none.
pub(super) fn time(call: &mut Call<'_, '_>, moment: Moment) -> Answer {
    let Some(found) = call.keyspace.inspect(call.at, call.arg(1)) else { return call.reply_integer(-2) };
    let Some(deadline) = call.keyspace.deadline(found) else { return call.reply_integer(-1) };
    call.reply_integer(moment.shown(deadline, call.at.now))
}

/// Takes a deadline away.
pub(super) fn persist(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arg(1);
    let found = call.keyspace.find(call.at, key);
    let had_one = found.is_some_and(|found| call.drop_deadline(key, found));
    call.reply_integer(had_one.into())
}

impl Call<'_, '_> {
    /// Takes the deadline of a key away; whether it had one.
    pub(in super::super) fn drop_deadline(&mut self, key: &[u8], found: Found) -> bool {
        let had_one = self.keyspace.clear_deadline(self.at.database, found);
        if had_one {
            self.notify(events::PERSIST, key);
        }
        had_one
    }
}
