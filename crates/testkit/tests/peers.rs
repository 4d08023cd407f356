//! The peers themselves: what a test relies on when it starts one.

use std::io;
use std::time::Duration;

use respool_testkit::{Client, Nutcracker, PATIENCE, RedisServer, Transport, proc_stats};

#[test]
fn a_redis_server_answers_over_both_transports() -> io::Result<()> {
    let server = RedisServer::start()?;
    for address in [server.tcp(), server.unix()] {
        let mut client = Client::connect(&address)?;
        assert_eq!(client.command(&["SET", "k", "v"])?, b"+OK\r\n");
        client.send_in_pieces(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n", 1)?;
        assert_eq!(client.replies(2)?, [&b"$1\r\nv\r\n"[..], b"+PONG\r\n"]);
    }
    assert!(proc_stats::open_files(server.pid())? > 3);
    assert!(proc_stats::peak_resident_bytes(server.pid())? > 1 << 20);
    Ok(())
}

#[test]
fn a_paused_server_is_silent_and_goes_on_afterwards() -> io::Result<()> {
    let server = RedisServer::start()?;
    let mut client = server.client()?;
    server.pause()?;
    client.set_timeout(Duration::from_millis(50))?;
    client.send(b"PING\r\n")?;
    assert_eq!(client.reply().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    server.resume()?;
    client.set_timeout(PATIENCE)?;
    assert_eq!(client.reply()?, b"+PONG\r\n");
    Ok(())
}

#[test]
fn a_killed_server_comes_back_empty_at_the_same_place() -> io::Result<()> {
    let mut server = RedisServer::start()?;
    let mut client = server.client()?;
    client.ask("SET k v")?;
    server.kill()?;
    assert!(client.read_to_close()?.is_empty());
    assert!(Client::connect(&server.tcp()).is_err());
    server.restart()?;
    assert_eq!(Client::connect(&server.tcp())?.ask("GET k")?, "$-1\r\n");
    Ok(())
}

#[test]
fn twemproxy_forwards() -> io::Result<()> {
    let server = RedisServer::start()?;
    for transport in [Transport::Tcp, Transport::Unix] {
        let proxy = Nutcracker::start(transport, &[server.tcp()])?;
        assert_eq!(Client::connect(proxy.address())?.ask("SET k v")?, "+OK\r\n");
    }
    Ok(())
}
