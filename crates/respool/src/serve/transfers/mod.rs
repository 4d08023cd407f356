//! Keys on their way to other servers, for MIGRATE: a thread for each transfer, and connections that are kept for the next one.
//!
//! ```text
//!   worker --Transfer--> thread: kept connection, or a new one --> exchange --> the connection is kept
//!      ^                            ^    | lost before any reply: once more, on a new one    |
//!      |                            '----'                                                   |
//!      '----------------------------------- mail --------------------------------------------'
//! ```
//!
//! Nothing here waits without a bound: the transfer's timeout, and the end of the instance, which is looked for ten times a second.
//! Only the look-up of a host's name takes as long as the system's resolver wants.

mod connections;
mod exchange;

use std::fmt;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use respool_net::MailSender;
use respool_proxy::{Mail, Transfer, TransferEnd, TransferFailure, TransferOutcome, TransferTarget};
use respool_wire::encode_request;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use zeroize::Zeroizing;

use connections::{Connection, Connections, TargetName};
use exchange::{Broken, Expected, Patience, exchange};

/// For how long the end of an instance waits for threads that it has told to end: twice as long as they may sleep.
const END_AWAITED: Duration = Duration::from_millis(500);

/// The transfers of one instance.
#[derive(Default)]
pub(super) struct Transfers {
    desk: Arc<Desk>,
}

/// What the threads share.
#[derive(Default)]
struct Desk {
    state: Mutex<State>,
    /// Signals a connection that is kept, a thread that ends, and the end of all.
    has_news: Condvar,
    is_over: AtomicBool,
}

#[derive(Default)]
struct State {
    kept: Connections,
    threads: usize,
    /// A thread closes connections that have not been used for long.
    has_keeper: bool,
}

impl fmt::Debug for Transfers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transfers").finish_non_exhaustive()
    }
}

impl Transfers {
    /// Sends keys. What has come of it is returned if the worker waits for it; otherwise it is mailed, also where there is no thread.
    pub(super) fn begin(&self, transfer: Transfer, mail_sender: &MailSender<Mail>) -> Option<TransferEnd> {
        if transfer.is_waited_for {
            return Some(transfer.end(self.desk.run(&transfer)));
        }
        let failed = transfer.end(TransferFailure::Connecting.into());
        let report = Report { mail_sender: mail_sender.clone(), end: Some(failed) };
        let desk = Arc::clone(&self.desk);
        spawn(&self.desk, "transfer", move || {
            let mut report = report;
            let outcome = desk.run(&transfer);
            // What was sent is not held any longer than its client's account has it.
            report.end = Some(transfer.end(outcome));
            drop(transfer);
            drop(report);
        });
        None
    }

    /// Connections that are kept.
    pub(super) fn kept(&self) -> usize {
        self.desk.lock().kept.len()
    }

    /// Ends everything that is under way, also what a worker waits for.
    pub(super) fn stop(&self) {
        self.desk.is_over.store(true, Ordering::Relaxed);
        self.desk.has_news.notify_all();
    }

    /// The same, and waits a moment for that.
    pub(super) fn end(&self) {
        self.stop();
        let mut state = self.desk.lock();
        state.kept = Connections::default();
        let until = Instant::now() + END_AWAITED;
        while state.threads > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.desk.has_news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What the worker is told, whatever becomes of the thread.
struct Report {
    mail_sender: MailSender<Mail>,
    end: Option<TransferEnd>,
}

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            // A worker that has ended has no client that waits.
            self.mail_sender.post(end.into());
        }
    }
}

/// Counts a thread out when it ends.
struct Seat(Arc<Desk>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.lock().threads -= 1;
        self.0.has_news.notify_all();
    }
}

