//! Scripts that an engine in this process leaves for others: whatever becomes of their client meanwhile, they go on, and their reply
//! answers their own request and no other.

use crate::bench::{Bench, request};
use crate::support::config;
use respool_command::{Categories, Change, Execute, Millis, Outcome, Row, SessionView, Wanted};
use respool_connection::{ConnId, Machine, Service};
use respool_proxy::hooks::{Hooks, ProcessUsage};
use respool_proxy::limits::MONITOR_OUTPUT_BYTES_MAX;
use respool_proxy::{Access, Config, Mail};
use respool_wire::{Args, ArgsBuf, Encoder};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// One script runs at a time. One that is called `late` does so until it is let go, and answers with its argument.
#[derive(Debug, Default)]
struct Slow {
    running: Option<(u64, Vec<u8>)>,
    is_let_go: Arc<AtomicBool>,
    /// How often a script has gone on.
    slices: Arc<AtomicUsize>,
    /// What SET has written, in its order.
    written: Arc<Mutex<Vec<String>>>,
    /// The late script reads `k`, and changes it in its first slice: whether that has been told.
    is_change_due: bool,
    /// The next request finds no room, and `k` goes.
    is_full: Arc<AtomicBool>,
    is_loss_due: bool,
    /// Whether calls of scripts are kept, and those that are.
    is_watched: bool,
    calls: Arc<Mutex<Vec<ArgsBuf>>>,
}

impl Execute for Slow {
    fn execute(
        &mut self,
        row: &'static Row,
        args: Args<'_>,
        view: &mut SessionView,
        reply: &mut Encoder<'_>,
    ) -> Outcome {
        if let Some((owner, said)) = &self.running {
            if !view.has_waited || view.client_id != *owner {
                reply.error(b"BUSY one runs");
                return Outcome::Done;
            }
            let slice = self.slices.fetch_add(1, Ordering::Relaxed);
            self.is_change_due |= slice == 0;
            let slice = slice.to_string();
            if self.is_watched {
                self.calls.lock().unwrap().push([b"GET".as_slice(), slice.as_bytes()].into_iter().collect());
            }
            if !self.is_let_go.load(Ordering::Relaxed) {
                return Outcome::Unfinished;
            }
            reply.bulk(said);
            self.running = None;
            return Outcome::Done;
        }
        match row.name {
            "EVAL" if args.at(1) == b"late" => {
                self.running = Some((view.client_id, args.at(3).to_vec()));
                return Outcome::Unfinished;
            }
            "EVAL" => reply.bulk(args.at(3)),
            "GET" => reply.bulk(b"v"),
            "BLPOP" => reply.null_array(),
            // The sections that an engine writes itself.
            "INFO" => reply.bulk(b""),
            "SET" => {
                self.written.lock().unwrap().push(String::from_utf8_lossy(args.at(1)).into_owned());
                reply.simple("OK");
            }
            other => unreachable!("{other} is not asked"),
        }
        Outcome::Done
    }

    fn tick(&mut self, _: Millis) -> Option<Millis> {
        None
    }

