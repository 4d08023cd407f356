//! Commands that are not typed at the prompt: one from the command line, or the lines of standard input.

use std::io::BufRead;
use std::time::Duration;

use respool_wire::split_words;

use crate::console::Console;
use crate::limits::LINE_BYTES_MAX;
use crate::session::Failure;

/// Executes one command as often as it is asked for. Whether it went well.
pub(crate) fn one(console: &mut Console<'_>, words: &[Vec<u8>]) -> Result<bool, Failure> {
    let failed = repeat(console, words, console.options.repeat)?;
    Ok(!(failed && console.options.has_exit_code))
}

/// Whether one of the replies was an error. Without a number it goes on without end.
pub(crate) fn repeat(console: &mut Console<'_>, words: &[Vec<u8>], times: Option<u64>) -> Result<bool, Failure> {
    let interval = console.options.interval.unwrap_or(Duration::ZERO);
    let mut failed = false;
    let mut done = 0;
    while times.is_none_or(|times| done < times) {
        if done > 0 && !interval.is_zero() {
            console.session.pause(interval);
        }
        failed |= console.execute(words)?;
        done += 1;
        if failed && console.options.has_exit_code && !console.is_shell {
            break;
        }
    }
    Ok(failed)
}

/// Executes the lines of `input`, one after the other; one that is no command is said to be none.
pub(crate) fn lines(console: &mut Console<'_>, input: &mut dyn BufRead) -> Result<bool, Failure> {
    let mut failed = false;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = std::io::Read::take(&mut *input, LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.map_err(|error| Failure::Lost(format!("standard input: {error}")))? == 0 {
            break;
        }
        if line.len() as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
            return Err(Failure::Lost("a line of standard input is too long".to_owned()));
        }
        let Some(words) = split_words(&line) else {
            writeln!(console.out, "Invalid argument(s)")?;
            failed = true;
            continue;
        };
        let mut words: Vec<Vec<u8>> = words.as_args().iter().map(<[u8]>::to_vec).collect();
        let times = take_times(&mut words);
        if words.is_empty() {
            continue;
        }
        if ends(&words) {
            break;
        }
        failed |= repeat(console, &words, Some(times))?;
        if failed && console.options.has_exit_code {
            break;
        }
    }
    Ok(!(failed && console.options.has_exit_code))
}

/// Whether a line ends the shell.
pub(crate) fn ends(words: &[Vec<u8>]) -> bool {
    words.len() == 1 && ["quit", "exit"].iter().any(|word| words[0].eq_ignore_ascii_case(word.as_bytes()))
}

/// Takes off the number in front of a command, which is how often it is executed.
pub(crate) fn take_times(words: &mut Vec<Vec<u8>>) -> u64 {
    match words.first().filter(|_| words.len() > 1).and_then(|word| times_of(word)) {
        Some(times) => {
            words.remove(0);
            times
        }
        None => 1,
    }
}

/// The number that a word in front of a command is.
pub(crate) fn times_of(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_front_is_how_often() {
        let of = |line: &str| {
            let mut words = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            (take_times(&mut words), words.len())
        };
        assert_eq!(of("5 incr n"), (5, 2));
        assert_eq!(of("+5 incr n"), (5, 2));
        assert_eq!(of("incr n"), (1, 2));
        assert_eq!(of("5"), (1, 1));
        assert_eq!(of("-5 incr n"), (1, 3));
    }
}
