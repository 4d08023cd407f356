//! Replies leave in the order of their requests, whatever made them.

use std::io;
use std::time::Duration;

use respool_testkit::{Client, FakeBackend, Gate, PATIENCE, RedisServer, request, wait_until};

use super::{Four, bulk, proxy, value_of};

/// What is answered at once waits for what is not: one node is stopped while the rest have answered.
#[test]
fn local_replies_and_fast_nodes_do_not_overtake_a_slow_node() -> io::Result<()> {
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    four.servers[0].pause()?;
    let mut script = Vec::new();
    let mut expected: Vec<Vec<u8>> = Vec::new();
    let mut ask = |arguments: &[&str], reply: Vec<u8>| {
        script.extend(request(arguments));
        expected.push(reply);
    };
    ask(&["GET", &four.keys[0]], bulk(&value_of(&four.keys[0])));
    ask(&["GET", &four.keys[1]], bulk(&value_of(&four.keys[1])));
    ask(&["PING"], b"+PONG\r\n".to_vec());
    ask(&["BADCMD"], b"-ERR unknown command 'BADCMD', with args beginning with: \r\n".to_vec());
    ask(&["GET"], b"-ERR wrong number of arguments for 'get' command\r\n".to_vec());
    ask(&["SET", &four.keys[0], "new"], b"+OK\r\n".to_vec());
    ask(&["ECHO", "x"], bulk("x"));
    ask(&["GET", &four.keys[0]], bulk("new"));
    ask(&["GET", &four.keys[3]], bulk(&value_of(&four.keys[3])));
    client.send(&script)?;

    client.set_timeout(Duration::from_millis(150))?;
    assert_eq!(client.reply().unwrap_err().kind(), io::ErrorKind::WouldBlock, "nothing may overtake the first");
    four.servers[0].resume()?;
    client.set_timeout(PATIENCE)?;
    for expected in expected {
        let reply = client.reply()?;
        assert_eq!(reply.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }
    Ok(())
}

#[test]
fn set_unknown_get_in_one_write() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    for address in [proxy.tcp(), proxy.unix()] {
        let mut client = Client::connect(&address)?;
        client.send(b"SET k v\r\nBADCMD x\r\nGET k\r\n")?;
        assert_eq!(client.reply()?, b"+OK\r\n");
        assert_eq!(client.reply()?, b"-ERR unknown command 'BADCMD', with args beginning with: 'x' \r\n");
        assert_eq!(client.reply()?, b"$1\r\nv\r\n");
    }
    Ok(())
}

#[test]
fn quit_is_answered_after_all_before_it_and_nothing_after() -> io::Result<()> {
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    let pipeline = [
        request(&["PING"]),
        request(&["GET", &four.keys[2]]),
        request(&["QUIT"]),
        request(&["SET", &four.keys[2], "too late"]),
    ];
    client.send(&pipeline.concat())?;
    let expected = [b"+PONG\r\n".to_vec(), bulk(&value_of(&four.keys[2])), b"+OK\r\n".to_vec()].concat();
    assert_eq!(client.read_to_close()?, expected);
    assert_eq!(four.proxy.client()?.command(&["GET", &four.keys[2]])?, bulk(&value_of(&four.keys[2])));
    Ok(())
}

#[test]
fn one_clients_commands_on_one_key_run_in_order() -> io::Result<()> {
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    let count = 2_000;
    let pushes: Vec<u8> = (0..count).flat_map(|number| request(&["RPUSH", "list", &number.to_string()])).collect();
    client.send_in_pieces(&pushes, 1_000)?;
    for length in 1..=count {
        assert_eq!(client.reply()?, format!(":{length}\r\n").as_bytes());
    }
    let all: Vec<u8> = (0..count).flat_map(|number| bulk(&number.to_string())).collect();
    assert_eq!(client.ask("LRANGE list 0 -1")?.as_bytes(), [format!("*{count}\r\n").as_bytes(), &all].concat());
    Ok(())
}

/// T-ORDER: what is asked on a new connection may not overtake what the old one has not answered yet.
#[test]
fn nothing_is_overtaken_on_a_connection_that_is_replaced() -> io::Result<()> {
    let gate = Gate::new();
    let node = FakeBackend::start_holding("SET", &gate)?;
    let proxy = proxy(&[node.address()], &["--admin-commands", "allow", "--health-interval", "off"])?;
    let mut operator = proxy.client()?;
    let mut client = proxy.client()?;
    client.ask("GET first")?;
    client.send_command(&["SET", "k", "v"])?;
    wait_until("the SET is at the node", PATIENCE, || {
        Ok(node.received().iter().any(|request| request.command() == "SET"))
    })?;
    operator.ask("PROXY RECONNECT")?;
    wait_until("there is another connection", PATIENCE, || {
        Ok(operator.ask("INFO proxy")?.contains("upstreams:2\r\n"))
    })?;
    client.send_command(&["GET", "k"])?;
    wait_until("the GET has been read", PATIENCE, || {
        Ok(operator.ask("PROXY SHOW CLIENTS")?.contains("outstanding\r\n:2\r\n"))
    })?;
    // Far more turns than it takes a request to leave. PING may be forwarded to the node, and wait behind the SET.
    (0..500).try_for_each(|_| operator.ask("ECHO x").map(|_| ()))?;
    let overtakes = node.received().iter().any(|request| request.command() == "GET" && request.key() == b"k");
    assert!(!overtakes, "the SET has not been answered");
    gate.open();
    assert_eq!(client.replies(2)?, [&b"+OK\r\n"[..], b"$10\r\nvalue-of-k\r\n"]);
    Ok(())
}