    fn changes(&mut self, _: Wanted, see: &mut dyn FnMut(Change<'_>)) {
        if std::mem::take(&mut self.is_change_due) {
            see(Change::Key(b"k"));
        }
        if std::mem::take(&mut self.is_loss_due) {
            see(Change::Lost(b"k"));
        }
    }

    fn make_room(&mut self, _: Millis) -> bool {
        self.is_loss_due |= self.is_full.swap(false, Ordering::Relaxed);
        true
    }

    fn script_reads(&mut self) -> Option<Vec<Box<[u8]>>> {
        Some(vec![Box::from(&b"k"[..])])
    }

    fn watch_scripts(&mut self, is_watched: bool) {
        self.is_watched = is_watched;
        self.calls.lock().unwrap().clear();
    }

    fn script_lines(&mut self) -> Vec<(u32, ArgsBuf)> {
        self.calls.lock().unwrap().drain(..).map(|call| (0, call)).collect()
    }
}

struct Server {
    bench: Bench<Slow>,
    access: Arc<Access>,
    operator: ConnId,
    /// The client of the late script, which is user `bob`.
    client: ConnId,
    number: String,
    is_let_go: Arc<AtomicBool>,
    slices: Arc<AtomicUsize>,
    written: Arc<Mutex<Vec<String>>>,
}

/// Busy with the script of a client, which has sent these requests in one write.
fn busy(hooks: Hooks, sent: &[&[&str]]) -> Server {
    busy_with(settings(), hooks, sent)
}

fn busy_with(settings: Config, hooks: Hooks, sent: &[&[&str]]) -> Server {
    let access = Arc::new(Access::default());
    set_rules(&access, b"+eval");
    let engine = Slow::default();
    let (is_let_go, slices) = (Arc::clone(&engine.is_let_go), Arc::clone(&engine.slices));
    let written = Arc::clone(&engine.written);
    let mut bench = Bench::server_with(settings, engine, Arc::clone(&access), hooks);
    let [operator, client] = [bench.accept(), bench.accept()];
    let number = bench.answer(client, &["CLIENT", "ID"]).trim_start_matches(':').trim_end().to_owned();
    assert_eq!(bench.answer(client, &["AUTH", "bob", "secret"]), "+OK\r\n");
    let sent: Vec<u8> = sent.iter().flat_map(|words| request(words)).collect();
    bench.send(client, &sent);
    Server { bench, access, operator, client, number, is_let_go, slices, written }
}

fn set_rules(access: &Access, last: &[u8]) {
    let rules: [&[u8]; 8] = [b"on", b">secret", b"resetkeys", b"~*", b"-@all", b"+get", b"+set", last];
    let with_exec: Vec<&[u8]> = rules.into_iter().chain([b"+multi".as_slice(), b"+exec"]).collect();
    access.change(|users| users.with_rules(b"bob", &with_exec).map(|users| (users, ()))).unwrap();
}

const FIRST: &[&str] = &["EVAL", "late", "0", "1"];
const SECOND: &[&str] = &["EVAL", "soon", "0", "2"];

impl Server {
    /// The script ends; what its client is answered.
    fn let_go(&mut self) -> String {
        self.is_let_go.store(true, Ordering::Relaxed);
        self.bench.turn(|_| ());
        self.bench.heard(self.client)
    }

    fn reload(&mut self) {
        let same = Arc::new(settings());
        self.bench.turn(|worker| worker.handle_mail(Mail::Reload(same)));
    }

