//! Trouble for the nodes and orders for Respool, by a schedule that follows from the seed and from how many requests are done.
//!
//! Every fault is noted with its node and its time, and only there and then may clients be told of errors.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, fs, io};

use respool_testkit::{Client, RedisServer, Respool, Rng};
use rustix::process::{Pid, Signal, kill_process};

use super::excuses::{ADDRESS, DEATH, DISCONNECT, DRAIN, FULL, MOVE, NOTHING, SILENCE, Says};
use super::integrity_faults;
use super::layout::{COPIES, MOVED, NODES, Nodes};
use super::ledger::{BACK, GOES_ON, HELD, LEFT};
use super::program::Program;
use super::states::{COPIED, GUEST, LIMITED_BYTES, OWNER, limited};
use super::throttled;
use super::wall_clock::{HOUR, WallClock};
use super::world::World;

/// Clean connections that Respool keeps for clients that need one to themselves, for each worker, node and purpose.
pub(super) const WARM: usize = 2;

/// The stream of random numbers that belongs to the faults; clients have their own numbers.
const PART: u64 = u64::MAX;
/// Faults are this many requests apart on average, but there are some in every run and not too many in a long one.
pub(super) const REQUESTS_PER_FAULT: u64 = 10_000;
const FAULTS_MIN: u64 = 24;
const FAULTS_MAX: u64 = 2_000;
/// A run whose requests stop coming is noticed by its clients; nothing more to do here then.
const STALLED_LIMIT: Duration = Duration::from_secs(60);
/// After a node has moved, nothing may come to the server that it was: what was queued for it has its deadline before.
const SETTLED: Duration = Duration::from_millis(1_500);
/// A process that was succeeded ends within this time: its clients have half a second, twice, and their connections five.
const HANDOVER_LIMIT: Duration = Duration::from_secs(20);
/// A drained node that has not answered everything by then has a request that waits, and is not looked at.
const EMPTY_LIMIT: Duration = Duration::from_millis(600);
/// What servers do while they are to do nothing is looked at for so long at least.
const LOOKED_AT_MIN: Duration = Duration::from_millis(60);
/// By when all workers have settings that were changed.
const MOVING: Duration = Duration::from_millis(400);
/// Connections that a node that is full still lets in.
const FULL_CONNECTIONS: &str = "CONFIG SET maxclients 12";
const USUAL_CONNECTIONS: &str = "CONFIG SET maxclients 4000";

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A node dies and comes back with its data.
    Kill,
    /// A node says nothing for a while.
    Pause,
    /// A node is busy for a while.
    Slow,
    /// A node has no more connections to give, and ends those that there are.
    Full,
    /// All nodes end all connections at the same moment.
    Disconnect,
    /// Other settings: a node has another address, a user another limit, replies are proved.
    Reload,
    /// Other settings: another server is one of the nodes.
    Move,
    /// All connections to nodes are made anew.
    Reconnect,
    /// All requests wait for a while.
    Hold,
    /// The same by the order that Redis has, perhaps for what writes alone.
    ClientPause,
    /// Nothing more is sent to a node for a while.
    Drain,
    /// The process itself is stopped for a while, perhaps longer than a fault is felt.
    Stop,
    /// The same, and meanwhile a node dies and comes back.
    StopAndKill,
    /// The replica is busy for a while.
    SlowCopy,
    /// Another process takes over while requests are outstanding, and the former one ends; perhaps a node says nothing meanwhile.
    Handover,
    /// The process' wall clock is set by an hour, forward or back.
    ClockStep,
}

