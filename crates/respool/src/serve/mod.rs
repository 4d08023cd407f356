//! `respool serve`: turns the settings' meaning into a running process.
//!
//! ```text
//!   instance --> Config, listeners --+--> worker thread 0: net::Worker driving proxy::Worker
//!      |                             +--> worker thread n
//!      +--> embedded nodes ---------> one thread each: net::Worker driving proxy::Worker over an engine, no listener;
//!                                     the proxy's workers dial it by a pair of sockets in this process
//! ```

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use respool_command::{Execute, Outcome, SessionView};
use respool_connection::WorkerId;
use respool_engine::{Engine, EngineConfig};
use respool_net::Sockets;
use respool_net::{
    EngineDialer, Inbox, Listener, MailSender, MovableClock, Setup, TransportOptions, adopt, bind, mailbox,
};
use respool_proxy::hooks::Hooks;
use respool_proxy::{
    Access, LateScripts, Mail, PostMail, ProcessBudget, ProcessFacts, ProcessWorkers, ServerPause, Shared, WorkerSetup,
};
use respool_route::Topology;
use respool_wire::{ArgsBuf, Encoder, Protocol};

use crate::admin::readiness::about_nodes;
use crate::admin::{InstanceWorkers, Metrics, process};
use crate::control::{Control, Phase};
use crate::failure::Failure;
use crate::parameters::Parameters;
use crate::settings::{Address, EngineSettings, Instance, NodeAddress, Process};
use files::Files;
use follow::{follow, follow_as_nodes};
use handover::{Estate, Inherited, Offered};
use hooks::{HookMaker, move_clock};
use server_config::ServerConfig;
use server_listeners::{BoundAddress, ServerListeners};
use tls::InstanceTls;
use transfers::Transfers;

mod about;
mod access;
mod config;
mod counters;
mod files;
mod follow;
pub mod handover;
pub mod hooks;
mod oom_score;
mod server_config;
mod server_listeners;
mod tls;
mod transfers;
mod whole_file;

/// What there is to serve, and the handle that ends it.
#[derive(Debug)]
pub struct Job {
    /// Worker threads.
    pub workers: usize,
    /// The settings in force, and the requests to drain, stop and reload.
    pub control: Arc<Control>,
    /// Where counters are shown.
    pub metrics: Metrics,
    /// The hooks of workers.
    pub hooks: HookMaker,
    /// The parameters of a server that stands in for redis-server; others make theirs from the settings.
    pub parameters: Option<Parameters>,
    /// The time that clients see, if the program moves it.
    pub clock: Option<MovableClock>,
}

/// What the call of [`run`] is told when every listener is open.
#[derive(Debug)]
pub struct Opened<'a> {
    /// The addresses really listened on, per instance.
    pub addresses: &'a [Vec<Address>],
    /// Sockets that listened before.
    pub inherited: &'a mut Inherited,
    /// The workers that operators ask and order.
    pub instances: Vec<InstanceWorkers>,
    /// Where sockets are put that another process may ask for, if it may.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    pub(crate) offered: Option<&'a Offered>,
}

/// Reads the files that the settings name, as [`run`] would, and keeps nothing.
///
/// # Errors
/// What is wrong with them.
pub fn check(process: &Process) -> Result<(), Failure> {
    access::build(process)?;
    process.instances.iter().try_for_each(|instance| InstanceTls::load(instance).map(drop))
}

