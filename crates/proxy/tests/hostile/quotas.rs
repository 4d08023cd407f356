//! What users may ask for in a second, and which of them it is charged to.

use crate::bench::{Bench, request, users};
use crate::support::config;
use respool_command::{Execute, Millis, Outcome, Row, SessionView};
use respool_connection::ConnId;
use respool_proxy::UserLimits;
use respool_proxy::hooks::Hooks;
use respool_wire::{Args, Encoder};

const SECOND_US: u64 = 1_000_000;
const LARGE: usize = 50_000;

/// A proxy with a user that may send and receive 1,000 bytes in a second, and two clients of it that have asked for something already.
fn bench() -> (Bench<crate::NoEngine>, [ConnId; 2]) {
    let limits = UserLimits { bytes_per_second: Some(1_000), ..UserLimits::default() };
    let mut bench = Bench::of_many(config(1, 1), 1, users(&[("bob", limits)]));
    let clients = [bench.accept(), bench.accept()];
    for client in clients {
        bench.ask(client, &["GET", "k"]);
        bench.connect();
        serve(&mut bench, 1);
        assert_eq!(bench.heard(client), "$1\r\nx\r\n");
    }
    (bench, clients)
}

/// Nodes answer each GET with so many bytes.
fn serve(bench: &mut Bench<crate::NoEngine>, bytes: usize) {
    for node in bench.nodes.clone() {
        let gets = bench.heard(node).matches("GET\r\n").count();
        let reply = format!("${bytes}\r\n{}\r\n", "x".repeat(bytes));
        bench.send(node, reply.repeat(gets).as_bytes());
    }
    bench.turn(|_| ());
}

/// For how many seconds the user owes something: a client of it is not read.
fn owed_s(bench: &mut Bench<crate::NoEngine>, client: ConnId) -> u64 {
    assert_eq!(bench.answer(client, &["AUTH", "bob", "secret"]), "+OK\r\n");
    bench.ask(client, &["GET", "k"]);
    for second in 0..200 {
        serve(bench, 1);
        if !bench.heard(client).is_empty() {
            return second;
        }
        for _ in 0..10 {
            bench.wait(SECOND_US / 10);
            bench.turn(|_| ());
        }
    }
    200
}

#[test]
fn replies_are_charged_to_the_user_that_has_asked_for_them() {
    let (get, bob) = (request(&["GET", "k"]), request(&["AUTH", "bob", "secret"]));
    let of_large = format!("${LARGE}\r\n");
    // Asked for by the default user, which becomes the other one in the same breath.
    let (mut bench, [client, other]) = self::bench();
    bench.send(client, &[get.clone(), bob.clone()].concat());
    serve(&mut bench, LARGE);
    let heard = bench.heard(client);
    assert!(heard.starts_with(&of_large) && heard.ends_with("+OK\r\n"), "{}", heard.len());
    assert_eq!(owed_s(&mut bench, other), 0);
    // Asked for by the user, whose client is the default one by the time that the reply comes.
    let (mut bench, [client, other]) = self::bench();
    bench.send(client, &[bob, get, request(&["AUTH", "default", "any"])].concat());
    serve(&mut bench, LARGE);
    let heard = bench.heard(client);
    assert!(heard.contains(&of_large) && heard.ends_with("+OK\r\n"), "{}", heard.len());
    let owed = owed_s(&mut bench, other);
    assert!((LARGE as u64 / 1_000 - 2..LARGE as u64 / 1_000 + 2).contains(&owed), "{owed} s");
}

/// An engine that answers at once, in the turn in which it is asked.
#[derive(Debug, Default)]
struct Prompt;

const PROMPT: usize = 10_000;

impl Execute for Prompt {
    fn execute(&mut self, _: &'static Row, _: Args<'_>, _: &mut SessionView, reply: &mut Encoder<'_>) -> Outcome {
        reply.bulk(&[b'x'; PROMPT]);
        Outcome::Done
    }

    fn tick(&mut self, _: Millis) -> Option<Millis> {
        None
    }
}

#[test]
fn a_reset_pays_for_no_reply() {
    let limits = UserLimits { bytes_per_second: Some(1_000), ..UserLimits::default() };
    let access = users(&[("bob", limits)]);
    // A client that resets its session is no user's then.
    let is_off: [&[u8]; 1] = [b"off"];
    access.change(|users| users.with_rules(b"default", &is_off).map(|users| (users, ()))).unwrap();
    let mut bench = Bench::server_with(config(1, 1), Prompt, access, Hooks::default());
    let (get, bob) = (request(&["GET", "k"]), request(&["AUTH", "bob", "secret"]));
    let client = bench.accept();
    bench.send(client, &[bob.clone(), get.clone(), request(&["RESET"]), bob, get].concat());
    assert!(bench.heard(client).ends_with("+RESET\r\n+OK\r\n"));
    let mut seconds = 0;
    while bench.heard(client).is_empty() {
        seconds += 1;
        assert!(seconds < 100, "it is read again");
        bench.pass(SECOND_US);
    }
    assert!((PROMPT as u64 / 1_000 - 2..PROMPT as u64 / 1_000 + 2).contains(&seconds), "{seconds} s");
}
