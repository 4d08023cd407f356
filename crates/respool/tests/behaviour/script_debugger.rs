//! SCRIPT DEBUG at the embedded server. What is said in sessions is compared with redis-server's by `engine/tests/scripts/debugger.rs`.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, io};

use respool_testkit::{Address, Client, FakeBackend, Gate, RedisServer, TempDir, wait_until};

/// A server with one worker.
struct Server {
    server: RedisServer,
    _directory: TempDir,
}

impl Server {
    fn client(&self) -> io::Result<Client> {
        self.server.client()
    }

    fn tcp(&self) -> Address {
        self.server.tcp()
    }
}

fn server() -> io::Result<Server> {
    server_with(&[])
}

fn server_with(arguments: &[&str]) -> io::Result<Server> {
    let directory = TempDir::new()?;
    let program = directory.path().join("respool-server");
    let respool = env!("CARGO_BIN_EXE_respool");
    fs::write(&program, format!("#!/bin/sh\nRESPOOL_WORKERS=1 exec '{respool}' server \"$@\"\n"))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let server = RedisServer::start_program(&program, arguments)?;
    Ok(Server { server, _directory: directory })
}

/// What allows DEBUG is about that alone.
#[test]
fn a_debugger_needs_a_right_and_not_what_debug_needs() -> io::Result<()> {
    let server = server()?;
    let mut client = server.client()?;
    assert!(client.ask("DEBUG SLEEP 0")?.starts_with("-ERR DEBUG command not allowed"));
    for (user, rules, is_allowed) in [
        ("some", "~* +@scripting", true),
        ("others", "~* +@slow", true),
        ("few", "~* +@all -script|debug", false),
        ("none", "~* +@all -@scripting", false),
    ] {
        assert_eq!(client.ask(&format!("ACL SETUSER {user} on nopass {rules} +incr"))?, "+OK\r\n");
        for mode in ["YES", "SYNC"] {
            let mut client = server.client()?;
            assert_eq!(client.ask(&format!("AUTH {user} any"))?, "+OK\r\n");
            let reply = client.ask(&format!("SCRIPT DEBUG {mode}"))?;
            if is_allowed {
                assert_eq!(reply, "+OK\r\n", "{user}");
                let told = client.command(&["EVAL", COUNTS, "0"])?;
                assert!(told.starts_with(b"*2\r\n+* Stopped at 1"), "{user} {}", told.escape_ascii());
            } else {
                assert!(reply.starts_with("-NOPERM "), "{user} {reply}");
            }
        }
    }
    Ok(())
}

const COUNTS: &str = "redis.call('incr', 'n')\nredis.call('incr', 'n')\nreturn 7";
const ENDED: &str = "*1\r\n+<endsession>\r\n";

/// All that was sent before has been read behind this: the server has one worker, which answers this while a debugger or a pause holds all others up.
fn read_on(server: &Server) -> io::Result<()> {
    let mut client = server.client()?;
    for _ in 0..3 {
        assert!(client.ask("PROXY HELP")?.starts_with('*'));
    }
    Ok(())
}

fn debug(client: &mut Client, mode: &str, script: &str) -> io::Result<String> {
    assert_eq!(client.ask(&format!("SCRIPT DEBUG {mode}"))?, "+OK\r\n");
    Ok(String::from_utf8_lossy(&client.command(&["EVAL", script, "0"])?).into_owned())
}

#[test]
fn others_wait_for_a_script_that_is_debugged_among_their_keys() -> io::Result<()> {
    let server = server()?;
    let (mut client, mut other) = (server.client()?, server.client()?);
    assert!(debug(&mut client, "SYNC", COUNTS)?.starts_with("*2\r\n+* Stopped at 1, stop reason = step over\r\n"));
    other.send_command(&["GET", "n"])?;
    other.send_command(&["PING"])?;
    assert!(client.ask("s")?.contains("+<redis> incr n\r\n+<reply> 1\r\n"));
    read_on(&server)?;
    assert!(other.take_arrived()?.is_empty());
    for (request, reply) in [("AUTH default any", "+OK\r\n"), ("RESET", "+RESET\r\n")] {
        assert_eq!(server.client()?.ask(request)?, reply, "it does not wait");
    }
    assert_eq!(client.ask("continue")?, ENDED);
    assert_eq!(client.read_to_close()?, b":7\r\n");
    assert_eq!((other.reply()?, other.reply()?), (b"$1\r\n2\r\n".to_vec(), b"+PONG\r\n".to_vec()));
    Ok(())
}