    /// Whether the script goes on in a turn.
    fn goes_on(&mut self) -> bool {
        let before = self.slices.load(Ordering::Relaxed);
        self.bench.turn(|_| ());
        self.slices.load(Ordering::Relaxed) > before
    }
}

fn settings() -> Config {
    let mut settings = config(1, 1);
    settings.nodes = Vec::new();
    settings.timeouts.pause_us = 50_000;
    settings
}

/// Others are told while it goes on, and may not read the old value for as long as it likes.
#[test]
fn a_late_script_tells_its_own_client_behind_its_reply() {
    const INVALID: &str = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n";
    for (options, told) in [(&["ON"][..], INVALID), (&["ON", "NOLOOP"], "")] {
        let engine = Slow::default();
        let is_let_go = Arc::clone(&engine.is_let_go);
        let mut bench = Bench::server(settings(), engine);
        let [runner, other] = [bench.accept(), bench.accept()];
        for client in [runner, other] {
            bench.ask(client, &["HELLO", "3"]);
            bench.ask(client, &[&["CLIENT", "TRACKING"], options].concat());
            bench.ask(client, &["GET", "k"]);
            bench.heard(client);
        }
        bench.ask(runner, FIRST);
        bench.turn(|_| ());
        bench.turn(|_| ());
        assert_eq!(bench.heard(other), INVALID);
        // What it had read itself before.
        assert_eq!(bench.heard(runner), told);
        is_let_go.store(true, Ordering::Relaxed);
        bench.turn(|_| ());
        assert_eq!(bench.heard(runner), format!("$1\r\n1\r\n{told}"), "what the script has read");
        assert_eq!(bench.heard(other), "");
    }
}

#[test]
fn keys_that_make_room_are_told_of_before_any_reply() {
    for (words, answer) in
        [(SECOND, "$1\r\n2\r\n"), (&["BLPOP", "l", "0"], "_\r\n"), (&["GET", "other"], "$1\r\nv\r\n")]
    {
        let engine = Slow::default();
        let is_full = Arc::clone(&engine.is_full);
        let mut bench = Bench::server(settings(), engine);
        let client = bench.accept();
        for words in [&["HELLO", "3"][..], &["CLIENT", "TRACKING", "ON", "NOLOOP"], &["GET", "k"]] {
            bench.ask(client, words);
        }
        bench.heard(client);
        is_full.store(true, Ordering::Relaxed);
        bench.ask(client, words);
        let told = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n";
        assert_eq!(bench.heard(client), format!("{told}{answer}"), "{words:?}");
    }
}

#[test]
fn rights_lost_amid_a_late_script_are_for_the_next_request() {
    let mut server = busy(Hooks::default(), &[FIRST, SECOND]);
    set_rules(&server.access, b"-eval");
    server.reload();
    server.bench.turn(|_| ());
    assert_eq!(server.bench.heard(server.client), "", "nothing is answered before it has ended");
    let heard = server.let_go();
    assert!(heard.starts_with("$1\r\n1\r\n-NOPERM "), "{heard}");
}

#[test]
fn a_late_script_is_answered_in_its_own_place_only() {
    let mut server = busy(Hooks::default(), &[FIRST]);
    set_rules(&server.access, b"-eval");
    server.reload();
    set_rules(&server.access, b"+eval");
    server.reload();
    server.bench.ask(server.client, SECOND);
    let mut heard = server.let_go();
    // What was sent meanwhile may be read only now.
    server.bench.ask(server.client, SECOND);
    heard.push_str(&server.bench.heard(server.client));
    assert!(heard.starts_with("$1\r\n1\r\n$1\r\n2\r\n"), "{heard}");
}

#[test]
fn a_hook_is_asked_once_about_a_script_that_is_late() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let judge = move |_: &_, _: &'static Row, _: Args<'_>| match counted.fetch_add(1, Ordering::Relaxed) {
        0 => Ok(()),
        _ => Err("ERR not now".to_owned()),
    };
    let hooks = Hooks::default().on_request(Categories::named(b"scripting").expect("it is one"), judge);
    let mut server = busy(hooks, &[FIRST]);
    assert!(server.goes_on());
    assert_eq!((server.let_go().as_str(), asked.load(Ordering::Relaxed)), ("$1\r\n1\r\n", 1));
}

#[test]
fn an_operator_who_pauses_does_not_hold_a_script_that_is_late() {
    let mut server = busy(Hooks::default(), &[FIRST]);
    assert_eq!(server.bench.answer(server.operator, &["PROXY", "PAUSE"]), "+OK\r\n");
    server.bench.pass(500_000);
    assert_eq!(server.bench.heard(server.client), "");
    assert_eq!(server.let_go(), "$1\r\n1\r\n");
}

#[test]
fn a_late_script_goes_on_while_its_client_is_not_read() {
    let mut server = busy(Hooks::default(), &[FIRST, SECOND]);
    server.bench.ask(server.operator, &["PROXY", "SUSPEND"]);
    assert!(server.goes_on());
    assert_eq!(server.let_go(), "$1\r\n1\r\n", "what stands behind it is not read");
    server.bench.pass(200_000);
    assert_eq!(server.bench.answer(server.operator, &["PROXY", "RESUME"]), "+OK\r\n+OK\r\n");
    assert_eq!(server.bench.heard(server.client), "$1\r\n2\r\n");
}

