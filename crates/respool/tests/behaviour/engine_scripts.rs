//! Scripts of the embedded server: who is served while one runs, who is served by what it writes, and what ends it.

use std::io;

use respool_testkit::{Address, Client, PATIENCE, request, wait_until};

use super::{proxy, redis_servers};

/// Longer than a script runs before others are served: five seconds.
const ENDLESS: [&str; 3] = ["EVAL", "while true do pcall(function() while true do end end) end", "0"];

fn patient(server: &Address) -> io::Result<Client> {
    let client = Client::connect(server)?;
    client.set_timeout(PATIENCE)?;
    Ok(client)
}

/// The script has been left for others, who are told that it runs.
fn wait_for_busy(other: &mut Client) -> io::Result<()> {
    wait_until("others are served", PATIENCE, || Ok(other.ask("GET k")?.starts_with("-BUSY ")))
}

#[test]
fn others_are_told_of_a_script_without_end_and_may_kill_it() -> io::Result<()> {
    let server = proxy(&[], &[])?;
    let (mut client, mut other) = (patient(&server.tcp())?, patient(&server.tcp())?);
    // What stands behind it is answered behind it, and executed after it.
    client.send(&[request(&ENDLESS), request(&["SET", "k", "v"])].concat())?;
    wait_for_busy(&mut other)?;
    // What needs no engine is refused, too, but for the console.
    for request in ["PING", "INFO", "CLIENT LIST", "SUBSCRIBE c", "CONFIG GET port", "BLPOP k 0"] {
        assert!(other.ask(request)?.starts_with("-BUSY Redis is busy running a script. "), "{request}");
    }
    assert!(other.ask("PROXY SHOW CLIENTS")?.starts_with('*'));
    assert_eq!(other.ask("SCRIPT KILL")?, "+OK\r\n");
    assert!(client.reply()?.starts_with(b"-ERR Script killed by user with SCRIPT KILL..."));
    assert_eq!(client.reply()?, b"+OK\r\n");
    assert_eq!(other.ask("GET k")?, "$1\r\nv\r\n");
    Ok(())
}

#[test]
fn a_script_goes_on_without_its_client() -> io::Result<()> {
    let server = proxy(&[], &[])?;
    let (mut client, mut other) = (patient(&server.tcp())?, patient(&server.tcp())?);
    client.send(&request(&ENDLESS))?;
    wait_for_busy(&mut other)?;
    drop(client);
    assert!(other.ask("GET k")?.starts_with("-BUSY "));
    assert_eq!(other.ask("SCRIPT KILL")?, "+OK\r\n");
    wait_until("the script has ended", PATIENCE, || Ok(other.ask("GET k")? == "$-1\r\n"))
}

#[test]
fn a_late_script_spoils_what_others_queue_meanwhile() -> io::Result<()> {
    const ABORTED: &str = "-EXECABORT Transaction discarded because of: BUSY Redis is busy running a script. ";
    let server = proxy(&[], &[])?;
    let connect = || patient(&server.tcp());
    let (mut client, mut early, mut amid, mut ready) = (connect()?, connect()?, connect()?, connect()?);
    for other in [&mut early, &mut ready] {
        assert_eq!(other.ask("MULTI")?, "+OK\r\n");
        assert_eq!(other.ask("INCR k")?, "+QUEUED\r\n");
    }
    client.send(&request(&ENDLESS))?;
    let mut other = connect()?;
    wait_for_busy(&mut other)?;
    assert_eq!(amid.ask("MULTI")?, "+OK\r\n");
    for other in [&mut early, &mut amid] {
        assert!(other.ask("INCR k")?.starts_with("-BUSY "));
    }
    assert!(ready.ask("EXEC")?.starts_with(ABORTED));
    assert_eq!(other.ask("SCRIPT KILL")?, "+OK\r\n");
    assert!(client.reply()?.starts_with(b"-ERR Script killed by user"));
    for other in [&mut early, &mut amid] {
        assert_eq!(other.ask("INCR k")?, "+QUEUED\r\n");
        assert_eq!(other.ask("EXEC")?, "-EXECABORT Transaction discarded because of previous errors.\r\n");
    }
    assert_eq!(ready.ask("GET k")?, "$-1\r\n");
    Ok(())
}

#[test]
fn a_transaction_goes_on_behind_a_late_script() -> io::Result<()> {
    let server = proxy(&[], &[])?;
    let (mut client, mut other) = (patient(&server.tcp())?, patient(&server.tcp())?);
    let requests = [
        request(&["MULTI"]),
        request(&["SET", "k", "v"]),
        request(&ENDLESS),
        request(&["GET", "k"]),
        request(&["EXEC"]),
    ];
    client.send(&requests.concat())?;
    wait_for_busy(&mut other)?;
    assert_eq!(other.ask("SCRIPT KILL")?, "+OK\r\n");
    for _ in 0..4 {
        client.reply()?;
    }
    let reply = String::from_utf8_lossy(&client.reply()?).into_owned();
    assert!(
        reply.starts_with("*3\r\n+OK\r\n-ERR Script killed by user") && reply.ends_with("\r\n$1\r\nv\r\n"),
        "{reply}"
    );
    Ok(())
}