impl Fault {
    const ALL: [(Self, &'static str); 16] = [
        (Self::Kill, "kills of nodes"),
        (Self::Pause, "pauses of nodes"),
        (Self::Slow, "slow nodes"),
        (Self::Full, "nodes without connections"),
        (Self::Disconnect, "common disconnects"),
        (Self::Reload, "reloads"),
        (Self::Move, "moves of a node"),
        (Self::Reconnect, "reconnects"),
        (Self::Hold, "orders to wait"),
        (Self::ClientPause, "client pauses"),
        (Self::Drain, "drains of a node"),
        (Self::Stop, "stops of the process"),
        (Self::StopAndKill, "kills of nodes behind its back"),
        (Self::SlowCopy, "slow replicas"),
        (Self::Handover, "handovers"),
        (Self::ClockStep, "steps of the wall clock"),
    ];
}

impl Fault {
    /// Whether it may come while a process that was succeeded is still there: that has the settings of before, and goes on when its
    /// successor is stopped.
    fn may_come_in_a_handover(self) -> bool {
        !matches!(self, Self::Move | Self::Reload | Self::Stop | Self::StopAndKill | Self::Handover)
    }

    /// What clients may be told because of it.
    fn says(self) -> &'static [Says] {
        match self {
            Self::Kill | Self::StopAndKill => DEATH,
            Self::Pause | Self::Slow | Self::SlowCopy => SILENCE,
            Self::Disconnect => DISCONNECT,
            Self::Full => FULL,
            Self::Move => MOVE,
            Self::Drain => DRAIN,
            Self::Reload => ADDRESS,
            // Requests wait, what nodes have answered is read first, connections serve until others are ready, and no other clock than the
            // machine's decides anything.
            Self::Hold | Self::ClientPause | Self::Stop | Self::Reconnect | Self::Handover | Self::ClockStep => NOTHING,
        }
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(fault, _)| *fault == self).map_or("", |(_, name)| name)
    }
}

/// Each comes once more than the others: it is of several kinds.
const OFTEN: [Fault; 4] = [Fault::Handover, Fault::ClockStep, Fault::Hold, Fault::Drain];

#[derive(Default)]
pub(super) struct Summary {
    counts: [usize; Fault::ALL.len()],
    listed: Vec<usize>,
    /// How often processes that have been succeeded did not read a client because of the rate of its user.
    pub(super) throttled: u64,
    /// How many answers of nodes they found not to be what a proof says.
    pub(super) integrity_faults: u64,
    /// How often all nodes were held, and a drained one was, with nothing outstanding: what they did meanwhile was looked at.
    held: usize,
    emptied: usize,
}

impl Summary {
    /// Kinds of trouble that never came.
    pub(super) fn missing(&self) -> Vec<String> {
        let never = self.listed.iter().filter(|place| self.counts[**place] == 0);
        let never = never.map(|place| format!("no {}", Fault::ALL[*place].1));
        let unseen = [
            (self.held, "order to wait with nothing outstanding"),
            (self.emptied, "drained node without anything outstanding"),
        ];
        never.chain(unseen.into_iter().filter(|(times, _)| *times == 0).map(|(_, what)| format!("no {what}"))).collect()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = self.counts.iter().zip(Fault::ALL).map(|(count, (_, name))| format!("{count} {name}"));
        f.write_str(&counted.collect::<Vec<_>>().join(", "))?;
        let Summary { held, emptied, .. } = self;
        write!(f, "\nnodes did nothing in {held} orders to wait and {emptied} drains")
    }
}

/// Names of all faults.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    Fault::ALL.into_iter().map(|(_, name)| name)
}

/// Which faults there are, and how many.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Their places in the list of all.
    listed: Vec<usize>,
    /// Requests between two of them, on average.
    every: u64,
}

impl Plan {
    /// Those of these names, or all if there are none. `None`: none of them can be here. `Err`: there is none of such a name.
    pub(super) fn new(chosen: &[String], every: u64, is_routed: bool) -> Result<Option<Plan>, String> {
        if let Some(unknown) = chosen.iter().find(|chosen| names().all(|name| name != chosen.as_str())) {
            return Err(format!("no fault is called {unknown:?}; --list shows all"));
        }
        let is_listed = |(fault, name): &(Fault, &str)| {
            (*fault != Fault::SlowCopy || is_routed) && (chosen.is_empty() || chosen.iter().any(|one| one == name))
        };
        let listed: Vec<usize> = (0..Fault::ALL.len()).filter(|place| is_listed(&Fault::ALL[*place])).collect();
        Ok((!listed.is_empty()).then_some(Plan { listed, every }))
    }
}

