//! Listeners that come from elsewhere, and listeners that go elsewhere: an upgrade loses no connection.
//!
//! A successor asks the running process for its sockets, opens everything, and says so; then the predecessor stops accepting,
//! serves its clients for the drain's time, and ends. A service manager that listens itself (`LISTEN_FDS`) does the same for
//! a restart. A socket is known by what the settings call its address, so both may be told different things otherwise.

// Only the program takes sockets over, and only its own are taken over; a program that embeds the library has neither.
#![cfg_attr(not(feature = "cli"), allow(dead_code))]

use std::collections::HashMap;
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use listenfd::ListenFd;
use respool_net::handover::{Farewell, Overruling, Predecessor, Successor};
use respool_net::{Callers, ControlSocket, Listener, ListenerHandle};
use respool_proxy::{Access, ProcessBudget, Shared};
use tracing::{info, warn};

use crate::control::{Control, Phase};
use crate::failure::Failure;
use crate::settings::{Address, NodeAddress, Process};

/// How long a process that has run out of files accepts no connection of a successor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Largest list of orders that is read, in bytes: a pause and a drain of every node there may be, with room.
const ORDERS_BYTES_MAX: u64 = 1 << 20;

/// Processes that may ask for the listeners at once.
const ASKERS_MAX: usize = 16;

/// How long an asker waits before it looks again whether the one before has put everything back.
const TURN_PAUSE: Duration = Duration::from_millis(5);

/// Gives every address a name of its own: the same address may stand in the settings twice, if its port is 0.
#[derive(Debug, Default)]
struct Labels(HashMap<String, usize>);

impl Labels {
    fn next(&mut self, text: String) -> String {
        let count = self.0.entry(text.clone()).or_default();
        *count += 1;
        if *count == 1 { text } else { format!("{text} #{count}") }
    }
}

/// Sockets that listened before this process began, and which process they come from.
#[derive(Debug, Default)]
pub struct Inherited {
    sockets: Vec<(String, OwnedFd)>,
    labels: Labels,
    successor: Option<Successor>,
    /// Listeners on those sockets. Their files are the other process' until this one goes on with them.
    listening: Vec<ListenerHandle>,
}

impl Inherited {
    /// What the process at `take_over` gives, or what a service manager has left in this process' environment.
    ///
    /// # Errors
    /// The other process does not answer, or refuses.
    pub fn ask(take_over: Option<&Path>) -> Result<Self, Failure> {
        match take_over {
            None => Ok(Self { sockets: of_service_manager(), ..Self::default() }),
            Some(path) => {
                let asked = Successor::ask(path);
                let refused = |error| Failure::running(format!("{} cannot be taken over: {error}", path.display()));
                let (successor, sockets) = asked.map_err(refused)?;
                Ok(Self { sockets, successor: Some(successor), ..Self::default() })
            }
        }
    }

    /// The number of sockets and files.
    pub(super) fn len(&self) -> usize {
        self.sockets.len()
    }

    /// Whether they come from a process that serves until the takeover is confirmed.
    pub(crate) fn has_predecessor(&self) -> bool {
        self.successor.is_some()
    }

    /// The sockets that listen at an address already. Addresses must be asked for in the order of the settings.
    pub(super) fn of_listener(&mut self, address: &Address) -> (String, Vec<OwnedFd>) {
        self.take(listener_label(address))
    }

    /// The socket of the HTTP side.
    pub(crate) fn of_metrics(&mut self, address: &Address) -> Option<OwnedFd> {
        self.take(metrics_label(address)).1.pop()
    }

    /// What has become of users and was not saved.
    pub(super) fn of_users(&mut self) -> Option<OwnedFd> {
        self.take(USERS_LABEL.to_owned()).1.pop()
    }

    /// The orders that hold in an instance.
    pub(super) fn of_orders(&mut self, instance: &str) -> Option<OwnedFd> {
        self.take(orders_label(instance)).1.pop()
    }

    fn of_control(&mut self, path: &Path) -> Option<OwnedFd> {
        self.take(control_label(path)).1.pop()
    }

