//! Respool in a program of one's own: the proxy or the embedded server on threads of this process, told by calls instead of
//! flags, ended by a call instead of a signal.
//!
//! Nothing here touches what belongs to the process as a whole, signals, standard output, the log's subscriber, except the
//! limit on open files, which is raised as far as the system lets it be.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use respool_command::{Categories, Row};
use respool_connection::Peer;
use respool_net::MovableClock;
use respool_proxy::hooks::{Event, Hooks, ProcessAction, Verdict};
use respool_wire::Args;

use crate::admin::{End, InstanceWorkers, Metrics, process};
use crate::control::{Control, Phase};
use crate::failure::Failure;
use crate::serve::handover::Inherited;
use crate::serve::hooks::{HookMaker, tell};
use crate::serve::{self, Job};
use crate::settings::config::Resolved;
use crate::settings::raw::Text;
use crate::settings::raw::{RawUser, UserKey};
use crate::settings::{Address, Fault, Faults, Origin, RawSettings, Setting, file, nearest, resolve};

type OnAccept = Arc<dyn Fn(&Peer) -> bool + Send + Sync>;
type OnEvent = Arc<dyn Fn(&Event) + Send + Sync>;
type OnRequest = Arc<dyn Fn(&Peer, &'static Row, Args<'_>) -> Verdict + Send + Sync>;

/// What there is to run. What is not said is as the table of settings has it: without a node, an embedded server on
/// `127.0.0.1:6379`.
#[derive(Clone, Default)]
pub struct Builder {
    text: String,
    set: Vec<(String, String)>,
    users: Vec<(String, String)>,
    on_accept: Option<OnAccept>,
    on_event: Option<OnEvent>,
    on_request: Option<(Categories, OnRequest)>,
    /// The time that clients see, if it is moved.
    pub(crate) clock: Option<MovableClock>,
}

impl Builder {
    /// Nothing is said yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that a settings file can say, in TOML: pools, routes, users, settings. Calls overrule it.
    #[must_use]
    pub fn settings(mut self, toml: &str) -> Self {
        toml.clone_into(&mut self.text);
        self
    }

    /// One setting by its name in `docs/settings.md`, with its value as a file or flag would have it.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.set.push((name.to_owned(), value.to_string()));
        self
    }

    /// Listens there: `127.0.0.1:6379`, `:6379`, `/run/r.sock`, `tls::6380 cert=FILE key=FILE`. Port 0 is any free one.
    #[must_use]
    pub fn listen(self, address: &str) -> Self {
        self.set("listen", address)
    }

    /// A node behind the proxy: `10.0.0.1:6379 name=a`, `tls:host:6380`, `embedded:`.
    #[must_use]
    pub fn node(self, node: &str) -> Self {
        self.set("nodes", node)
    }

    /// A user with its rules in Redis' ACL language: `.user("alice", "on >secret ~app:* +@read")`.
    #[must_use]
    pub fn user(mut self, name: &str, rules: &str) -> Self {
        self.users.push((name.to_owned(), rules.to_owned()));
        self
    }

    /// Asks `hook` about every client that connects: `false` refuses. Called on workers' threads; it must not wait.
    #[must_use]
    pub fn on_accept(mut self, hook: impl Fn(&Peer) -> bool + Send + Sync + 'static) -> Self {
        self.on_accept = Some(Arc::new(hook));
        self
    }

    /// Tells `hook` what happens rarely: clients that are refused, nodes that come and go. It must not wait.
    #[must_use]
    pub fn on_event(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(hook));
        self
    }

    /// Asks `hook` about every request of one of these categories of commands, after the user's own rules: `Err` is what the
    /// client is told instead. It must not wait. Requests of other categories cost a look at their row.
    #[must_use]
    pub fn on_request(
        self,
        categories: Categories,
        hook: impl Fn(&Peer, &'static Row, Args<'_>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.judging(categories, move |peer, row, args| match hook(peer, row, args) {
            Ok(()) => Verdict::Pass,
            Err(words) => Verdict::Refuse(words),
        })
    }

    /// The same with all that may become of a request.
    pub(crate) fn judging(
        mut self,
        categories: Categories,
        judge: impl Fn(&Peer, &'static Row, Args<'_>) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        self.on_request = Some((categories, Arc::new(judge)));
        self
    }

    /// Opens everything and begins to serve.
    ///
    /// # Errors
    /// What was said makes no sense, or the system refuses an address, a file or a thread.
    pub fn start(self) -> Result<Server, Failure> {
        let understood = self.understand()?;
        understood.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let control = Control::new(understood);
        let settings = control.settings();
        let hooks = self.hooks(&control);
        let metrics = Metrics::default();
        metrics.observe(process::snapshot);
        let job = Job {
            workers: settings.workers.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)),
            control: Arc::clone(&control),
            metrics: metrics.clone(),
            hooks,
            parameters: None,
            clock: self.clock,
        };
        let (tell_opened, opened) = channel();
        let serving = thread::Builder::new().name("respool".to_owned()).spawn(move || run(&job, tell_opened))?;
        match opened.recv() {
            Ok((addresses, instances)) => Ok(Server { control, metrics, addresses, instances, serving: Some(serving) }),
            // It ended before it was ready, and its result says why.
            Err(_) => match join(serving) {
                Ok(()) => Err(Failure::running("the server ended before it was ready")),
                Err(failure) => Err(failure),
            },
        }
    }

    fn understand(&self) -> Result<Resolved, Faults> {
        let mut said = RawSettings::default();
        let mut faults = file::hear(&mut said, "the settings given", self.text.clone());
        let mut heard = HashSet::new();
        for name in self.set.iter().map(|(name, _)| name) {
            let Some(setting) = Setting::named(name) else {
                let known = Setting::ALL.iter().map(|setting| setting.row().name);
                let fault = Fault::new(Origin::Default, format!("there is no setting {name:?}"));
                faults.push(match nearest(name, known) {
                    Some(near) => fault.hint(format!("did you mean {near}?")),
                    None => fault,
                });
                continue;
            };
            if heard.insert(setting) {
                let mut values: Vec<String> =
                    self.set.iter().filter(|(other, _)| other == name).map(|(_, value)| value.clone()).collect();
                // A list is said value by value; otherwise the last word counts.
                if !setting.row().is_list() {
                    values.drain(..values.len() - 1);
                }
                said.hear_flag(setting, &values);
            }
        }
        for (name, rules) in &self.users {
            let origin = Origin::Flag { said: format!("user {name}") };
            let rules = vec![Text { text: rules.clone(), origin: origin.clone() }];
            said.users.retain(|user| user.name != *name);
            said.users.push(RawUser { name: name.clone(), origin, keys: vec![(UserKey::Rules, rules)] });
        }
        if !faults.is_empty() {
            return Err(Faults { file: said.file, faults });
        }
        resolve(&said, &|path| std::fs::read_to_string(path))
    }

    fn hooks(&self, control: &Arc<Control>) -> HookMaker {
        let Self { on_accept, on_event, on_request, .. } = self.clone();
        let control = Arc::downgrade(control);
        HookMaker::new(move || {
            let control = control.clone();
            let mut hooks = Hooks::default().on_demand(move |demand| match (demand, control.upgrade()) {
                (ProcessAction::Drain, Some(control)) => {
                    if control.phase() < Phase::Leaving {
                        control.begin_to_end();
                    }
                }
                (ProcessAction::Stop, Some(control)) => {
                    control.enter(Phase::Stopping);
                }
                _ => tracing::warn!("an operator has asked for other settings, which only the program around has"),
            });
            hooks = match on_event.clone() {
                Some(on_event) => hooks.on_event(move |event| on_event(event)),
                None => hooks.on_event(tell),
            };
            if let Some(on_accept) = on_accept.clone() {
                hooks = hooks.on_accept(move |peer| on_accept(peer));
            }
            if let Some((categories, on_request)) = on_request.clone() {
                hooks = hooks.judging(categories, move |peer, row, args| on_request(peer, row, args));
            }
            hooks
        })
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What was set may be secret.
        let names: Vec<&str> = self.set.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Builder").field("set", &names).finish_non_exhaustive()
    }
}