/// How the settings differ from those at the beginning.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Form {
    /// The first node has its other address, a user another limit, and every batch is proved.
    is_other: bool,
    /// The last of the nodes is the spare server.
    has_moved: bool,
    /// Some keys are in a pool of their own, with a replica.
    is_routed: bool,
    /// Nodes are dialled as seldom as usual.
    is_usual_rate: bool,
    /// How often the settings have been changed.
    changes: usize,
    /// Each has a user of its own that may ask for little.
    clients: u64,
}

impl Form {
    pub(super) fn new(is_routed: bool, is_usual_rate: bool, clients: u64) -> Form {
        Form { is_routed, is_usual_rate, clients, ..Form::default() }
    }
}

/// A setting that nothing else depends on: its value tells one state of the settings from all before.
fn mark(form: Form) -> usize {
    128 + form.changes
}

/// The settings of the run. Servers: the nodes, the one with a replica, that replica, and the spare one.
pub(super) fn settings(servers: &[RedisServer], form: Form) -> String {
    let node = |number: usize| {
        let address = match number {
            0 if form.is_other => servers[0].unix(),
            MOVED if form.has_moved => servers[NODES + 2].tcp(),
            _ => servers[number].tcp(),
        };
        format!("\"{address} name=node{number}\"")
    };
    let nodes: Vec<String> = (0..NODES).map(node).collect();
    let (copies, copy) = (servers[COPIES].tcp(), servers[COPIES + 1].tcp());
    let [name, password] = GUEST;
    let [owner, of_owner] = OWNER;
    let limit = if form.is_other { "requests_per_second = 10000000\n" } else { "" };
    let integrity = if form.is_other { "integrity_check = 1\n" } else { "" };
    let routes = format!(
        "[pools.copies]\nnodes = [\"{copies} name=node{COPIES}\", \"{copy} name=node{} replica_of=node{COPIES}\"]\n\
         [[routes]]\nname = \"copied\"\nprefix = \"{COPIED}\"\nto = \"copies\"\nreads = \"replica\"\n",
        COPIES + 1
    );
    let routes = if form.is_routed { &routes } else { "" };
    let limited = (0..form.clients).map(|client| {
        let [name, password] = limited(client);
        format!("[users.{name}]\nrules = \"on >{password} ~* &* +@all\"\nbytes_per_second = {LIMITED_BYTES}\n")
    });
    let limited: String = limited.collect();
    let rate = if form.is_usual_rate { "" } else { "reconnect_rate = 10000\n" };
    let changes = mark(form);
    format!(
        "nodes = [{}]\nprivate_connections_warm = {WARM}\nadmin_commands = \"allow\"\nreconnect_max = \"200ms\"\n{rate}{integrity}\
         acllog_max_len = {changes}\n\
         [users.{owner}]\nrules = \"on >{of_owner} ~* &* +@all\"\npool_mode = \"session\"\n\
         [users.{name}]\nrules = \"on >{password} ~* +@read\"\n{limit}{limited}\
         {routes}",
        nodes.join(", ")
    )
}

/// What the schedule works with.
pub(super) struct Chaos<'a> {
    pub(super) world: &'a World,
    pub(super) servers: &'a mut [RedisServer],
    pub(super) respool: &'a mut Respool,
    program: &'a Program,
    clock: &'a WallClock,
    /// How many seconds that is later than the machine's.
    later_by: i64,
    pub(super) settings_file: &'a Path,
    form: Form,
    /// When nothing more may come to the server that the moved node has left.
    settled: Option<Instant>,
    /// Waits for the end of a process that was succeeded.
    retired: Option<JoinHandle<io::Result<()>>>,
    throttled: u64,
    integrity_faults: u64,
    held: usize,
    emptied: usize,
}