    fn take(&mut self, text: String) -> (String, Vec<OwnedFd>) {
        let label = self.labels.next(text);
        let all = std::mem::take(&mut self.sockets);
        let (taken, left) = all.into_iter().partition(|(known, _)| *known == label);
        self.sockets = left;
        (label, taken.into_iter().map(|(_, socket)| socket).collect())
    }

    /// A socket that listened before is listened on here.
    pub(super) fn note_listening(&mut self, handle: ListenerHandle) {
        self.listening.push(handle);
    }

    /// Everything is open: the former process need not listen any more. Sockets that are not used here are closed.
    ///
    /// # Errors
    /// The sockets are another process's after all.
    pub(crate) fn settle(&mut self) -> Result<(), Failure> {
        for (label, _) in self.sockets.drain(..) {
            warn!("{label} was listened on before, and is not any more");
        }
        let listening = std::mem::take(&mut self.listening);
        if let Some(successor) = self.successor.take() {
            listening.iter().for_each(ListenerHandle::keep);
            match successor.say_ready() {
                Ok(Farewell::Bye) => info!("the listeners have been taken over"),
                Ok(Farewell::Overruled(why)) => {
                    listening.iter().for_each(ListenerHandle::give_away);
                    return Err(Failure::running(format!("the listeners cannot be taken over: {why}")));
                }
                // Whatever has become of the other process, the sockets are here.
                Err(error) => warn!(%error, "the process that was taken over did not answer"),
            }
        }
        Ok(())
    }
}

fn listener_label(address: &Address) -> String {
    format!("listener {address}")
}

/// What comes under this name is no socket but a file in memory.
const USERS_LABEL: &str = "users";

/// The same for the orders that hold in an instance.
fn orders_label(instance: &str) -> String {
    format!("orders {instance}")
}

fn metrics_label(address: &Address) -> String {
    format!("metrics {address}")
}

fn control_label(path: &Path) -> String {
    format!("takeover_socket {}", path.display())
}

/// What a service manager listens on for us. Where it listens on every interface, the settings write `:port`.
fn of_service_manager() -> Vec<(String, OwnedFd)> {
    let mut given = ListenFd::from_env();
    let mut sockets = Vec::new();
    for place in 0..given.len() {
        if let Ok(Some(listener)) = given.take_tcp_listener(place) {
            if let Ok(local) = listener.local_addr() {
                let address = match local.ip().is_unspecified() {
                    true => Address::Any { port: local.port() },
                    false => Address::Tcp { host: local.ip().to_string(), port: local.port() },
                };
                sockets.push((listener_label(&address), listener.into()));
            }
        } else if let Ok(Some(listener)) = given.take_unix_listener(place) {
            let local = listener.local_addr().ok();
            if let Some(path) = local.as_ref().and_then(|local| local.as_pathname()) {
                sockets.push((listener_label(&Address::Unix { path: path.to_owned() }), listener.into()));
            }
        }
    }
    sockets
}

/// Goes on with the orders that hold in an instance of the process whose listeners are taken over. Whether there are any.
///
/// # Errors
/// They cannot be read, or this version does not know what they say.
pub(super) fn go_on_with_orders(shared: &Shared, orders: Option<OwnedFd>) -> Result<bool, Failure> {
    let Some(orders) = orders else { return Ok(false) };
    let mut file = std::fs::File::from(orders);
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.take(ORDERS_BYTES_MAX).read_to_string(&mut text));
    let taken = read.map_err(|error| error.to_string());
    let taken = taken.and_then(|_| shared.go_on_with_orders(&text, respool_net::monotonic_us()));
    taken.map_err(|why| Failure::running(format!("the orders of the process before cannot be taken over: {why}")))?;
    info!(orders = %text.trim_end().replace('\n', ", "), "orders that were given to the process before hold here");
    Ok(true)
}

/// Sockets of this process that another one may ask for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offered(Arc<Mutex<Vec<(String, ListenerHandle)>>>);