/// Runs until it is told to stop.
///
/// `ready` is called once, when every listener is open and before any client is accepted. Inherited listeners are used as
/// they are; the process that gave them gets the confirmation after `ready`. Before that, as many nodes must be reached as
/// `ready_nodes` says: that process serves until then, and serves on if they are not.
///
/// # Errors
/// What kept it from starting or ended it early.
pub fn run(
    job: &Job,
    mut inherited: Inherited,
    ready: impl FnOnce(Opened<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let process = job.control.settings();
    let offered = Offered::default();
    let is_offering = process.takeover_socket.is_some();
    let files = Arc::new(Files::share_out(&process, job.workers, &inherited)?);
    files.follow(&job.control);
    let ledger = Arc::new(ProcessBudget::default());
    job.metrics.observe(counters::held(Arc::clone(&ledger)));
    let access = access::build(&process)?;
    access::go_on(&access, inherited.of_users())?;
    access::follow(&job.control, &access);
    let about =
        about::process(&process, [chance(), chance(), chance()], job.parameters.as_ref().and_then(Parameters::file));
    let common = Common { ledger: &ledger, access: &access, workers: &Arc::default() };
    let mut instances = Vec::new();
    let awaits_nodes = inherited.has_predecessor();
    for (number, instance) in process.instances.iter().enumerate() {
        let offered = is_offering.then_some(&offered);
        // What another process may ask for is said by the settings.
        let hands = (job.parameters.is_some() && !is_offering).then(Vec::new);
        let mut sources =
            ListenerSources { inherited: &mut inherited, offered, files: &files, hands, opens_late: awaits_nodes };
        instances.push(Running::build(job, &process, number, instance, common, &about, &mut sources)?);
    }
    let estate = Estate {
        offered: offered.clone(),
        access: Arc::clone(&access),
        ledger: Arc::clone(&ledger),
        instances: instances.iter().map(|instance| (instance.name.clone(), Arc::clone(&instance.shared))).collect(),
    };
    let _takeover_socket = handover::offer(&process, &job.control, estate, &mut inherited)?;
    let bound: Vec<_> = instances.iter_mut().map(|instance| std::mem::take(&mut instance.bound)).collect();
    let offered = is_offering.then_some(&offered);
    let late: Vec<_> = instances.iter_mut().flat_map(|instance| std::mem::take(&mut instance.late)).collect();
    let start = |instances: Vec<Running>| {
        instances.into_iter().map(|instance| instance.start(&job.control)).collect::<Result<Vec<_>, _>>()
    };
    let workers = instances.iter().map(Running::workers).collect();
    let opened = Opened { addresses: &bound, inherited: &mut inherited, instances: workers, offered };
    let threads = if awaits_nodes {
        let threads = start(instances)?;
        if let Err(failure) = await_nodes(job, &process).and_then(|()| ready(opened)) {
            job.control.enter(Phase::Stopping);
            // The failure is known already.
            threads.into_iter().for_each(|threads| drop(threads.join()));
            return Err(failure);
        }
        drop(inherited);
        late.into_iter().for_each(|(slot, listeners)| _ = slot.listen(listeners));
        threads
    } else {
        ready(opened)?;
        drop(inherited);
        start(instances)?
    };
    // All of them are waited for, whatever has become of the first.
    let ended: Vec<_> = threads.into_iter().map(Threads::join).collect();
    ended.into_iter().collect()
}

/// Time for nodes to be reached before a takeover, in multiples of `connect_timeout`.
const DIALS_AWAITED: u32 = 10;

/// Its bound: half of the time that the other process waits.
const NODES_AWAITED_MAX: Duration = Duration::from_secs(30);

/// Interval of the checks whether they are reached.
const NODES_LOOK: Duration = Duration::from_millis(10);

/// Waits until enough nodes are reached. A process that was ordered to end meanwhile takes over nothing.
fn await_nodes(job: &Job, process: &Process) -> Result<(), Failure> {
    let dial = process.instances.iter().map(|instance| instance.proxy.timeouts.connect).max().unwrap_or_default();
    let until = Instant::now() + dial.saturating_mul(DIALS_AWAITED).min(NODES_AWAITED_MAX);
    loop {
        let (is_ready, words) = about_nodes(&job.metrics.sums(), process.admin.ready_percent);
        if job.control.phase() >= Phase::Draining {
            return Err(told_to_end());
        }
        if is_ready {
            return Ok(());
        }
        if Instant::now() >= until {
            let words = words.trim_end().replace('\n', ", ");
            return Err(Failure::running(format!("the listeners are not taken over: {words}")).hint(
                "the process that has them serves on; ready_nodes = 0 takes them over whatever becomes of the nodes",
            ));
        }
        std::thread::sleep(NODES_LOOK);
    }
}

/// The failure of a takeover whose process was ordered to end before it served.
pub(crate) fn told_to_end() -> Failure {
    Failure::running("the listeners are not taken over: this process was told to end before it served")
        .hint("the process that has them serves on")
}

/// Where listeners come from, and where they may go.
struct ListenerSources<'a> {
    inherited: &'a mut Inherited,
    offered: Option<&'a Offered>,
    /// The shares of the limit on open files.
    files: &'a Arc<Files>,
    /// Second hands on what is opened, if it may be closed while clients are served.
    hands: Option<Vec<BoundAddress>>,
    /// Workers get their listeners after their start.
    opens_late: bool,
}