#[test]
fn an_exec_with_a_late_script_ends_at_once_behind_it() {
    let mut server =
        busy(Hooks::default(), &[&["MULTI"], &["GET", "k"], FIRST, FIRST, &["GET", "k"], &["EXEC"], &["GET", "k"]]);
    let queued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n$1\r\nv\r\n";
    assert_eq!(server.bench.heard(server.client), queued);
    server.bench.ask(server.operator, &["PROXY", "SUSPEND"]);
    assert!(server.goes_on());
    set_rules(&server.access, b"-eval");
    server.reload();
    let mut heard = server.let_go();
    server.bench.turn(|_| ());
    heard.push_str(&server.bench.heard(server.client));
    // As in Redis, each request of a block is judged by the rights of its time.
    let denied = "-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is \
                  no longer allowed for the following reason: no permission to execute the command or subcommand\r\n";
    assert_eq!(heard, format!("$1\r\n1\r\n{denied}$1\r\nv\r\n"));
    server.bench.pass(200_000);
    assert_eq!(server.bench.answer(server.operator, &["PROXY", "RESUME"]), "+OK\r\n+OK\r\n");
    assert_eq!(server.bench.heard(server.client), "$1\r\nv\r\n");
}

#[test]
fn a_late_script_whose_reply_is_not_wanted_is_waited_for() {
    let access = Arc::new(Access::default());
    let engine = Slow::default();
    let is_let_go = Arc::clone(&engine.is_let_go);
    let mut bench = Bench::server_with(config(1, 1), engine, access, Hooks::default());
    let [other, client] = [bench.accept(), bench.accept()];
    bench.send(client, &[request(&["CLIENT", "REPLY", "SKIP"]), request(FIRST), request(SECOND)].concat());
    assert!(bench.answer(other, &["GET", "k"]).starts_with("-BUSY "));
    assert_eq!(bench.heard(client), "");
    is_let_go.store(true, Ordering::Relaxed);
    bench.turn(|_| ());
    assert_eq!(
        (bench.heard(client).as_str(), bench.answer(other, &["GET", "k"]).as_str()),
        ("$1\r\n2\r\n", "$1\r\nv\r\n")
    );
}

#[test]
fn a_late_script_ends_without_its_client() {
    let mut server = busy(Hooks::default(), &[FIRST]);
    let client = server.client;
    server.bench.turn(|worker| worker.handle_broken(client, "gone"));
    assert!(server.goes_on());
    assert!(server.bench.answer(server.operator, &["GET", "k"]).starts_with("-BUSY "));
    server.let_go();
    assert_eq!(server.bench.answer(server.operator, &["GET", "k"]), "$1\r\nv\r\n");
}

const BLOCK: &[&[&str]] = &[&["MULTI"], &["SET", "a", "1"], FIRST, &["SET", "b", "2"], &["EXEC"], &["ECHO", "behind"]];
const QUEUED: &str = "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n";
const REPLY: &str = "*3\r\n+OK\r\n$1\r\n1\r\n+OK\r\n";

/// In the midst of the transaction [`BLOCK`].
fn amid() -> Server {
    amid_with(settings())
}

fn amid_with(settings: Config) -> Server {
    let mut server = busy_with(settings, Hooks::default(), BLOCK);
    set_rules(&server.access, b"+@all");
    server.reload();
    let heard = server.bench.heard(server.client);
    assert_eq!(heard, format!("{QUEUED}*3\r\n+OK\r\n"));
    assert_eq!(*server.written.lock().unwrap(), ["a"]);
    server
}

impl Server {
    /// How many clients there are.
    fn clients(&self) -> usize {
        self.bench.worker.remains().iter().find(|(what, _)| *what == "clients").map_or(0, |(_, count)| *count)
    }
}

