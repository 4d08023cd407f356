//! A server for tests of programs that talk to Redis: in the test's own process, on a free port, with a clock of its own, and with
//! what a test wants to know and to break.
//!
//! ```
//! use std::time::Duration;
//!
//! use respool::test_server::TestServer;
//!
//! let server = TestServer::start()?;
//! // Without this the clock goes on as that of the system does.
//! server.clock().freeze();
//! // The program under test connects to `server.url()`, and for example stores a session for half an hour.
//! server.database(0).run(["SET", "session:7", "ann", "EX", "1800"]);
//! assert_eq!(server.database(0).ttl("session:7"), Some(Duration::from_secs(1800)));
//! server.clock().advance(Duration::from_secs(1800));
//! assert!(server.database(0).keys().is_empty(), "{}", server.dump());
//! # Ok::<(), respool::Failure>(())
//! ```
//!
//! It is the embedded server with its own way of every request; only its clock, and what is done about faults, are the test's. Nothing
//! here is asynchronous, and nothing needs a runtime: calls return when what they say is done, within a fraction of a millisecond.
//! In an asynchronous test with a single thread, [`TestServer::wait_for`] and its like would keep the program under test from going on:
//! call them on another thread, or look and yield in a loop.
//!
//! `docs/testing-with-respool.md` shows how tests use it.

mod clock;
mod database;
mod engines;
mod faults;
mod injected;
mod kept;
mod record;
mod running;

pub use clock::TestClock;
pub use database::{Database, Stored, StreamEntry};
pub use faults::Fault;
pub use injected::Injected;
pub use record::SeenCommand;
/// A reply as the server writes it to clients of RESP3.
pub use respool_wire::Value as Reply;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use respool_command::Categories;
use respool_net::MovableClock;

use crate::builder::{Builder, Server};
use crate::failure::Failure;
use crate::settings::{Address, Setting};
use faults::Faults;
use kept::Kept;
use record::Record;
use running::{Running, close_clients};

/// What becomes of the data when a server starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Keys with their deadlines, and libraries of functions, are there again: as on a server that saves to its disk. What such a server
    /// does not save is gone, as scripts of EVAL, users and parameters that clients have set.
    Kept,
    /// It starts empty.
    Lost,
}

/// What a test server is told before it starts.
#[derive(Clone)]
pub struct TestServerBuilder {
    builder: Builder,
    address: String,
    password: Option<String>,
    time: Option<SystemTime>,
    is_frozen: bool,
}

impl fmt::Debug for TestServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServerBuilder").field("address", &self.address).finish_non_exhaustive()
    }
}

impl TestServerBuilder {
    /// Listens on this port of 127.0.0.1 in the place of a free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.address = format!("127.0.0.1:{port}");
        self
    }

    /// Listens on a unix socket, and on no port.
    #[must_use]
    pub fn unix_socket(mut self, path: impl AsRef<Path>) -> Self {
        self.address = format!("unix:{}", path.as_ref().display());
        self
    }

    /// The password of the default user.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// A user with its rules in Redis' ACL language: `.user("app", "on >secret ~app:* +@read")`.
    #[must_use]
    pub fn user(mut self, name: &str, rules: &str) -> Self {
        self.builder = self.builder.user(name, rules);
        self
    }

    /// How many databases there are. Default: 16.
    #[must_use]
    pub fn databases(self, databases: u32) -> Self {
        self.set(Setting::Databases.row().name, databases)
    }

    /// Any other setting by its name in `docs/settings.md`, as [`Builder::set`] takes it: `.set("maxmemory", "1mb")`.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.builder = self.builder.set(name, value);
        self
    }

    /// What time it is when the server starts. Default: the system's time.
    #[must_use]
    pub fn at(mut self, time: SystemTime) -> Self {
        self.time = Some(time);
        self
    }

    /// The clock stands still from the start, until the test moves it.
    #[must_use]
    pub fn frozen(mut self) -> Self {
        self.is_frozen = true;
        self
    }

    /// Starts it. When this returns clients can connect.
    ///
    /// # Errors
    /// A setting is wrong, or the address cannot be had.
    pub fn start(self) -> Result<TestServer, Failure> {
        let Self { mut builder, address, password, time, is_frozen } = self;
        let clock = MovableClock::default();
        // In this order: no time passes between.
        if is_frozen {
            clock.set_frozen(true);
        }
        time.into_iter().for_each(|time| clock.set(time));
        if let Some(password) = &password {
            builder = builder.set(Setting::Requirepass.row().name, password);
        }
        let (record, faults) = (Arc::new(Record::default()), Arc::new(Faults::default()));
        let (note, judge, admission) = (Arc::clone(&record), Arc::clone(&faults), Arc::clone(&faults));
        builder.clock = Some(clock.clone());
        let builder = builder.on_accept(move |peer| !admission.refuses(peer)).judging(
            Categories::ALL.iter().fold(Categories::NONE, |all, (one, _)| all.with(*one)),
            move |peer, _, args| {
                let (verdict, is_new) = judge.judge(peer, args);
                if is_new {
                    note.add(peer, args);
                }
                verdict
            },
        );
        let server = builder.clone().listen(&address).start()?;
        let address = server.addresses().first().cloned().ok_or_else(|| Failure::running("it listens nowhere"))?;
        let running = Running::new(clock, faults, server);
        Ok(TestServer { builder, address, password, running, record, kept: Mutex::default() })
    }
}

