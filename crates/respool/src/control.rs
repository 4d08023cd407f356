//! What the rest of the process may ask of the serving threads: to drain, to stop, to take other settings. And what they may
//! ask back: whether it is ready.
//!
//! ```text
//!  Starting ──ready──► Serving ──────────drain──────────► Draining ──stop──► Stopping
//!      │                  ├──to end, with a delay──► Leaving ──▲                 ▲
//!      │                  └──taken over──► Retiring ──drain──▲                   │
//!      └─────────────────────────────── stop ────────────────────────────────────┘
//! ```
//!
//! A worker's loop polls [`Control::phase`] and [`Control::reloads`] once a turn; both are one relaxed load. So that a
//! loop asleep in the kernel learns of a change, it leaves a waker with [`Control::on_change`].

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tracing::info;

use crate::settings::Process;
use crate::settings::config::Resolved;
use crate::settings::table::Setting;

/// What the process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Listeners are not all open yet.
    Starting,
    /// Clients are served.
    Serving,
    /// Clients are accepted and served, but `/readyz` fails: the drain begins after `drain_delay`.
    Leaving,
    /// Another process accepts the new clients; connected ones are served for at most the drain timeout.
    Retiring,
    /// No new clients; replies still owed are sent, for at most the drain timeout.
    Draining,
    /// It ends now.
    Stopping,
}

const PHASES: [Phase; 6] =
    [Phase::Starting, Phase::Serving, Phase::Leaving, Phase::Retiring, Phase::Draining, Phase::Stopping];

/// Wakes one sleeping loop.
pub type Waker = Box<dyn Fn() + Send>;

/// The switchboard between signals, the HTTP side and the workers.
pub struct Control {
    phase: AtomicU8,
    /// How often settings were taken for the whole process.
    adopted: AtomicU64,
    /// How often those of each instance were changed alone.
    amended: Vec<AtomicU64>,
    settings: Mutex<Settings>,
    wakers: Mutex<Vec<Waker>>,
    /// Called before anything can see that the process ends.
    enders: Mutex<Vec<Waker>>,
}

struct Settings {
    said: Resolved,
    in_force: Arc<Process>,
}

/// What a reload did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopted {
    /// The settings that changed.
    pub changes: Vec<Change>,
    /// Pools were added, removed, renamed or moved, which needs a restart.
    pub has_other_pools: bool,
    /// Routes, or the pools that they lead to, were changed and have been taken over.
    pub has_other_routes: bool,
    /// Users' tables were changed: their rules, or what they may ask for.
    pub has_other_users: bool,
}

/// What a reload did about one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The setting.
    pub setting: Setting,
    /// The pool whose setting it is, if it is not the whole process'.
    pub pool: Option<String>,
    /// What it is now, as a user would write it.
    pub value: String,
    /// Whether it has taken effect; otherwise it needs a restart.
    pub is_live: bool,
}

impl Control {
    /// A control that is starting with these settings.
    #[must_use]
    pub fn new(understood: Resolved) -> Arc<Self> {
        let in_force = Arc::new(understood.process.clone());
        Arc::new(Self {
            phase: AtomicU8::new(Phase::Starting as u8),
            adopted: AtomicU64::new(0),
            amended: in_force.instances.iter().map(|_| AtomicU64::new(0)).collect(),
            settings: Mutex::new(Settings { said: understood, in_force }),
            wakers: Mutex::new(Vec::new()),
            enders: Mutex::new(Vec::new()),
        })
    }

    /// What the process is doing.
    #[must_use]
    pub fn phase(&self) -> Phase {
        PHASES[usize::from(self.phase.load(Ordering::Relaxed)).min(PHASES.len() - 1)]
    }

    /// Goes on to a later phase and wakes all that wait; an earlier one is ignored. Returns whether the phase changed.
    pub fn enter(&self, phase: Phase) -> bool {
        if phase > Phase::Retiring && self.phase() <= Phase::Retiring {
            call_all(&self.enders);
        }
        let before = self.phase.fetch_max(phase as u8, Ordering::SeqCst);
        if before < phase as u8 {
            self.wake();
        }
        before < phase as u8
    }

    /// Begins to end: enters `Leaving` if clients are served and `drain_delay` is set, else `Draining`, or `Stopping` on a
    /// further call.
    ///
    /// Returns the phase afterwards.
    pub fn begin_to_end(self: &Arc<Self>) -> Phase {
        let delay = self.settings().drain_delay;
        if !delay.is_zero() && self.phase() == Phase::Serving && self.enter(Phase::Leaving) {
            let weak = Arc::downgrade(self);
            let wait = move || {
                thread::sleep(delay);
                if let Some(control) = weak.upgrade()
                    && control.enter(Phase::Draining)
                {
                    info!("the drain delay is over: no new clients, replies still owed are sent");
                }
            };
            if thread::Builder::new().name("drain-delay".to_owned()).spawn(wait).is_ok() {
                return Phase::Leaving;
            }
        }
        if !self.enter(Phase::Draining) {
            self.enter(Phase::Stopping);
        }
        self.phase()
    }

