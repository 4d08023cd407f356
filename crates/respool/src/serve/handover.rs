//! Listeners that come from elsewhere, and listeners that go elsewhere: an upgrade loses no connection.
//!
//! A successor asks the running process for its sockets, opens everything, and says so; then the predecessor stops accepting,
//! serves whom it has for the drain's time, and ends. A service manager that listens itself (`LISTEN_FDS`) does the same for
//! a restart. A socket is known by what the settings call its address, so both may be told different things otherwise.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use listenfd::ListenFd;
use respool_net::handover::{Predecessor, Successor};
use respool_net::{Callers, ControlSocket, Listener, ListenerHandle};
use respool_proxy::Access;
use tracing::{info, warn};

use crate::control::{Control, Phase};
use crate::failure::Failure;
use crate::settings::{Address, NodeAddress, Process};

/// How long a process that has run out of files does not look who asks.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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

/// Sockets that listened before this process began, and whom to thank for them.
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

    /// Everything is open: whoever listened before need not any more. Sockets that nobody here wants are closed.
    pub(crate) fn settle(&mut self) {
        for (label, _) in self.sockets.drain(..) {
            warn!("{label} was listened on before, and is not any more");
        }
        let listening = std::mem::take(&mut self.listening);
        if let Some(successor) = self.successor.take() {
            listening.iter().for_each(ListenerHandle::keep);
            match successor.say_ready() {
                Ok(()) => info!("the listeners have been taken over"),
                // Whatever has become of the other process, the sockets are here.
                Err(error) => warn!(%error, "the process that was taken over did not answer"),
            }
        }
    }
}

fn listener_label(address: &Address) -> String {
    format!("listener {address}")
}

/// What comes under this name is no socket but a file in memory.
const USERS_LABEL: &str = "users";

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

/// Waits, on a thread of its own, for another process that wants the listeners. The result keeps the socket's file there.
///
/// # Errors
/// The socket cannot be opened, or the thread not be started.
pub(super) fn offer(
    process: &Process,
    control: &Arc<Control>,
    (offered, access): (&Offered, &Arc<Access>),
    inherited: &mut Inherited,
) -> Result<Option<ControlSocket>, Failure> {
    let Some(path) = &process.takeover_socket else { return Ok(None) };
    let opened = ControlSocket::open(&path.to_string_lossy(), inherited.of_control(path));
    let socket = opened.map_err(|error| Failure::running(error.to_string()))?;
    offered.add(control_label(path), socket.handle()?);
    inherited.note_listening(socket.handle()?);
    let (callers, end) = socket.callers()?;
    let end = Cell::new(Some(end));
    // A second hand keeps a socket listening, so all of them go when this process stops accepting.
    let (weak, ours) = (Arc::downgrade(control), offered.clone());
    control.on_change(Box::new(move || {
        let phase = weak.upgrade().map_or(Phase::Stopping, |control| control.phase());
        if phase > Phase::Serving {
            ours.take();
        }
        if phase == Phase::Stopping {
            end.take();
        }
    }));
    // An engine's data would stay behind.
    let has_data = process
        .instances
        .iter()
        .any(|instance| instance.is_embedded() || instance.nodes().any(|node| node.address == NodeAddress::Embedded));
    let (control, offered, access) = (Arc::clone(control), offered.clone(), Arc::clone(access));
    let serve = move || wait(callers, &control, (&offered, &access), has_data);
    thread::Builder::new().name("takeover".to_owned()).spawn(serve)?;
    Ok(Some(socket))
}

fn wait(callers: Callers, control: &Control, (offered, access): (&Offered, &Access), has_data: bool) {
    for stream in patiently(callers, || thread::sleep(ACCEPT_PAUSE)) {
        let given = Predecessor::greet(stream).and_then(|mut successor| {
            if has_data {
                successor.refuse("it holds data in embedded engines, which would be lost")?;
                return Ok(false);
            }
            if control.phase() != Phase::Serving {
                successor.refuse("it is starting or ending")?;
                return Ok(false);
            }
            give(&mut successor, control, offered, access)
        });
        match given {
            Ok(true) => return,
            Ok(false) => warn!("somebody has asked for the listeners and was refused"),
            Err(error) => warn!(%error, "somebody has asked for the listeners and did not get them"),
        }
    }
}

/// Who has come. A failure to accept is followed by a pause: whoever knocked is still there, so that without one this would
/// go round and round until the process has files again.
fn patiently<S>(incoming: impl Iterator<Item = std::io::Result<S>>, pause: impl Fn()) -> impl Iterator<Item = S> {
    incoming.filter_map(move |stream| {
        let failed = |error: &std::io::Error| {
            warn!(%error, "nobody can ask for the listeners; listening again soon");
            pause();
        };
        stream.inspect_err(failed).ok()
    })
}

/// A file that is nowhere but in memory: what is in it has hashes of passwords.
fn in_memory(text: &[u8]) -> std::io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("respool users", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(file);
    file.write_all(text)?;
    Ok(file.into())
}

/// Gives everything away. `Ok(false)`: it turned out that this process was ending.
fn give(successor: &mut Predecessor, control: &Control, offered: &Offered, access: &Access) -> std::io::Result<bool> {
    let unsaved = access.unsaved();
    let users = if unsaved.is_empty() { None } else { Some(in_memory(&unsaved)?) };
    let mut sockets = offered.take();
    sockets.extend(users.map(|users| (USERS_LABEL.to_owned(), ListenerHandle::from(users))));
    let sent = successor.send(&sockets);
    sockets.retain(|(label, _)| label != USERS_LABEL);
    if let Err(error) = sent {
        // As if nothing had happened, unless the process began to end meanwhile: then nobody may keep the sockets.
        if control.phase() == Phase::Serving {
            offered.0.lock().unwrap_or_else(PoisonError::into_inner).extend(sockets);
        }
        return Err(error);
    }
    sockets.iter().for_each(|(_, handle)| handle.give_away());
    drop(sockets);
    let is_ours = control.enter(Phase::Retiring);
    info!("another process has taken over the listeners; clients that are here are served until the drain timeout");
    // It has the sockets whether it hears this or not.
    let _ = successor.say_bye();
    Ok(is_ours)
}

#[cfg(test)]
mod tests {
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
