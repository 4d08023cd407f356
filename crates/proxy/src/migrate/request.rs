//! MIGRATE in words.

use crate::integer::integer;
use crate::interfaces::transfer::TransferTarget;
use crate::limits::{MIGRATE_TIMEOUT_MS, MIGRATE_TIMEOUT_MS_MAX};
use respool_command::text as texts;
use respool_wire::{Args, ArgsBuf, SecretArgs};
use std::ops::Range;
use std::sync::Arc;

/// As Redis says it.
const KEY_AND_KEYS: &str = "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string";

/// What a client wants to be moved.
#[derive(Debug)]
pub(super) struct MigrateRequest {
    /// Its words.
    pub(super) args: SecretArgs,
    /// The keys among them.
    pub(super) keys: Range<usize>,
    /// The keys stay here.
    pub(super) is_copy: bool,
    /// Keys of the same names there make room.
    pub(super) is_replacing: bool,
    pub(super) target: Arc<TransferTarget>,
}

impl MigrateRequest {
    /// `Err`: the error that the client is told.
    pub(super) fn read(args: Args<'_>) -> Result<Self, &'static str> {
        let (mut is_copy, mut is_replacing, mut auth, mut keys) = (false, false, None, 3..4);
        let mut at = 6;
        while let Some(word) = args.get(at) {
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            // Words of the option, its name included.
            let mut taken = 1;
            if is("COPY") {
                is_copy = true;
            } else if is("REPLACE") {
                is_replacing = true;
            } else if is("AUTH") || is("AUTH2") {
                taken = if is("AUTH") { 2 } else { 3 };
                auth = Some(auth_request(args, at + 1..at + taken).ok_or(texts::SYNTAX)?);
            } else if is("KEYS") {
                if !args.at(3).is_empty() {
                    return Err(KEY_AND_KEYS);
                }
                keys = at + 1..args.len();
                break;
            } else {
                return Err(texts::SYNTAX);
            }
            at += taken;
        }
        let timeout = integer(args.at(5)).ok_or(texts::NOT_AN_INTEGER)?;
        let target = TransferTarget {
            host: args.at(1).to_vec(),
            port: args.at(2).to_vec(),
            database: integer(args.at(4)).ok_or(texts::NOT_AN_INTEGER)?,
            timeout_ms: u64::try_from(timeout)
                .ok()
                .filter(|ms| *ms > 0)
                .unwrap_or(MIGRATE_TIMEOUT_MS)
                .min(MIGRATE_TIMEOUT_MS_MAX),
            auth,
        };
        Ok(Self { args: args.into(), keys, is_copy, is_replacing, target: Arc::new(target) })
    }

    /// The key that stands there.
    pub(super) fn key(&self, at: usize) -> &[u8] {
        self.args.as_args().at(at)
    }
}

/// AUTH with these words. `None`: they are not all there.
fn auth_request(args: Args<'_>, words: Range<usize>) -> Option<SecretArgs> {
    let mut auth = ArgsBuf::new();
    auth.push(b"AUTH");
    for at in words {
        auth.push(args.get(at)?);
    }
    let secret = SecretArgs::from(auth.as_args());
    auth.wipe();
    Some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_command::{KeyPositions, resolve};

    fn read(words: &str) -> Result<MigrateRequest, &'static str> {
        let args: ArgsBuf = words.split(' ').map(|word| word.replace("\"\"", "")).collect();
        MigrateRequest::read(args.as_args())
    }

    #[test]
    fn options_are_read_in_any_order_until_keys() {
        let request = read("MIGRATE h 1 k 2 30 replace AUTH2 user canary COPY").expect("it is sound");
        assert!(request.is_copy && request.is_replacing);
        assert_eq!((request.keys.clone(), request.key(3)), (3..4, &b"k"[..]));
        let auth = request.target.auth.as_ref().expect("it has a password").as_args().iter().collect::<Vec<_>>();
        assert_eq!(auth, [&b"AUTH"[..], b"user", b"canary"]);
        assert_eq!((request.target.database, request.target.timeout_ms), (2, 30));
        let request = read("MIGRATE h 1 \"\" 0 10 AUTH KEYS keys COPY REPLACE").expect("it is sound");
        assert_eq!((request.keys, request.is_copy), (9..11, false), "AUTH takes the word behind it");
        assert_eq!(read("MIGRATE h 1 \"\" 0 10 KEYS").expect("it is sound").keys.len(), 0);
    }

    #[test]
    fn a_timeout_that_is_none_is_a_second() {
        for (given, ms) in [("0", 1000), ("-5", 1000), ("7", 7), ("9223372036854775807", MIGRATE_TIMEOUT_MS_MAX)] {
            assert_eq!(read(&format!("MIGRATE h 1 k 0 {given}")).expect("it is sound").target.timeout_ms, ms);
        }
    }

    #[test]
    fn mistakes_have_the_texts_of_redis() {
        for (words, error) in [
            ("MIGRATE h 1 k 0 10 AUTH", texts::SYNTAX),
            ("MIGRATE h 1 k 0 10 AUTH2 user", texts::SYNTAX),
            ("MIGRATE h 1 k 0 10 NOSUCH", texts::SYNTAX),
            ("MIGRATE h 1 k x 10 NOSUCH", texts::SYNTAX),
            ("MIGRATE h 1 k 0 10 KEYS a", KEY_AND_KEYS),
            ("MIGRATE h 1 k x 10", texts::NOT_AN_INTEGER),
            ("MIGRATE h 1 k 0 x", texts::NOT_AN_INTEGER),
        ] {
            assert_eq!(read(words).expect_err("it is a mistake"), error, "{words}");
        }
    }

    #[test]
    fn its_keys_are_those_that_are_routed_and_permitted() {
        for words in ["MIGRATE h 1 k 0 10", "MIGRATE h 1 \"\" 0 10 COPY AUTH KEYS KEYS a b"] {
            let args: ArgsBuf = words.split(' ').map(|word| word.replace("\"\"", "")).collect();
            let row = resolve(args.as_args()).expect("it is a command");
            let mut found = KeyPositions::default();
            row.keys.positions(args.as_args(), &mut found).expect("it has keys");
            let found: Vec<usize> = found.as_slice().iter().map(|key| key.index as usize).collect();
            assert_eq!(read(words).expect("it is sound").keys.collect::<Vec<_>>(), found, "{words}");
        }
    }
}
