//! `BITFIELD`: integers of any width at any bit of a string.

use respool_command::text;

use super::super::{Answer, Call, Fault};
use super::{bit_at, bit_offset, grow, with_bytes};
use crate::keyspace::{Edited, events};
use crate::number::integer;

const INVALID_TYPE: &str =
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";
const INVALID_OVERFLOW: &str = "ERR Invalid OVERFLOW type specified";
const ONLY_GET: &str = "ERR BITFIELD_RO only supports the GET subcommand";

/// Where an integer lies and how wide it is.
#[derive(Clone, Copy)]
struct Field {
    is_signed: bool,
    bits: u32,
    offset: usize,
}

/// What happens to a value that its field cannot hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

#[derive(Clone, Copy)]
enum Change {
    Get,
    Set(i64),
    Add(i64),
}

struct Step {
    field: Field,
    change: Change,
    overflow: Overflow,
}

impl Field {
    fn read(kind: &[u8], offset: &[u8]) -> Result<Self, Fault> {
        let (is_signed, digits) = match kind {
            [b'i', digits @ ..] => (true, digits),
            [b'u', digits @ ..] => (false, digits),
            _ => return Err(INVALID_TYPE.into()),
        };
        let max = if is_signed { 64 } else { 63 };
        // Redis reads the width as a C string.
        let digits = digits.split(|&byte| byte == 0).next().unwrap_or_default();
        let bits = integer::parse(digits).filter(|bits| (1..=max).contains(bits)).ok_or(INVALID_TYPE)? as u32;
        let offset = match offset {
            // Counted in fields of this width.
            [b'#', digits @ ..] => {
                let count = integer::parse(digits).filter(|count| *count >= 0);
                let offset = count.and_then(|count| count.checked_mul(bits.into())).ok_or(text::BIT_OFFSET)?;
                bit_offset(offset.to_string().as_bytes())?
            }
            digits => bit_offset(digits)?,
        };
        Ok(Self { is_signed, bits, offset })
    }

    fn get(self, bytes: &[u8]) -> i64 {
        let raw = (self.offset..self.offset + self.bits as usize)
            .fold(0_u64, |raw, offset| raw << 1 | u64::from(bit_at(bytes, offset)));
        self.wrap(raw.into())
    }

    fn set(self, bytes: &mut [u8], value: i64) {
        for index in 0..self.bits {
            let offset = self.offset + index as usize;
            let mask = 1 << (7 - offset % 8);
            let is_set = value >> (self.bits - 1 - index) & 1 == 1;
            if let Some(byte) = bytes.get_mut(offset / 8) {
                *byte = if is_set { *byte | mask } else { *byte & !mask };
            }
        }
    }

    /// Bytes that a string needs to hold the field.
    fn bytes(self) -> usize {
        (self.offset + self.bits as usize).div_ceil(8)
    }

