//! Generated rules: the same errors, and the same users afterwards.

use respool_access::{Users, answer};
use respool_command::{Categories, lookup_full};
use respool_testkit::Rng;
use respool_wire::ArgsBuf;

use crate::{ask_all, in_order, list_of, redis, reply, request, scale, set_user};

/// Lists of rules, each for one of a few users.
const ROUNDS: usize = 6_000;
/// As many are applied before all users are compared.
const STEP: usize = 60;
const NAMES: [&str; 5] = ["default", "a", "b", "long.name:with-signs", "\u{fc}"];

/// Rules that are words.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "on", "off", "ON", "nopass", "resetpass", "reset", "allkeys", "~*", "resetkeys", "allchannels", "&*", "resetchannels",
    "+@all", "-@all", "allcommands", "nocommands", "+@ALL", "sanitize-payload", "skip-sanitize-payload", "clearselectors",
];
/// Rules that are none, or hardly.
#[rustfmt::skip]
const ODD: &[&str] = &[
    "", "on ", "+", "-", "@read", "+@", "-@nothing", "+nothing", "-config|nothing", "+config|", "+get|", "+|", "+select|0",
    "+select|1", "+SELECT|0", "+get|A|b", "+config|get|x", "+nothing|x|y", "+a|b|c", "-select|0", "-config|get|x", "%", "%~a",
    "%R", "%RR~a", "%RWR~a", "%x~a", "%rw~*", "%R~*", "%W~*", "%WR~w*", "~a b", "&a b", "~", "&", "%R~", "#", "!", "#zz", "!0",
    "(", ")", "()", "( )", "(on)", "(nopass)", "(~a", "+get)", "(+get ~a) ", "((+get))", "('+get' \"~a\")", "(\"+get)",
    "(+get|x %R~q)", "(+@all -@write ~* &*)", "(%z~a)", "(+nothing)", "(\"\")", "<missing", "~*x", "&*x", "+debug|object",
    "on\0x", "+get\0x", "~a\0b", ">\0", "~*\0x", "(~a\0b)", "-@all\0", "\t", "+@read\t", "~\r\n",
];
const HASH: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn pattern(rng: &mut Rng) -> String {
    let pieces = ["a", "b", "*", "?", "[ab]", ":", "key", "\\*"];
    (0..rng.below(4)).map(|_| *rng.pick(&pieces)).collect()
}

/// A rule, mostly a valid one.
pub(crate) fn rule(rng: &mut Rng) -> Vec<u8> {
    let sign = *rng.pick(&["+", "-"]);
    let rows = crate::rows_of_redis();
    let text = match rng.below(16) {
        0 => (*rng.pick(WORDS)).to_owned(),
        1 => (*rng.pick(ODD)).to_owned(),
        2..7 => format!("{sign}{}", rng.pick(&rows).full_name()),
        7..10 => format!("{sign}@{}", rng.pick(Categories::ALL).1),
        10 => format!("~{}", pattern(rng)),
        11 => format!("%{}~{}", rng.pick(&["R", "W", "RW", "r", "w"]), pattern(rng)),
        12 => format!("&{}", pattern(rng)),
        13 => format!("{}{}", rng.pick(&[">", ">", "<"]), rng.pick(&["one", "two", "three", "test"])),
        14 => format!("{}{HASH}", rng.pick(&["#", "!"])),
        _ => {
            let rules: Vec<String> = (0..rng.below(4))
                .map(|_| match rng.below(5) {
                    0 => format!("~{}", pattern(rng)),
                    1 => format!("&{}", pattern(rng)),
                    2 => format!("{}@{}", rng.pick(&["+", "-"]), rng.pick(Categories::ALL).1),
                    3 => format!("+{}", rng.pick(&rows).full_name()),
                    _ => (*rng.pick(&["allkeys", "+@all", "resetkeys", "%R~r*"])).to_owned(),
                })
                .collect();
            format!("({})", rules.join(" "))
        }
    };
    text.into_bytes()
}