#[test]
fn a_debugged_script_whose_client_leaves_stops_no_other() -> io::Result<()> {
    let server = server()?;
    let (mut client, mut other) = (server.client()?, server.client()?);
    debug(&mut client, "SYNC", COUNTS)?;
    other.send_command(&["GET", "n"])?;
    drop(client);
    assert_eq!(other.reply()?, b"$1\r\n2\r\n", "it has run to its end");
    Ok(())
}

#[test]
fn no_other_client_sees_what_is_debugged_in_a_copy() -> io::Result<()> {
    let server = server()?;
    let (mut client, mut other) = (server.client()?, server.client()?);
    other.ask("SET n 5")?;
    other.ask("RPUSH l a b")?;
    debug(&mut client, "YES", COUNTS)?;
    assert_eq!(other.ask("INCR n")?, ":6\r\n", "no client waits");
    assert!(client.ask("s")?.contains("+<reply> 6\r\n"), "the keys are as they were when it began");
    assert!(client.ask("redis lrange l 0 -1")?.contains("[\"a\",\"b\"]"));
    client.ask("redis flushall")?;
    assert_eq!(client.ask("c")?, ENDED);
    assert_eq!(client.read_to_close()?, b":7\r\n");
    assert_eq!(other.ask("MGET n l")?, "*2\r\n$1\r\n6\r\n$-1\r\n");
    assert_eq!(other.ask("LLEN l")?, ":2\r\n");
    Ok(())
}

#[test]
fn copies_for_debuggers_are_bounded_and_go_with_their_clients() -> io::Result<()> {
    let server = server()?;
    let mut clients = [server.client()?, server.client()?];
    for client in &mut clients {
        assert!(debug(client, "YES", "return 1")?.contains("Stopped at 1"));
    }
    let mut third = server.client()?;
    assert!(debug(&mut third, "YES", "return 1")?.starts_with("-ERR can't run EVAL in debugging mode: "));
    // It debugs still: the script does not run among the real keys.
    assert!(third.command(&["EVAL", COUNTS, "0"])?.starts_with(b"-ERR can't run EVAL in debugging mode: "));
    assert_eq!(third.ask("EXISTS n")?, ":0\r\n");
    assert_eq!(third.ask("SCRIPT DEBUG NO")?, "+OK\r\n");
    assert_eq!(third.command(&["EVAL", "return 1", "0"])?, b":1\r\n");
    drop(clients);
    wait_until("there is room for another copy", Duration::from_secs(10), || {
        Ok(debug(&mut server.client()?, "YES", "return 1")?.contains("Stopped at 1"))
    })?;
    let mut other = server.client()?;
    let large = "x".repeat(1 << 20);
    for number in 0..70 {
        other.command(&["SET", &number.to_string(), &large])?;
    }
    let refused = debug(&mut server.client()?, "YES", "return 1")?;
    assert!(refused.starts_with("-ERR can't run EVAL in debugging mode: the keys take more memory"), "{refused}");
    assert!(debug(&mut server.client()?, "SYNC", "return 1")?.contains("Stopped at 1"), "which needs no copy");
    Ok(())
}

#[test]
fn debugging_is_neither_by_hash_nor_in_a_transaction() -> io::Result<()> {
    let server = server()?;
    let mut client = server.client()?;
    assert_eq!(client.ask("SCRIPT DEBUG MAYBE")?, "-ERR Use SCRIPT DEBUG YES/SYNC/NO\r\n");
    client.ask("MULTI")?;
    client.ask("SCRIPT DEBUG YES")?;
    let refused = "*1\r\n-ERR SCRIPT DEBUG must be called outside a pipeline\r\n";
    assert_eq!(client.ask("EXEC")?, refused);
    client.ask("SCRIPT DEBUG YES")?;
    let by_hash = client.ask("EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0")?;
    assert_eq!(by_hash, "-ERR Please use EVAL instead of EVALSHA for debugging\r\n");
    for name in ["EVAL", "EVALSHA"] {
        client.ask("MULTI")?;
        client.ask("SET m 1")?;
        let refused = client.command(&[name, COUNTS, "0"])?;
        assert!(refused.starts_with(b"-ERR a script cannot be debugged within MULTI"), "{}", refused.escape_ascii());
        assert!(client.ask("EXEC")?.starts_with("-EXECABORT "), "it does not run among the real keys");
    }
    assert_eq!(client.ask("EXISTS n m")?, ":0\r\n");
    client.ask("SCRIPT DEBUG NO")?;
    client.ask("MULTI")?;
    client.command(&["EVAL", "return 1", "0"])?;
    assert_eq!(client.ask("EXEC")?, "*1\r\n:1\r\n");
    Ok(())
}