/// What the instances of a process have in common.
#[derive(Clone, Copy)]
struct Common<'a> {
    ledger: &'a Arc<ProcessBudget>,
    access: &'a Arc<Access>,
    workers: &'a Arc<ProcessWorkers>,
}

/// One instance, open and not yet running.
struct Running {
    name: String,
    shared: Arc<Shared>,
    slots: Vec<MailSender<Mail>>,
    /// The mailboxes of embedded nodes.
    engines: Vec<MailSender<Mail>>,
    bound: Vec<Address>,
    /// Listeners for running workers, with the workers' mailboxes.
    late: Vec<(MailSender<Mail>, Vec<Listener>)>,
    workers: Vec<Box<dyn FnOnce() -> std::io::Result<()> + Send>>,
    nodes: Vec<Box<dyn FnOnce() -> std::io::Result<()> + Send>>,
    /// Ends the embedded nodes, once they have no clients.
    stop_nodes: Box<dyn FnOnce() + Send>,
    transfers: Arc<Transfers>,
}

/// The threads of one instance.
struct Threads {
    workers: Vec<JoinHandle<std::io::Result<()>>>,
    nodes: Vec<JoinHandle<std::io::Result<()>>>,
    stop_nodes: Box<dyn FnOnce() + Send>,
    transfers: Arc<Transfers>,
}