#[test]
fn rules_make_the_users_that_they_make_in_redis() {
    let Some(server) = redis() else { return };
    let mut client = server.client().expect("the server accepts");
    let mut rng = Rng::new(11);
    let mut users = Users::new();
    let (mut accepted, mut refused) = (0, 0);
    for step in 0..ROUNDS * scale() / STEP {
        let mut requests: Vec<ArgsBuf> = Vec::new();
        let mut ours = Vec::new();
        for _ in 0..STEP {
            // The default user stays as it is: the connection needs it.
            let name = *rng.pick(&NAMES[1..]);
            let rules: Vec<Vec<u8>> = (0..rng.between(1, 5)).map(|_| rule(&mut rng)).collect();
            let rules: Vec<&[u8]> = rules.iter().map(Vec::as_slice).collect();
            requests.push(request([&b"ACL"[..], b"SETUSER", name.as_bytes()].into_iter().chain(rules.iter().copied())));
            let (answered, next) = set_user(&users, name.as_bytes(), &rules);
            users = next;
            ours.push(answered);
        }
        for ((request, theirs), ours) in requests.iter().zip(ask_all(&mut client, &requests)).zip(ours) {
            let shown = |reply: &[u8]| reply.escape_ascii().to_string();
            assert_eq!(shown(&ours), shown(&theirs), "step {step}: {:?}", request.as_args());
            if ours.starts_with(b"+") { accepted += 1 } else { refused += 1 }
        }
        let theirs = ask_all(&mut client, &[request(["ACL", "LIST"]), request(["ACL", "USERS"])]);
        assert_eq!(in_order(&list_of(&users)), in_order(&theirs[0]), "step {step}");
        assert_eq!(reply(|out| answer::names(&users, out)), theirs[1]);
        for name in NAMES {
            let theirs = ask_all(&mut client, &[request(["ACL", "GETUSER", name])]);
            let ours = reply(|out| answer::user(&users, name.as_bytes(), out));
            assert_eq!(in_order(&ours), in_order(&theirs[0]), "step {step}: {name}");
        }
        if rng.below(4) == 0 {
            let name = *rng.pick(&NAMES);
            let theirs = ask_all(&mut client, &[request(["ACL", "DELUSER", name, name])]);
            let ours = match users.without([name.as_bytes(), name.as_bytes()].into_iter()) {
                Ok((next, removed)) => {
                    users = next;
                    reply(|out| out.integer(removed as i64))
                }
                Err(error) => {
                    let mut words = Vec::new();
                    error.write_text(&mut words);
                    reply(|out| out.error(&words))
                }
            };
            assert_eq!(ours, theirs[0], "{name}");
        }
    }
    eprintln!("{accepted} lists of rules were accepted, {refused} refused");
    assert!(accepted > 100 && refused > 100);
}

#[test]
fn categories_have_the_commands_that_they_have_in_redis() {
    let Some(server) = redis() else { return };
    let mut client = server.client().expect("the server accepts");
    let ask = |client: &mut respool_testkit::Client, words: &[&str]| ask_all(client, &[request(words)]).remove(0);
    assert_eq!(reply(|out| answer::categories(None, out)), ask(&mut client, &["ACL", "CAT"]));
    for name in Categories::ALL.iter().map(|(_, name)| *name).chain(["nothing", ""]) {
        let sorted = |text: String| {
            let mut names: Vec<String> = text.split("\r\n").map(str::to_owned).collect();
            names.retain(|name| lookup_full(name.as_bytes()).is_none_or(crate::is_of_redis));
            names.retain(|name| !name.starts_with('$'));
            names.sort_unstable();
            names.retain(|name| !name.starts_with('*'));
            names
        };
        let ours = reply(|out| answer::categories(Some(name.as_bytes()), out));
        let theirs = ask(&mut client, &["ACL", "CAT", name]);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(sorted(text(&ours)), sorted(text(&theirs)), "{name}");
    }
    for bits in ["0", "-1", "1", "4097", "x", "", "01", "256", "5"] {
        let theirs = ask(&mut client, &["ACL", "GENPASS", bits]);
        match answer::password_digits(Some(bits.as_bytes())) {
            Ok(digits) => assert!(theirs.starts_with(format!("${digits}\r\n").as_bytes()), "{bits}"),
            Err(words) => assert_eq!(reply(|out| out.error(&words)), theirs, "{bits}"),
        }
    }
}
