//! A node that misbehaves on purpose: it answers like a small server except where the test says otherwise.
//!
//! ```text
//! let node = FakeBackend::start(|request| match request.key() {
//!     b"early" => Act::Bytes(b"+OK\r\n:1\r\n".to_vec()), // one reply too many
//!     b"dead" => Act::Close,
//!     _ => Act::Usual,
//! })?;
//! ```

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

#[cfg(target_os = "linux")]
use socket2::{SockFilter, SockRef};

use crate::{Address, PATIENCE, elements, reply_length, wait_until};

/// What the node does about one request.
#[derive(Debug, Clone)]
pub enum Act {
    /// Answers as a server would: [`usual_reply`].
    Usual,
    /// Sends these bytes, whatever they are.
    Bytes(Vec<u8>),
    /// Sends these bytes and closes the connection.
    BytesThenClose(Vec<u8>),
    /// Sends these bytes one at a time with a pause between them.
    Slowly(Vec<u8>, Duration),
    /// Sends no reply to this request, but goes on with the next ones.
    Skip,
    /// Answers neither this nor any later request on this connection, which stays open.
    Silence,
    /// Waits until the gate is opened, then answers as usual.
    Hold(Gate),
    /// Closes the connection.
    Close,
}

/// One request as the node received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The connection's number, from 0 in the order they were accepted.
    pub connection: usize,
    /// The arguments, the command's name first.
    pub arguments: Vec<Vec<u8>>,
}

impl Received {
    /// The command's name in capitals.
    pub fn command(&self) -> String {
        self.arguments.first().map(|name| String::from_utf8_lossy(name).to_ascii_uppercase()).unwrap_or_default()
    }

    /// The first argument after the name, or nothing.
    pub fn key(&self) -> &[u8] {
        self.arguments.get(1).map_or(b"", Vec::as_slice)
    }
}

/// Closed at first; waiters go on once it is opened.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// A closed gate.
    pub fn new() -> Gate {
        Gate::default()
    }

    /// Lets all pass that wait, now and later.
    pub fn open(&self) {
        *lock(&self.0.0) = true;
        self.0.1.notify_all();
    }

    /// Waits until it is open.
    pub fn pass(&self) {
        let is_open = lock(&self.0.0);
        drop(self.0.1.wait_while(is_open, |is_open| !*is_open));
    }
}

/// A listening node on a TCP port of the loopback interface, with a thread per connection.
#[derive(Debug)]
pub struct FakeBackend {
    address: SocketAddr,
    shared: Arc<Shared>,
}

type Rule = dyn Fn(&Received) -> Act + Send + Sync;

struct Shared {
    rule: Box<Rule>,
    /// Sent on every new connection before anything is asked.
    greeting: Vec<u8>,
    received: Mutex<Vec<Received>>,
    connections: Mutex<Vec<TcpStream>>,
    is_over: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("received", &self.received).finish_non_exhaustive()
    }
}

impl FakeBackend {
    /// Starts a node that does what `rule` says for each request.
    pub fn start(rule: impl Fn(&Received) -> Act + Send + Sync + 'static) -> io::Result<FakeBackend> {
        FakeBackend::start_with_greeting(b"", rule)
    }

    /// Starts a node that answers requests of one command, and what comes behind them on their connections, once a gate is open.
    pub fn start_holding(command: &'static str, gate: &Gate) -> io::Result<FakeBackend> {
        let held = gate.clone();
        FakeBackend::start(move |request| match request.command() == command {
            true => Act::Hold(held.clone()),
            false => Act::Usual,
        })
    }

