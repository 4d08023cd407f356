//! ACL files: what Redis writes is read here and written back alike; what is wrong is worded alike.

#![expect(clippy::disallowed_methods, reason = "a test has to make the files that Redis reads")]

use respool_access::{Users, file};
use respool_command::lookup_full;
use respool_testkit::{Client, Rng, TempDir};
use std::path::Path;

use crate::{ask_all, in_order, list_of, reference_server, request, scale};

const ROUNDS: usize = 150;

fn line(rng: &mut Rng) -> Vec<u8> {
    let mut line = match rng.below(20) {
        0 => {
            return (*rng.pick(&["", "  ", "user", "User a on", "hello", "# comment", "user a  on", "\tuser c on\t"]))
                .into();
        }
        1 => b"user bad\x0bname on".to_vec(),
        _ => format!("user {}", rng.pick(&["a", "b", "c", "d", "e", "f", "g", "h", "default"])).into_bytes(),
    };
    for _ in 0..rng.below(6) {
        let rule = crate::rules::rule(rng);
        // Redis reads the file with C's line functions, and crashes on what it finds to be an unclosed selector.
        let is_readable = !rule.contains(&0) && !rule.contains(&b'\n');
        let is_closed = rule.first() != Some(&b'(') || rule.last() == Some(&b')');
        if is_readable && is_closed && !rule.is_empty() {
            line.push(b' ');
            line.extend_from_slice(&rule);
        }
    }
    line
}

fn load(client: &mut Client, path: &Path, text: &[u8]) {
    std::fs::write(path, text).expect("the file can be written");
    let reply = ask_all(client, &[request(["ACL", "LOAD"])]).remove(0);
    assert_eq!(reply, b"+OK\r\n", "{}: {}", text.escape_ascii(), reply.escape_ascii());
}

/// Rules that Redis itself writes down in a way that it does not read again, or reads as others.
#[test]
fn redis_reads_what_it_would_write_otherwise() {
    let directory = TempDir::new().expect("a directory can be made");
    let path = directory.join("users.acl");
    std::fs::write(&path, "user default on nopass ~* &* +@all\n").expect("the file can be written");
    let Some(server) = reference_server(&["--aclfile", &path.display().to_string()]) else { return };
    let mut client = server.client().expect("the server accepts");
    let all: [&[&[u8]]; 7] = [
        &[b"(&c) +get)"],
        &[b"(~a +get &c))"],
        &[br#"("~a\"b" "~a\"" +get)"#],
        &[br#"("~a\x29" +get)"#, br#"('~"' +set)"#],
        &[b"(+get|) ~a)", b"+set|)"],
        &[b"%RW~*", b"~a"],
        &[b"+@all", b"-@dangerous", b"+info"],
    ];
    for rules in all {
        let users = Users::new().with_rules(b"a", rules).expect("the rules are valid");
        let text = file::savable_text(&users).expect("they can be told");
        load(&mut client, &path, &text);
        let list = ask_all(&mut client, &[request(["ACL", "LIST"])]).remove(0);
        assert_eq!(in_order(&list_of(&users)), in_order(&list), "{}", text.escape_ascii());
    }
}

#[test]
fn files_are_read_as_redis_reads_them() {
    let directory = TempDir::new().expect("a directory can be made");
    let path = directory.join("users.acl");
    let shown = path.display().to_string();
    std::fs::write(&path, "user default on nopass ~* &* +@all\n").expect("the file can be written");
    let Some(server) = reference_server(&["--aclfile", &shown]) else { return };
    let mut client = server.client().expect("the server accepts");
    let mut rng = Rng::new(13);
    let (mut taken, mut refused, mut written) = (0, 0, 0);
    for round in 0..ROUNDS * scale() {
        // The default user of the connection must stay.
        let mut text = b"user default on nopass ~* &* +@all\n".to_vec();
        for _ in 0..rng.below(5) {
            let line = line(&mut rng);
            if !line.starts_with(b"user default") {
                text.extend_from_slice(&line);
                text.push(b'\n');
            }
        }
        std::fs::write(&path, &text).expect("the file can be written");
        let theirs = ask_all(&mut client, &[request(["ACL", "LOAD"])]).remove(0);
        match file::users(&text, &shown, false) {
            Ok(users) => {
                assert_eq!(theirs, b"+OK\r\n", "round {round}: {}", text.escape_ascii());
                taken += 1;
                let list = ask_all(&mut client, &[request(["ACL", "LIST"])]).remove(0);
                assert_eq!(in_order(&list_of(&users)), in_order(&list), "round {round}");
                ask_all(&mut client, &[request(["ACL", "SAVE"])]);
                let saved = std::fs::read(&path).expect("it was written");
                let again = file::users(&saved, &shown, false).expect("Redis writes what can be read");
                assert_eq!(file::text(&again), file::text(&users), "round {round}");
                // And the other way round: Redis reads what is written here, but for commands that it does not have.
                let is_known = |word: &[u8]| {
                    let row = lookup_full(word.get(1..).unwrap_or_default());
                    row.is_none_or(crate::is_of_redis)
                };
                let text = file::savable_text(&users).ok();
                if let Some(text) = text.filter(|text| text.split(|byte| b" )\n".contains(byte)).all(is_known)) {
                    written += 1;
                    load(&mut client, &path, &text);
                    let list = ask_all(&mut client, &[request(["ACL", "LIST"])]).remove(0);
                    assert_eq!(in_order(&list_of(&users)), in_order(&list), "round {round}");
                }
            }
            Err(error) => {
                let ours = crate::reply(|out| out.error(format!("ERR {error}").as_bytes()));
                let shown = |reply: &[u8]| reply.escape_ascii().to_string();
                assert_eq!(shown(&ours), shown(&theirs), "round {round}: {}", text.escape_ascii());
                refused += 1;
            }
        }
    }
    eprintln!("{taken} files were taken, {refused} refused, {written} written");
    assert!(taken > 20 && refused > 20 && written > 20);
    assert_eq!(Users::new().len(), 1);
}
