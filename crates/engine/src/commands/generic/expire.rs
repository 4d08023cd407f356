//! Deadlines of keys: the families of `EXPIRE`, `TTL` and `EXPIRETIME`, and `PERSIST`.

use respool_command::text;

use super::super::arguments::Moment;
use super::super::{Answer, Call, Fault, named};

pub(super) const SECONDS_FROM_NOW: Moment = Moment { is_seconds: true, is_relative: true };
pub(super) const MILLIS_FROM_NOW: Moment = Moment { is_seconds: false, is_relative: true };
pub(super) const SECONDS: Moment = Moment { is_seconds: true, is_relative: false };
pub(super) const MILLIS: Moment = Moment { is_seconds: false, is_relative: false };

const NX_WITH_OTHERS: &str = "ERR NX and XX, GT or LT options at the same time are not compatible";
const GT_WITH_LT: &str = "ERR GT and LT options at the same time are not compatible";

/// On what the new deadline depends.
#[derive(Default)]
struct Conditions {
    only_if_absent: bool,
    only_if_present: bool,
    only_if_later: bool,
    only_if_sooner: bool,
}

impl Conditions {
    fn read(call: &Call<'_, '_>, first: usize) -> Result<Self, Fault> {
        let mut read = Self::default();
        for (index, word) in call.args.iter().enumerate().skip(first) {
            match () {
                () if call.is_word(index, "NX") => read.only_if_absent = true,
                () if call.is_word(index, "XX") => read.only_if_present = true,
                () if call.is_word(index, "GT") => read.only_if_later = true,
                () if call.is_word(index, "LT") => read.only_if_sooner = true,
                () => return Err(Fault::Written([b"ERR Unsupported option ", c_string(word)].concat())),
            }
        }
        if read.only_if_absent && (read.only_if_present || read.only_if_later || read.only_if_sooner) {
            return Err(NX_WITH_OTHERS.into());
        }
        if read.only_if_later && read.only_if_sooner {
            return Err(GT_WITH_LT.into());
        }
        Ok(read)
    }

    fn allow(&self, old: Option<i64>, new: i64) -> bool {
        let is_refused = match old {
            Some(old) => {
                self.only_if_absent || (self.only_if_later && new <= old) || (self.only_if_sooner && new >= old)
            }
            None => self.only_if_present || self.only_if_later,
        };
        !is_refused
    }
}

/// Bytes as C prints them: up to the first NUL.
fn c_string(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Sets a deadline. One that has passed removes the key.
pub(super) fn expire(call: &mut Call<'_, '_>, moment: Moment) -> Answer {
    let key = call.arg(1);
    let conditions = Conditions::read(call, 3)?;
    let value = call.integer(2)?;
    let millis = if moment.is_seconds { value.checked_mul(1000) } else { Some(value) };
    let base = if moment.is_relative { call.at.now } else { 0 };
    let deadline = millis.and_then(|millis| millis.checked_add(base));
    let deadline = deadline.ok_or_else(|| named(call.row, text::invalid_expire_time))?;
    let Some(found) = call.keyspace.find(call.at, key) else { return call.reply_integer(0) };
    if !conditions.allow(call.keyspace.deadline(found), deadline) {
        return call.reply_integer(0);
    }
    if deadline <= call.at.now {
        call.keyspace.remove(call.at.database, found);
    } else {
        call.keyspace.set_deadline(call.at, key, deadline);
    }
    call.reply_integer(1)
}

/// Tells a deadline: -2 if there is no such key, -1 if it has none.
pub(super) fn time(call: &mut Call<'_, '_>, moment: Moment) -> Answer {
    let Some(found) = call.keyspace.peek(call.at, call.arg(1)) else { return call.reply_integer(-2) };
    let Some(deadline) = call.keyspace.deadline(found) else { return call.reply_integer(-1) };
    let millis = if moment.is_relative { deadline.saturating_sub(call.at.now).max(0) } else { deadline };
    call.reply_integer(if moment.is_seconds { millis.saturating_add(500) / 1000 } else { millis })
}

/// Takes a deadline away.
pub(super) fn persist(call: &mut Call<'_, '_>) -> Answer {
    let found = call.keyspace.find(call.at, call.arg(1));
    let had_one = found.is_some_and(|found| call.keyspace.clear_deadline(call.at.database, found));
    call.reply_integer(had_one.into())
}
