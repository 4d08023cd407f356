//! The processes that are measured: redis-servers and, in front of them, the proxies, all started by this program.

use std::io;
use std::path::{Path, PathBuf};

use respool_testkit::{Address, Client, Nutcracker, RedisServer, Respool, Transport, proc_stats};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::scenario::{Cores, Scenario, Subject};
use crate::binary::Binary;

/// Nodes that a scenario has at most.
const NODES_MAX: usize = 4;

/// Everything that runs. A proxy is started when it is first needed and ends with its scenario, so that rounds reuse it
/// but no idle process of another row takes part in a measurement.
pub(crate) struct Deployment<'a> {
    binaries: Binaries,
    /// Arguments included that the user adds.
    options: &'a Binary,
    nodes: Vec<Node>,
    proxies: Vec<(Arrangement, Subject, Proxy)>,
}

/// The Respools that are started, as far as a subject needs them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Binaries {
    pub(crate) respool: Option<PathBuf>,
    pub(crate) baseline: Option<PathBuf>,
    /// The Respool whose `bench` asks all subjects.
    pub(crate) generator: PathBuf,
}

impl Binaries {
    fn of(&self, subject: Subject) -> &Path {
        let binary = if subject == Subject::Baseline { &self.baseline } else { &self.respool };
        binary.as_deref().expect("a binary was built or given for this subject")
    }
}

/// A redis-server and a connection to ask it about itself.
pub(crate) struct Node {
    pub(crate) server: RedisServer,
    pub(crate) control: Client,
}

/// How many nodes there are and over what one reaches them and the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrangement {
    pub(crate) nodes: usize,
    pub(crate) transport: Transport,
}

impl Scenario {
    pub(crate) fn arrangement(&self) -> Arrangement {
        Arrangement { nodes: self.nodes, transport: self.transport }
    }
}

enum Proxy {
    Twemproxy(Nutcracker),
    Respool(Respool),
}

/// What the load generator talks to, and whose processor time counts as what.
pub(crate) struct Target<'a> {
    pub(crate) address: Address,
    /// The process of the proxy or of the embedded server, if there is one.
    pub(crate) proxy: Option<u32>,
    /// The load generator.
    pub(crate) generator: &'a Path,
    /// The redis-servers that take part.
    pub(crate) nodes: &'a mut [Node],
}

impl Target<'_> {
    /// The process that answers the load generator.
    pub(crate) fn pid(&self) -> u32 {
        self.proxy.unwrap_or_else(|| self.nodes[0].server.pid())
    }
}

impl<'a> Deployment<'a> {
    pub(crate) fn new(binaries: Binaries, options: &'a Binary) -> io::Result<Deployment<'a>> {
        let start = || {
            let server = RedisServer::start()?;
            let control = server.client()?;
            Ok(Node { server, control })
        };
        let nodes = (0..NODES_MAX).map(|_| start()).collect::<io::Result<_>>()?;
        Ok(Deployment { binaries, options, nodes, proxies: Vec::new() })
    }

    /// Starts what is needed of this subject and puts every process on its core.
    pub(crate) fn target(
        &mut self,
        arrangement: Arrangement,
        subject: Subject,
        cores: Cores,
    ) -> io::Result<Target<'_>> {
        self.proxies.retain(|(other, ..)| *other == arrangement);
        let (address, proxy) = match subject {
            Subject::Direct => (node_address(&self.nodes[0], arrangement.transport), None),
            _ => self.proxy(arrangement, subject).map(|(address, pid)| (address, Some(pid)))?,
        };
        let nodes = match subject {
            Subject::Direct => 1,
            Subject::Embedded => 0,
            Subject::Twemproxy | Subject::Respool | Subject::Baseline => arrangement.nodes,
        };
        for node in &self.nodes {
            pin(node.server.pid(), 0)?;
        }
        let generator = &self.binaries.generator;
        let target = Target { address, proxy, generator, nodes: &mut self.nodes[..nodes] };
        pin(target.pid(), if cores == Cores::Own { 1 } else { 0 })?;
        Ok(target)
    }