impl Running {
    fn build(
        job: &Job,
        process: &Process,
        number: usize,
        instance: &Instance,
        Common { ledger, access, workers: of_process }: Common<'_>,
        about: &ProcessFacts,
        sources: &mut ListenerSources<'_>,
    ) -> Result<Self, Failure> {
        // An engine belongs to one thread, so a server that is nothing but one engine has one worker.
        let workers = if instance.is_embedded() { 1 } else { job.workers };
        let (transport, to_nodes) = config::transports(instance);
        let tls = Arc::new(InstanceTls::load(instance)?);
        let (mut shares, bound) = listen(instance, workers, &transport, &tls, sources)?;
        let clients = Arc::clone(&tls.nodes);
        let config = config::proxy(process, instance, sources.files.clients_max(process));
        let config = Arc::new(config.map_err(|error| Failure::running(error.to_string()))?);
        let shared = Shared::new(workers, respool_net::monotonic_us(), about.clone(), Arc::clone(ledger));
        let (slots, insides): (Vec<MailSender<Mail>>, Vec<Inbox<Mail>>) = (0..workers).map(|_| mailbox()).unzip();
        let listeners = sources.hands.take().map(|open| {
            let port = Arc::clone(&about.tcp_port);
            ServerListeners::new(open, slots.clone(), Arc::clone(&tls), port, &job.control)
        });
        let server_config = instance.is_server().then(|| {
            let parameters = job.parameters.clone().unwrap_or_else(|| Parameters::of(process, number));
            ServerConfig::new(parameters, Arc::clone(&job.control), number, Arc::clone(sources.files), listeners)
        });
        let transfers = Arc::<Transfers>::default();
        stop_with(&job.control, &transfers);
        let hooks = match &server_config {
            Some(server_config) => {
                let server_config = Arc::clone(server_config);
                let hooks = job.hooks.make().with_clock(respool_net::monotonic_us).on_usage(process::usage);
                let hooks = transferring(hooks, &transfers, slots.clone());
                let hooks = hooks.on_config(move |verb| server_config.answer(verb));
                match job.clock.clone() {
                    Some(clock) => hooks.on_clock(move |order| move_clock(&clock, order)),
                    None => hooks,
                }
            }
            None => job.hooks.make(),
        };
        let renames = job.parameters.as_ref().map(Parameters::renames).unwrap_or_default();
        if instance.has_engine_threads() && !renames.is_empty() {
            // Workers ask engines by the names of commands.
            return Err(Failure::settings("rename-command cannot be had with engine_threads")
                .hint("take the right to a command away with ACL rules, such as `user default -flushall`"));
        }
        let shared = shared.with_hooks(hooks).with_access(Arc::clone(access)).with_renames(Arc::clone(&renames));
        let mailboxes = slots.iter().cloned().map(|slot| -> PostMail { Box::new(move |mail| slot.post(mail)) });
        let shared = shared.in_process(Arc::clone(of_process), mailboxes);
        let shared = Arc::new(shared);
        shared.name_nodes(config.nodes.iter().map(|node| node.name.clone()));
        job.metrics.observe(counters::source(Arc::clone(&shared), &instance.name, process.instances.len() > 1));

        let embedded = instance.nodes().filter(|node| node.address == NodeAddress::Embedded);
        let share = |place: usize| {
            let server_config = Arc::clone(server_config.as_ref().filter(|_| instance.has_engine_threads())?);
            let (topology, late_scripts) = (Arc::clone(&config.topology), shared.late_scripts());
            let (server_pause, transfers) = (shared.server_pause(), Arc::clone(&transfers));
            Some(EngineShare { place, topology, server_config, late_scripts, server_pause, transfers })
        };
        let nodes: Vec<_> = embedded
            .enumerate()
            .map(|(place, _)| {
                EmbeddedNode::new(process, instance, share(place), about, transport, &sources.files.sockets)
            })
            .collect();
        follow(&job.control, number, slots.clone(), tls, Arc::clone(sources.files));
        follow_as_nodes(&job.control, number, nodes.iter().map(|node| node.slot.clone()).collect());
        if handover::go_on_with_orders(&shared, sources.inherited.of_orders(&instance.name))? {
            slots.iter().for_each(|slot| {
                slot.post(Mail::Orders);
            });
        }

        let mut running = Self {
            name: instance.name.clone(),
            shared: Arc::clone(&shared),
            slots: slots.clone(),
            engines: nodes.iter().map(|node| node.slot.clone()).collect(),
            bound,
            late: Vec::new(),
            workers: Vec::new(),
            nodes: Vec::new(),
            stop_nodes: Box::new(|| {}),
            transfers,
        };
        for (worker, inbox) in insides.into_iter().enumerate() {
            let (config, shared) = (Arc::clone(&config), Arc::clone(&shared));
            #[cfg(feature = "scripting")]
            let renames = Arc::clone(&renames);
            let server_config = server_config.as_ref().filter(|_| instance.is_embedded());
            let settings = server_config.map(|config| (instance.engine.clone(), config.for_engine()));
            let mut listeners = std::mem::take(&mut shares[worker]);
            if sources.opens_late {
                running.late.push((slots[worker].clone(), std::mem::take(&mut listeners)));
            }
            let engines = nodes.iter().map(|node| EngineDialer::new(node.slot.clone())).collect();
            let workers = slots.clone();
            let (tls, sockets) = (Arc::clone(&clients), Arc::clone(&sources.files.sockets));
            let clock = job.clock.clone();
            running.workers.push(Box::new(move || {
                // Its scripts have a stack of their own, which stays in one thread: it is made where it is used.
                let engine =
                    settings.as_ref().map(|(settings, parameters)| with_parameters(engine(settings), parameters));
                #[cfg(feature = "scripting")]
                let engine = engine.map(|engine| engine.with_renames(renames));
                let number = WorkerId::new(worker);
                let machine = WorkerSetup { config, shared, number, engine, entropy: chance() };
                let machine = respool_proxy::Worker::<Engine>::new(machine);
                let setup =
                    Setup { machine, inbox, workers, number, listeners, engines, transport: to_nodes, tls, sockets };
                respool_net::Worker::new(setup)?.with_clock(clock).run()
            }));
        }
        let engines = running.engines.clone();
        running.stop_nodes = Box::new(move || {
            engines.iter().for_each(|engine| {
                // A node that has ended already needs no order to.
                engine.post(Mail::Stop);
            });
        });
        running.nodes = nodes.into_iter().map(|node| node.into_run(job.clock.clone())).collect();
        Ok(running)
    }