#[test]
fn a_transaction_is_done_to_its_end_without_its_client() {
    let mut server = amid();
    let client = server.client;
    server.bench.turn(|worker| worker.handle_broken(client, "connection reset by peer"));
    assert!(server.goes_on());
    assert!(server.bench.answer(server.operator, &["GET", "k"]).starts_with("-BUSY "));
    server.let_go();
    assert_eq!(*server.written.lock().unwrap(), ["a", "b"], "all of it or nothing");
    assert_eq!(
        (server.clients(), server.bench.closed.contains(&client)),
        (1, false),
        "the loop knows no such connection"
    );
    let next = server.bench.accept();
    assert_eq!(server.bench.answer(next, &["GET", "k"]), "$1\r\nv\r\n");
}

#[test]
fn a_client_is_killed_behind_its_own_transaction() {
    let mut server = amid();
    let number = server.number.clone();
    assert_eq!(server.bench.answer(server.operator, &["PROXY", "KILL", &number]), ":1\r\n");
    assert!(server.goes_on() && !server.bench.closed.contains(&server.client));
    assert_eq!(server.let_go(), "", "it is told nothing more");
    assert_eq!(*server.written.lock().unwrap(), ["a", "b"]);
    assert!(server.bench.closed.contains(&server.client));
    assert_eq!(server.clients(), 1);
}

#[test]
fn a_client_that_kills_itself_has_its_transaction_done() {
    let access = Arc::new(Access::default());
    let engine = Slow::default();
    let written = Arc::clone(&engine.written);
    let mut bench = Bench::server_with(settings(), engine, access, Hooks::default());
    let client = bench.accept();
    let number = bench.answer(client, &["CLIENT", "ID"]);
    let kill = ["CLIENT", "KILL", "ID", number.trim_start_matches(':').trim_end(), "SKIPME", "no"];
    let block: [&[&str]; 6] =
        [&["MULTI"], &["SET", "a", "1"], &kill, &["SET", "b", "2"], &["EXEC"], &["SET", "behind", "3"]];
    bench.send(client, &block.map(request).concat());
    assert_eq!(bench.heard(client), format!("{QUEUED}*3\r\n+OK\r\n:1\r\n"), "as from Redis");
    assert_eq!(*written.lock().unwrap(), ["a", "b"]);
    assert!(bench.closed.contains(&client));
}

#[test]
fn a_half_closed_client_is_told_the_end_of_its_transaction() {
    let mut server = amid();
    let client = server.client;
    server.bench.turn(|worker| worker.handle_hung_up(client));
    assert!(server.goes_on());
    assert_eq!(server.let_go(), "$1\r\n1\r\n+OK\r\n$6\r\nbehind\r\n");
    server.bench.turn(|worker| worker.handle_ended(client));
    assert!(server.bench.closed.contains(&client));
}

#[test]
fn a_drain_waits_for_a_late_transaction_up_to_its_limit() {
    for is_gone in [false, true] {
        for is_in_time in [true, false] {
            let mut server = amid();
            let client = server.client;
            server.bench.turn(|worker| worker.handle_mail(Mail::Drain));
            if is_gone {
                server.bench.turn(|worker| worker.handle_broken(client, "gone"));
            }
            assert!(server.goes_on() && !server.bench.has_ended);
            if is_in_time {
                let told = server.let_go();
                assert_eq!(told, if is_gone { "" } else { "$1\r\n1\r\n+OK\r\n" }, "nothing behind it is begun");
                assert_eq!(*server.written.lock().unwrap(), ["a", "b"]);
            } else {
                server.bench.pass(60_000_000);
            }
            server.bench.pass(200_000);
            assert!(server.bench.has_ended, "{is_gone} {is_in_time}");
            assert_eq!(server.bench.closed.contains(&client), !is_gone);
        }
    }
}

