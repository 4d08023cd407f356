//! `XDELEX` and `XACKDEL`: delete entries with a treatment of the references that groups have to them.

use respool_command::text;

use super::super::{Answer, Call, Fault};
use super::strict_id;
use crate::keyspace::{Edited, events};
use crate::values::Stream;
use crate::values::stream::{Deletion, Id, References};

const NO_IDS: &str = "ERR IDS option is required";
const COUNT_NOT_POSITIVE: &str = "ERR Number of IDs must be a positive integer";
const COUNT_MISMATCH: &str = "ERR The `numids` parameter must match the number of arguments";

/// Replies for one id.
const MISSING: i64 = -1;
const DELETED: i64 = 1;
const KEPT: i64 = 2;

impl Call<'_, '_> {
    /// Parses `[KEEPREF|DELREF|ACKED] IDS count id ...` from argument `index` on, in any order.
    fn deletion(&self, mut index: usize) -> Result<(References, Vec<Id>), Fault> {
        let (mut references, mut ids) = (None, None);
        while index < self.args.len() {
            if let Some(treatment) = References::of(self.arg(index))
                && references.replace(treatment).is_none()
            {
                index += 1;
                continue;
            }
            if !self.is_word(index, "IDS") || index + 1 >= self.args.len() {
                return Err(text::SYNTAX.into());
            }
            let count = self.integer_from(index + 1, 1, COUNT_NOT_POSITIVE)?;
            let first = index + 2;
            if count > self.args.len() - first {
                return Err(COUNT_MISMATCH.into());
            }
            ids = Some(first..first + count);
            index = first + count;
        }
        let ids = ids.ok_or(NO_IDS)?.map(|index| strict_id(self.arg(index), 0)).collect::<Result<_, _>>()?;
        Ok((references.unwrap_or_default(), ids))
    }

    /// Replies what `delete` does with each id, which returns whether it changed anything.
    fn delete_each(&mut self, ids: &[Id], mut delete: impl FnMut(&mut Stream, Id) -> (i64, bool)) -> Answer {
        let found = self.find::<Stream>(self.arg(1))?;
        let reply = &mut *self.reply;
        reply.array(ids.len());
        let Some(found) = found else {
            ids.iter().for_each(|_| reply.integer(MISSING));
            return Ok(());
        };
        self.keyspace.edit(self.at.database, found, |stream: &mut Stream, _| {
            let mut changes = 0;
            for id in ids {
                let (result, is_change) = delete(stream, *id);
                reply.integer(result);
                changes += usize::from(is_change);
            }
            Edited::count(changes).named(events::XDEL)
        });
        Ok(())
    }
}

/// `XDELEX key [KEEPREF|DELREF|ACKED] IDS count id ...`.
pub(super) fn xdelex(call: &mut Call<'_, '_>) -> Answer {
    let (references, ids) = call.deletion(2)?;
    call.delete_each(&ids, |stream, id| match stream.delete_one(id, references) {
        (Deletion::Deleted, _) => (DELETED, true),
        (Deletion::Kept, _) => (KEPT, false),
        (Deletion::Missing, has_settled) => (MISSING, has_settled),
    })
}