impl Offered {
    /// Offers a listener.
    ///
    /// # Errors
    /// The system gives no second hand on its socket.
    pub(super) fn listener(&self, label: &str, listener: &Listener) -> Result<(), Failure> {
        let handle = listener.handle().map_err(|error| Failure::running(error.to_string()))?;
        self.add(label.to_owned(), handle);
        Ok(())
    }

    /// Offers the socket of the HTTP side.
    pub(crate) fn metrics(&self, address: &Address, socket: OwnedFd) {
        self.add(metrics_label(address), ListenerHandle::from(socket));
    }

    fn add(&self, label: String, handle: ListenerHandle) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((label, handle));
    }

    fn take(&self) -> Vec<(String, ListenerHandle)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What another process gets.
pub(super) struct Estate {
    /// The sockets.
    pub(super) offered: Offered,
    /// The users.
    pub(super) access: Arc<Access>,
    pub(super) ledger: Arc<ProcessBudget>,
    /// The instances by name, for the orders that hold there.
    pub(super) instances: Vec<(String, Arc<Shared>)>,
}

impl Estate {
    /// What has become of users and was not saved, and orders that hold, each a file in memory under its label.
    fn files(&self) -> std::io::Result<Vec<(String, ListenerHandle)>> {
        let mut texts = vec![(USERS_LABEL.to_owned(), self.access.unsaved())];
        let now_us = respool_net::monotonic_us();
        let orders =
            |(name, shared): &(String, Arc<Shared>)| (orders_label(name), shared.standing_orders(now_us).into());
        texts.extend(self.instances.iter().map(orders));
        texts.retain(|(_, text)| !text.is_empty());
        let file =
            |(label, text): (String, Vec<u8>)| Ok((label, ListenerHandle::from(in_memory("respool handover", &text)?)));
        texts.into_iter().map(file).collect()
    }
}

/// Waits, on a thread of its own, for another process that wants the listeners. The result keeps the socket's file there.
///
/// # Errors
/// The socket cannot be opened, or the thread not be started.
pub(super) fn offer(
    process: &Process,
    control: &Arc<Control>,
    estate: Estate,
    inherited: &mut Inherited,
) -> Result<Option<ControlSocket>, Failure> {
    let Some(path) = &process.takeover_socket else { return Ok(None) };
    let opened = ControlSocket::open(&path.to_string_lossy(), inherited.of_control(path));
    let socket = opened.map_err(|error| Failure::running(error.to_string()))?;
    estate.offered.add(control_label(path), socket.handle()?);
    inherited.note_listening(socket.handle()?);
    let (callers, end) = socket.callers()?;
    let has_data = process
        .instances
        .iter()
        .any(|instance| instance.is_embedded() || instance.nodes().any(|node| node.address == NodeAddress::Embedded));
    let offered = estate.offered.clone();
    let desk = Arc::new(Desk {
        control: Arc::clone(control),
        estate,
        has_data,
        end: Mutex::new(Some(end)),
        come: AtomicU64::new(0),
        present: AtomicUsize::new(0),
        turn: Mutex::new(()),
        unready: Mutex::new(None),
        given: Mutex::default(),
    });
    let ending = Arc::downgrade(&desk);
    control.before_end(Box::new(move || ending.upgrade().iter().for_each(|desk| desk.leave_given())));
    // A second hand keeps a socket listening, so all of them go when this process stops accepting.
    let (weak, known) = (Arc::downgrade(control), Arc::downgrade(&desk));
    control.on_change(Box::new(move || {
        let phase = weak.upgrade().map_or(Phase::Stopping, |control| control.phase());
        if phase > Phase::Serving {
            offered.take();
        }
        if phase == Phase::Stopping {
            known.upgrade().iter().for_each(|desk| drop(lock(&desk.end).take()));
        }
    }));
    thread::Builder::new().name("takeover".to_owned()).spawn(move || desk.wait(callers))?;
    Ok(Some(socket))
}

