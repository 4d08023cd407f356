//! SCRIPT DEBUG at the embedded server. What is said in sessions is compared with redis-server's by `engine/tests/scripts/debugger.rs`.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use respool_testkit::{Address, Client, RedisServer, Respool, TempDir, wait_until};

fn server() -> io::Result<Respool> {
    Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[], &["--workers", "1"])
}

const COUNTS: &str = "redis.call('incr', 'n')\nredis.call('incr', 'n')\nreturn 7";
const ENDED: &str = "*1\r\n+<endsession>\r\n";

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
    assert!(other.take_arrived()?.is_empty());
    assert_eq!(client.ask("continue")?, ENDED);
    assert_eq!(client.read_to_close()?, b":7\r\n");
    assert_eq!((other.reply()?, other.reply()?), (b"$1\r\n2\r\n".to_vec(), b"+PONG\r\n".to_vec()));
    Ok(())
}

#[test]
fn a_debugged_script_whose_client_leaves_holds_nobody_up() -> io::Result<()> {
    let server = server()?;
    let (mut client, mut other) = (server.client()?, server.client()?);
    debug(&mut client, "SYNC", COUNTS)?;
    other.send_command(&["GET", "n"])?;
    drop(client);
    assert_eq!(other.reply()?, b"$1\r\n2\r\n", "it has run to its end");
    Ok(())
}

#[test]
fn what_is_debugged_in_a_copy_nobody_else_sees() -> io::Result<()> {
    let server = server()?;
    let (mut client, mut other) = (server.client()?, server.client()?);
    other.ask("SET n 5")?;
    other.ask("RPUSH l a b")?;
    debug(&mut client, "YES", COUNTS)?;
    assert_eq!(other.ask("INCR n")?, ":6\r\n", "nobody waits");
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
    assert_eq!(third.command(&["EVAL", "return 1", "0"])?, b":1\r\n", "it debugs no more");
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
    client.ask("MULTI")?;
    client.command(&["EVAL", "return 1", "0"])?;
    assert_eq!(client.ask("EXEC")?, "*1\r\n:1\r\n");
    client.ask("SCRIPT DEBUG NO")?;
    assert_eq!(client.command(&["EVAL", "return 1", "0"])?, b":1\r\n");
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