    fn workers(&self) -> InstanceWorkers {
        InstanceWorkers {
            name: self.name.clone(),
            shared: Arc::clone(&self.shared),
            workers: self.slots.clone(),
            engines: self.engines.clone(),
        }
    }

    fn start(self, control: &Arc<Control>) -> Result<Threads, Failure> {
        let spawn = |kind: &'static str, runs: Vec<Box<dyn FnOnce() -> std::io::Result<()> + Send>>| {
            let numbered = runs.into_iter().enumerate();
            let threads = numbered.map(|(number, run)| {
                let alarm = Alarm(Some(match kind {
                    NODE => Guarded::Node { instance: self.name.clone(), number },
                    _ => Guarded::Worker(Arc::clone(control)),
                }));
                let run = move || {
                    let ended = run();
                    if ended.is_ok() {
                        alarm.rest();
                    }
                    ended
                };
                std::thread::Builder::new().name(format!("{kind}-{}-{number}", self.name)).spawn(run)
            });
            threads
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| Failure::running(format!("a thread cannot be started: {error}")))
        };
        let nodes = spawn(NODE, self.nodes)?;
        let workers = spawn("worker", self.workers)?;
        Ok(Threads { workers, nodes, stop_nodes: self.stop_nodes, transfers: self.transfers })
    }
}

impl Threads {
    /// Waits for the workers, then ends the embedded nodes.
    fn join(self) -> Result<(), Failure> {
        let mut ended: Vec<_> = self.workers.into_iter().map(join).collect();
        (self.stop_nodes)();
        ended.extend(self.nodes.into_iter().map(join));
        self.transfers.end();
        ended.into_iter().collect()
    }
}

/// What threads of embedded nodes are called.
const NODE: &str = "node";

/// Whose end has to be told of.
enum Guarded {
    /// A worker. The service ends: the others would go on, and a part of the clients would find no server.
    Worker(Arc<Control>),
    /// An embedded node. It shares nothing with the others but the way that connections come, and what it held is lost
    /// whatever happens. Its connections end, it cannot be dialled again, and so requests for it are answered as those for
    /// any node that is not there. It is not started again: empty, it would answer as if nothing had ever been stored.
    Node { instance: String, number: usize },
}

/// Tells that a thread has failed, by an error or a panic, and sees to what has to follow.
struct Alarm(Option<Guarded>);

impl Alarm {
    /// The thread has ended as it should.
    fn rest(mut self) {
        self.0 = None;
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        match self.0.take() {
            Some(Guarded::Worker(control)) if control.enter(Phase::Stopping) => {
                tracing::error!("a worker has failed: the service ends");
            }
            Some(Guarded::Node { instance, number }) => tracing::error!(
                instance,
                node = number,
                "an embedded node has failed: what it held is lost, requests for it get errors until the next start"
            ),
            // The service ends already, or nothing is wrong.
            Some(Guarded::Worker(_)) | None => {}
        }
    }
}