/// What is told once everything is open: where it listens, and how its workers are reached.
type TellOpened = Sender<(Vec<Address>, Vec<InstanceWorkers>)>;

fn run(job: &Job, tell_opened: TellOpened) -> Result<(), Failure> {
    let (control, metrics, sent) = (Arc::clone(&job.control), job.metrics.clone(), job.metrics.clone());
    let (mut admin, mut statsd) = (None, None);
    let served = serve::run(job, Inherited::default(), |opened| {
        let instances = opened.instances.clone();
        if let Some(address) = &control.settings().admin.listen {
            let control = Arc::clone(&control);
            admin = Some(crate::admin::http::start(address, None, control, metrics, opened.instances)?.end);
        }
        statsd = crate::admin::statsd::start(&control.settings().admin.statsd, &control, sent)?;
        control.enter(Phase::Serving);
        // The thread that started it waits for them.
        let _ = tell_opened.send((opened.addresses.iter().flatten().cloned().collect(), instances));
        Ok(())
    });
    // This process goes on: nothing of the server may stay, whatever ended it.
    job.control.enter(Phase::Stopping);
    admin.into_iter().chain(statsd).for_each(End::wait);
    served
}

fn join(serving: JoinHandle<Result<(), Failure>>) -> Result<(), Failure> {
    serving.join().unwrap_or_else(|_| Err(Failure::running("the server panicked; this is a fault of Respool")))
}

/// What was started. Dropping it ends it at once.
#[derive(Debug)]
pub struct Server {
    control: Arc<Control>,
    metrics: Metrics,
    addresses: Vec<Address>,
    #[cfg_attr(not(feature = "test-server"), expect(dead_code, reason = "only tests look at the engines"))]
    pub(crate) instances: Vec<InstanceWorkers>,
    serving: Option<JoinHandle<Result<(), Failure>>>,
}

impl Server {
    /// Where it really listens, in the order in which that was said.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The settings in force.
    #[cfg(feature = "test-server")]
    pub(crate) fn settings(&self) -> Arc<crate::settings::Process> {
        self.control.settings()
    }

    /// All metrics, as OpenMetrics text.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.metrics.openmetrics().unwrap_or_default()
    }

    /// Accepts no more clients, sends the replies that are owed (for at most `drain_timeout`), and ends.
    ///
    /// # Errors
    /// What ended it before.
    pub fn shut_down(mut self) -> Result<(), Failure> {
        self.control.enter(Phase::Draining);
        self.serving.take().map_or(Ok(()), join)
    }

    /// Waits until it has ended by itself, as by an operator's order.
    ///
    /// # Errors
    /// What ended it.
    pub fn wait(mut self) -> Result<(), Failure> {
        self.serving.take().map_or(Ok(()), join)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.take() {
            self.control.enter(Phase::Stopping);
            // Nothing is left to report to.
            let _ = join(serving);
        }
    }
}
