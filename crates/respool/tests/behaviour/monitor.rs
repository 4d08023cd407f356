//! MONITOR of an embedded server beside that of redis-server, and what a client that monitors may cost others.

use std::io;

use respool_testkit::{Address, Client, wait_until};

use super::{proxy, redis_servers};

/// Requests of a client that is monitored, in order.
const REQUESTS: &[&[&str]] = &[
    &["SET", "a", "1"],
    &["get", "a"],
    &["GET"],
    &["NOSUCH", "x"],
    &["LPUSH", "a", "x"],
    &["MULTI"],
    &["SET", "b", "\"\\\r\n\t\u{7}\u{8} \u{0}\u{e9}"],
    &["INCR", "b"],
    &["EXEC"],
    &["MULTI"],
    &["SET", "b", "2"],
    &["DISCARD"],
    &["MULTI"],
    &["NOSUCH"],
    &["EXEC"],
    &["AUTH", "canary"],
    &["HELLO", "3", "AUTH", "default", "canary"],
    &["CONFIG", "SET", "hz", "10"],
    &["CLIENT", "ID"],
    &["CLIENT", "LIST"],
    &["INFO", "server"],
    &["PING"],
    &["SELECT", "3"],
    &["SET", "c", "1"],
    &["EVAL", "redis.call('set','k',ARGV[1]); redis.pcall('nosuch'); return redis.pcall('incr','c')", "0", "v"],
    &["EVAL", "for i = 1, 3000 do redis.call('set', 'k', i) end", "0"],
    &["EVALSHA", "0000000000000000000000000000000000000000", "0"],
    &["MULTI"],
    &["EVAL", "return redis.call('get','k')", "0"],
    &["PING"],
    &["EXEC"],
    &["WATCH", "k"],
    &["UNWATCH"],
    &["BLPOP", "nolist", "0.01"],
    &["SUBSCRIBE", "ch"],
    &["UNSUBSCRIBE", "ch"],
    &["PUBLISH", "ch", "m"],
    &["ACL", "WHOAMI"],
    &["ACL", "SETUSER", "u", ">canary"],
    &["SLOWLOG", "LEN"],
    &["LATENCY", "LATEST"],
    &["COMMAND", "COUNT"],
    &["OBJECT", "HELP"],
    &["OBJECT", "NOSUCH"],
    &["XGROUP", "CREATE", "st", "g", "0", "MKSTREAM"],
    &["SCRIPT", "LOAD", "return 1"],
    &["FUNCTION", "LIST"],
    &["RESET"],
    &["FLUSHALL"],
    &["ROLE"],
    &["TIME"],
    &["DBSIZE"],
    &["SORT", "a"],
];

/// The reply to MONITOR and a monitor.
fn monitor(address: &Address) -> io::Result<Client> {
    let mut monitor = Client::connect(address)?;
    assert_eq!(monitor.ask("MONITOR")?, "+OK\r\n");
    Ok(monitor)
}

/// A line without its time and the client's address.
fn shown(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line).trim_end().to_owned();
    let (time, rest) = line.split_once(" [").expect("a time stands in front");
    let (seconds, micros) = time.split_once('.').expect("it has two parts");
    assert!(seconds.starts_with('+') && micros.len() == 6, "{line}");
    let (by, arguments) = rest.split_once("] ").expect("a client stands in front");
    let (database, by) = by.split_once(' ').expect("it has two parts");
    let by = if by == "lua" { by } else { "client" };
    format!("{database} {by} {arguments}")
}

/// What a monitor is shown up to a request with this word.
fn shown_until(monitor: &mut Client, word: &str) -> io::Result<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        let line = shown(&monitor.reply()?);
        if line.contains(word) {
            return Ok(lines);
        }
        lines.push(line);
    }
}

#[test]
fn an_embedded_server_shows_what_redis_shows() -> io::Result<()> {
    let server = redis_servers(1)?.remove(0);
    let own = proxy(&[], &[])?;
    let play = |address: &Address| -> io::Result<Vec<String>> {
        let mut monitor = monitor(address)?;
        let mut client = Client::connect(address)?;
        for request in REQUESTS {
            client.command(request)?;
        }
        client.ask("ECHO last")?;
        shown_until(&mut monitor, "last")
    };
    let (wanted, shown) = (play(&server.tcp())?, play(&own.tcp())?);
    let place = wanted.iter().zip(&shown).take_while(|(wanted, shown)| wanted == shown).count();
    assert_eq!(wanted.get(place), shown.get(place), "line {place}");
    assert!(!shown.iter().any(|line| line.contains("canary")));
    Ok(())
}

#[test]
fn a_client_that_monitors_may_ask_and_leave_as_in_redis() -> io::Result<()> {
    let server = redis_servers(1)?.remove(0);
    let own = proxy(&[], &[])?;
    let play = |address: &Address| -> io::Result<Vec<String>> {
        let mut monitor = monitor(address)?;
        let mut replies = Vec::new();
        for request in ["GET a", "BLPOP a 0", "PING", "RESET", "GET a", "ECHO end"] {
            let reply = monitor.ask(request)?;
            replies.push(if reply.contains(" [") { shown(reply.as_bytes()) } else { reply });
        }
        let mut other = Client::connect(address)?;
        other.ask("SET a 1")?;
        // Lines that were shown before come first.
        monitor.send_command(&["ECHO", "behind"])?;
        loop {
            let told = String::from_utf8_lossy(&monitor.reply()?).into_owned();
            assert!(
                !told.to_ascii_uppercase().contains("\"SET\""),
                "a client that was reset is shown nothing more: {told}"
            );
            if told == "$6\r\nbehind\r\n" {
                break;
            }
        }
        Ok(replies)
    };
    assert_eq!(play(&own.tcp())?, play(&server.tcp())?);
    Ok(())
}

#[test]
fn a_monitor_that_does_not_read_is_disconnected_alone() -> io::Result<()> {
    let own = proxy(&[], &["--client-output-hard-bytes", "1mb"])?;
    let mut slow = monitor(&own.tcp())?;
    let mut client = own.client()?;
    let value = "x".repeat(64 * 1024);
    wait_until("the monitor is disconnected", respool_testkit::PATIENCE, || {
        assert_eq!(client.command(&["SET", "a", &value])?, b"+OK\r\n");
        Ok(client.ask("CLIENT LIST")?.matches("id=").count() == 1)
    })?;
    // What it was written before it was cut off is whole lines and perhaps the beginning of one.
    let written = slow.read_to_close()?;
    assert!(written.starts_with(b"+") && written.len() < 64 << 20);
    assert_eq!(client.ask("PING")?, "+PONG\r\n");
    Ok(())
}

#[test]
fn a_node_that_is_embedded_shows_through_a_proxy() -> io::Result<()> {
    let node = proxy(&[], &[])?;
    let front = proxy(&[node.tcp()], &["--admin-commands", "allow"])?;
    let mut monitor = monitor(&front.tcp())?;
    let mut client = front.client()?;
    client.ask("SET a 1")?;
    client.ask("SET last 1")?;
    assert_eq!(shown_until(&mut monitor, "last")?.last().map(String::as_str), Some("0 client \"SET\" \"a\" \"1\""));
    Ok(())
}