impl<'a> Chaos<'a> {
    pub(super) fn new(
        world: &'a World,
        servers: &'a mut [RedisServer],
        respool: &'a mut Respool,
        (program, clock): (&'a Program, &'a WallClock),
        settings_file: &'a Path,
        form: Form,
    ) -> Chaos<'a> {
        Chaos {
            world,
            servers,
            respool,
            program,
            clock,
            later_by: 0,
            settings_file,
            form,
            settled: None,
            retired: None,
            throttled: 0,
            integrity_faults: 0,
            held: 0,
            emptied: 0,
        }
    }

    /// Runs the schedule to its end; all nodes are up afterwards.
    pub(super) fn run(mut self, requests: u64, plan: &Plan) -> io::Result<Summary> {
        let Plan { listed, every } = plan.clone();
        // Each in turn at first, so that there is every kind in every run, and those twice that are two kinds.
        let again = listed.iter().filter(|place| OFTEN.contains(&Fault::ALL[**place].0));
        let (first, last) = listed.split_at(listed.len() / 2);
        let turns: Vec<usize> = first.iter().chain(again).chain(last).copied().collect();
        let mut summary = Summary { listed, ..Summary::default() };
        let mut rng = Rng::part(self.world.seed, PART);
        let faults = (requests / every).clamp(FAULTS_MIN, FAULTS_MAX);
        // The last tenth is for recovery under load.
        let step = requests * 9 / 10 / faults;
        let begin = self.world.requests_done.load(Ordering::Relaxed);
        for number in 0..faults {
            let due = begin + number * step + rng.below(step.max(1) as usize) as u64;
            if !wait_for(self.world, due) {
                break;
            }
            let place = turns.get(number as usize).copied();
            let place = place.unwrap_or_else(|| *rng.pick(&summary.listed));
            summary.counts[place] += 1;
            self.inflict(Fault::ALL[place].0, &mut rng)?;
            self.mark_left(false)?;
        }
        self.mark_left(true)?;
        self.await_retired()?;
        (summary.throttled, summary.integrity_faults) = (self.throttled, self.integrity_faults);
        (summary.held, summary.emptied) = (self.held, self.emptied);
        Ok(summary)
    }

    fn inflict(&mut self, fault: Fault, rng: &mut Rng) -> io::Result<()> {
        // The last is the one with a replica.
        let node = rng.below(if self.form.is_routed { NODES + 1 } else { NODES });
        // One that all clients use, so that there are requests that run out of time in every run.
        let node = if fault == Fault::Slow { node % NODES } else { node };
        let length = Duration::from_millis(rng.between(0, 600) as u64);
        // Longer than what follows from a fault is felt where nothing stops, for most.
        let stop = Duration::from_millis(rng.between(900, 2_400) as u64);
        // Longer than a request may take, so that some do not.
        let long = Duration::from_millis(rng.between(400, 600) as u64);
        if !fault.may_come_in_a_handover() {
            self.await_retired()?;
        }
        let faults = &self.world.faults;
        let nodes = match fault {
            Fault::Kill | Fault::Pause | Fault::Slow | Fault::Full | Fault::StopAndKill => Nodes::one(node),
            Fault::Drain => Nodes::one(node % NODES),
            Fault::SlowCopy => Nodes::one(COPIES + 1),
            Fault::Move => Nodes::one(MOVED),
            Fault::Hold | Fault::ClientPause | Fault::Reconnect | Fault::Stop | Fault::Handover | Fault::ClockStep => {
                Nodes::NONE
            }
            // Its address is another one then.
            Fault::Reload => Nodes::one(0),
            Fault::Disconnect => Nodes::ALL,
        };
        let server = if node == MOVED && self.form.has_moved { NODES + 2 } else { node };
        if fault == Fault::Drain {
            // The order is for the process that serves from now on, and what it brings about begins with it.
            self.await_retired()?;
        }
        let window = faults.begin(fault.name(), nodes, fault.says());
        let done = match fault {
            Fault::Kill => self.kill(server, length),
            Fault::Pause => self.pause(server, length),
            Fault::Stop => self.stop(stop, |_| Ok(())),
            Fault::StopAndKill => self.stop(stop, |this| {
                let done = this.kill(server, length / 4);
                this.world.faults.end(window);
                done
            }),
            Fault::Slow => self.sleep(server, long),
            Fault::SlowCopy => self.sleep(COPIES + 1, length),
            Fault::Full => self.fill(server, length),
            Fault::Disconnect => self.servers.iter().try_for_each(|server| disconnect(&mut server.client()?)),
            Fault::Handover => {
                let silent = rng.once_in(2).then_some((node, server));
                self.hand_over(silent, length)
            }
            Fault::ClockStep => {
                let others = [-HOUR, 0, HOUR].into_iter().filter(|later_by| *later_by != self.later_by);
                self.later_by = *rng.pick(&others.collect::<Vec<_>>());
                self.clock.step(self.later_by, &mut self.respool.client()?)
            }
            Fault::Reload => {
                self.form.is_other = !self.form.is_other;
                self.reload(nodes)
            }
            Fault::Move => self.move_node(),
            Fault::Reconnect => self.order("PROXY RECONNECT", ":"),
            Fault::Hold => {
                faults.begin_hold();
                self.order("PROXY PAUSE", "+OK")?;
                let waits = rng.once_in(2) || self.held == 0;
                let done = self.hold(waits, length / 4);
                faults.end_hold(Instant::now());
                done
            }
            Fault::ClientPause => {
                let what = if rng.once_in(2) { "ALL" } else { "WRITE" };
                let pause = length / 4 + Duration::from_millis(1);
                faults.begin_hold();
                let done = self.order(&format!("CLIENT PAUSE {} {what}", pause.as_millis()), "+OK");
                faults.end_hold(Instant::now() + pause);
                done
            }
            Fault::Drain => {
                let name = format!("node{}", node % NODES);
                // Keys that are watched there count as changed.
                let change = faults.begin_change(nodes);
                self.order(&format!("PROXY DRAIN {name}"), "")?;
                faults.end_change(change);
                let server = if node % NODES == MOVED && self.form.has_moved { NODES + 2 } else { node % NODES };
                self.drained(&name, server, length / 4)?;
                self.order(&format!("PROXY RESUME {name}"), "+OK")
            }
        };
        if fault != Fault::StopAndKill {
            faults.end(window);
        }
        done
    }

    /// All requests wait for so long. If the order is answered once nothing is outstanding, no node does anything from then on.
    fn hold(&mut self, waits: bool, length: Duration) -> io::Result<()> {
        // An order is not for a process that was succeeded.
        if waits {
            self.await_retired()?;
        }
        let answer = self.respool.client()?.ask(if waits { "PROXY PAUSE WAIT" } else { "PROXY PAUSE" })?;
        // What waits at a node outlasts the order's time.
        if !(waits && answer.starts_with("-ERR the order holds, but ")) {
            expect(&answer, "+OK")?;
        }
        let are_still = waits && answer.starts_with("+OK");
        self.look_meanwhile(are_still, &[0, 1, 2, MOVED, COPIES, NODES + 2], length)?;
        self.held += usize::from(are_still);
        self.order("PROXY RESUME", "+OK")
    }

    /// The same for a node to which nothing more is sent, once it has answered everything.
    fn drained(&mut self, name: &str, server: usize, length: Duration) -> io::Result<()> {
        let mut operator = self.respool.client()?;
        let begin = Instant::now();
        let mut is_empty = false;
        while !is_empty && begin.elapsed() < EMPTY_LIMIT {
            is_empty = figure(&operator.ask("PROXY SHOW NODES")?, name, "outstanding")? == 0;
            thread::sleep(Duration::from_millis(2));
        }
        self.look_meanwhile(is_empty, &[server], length)?;
        self.emptied += usize::from(is_empty);
        Ok(())
    }

    /// Waits, and has what servers do meanwhile looked at if they are to do nothing.
    fn look_meanwhile(&self, are_still: bool, servers: &[usize], length: Duration) -> io::Result<()> {
        let looked_at = if are_still { servers } else { &[] };
        let mark = |key: &str| {
            looked_at
                .iter()
                .try_for_each(|server| expect(&self.servers[*server].client()?.ask(&format!("SET {key} 1"))?, "+OK"))
        };
        mark(HELD)?;
        // Long enough for every client to ask for something.
        thread::sleep(length + LOOKED_AT_MIN * u32::from(are_still));
        mark(GOES_ON)
    }

    /// The process stands still for so long, while something else happens.
    fn stop(&mut self, length: Duration, meanwhile: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        let begin = Instant::now();
        self.respool.pause()?;
        let done = meanwhile(self);
        thread::sleep(length.saturating_sub(begin.elapsed()));
        // Noted before it goes on, so that no client can be told of it earlier.
        self.world.faults.stops.note(begin);
        self.respool.resume()?;
        self.settled = self.settled.map(|settled| settled + begin.elapsed());
        done
    }

    /// Another process takes over, and clients go on with it. A node and its server may say nothing at that time. What comes next may come
    /// while the former process serves its clients on and drains.
    fn hand_over(&mut self, silent: Option<(usize, usize)>, length: Duration) -> io::Result<()> {
        self.throttled += throttled(self.respool)?;
        self.integrity_faults += integrity_faults(self.respool)?;
        let handover = self.world.faults.begin_handover();
        let mut retired = self.program.succeed(self.respool)?;
        self.world.faults.watch.processors.note_proxy(self.respool.pid());
        self.retired = Some(thread::spawn(move || {
            let ended = retired.wait(HANDOVER_LIMIT)?;
            handover.end();
            match ended.success() {
                true => Ok(()),
                false => Err(io::Error::other(format!("a process that was succeeded ended with {ended}"))),
            }
        }));
        let Some((node, server)) = silent else { return Ok(()) };
        let window = self.world.faults.begin("pauses of nodes in a handover", Nodes::one(node), SILENCE);
        self.pause(server, length)?;
        self.world.faults.end(window);
        Ok(())
    }

    /// Waits for the end of a process that was succeeded.
    fn await_retired(&mut self) -> io::Result<()> {
        let retired = self.retired.take();
        retired.map_or(Ok(()), |retired| retired.join().expect("waiting for a process does not panic"))
    }

    fn kill(&mut self, server: usize, length: Duration) -> io::Result<()> {
        self.servers[server].kill()?;
        thread::sleep(length);
        self.servers[server].restart()?;
        let node = if server == NODES + 2 { MOVED } else { server };
        self.world.faults.watch.processors.note_server(Nodes::one(node), self.servers[server].pid());
        Ok(())
    }

    fn pause(&mut self, server: usize, length: Duration) -> io::Result<()> {
        self.servers[server].pause()?;
        thread::sleep(length);
        self.servers[server].resume()
    }

    fn sleep(&mut self, server: usize, length: Duration) -> io::Result<()> {
        expect(&self.servers[server].client()?.ask(&format!("DEBUG SLEEP {:.3}", length.as_secs_f64()))?, "+OK")
    }

    fn fill(&mut self, server: usize, length: Duration) -> io::Result<()> {
        let mut control = self.servers[server].client()?;
        expect(&control.ask(FULL_CONNECTIONS)?, "+OK")?;
        disconnect(&mut control)?;
        thread::sleep(length);
        expect(&control.ask(USUAL_CONNECTIONS)?, "+OK")
    }

    /// Another server is the node from now on.
    fn move_node(&mut self) -> io::Result<()> {
        self.mark_left(true)?;
        let new = if self.form.has_moved { MOVED } else { NODES + 2 };
        // Nothing may have come to it since.
        expect(&self.servers[new].client()?.ask(&format!("SET {BACK} 1"))?, "+OK")?;
        self.form.has_moved = !self.form.has_moved;
        self.world.moves.fetch_add(1, Ordering::SeqCst);
        self.reload(Nodes::one(MOVED))?;
        self.settled = Some(Instant::now() + SETTLED);
        // Until all workers have the new settings, clients may be with either server: an odd count says so.
        thread::sleep(MOVING);
        self.world.moves.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Writes to the server that the node has left when nothing more may come to it; waits for that if it has to.
    fn mark_left(&mut self, waits: bool) -> io::Result<()> {
        let Some(settled) = self.settled else { return Ok(()) };
        if waits {
            thread::sleep(settled.saturating_duration_since(Instant::now()));
        } else if Instant::now() < settled {
            return Ok(());
        }
        self.settled = None;
        let left = if self.form.has_moved { MOVED } else { NODES + 2 };
        expect(&self.servers[left].client()?.ask(&format!("SET {LEFT} 1"))?, "+OK")
    }

    /// Has the settings read. What a client sends after this has returned is read by workers that have them, however late they are:
    /// they are told before the log is, and read what they are told before what clients send. Keys that are watched at these nodes
    /// count as changed.
    fn reload(&mut self, nodes: Nodes) -> io::Result<()> {
        let change = self.world.faults.begin_change(nodes);
        self.form.changes += 1;
        // All of it or nothing: an earlier order to read it may be under way.
        let beside = self.settings_file.with_extension("new");
        fs::write(&beside, settings(self.servers, self.form))?;
        fs::rename(&beside, self.settings_file)?;
        let respool = i32::try_from(self.respool.pid()).ok().and_then(Pid::from_raw);
        kill_process(respool.expect("a child has a process id"), Signal::HUP)?;
        self.respool.wait_for_line(&format!("acllog_max_len is now {}", mark(self.form)), STALLED_LIMIT)?;
        self.world.faults.end_change(change);
        Ok(())
    }

    fn order(&self, words: &str, beginning: &str) -> io::Result<()> {
        expect(&self.respool.client()?.ask(words)?, beginning)
    }
}