fn join(thread: JoinHandle<std::io::Result<()>>) -> Result<(), Failure> {
    match thread.join() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Failure::running(format!("a worker's loop failed: {error}"))),
        Err(_) => Err(Failure::running("a worker panicked; this is a fault of Respool, its log has the place")),
    }
}

/// An engine with a loop of its own, reached by a dialer instead of a listener.
struct EmbeddedNode {
    slot: MailSender<Mail>,
    inbox: Inbox<Mail>,
    config: Arc<respool_proxy::Config>,
    shared: Arc<Shared>,
    settings: EngineSettings,
    share: Option<EngineShare>,
    transport: TransportOptions,
    sockets: Arc<Sockets>,
}

/// The part of an engine in a server that has several.
struct EngineShare {
    /// Its place among them.
    place: usize,
    /// Which of them has which key.
    topology: Arc<Topology>,
    /// The parameters of the server.
    server_config: Arc<ServerConfig>,
    /// Where it says that a script of it is late.
    late_scripts: Arc<LateScripts>,
    /// Where it learns of a pause of clients.
    server_pause: Arc<ServerPause>,
    /// The thread that moves its keys to other servers.
    transfers: Arc<Transfers>,
}

impl EngineShare {
    /// The engine, which has its part of the memory and of the keys.
    fn engine(self, settings: &EngineSettings) -> Engine {
        let Self { place, topology, server_config, .. } = self;
        let engine = with_parameters(engine(settings), &server_config.for_engine());
        #[cfg(feature = "scripting")]
        let engine = engine.with_key_owner(move |name| topology.place(name).get() == place);
        // Without scripts there is nothing that the planner does not see.
        #[cfg(not(feature = "scripting"))]
        let _ = (topology, place);
        engine
    }
}

impl EmbeddedNode {
    fn new(
        process: &Process,
        instance: &Instance,
        share: Option<EngineShare>,
        about: &ProcessFacts,
        transport: TransportOptions,
        sockets: &Arc<Sockets>,
    ) -> Self {
        let (slot, inbox) = mailbox();
        // Its clients are this process's own lanes: they count against no limit.
        let shared = Shared::new(1, respool_net::monotonic_us(), about.clone(), Arc::default());
        let shared = match &share {
            // Its commands are timed as those of an engine that is a server of its own.
            Some(EngineShare { place, server_config, late_scripts, server_pause, transfers, .. }) => {
                let server_config = Arc::clone(server_config);
                let hooks = Hooks::default().with_clock(respool_net::monotonic_us);
                let hooks = transferring(hooks, transfers, vec![slot.clone()]);
                let hooks = hooks.on_config(move |verb| server_config.answer(verb));
                shared.with_hooks(hooks).of_engine(*place, Arc::clone(late_scripts), Arc::clone(server_pause))
            }
            None => shared,
        };
        let (config, shared) = (Arc::new(config::embedded_node(process, instance)), Arc::new(shared));
        let settings = instance.engine.clone();
        Self { slot, inbox, config, shared, settings, share, transport, sockets: Arc::clone(sockets) }
    }

    fn into_run(self, clock: Option<MovableClock>) -> Box<dyn FnOnce() -> std::io::Result<()> + Send> {
        let Self { slot, inbox, config, shared, settings, share, transport, sockets } = self;
        Box::new(move || {
            let engine = Some(match share {
                Some(share) => share.engine(&settings),
                None => engine(&settings),
            });
            let machine = respool_proxy::Worker::new(WorkerSetup {
                config,
                shared,
                number: WorkerId::FIRST,
                engine,
                entropy: chance(),
            });
            let (workers, listeners, engines, tls) = (vec![slot], Vec::new(), Vec::new(), Arc::default());
            let setup =
                Setup { machine, inbox, workers, number: WorkerId::FIRST, listeners, engines, transport, tls, sockets };
            respool_net::Worker::new(setup)?.with_clock(clock).run()
        })
    }
}

