//! The listeners of a server whose parameters say where it listens: `CONFIG SET` of `bind`, `port`, `tls-port` and the files of TLS.
//!
//! What is new is opened before anything else is changed. What is no longer said goes on listening until then, unless it has the
//! port of what is opened: it is closed first, and opened again if that fails. Connections that there are stay.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use respool_net::{Listener, ListenerHandle, MailSender, TransportOptions, bind};
use respool_proxy::Mail;

use super::config;
use super::tls::InstanceTls;
use crate::control::{Control, Phase};
use crate::parameters::listening::{ADDRESSES, failure, is_about_tls};
use crate::parameters::{Changes, Parameters};
use crate::settings::{Instance, ListenSpec, Process};

/// One address that is listened on, and a hand on the socket of each worker there. Of a unix socket there is none: it stays.
#[derive(Debug)]
pub(super) struct BoundAddress {
    pub(super) spec: ListenSpec,
    pub(super) handles: Vec<ListenerHandle>,
}

/// The listeners of a server whose parameters say where it listens.
pub(super) struct ServerListeners {
    workers: Vec<MailSender<Mail>>,
    tls: Arc<InstanceTls>,
    /// The port that INFO shows.
    tcp_port: Arc<AtomicU16>,
    bound: Mutex<Vec<BoundAddress>>,
}

/// Listeners that a CONFIG SET has opened and not yet given to the workers. Dropped, it restores the listeners before it.
pub(super) struct Opened<'l> {
    listeners: &'l ServerListeners,
    /// All listeners after the change, in order, with the sockets of those that are new.
    bound: Vec<(ListenSpec, Option<Vec<Vec<Listener>>>)>,
    tls: InstanceTls,
    /// Something of TLS is changed, so that listeners that stay take over what is new.
    is_about_tls: bool,
    /// Listeners that were closed because a new one has their port.
    ended: Vec<ListenSpec>,
    terms: Terms,
}

/// How sockets are opened.
struct Terms {
    workers: usize,
    backlog: i32,
    unix_mode: u32,
    transport: TransportOptions,
}

impl Terms {
    fn of(instance: &Instance, workers: usize) -> Self {
        let backlog = i32::try_from(instance.net.backlog).unwrap_or(i32::MAX);
        let (transport, _) = config::transports(instance);
        Self { workers, backlog, unix_mode: instance.net.unix_mode, transport }
    }

    /// Listens there; each worker has its own sockets.
    fn bind(&self, spec: &ListenSpec) -> Result<Vec<Vec<Listener>>, String> {
        let endpoint = config::endpoint(&spec.address);
        let opened = bind(&endpoint, self.workers, self.backlog, self.unix_mode, &self.transport);
        opened.map_err(|error| error.to_string())
    }
}

impl ServerListeners {
    pub(super) fn new(
        bound: Vec<BoundAddress>,
        workers: Vec<MailSender<Mail>>,
        tls: Arc<InstanceTls>,
        tcp_port: Arc<AtomicU16>,
        control: &Arc<Control>,
    ) -> Arc<Self> {
        let listeners = Arc::new(Self { workers, tls, tcp_port, bound: Mutex::new(bound) });
        let (weak, watched) = (Arc::downgrade(&listeners), Arc::downgrade(control));
        // A second hand keeps a socket listening, so all of them go when this process stops accepting.
        control.on_change(Box::new(move || {
            let is_over = watched.upgrade().is_none_or(|control| control.phase() > Phase::Serving);
            weak.upgrade().filter(|_| is_over).into_iter().for_each(|listeners| listeners.bound().clear());
        }));
        listeners
    }

    fn bound(&self) -> MutexGuard<'_, Vec<BoundAddress>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens what `changes` say beyond what there is. `process`: the settings with them, which are completed. `None`: nothing of it is
    /// about listeners.
    ///
    /// # Errors
    /// The parameter that cannot be had, and Redis' words for it.
    pub(super) fn open(
        &self,
        parameters: &Parameters,
        changes: &Changes,
        process: &mut Process,
        number: usize,
    ) -> Result<Option<Opened<'_>>, (&'static str, &'static str)> {
        let concerned = |name: &&str| ADDRESSES.contains(name) || is_about_tls(name);
        if changes.names().find(concerned).is_none() {
            return Ok(None);
        }
        let parameters = parameters.with(changes);
        let instance = &mut process.instances[number];
        instance.net.listen = specs(&parameters);
        instance.tls.listen = parameters.listen_tls(&instance.tls.listen);
        let tls = load(instance).map_err(|why| {
            tracing::warn!("CONFIG SET failed: {why}");
            let name = changes.names().find(|name| is_about_tls(name)).unwrap_or("tls-port");
            (name, failure("tls-cert-file"))
        })?;
        let terms = Terms::of(instance, self.workers.len());
        let is_about_tls = changes.names().any(is_about_tls);
        let mut opened = Opened { listeners: self, bound: Vec::new(), tls, is_about_tls, ended: Vec::new(), terms };
        opened.bind_all(instance).map_err(|(port, why)| {
            tracing::warn!("CONFIG SET failed: {why}");
            let name = changes.names().find(|name| *name == "bind" || *name == port).unwrap_or(port);
            (name, failure(name))
        })?;
        Ok(Some(opened))
    }

    /// What was closed for a change that has failed is open again.
    fn open_again(&self, spec: &ListenSpec, sockets: Vec<Vec<Listener>>) {
        if let Some(entry) = self.bound().iter_mut().find(|entry| entry.spec == *spec) {
            entry.handles = handles(&sockets);
        }
        let server = self.tls.listener(spec);
        for (worker, sockets) in self.workers.iter().zip(sockets) {
            let secured = |listener: Listener| match &server {
                Some(server) => listener.with_tls(Arc::clone(server)),
                None => listener,
            };
            // A worker that has ended needs none.
            worker.close_ended();
            worker.listen(sockets.into_iter().map(secured).collect());
        }
    }
}