/// A figure of a node in a table of the console.
fn figure(table: &str, node: &str, name: &str) -> io::Result<u64> {
    let of_node = table.split("\r\n").skip_while(|word| *word != node).skip_while(|word| *word != name);
    let figure = of_node.skip(1).find_map(|word| word.strip_prefix(':')?.parse().ok());
    figure.ok_or_else(|| io::Error::other(format!("{name} of {node} is not in {table:?}")))
}

/// Ends all other connections to a server.
fn disconnect(control: &mut Client) -> io::Result<()> {
    expect(&control.ask("CLIENT KILL TYPE normal SKIPME yes")?, ":")?;
    expect(&control.ask("CLIENT KILL TYPE pubsub SKIPME yes")?, ":")
}

fn expect(reply: &str, beginning: &str) -> io::Result<()> {
    match reply.starts_with(beginning) && (!beginning.is_empty() || !reply.starts_with('-')) {
        true => Ok(()),
        false => Err(io::Error::other(format!("the answer is {reply:?} instead of {beginning:?}"))),
    }
}

pub(super) fn wait_for(world: &World, due: u64) -> bool {
    let (mut seen, mut since) = (0, Instant::now());
    loop {
        let done = world.requests_done.load(Ordering::Relaxed);
        if done >= due {
            return true;
        }
        if done != seen {
            (seen, since) = (done, Instant::now());
        }
        if since.elapsed() > STALLED_LIMIT {
            return false;
        }
        thread::sleep(Duration::from_micros(500));
    }
}