    /// Starts a node that does what `rule` says, and speaks before it is asked, on every connection.
    pub fn start_with_greeting(
        greeting: &[u8],
        rule: impl Fn(&Received) -> Act + Send + Sync + 'static,
    ) -> io::Result<FakeBackend> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            rule: Box::new(rule),
            greeting: greeting.to_vec(),
            received: Mutex::new(Vec::new()),
            connections: Mutex::new(Vec::new()),
            is_over: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &accepting));
        Ok(FakeBackend { address, shared })
    }

    /// Where it listens.
    pub fn address(&self) -> Address {
        Address::Tcp(self.address)
    }

    /// All requests so far that are no part of a handshake, in the order they were taken up.
    pub fn received(&self) -> Vec<Received> {
        let is_greeting = |request: &&Received| !matches!(&*request.command(), "PING" | "HELLO" | "SELECT" | "AUTH");
        lock(&self.shared.received).iter().filter(is_greeting).cloned().collect()
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        lock(&self.shared.connections).len()
    }

    /// Waits until a request with this key (its first argument) has come.
    pub fn wait_for(&self, key: &[u8]) -> io::Result<()> {
        let what = format!("the node has received {:?}", String::from_utf8_lossy(key));
        wait_until(&what, PATIENCE, || Ok(self.received().iter().any(|request| request.key() == key)))
    }

    /// Sends bytes on one connection, asked or not; its number is that of [`Received::connection`].
    pub fn blurt_on(&self, connection: usize, bytes: &[u8]) {
        if let Some(mut connection) = lock(&self.shared.connections).get(connection) {
            // One that the peer has closed by now is none that can be written to.
            let _ = connection.write_all(bytes);
        }
    }

    /// Vanishes on the connections that there are now: nothing that comes on them is acknowledged any more. Those that are
    /// dialled later are served.
    #[cfg(target_os = "linux")]
    pub fn vanish(&self) -> io::Result<()> {
        let connections = lock(&self.shared.connections);
        // What it has sent must have arrived: it would send that again, as no vanished peer does.
        wait_until("all replies have arrived", PATIENCE, || {
            connections.iter().try_fold(true, |all, one| Ok(all && is_all_there(one)?))
        })?;
        // "Return 0": the kernel keeps nothing of any packet, and so answers none.
        let drop_all = [SockFilter::new(0x06, 0, 0, 0)];
        connections.iter().try_for_each(|one| SockRef::from(one).attach_filter(&drop_all))
    }

    /// Sends bytes on every open connection, asked or not.
    pub fn blurt(&self, bytes: &[u8]) {
        for mut connection in lock(&self.shared.connections).iter() {
            // One that the peer has closed by now is none that can be written to.
            let _ = connection.write_all(bytes);
        }
    }
}

impl Drop for FakeBackend {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts; it sees that it is over.
        drop(TcpStream::connect(self.address));
        for connection in lock(&self.shared.connections).iter() {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

/// What a well-behaved node with a value `value-of-KEY` under every key answers.
pub fn usual_reply(request: &Received) -> Vec<u8> {
    let bulk = |bytes: &[u8]| [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    let value = |key: &[u8]| bulk(&[b"value-of-", key].concat());
    let rest = request.arguments.get(1..).unwrap_or_default();
    match &*request.command() {
        "PING" if rest.is_empty() => b"+PONG\r\n".to_vec(),
        "PING" | "ECHO" => bulk(request.key()),
        "HELLO" if request.key() == b"3" => b"%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n".to_vec(),
        "HELLO" => b"*2\r\n$6\r\nserver\r\n$5\r\nredis\r\n".to_vec(),
        "INFO" => bulk(b"redis_version:0.0.0\r\n"),
        "GET" => value(request.key()),
        "MGET" => {
            let head = format!("*{}\r\n", rest.len()).into_bytes();
            rest.iter().map(|key| value(key)).fold(head, |all, one| [all, one].concat())
        }
        "DEL" | "UNLINK" | "EXISTS" | "TOUCH" => format!(":{}\r\n", rest.len()).into_bytes(),
        "INCR" => b":1\r\n".to_vec(),
        _ => b"+OK\r\n".to_vec(),
    }
}

/// Whether all that was written to a connection of the loopback interface has been acknowledged.
#[cfg(target_os = "linux")]
fn is_all_there(connection: &TcpStream) -> io::Result<bool> {
    let (ours, theirs) = (connection.local_addr()?.port(), connection.peer_addr()?.port());
    let table = std::fs::read_to_string("/proc/net/tcp")?;
    // Place, both addresses with their ports, state, bytes on the way.
    let queue = table.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let mut is_of = |port: u16| words.next().is_some_and(|word| word.ends_with(&format!(":{port:04X}")));
        let is_it = is_of(ours) && is_of(theirs);
        words.nth(1).filter(|_| is_it)
    });
    Ok(queue.is_none_or(|queue| queue.starts_with("00000000:")))
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(copy) = stream.try_clone() else { continue };
        let number = {
            let mut connections = lock(&shared.connections);
            connections.push(copy);
            connections.len() - 1
        };
        let shared = Arc::clone(shared);
        // A connection that breaks is the peer's business; the test looks at what the peer makes of it.
        thread::spawn(move || serve(stream, number, &shared));
    }
}