/// Where the next process is served that wants to go on with this one's listeners.
struct Desk {
    control: Arc<Control>,
    estate: Estate,
    /// An engine's data would stay behind.
    has_data: bool,
    /// Ends the wait for askers by being dropped.
    end: Mutex<Option<UnixStream>>,
    /// Askers that have come, and those that are here now.
    come: AtomicU64,
    present: AtomicUsize,
    /// One at a time has the sockets.
    turn: Mutex<()>,
    /// The one that has them and is not ready yet. Taking it out decides: the asker is ready, or it is overruled.
    unready: Mutex<Option<(u64, Overruling)>>,
    given: Mutex<Given>,
}

/// What a process that is not ready yet has been given.
#[derive(Default)]
struct Given {
    handles: Vec<ListenerHandle>,
    /// This process ends: the other goes on with them.
    is_left: bool,
}

/// A counted asker.
struct Presence<'a>(&'a AtomicUsize);

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Desk {
    /// Hears every asker on a thread of its own, so that one that says nothing holds up no other.
    fn wait(self: &Arc<Self>, callers: Callers) {
        for stream in patiently(callers, || thread::sleep(ACCEPT_PAUSE)) {
            if self.present.fetch_add(1, Ordering::Relaxed) >= ASKERS_MAX {
                self.present.fetch_sub(1, Ordering::Relaxed);
                warn!("the listeners were asked for by too many at once");
                continue;
            }
            let desk = Arc::clone(self);
            let hear = move || {
                let _present = Presence(&desk.present);
                match Predecessor::greet(stream).and_then(|successor| desk.serve(successor)) {
                    Ok(true) => {}
                    Ok(false) => warn!("another process has asked for the listeners and was refused"),
                    Err(error) => warn!(%error, "another process has asked for the listeners and did not get them"),
                }
            };
            if thread::Builder::new().name("takeover-asker".to_owned()).spawn(hear).is_err() {
                self.present.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Whether an asker has got everything.
    fn serve(&self, mut successor: Predecessor) -> std::io::Result<bool> {
        let number = self.come.fetch_add(1, Ordering::Relaxed) + 1;
        if self.has_data {
            successor.refuse("it holds data in embedded engines, which would be lost")?;
            return Ok(false);
        }
        // A successor that is refused anyway must not overrule one that goes on with the listeners when this process has ended.
        if let Some(why) = self.refusal() {
            successor.refuse(why)?;
            return Ok(false);
        }
        let turn = self.take_turn(number);
        let refusal = if turn.is_none() { Some("it is busy with another successor") } else { self.refusal() };
        if let Some(why) = refusal {
            successor.refuse(why)?;
            return Ok(false);
        }
        *lock(&self.unready) = Some((number, successor.overruling()?));
        self.give(&mut successor)
    }

    /// Why no process can take over now.
    fn refusal(&self) -> Option<&'static str> {
        match self.control.phase() {
            Phase::Serving => None,
            Phase::Retiring => Some("another successor has taken over from it"),
            Phase::Starting | Phase::Leaving | Phase::Draining | Phase::Stopping => Some("it is starting or ending"),
        }
    }

    /// Whether this process ends, and does not give its place to another that is ready.
    fn is_ending(&self) -> bool {
        lock(&self.given).is_left
    }

    /// The turn of an asker, which overrules one that came before it and is not ready. `None`: another has come behind it.
    fn take_turn(&self, number: u64) -> Option<MutexGuard<'_, ()>> {
        loop {
            let mut unready = lock(&self.unready);
            match unready.take() {
                Some((other, overruling)) if other < number => {
                    warn!("a process that has got the listeners and is not ready is overruled by the next");
                    overruling.overrule("the next successor has come before this one was ready");
                }
                Some(newer) => {
                    *unready = Some(newer);
                    return None;
                }
                None => {}
            }
            drop(unready);
            match self.turn.try_lock() {
                Ok(turn) => return Some(turn),
                Err(TryLockError::Poisoned(turn)) => return Some(turn.into_inner()),
                // It is putting back what it has, or is through.
                Err(TryLockError::WouldBlock) => thread::sleep(TURN_PAUSE),
            }
        }
    }

    /// Gives everything away. From the moment at which it is looked at, clients can change nothing of it any more.
    fn give(&self, successor: &mut Predecessor) -> std::io::Result<bool> {
        self.estate.ledger.note_successor(true);
        let mut sockets = self.estate.offered.take();
        let given = self.note_given(&sockets).and_then(|()| self.send(successor, &mut sockets));
        if let Err(error) = given {
            self.estate.ledger.note_successor(false);
            *lock(&self.unready) = None;
            self.take_back();
            // As if nothing had happened, unless the process began to end meanwhile: it does not listen any more then.
            if self.control.phase() == Phase::Serving {
                lock(&self.estate.offered.0).extend(sockets);
            }
            return Err(error);
        }
        sockets.iter().for_each(|(_, handle)| handle.give_away());
        lock(&self.given).handles.clear();
        drop(sockets);
        // Successors from now on ask the other process.
        lock(&self.end).take();
        self.control.enter(Phase::Retiring);
        info!("another process has taken over the listeners; clients that are here are served until the drain timeout");
        // It has the sockets whether it hears this or not.
        let _ = successor.say_bye();
        Ok(true)
    }

    /// Remembers what a process is about to be given.
    fn note_given(&self, sockets: &[(String, ListenerHandle)]) -> std::io::Result<()> {
        let handles = sockets.iter().map(|(_, handle)| handle.try_clone()).collect::<Result<Vec<_>, _>>()?;
        let mut given = lock(&self.given);
        given.handles = handles;
        if given.is_left {
            given.handles.iter().for_each(ListenerHandle::give_away);
        }
        Ok(())
    }

    /// This process is about to end. One that has been given the sockets goes on with them although it is not ready yet: clients wait in the
    /// kernel's queues until it is. Workers that know of the end take the files of their sockets away, so this comes before that.
    fn leave_given(&self) {
        let mut given = lock(&self.given);
        given.is_left = true;
        if !given.handles.is_empty() {
            info!("this process ends before its successor is ready, which goes on with the listeners");
        }
        given.handles.iter().for_each(ListenerHandle::give_away);
    }

    /// The successor is none, unless this process is about to end: then it goes on with what it has been given.
    fn take_back(&self) {
        let mut given = lock(&self.given);
        let (handles, is_left) = (std::mem::take(&mut given.handles), given.is_left);
        if !is_left {
            handles.iter().for_each(ListenerHandle::keep);
        }
    }

    fn send(&self, successor: &mut Predecessor, sockets: &mut Vec<(String, ListenerHandle)>) -> std::io::Result<()> {
        let files = self.estate.files()?;
        let count = sockets.len();
        sockets.extend(files);
        let sent = successor.send(sockets, || !self.is_ending());
        sockets.truncate(count);
        sent?;
        match lock(&self.unready).take() {
            Some(_) => Ok(()),
            None => Err(std::io::Error::other("it was overruled in the moment in which it was ready")),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connections that have come. A failure to accept is followed by a pause: the connection is still there, so that without one this would
/// go round and round until the process has files again.
fn patiently<S>(incoming: impl Iterator<Item = std::io::Result<S>>, pause: impl Fn()) -> impl Iterator<Item = S> {
    incoming.filter_map(move |stream| {
        let failed = |error: &std::io::Error| {
            warn!(%error, "no process can ask for the listeners; listening again soon");
            pause();
        };
        stream.inspect_err(failed).ok()
    })
}

/// A file that is nowhere but in memory: it may have hashes of passwords.
fn in_memory(name: &str, text: &[u8]) -> std::io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(file);
    file.write_all(text)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io;

    use super::*;

    #[test]
    fn a_process_without_files_looks_again_after_a_pause() {
        let pauses = Cell::new(0);
        let full = || Err(io::Error::from_raw_os_error(24));
        let incoming = [full(), full(), Ok("one"), full(), Ok("another")];
        let pause = || pauses.set(pauses.get() + 1);
        let seen: Vec<_> = patiently(incoming.into_iter(), pause).map(|stream| (stream, pauses.get())).collect();
        assert_eq!(seen, [("one", 2), ("another", 3)]);
    }
}