/// The parameter that says the port of a listener.
fn port_of(spec: &ListenSpec) -> &'static str {
    if spec.tls.is_some() { "tls-port" } else { "port" }
}

/// Where the parameters say to listen.
fn specs(parameters: &Parameters) -> Vec<ListenSpec> {
    let addresses = parameters.listen_addresses(&mut |host| TcpListener::bind((host, 0)).is_ok());
    // What `bind` takes for a host may be none; nothing can be bound there.
    addresses.iter().map(|address| ListenSpec::parse(address).unwrap_or_else(|_| unusable(address))).collect()
}

/// An address that cannot be listened on, for what is none.
fn unusable(entry: &str) -> ListenSpec {
    let address = crate::settings::Address::Tcp { host: entry.to_owned(), port: 0 };
    ListenSpec { address, tls: None }
}

fn load(instance: &Instance) -> Result<InstanceTls, String> {
    let fault = instance.tls.listen.fault().filter(|_| instance.net.listen.iter().any(|entry| entry.tls.is_some()));
    match fault {
        Some(fault) => Err(fault.to_owned()),
        None => InstanceTls::load(instance).map_err(|failure| failure.message),
    }
}

impl Opened<'_> {
    fn bind_all(&mut self, instance: &Instance) -> Result<(), (&'static str, String)> {
        let (bound, listen) = (self.listeners.bound(), &instance.net.listen);
        let is_twice = |at: &usize| listen[..*at].contains(&listen[*at]);
        if let Some(at) = (1..listen.len()).find(is_twice) {
            return Err((port_of(&listen[at]), format!("{} is named twice", listen[at].address)));
        }
        let known = |spec: &ListenSpec| bound.iter().any(|entry| entry.spec == *spec);
        let new_ports: Vec<_> = listen.iter().filter(|spec| !known(spec)).map(|spec| spec.address.port()).collect();
        let is_in_the_way =
            |entry: &&BoundAddress| !listen.contains(&entry.spec) && new_ports.contains(&entry.spec.address.port());
        for entry in bound.iter().filter(is_in_the_way) {
            self.ended.push(entry.spec.clone());
            let ended = entry.handles.iter().try_for_each(ListenerHandle::end);
            ended.map_err(|error| (port_of(&entry.spec), error.to_string()))?;
        }
        for spec in listen {
            let bound = || self.terms.bind(spec).map_err(|why| (port_of(spec), why));
            let sockets = if known(spec) { None } else { Some(bound()?) };
            self.bound.push((spec.clone(), sockets));
        }
        Ok(())
    }

    /// Listens where it is said now, and nowhere else.
    pub(super) fn settle(mut self) {
        let mut bound = self.listeners.bound();
        let mut before = std::mem::take(&mut *bound);
        let servers = self.tls.take_listeners();
        let mut new: Vec<Vec<Listener>> = self.listeners.workers.iter().map(|_| Vec::new()).collect();
        let mut servers_now = Vec::new();
        for ((spec, sockets), server) in std::mem::take(&mut self.bound).into_iter().zip(servers) {
            let Some(sockets) = sockets else {
                // Its listener goes on with the server that it has, which takes over what is new.
                let known = self.listeners.tls.listener(&spec);
                if let (Some(known), Some(server), true) = (&known, &server, self.is_about_tls) {
                    known.become_like(server);
                }
                servers_now.push((spec.clone(), known));
                // There is none if the process has begun to end meanwhile.
                bound.extend(before.iter().position(|entry| entry.spec == spec).map(|place| before.swap_remove(place)));
                continue;
            };
            bound.push(BoundAddress { spec: spec.clone(), handles: handles(&sockets) });
            let secured = |listener: Listener| match &server {
                Some(server) => listener.with_tls(Arc::clone(server)),
                None => listener,
            };
            new.iter_mut().zip(sockets).for_each(|(all, some)| all.extend(some.into_iter().map(secured)));
            servers_now.push((spec, server));
        }
        self.listeners.tls.set_listeners(servers_now);
        // One that cannot be told so listens until its worker closes it.
        before.iter().flat_map(|entry| &entry.handles).for_each(|handle| _ = handle.end());
        self.ended.clear();
        for (worker, listeners) in self.listeners.workers.iter().zip(new) {
            // A worker that has ended needs none.
            worker.close_ended();
            worker.listen(listeners);
        }
        let port = bound.iter().find_map(|entry| entry.spec.address.port()).unwrap_or(0);
        self.listeners.tcp_port.store(port, Ordering::Relaxed);
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // Their addresses have to be free before they can be listened on again.
        self.bound.clear();
        for spec in std::mem::take(&mut self.ended) {
            match self.terms.bind(&spec) {
                Ok(sockets) => self.listeners.open_again(&spec, sockets),
                Err(why) => tracing::error!("a listener was closed for a change that failed: {why}"),
            }
        }
    }
}

/// A second hand on each. One without would listen for good; there are descriptors, as it has just been opened.
fn handles(sockets: &[Vec<Listener>]) -> Vec<ListenerHandle> {
    sockets.iter().flatten().filter_map(|listener| listener.handle().ok()).collect()
}