fn serve(mut stream: TcpStream, connection: usize, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(&shared.greeting)?;
    let mut buffer = Vec::new();
    let mut piece = [0; 16 << 10];
    let mut is_silent = false;
    loop {
        while let Some(length) = reply_length(&buffer)? {
            let request = Received { connection, arguments: arguments(&buffer[..length]) };
            buffer.drain(..length);
            lock(&shared.received).push(request.clone());
            if is_silent {
                continue;
            }
            match (shared.rule)(&request) {
                Act::Usual => stream.write_all(&usual_reply(&request))?,
                Act::Bytes(bytes) => stream.write_all(&bytes)?,
                Act::BytesThenClose(bytes) => {
                    stream.write_all(&bytes)?;
                    return stream.shutdown(Shutdown::Both);
                }
                Act::Slowly(bytes, pause) => {
                    for byte in bytes {
                        thread::sleep(pause);
                        stream.write_all(&[byte])?;
                    }
                }
                Act::Skip => {}
                Act::Silence => is_silent = true,
                Act::Hold(gate) => {
                    gate.pass();
                    stream.write_all(&usual_reply(&request))?;
                }
                Act::Close => return stream.shutdown(Shutdown::Both),
            }
        }
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            count => buffer.extend_from_slice(&piece[..count]),
        }
    }
}

/// The arguments of a request that is known to be a whole array of bulk strings.
fn arguments(request: &[u8]) -> Vec<Vec<u8>> {
    let body = |bulk: &[u8]| {
        let head = bulk.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        bulk[head..].strip_suffix(b"\r\n").unwrap_or_default().to_vec()
    };
    elements(request).into_iter().map(body).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;

    #[test]
    fn the_node_does_as_it_is_told() -> io::Result<()> {
        let gate = Gate::new();
        let held = gate.clone();
        let node = FakeBackend::start_with_greeting(b"+hello\r\n", move |request| match request.key() {
            b"twice" => Act::Bytes([usual_reply(request), usual_reply(request)].concat()),
            b"slow" => Act::Slowly(b":7\r\n".to_vec(), Duration::from_micros(100)),
            b"none" => Act::Skip,
            b"late" => Act::Hold(held.clone()),
            b"cut" => Act::BytesThenClose(b"$5\r\nab".to_vec()),
            _ => Act::Usual,
        })?;
        let mut client = Client::connect(&node.address())?;
        assert_eq!(client.reply()?, b"+hello\r\n");
        assert_eq!(client.ask("GET a")?, "$10\r\nvalue-of-a\r\n");
        assert_eq!(client.ask("MGET a b")?, "*2\r\n$10\r\nvalue-of-a\r\n$10\r\nvalue-of-b\r\n");
        assert_eq!(client.ask("DEL twice")?, ":1\r\n");
        assert_eq!(client.reply()?, b":1\r\n");
        assert_eq!(client.ask("GET slow")?, ":7\r\n");
        client.send_command(&["GET", "none"])?;
        client.send_command(&["GET", "late"])?;
        node.wait_for(b"late")?;
        gate.open();
        assert_eq!(client.reply()?, b"$13\r\nvalue-of-late\r\n");
        node.blurt(b"+psst\r\n");
        assert_eq!(client.reply()?, b"+psst\r\n");
        client.send_command(&["GET", "cut"])?;
        assert_eq!(client.read_to_close()?, b"$5\r\nab");
        assert_eq!(node.received().len(), 7);
        assert_eq!(node.connections(), 1);
        Ok(())
    }
}
