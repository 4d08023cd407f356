//! ACL files: what Redis writes is read here and written back alike; what is wrong is worded alike.

#![expect(clippy::disallowed_methods, reason = "a test has to make the files that Redis reads")]

use respool_access::{Users, file};
use respool_testkit::{Rng, TempDir};

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

#[test]
fn files_are_read_as_redis_reads_them() {
    let directory = TempDir::new().expect("a directory can be made");
    let path = directory.join("users.acl");
    let shown = path.display().to_string();
    std::fs::write(&path, "user default on nopass ~* &* +@all\n").expect("the file can be written");
    let Some(server) = reference_server(&["--aclfile", &shown]) else { return };
    let mut client = server.client().expect("the server accepts");
    let mut rng = Rng::new(13);
    let (mut taken, mut refused) = (0, 0);
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
            }
            Err(error) => {
                let ours = crate::reply(|out| out.error(format!("ERR {error}").as_bytes()));
                let shown = |reply: &[u8]| reply.escape_ascii().to_string();
                assert_eq!(shown(&ours), shown(&theirs), "round {round}: {}", text.escape_ascii());
                refused += 1;
            }
        }
    }
    eprintln!("{taken} files were taken, {refused} refused");
    assert!(taken > 20 && refused > 20);
    assert_eq!(Users::new().len(), 1);
}
