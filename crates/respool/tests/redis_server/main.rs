//! The program in the place of redis-server: its file and flags, CONFIG, signals, log lines and end, beside the real one.

mod configuration_files;

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use respool_testkit::{Address, Client, PATIENCE, Process, RedisServer, TempDir, wait_until};
use rustix::process::{Pid, Signal, kill_process};

const BINARY: &str = env!("CARGO_BIN_EXE_respool");
const READY: &str = "The server is now ready to accept connections at";

/// A running server in a directory of its own, on a unix socket there.
struct Server {
    process: Process,
    directory: TempDir,
}

fn command(directory: &Path) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("server").env_clear().current_dir(directory).stdin(Stdio::null());
    command
}

impl Server {
    /// With this file; `None`: with none.
    fn start(conf: Option<&str>, flags: &[&str]) -> Server {
        let directory = TempDir::new().expect("there is room");
        Self::start_in(directory, conf, flags)
    }

    fn start_in(directory: TempDir, conf: Option<&str>, flags: &[&str]) -> Server {
        let mut command = command(directory.path());
        if let Some(conf) = conf {
            fs::write(directory.path().join("redis.conf"), conf).expect("it can be written");
            command.arg("redis.conf");
        }
        command.args(["--port", "0", "--unixsocket", "s.sock"]).args(flags);
        let process = Process::spawn("respool server", &mut command).expect("the program starts");
        process.wait_for_line(READY, PATIENCE).expect("it becomes ready");
        Server { process, directory }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn client(&self) -> Client {
        Client::connect(&Address::Unix(self.file("s.sock"))).expect("it accepts")
    }

    fn ended(&mut self) -> (Option<i32>, String) {
        let (status, lines) = self.process.finish(PATIENCE).expect("it ends");
        (status.code(), lines.join("\n"))
    }

    /// The same server, ended and started from its file again.
    fn restarted(self) -> Self {
        let Self { mut process, directory } = self;
        process.signal(Signal::TERM).expect("it runs");
        assert_eq!(process.finish(PATIENCE).expect("it ends").0.code(), Some(0));
        let mut command = command(directory.path());
        let process = Process::spawn("respool server", command.arg("redis.conf")).expect("the program starts");
        process.wait_for_line(READY, PATIENCE).expect("it becomes ready");
        Self { process, directory }
    }
}

/// Runs the program to its end.
fn run(directory: &Path, args: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command(directory).args(args).output().expect("the program starts");
    (status.code(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

fn ask(client: &mut Client, words: &[&str]) -> String {
    String::from_utf8_lossy(&client.command(words).expect("it answers")).into_owned()
}

/// The pairs of a reply to `CONFIG GET`.
fn pairs(client: &mut Client, patterns: &[&str]) -> Vec<(String, String)> {
    let mut words = vec!["CONFIG", "GET"];
    words.extend(patterns);
    let reply = ask(client, &words);
    // No value of these has a line break.
    let bulks: Vec<&str> = reply.split("\r\n").skip(1).collect();
    let texts: Vec<String> = bulks.chunks(2).filter_map(|bulk| bulk.get(1).map(|text| (*text).to_owned())).collect();
    let mut pairs: Vec<_> = texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    pairs.sort();
    pairs
}

#[test]
fn parameters_are_those_of_redis_with_its_values() {
    let flags =
        ["--maxmemory", "100mb", "--save", "900 1", "--hz", "0", "--client-output-buffer-limit", "pubsub 1mb 2k 3"];
    let redis = RedisServer::start_with(&flags).expect("a redis-server starts");
    let mut own_flags = flags.to_vec();
    // What the tools of the tests say to a redis-server.
    own_flags.extend(["--maxclients", "15000", "--protected-mode", "no"]);
    let server = Server::start(None, &own_flags);
    let of = |client: &mut Client, patterns: &[&str]| pairs(client, patterns);
    let (mut ours, mut theirs) = (server.client(), redis.client().expect("it accepts"));
    // Where each is.
    let own =
        ["dir", "port", "unixsocket", "save", "bind", "appendonly", "logfile", "enable-debug-command", "daemonize"];
    let keep = |pairs: Vec<(String, String)>| -> Vec<_> {
        let is_valkeys = |name: &str| name.starts_with("commandlog-") || name.contains("-avoid-copy-reply");
        let is_of_both = |name: &str| !own.contains(&name) && !is_valkeys(name);
        pairs.into_iter().filter(|(name, _)| is_of_both(name)).collect()
    };
    assert_eq!(keep(of(&mut ours, &["*"])), keep(of(&mut theirs, &["*"])));
    for patterns in
        [&["maxm*", "MAXMEMORY"][..], &["*ziplist*"], &["lua-time-limit"], &["h?"], &["nothing"], &["[ab]ctive*"]]
    {
        assert_eq!(of(&mut ours, patterns), of(&mut theirs, patterns), "{patterns:?}");
    }
}

#[test]
fn config_set_answers_as_redis_does() {
    let redis = RedisServer::start().expect("a redis-server starts");
    let server = Server::start(None, &["--save", "", "--protected-mode", "no"]);
    let (mut ours, mut theirs) = (server.client(), redis.client().expect("it accepts"));
    for words in [
        &["maxmemory", "1gb"][..],
        &["maxmemory", "1kk"],
        &["maxmemory", "-1"],
        &["maxmemory", "1", "timeout"],
        &["hz", "7", "timeout", "8"],
        &["hz", "9", "timeout", "x"],
        &["hz", "9", "nothing", "1"],
        &["hz", "9", "HZ", "8"],
        &["databases", "7"],
        &["dir", "/"],
        &["dbfilename", "x"],
        &["loglevel", "loud"],
        &["loglevel", "warning"],
        &["protected-mode", "maybe"],
        &["notify-keyspace-events", "KEx$"],
        &["notify-keyspace-events", "Q"],
        &["client-output-buffer-limit", "replica 1 2 3 normal 4 5 6"],
        &["client-output-buffer-limit", "normal 1"],
        &["client-output-buffer-limit", "pubsub a b c"],
        &["save", "1 2 3"],
        &["save", "10 20 30 40"],
        &["save", ""],
        &["latency-tracking-info-percentiles", "50 101"],
        &["oom-score-adj-values", "1 2"],
        &["maxmemory-clients", "101%"],
        &["maxmemory-clients", "5%"],
        &["zset-max-ziplist-value", "9"],
        &["shutdown-on-sigterm", "save nosave"],
        &["shutdown-on-sigterm", "now force"],
        &["proto-max-bulk-len", "7"],
        &["acllog-max-len", "7", "requirepass", ""],
    ] {
        let mut set = vec!["CONFIG", "SET"];
        set.extend(words);
        assert_eq!(ask(&mut ours, &set), ask(&mut theirs, &set), "{words:?}");
        let names: Vec<&str> = words.iter().step_by(2).copied().filter(|name| *name != "dir").collect();
        assert_eq!(pairs(&mut ours, &names), pairs(&mut theirs, &names), "after {words:?}");
    }
}

#[test]
fn debug_is_refused_unless_the_file_allows_it() {
    let refused = "-ERR DEBUG command not allowed.";
    let server = Server::start(None, &[]);
    let mut client = server.client();
    assert!(ask(&mut client, &["DEBUG", "DIGEST"]).starts_with(refused));
    assert_eq!(ask(&mut client, &["MULTI"]), "+OK\r\n");
    assert!(ask(&mut client, &["DEBUG", "DIGEST"]).starts_with(refused));
    assert!(ask(&mut client, &["EXEC"]).starts_with("-EXECABORT"), "it is refused before it is queued");
    assert!(ask(&mut client, &["CONFIG", "SET", "enable-debug-command", "yes"]).starts_with("-ERR"));

    let server = Server::start(None, &["--enable-debug-command", "local"]);
    let mut client = server.client();
    assert_eq!(ask(&mut client, &["DEBUG", "DIGEST"]), format!("+{}\r\n", "0".repeat(40)));
    ask(&mut client, &["ACL", "SETUSER", "default", "-debug"]);
    assert!(ask(&mut client, &["DEBUG", "DIGEST"]).starts_with("-NOPERM"));
}

#[test]
fn debug_sleep_lets_time_pass_for_what_follows() {
    let server = Server::start(None, &["--enable-debug-command", "yes"]);
    let mut client = server.client();
    client.send(b"SET a b PX 20\r\nDEBUG SLEEP 0.05\r\nGET a\r\n").expect("it is open");
    let replies = client.replies(3).expect("it answers");
    assert_eq!(replies, [&b"+OK\r\n"[..], b"+OK\r\n", b"$-1\r\n"], "the requests were read in one turn");
}

#[test]
fn time_stands_still_in_a_transaction() {
    let server = Server::start(None, &["--enable-debug-command", "yes"]);
    let mut client = server.client();
    let block = b"MULTI\r\nSET a b PX 20\r\nDEBUG SLEEP 0.05\r\nGET a\r\nEXEC\r\nGET a\r\n";
    client.send(block).expect("it is open");
    let replies = client.replies(6).expect("it answers");
    assert_eq!(replies[4..], [&b"*3\r\n+OK\r\n+OK\r\n$1\r\nb\r\n"[..], b"$-1\r\n"], "as in redis-server");
}

#[test]
fn scripts_use_debug_where_it_lets_them() {
    let server = Server::start(None, &["--enable-debug-command", "yes"]);
    let mut client = server.client();
    let script = ["EVAL", "redis.setresp(3) return redis.call('DEBUG', 'PROTOCOL', 'attrib')", "0"];
    assert!(ask(&mut client, &script).starts_with("-ERR This Redis command is not allowed from script"));
    ask(&mut client, &["DEBUG", "SET-DISABLE-DENY-SCRIPTS", "1"]);
    assert_eq!(ask(&mut client, &script), "$39\r\nSome real reply following the attribute\r\n");
    let reload = ["EVAL", "return redis.call('DEBUG', 'RELOAD')", "0"];
    assert!(ask(&mut client, &reload).starts_with("-ERR This Redis command is not allowed from script"));
    let config = ["EVAL", "return redis.call('CONFIG', 'GET', 'port')", "0"];
    assert!(ask(&mut client, &config).starts_with("-ERR This Redis command is not allowed from script"));
}

#[test]
fn a_pause_of_writes_holds_functions_that_may_write() {
    let server = Server::start(None, &[]);
    let (mut client, mut other) = (server.client(), server.client());
    let library = "#!lua name=both
        redis.register_function('write', function(keys) return redis.call('INCR', keys[1]) end)
        redis.register_function{function_name='Read', callback=function() return 7 end, flags={'no-writes'}}";
    assert_eq!(ask(&mut client, &["FUNCTION", "LOAD", library]), "$4\r\nboth\r\n");
    for _ in 0..2 {
        assert_eq!(ask(&mut client, &["SCRIPT", "LOAD", "#!lua flags=no-writes\nreturn 2"]).len(), 47);
        assert_eq!(ask(&mut client, &["CLIENT", "PAUSE", "600000", "WRITE"]), "+OK\r\n");
        let digest = "ae33f9227913b24d053a555637f98260b23bd3a3";
        assert_eq!(ask(&mut other, &["EVALSHA", digest, "0"]), ":2\r\n");
        assert_eq!(ask(&mut other, &["FCALL", "read", "0"]), ":7\r\n");
        assert_eq!(ask(&mut other, &["FCALL", "READ", "1", "k"]), ":7\r\n");
        other.send_command(&["FCALL", "write", "1", "k"]).expect("it is sent");
        wait_until("it is held", PATIENCE, || Ok(client.figure("clients", "blocked_clients")? == 1)).expect("it waits");
        assert_eq!(ask(&mut client, &["EXISTS", "k"]), ":0\r\n");
        assert_eq!(ask(&mut client, &["CLIENT", "UNPAUSE"]), "+OK\r\n");
        assert_eq!(other.reply().expect("it runs"), b":1\r\n");
        ask(&mut client, &["DEL", "k"]);
    }
}

#[test]
fn who_says_no_touch_leaves_no_trace_of_reads() {
    // A key begins with 5, and the first use of it counts for certain.
    // However long it takes, no use is forgotten.
    let server = Server::start(None, &["--maxmemory-policy", "allkeys-lfu", "--lfu-decay-time", "0"]);
    let (mut silent, mut other) = (server.client(), server.client());
    for key in ["a", "b", "c"] {
        ask(&mut other, &["SET", key, "v"]);
    }
    let mut uses = |key| ask(&mut other, &["OBJECT", "FREQ", key]);
    assert_eq!(ask(&mut silent, &["CLIENT", "NO-TOUCH", "ON"]), "+OK\r\n");
    assert!(ask(&mut silent, &["CLIENT", "INFO"]).contains(" flags=UT "));
    assert_eq!(ask(&mut silent, &["GET", "a"]), "$1\r\nv\r\n");
    ask(&mut silent, &["MULTI"]);
    ask(&mut silent, &["GET", "a"]);
    assert_eq!(ask(&mut silent, &["EXEC"]), "*1\r\n$1\r\nv\r\n");
    assert_eq!(ask(&mut silent, &["EVAL", "return redis.call('GET', KEYS[1])", "1", "a"]), "$1\r\nv\r\n");
    assert_eq!(uses("a"), ":5\r\n");
    // TOUCH is for nothing else, and other clients' uses count.
    assert_eq!(ask(&mut silent, &["TOUCH", "a"]), ":1\r\n");
    assert_eq!(ask(&mut silent, &["EVAL", "return redis.call('TOUCH', KEYS[1])", "1", "b"]), ":1\r\n");
    assert_eq!((uses("a"), uses("b")), (":6\r\n".to_owned(), ":6\r\n".to_owned()));
    let mut third = server.client();
    ask(&mut third, &["GET", "c"]);
    assert_eq!(uses("c"), ":6\r\n");
    for back in [&["CLIENT", "NO-TOUCH", "OFF"][..], &["RESET"]] {
        ask(&mut silent, &["CLIENT", "NO-TOUCH", "ON"]);
        ask(&mut silent, back);
        assert!(ask(&mut silent, &["CLIENT", "INFO"]).contains(" flags=U "), "{back:?}");
        ask(&mut silent, &["SET", back[0], "v"]);
        ask(&mut silent, &["GET", back[0]]);
        assert_eq!(uses(back[0]), ":6\r\n", "{back:?}");
    }
    assert_eq!(ask(&mut silent, &["CLIENT", "NO-TOUCH", "MAYBE"]), "-ERR syntax error\r\n");
    assert_eq!(ask(&mut silent, &["CLIENT", "CAPA", "redirect", "more"]), "+OK\r\n");
    assert_eq!(ask(&mut silent, &["CLIENT", "IMPORT-SOURCE", "OFF"]), "+OK\r\n");
    assert_eq!(ask(&mut silent, &["CLIENT", "IMPORT-SOURCE", "ON"]), "-ERR Server is not in import mode\r\n");
}

#[test]
fn what_a_client_is_served_later_is_traced_as_it_said() {
    let server = Server::start(None, &["--maxmemory-policy", "allkeys-lfu"]);
    let (mut silent, mut other) = (server.client(), server.client());
    ask(&mut silent, &["CLIENT", "NO-TOUCH", "ON"]);
    for key in ["a", "b", "c"] {
        ask(&mut other, &["RPUSH", key, "v"]);
    }
    // The script is left many times, and GET runs only after it has ended.
    let busy = ["EVAL", "for i = 1, 1e8 do end return 1", "0"];
    for request in [&["MULTI"][..], &busy, &["LLEN", "a"]] {
        ask(&mut silent, request);
    }
    silent.send_command(&["EXEC"]).expect("it is sent");
    assert_eq!(silent.replies(1).expect("it answers"), [b"*2\r\n:1\r\n:1\r\n"]);
    assert_eq!(ask(&mut other, &["OBJECT", "FREQ", "a"]), ":5\r\n", "in EXEC");
    for (first, to) in [(true, "b"), (false, "c")] {
        let (waiter, pusher) = if first { (&mut other, &mut silent) } else { (&mut silent, &mut other) };
        waiter.send_command(&["BLMOVE", "from", to, "LEFT", "RIGHT", "0"]).expect("it is sent");
        wait_until("it waits", PATIENCE, || Ok(pusher.figure("clients", "blocked_clients")? == 1)).expect("it waits");
        ask(pusher, &["RPUSH", "from", "v"]);
        waiter.reply().expect("it is served");
        // A use counts for sure from 5 on, and by chance from 6 on.
        assert_eq!(ask(pusher, &["OBJECT", "FREQ", to]) == ":5\r\n", !first, "{to}");
    }
}

#[test]
fn a_config_set_that_fails_late_changes_nothing() {
    let server = Server::start(None, &[]);
    let mut client = server.client();
    let lowered = ["oom-score-adj", "absolute", "oom-score-adj-values", "-900 0 0"];
    let mut set = vec!["CONFIG", "SET", "maxmemory", "1"];
    set.extend(lowered);
    let reply = ask(&mut client, &set);
    // A kernel that lets the server lower its score refuses nothing, and all of it holds.
    let is_refused = reply.starts_with("-ERR CONFIG SET failed (possibly related to argument 'oom-score-adj')");
    assert!(is_refused || reply == "+OK\r\n", "{reply}");
    assert_eq!(ask(&mut client, &["SET", "k", "v"]) == "+OK\r\n", is_refused, "the engine has its limit back");
    let shown = ask(&mut client, &["CONFIG", "GET", "maxmemory"]);
    assert_eq!(shown.ends_with("$1\r\n0\r\n"), is_refused, "{shown}");
}

#[test]
fn a_queued_script_waits_for_a_pause_if_it_may_write() {
    let server = Server::start(None, &[]);
    let (mut client, mut other) = (server.client(), server.client());
    let mut digest = |script: &str| ask(&mut client, &["SCRIPT", "LOAD", script])[5..45].to_owned();
    let reads = digest("#!lua flags=no-writes\nreturn 2");
    let writes = digest("return redis.call('INCR', 'k')");
    let queue = |other: &mut Client, digest: &str| {
        ask(other, &["MULTI"]);
        assert_eq!(ask(other, &["EVALSHA", digest, "0"]), "+QUEUED\r\n");
    };
    queue(&mut other, &reads);
    ask(&mut client, &["CLIENT", "PAUSE", "600000", "WRITE"]);
    assert_eq!(ask(&mut other, &["EXEC"]), "*1\r\n:2\r\n");
    ask(&mut client, &["CLIENT", "UNPAUSE"]);
    queue(&mut other, &writes);
    ask(&mut client, &["CLIENT", "PAUSE", "600000", "WRITE"]);
    other.send_command(&["EXEC"]).expect("it is sent");
    wait_until("it is held", PATIENCE, || Ok(client.figure("clients", "blocked_clients")? == 1)).expect("it waits");
    assert_eq!(ask(&mut client, &["EXISTS", "k"]), ":0\r\n");
    ask(&mut client, &["CLIENT", "UNPAUSE"]);
    assert_eq!(other.reply().expect("it runs"), b"*1\r\n:1\r\n");
}

#[test]
fn slow_commands_are_logged_with_their_client() {
    let server = Server::start(None, &["--enable-debug-command", "yes", "--slowlog-log-slower-than", "100000"]);
    let mut client = server.client();
    ask(&mut client, &["CLIENT", "SETNAME", "me"]);
    ask(&mut client, &["SET", "a", "b"]);
    assert_eq!(ask(&mut client, &["SLOWLOG", "LEN"]), ":0\r\n");
    ask(&mut client, &["MULTI"]);
    ask(&mut client, &["DEBUG", "SLEEP", "0.11"]);
    ask(&mut client, &["EXEC"]);
    assert_eq!(ask(&mut client, &["COMMANDLOG", "LEN", "slow"]), ":1\r\n", "EXEC itself is not logged");
    let shown = ask(&mut client, &["SLOWLOG", "GET"]);
    assert!(shown.starts_with("*1\r\n*6\r\n:0\r\n:"), "{shown}");
    assert!(shown.contains("*3\r\n$5\r\nDEBUG\r\n$5\r\nSLEEP\r\n$4\r\n0.11\r\n"), "{shown}");
    assert!(shown.ends_with("$2\r\nme\r\n"), "{shown}");
    assert_eq!(ask(&mut client, &["COMMANDLOG", "GET", "-1", "slow"]), shown);
    assert_eq!(ask(&mut client, &["SLOWLOG", "RESET"]), "+OK\r\n");
    assert_eq!(ask(&mut client, &["SLOWLOG", "GET"]), "*0\r\n");
    ask(&mut client, &["CONFIG", "SET", "slowlog-log-slower-than", "-1"]);
    ask(&mut client, &["DEBUG", "SLEEP", "0.11"]);
    assert_eq!(ask(&mut client, &["SLOWLOG", "LEN"]), ":0\r\n");
}

#[test]
fn a_slow_log_is_that_of_redis() {
    let redis = RedisServer::start_with(&["--enable-debug-command", "yes"]).expect("a redis-server starts");
    let server = Server::start(None, &["--protected-mode", "no"]);
    let (mut ours, mut theirs) = (server.client(), redis.client().expect("it accepts"));
    let members: Vec<String> = (1..40).map(|number| number.to_string()).collect();
    let many: Vec<&str> = ["sadd", "set"].into_iter().chain(members.iter().map(String::as_str)).collect();
    let long = "A".repeat(200);
    for words in [
        &["config", "set", "slowlog-log-slower-than", "0"][..],
        &["slowlog", "reset"],
        &many,
        &["set", "key", &long],
        &["get", "key"],
        &["acl", "setuser", "u", ">canary"],
        &["config", "set", "masterauth", "canary"],
        &["auth", "canary"],
        &["slowlog", "get", "-2"],
        &["slowlog", "get", "1", "2"],
        &["ping"],
        &["slowlog", "len"],
        &["config", "set", "slowlog-max-len", "11"],
        &["slowlog", "len"],
        &["config", "set", "slowlog-log-slower-than", "-1"],
    ] {
        assert_eq!(ask(&mut ours, words), ask(&mut theirs, words), "{words:?}");
    }
    let arguments = |client: &mut Client| -> Vec<String> {
        let shown = ask(client, &["slowlog", "get", "-1"]);
        let entries = shown.split("*6\r\n").skip(1);
        // Behind the number, the time and what it took; before the address and the name.
        entries
            .map(|entry| entry.split("\r\n").skip(3).collect::<Vec<_>>())
            .map(|lines| lines[..lines.len() - 5].join(" "))
            .collect()
    };
    let (ours, theirs) = (arguments(&mut ours), arguments(&mut theirs));
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 11);
}

#[test]
fn large_requests_and_replies_have_logs_of_their_own() {
    // Nothing is slow, however busy the machine is.
    let server = Server::start(None, &["--slowlog-log-slower-than", "60000000"]);
    let mut client = server.client();
    let value = "x".repeat(1_100_000);
    ask(&mut client, &["SET", "large", &value]);
    ask(&mut client, &["SET", "small", "x"]);
    ask(&mut client, &["GET", "large"]);
    ask(&mut client, &["GET", "small"]);
    for (log, begins) in [("large-request", "SET"), ("large-reply", "GET")] {
        assert_eq!(ask(&mut client, &["COMMANDLOG", "LEN", log]), ":1\r\n", "{log}");
        let shown = ask(&mut client, &["COMMANDLOG", "GET", "10", log]);
        assert!(shown.contains(&format!("$3\r\n{begins}\r\n$5\r\nlarge\r\n")) && shown.len() < 1000, "{shown}");
        assert_eq!(ask(&mut client, &["COMMANDLOG", "RESET", log]), "+OK\r\n");
        assert_eq!(ask(&mut client, &["COMMANDLOG", "LEN", log]), ":0\r\n", "{log}");
    }
    assert!(ask(&mut client, &["COMMANDLOG", "LEN", "fast"]).starts_with("-ERR type should be one of"));
    // The bounds are parameters: of bytes with all framing, which count from there on.
    let mut set = |name: &str, value: &str| assert_eq!(ask(&mut client, &["CONFIG", "SET", name, value]), "+OK\r\n");
    set("commandlog-request-larger-than", "-1");
    set("commandlog-reply-larger-than", "9");
    set("commandlog-large-reply-max-len", "2");
    for (command, key) in [("SET", "k"), ("GET", "large"), ("GET", "small"), ("STRLEN", "large"), ("GET", "k")] {
        let words = [command, key, "abc"];
        ask(&mut client, &words[..if command == "SET" { 3 } else { 2 }]);
    }
    assert_eq!(ask(&mut client, &["COMMANDLOG", "LEN", "large-request"]), ":0\r\n");
    let shown = ask(&mut client, &["COMMANDLOG", "GET", "-1", "large-reply"]);
    assert!(shown.starts_with("*2\r\n") && shown.contains("$6\r\nSTRLEN") && shown.contains("$1\r\nk\r\n"), "{shown}");
    assert_eq!(ask(&mut client, &["CONFIG", "SET", "commandlog-request-larger-than", "26"]), "+OK\r\n");
    ask(&mut client, &["COMMANDLOG", "RESET", "large-request"]);
    ask(&mut client, &["SET", "k", "v"]);
    ask(&mut client, &["GET", "kkkkk"]);
    ask(&mut client, &["GET", "kk"]);
    let shown = ask(&mut client, &["COMMANDLOG", "GET", "-1", "large-request"]);
    assert!(shown.contains(":27\r\n*3\r\n$3\r\nSET"), "{shown}");
    assert!(!shown.contains("$2\r\nkk"), "{shown}");
    let aliases = ask(&mut client, &["CONFIG", "GET", "commandlog-execution-slower-than"]);
    assert!(aliases.contains("60000000"), "{aliases}");
    assert_eq!(ask(&mut client, &["SLOWLOG", "LEN"]), ":0\r\n");
}

/// For tests in other languages, which start the program.
#[test]
fn debug_moves_the_clock_where_it_is_allowed() {
    let server = Server::start(None, &["--enable-debug-command", "local"]);
    let (mut client, mut other) = (server.client(), server.client());
    let clock = |client: &mut Client, words: &[&str]| ask(client, &[&["DEBUG", "CLOCK"][..], words].concat());
    assert_eq!(clock(&mut client, &["FREEZE"]), "+OK\r\n");
    assert_eq!(clock(&mut client, &["SET", "1600000000000"]), "+OK\r\n");
    assert_eq!(ask(&mut client, &["TIME"]), "*2\r\n$10\r\n1600000000\r\n$1\r\n0\r\n");
    assert_eq!(ask(&mut client, &["SET", "k", "v", "EX", "100"]), "+OK\r\n");
    other.send_command(&["BLPOP", "l", "50"]).expect("it is sent");
    wait_until("it waits", PATIENCE, || Ok(client.figure("clients", "blocked_clients")? == 1)).expect("it does");
    assert_eq!(clock(&mut client, &["ADVANCE", "50000"]), "+OK\r\n");
    assert_eq!(client.figure("clients", "blocked_clients").expect("a figure"), 0, "it was answered before");
    assert_eq!(other.reply().expect("a reply"), b"*-1\r\n");
    // What comes in the same write sees the time that was set.
    client
        .send(b"DEBUG CLOCK ADVANCE 49999\r\nPTTL k\r\nDEBUG CLOCK ADVANCE 1\r\nDBSIZE\r\nDEBUG CLOCK RUN\r\n")
        .expect("it is sent");
    assert_eq!(client.replies(5).expect("replies").concat(), b"+OK\r\n:1\r\n+OK\r\n:0\r\n+OK\r\n");
    // What ends by the clock does, though everything else waits for that.
    assert_eq!(clock(&mut client, &["FREEZE"]), "+OK\r\n");
    assert_eq!(ask(&mut client, &["CLIENT", "PAUSE", "1000"]), "+OK\r\n");
    other.send_command(&["INCR", "paused"]).expect("it is sent");
    assert_eq!(clock(&mut client, &["ADVANCE", "999"]), "+OK\r\n");
    assert!(other.take_arrived().expect("it is open").is_empty());
    client.send(b"GET paused\r\n").expect("it is sent");
    assert_eq!(clock(&mut server.client(), &["ADVANCE", "1"]), "+OK\r\n");
    assert_eq!(other.reply().expect("a reply"), b":1\r\n");
    client.reply().expect("a reply");
    assert_eq!(clock(&mut client, &["RUN"]), "+OK\r\n");
    for words in [&[][..], &["ADVANCE"], &["ADVANCE", "-1"], &["SET", "x"], &["STOP"]] {
        assert!(clock(&mut client, words).starts_with("-ERR DEBUG CLOCK takes"), "{words:?}");
    }
    client.send(b"MULTI\r\nDEBUG CLOCK ADVANCE 1\r\nEXEC\r\n").expect("it is sent");
    let replies = client.replies(3).expect("replies");
    assert_eq!(replies[2], b"*1\r\n-ERR the clock cannot be moved within a transaction\r\n");
    assert_eq!(clock(&mut client, &["ADVANCE", "9223372036854775807"]), "+OK\r\n");
    assert_eq!(ask(&mut client, &["PING"]), "+PONG\r\n");
    let server = Server::start(None, &[]);
    assert!(clock(&mut server.client(), &["FREEZE"]).starts_with("-ERR DEBUG command not allowed"));
}

#[test]
fn latencies_are_told_by_command_and_event() {
    let flags = ["--enable-debug-command", "yes", "--latency-monitor-threshold", "3600000"];
    let server = Server::start(None, &flags);
    let mut client = server.client();
    for words in [&["CONFIG", "RESETSTAT"][..], &["SET", "a", "b"], &["SET", "c", "d"], &["CLIENT", "ID"]] {
        ask(&mut client, words);
    }
    let shown = ask(&mut client, &["LATENCY", "HISTOGRAM", "set", "nosuch", "CLIENT"]);
    assert_eq!(ask(&mut client, &["LATENCY", "HISTOGRAM", "set", "nosuch", "CLIENT", "SET", "set"]).len(), shown.len());
    assert!(shown.starts_with("*4\r\n$3\r\nset\r\n*4\r\n$5\r\ncalls\r\n:2\r\n$14\r\nhistogram_usec\r\n*"), "{shown}");
    assert!(shown.contains("$9\r\nclient|id\r\n*4\r\n$5\r\ncalls\r\n:1\r\n"), "{shown}");
    assert_eq!(ask(&mut client, &["LATENCY", "LATEST"]), "*0\r\n", "nothing takes an hour");
    // Only the sleep and these two are held to less, and only the sleep takes that long.
    assert_eq!(ask(&mut client, &["CONFIG", "SET", "latency-monitor-threshold", "1500"]), "+OK\r\n");
    ask(&mut client, &["DEBUG", "SLEEP", "1.5"]);
    assert_eq!(ask(&mut client, &["CONFIG", "SET", "latency-monitor-threshold", "3600000"]), "+OK\r\n");
    let latest = ask(&mut client, &["LATENCY", "LATEST"]);
    assert!(latest.starts_with("*1\r\n*4\r\n$7\r\ncommand\r\n:"), "{latest}");
    assert!(ask(&mut client, &["LATENCY", "HISTORY", "command"]).starts_with("*1\r\n*2\r\n:"));
    assert!(ask(&mut client, &["LATENCY", "GRAPH", "command"]).contains("command - high "));
    assert!(ask(&mut client, &["LATENCY", "DOCTOR"]).contains("command: 1 latency spikes"));
    assert_eq!(ask(&mut client, &["LATENCY", "RESET", "nosuch"]), ":0\r\n");
    assert_eq!(ask(&mut client, &["LATENCY", "RESET"]), ":1\r\n");
    assert!(ask(&mut client, &["LATENCY", "GRAPH", "command"]).starts_with("-ERR No samples available"));
    ask(&mut client, &["CONFIG", "SET", "latency-tracking", "no"]);
    ask(&mut client, &["CONFIG", "RESETSTAT"]);
    assert_eq!(ask(&mut client, &["LATENCY", "HISTOGRAM"]), "*0\r\n");
}

#[test]
fn what_is_set_holds_for_the_next_request() {
    let server = Server::start(None, &[]);
    let mut client = server.client();
    let lines = "SET a b\r\nCONFIG SET maxmemory 1\r\nSET a c\r\nCONFIG SET maxmemory 0 hash-max-listpack-entries 1\r\n\
                 HSET h a 1 b 2\r\nOBJECT ENCODING h\r\nCONFIG SET proto-max-bulk-len 1mb requirepass secret\r\nGET a\r\n";
    client.send(lines.as_bytes()).expect("it is open");
    let replies: Vec<String> = client
        .replies(8)
        .expect("it answers")
        .iter()
        .map(|reply| String::from_utf8_lossy(reply).into_owned())
        .collect();
    assert!(replies[2].starts_with("-OOM "), "{replies:?}");
    assert_eq!(replies[5], "$9\r\nhashtable\r\n");
    assert_eq!(replies[7], "$1\r\nb\r\n", "the client stays who it is");
    let mut other = server.client();
    assert!(ask(&mut other, &["GET", "a"]).starts_with("-NOAUTH"), "the password holds for others");
    assert_eq!(ask(&mut other, &["AUTH", "secret"]), "+OK\r\n");
    let shown = ask(&mut other, &["CONFIG", "GET", "requirepass"]);
    assert!(!shown.contains("secret"), "{shown}");
    other.send(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1048577\r\n").expect("it is open");
    let refused = String::from_utf8_lossy(&other.reply().expect("it answers")).into_owned();
    assert!(refused.contains("Protocol error"), "{refused}");
}

#[test]
fn events_and_eviction_begin_with_the_next_request() {
    let server = Server::start(None, &[]);
    let mut listener = server.client();
    assert!(ask(&mut listener, &["SUBSCRIBE", "__keyevent@0__:set"]).starts_with("*3\r\n$9\r\nsubscribe"));
    let mut client = server.client();
    let lines = "SET before x\r\nCONFIG SET notify-keyspace-events E$ maxmemory-policy allkeys-lfu\r\nSET key x\r\nOBJECT FREQ key\r\n\
                 CONFIG SET notify-keyspace-events \"\"\r\nSET after x\r\nCONFIG SET notify-keyspace-events E$\r\nSET last x\r\n";
    client.send(lines.as_bytes()).expect("it is open");
    let replies = client.replies(8).expect("it answers");
    assert_eq!(replies[3], b":5\r\n");
    for key in ["key", "last"] {
        let heard = String::from_utf8_lossy(&listener.reply().expect("it is told")).into_owned();
        assert!(heard.ends_with(&format!("\r\n{key}\r\n")), "{heard}");
    }
}

#[test]
fn a_password_may_be_any_bytes() {
    let server = Server::start(None, &[]);
    let set: [&[u8]; 6] = [b"CONFIG", b"SET", b"timeout", b"7", b"requirepass", b"a\0\xff b"];
    assert_eq!(server.client().command(&set).expect("it answers"), b"+OK\r\n");
    let mut client = server.client();
    assert!(ask(&mut client, &["AUTH", "a"]).starts_with("-WRONGPASS"));
    assert_eq!(client.command(&[&b"AUTH"[..], b"a\0\xff b"]).expect("it answers"), b"+OK\r\n");
}

#[test]
fn what_cannot_be_had_keeps_the_server_from_starting() {
    let directory = TempDir::new().expect("there is room");
    for (args, why) in [
        (&["--appendonly", "yes"][..], "there is no append-only file"),
        (&["--replicaof", "127.0.0.1", "7"], "there is no replication"),
        (&["--cluster-enabled", "yes"], "this server is no member of a cluster"),
        (&["--rename-command", "nothing", "x"], "No such command in rename-command"),
        (&["--rename-command", "get", "SET"], "Target command name already exists"),
        (&["--rename-command", "get"], "Bad directive or wrong number of arguments"),
        (&["--loadmodule", "x.so"], "there are no modules"),
        (&["--maxmemory", "1xb"], "argument must be a memory value"),
        (&["--nonsense", "1"], "Bad directive or wrong number of arguments"),
        (&["--port", "0"], "Configured to not listen anywhere"),
        (&["no-such.conf"], "can't open config file"),
        (&["--sentinel"], "this is no Sentinel"),
        (&["--test-memory", "1"], "memory is not tested here"),
        (&["--check-system"], "the system is not checked here"),
        (&["--requirepass", "canary", "two"], "wrong number of arguments"),
        (&["--user", "a", "on", ">canary", "+nothing"], "Unknown command or category name in ACL"),
    ] {
        let (code, said) = run(directory.path(), args);
        assert!(matches!(code, Some(1 | 2)), "{args:?}: {code:?} {said}");
        assert!(said.contains(why), "{args:?}: {said}");
        assert!(!said.contains("canary"), "{args:?}: {said}");
    }
    fs::write(directory.path().join("dump.rdb"), "REDIS0010").expect("it can be written");
    let (code, said) = run(directory.path(), &["--port", "0", "--unixsocket", "s.sock"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("dump.rdb is there"), "{said}");
}

#[test]
fn it_says_what_is_not_kept_and_what_changes_nothing() {
    let mut server = Server::start(Some("save 900 1\nrdbcompression no\n"), &[]);
    server.process.signal(Signal::TERM).expect("it runs");
    let (_, said) = server.ended();
    assert!(said.contains("Nothing is written to disk"), "{said}");
    assert!(said.contains("change nothing here (docs/redis-conf.md says why): rdbcompression"), "{said}");
}

#[test]
fn signals_and_the_pid_file_are_those_of_redis() {
    let mut server = Server::start(None, &["--pidfile", "p.pid"]);
    let pid = fs::read_to_string(server.file("p.pid")).expect("it is there");
    assert_eq!(pid, format!("{}\n", server.process.pid()));
    server.process.signal(Signal::HUP).expect("it runs");
    let mut blocked = server.client();
    blocked.send(b"BLPOP q 0\r\n").expect("it is open");
    assert_eq!(ask(&mut server.client(), &["PING"]), "+PONG\r\n");
    server.process.signal(Signal::TERM).expect("it runs");
    let (code, said) = server.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("Received SIGTERM scheduling shutdown...") && said.contains("ready to exit, bye bye"),
        "{said}"
    );
    assert!(!server.file("p.pid").exists() && !server.file("s.sock").exists());
}

#[test]
fn a_daemon_lives_on_by_itself() {
    let directory = TempDir::new().expect("there is room");
    let args =
        ["--port", "0", "--unixsocket", "s.sock", "--daemonize", "yes", "--pidfile", "p.pid", "--logfile", "d.log"];
    assert_eq!(run(directory.path(), &args), (Some(0), String::new()));
    let address = Address::Unix(directory.path().join("s.sock"));
    wait_until("it serves", PATIENCE, || Ok(Client::connect(&address).is_ok())).expect("it becomes ready");
    let mut client = Client::connect(&address).expect("it accepts");
    assert_eq!(ask(&mut client, &["PING"]), "+PONG\r\n");
    let pid_file = directory.path().join("p.pid");
    let pid: i32 = fs::read_to_string(&pid_file).expect("it is there").trim().parse().expect("a number");
    kill_process(Pid::from_raw(pid).expect("a process"), Signal::TERM).expect("it runs");
    wait_until("it has ended", PATIENCE, || Ok(!pid_file.exists())).expect("it ends");
    let log = fs::read_to_string(directory.path().join("d.log")).expect("it is there");
    assert!(log.contains(&format!("{pid}:M ")) && log.contains(READY), "{log}");
}

#[test]
fn it_is_redis_server_under_that_name() {
    let directory = TempDir::new().expect("there is room");
    let link = directory.path().join("redis-server");
    symlink(BINARY, &link).expect("there is room");
    let output = Command::new(&link).arg("--version").output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with("Redis server v=7.0.15 "), "{said}");
    let mut command = Command::new(&link);
    command.env_clear().current_dir(directory.path()).args(["--port", "0", "--unixsocket", "s.sock"]);
    let mut process = Process::spawn("redis-server", &mut command).expect("the program starts");
    process.wait_for_line(READY, PATIENCE).expect("it becomes ready");
    process.signal(Signal::INT).expect("it runs");
    assert_eq!(process.finish(PATIENCE).expect("it ends").0.code(), Some(0));
}

#[test]
fn shutdown_refuses_what_it_cannot_do_and_ends_otherwise() {
    let mut server = Server::start(None, &[]);
    let mut client = server.client();
    assert!(ask(&mut client, &["SHUTDOWN", "SAVE"]).starts_with("-ERR Errors trying to SHUTDOWN"));
    assert_eq!(ask(&mut client, &["SHUTDOWN", "ABORT"]), "-ERR No shutdown in progress.\r\n");
    assert_eq!(ask(&mut client, &["SHUTDOWN", "NOW", "LATER"]), "-ERR syntax error\r\n");
    client.send(b"SET a b\r\nSHUTDOWN NOW FORCE\r\nPING\r\n").expect("it is open");
    assert_eq!(client.read_to_close().expect("it is closed"), b"+OK\r\n");
    assert_eq!(server.ended().0, Some(0));
}
