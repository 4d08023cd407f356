//! How long a request that may block waits at the node, as its arguments say.

use crate::{Command, Flags, GenericCommand, ListCommand, Row, SortedSetCommand, StreamCommand};
use respool_wire::Args;

/// How a timeout is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutUnit {
    /// In seconds, which may have a fraction.
    Seconds,
    /// In whole milliseconds.
    Millis,
}

/// Where a request says how long it may block, and in which unit. `None`: it does not say so, or its row never blocks.
pub fn timeout_place(row: &Row, args: Args<'_>) -> Option<(usize, TimeoutUnit)> {
    match row.command {
        Command::List(ListCommand::Blmpop) | Command::SortedSet(SortedSetCommand::Bzmpop) => {
            Some((1, TimeoutUnit::Seconds))
        }
        Command::Stream(StreamCommand::Xread | StreamCommand::Xreadgroup) => {
            // The last BLOCK before STREAMS counts. A group or consumer may be named like an option.
            let (mut place, mut index) = (None, 1);
            while let Some(word) = args.get(index).filter(|word| !word.eq_ignore_ascii_case(b"STREAMS")) {
                let is = |option: &[u8]| word.eq_ignore_ascii_case(option);
                place = if is(b"BLOCK") { Some((index + 1, TimeoutUnit::Millis)) } else { place };
                index += if is(b"GROUP") { 3 } else { 1 + usize::from(is(b"BLOCK") || is(b"COUNT")) };
            }
            place
        }
        Command::Generic(GenericCommand::Wait) => Some((2, TimeoutUnit::Millis)),
        _ if row.flags.has(Flags::BLOCKING) => Some((args.len().checked_sub(1)?, TimeoutUnit::Seconds)),
        _ => None,
    }
}

/// How long a request may wait, in microseconds. `None`: for ever, or the node will refuse what is said.
pub fn timeout_us(row: &Row, args: Args<'_>) -> Option<u64> {
    let (at, unit) = timeout_place(row, args)?;
    let text = std::str::from_utf8(args.get(at)?).ok()?;
    let us = match unit {
        TimeoutUnit::Millis => text.parse::<u64>().ok()?.checked_mul(1_000)?,
        TimeoutUnit::Seconds => {
            let seconds = text.parse::<f64>().ok().or_else(|| hexadecimal(text)).filter(|s| (0.0..1e10).contains(s))?;
            // Redis rounds up to milliseconds, so that a short time does not become none.
            ((seconds * 1e3).ceil() * 1e3) as u64
        }
    };
    (us > 0).then_some(us)
}

/// A number as C reads it that begins with `0x`, to a precision that is enough for times. Rust reads all others.
fn hexadecimal(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?;
    let (mantissa, power) = digits.split_once(['p', 'P']).unwrap_or((digits, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let places = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    Some(value * 2_f64.powi(power.parse::<i32>().ok()?.checked_sub(places)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve;
    use respool_wire::ArgsBuf;

    fn place(words: &str) -> Option<(usize, TimeoutUnit)> {
        let args: ArgsBuf = words.split(' ').collect();
        timeout_place(resolve(args.as_args()).expect("a known command"), args.as_args())
    }

    #[test]
    fn a_timeout_is_found_in_requests_that_block_alone() {
        assert_eq!(place("BLPOP a b 1"), Some((3, TimeoutUnit::Seconds)));
        assert_eq!(place("BLMPOP 1 1 a LEFT"), Some((1, TimeoutUnit::Seconds)));
        assert_eq!(place("XREAD COUNT 1 BLOCK 5 STREAMS BLOCK 0"), Some((4, TimeoutUnit::Millis)));
        assert_eq!(place("WAIT 1 100"), Some((2, TimeoutUnit::Millis)));
        for words in ["MIGRATE h 1 k 0 5000", "MIGRATE h 1 k 0 5000 AUTH 7", "GET 5", "XREAD STREAMS a 0"] {
            assert_eq!(place(words), None, "{words}");
        }
    }
}