/// `XACKDEL key group [KEEPREF|DELREF|ACKED] IDS count id ...`. An entry that is pending and was deleted before counts as deleted.
pub(super) fn xackdel(call: &mut Call<'_, '_>) -> Answer {
    let (references, ids) = call.deletion(3)?;
    let name = call.arg(2);
    call.delete_each(&ids, |stream, id| {
        if !stream.groups.get_mut(name).is_some_and(|mut group| group.settle(id)) {
            return (MISSING, false);
        }
        match stream.delete_one(id, references) {
            (Deletion::Kept, _) => (KEPT, true),
            (Deletion::Deleted | Deletion::Missing, _) => (DELETED, true),
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::transcript::play;

    #[test]
    fn entries_are_deleted_with_or_without_references() {
        play(
            "XADD s 1-1 f v -> $3 1-1
             XADD s 2-1 f v -> $3 2-1
             XADD s 3-1 f v -> $3 3-1
             XADD s 4-1 f v -> $3 4-1
             XDELEX s ACKED IDS 1 1-1 -> *1 :2
             XGROUP CREATE s g 0 -> +OK
             XGROUP CREATE s h 0 -> +OK
             XREADGROUP GROUP g c COUNT 3 STREAMS s > -> *1 *2 $1 s *3 *2 $3 1-1 *2 $1 f $1 v *2 $3 2-1 *2 $1 f $1 v *2 $3 3-1 *2 $1 f $1 v
             XREADGROUP GROUP h c COUNT 2 STREAMS s > -> *1 *2 $1 s *2 *2 $3 1-1 *2 $1 f $1 v *2 $3 2-1 *2 $1 f $1 v
             XACK s g 1-1 -> :1
             XDELEX s ACKED IDS 3 1-1 4-1 9-9 -> *3 :2 :2 :-1
             XACK s h 1-1 -> :1
             XDELEX s ACKED IDS 1 1-1 -> *1 :1
             XACKDEL s g ACKED IDS 2 2-1 2-1 -> *2 :2 :-1
             XACKDEL s h ACKED IDS 1 2-1 -> *1 :1
             XDELEX s KEEPREF IDS 1 3-1 -> *1 :1
             XPENDING s g -> *4 :1 $3 3-1 $3 3-1 *1 *2 $1 c $1 1
             XDELEX s IDS 1 3-1 DELREF -> *1 :-1
             XPENDING s g -> *4 :0 $-1 $-1 *-1
             XACKDEL s none IDS 2 1-1 2-1 -> *2 :-1 :-1
             XACKDEL none g IDS 2 1-1 2-1 -> *2 :-1 :-1
             XDELEX none IDS 1 1-1 -> *1 :-1
             XREADGROUP GROUP g c STREAMS s > -> *1 *2 $1 s *1 *2 $3 4-1 *2 $1 f $1 v
             XREADGROUP GROUP h c STREAMS s > -> *1 *2 $1 s *1 *2 $3 4-1 *2 $1 f $1 v
             XACKDEL s g DELREF IDS 1 4-1 -> *1 :1
             XPENDING s h -> *4 :0 $-1 $-1 *-1
             XLEN s -> :0",
        );
    }

    #[test]
    fn ids_have_to_match_their_number() {
        play(
            "XADD s 1-1 f v -> $3 1-1
             XDELEX s IDS 0 1-1 -> -ERR Number of IDs must be a positive integer
             XDELEX s IDS x 1-1 -> -ERR Number of IDs must be a positive integer
             XDELEX s IDS -5 1-1 -> -ERR Number of IDs must be a positive integer
             XDELEX s IDS 9223372036854775808 1-1 -> -ERR Number of IDs must be a positive integer
             XDELEX s IDS 9223372036854775807 1-1 -> -ERR The `numids` parameter must match the number of arguments
             XDELEX s IDS 2 1-1 -> -ERR The `numids` parameter must match the number of arguments
             XDELEX s IDS 1 1-1 1-2 -> -ERR syntax error
             XDELEX s KEEPREF ACKED IDS 1 1-1 -> -ERR syntax error
             XDELEX s KEEPREF KEEPREF IDS 1 1-1 -> -ERR syntax error
             XDELEX s NOPE IDS 1 1-1 -> -ERR syntax error
             XDELEX s KEEPREF 1 1-1 -> -ERR syntax error
             XDELEX s IDS 1 x -> -ERR Invalid stream ID specified as stream command argument
             XLEN s -> :1
             SET t x -> +OK
             XDELEX t IDS 1 1-1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
             XACKDEL t g IDS 1 1-1 -> -WRONGTYPE Operation against a key holding the wrong kind of value",
        );
    }

    #[test]
    fn trimming_deletes_or_respects_references() {
        play(
            "XADD s 1-1 f v -> $3 1-1
             XADD s 2-1 f v -> $3 2-1
             XADD s 3-1 f v -> $3 3-1
             XADD s 4-1 f v -> $3 4-1
             XGROUP CREATE s g 0 -> +OK
             XREADGROUP GROUP g c COUNT 3 NOACK STREAMS s > -> *1 *2 $1 s *3 *2 $3 1-1 *2 $1 f $1 v *2 $3 2-1 *2 $1 f $1 v *2 $3 3-1 *2 $1 f $1 v
             XCLAIM s g c 0 1-1 FORCE JUSTID -> *1 $3 1-1
             XTRIM s MAXLEN 0 ACKED -> :2
             XRANGE s - + -> *2 *2 $3 1-1 *2 $1 f $1 v *2 $3 4-1 *2 $1 f $1 v
             XADD s ACKED MAXLEN 1 5-1 f v -> $3 5-1
             XLEN s -> :3
             XTRIM s MAXLEN 2 ACKED -> :0
             XTRIM s MINID 5 DELREF -> :2
             XPENDING s g -> *4 :0 $-1 $-1 *-1
             XRANGE s - + -> *1 *2 $3 5-1 *2 $1 f $1 v
             XTRIM s MAXLEN 1 KEEPREF ACKED -> -ERR syntax error
             XADD s DELREF KEEPREF MAXLEN 1 6-1 f v -> -ERR syntax error
             XADD s DELREF MAXLEN 1 6-1 f v -> $3 6-1
             XLEN s -> :1
             XTRIM none MAXLEN 1 ACKED -> :0
             XADD n 1-1 f v -> $3 1-1
             XTRIM n MAXLEN 0 ACKED -> :1",
        );
    }
}