/// Has keys moved to other servers for an engine in one of these workers.
fn transferring(hooks: Hooks, transfers: &Arc<Transfers>, workers: Vec<MailSender<Mail>>) -> Hooks {
    let (moving, kept) = (Arc::clone(transfers), Arc::clone(transfers));
    let hooks = hooks.on_transfer_connections(move || kept.kept());
    hooks.on_transfer(move |transfer| {
        let worker = transfer.worker.get();
        moving.begin(transfer, &workers[worker])
    })
}

/// Where the process ends at once no worker waits for another server.
fn stop_with(control: &Arc<Control>, transfers: &Arc<Transfers>) {
    let (watched, transfers) = (Arc::downgrade(control), Arc::downgrade(transfers));
    control.on_change(Box::new(move || {
        let is_stopping = watched.upgrade().is_some_and(|control| control.phase() >= Phase::Stopping);
        transfers.upgrade().filter(|_| is_stopping).into_iter().for_each(|transfers| transfers.stop());
    }));
}

fn engine(settings: &EngineSettings) -> Engine {
    let config = EngineConfig {
        databases: settings.databases as usize,
        memory_bytes_max: settings.memory_bytes_max.map(|bytes| settings.share_of(bytes)),
        eviction: settings.eviction,
        eviction_samples: settings.eviction_samples,
        script_busy_after_ms: settings.busy_reply_threshold.as_millis() as u64,
        ..EngineConfig::default()
    };
    let mut engine = Engine::new(config, [chance(), chance()]);
    // Only `DEBUG SLEEP` waits, which a file has to allow, and it is to hold up all that the worker serves.
    engine.set_sleep(|us| std::thread::sleep(Duration::from_micros(us)));
    #[cfg(feature = "scripting")]
    let engine = engine.with_script_clock(|| respool_net::monotonic_us() / 1000).with_script_log(log_of_script);
    engine
}

/// Tells a new engine of the parameters that are its own.
fn with_parameters(mut engine: Engine, parameters: &ArgsBuf) -> Engine {
    let args = parameters.as_args();
    let row = respool_command::resolve(args).expect("CONFIG SET is a command");
    let mut reply = Vec::new();
    let mut encoder = Encoder::new(&mut reply, Protocol::Resp2);
    let _: Outcome = engine.execute(row, args, &mut SessionView::default(), &mut encoder);
    debug_assert_eq!(reply, b"+OK\r\n", "the engine knows its parameters");
    engine
}

/// A line that a script writes to the log. What it holds is the client's, so no byte of it is more than a character here.
#[cfg(feature = "scripting")]
fn log_of_script(level: respool_engine::ScriptLogLevel, line: &[u8]) {
    use respool_engine::ScriptLogLevel as Level;
    let line = line.escape_ascii();
    match level {
        Level::Debug => tracing::trace!("a script says: {line}"),
        Level::Verbose => tracing::debug!("a script says: {line}"),
        Level::Notice => tracing::info!("a script says: {line}"),
        Level::Warning => tracing::warn!("a script says: {line}"),
    }
}

