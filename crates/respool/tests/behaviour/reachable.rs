//! Whether nodes are there: what clients are told, how fast connections are made, and that no healthy node loses its requests.

use std::io;
use std::time::Duration;

use respool_testkit::{RedisServer, wait_until};

use super::proxy;

#[test]
fn pong_is_the_word_of_the_only_node() -> io::Result<()> {
    let mut server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--request-timeout", "300ms"])?;
    let mut client = proxy.client()?;
    assert_eq!(client.ask("PING")?, "+PONG\r\n");
    server.pause()?;
    wait_until("what was heard of it is old", Duration::from_secs(5), || {
        Ok(client.ask("PING")?.contains("did not answer within 300 ms"))
    })?;
    server.resume()?;
    wait_until("it answers again", Duration::from_secs(5), || Ok(client.ask("PING")? == "+PONG\r\n"))?;
    server.kill()?;
    wait_until("it is missed", Duration::from_secs(5), || Ok(client.ask("PING")?.contains("is not available")))?;
    server.restart()?;
    wait_until("it is back", Duration::from_secs(5), || Ok(client.ask("PING")? == "+PONG\r\n"))
}