    /// How often settings were changed since the start; a worker that sees it change asks for the settings again.
    #[must_use]
    pub fn reloads(&self) -> u64 {
        let amended: u64 = self.amended.iter().map(|count| count.load(Ordering::Acquire)).sum();
        self.adoptions() + amended
    }

    /// How often settings were taken for the whole process, which is what [`Control::adopt`] does. What a client has changed is none
    /// of these: it brings back nothing that the settings say, and reads no file.
    #[must_use]
    pub fn adoptions(&self) -> u64 {
        self.adopted.load(Ordering::Acquire)
    }

    /// The same for one instance: what was changed for another alone does not concern it.
    #[must_use]
    pub fn reloads_of(&self, number: usize) -> u64 {
        let amended = self.amended.get(number).map_or(0, |count| count.load(Ordering::Acquire));
        self.adoptions() + amended
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> Arc<Process> {
        let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&settings.in_force)
    }

    /// Takes what of `new` can be taken without a restart, wakes all that wait, and says what changed.
    pub fn adopt(&self, new: Resolved) -> Adopted {
        let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        let in_force = Arc::new(settings.in_force.with_live_part_of(&new.process));
        let changes =
            settings.said.changes_to(&new).into_iter().map(|change| describe(change, &new, &in_force)).collect();
        let routing = |process: &Process| {
            process.instances.iter().map(|instance| instance.proxy.routing.clone()).collect::<Vec<_>>()
        };
        let has_other_routes = routing(&settings.in_force) != routing(&in_force);
        let has_other_users = settings.in_force.users.tables != in_force.users.tables;
        let has_other_pools = !settings.said.has_pools_of(&new);
        let adopted = Adopted { changes, has_other_pools, has_other_routes, has_other_users };
        settings.in_force = in_force;
        settings.said = new;
        drop(settings);
        self.adopted.fetch_add(1, Ordering::Release);
        self.wake();
        adopted
    }

    /// Changes settings of an instance that a client may change while running, and wakes all that wait. The next reload brings back what
    /// its sources say. Those of the whole process may be among them if there is no other instance, which would not hear of it, or if they are
    /// about users, of which the workers of all instances are told.
    /// Result: the settings in force.
    pub fn amend(&self, number: usize, change: impl FnOnce(&mut Process)) -> Arc<Process> {
        let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut process = Process::clone(&settings.in_force);
        change(&mut process);
        let in_force = Arc::new(process);
        settings.in_force = Arc::clone(&in_force);
        drop(settings);
        if let Some(amended) = self.amended.get(number) {
            amended.fetch_add(1, Ordering::Release);
        }
        self.wake();
        in_force
    }

    /// Has `waker` called after every change.
    pub fn on_change(&self, waker: Waker) {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(waker);
    }

    /// Has `ender` called before the phase is `Draining` or `Stopping`, perhaps more than once: a worker that sees such a phase stops
    /// listening, whether or not it was woken.
    pub fn before_end(&self, ender: Waker) {
        self.enders.lock().unwrap_or_else(PoisonError::into_inner).push(ender);
    }

    fn wake(&self) {
        call_all(&self.wakers);
    }
}

fn call_all(wakers: &Mutex<Vec<Waker>>) {
    wakers.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|waker| waker());
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("phase", &self.phase())
            .field("reloads", &self.reloads())
            .finish_non_exhaustive()
    }
}