#[test]
fn a_script_under_a_debugger_may_do_what_its_user_may() -> io::Result<()> {
    let server = server()?;
    let mut client = server.client()?;
    client.ask("ACL SETUSER dbg on nopass ~x* +@all -flushall")?;
    client.ask("AUTH dbg any")?;
    for mode in ["YES", "SYNC"] {
        let mut client = server.client()?;
        client.ask("AUTH dbg any")?;
        debug(&mut client, mode, "local a = 1\nreturn a")?;
        assert!(client.ask("r get y")?.contains("+<error> "));
        assert!(client.ask("r flushall")?.contains("+<error> "));
        assert!(client.ask("r get x")?.contains("+<reply> NULL"));
        assert_eq!(client.ask("c")?, ENDED);
    }
    Ok(())
}

const LOOP: &str = "while true do\n local x = 1\nend";

fn late_after(server: &Server, ms: u32) -> io::Result<()> {
    assert_eq!(server.client()?.ask(&format!("CONFIG SET busy-reply-threshold {ms}"))?, "+OK\r\n");
    Ok(())
}

/// A script that does not end ends behind its client, and the others are served.
#[test]
fn a_loop_whose_debugger_leaves_ends() -> io::Result<()> {
    let server = server()?;
    late_after(&server, 200)?;
    for script in [LOOP, "while true do\n redis.breakpoint()\nend", "while true do redis.call('incr', 'n') end"] {
        for says in [None, Some("s"), Some("c")] {
            let (mut client, mut other) = (server.client()?, server.client()?);
            debug(&mut client, "SYNC", script)?;
            other.send_command(&["PING"])?;
            if let Some(words) = says {
                client.send_command(&words.split(' ').collect::<Vec<_>>())?;
            }
            drop(client);
            assert_eq!(other.reply()?, b"+PONG\r\n", "{script} {says:?}");
        }
    }
    let (mut client, mut other) = (server.client()?, server.client()?);
    debug(&mut client, "SYNC", COUNTS)?;
    client.send_command(&["e", "while", "true", "do", "end"])?;
    drop(client);
    other.send_command(&["PING"])?;
    // It may have closed its side alone, and be owed a reply.
    wait_until("others are served", Duration::from_secs(60), || Ok(!other.take_arrived()?.is_empty()))
}

/// While all clients wait for a debugger, one of them may end it: the script, or its client.
#[test]
fn a_session_that_holds_all_clients_up_can_be_ended() -> io::Result<()> {
    let server = server()?;
    let mut client = server.client()?;
    let id = client.ask("CLIENT ID")?;
    let id = id.trim_start_matches(':').trim_end();
    debug(&mut client, "SYNC", COUNTS)?;
    let (mut other, mut admin) = (server.client()?, server.client()?);
    other.send_command(&["PING"])?;
    assert_eq!(admin.ask("SCRIPT KILL")?, "+OK\r\n");
    assert_eq!(other.reply()?, b"+PONG\r\n");
    assert_eq!(client.read_to_close()?, b"", "it has asked for nothing");
    let mut client = server.client()?;
    debug(&mut client, "SYNC", COUNTS)?;
    client.ask("s")?;
    other.send_command(&["GET", "n"])?;
    assert!(admin.ask("SCRIPT KILL")?.starts_with("-UNKILLABLE "), "it has written");
    let listed = admin.ask("CLIENT LIST")?;
    let line = listed.lines().find(|line| line.contains("cmd=eval")).expect("the client with the debugger");
    let fields = line.split(' ').next().and_then(|field| field.strip_prefix("id=")).expect("its number");
    assert_ne!(fields, id);
    assert_eq!(admin.ask(&format!("CLIENT KILL ID {fields}"))?, ":1\r\n");
    assert_eq!(other.reply()?, b"$1\r\n2\r\n", "it has run to its end");
    let mut client = server.client()?;
    debug(&mut client, "SYNC", LOOP)?;
    client.send_command(&["c"])?;
    assert_eq!(admin.ask("SCRIPT KILL")?, "+OK\r\n");
    let ended = String::from_utf8_lossy(&client.read_to_close()?).into_owned();
    assert!(ended.starts_with(ENDED) && ended.contains("-ERR Script killed by user"), "{ended}");
    Ok(())
}

