//! `XCLAIM` and `XAUTOCLAIM`: transfer pending entries from one consumer to another.

use respool_command::text;
use respool_command::words::until_nul;

use super::super::{Answer, Call, Fault, check_reply};
use super::groups::no_key_or_group;
use super::{reply_entry, reply_id, start_of, strict_id};
use crate::keyspace::{Edited, Found};
use crate::limits::CLAIMED_AT_ONCE;
use crate::number::integer;
use crate::values::Stream;
use crate::values::stream::{Group, Id, Log};

const BAD_IDLE_MIN: &str = "ERR Invalid min-idle-time argument for XCLAIM";
const BAD_IDLE: &str = "ERR Invalid IDLE option argument for XCLAIM";
const BAD_TIME: &str = "ERR Invalid TIME option argument for XCLAIM";
const BAD_RETRYCOUNT: &str = "ERR Invalid RETRYCOUNT option argument for XCLAIM";
const BAD_AUTO_IDLE_MIN: &str = "ERR Invalid min-idle-time argument for XAUTOCLAIM";
const COUNT_NOT_POSITIVE: &str = "ERR COUNT must be > 0";
const COUNT_TOO_HIGH: &str = "ERR Insufficient memory, failed allocating transient memory, COUNT too high.";

/// The greatest `COUNT` of `XAUTOCLAIM`: the ids whose size in bytes still fits a signed number.
const AUTO_COUNT_MAX: i64 = i64::MAX / 16;
/// Pending entries that `XAUTOCLAIM` scans for each one that it may claim.
const ATTEMPTS: usize = 10;

/// How entries are claimed.
struct Claim<'c> {
    consumer: &'c [u8],
    now: i64,
    /// Entries that were idle for a shorter time are not claimed.
    idle_min: i64,
    /// The delivery time of claimed entries.
    delivered: i64,
    /// The delivery count of claimed entries; `None`: increments it.
    deliveries: Option<i64>,
    /// Entries that are not pending are claimed as well.
    is_forced: bool,
    only_ids: bool,
    /// The claiming consumer, once something is claimed.
    number: Option<u32>,
}

/// The result of claiming one entry.
enum Claimed {
    Yes,
    /// The entry is not claimed, or is not pending.
    No,
    /// The entry was deleted from the stream; it is removed from the pending entries.
    Gone,
}

impl Claim<'_> {
    fn take(&mut self, log: &Log, group: &mut Group, id: Id) -> Claimed {
        let pending = group.get(id).copied();
        if log.get(id).is_none() {
            return if group.settle(id) { Claimed::Gone } else { Claimed::No };
        }
        let deliveries = match pending {
            Some(pending) => {
                if self.idle_min > 0 && self.now.wrapping_sub(pending.delivered) < self.idle_min {
                    return Claimed::No;
                }
                pending.deliveries
            }
            // FORCE creates a pending entry with a delivery count of one before it is claimed.
            None if self.is_forced => 1,
            None => return Claimed::No,
        };
        let once_more = if self.only_ids { deliveries } else { deliveries.wrapping_add(1) };
        let number = *self.number.get_or_insert_with(|| group.enter(self.consumer, self.now));
        group.claim(id, number, self.delivered, self.deliveries.unwrap_or(once_more));
        Claimed::Yes
    }

    /// Writes the entries that were claimed.
    fn write(&self, reply: &mut respool_wire::Encoder<'_>, log: &Log, ids: &[Id], start: usize) -> Answer {
        reply.array(ids.len());
        for &id in ids {
            match log.get(id).filter(|_| !self.only_ids) {
                Some(entry) => reply_entry(reply, &entry),
                None => reply_id(reply, id),
            }
            check_reply(reply, start)?;
        }
        Ok(())
    }
}

impl<'c> Call<'c, '_> {
    /// Parses the integer at `index`; `fault` is the error of an invalid one.
    fn integer_or(&self, index: usize, fault: &'static str) -> Result<i64, Fault> {
        integer::parse(self.arg(index)).ok_or_else(|| fault.into())
    }

    /// Parses the options of `XCLAIM` from argument `index` on, and the new last id of the group.
    fn claim_options(&self, claim: &mut Claim<'c>, mut index: usize) -> Result<Id, Fault> {
        let mut last_id = Id::MIN;
        let mut delivered = None;
        while index < self.args.len() {
            let has_more = index + 1 < self.args.len();
            if self.is_word(index, "FORCE") {
                claim.is_forced = true;
            } else if self.is_word(index, "JUSTID") {
                claim.only_ids = true;
            } else if self.is_word(index, "IDLE") && has_more {
                index += 1;
                delivered = Some(claim.now.wrapping_sub(self.integer_or(index, BAD_IDLE)?));
            } else if self.is_word(index, "TIME") && has_more {
                index += 1;
                delivered = Some(self.integer_or(index, BAD_TIME)?);
            } else if self.is_word(index, "RETRYCOUNT") && has_more {
                index += 1;
                claim.deliveries = Some(self.integer_or(index, BAD_RETRYCOUNT)?).filter(|count| *count >= 0);
            } else if self.is_word(index, "LASTID") && has_more {
                index += 1;
                last_id = strict_id(self.arg(index), 0)?;
            } else {
                let option = until_nul(self.arg(index));
                return Err(Fault::Written([b"ERR Unrecognized XCLAIM option '", option, b"'"].concat()));
            }
            index += 1;
        }
        // A time in the future is replaced by now, because clocks of clients differ.
        claim.delivered = delivered.filter(|at| (0..=claim.now).contains(at)).unwrap_or(claim.now);
        Ok(last_id)
    }

    fn claimed_group(&mut self, found: Option<Found>) -> Result<Found, Fault> {
        let (key, name) = (self.arg(1), self.arg(2));
        found.filter(|found| self.group(Some(*found), name).is_some()).ok_or_else(|| no_key_or_group(key, name))
    }
}