/// Opens all listeners of an instance. Result: each worker's, and the addresses really listened on.
fn listen(
    instance: &Instance,
    workers: usize,
    transport: &TransportOptions,
    tls: &InstanceTls,
    sources: &mut ListenerSources<'_>,
) -> Result<(Vec<Vec<Listener>>, Vec<Address>), Failure> {
    let mut shares: Vec<Vec<Listener>> = (0..workers).map(|_| Vec::new()).collect();
    let mut bound = Vec::new();
    for (spec, tls) in instance.net.listen.iter().zip(tls.servers()) {
        let address = &spec.address;
        let backlog = i32::try_from(instance.net.backlog).unwrap_or(i32::MAX);
        let (endpoint, mode) = (config::endpoint(address), instance.net.unix_mode);
        let (label, inherited) = sources.inherited.of_listener(address);
        let is_new = inherited.is_empty();
        let opened = match is_new {
            true => bind(&endpoint, workers, backlog, mode, transport),
            false => adopt(&endpoint, inherited, workers, backlog, mode, transport),
        };
        let opened = opened.map_err(|error| Failure::running(error.to_string()))?;
        for listener in opened.iter().flatten().filter(|_| !is_new) {
            sources.inherited.note_listening(listener.handle().map_err(|error| Failure::running(error.to_string()))?);
        }
        if let Some(offered) = sources.offered {
            opened.iter().flatten().try_for_each(|listener| offered.listener(&label, listener))?;
        }
        if let Some(hands) = &mut sources.hands {
            let of_tcp = opened.iter().flatten().filter(|listener| listener.port().is_some());
            let handles = of_tcp.map(Listener::handle).collect::<Result<_, _>>();
            let handles = handles.map_err(|error| Failure::running(error.to_string()))?;
            hands.push(BoundAddress { spec: spec.clone(), handles });
        }
        let port = opened.first().and_then(|share| share.first()).and_then(Listener::port);
        bound.push(config::with_port(address, port));
        let secure = |listener: Listener| match &tls {
            Some(tls) => listener.with_tls(Arc::clone(tls)),
            None => listener,
        };
        shares.iter_mut().zip(opened).for_each(|(share, listeners)| share.extend(listeners.into_iter().map(secure)));
    }
    Ok((shares, bound))
}

/// A random number from the system, by way of the hash maps' own seeds.
fn chance() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{RawSettings, resolve};
    use std::sync::mpsc::channel;

    type Run = Box<dyn FnOnce() -> std::io::Result<()> + Send>;

    fn running(workers: Vec<Run>, nodes: Vec<Run>) -> Running {
        let shared = Arc::new(Shared::new(workers.len(), 0, ProcessFacts::default(), Arc::default()));
        Running {
            name: "main".to_owned(),
            shared,
            slots: Vec::new(),
            engines: Vec::new(),
            bound: Vec::new(),
            late: Vec::new(),
            workers,
            nodes,
            stop_nodes: Box::new(|| {}),
            transfers: Arc::default(),
        }
    }

    fn control() -> Arc<Control> {
        Control::new(
            resolve(&RawSettings::default(), &|_| unreachable!("no secret is asked for")).expect("defaults are sound"),
        )
    }

    #[test]
    fn an_embedded_node_that_fails_takes_no_other_thread_along() {
        let control = control();
        let (release, held) = channel::<()>();
        let (told, failing) = channel::<()>();
        let waits: Run = Box::new(move || {
            _ = held.recv();
            Ok(())
        });
        let fails: Run = Box::new(move || {
            let _told = told;
            panic!("this is what the test is about");
        });
        let threads = running(vec![waits], vec![fails]).start(&control).expect("threads start");
        assert!(failing.recv().is_err(), "it ends without a word");
        drop(release);
        let ended = threads.join();
        assert!(ended.is_err(), "in the end the process says that something was wrong");
        assert_eq!(control.phase(), Phase::Starting, "nothing was told to stop");
    }

    #[test]
    fn what_is_told_to_end_takes_over_nothing() {
        for phase in [Phase::Draining, Phase::Stopping] {
            let (control, metrics) = (control(), Metrics::default());
            let job = Job {
                workers: 1,
                control: Arc::clone(&control),
                metrics,
                hooks: HookMaker::of_process(&control),
                parameters: None,
                clock: None,
            };
            assert!(await_nodes(&job, &control.settings()).is_ok(), "no node is missed");
            control.enter(phase);
            let failure = await_nodes(&job, &control.settings()).expect_err("it ends itself");
            assert!(failure.message.contains("told to end"), "{}", failure.message);
        }
    }

    #[test]
    fn a_worker_that_fails_ends_the_service() {
        let control = control();
        let fails: Run = Box::new(|| panic!("this is what the test is about"));
        let threads = running(vec![fails], Vec::new()).start(&control).expect("threads start");
        assert!(threads.join().is_err());
        assert_eq!(control.phase(), Phase::Stopping);
    }
}