/// What was queued before others had to wait is not run in their midst.
#[test]
fn transactions_wait_for_a_debugger() -> io::Result<()> {
    let server = server()?;
    let (mut client, mut other) = (server.client()?, server.client()?);
    other.ask("MULTI")?;
    other.ask("SET n 10")?;
    debug(&mut client, "SYNC", COUNTS)?;
    other.send_command(&["EXEC"])?;
    assert!(client.ask("s")?.contains("+<reply> 1\r\n"));
    assert_eq!(client.ask("c")?, ENDED);
    assert_eq!(other.reply()?, b"*1\r\n+OK\r\n");
    assert_eq!(other.ask("GET n")?, "$2\r\n10\r\n");
    Ok(())
}

/// Keys that another server has acknowledged meanwhile are deleted behind the session, and those that its script has changed are sent again.
#[test]
fn keys_on_their_way_wait_for_a_debugger() -> io::Result<()> {
    let server = server()?;
    let gate = Gate::new();
    let target = FakeBackend::start_holding("RESTORE", &gate)?;
    let Address::Tcp(address) = target.address() else { unreachable!("it listens for TCP") };
    let (mut mover, mut client, mut other) = (server.client()?, server.client()?, server.client()?);
    other.ask("MSET kept 1 n 5")?;
    let port = address.port().to_string();
    mover.send_command(&["MIGRATE", "127.0.0.1", &port, "", "0", "20000", "KEYS", "kept", "n"])?;
    target.wait_for(b"kept")?;
    debug(&mut client, "SYNC", COUNTS)?;
    assert!(client.ask("s")?.contains("+<reply> 6\r\n"));
    gate.open();
    std::thread::sleep(Duration::from_millis(200));
    assert!(mover.take_arrived()?.is_empty(), "the keys are still here");
    assert!(client.ask("r exists kept n")?.contains("+<reply> 2\r\n"));
    assert_eq!(client.ask("c")?, ENDED);
    assert_eq!(mover.reply()?, b"+OK\r\n");
    assert_eq!(other.ask("EXISTS kept n")?, ":0\r\n");
    let restored = target.received().iter().filter(|request| request.command() == "RESTORE").count();
    assert_eq!(restored, 3, "one has changed meanwhile");
    Ok(())
}

#[test]
fn a_debugger_waits_for_the_end_of_a_pause() -> io::Result<()> {
    let server = server()?;
    let (mut admin, mut other) = (server.client()?, server.client()?);
    for mode in ["WRITE", "ALL"] {
        let mut client = server.client()?;
        assert_eq!(client.ask("SCRIPT DEBUG SYNC")?, "+OK\r\n");
        assert_eq!(admin.ask(&format!("CLIENT PAUSE 100000 {mode}"))?, "+OK\r\n");
        client.send_command(&["EVAL", COUNTS, "0"])?;
        client.send_command(&["c"])?;
        other.send_command(&["SET", "m", "1"])?;
        read_on(&server)?;
        assert!(client.take_arrived()?.is_empty() && other.take_arrived()?.is_empty(), "{mode}");
        if mode == "WRITE" {
            assert_eq!(admin.ask("EXISTS n m")?, ":0\r\n");
        }
        assert_eq!(admin.ask("CLIENT UNPAUSE")?, "+OK\r\n");
        assert!(client.reply()?.starts_with(b"*2\r\n+* Stopped at 1"));
        assert_eq!(client.reply()?, ENDED.as_bytes());
        assert_eq!(other.reply()?, b"+OK\r\n");
    }
    Ok(())
}

/// In a copy messages reach no client, and what is asked about channels is answered.
#[test]
fn a_script_in_a_copy_may_publish() -> io::Result<()> {
    let server = server()?;
    let mut listener = server.client()?;
    listener.command(&["SUBSCRIBE", "c"])?;
    let mut client = server.client()?;
    let script = "local a = redis.call('publish', 'c', 'm')\nlocal b = redis.call('spublish', 'c', 'm')\n\
        local d = redis.call('pubsub', 'channels')\nreturn {a, b, d}";
    debug(&mut client, "YES", script)?;
    assert!(client.ask("r publish c m")?.contains("+<reply> 0\r\n"));
    assert_eq!(client.ask("c")?, ENDED);
    assert_eq!(client.read_to_close()?, b"*3\r\n:0\r\n:0\r\n*1\r\n$1\r\nc\r\n");
    assert_eq!(listener.ask("PING")?, "*2\r\n$4\r\npong\r\n$0\r\n\r\n", "nothing came before it");
    Ok(())
}

