//! The arguments and replies of `SCAN`, `HSCAN`, `SSCAN` and `ZSCAN`.

use respool_command::text;

use super::{Answer, Call, Fault, bulk};
use crate::store::listpack::Element;
use respool_command::glob;

/// Entries to look at in one call, unless `COUNT` says otherwise.
const COUNT: usize = 10;

/// What a scan is about, which has options of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scanned {
    /// `SCAN`: `TYPE`.
    Keys,
    /// `HSCAN`: `NOVALUES`.
    Fields,
    Members,
    /// `ZSCAN`: `NOSCORES`.
    Scores,
}

/// What a scan is asked for beside its cursor.
pub(super) struct Wanted<'c> {
    /// About how many entries to look at.
    pub(super) count: usize,
    /// Only names of this shape; `None` for all.
    pattern: Option<&'c [u8]>,
    /// Only keys of this type.
    pub(super) type_name: Option<&'c [u8]>,
    /// Names alone are replied, not what belongs to them.
    pub(super) is_bare: bool,
}

impl Wanted<'_> {
    /// Whether the pattern lets a name through.
    pub(super) fn lets(&self, name: Element<'_>) -> bool {
        self.pattern.is_none_or(|pattern| name.read(|name| glob::matches(pattern, name)))
    }
}

impl<'c> Call<'c, '_> {
    /// The cursor at `index`.
    pub(super) fn cursor(&self, index: usize) -> Result<u64, Fault> {
        respool_command::parse_cursor(self.arg(index)).ok_or_else(|| text::INVALID_CURSOR.into())
    }

    /// The options from `first` on.
    pub(super) fn wanted(&self, first: usize, scanned: Scanned) -> Result<Wanted<'c>, Fault> {
        let mut wanted = Wanted { count: COUNT, pattern: None, type_name: None, is_bare: false };
        let mut index = first;
        while index < self.args.len() {
            let is_bare = match scanned {
                Scanned::Fields => self.is_word(index, "NOVALUES"),
                Scanned::Scores => self.is_word(index, "NOSCORES"),
                Scanned::Keys | Scanned::Members => false,
            };
            if is_bare {
                wanted.is_bare = true;
                index += 1;
                continue;
            }
            let Some(value) = self.args.get(index + 1) else { return Err(text::SYNTAX.into()) };
            if self.is_word(index, "COUNT") {
                let count = self.integer(index + 1)?;
                if count < 1 {
                    return Err(text::SYNTAX.into());
                }
                wanted.count = usize::try_from(count).unwrap_or(usize::MAX);
            } else if self.is_word(index, "MATCH") {
                wanted.pattern = (value != b"*").then_some(value);
            } else if self.is_word(index, "TYPE") && scanned == Scanned::Keys {
                wanted.type_name = Some(value);
            } else {
                return Err(text::SYNTAX.into());
            }
            index += 2;
        }
        Ok(wanted)
    }

    /// Replies the next cursor and what was found.
    pub(super) fn reply_scan(&mut self, cursor: u64, found: &[Vec<u8>]) -> Answer {
        self.reply.array(2);
        self.reply.bulk(cursor.to_string().as_bytes());
        self.reply.array(found.len());
        for name in found {
            bulk(self.reply, Element::Bytes(name));
        }
        Ok(())
    }
}