#[test]
fn a_client_that_takes_nothing_has_its_transaction_done() {
    for is_suspended in [false, true] {
        let mut settings = settings();
        // Any reply that is not taken is more than it may leave.
        settings.budgets.client_output_soft = 1;
        let mut server = amid_with(settings);
        let client = server.client;
        server.bench.read_on(client, 0);
        if is_suspended {
            server.bench.ask(server.operator, &["PROXY", "SUSPEND"]);
        }
        assert!(server.goes_on());
        server.let_go();
        assert_eq!(*server.written.lock().unwrap(), ["a", "b"], "{is_suspended}");
        server.bench.answer(server.operator, &["PROXY", "RESUME"]);
        server.bench.read_on(client, usize::MAX);
        server.bench.pass(200_000);
        let heard = server.bench.heard(client);
        assert_eq!(format!("*3\r\n+OK\r\n{heard}"), format!("{REPLY}$6\r\nbehind\r\n"));
    }
}

#[test]
fn what_a_user_may_not_ask_is_refused_before_busy() {
    let mut server = busy(Hooks::default(), &[FIRST]);
    let other = server.bench.accept();
    assert_eq!(server.bench.answer(other, &["AUTH", "bob", "secret"]), "+OK\r\n");
    assert!(server.bench.answer(other, &["GET", "k"]).starts_with("-BUSY "));
    assert!(server.bench.answer(other, &["DEL", "k"]).starts_with("-NOPERM "));
}

#[test]
fn what_a_transaction_takes_from_its_own_user_is_taken() {
    let access = Arc::new(Access::default());
    set_rules(&access, b"+@all");
    let engine = Slow::default();
    let written = Arc::clone(&engine.written);
    let mut bench = Bench::server_with(settings(), engine, access, Hooks::default());
    let client = bench.accept();
    assert_eq!(bench.answer(client, &["AUTH", "bob", "secret"]), "+OK\r\n");
    let narrow = ["ACL", "SETUSER", "bob", "-set"];
    let block: [&[&str]; 5] = [&["MULTI"], &["SET", "a", "1"], &narrow, &["SET", "b", "2"], &["EXEC"]];
    bench.send(client, &block.map(request).concat());
    let heard = bench.heard(client);
    assert!(heard.starts_with(&format!("{QUEUED}*3\r\n+OK\r\n+OK\r\n-NOPERM ACLs rules changed ")), "{heard}");
    assert_eq!(*written.lock().unwrap(), ["a"]);
}

#[test]
fn many_names_do_not_interrupt_a_transaction() {
    for is_given_up in [false, true] {
        let engine = Slow::default();
        let written = Arc::clone(&engine.written);
        let mut bench = Bench::server_with(settings(), engine, Arc::new(Access::default()), Hooks::default());
        let client = bench.accept();
        let names: Vec<String> = (0..30_000).map(|number| format!("channel-{number}")).collect();
        let mut subscribe = vec!["SUBSCRIBE"];
        subscribe.extend(names.iter().map(String::as_str));
        let many: &[&str] = if is_given_up {
            assert!(bench.answer(client, &["HELLO", "3"]).starts_with('%'));
            bench.ask(client, &subscribe);
            bench.pass(1_000_000);
            &["UNSUBSCRIBE"]
        } else {
            &subscribe
        };
        let block: [&[&str]; 5] = [&["MULTI"], &["SET", "a", "1"], many, &["SET", "b", "2"], &["EXEC"]];
        let block = block.map(request).concat();
        let (rest, last) = block.split_at(block.len() - 1);
        bench.send(client, rest);
        bench.send(client, last);
        assert_eq!(*written.lock().unwrap(), ["a", "b"], "in one turn");
    }
}

/// Takes `bob` away, at an operator or by other users in the settings: the client hears of it with the next turn.
fn remove_user(server: &mut Server) {
    server.access.change(|users| users.without([b"bob".as_slice()].into_iter())).unwrap();
    server.reload();
}

