//! A server that is written by a test: it shakes hands as a server does, and the test says what comes behind that.

use respool_client::ReconnectTerms;
use respool_client::{Client, Config, cmd};
use respool_wire::{RequestDecoder, RequestLimits, Step, Strictness};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// A server whose connections `serve` serves, each after a handshake that is answered as it should be.
pub(crate) fn server(serve: impl Fn(Peer) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serve = std::sync::Arc::new(serve);
    thread::spawn(move || {
        for socket in listener.incoming() {
            let serve = std::sync::Arc::clone(&serve);
            thread::spawn(move || {
                let socket = socket.unwrap();
                socket.set_nodelay(true).unwrap();
                let mut peer = Peer { socket, input: Vec::new() };
                if peer.shake_hands() {
                    serve(peer);
                }
            });
        }
    });
    address
}

/// One connection.
pub(crate) struct Peer {
    pub(crate) socket: TcpStream,
    /// What has come and was not taken.
    pub(crate) input: Vec<u8>,
}

impl Peer {
    /// The next request; `None` when the client has closed.
    pub(crate) fn request(&mut self) -> Option<Vec<String>> {
        loop {
            let limits = RequestLimits::authenticated(Strictness::Strict);
            if let Ok(Step::Request(request)) = RequestDecoder::new().decode(&self.input, &limits) {
                let consumed = request.consumed;
                let words = request.args.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
                self.input.drain(..consumed);
                return Some(words);
            }
            let mut buffer = [0; 65536];
            match self.socket.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(bytes) => self.input.extend_from_slice(&buffer[..bytes]),
            }
        }
    }

    /// Answers the handshake as it should be. Whether it came to its end.
    pub(crate) fn shake_hands(&mut self) -> bool {
        while let Some(request) = self.request() {
            let answer: &[u8] = match &*request[0] {
                "HELLO" => b"%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n",
                "PING" => b"+PONG\r\n",
                _ => b"+OK\r\n",
            };
            if !self.send(answer) {
                return false;
            }
            if request[0] == "PING" {
                return true;
            }
        }
        false
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.socket.write_all(bytes).is_ok()
    }

    /// Answers with the request's second word.
    pub(crate) fn echo(&mut self, request: &[String]) -> bool {
        let word = &request[1];
        self.send(format!("${}\r\n{word}\r\n", word.len()).as_bytes())
    }
}

/// Dials again at once.
pub(crate) fn config(address: &str) -> Config {
    let terms =
        ReconnectTerms { backoff_min_us: 1_000, backoff_max_us: 5_000, dials_per_second: 1_000, dials_burst: 100 };
    Config::from_url(address).unwrap().reconnect(terms)
}

/// `check` gets a function that reads in a thread, and one that reads in a task.
pub(crate) fn on_both_faces(check: impl Fn(&dyn Fn(&Client, &str) -> Result<String, respool_client::Error>)) {
    check(&|client, word| client.call(cmd("GET").arg(word)).wait());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    check(&|client, word| runtime.block_on(async { client.call(cmd("GET").arg(word)).await }));
}