/// Copies take no more than a twentieth of the time of all clients, whether bytes take it or keys: who makes one after the other is refused
/// sooner or later. See `hostile::debuggers` for the very times.
#[test]
fn copies_for_debuggers_are_made_now_and_then() -> io::Result<()> {
    let server = server_with(&["--enable-debug-command", "yes"])?;
    let mut other = server.client()?;
    assert_eq!(other.ask("DEBUG POPULATE 50000")?, "+OK\r\n");
    let mut second = server.client()?;
    let mut copies = 0;
    let refused = loop {
        let told = debug(&mut second, "YES", "return 1")?;
        if !told.contains("Stopped at 1") {
            break told;
        }
        copies += 1;
        assert!(copies < 500, "a machine is not so fast");
        assert_eq!(second.ask("c")?, ENDED);
        second.read_to_close()?;
        second = server.client()?;
    };
    assert!(refused.starts_with("-ERR can't run EVAL in debugging mode: the keys have just been copied"), "{refused}");
    assert!(debug(&mut server.client()?, "SYNC", "return 1")?.contains("Stopped at 1"));
    wait_until("keys may be copied again", Duration::from_secs(60), || {
        Ok(String::from_utf8_lossy(&second.command(&["EVAL", "return 1", "0"])?).contains("Stopped at 1"))
    })?;
    assert_eq!(other.ask("DEBUG POPULATE 500001")?, "+OK\r\n");
    drop(second);
    let mut third = server.client()?;
    assert_eq!(third.ask("SCRIPT DEBUG YES")?, "+OK\r\n");
    wait_until("the keys are too many", Duration::from_secs(60), || {
        let refused = String::from_utf8_lossy(&third.command(&["EVAL", "return 1", "0"])?).into_owned();
        assert!(refused.starts_with("-ERR can't run EVAL in debugging mode: "), "{refused}");
        Ok(refused.contains("there are more keys and elements than may be copied"))
    })
}

/// A client that wants no replies gets none, and its session goes on.
#[test]
fn a_debugger_keeps_to_what_its_client_wants_of_replies() -> io::Result<()> {
    let server = server()?;
    let mut client = server.client()?;
    client.send_command(&["CLIENT", "REPLY", "OFF"])?;
    client.send_command(&["SCRIPT", "DEBUG", "SYNC"])?;
    client.send_command(&["EVAL", COUNTS, "0"])?;
    client.send_command(&["s"])?;
    client.send_command(&["c"])?;
    assert_eq!(client.read_to_close()?, b"");
    assert_eq!(server.client()?.ask("GET n")?, "$1\r\n2\r\n");
    Ok(())
}

/// The debugger of redis-cli, against both.
#[test]
fn redis_cli_debugs_as_with_redis() -> io::Result<()> {
    let (redis, server) = (RedisServer::start()?, server()?);
    let folder = TempDir::new()?;
    let script = folder.path().join("script.lua");
    std::fs::write(
        &script,
        "local a = 1\nredis.call('set', KEYS[1], ARGV[1])\nlocal b = redis.call('get', KEYS[1])\nreturn b\n",
    )?;
    let said = folder.path().join("said");
    std::fs::write(&said, "s\ns\np\nb 4\nc\ns\n")?;
    let run = |address: Address, mode: &str| -> io::Result<String> {
        let Address::Tcp(address) = address else { unreachable!("it listens for TCP first") };
        let mut cli = Command::new("redis-cli");
        cli.args(["-p", &address.port().to_string(), mode, "--eval"]).arg(&script).args(["k", ",", "v"]);
        let output = cli.stdin(std::fs::File::open(&said)?).stderr(Stdio::null()).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for mode in ["--ldb", "--ldb-sync-mode"] {
        let expected = run(redis.tcp(), mode)?;
        assert!(expected.contains("stop reason = break point"), "{expected}");
        assert_eq!(run(server.tcp(), mode)?, expected, "{mode}");
    }
    Ok(())
}
