//! Which lines the history keeps: none that may hold a password.

use respool_command::{Command, ProxyCommand, ServerCommand, is_secret_argument, resolve};
use respool_wire::{Args, ArgsBuf, split_words};

use crate::once::times_of;

/// What is in the words of requests that hold secrets.
const SECRET_WORDS: [&[u8]; 4] = [b"auth", b"pass", b"secret", b"token"];

/// Whether a line may be kept: one that is a request (with a number of repetitions in front, perhaps) without an argument that may be a
/// secret. A line whose quotes are open may be anything, and is not kept. Of a command that the table does not know, one that looks as if
/// it had to do with secrets is not kept either.
pub fn is_kept(line: &str) -> bool {
    let Some(words) = split_words(line.as_bytes()) else { return false };
    let words = words.as_args();
    if words.is_empty() {
        return false;
    }
    let has_number = words.len() > 1 && times_of(words.name()).is_some();
    let args: ArgsBuf = words.from(usize::from(has_number)).iter().collect();
    is_kept_request(args.as_args())
}

fn is_kept_request(args: Args<'_>) -> bool {
    match resolve(args) {
        // What they are asked about is a request of its own.
        Ok(row) if is_about_request(row.command) => args.len() < 3 || is_kept_request(args.from(2)),
        Ok(row) => !(0..args.len()).any(|place| is_secret_argument(row, args, place)),
        Err(_) => args.len() == 1 || !may_hold_secret(args),
    }
}

fn is_about_request(command: Command) -> bool {
    use ServerCommand::{CommandGetkeys, CommandGetkeysandflags};
    let server = [CommandGetkeys, CommandGetkeysandflags].map(Command::Server);
    command == Command::Proxy(ProxyCommand::ProxyExplain) || server.contains(&command)
}

/// Whether a command that is in no table may hold a secret: one of a sentinel or a module, or one that is misspelled.
fn may_hold_secret(args: Args<'_>) -> bool {
    args.iter().any(|word| {
        // The rules of a user that set a password.
        let is_rule = matches!(word.first(), Some(b'>' | b'<' | b'#'));
        let word = word.to_ascii_lowercase();
        is_rule || SECRET_WORDS.iter().any(|secret| word.windows(secret.len()).any(|part| part == *secret))
    })
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
            "+3 auth canary",
            "-3 auth canary",
            "99999999999999999999 auth canary",
            "auth u canary more",
            "SENTINEL SET m auth-pass canary",
            "+3 sentinel set m AUTH-PASS canary",
            "SENTINEL CONFIG SET sentinel-pass canary",
            "nosuch api-token canary",
            "nosuch my_secret canary",
            "acl setusr u >canary",
            "proxy explain auth canary",
            "command getkeys migrate h 1 key 0 5000 auth canary",
            "",
            "   ",
        ] {
            assert!(!is_kept(line), "{line:?}");
        }
    }

    #[test]
    fn other_lines_are_kept() {
        for line in [
            "get auth",
            "5 incr n",
            "hello 3",
            "acl whoami",
            "config set hz 7",
            "nosuch x",
            "set k \"a b\"",
            "auth",
            "get pass",
            "5",
            "proxy explain get k",
        ] {
            assert!(is_kept(line), "{line:?}");
        }
    }
}