pub(super) fn xclaim(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<Stream>(call.arg(1))?;
    let found = call.claimed_group(found)?;
    let mut claim = Claim {
        consumer: call.arg(3),
        now: call.at.now,
        idle_min: call.integer_or(4, BAD_IDLE_MIN)?.max(0),
        delivered: call.at.now,
        deliveries: None,
        is_forced: false,
        only_ids: false,
        number: None,
    };
    let ids: Vec<Id> = call.args.from(5).iter().map_while(|text| strict_id(text, 0).ok()).collect();
    let last_id = call.claim_options(&mut claim, 5 + ids.len())?;
    let (name, start) = (call.arg(2), call.start);
    let consumers = call.consumers(Some(found), name);
    let reply = &mut *call.reply;
    let answer = call.keyspace.edit(call.at.database, found, |stream: &mut Stream, _| {
        let Stream { log, groups, .. } = stream;
        let Some(mut group) = groups.get_mut(name) else { return Edited::when(false, Ok(())) };
        let mut is_change = last_id > group.last_id;
        group.last_id = group.last_id.max(last_id);
        let mut claimed = ids;
        claimed.retain(|id| {
            let taken = claim.take(log, &mut group, *id);
            is_change |= !matches!(taken, Claimed::No);
            matches!(taken, Claimed::Yes)
        });
        // As in Redis, this is not a change for WATCH.
        Edited::unwatched(is_change, claim.write(reply, log, &claimed, start))
    });
    call.notify_of_consumer(call.arg(1), found, name, consumers);
    answer.unwrap_or(Ok(()))
}

pub(super) fn xautoclaim(call: &mut Call<'_, '_>) -> Answer {
    let found = call.keyspace.read(call.at, call.arg(1));
    let idle_min = call.integer_or(4, BAD_AUTO_IDLE_MIN)?.max(0);
    let from = start_of(call.arg(5))?;
    let (mut count, mut only_ids) = (100, false);
    let mut index = 6;
    while index < call.args.len() {
        if call.is_word(index, "COUNT") && index + 1 < call.args.len() {
            index += 1;
            count = call.integer_or(index, COUNT_NOT_POSITIVE)?;
            if !(1..=AUTO_COUNT_MAX).contains(&count) {
                return Err(COUNT_NOT_POSITIVE.into());
            }
        } else if call.is_word(index, "JUSTID") {
            only_ids = true;
        } else {
            return Err(text::SYNTAX.into());
        }
        index += 1;
    }
    let found = call.expect::<Stream>(found)?;
    let found = call.claimed_group(found)?;
    if count > CLAIMED_AT_ONCE {
        return Err(COUNT_TOO_HIGH.into());
    }
    let (now, count) = (call.at.now, count as usize);
    let mut claim = Claim {
        consumer: call.arg(3),
        now,
        idle_min,
        delivered: now,
        deliveries: None,
        is_forced: false,
        only_ids,
        number: None,
    };
    let (name, start) = (call.arg(2), call.start);
    let consumers = call.consumers(Some(found), name);
    let reply = &mut *call.reply;
    let answer = call.keyspace.edit(call.at.database, found, |stream: &mut Stream, _| {
        let Stream { log, groups, .. } = stream;
        let Some(mut group) = groups.get_mut(name) else { return Edited::when(false, Ok(())) };
        let (mut claimed, mut gone) = (Vec::new(), Vec::new());
        let mut next = group.pending_from(from, None).next().map(|(id, _)| id);
        let mut attempts = 0;
        while attempts < count * ATTEMPTS
            && claimed.len() + gone.len() < count
            && let Some(id) = next
        {
            attempts += 1;
            match claim.take(log, &mut group, id) {
                Claimed::Yes => claimed.push(id),
                Claimed::Gone => gone.push(id),
                Claimed::No => {}
            }
            let behind = id.next();
            next = behind.and_then(|behind| group.pending_from(behind, None).next()).map(|(id, _)| id);
        }
        reply.array(3);
        reply_id(reply, next.unwrap_or(Id::MIN));
        let answer = claim.write(reply, log, &claimed, start);
        reply.array(gone.len());
        gone.iter().for_each(|id| reply_id(reply, *id));
        Edited::unwatched(!claimed.is_empty() || !gone.is_empty(), answer)
    });
    call.notify_of_consumer(call.arg(1), found, name, consumers);
    answer.unwrap_or(Ok(()))
}
