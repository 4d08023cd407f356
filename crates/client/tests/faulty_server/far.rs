//! Servers that are far away: what is waited for to connect.

use crate::peer::{Peer, config, on_both_faces};
use respool_client::Client;
use std::net::TcpListener;
use std::thread;

#[test]
fn a_handshake_is_one_round_trip_behind_the_password() {
    on_both_faces(|get| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serves = thread::spawn(move || {
            let mut peer = Peer { socket: listener.accept().unwrap().0, input: Vec::new() };
            assert_eq!(peer.request().unwrap()[0], "AUTH");
            assert_eq!(peer.input.len(), 0, "nothing is sent as the wrong user");
            peer.send(b"+OK\r\n");
            // Nothing is answered before all has come.
            let mut asked = Vec::new();
            while asked.last().is_none_or(|name| name != "PING") {
                asked.push(peer.request().unwrap().remove(0));
            }
            for name in &asked {
                peer.send(match &**name {
                    "HELLO" => b"%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n",
                    "PING" => b"+PONG\r\n",
                    _ => b"+OK\r\n",
                });
            }
            let request = peer.request().unwrap();
            peer.echo(&request);
            asked
        });
        let client = Client::with_config(config(&format!("redis://:secret@{address}/3?name=web")));
        assert_eq!(get(&client, "k").unwrap(), "k");
        assert_eq!(serves.join().unwrap(), ["HELLO", "CLIENT", "CLIENT", "CLIENT", "SELECT", "PING"]);
    });
}