/// Begins a thread that is counted. `false`: the system has none.
fn spawn(desk: &Arc<Desk>, name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    desk.lock().threads += 1;
    let seat = Seat(Arc::clone(desk));
    let named = thread::Builder::new().name(name.to_owned());
    let begun = named.spawn(move || {
        let _seat = seat;
        run();
    });
    begun.is_ok()
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a transfer and reads what is replied. A connection that is lost before that may have been closed long ago by the other side,
    /// so there is a second attempt, as in Redis.
    fn run(self: &Arc<Self>, transfer: &Transfer) -> TransferOutcome {
        let name = TargetName::of(&transfer.target);
        let patience = Patience { limit: Duration::from_millis(transfer.target.timeout_ms), is_over: &self.is_over };
        let kept = self.lock().kept.take(&name);
        let mut may_retry = true;
        let mut connection = match kept.map_or_else(|| dial(&transfer.target, &patience), Ok) {
            Ok(connection) => connection,
            Err(failure) => return failure.into(),
        };
        loop {
            let mut outcome = TransferOutcome::default();
            let sent = send(&mut connection, transfer, &patience, &mut outcome);
            let Err(broken) = sent else {
                if outcome.refusal.is_some() {
                    connection.database = None;
                }
                self.keep(name, connection);
                return outcome;
            };
            if may_retry && !broken.is_late && outcome.acknowledged.is_empty() && outcome.refusal.is_none() {
                may_retry = false;
                match dial(&transfer.target, &patience) {
                    Ok(other) => connection = other,
                    Err(failure) => return failure.into(),
                }
                continue;
            }
            let failure = if broken.is_writing { TransferFailure::Writing } else { TransferFailure::Reading };
            outcome.failure = outcome.failure.or(Some(failure));
            return outcome;
        }
    }

    /// Keeps a connection for the next transfer, unless nothing could close it in time.
    fn keep(self: &Arc<Self>, name: TargetName, connection: Connection) {
        if !connection.is_in_step || self.is_over.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.lock();
        let is_first = !std::mem::replace(&mut state.has_keeper, true);
        state.kept.keep(name, connection, Instant::now());
        drop(state);
        if !is_first {
            return;
        }
        let desk = Arc::clone(self);
        if !spawn(self, "transfers", move || desk.close_unused()) {
            let mut state = self.lock();
            state.has_keeper = false;
            state.kept = Connections::default();
        }
    }

    /// Closes connections that have not been used for long, until none is left.
    fn close_unused(&self) {
        let mut state = self.lock();
        loop {
            let next = state.kept.close_unused(Instant::now());
            let Some(next) = next.filter(|_| !self.is_over.load(Ordering::Relaxed)) else {
                state.has_keeper = false;
                return;
            };
            state = self.has_news.wait_timeout(state, next).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Sends everything on one connection. `Err`: it is lost, and `outcome` has what has come before.
fn send(
    connection: &mut Connection,
    transfer: &Transfer,
    patience: &Patience<'_>,
    outcome: &mut TransferOutcome,
) -> Result<(), Broken> {
    let is_ready = prepare(connection, &transfer.target, patience, outcome)?;
    if !is_ready {
        return Ok(());
    }
    let TransferOutcome { acknowledged, refusal, .. } = outcome;
    exchange(connection, &transfer.requests, &transfer.ends, patience, |reply| match reply {
        Expected::Done => acknowledged.push(true),
        Expected::Refused(words) => {
            acknowledged.push(false);
            refusal.get_or_insert_with(|| words.to_vec());
        }
    })
}

/// Authenticates, and selects the database. They are answered before any key is sent: keys are for that database alone. `false`:
/// the server refuses one of them.
fn prepare(
    connection: &mut Connection,
    target: &TransferTarget,
    patience: &Patience<'_>,
    outcome: &mut TransferOutcome,
) -> Result<bool, Broken> {
    let mut requests = Zeroizing::new(Vec::with_capacity(1024));
    let mut ends = Vec::new();
    if let Some(auth) = &target.auth {
        encode_request(&mut requests, auth.as_args().iter());
        ends.push(requests.len());
    }
    if connection.database != Some(target.database) {
        let database = target.database.to_string();
        encode_request(&mut requests, [&b"SELECT"[..], database.as_bytes()].into_iter());
        ends.push(requests.len());
    }
    if ends.is_empty() {
        return Ok(true);
    }
    let refusal = &mut outcome.refusal;
    exchange(connection, &requests, &ends, patience, |reply| {
        if let Expected::Refused(words) = reply {
            refusal.get_or_insert_with(|| words.to_vec());
        }
    })?;
    if outcome.refusal.is_some() {
        outcome.failure = Some(TransferFailure::Refused);
        return Ok(false);
    }
    connection.database = Some(target.database);
    Ok(true)
}

/// Connects to the first address of the target that takes a connection. A server that refuses it is told of as one that was not written to,
/// as in Redis, which sees no other difference.
fn dial(target: &TransferTarget, patience: &Patience<'_>) -> Result<Connection, TransferFailure> {
    let until = patience.until();
    let mut failure = TransferFailure::Connecting;
    for address in addresses(target).unwrap_or_default() {
        match dial_address(address, until, patience) {
            Ok(stream) => return Ok(Connection::new(stream)),
            Err(other) => failure = other,
        }
    }
    Err(failure)
}

/// `None`: the target has no address.
fn addresses(target: &TransferTarget) -> Option<Vec<SocketAddr>> {
    let host = std::str::from_utf8(&target.host).ok()?;
    // As Redis reads it: digits as far as there are any.
    let digits = target.port.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let port = std::str::from_utf8(&target.port[..digits]).ok()?;
    let port: u16 = if port.is_empty() { 0 } else { port.parse().ok()? };
    match host.parse::<IpAddr>() {
        Ok(address) => Some(vec![(address, port).into()]),
        Err(_) => Some((host, port).to_socket_addrs().ok()?.collect()),
    }
}

fn dial_address(address: SocketAddr, until: Instant, patience: &Patience<'_>) -> Result<TcpStream, TransferFailure> {
    let begun = begin_dial(address).map_err(|_| TransferFailure::Connecting)?;
    patience.wait(&begun, PollFlags::OUT, until).map_err(|_| TransferFailure::Connecting)?;
    match sockopt::socket_error(&begun) {
        Ok(Ok(())) => {}
        Ok(Err(_)) | Err(_) => return Err(TransferFailure::Writing),
    }
    let stream = TcpStream::from(begun);
    stream.set_nodelay(true).map_err(|_| TransferFailure::Writing)?;
    Ok(stream)
}

/// A socket that is being connected, or is so already.
fn begin_dial(address: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}
