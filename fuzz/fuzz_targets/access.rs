//! Rules and ACL files of any bytes: nothing panics, what is refused changes nothing, and what is accepted is told in rules
//! that make the same user again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use respool_access::{Users, answer, diff, file};
use respool_command::{KeyPositions, Renames, resolve};
use respool_wire::{ArgsBuf, Encoder, Protocol};

fuzz_target!(|data: &[u8]| {
    let mut lines = data.split(|byte| *byte == b'\n');
    let request: ArgsBuf = lines.next().unwrap_or_default().split(|byte| *byte == b' ').collect();
    let mut users = Users::new();
    for (number, line) in lines.take(8).enumerate() {
        let name = [b'a' + (number % 2) as u8];
        let rules: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let before = file::text(&users);
        match users.with_rules(&name, &rules) {
            Ok(next) => users = next,
            Err(error) => {
                let mut words = Vec::new();
                error.write_text(&mut words);
                assert!(!words.is_empty() && file::text(&users) == before);
            }
        }
    }
    let has_odd_bytes = || data.iter().any(|byte| !matches!(byte, b'\n' | b' '..=b'~'));
    match file::savable_text(&users) {
        Ok(text) => {
            let again = file::users(&text, "f", false).expect("it is our own");
            assert_eq!(file::text(&again), file::text(&users));
        }
        // A rule ends at a blank.
        Err(_) => assert!(has_odd_bytes() || data.contains(&b'|')),
    }
    // Words that are split with quotes can be any text.
    assert!(file::directives(&users).is_ok() || has_odd_bytes());
    let successor = diff::applied(&Users::new(), &diff::between(&Users::new(), &users)).expect("it is our own");
    assert!(diff::between(&users, &successor).is_empty(), "every user is as it was");
    let _ = diff::applied(&users, data);
    let args = request.as_args();
    for name in [&b"a"[..], b"b", b"default"] {
        let mut out = Vec::new();
        answer::user(&users, name, &mut Encoder::new(&mut out, Protocol::Resp3));
        answer::dry_run(&users, name, args, &Renames::default(), &mut Encoder::new(&mut out, Protocol::Resp3));
        let _ = users.authenticate(name, args.name());
        if let (Some(user), Ok(row)) = (users.user(name), resolve(args))
            && row.accepts(args.len())
        {
            let mut positions = KeyPositions::new();
            let is_allowed = user.check(row, args, &mut positions).is_ok();
            assert!(is_allowed || !user.is_all_powerful());
            let _ = user.may_read_every_key(row, args, &mut positions);
        }
    }
    let _ = file::users(data, "f", true);
});