#[test]
fn a_transaction_of_a_user_that_is_gone_is_not_gone_on_with() {
    for is_gone_first in [false, true] {
        let mut server = amid();
        let client = server.client;
        if is_gone_first {
            server.bench.turn(|worker| worker.handle_broken(client, "connection reset by peer"));
        }
        remove_user(&mut server);
        assert!(server.goes_on());
        // The default user may do everything, and does not stand in for the one that is gone.
        server.reload();
        server.bench.pass(120_000_000);
        assert_eq!(server.let_go(), "");
        assert_eq!(*server.written.lock().unwrap(), ["a"], "{is_gone_first}");
        assert_eq!((server.clients(), server.bench.closed.contains(&client)), (1, !is_gone_first));
    }
}

#[test]
fn a_client_that_ends_itself_and_its_user_does_no_more() {
    for is_draining in [false, true] {
        let access = Arc::new(Access::default());
        set_rules(&access, b"+@all");
        let engine = Slow::default();
        let (written, is_let_go) = (Arc::clone(&engine.written), Arc::clone(&engine.is_let_go));
        let mut bench = Bench::server_with(settings(), engine, access, Hooks::default());
        let client = bench.accept();
        assert_eq!(bench.answer(client, &["AUTH", "bob", "secret"]), "+OK\r\n");
        let number = bench.answer(client, &["CLIENT", "ID"]);
        let kill = ["CLIENT", "KILL", "ID", number.trim_start_matches(':').trim_end(), "SKIPME", "no"];
        let leaves: &[&str] = if is_draining { FIRST } else { &kill };
        let block: [&[&str]; 6] =
            [&["MULTI"], &["SET", "a", "1"], leaves, &["ACL", "DELUSER", "bob"], &["SET", "b", "2"], &["EXEC"]];
        bench.send(client, &block.map(request).concat());
        bench.turn(|worker| worker.handle_mail(Mail::Drain));
        is_let_go.store(true, Ordering::Relaxed);
        bench.turn(|_| ());
        bench.pass(200_000);
        assert_eq!(*written.lock().unwrap(), ["a"], "{is_draining}");
        assert!(bench.closed.contains(&client));
    }
}

#[test]
fn calls_of_a_script_are_kept_only_while_a_client_monitors() {
    let engine = Slow::default();
    let (calls, slices) = (Arc::clone(&engine.calls), Arc::clone(&engine.slices));
    let mut bench = Bench::server_with(settings(), engine, Arc::default(), Hooks::default());
    let [monitor, other, client] = [bench.accept(), bench.accept(), bench.accept()];
    assert_eq!(bench.answer(monitor, &["MONITOR"]), "+OK\r\n");
    bench.ask(client, FIRST);
    bench.turn(|_| ());
    assert!(bench.heard(monitor).contains(" lua] \"GET\" "));
    bench.turn(|worker| worker.handle_broken(monitor, "gone"));
    for _ in 0..3 {
        bench.turn(|_| ());
    }
    assert!(slices.load(Ordering::Relaxed) > 3);
    assert_eq!(calls.lock().unwrap().len(), 0, "no client is shown them");
    assert!(bench.answer(other, &["GET", "k"]).starts_with("-BUSY "));
}

#[test]
fn a_monitor_that_reads_nothing_is_bounded_without_other_limits() {
    let mut settings = settings();
    settings.budgets.client_output_hard = usize::MAX;
    let mut bench = Bench::server_with(settings, Slow::default(), Arc::default(), Hooks::default());
    let [client, monitor] = [bench.accept(), bench.accept()];
    assert_eq!(bench.answer(monitor, &["MONITOR"]), "+OK\r\n");
    bench.read_on(monitor, 0);
    let value = "x".repeat(1 << 20);
    let lines = 2 * MONITOR_OUTPUT_BYTES_MAX / value.len();
    let asked = (0..lines).take_while(|_| {
        assert_eq!(bench.answer(client, &["SET", "k", &value]), "+OK\r\n");
        !bench.closed.contains(&monitor)
    });
    let asked = asked.count();
    assert!((lines / 2 - 1..=lines / 2 + 1).contains(&asked), "{asked}");
    assert_eq!(bench.answer(client, &["GET", "k"]), "$1\r\nv\r\n");
}