/// A server that runs in this process. Dropping it ends it at once, whatever its clients are waiting for; nothing of it is left then.
///
/// All calls take `&self`, so a test and its helpers can share it. Many of them run beside each other, each with data and a clock of
/// its own.
pub struct TestServer {
    builder: Builder,
    address: Address,
    password: Option<String>,
    running: Running,
    record: Arc<Record>,
    /// What was there when it was stopped.
    kept: Mutex<Kept>,
}

impl TestServer {
    /// Starts an empty server on a free port of 127.0.0.1, without a password, at the system's time.
    ///
    /// # Errors
    /// The system refuses a port or a thread.
    pub fn start() -> Result<Self, Failure> {
        Self::builder().start()
    }

    /// A server that is told something before it starts.
    #[must_use]
    pub fn builder() -> TestServerBuilder {
        TestServerBuilder {
            builder: Builder::new(),
            address: "127.0.0.1:0".to_owned(),
            password: None,
            time: None,
            is_frozen: false,
        }
    }

    /// Where it listens: `127.0.0.1:40713`, or the path of its unix socket. It is the same after a restart.
    #[must_use]
    pub fn address(&self) -> String {
        match &self.address {
            Address::Unix { path } => path.display().to_string(),
            address => address.to_string(),
        }
    }

    /// Its port, unless it has a unix socket.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.address.port()
    }

    /// The same as most clients take it, with the password: `redis://127.0.0.1:40713`, `redis://:secret@127.0.0.1:40713`,
    /// `unix:///tmp/test.sock`.
    #[must_use]
    pub fn url(&self) -> String {
        let password = self.password.as_ref().map(|password| format!(":{}@", percent_encoded(password)));
        let password = password.unwrap_or_default();
        match &self.address {
            Address::Unix { path } => format!("unix://{password}{}", path.display()),
            address => format!("redis://{password}{address}"),
        }
    }

    /// Its clock.
    #[must_use]
    pub fn clock(&self) -> TestClock<'_> {
        TestClock { server: &self.running }
    }

    /// One of its databases, to be looked at and changed without a connection. Clients begin with number 0.
    #[must_use]
    pub fn database(&self, number: u32) -> Database<'_> {
        Database { server: &self.running, number }
    }

    /// All keys of all databases with their values and the time that is left to them, for the message of a test that fails.
    #[must_use]
    pub fn dump(&self) -> String {
        database::dump(&self.running)
    }

    /// How many clients are connected.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.figure(|counters| counters.clients.value())
    }

    /// How many clients wait: for BLPOP and its like, for the end of CLIENT PAUSE, or because of [`Fault::hang`].
    #[must_use]
    pub fn blocked_clients(&self) -> usize {
        self.figure(|counters| counters.blocked_clients.value())
    }

    fn figure(&self, pick: fn(&respool_proxy::observe::counters::Counters) -> u64) -> usize {
        let server = self.running.server();
        let sums = server.iter().flat_map(|server| &server.instances).map(|instance| instance.shared.sum(pick));
        usize::try_from(sums.sum::<u64>()).unwrap_or(usize::MAX)
    }

    /// Waits until so many clients wait at the same time, so that a test knows that the BLPOP of another thread has arrived. Whether they
    /// did `within` that time.
    #[must_use]
    pub fn wait_for_blocked(&self, clients: usize, within: Duration) -> bool {
        let are_blocked = self.wait_for(within, |server| server.blocked_clients() >= clients);
        self.running.settle_requests();
        are_blocked
    }

    /// Waits until something holds. Whether it did `within` that time, which is real time whatever [`TestServer::clock`] does.
    #[must_use]
    pub fn wait_for(&self, within: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        Running::wait_for(within, || holds(self))
    }

    /// How many requests clients have sent since the server started for the first time. What a transaction or a script runs is part of
    /// its request, what the server does not understand is none.
    #[must_use]
    pub fn commands_seen(&self) -> u64 {
        self.record.total()
    }

    /// The last of them, the newest last: at most `count`, of the 1,024 and 16 MB that are kept.
    #[must_use]
    pub fn last_commands(&self, count: usize) -> Vec<SeenCommand> {
        self.record.last(count)
    }

    /// Has requests fail from now on, until the fault has met as many as it is for or is lifted. Of several faults that are for a
    /// request, it meets the first.
    pub fn inject(&self, fault: Fault) -> Injected<'_> {
        Injected { server: &self.running, number: self.running.faults.add(fault) }
    }

    /// Ends all faults: what hangs goes on, and connections are accepted.
    pub fn lift_all_faults(&self) {
        self.running.faults.lift_all();
        self.running.let_go_on();
    }

    /// Has the server turn connections away from now on, or accept them again: it accepts them, says `-ERR connection refused by policy`
    /// and closes them. Connections that are there stay. Where connecting itself is to fail, [`TestServer::stop`] it.
    pub fn refuse_connections(&self, is_refusing: bool) {
        self.running.faults.refuse_connections(is_refusing);
    }

    /// Closes all connections of clients, without a word to them. How many there were.
    ///
    /// # Panics
    /// The server is stopped.
    pub fn close_connections(&self) -> usize {
        close_clients(self.running.server().as_ref().expect("the test server is stopped"))
    }

    /// Whether it runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running.server().is_some()
    }

    /// Ends it at once: connections are closed, and its address takes no more. Its data is kept for [`TestServer::restart`].
    pub fn stop(&self) {
        self.end(&mut self.running.server());
    }

    /// As [`TestServer::stop`]. Other threads that stop it or start it again wait for that.
    fn end(&self, running: &mut Option<Server>) {
        let Some(server) = running.take() else { return };
        // What a client is told from now on would not be kept.
        let _closed = self.running.faults.closing_all();
        close_clients(&server);
        *self.kept() = Kept::of(&server);
        // Before requests are served again.
        drop(server);
    }

    /// Stops it, if it runs, and starts it on the same address. Its clock goes on meanwhile, and faults stay.
    ///
    /// # Errors
    /// The address is in use; or, with [`Data::Kept`], a script had run for longer than `busy_reply_threshold` when the server was stopped.
    pub fn restart(&self, data: Data) -> Result<(), Failure> {
        let mut running = self.running.server();
        self.end(&mut running);
        // What a client writes before the data is there would be overwritten by it.
        let _closed = self.running.faults.closing_all();
        let server = self.builder.clone().listen(&self.address.to_string()).start()?;
        let kept = std::mem::take(&mut *self.kept());
        if data == Data::Kept {
            kept.give_to(&server).map_err(|_| Failure::running("a script was under way: nothing was kept"))?;
        }
        *running = Some(server);
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServer").field("address", &self.address()).finish_non_exhaustive()
    }
}

/// A password as it stands in a URL.
fn percent_encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::percent_encoded;

    #[test]
    fn a_password_is_written_so_that_every_url_can_hold_it() {
        assert_eq!(percent_encoded("aZ9-._~"), "aZ9-._~");
        assert_eq!(percent_encoded("a@b:c/d ü"), "a%40b%3Ac%2Fd%20%C3%BC");
    }
}