    /// Adds to an error that its subject has ended, and its last words, if that is so.
    pub(crate) fn explain(&mut self, subject: Subject, error: io::Error) -> io::Error {
        let proxy = self.proxies.iter_mut().find(|(_, other, _)| *other == subject);
        let process = match proxy {
            Some((.., Proxy::Respool(proxy))) => proxy.process(),
            Some((.., Proxy::Twemproxy(proxy))) => proxy.process(),
            None => return error,
        };
        match process.try_wait() {
            Ok(Some(status)) => {
                let said = process.output();
                let last = said[said.len().saturating_sub(3)..].join(" / ");
                io::Error::new(error.kind(), format!("{error}; {subject} has ended: {status}: {last}"))
            }
            _ => error,
        }
    }

    /// Ends all proxies; the redis-servers stay.
    pub(crate) fn end_proxies(&mut self) {
        self.proxies.clear();
    }

    /// A fresh process of this subject in front of four nodes, or alone.
    pub(crate) fn fresh(&mut self, subject: Subject) -> io::Result<Target<'_>> {
        self.end_proxies();
        self.target(Arrangement { nodes: NODES_MAX, transport: Transport::Tcp }, subject, Cores::One)
    }

    fn proxy(&mut self, arrangement: Arrangement, subject: Subject) -> io::Result<(Address, u32)> {
        let wanted = |(_, other, _): &(Arrangement, Subject, Proxy)| *other == subject;
        if !self.proxies.iter().any(wanted) {
            let proxy = self.start(arrangement, subject)?;
            self.proxies.push((arrangement, subject, proxy));
        }
        let (.., proxy) = self.proxies.iter().find(|&proxy| wanted(proxy)).expect("it runs by now");
        Ok(match (proxy, arrangement.transport) {
            (Proxy::Twemproxy(proxy), _) => (proxy.address().clone(), proxy.pid()),
            (Proxy::Respool(proxy), Transport::Tcp) => (proxy.tcp(), proxy.pid()),
            (Proxy::Respool(proxy), Transport::Unix) => (proxy.unix(), proxy.pid()),
        })
    }

    fn start(&self, arrangement: Arrangement, subject: Subject) -> io::Result<Proxy> {
        let nodes = self.nodes[..arrangement.nodes].iter();
        let nodes: Vec<_> = nodes.map(|node| node_address(node, arrangement.transport)).collect();
        if subject == Subject::Twemproxy {
            return Nutcracker::start(arrangement.transport, &nodes).map(Proxy::Twemproxy);
        }
        let nodes = if subject == Subject::Embedded { &[] } else { &nodes[..] };
        self.start_respool(subject, nodes, &[]).map(Proxy::Respool)
    }

    /// All redis-servers, each on core 0.
    pub(crate) fn all_nodes(&self) -> io::Result<Vec<Address>> {
        self.nodes.iter().try_for_each(|node| pin(node.server.pid(), 0))?;
        Ok(self.nodes.iter().map(|node| node.server.tcp()).collect())
    }

    /// Starts a Respool as the user wants it measured, with further arguments.
    pub(crate) fn start_respool(&self, subject: Subject, nodes: &[Address], arguments: &[&str]) -> io::Result<Respool> {
        // Every scenario gives the subject one core at most.
        Respool::start(
            self.binaries.of(subject),
            nodes,
            &self.options.arguments(&[&["--workers", "1"], arguments].concat()),
        )
    }

    /// The load generator.
    pub(crate) fn generator(&self) -> &Path {
        &self.binaries.generator
    }

    /// Where one of the redis-servers listens.
    pub(crate) fn server(&self) -> Address {
        self.nodes[0].server.tcp()
    }
}

fn node_address(node: &Node, transport: Transport) -> Address {
    match transport {
        Transport::Tcp => node.server.tcp(),
        Transport::Unix => node.server.unix(),
    }
}

/// Binds all threads of a process to one core.
pub(crate) fn pin(pid: u32, core: usize) -> io::Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    for thread in proc_stats::threads(pid)? {
        let thread = i32::try_from(thread).ok().and_then(Pid::from_raw);
        sched_setaffinity(thread, &cores)?;
    }
    Ok(())
}