    fn bounds(self) -> (i128, i128) {
        match self.is_signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    /// The value of the lowest bits.
    fn wrap(self, value: i128) -> i64 {
        let low = value & ((1 << self.bits) - 1);
        let is_negative = self.is_signed && low >> (self.bits - 1) == 1;
        (if is_negative { low - (1 << self.bits) } else { low }) as i64
    }

    /// What the field takes for `value`; `None` if it refuses.
    fn fit(self, value: i128, overflow: Overflow) -> Option<i64> {
        let (min, max) = self.bounds();
        match overflow {
            _ if (min..=max).contains(&value) => Some(value as i64),
            Overflow::Wrap => Some(self.wrap(value)),
            Overflow::Saturate => Some(value.clamp(min, max) as i64),
            Overflow::Fail => None,
        }
    }
}

fn steps(call: &Call<'_, '_>, may_write: bool) -> Result<Vec<Step>, Fault> {
    let mut steps = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut is_writing = false;
    let mut index = 2;
    while index < call.args.len() {
        let left = call.args.len() - index - 1;
        let arguments = match () {
            () if call.is_word(index, "GET") && left >= 2 => 2,
            () if (call.is_word(index, "SET") || call.is_word(index, "INCRBY")) && left >= 3 => 3,
            () if call.is_word(index, "OVERFLOW") && left >= 1 => {
                overflow = match () {
                    () if call.is_word(index + 1, "WRAP") => Overflow::Wrap,
                    () if call.is_word(index + 1, "SAT") => Overflow::Saturate,
                    () if call.is_word(index + 1, "FAIL") => Overflow::Fail,
                    () => return Err(INVALID_OVERFLOW.into()),
                };
                index += 2;
                continue;
            }
            () => return Err(text::SYNTAX.into()),
        };
        let field = Field::read(call.arg(index + 1), call.arg(index + 2))?;
        let change = match arguments {
            2 => Change::Get,
            _ if call.is_word(index, "SET") => Change::Set(call.integer(index + 3)?),
            _ => Change::Add(call.integer(index + 3)?),
        };
        is_writing |= arguments == 3;
        steps.push(Step { field, change, overflow });
        index += 1 + arguments;
    }
    if is_writing && !may_write { Err(ONLY_GET.into()) } else { Ok(steps) }
}

pub(super) fn bitfield(call: &mut Call<'_, '_>, may_write: bool) -> Answer {
    let key = call.arg(1);
    let steps = steps(call, may_write)?;
    let written = steps.iter().filter(|step| !matches!(step.change, Change::Get)).map(|step| step.field.bytes()).max();
    let mut replies = Vec::with_capacity(steps.len());
    match written {
        None => {
            let read = with_bytes(call, key, |bytes| {
                replies.extend(steps.iter().map(|step| Some(step.field.get(bytes))));
            })?;
            if read.is_none() {
                replies.resize(steps.len(), Some(0));
            }
        }
        Some(needed) => call.edit_or_create(key, |bytes| {
            let grows = bytes.len() < needed;
            if grows {
                grow(bytes, needed);
            }
            // A field that refuses its value may have made the string longer, of which Redis tells nothing.
            let (mut is_change, mut is_told) = (grows, false);
            for step in &steps {
                let old = step.field.get(bytes);
                let reply = apply(step, bytes);
                let has_changed = step.field.get(bytes) != old;
                is_change |= has_changed;
                is_told |= has_changed || grows && reply.is_some() && !matches!(step.change, Change::Get);
                replies.push(reply);
            }
            let edited = Edited::when(is_change, ());
            if is_told { edited.named(events::SETBIT) } else { edited }
        })?,
    }
    call.reply.array(replies.len());
    for reply in replies {
        match reply {
            Some(value) => call.reply.integer(value),
            None => call.reply.null(),
        }
    }
    Ok(())
}

/// Makes one change; what it replies, or nothing if the field refused.
fn apply(step: &Step, bytes: &mut [u8]) -> Option<i64> {
    let old = step.field.get(bytes);
    match step.change {
        Change::Get => Some(old),
        Change::Set(value) => {
            // Redis takes the number for an unsigned one when the field is unsigned.
            let mut value = if step.field.is_signed { value.into() } else { i128::from(value as u64) };
            let (_, max) = step.field.bounds();
            // It reckons in 64 bits how far a number is from the greatest that the field holds, and takes one that is
            // further below than that for one above.
            if step.overflow == Overflow::Saturate && step.field.bits < 64 && max - value > i128::from(i64::MAX) {
                value = max;
            }
            step.field.set(bytes, step.field.fit(value, step.overflow)?);
            Some(old)
        }
        Change::Add(amount) => {
            let sum = step.field.fit(i128::from(old) + i128::from(amount), step.overflow)?;
            step.field.set(bytes, sum);
            Some(sum)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_far_below_a_field_saturate_as_in_redis() {
        let field = Field::read(b"i3", b"0").expect("it is a type");
        let saturated = |change| {
            let mut bytes = [0];
            apply(&Step { field, change, overflow: Overflow::Saturate }, &mut bytes);
            field.get(&bytes)
        };
        for (value, expected) in [(4, 3), (-5, -4), (i64::MAX, 3), (3 - i64::MAX, -4), (2 - i64::MAX, 3), (i64::MIN, 3)]
        {
            assert_eq!(saturated(Change::Set(value)), expected, "{value}");
        }
        assert_eq!(saturated(Change::Add(i64::MIN)), -4);
    }
}