fn describe((setting, number): (Setting, usize), new: &Resolved, in_force: &Process) -> Change {
    use crate::settings::row::{Group, Reload, Scope};

    let row = setting.row();
    let pool = || new.process.instances[number].name.clone();
    let instance = &new.process.instances[number];
    let in_force = in_force.instances.iter().find(|in_force| in_force.name == instance.name);
    let has_nodes = in_force.is_some_and(|in_force| in_force.proxy.nodes == instance.proxy.nodes);
    Change {
        setting,
        pool: (row.scope == Scope::Pool).then(pool),
        value: new.values[number][setting as usize].show(row),
        is_live: row.reload == Reload::Live && (row.group != Group::Nodes || has_nodes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::config::ClientMemory;
    use crate::settings::{RawSettings, resolve};

    fn understood(flags: &[(Setting, &str)]) -> Resolved {
        let mut said = RawSettings::default();
        for (setting, value) in flags {
            said.hear_flag(*setting, &[(*value).to_owned()]);
        }
        resolve(&said, &|_| unreachable!("no secret is asked for")).unwrap()
    }

    #[test]
    fn phases_only_go_forward_and_wake_the_sleepers() {
        let control = Control::new(understood(&[]));
        let woken = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&woken);
        control.on_change(Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        }));
        assert_eq!(control.phase(), Phase::Starting);
        assert!(control.enter(Phase::Draining));
        assert!(!control.enter(Phase::Serving), "a drain that came before the start was done is not forgotten");
        assert!(!control.enter(Phase::Draining));
        assert_eq!((control.phase(), woken.load(Ordering::Relaxed)), (Phase::Draining, 1));
    }

    #[test]
    fn the_end_is_prepared_before_it_is_seen() {
        let control = Control::new(understood(&[]));
        let (weak, seen) = (Arc::downgrade(&control), Arc::new(Mutex::new(Vec::new())));
        let notes = Arc::clone(&seen);
        control.before_end(Box::new(move || notes.lock().unwrap().extend(weak.upgrade().map(|it| it.phase()))));
        for phase in [Phase::Serving, Phase::Leaving, Phase::Retiring, Phase::Draining, Phase::Stopping] {
            control.enter(phase);
        }
        assert_eq!(*seen.lock().unwrap(), [Phase::Retiring]);
    }

    #[test]
    fn a_delay_lies_before_the_drain_and_can_be_ended() {
        let control = Control::new(understood(&[(Setting::DrainDelay, "1h")]));
        control.enter(Phase::Serving);
        for phase in [Phase::Leaving, Phase::Draining, Phase::Stopping, Phase::Stopping] {
            assert_eq!(control.begin_to_end(), phase);
        }
        for (delay, phase) in [("0s", Phase::Serving), ("1h", Phase::Starting), ("1h", Phase::Retiring)] {
            let control = Control::new(understood(&[(Setting::DrainDelay, delay)]));
            control.enter(phase);
            assert_eq!(control.begin_to_end(), Phase::Draining, "{delay} {phase:?}: nothing is gained by waiting");
        }
    }

    #[test]
    fn a_reload_takes_what_it_can_and_tells_the_rest() {
        let control = Control::new(understood(&[]));
        let new = understood(&[(Setting::RequestTimeout, "7s"), (Setting::Backlog, "7"), (Setting::MaxClients, "7")]);
        let adopted = control.adopt(new);
        assert!(!adopted.has_other_pools);
        let changes = adopted.changes.into_iter().map(|c| (c.setting, c.pool, c.value, c.is_live)).collect::<Vec<_>>();
        let main = || Some("main".to_owned());
        assert_eq!(
            changes,
            [
                (Setting::MaxClients, None, "7".to_owned(), true),
                (Setting::Backlog, main(), "7".to_owned(), false),
                (Setting::RequestTimeout, main(), "7s".to_owned(), true),
            ]
        );
        let process = control.settings();
        assert_eq!(process.instances[0].proxy.timeouts.request, Some(std::time::Duration::from_secs(7)));
        assert_eq!((process.clients_max, process.instances[0].net.backlog), (7, 511));
        assert_eq!(control.reloads(), 1);
    }

    #[test]
    fn a_reload_leaves_what_only_parameters_say() {
        let control = Control::new(understood(&[]));
        let soft_limits = [(1 << 20, 5), (2 << 20, 6)];
        let client_memory = ClientMemory::Percent(7);
        control.amend(0, |process| {
            process.instances[0].proxy.budgets.soft_limits = soft_limits;
            let seeing = &mut process.instances[0].proxy.seeing;
            seeing.latency_ms = 9;
            seeing.tracks_latency = false;
            seeing.large_requests.bytes_min = 11;
            seeing.large_replies.entries_max = 12;
            process.instances[0].engine.client_memory = client_memory;
        });
        control.adopt(understood(&[(Setting::ClientOutputHardBytes, "64mb"), (Setting::SlowLogEntries, "13")]));
        let process = control.settings();
        let seeing = &process.instances[0].proxy.seeing;
        assert_eq!((seeing.latency_ms, seeing.tracks_latency, seeing.slow_log_entries), (9, false, 13));
        assert_eq!((seeing.large_requests.bytes_min, seeing.large_replies.entries_max), (11, 12));
        assert_eq!(process.instances[0].proxy.budgets.client_output_hard, 64 << 20);
        assert_eq!(process.instances[0].proxy.budgets.soft_limits, soft_limits);
        assert_eq!(process.instances[0].engine.client_memory, client_memory);
    }

    #[test]
    fn what_is_changed_for_one_instance_reloads_no_other() {
        let mut understood = understood(&[]);
        understood.process.instances.push(understood.process.instances[0].clone());
        let control = Control::new(understood);
        let process = control.amend(1, |process| process.instances[1].net.backlog = 7);
        assert_eq!((process.instances[0].net.backlog, process.instances[1].net.backlog), (511, 7));
        assert_eq!([control.reloads_of(0), control.reloads_of(1), control.reloads()], [0, 1, 1]);
        assert_eq!(control.adoptions(), 0, "no settings were read");
    }
}
