//! Which lines the history keeps: none that may hold a password.

use respool_command::{is_secret_argument, resolve};
use respool_wire::{ArgsBuf, split_words};

/// Whether a line may be kept: one that is a request (with a number of repetitions in front, perhaps) without an argument that may be a
/// secret. A line whose quotes are open may be anything, and is not kept.
pub fn is_kept(line: &str) -> bool {
    let Some(words) = split_words(line.as_bytes()) else { return false };
    let words = words.as_args();
    if words.is_empty() {
        return false;
    }
    let is_number = words.name().iter().all(u8::is_ascii_digit);
    let args: ArgsBuf = words.from(usize::from(is_number)).iter().collect();
    let args = args.as_args();
    if args.is_empty() {
        return true;
    }
    let Ok(row) = resolve(args) else { return true };
    !(0..args.len()).any(|place| is_secret_argument(row, args, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_secrets_are_not_kept() {
        for line in [
            "AUTH canary",
            "auth u canary",
            "  AuTh canary",
            "3 auth canary",
            "AUTH \"canary",
            "\"AUTH\" canary",
            "hello 3 auth u canary",
            "hello 3 setname n auth u canary",
            "acl setuser u >canary",
            "config set requirepass canary",
            "config set hz 7 masterauth canary",
            "migrate h 1 key 0 5000 auth canary",
            "migrate h 1 key 0 5000 auth2 u canary",
            "",
            "   ",
        ] {
            assert!(!is_kept(line), "{line:?}");
        }
    }

    #[test]
    fn other_lines_are_kept() {
        for line in
            ["get auth", "5 incr n", "hello 3", "acl whoami", "config set hz 7", "nosuch x", "set k \"a b\"", "auth"]
        {
            assert!(is_kept(line), "{line:?}");
        }
    }
}