#[test]
fn a_late_script_is_counted_once() {
    let mut server = busy(Hooks::default(), &[FIRST]);
    assert!(server.goes_on());
    assert_eq!(server.let_go(), "$1\r\n1\r\n");
    let told = server.bench.answer(server.operator, &["INFO", "commandstats"]);
    assert!(told.contains("cmdstat_eval:calls=1,"), "{told}");
}

#[test]
fn a_client_that_has_left_is_not_disconnected_for_others() {
    let mut settings = settings();
    settings.budgets.client_output_soft = 8 << 20;
    let engine = Slow::default();
    let mut bench = Bench::server_with(settings.clone(), engine, Arc::default(), Hooks::default());
    let [operator, large, other] = [bench.accept(), bench.accept(), bench.accept()];
    for client in [large, other] {
        bench.read_on(client, 0);
    }
    let number = bench.answer(operator, &["CLIENT", "ID"]);
    let number: u64 = number.trim_start_matches(':').trim_end().parse().expect("a number");
    bench.ask(other, &["ECHO", &"x".repeat(1 << 20)]);
    let block: [&[&str]; 5] = [&["ECHO", &"x".repeat(2 << 20)], &["MULTI"], FIRST, &["SET", "b", "2"], &["EXEC"]];
    bench.send(large, &block.map(request).concat());
    assert_eq!(bench.answer(operator, &["PROXY", "KILL", &(number + 1).to_string()]), ":1\r\n");
    settings.budgets.process = 1 << 19;
    let narrow = Arc::new(settings);
    bench.turn(|worker| worker.handle_mail(Mail::Reload(narrow)));
    for _ in 0..20 {
        bench.pass(200_000);
    }
    assert!(bench.closed.contains(&other), "the largest of those that can go");
    assert!(!bench.closed.contains(&large));
}

#[test]
fn a_monitor_without_replies_is_shown_nothing() {
    let mut bench = Bench::server_with(settings(), Slow::default(), Arc::default(), Hooks::default());
    let [client, off, skips] = [bench.accept(), bench.accept(), bench.accept()];
    bench.send(off, &[request(&["CLIENT", "REPLY", "OFF"]), request(&["MONITOR"])].concat());
    bench.send(skips, &[request(&["CLIENT", "REPLY", "SKIP"]), request(&["MONITOR"])].concat());
    assert_eq!(bench.answer(client, &["SET", "a", "1"]), "+OK\r\n");
    // As redis-server does.
    assert_eq!(bench.heard(off), "");
    assert!(bench.heard(skips).ends_with("\"SET\" \"a\" \"1\"\r\n"));
    bench.ask(off, &["CLIENT", "REPLY", "ON"]);
    bench.heard(off);
    assert_eq!(bench.answer(client, &["SET", "b", "1"]), "+OK\r\n");
    assert!(bench.heard(off).ends_with("\"SET\" \"b\" \"1\"\r\n"));
}

#[test]
fn the_machine_is_asked_once_and_only_for_what_shows_it() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let hooks = Hooks::default().on_usage(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        ProcessUsage::default()
    });
    let mut bench = Bench::server_with(settings(), Slow::default(), Arc::default(), hooks);
    let client = bench.accept();
    for (section, times) in [("server", 0), ("stats", 0), ("memory", 1), ("cpu", 1), ("default", 1)] {
        assert!(bench.answer(client, &["INFO", section]).starts_with('$'), "{section}");
        assert_eq!(asked.swap(0, Ordering::Relaxed), times, "{section}");
    }
}