/// What a user with few rights asks for, and whether a redis-server and an embedded server reply the same.
const FEW_RIGHTS: &[&[&str]] = &[
    &["EVAL", "return redis.call('set', KEYS[1], '1')", "1", "x1"],
    &["EVAL", "return redis.call('get', 'y')", "0"],
    &["EVAL", "return redis.call('get', KEYS[1])", "1", "y"],
    &["EVAL", "return redis.pcall('get', 'y').err", "0"],
    &["EVAL", "return redis.call('hset', 'x1', 'f', 'v')", "0"],
    &["EVAL", "return redis.call('config', 'get', 'port')", "0"],
    &["EVAL", "return redis.call('publish', 'other', 'm')", "0"],
    &["EVAL", "return redis.call('publish', 'news', 'm')", "0"],
    &["EVAL", "return redis.acl_check_cmd('set', 'x1', '1')", "0"],
    &["EVAL", "return redis.acl_check_cmd('set', 'y', '1')", "0"],
    &["EVAL", "return redis.acl_check_cmd('hset', 'x1', 'f', 'v')", "0"],
    &["EVAL", "return redis.acl_check_cmd('nosuch')", "0"],
    &["EVAL_RO", "return redis.call('get', 'y')", "0"],
    &["EVALSHA", "0000000000000000000000000000000000000000", "0"],
    &["FCALL", "reads", "1", "x1"],
    &["FCALL", "reads", "0"],
];

#[test]
fn a_script_may_do_what_its_user_may() -> io::Result<()> {
    let server = redis_servers(1)?.remove(0);
    let own = proxy(&[], &[])?;
    let play = |address: &Address| -> io::Result<Vec<String>> {
        let (mut client, mut admin) = (Client::connect(address)?, Client::connect(address)?);
        admin.ask("ACL SETUSER bob on >pw +@scripting +@transaction +set +get +publish ~x* &news")?;
        admin.ask("SET y secret")?;
        let library = "#!lua name=l\nredis.register_function('reads', function(keys) return redis.call('get', keys[1] or 'y') end)";
        assert!(admin.command(&["FUNCTION", "LOAD", library])?.starts_with(b"$1\r\nl\r\n"));
        assert_eq!(client.ask("AUTH bob pw")?, "+OK\r\n");
        let mut said = Vec::new();
        for request in FEW_RIGHTS {
            let reply = client.command(request)?;
            said.push(format!("{}: {}", request[1], reply.escape_ascii()));
        }
        // A transaction goes by the same rights, and a script of another user by its own.
        for request in ["MULTI", "EVAL return(redis.call(ARGV[1],ARGV[2])) 0 GET y", "EXEC"] {
            said.push(client.ask(request)?);
        }
        said.push(admin.ask("EVAL return(redis.call(ARGV[1],ARGV[2])) 0 GET y")?);
        let log = admin.ask("ACL LOG")?;
        said.push(format!("{} {}", log.matches("$3\r\nlua\r\n").count(), log.contains("$6\r\nhset\r\n")));
        Ok(said)
    };
    let (wanted, told) = (play(&server.tcp())?, play(&own.tcp())?);
    assert!(told.iter().zip(&wanted).all(|(told, wanted)| told == wanted), "{told:#?}\n{wanted:#?}");
    Ok(())
}

#[test]
fn what_a_script_writes_serves_waiters_and_stops_transactions() -> io::Result<()> {
    let server = proxy(&[], &[])?;
    let (mut waiter, mut watcher, mut other) =
        (patient(&server.tcp())?, patient(&server.tcp())?, patient(&server.tcp())?);
    waiter.send(&request(&["BLPOP", "list", "0"]))?;
    wait_until("it waits", PATIENCE, || Ok(other.ask("INFO clients")?.contains("blocked_clients:1\r\n")))?;
    watcher.ask("WATCH k")?;
    let script = "redis.call('set', 'k', 'v') return redis.call('rpush', 'list', 'a', 'b')";
    assert_eq!(other.command(&["EVAL", script, "0"])?, b":2\r\n");
    assert_eq!(waiter.reply()?, b"*2\r\n$4\r\nlist\r\n$1\r\na\r\n");
    watcher.ask("MULTI")?;
    watcher.ask("GET k")?;
    assert_eq!(watcher.ask("EXEC")?, "*-1\r\n");
    Ok(())
}
