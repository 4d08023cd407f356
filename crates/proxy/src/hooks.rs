//! What the proxy tells the program around it, and what it asks of it. A pure crate can neither log nor end a process.

use crate::config::Config;
use crate::error_text;
use crate::ids::ClientNumber;
use crate::interfaces::transfer::{Transfer, TransferEnd, TransferFailure};
use respool_command::{Categories, Row};
use respool_connection::{Peer, WorkerId};
use respool_wire::{Args, ArgsBuf};
use std::fmt;
use std::sync::Arc;

/// Something that happens rarely and that people want to read of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A worker cannot use a node any more.
    NodeOut {
        /// The node's name.
        node: String,
        /// The worker.
        worker: WorkerId,
        /// What went wrong.
        why: String,
    },
    /// A node that was configured has been reached for the first time.
    NodeReached {
        /// The node's name.
        node: String,
        /// The worker.
        worker: WorkerId,
        /// The address at which it was reached.
        address: String,
        /// Time from the beginning of the dial to the end of the handshake, in microseconds.
        took_us: u64,
        /// The program, its version, mode and role, as far as HELLO and INFO give them.
        server: String,
    },
    /// A node's name no longer resolves to the address that a worker is connected to. One to another address is tried.
    NodeMoved {
        /// The node's name.
        node: String,
        /// The worker.
        worker: WorkerId,
        /// The addresses to which its name resolves.
        to: String,
    },
    /// A node is up at another address of its name. Connections to the former one are replaced.
    AddressLeft {
        /// The node's name.
        node: String,
        /// The worker.
        worker: WorkerId,
        /// How many connections.
        connections: usize,
    },
    /// A node refuses the credentials of the last reload. Connections that it accepted before stay in use.
    NodeRefuses {
        /// The node's name.
        node: String,
        /// The worker.
        worker: WorkerId,
        /// The node's error.
        why: String,
    },
    /// A node is a replica, cluster member or Sentinel although the settings say otherwise. Reported once per change.
    NodeUnfit {
        /// The node's name.
        node: String,
        /// The worker.
        worker: WorkerId,
        /// What it is, and how to correct the settings.
        what: &'static str,
    },
    /// A worker can use a node again.
    NodeBack {
        /// The node's name.
        node: String,
        /// The worker.
        worker: WorkerId,
    },
    /// A node's replies were not those to its requests. Its connection has been given up.
    OutOfStep {
        /// The node's name.
        node: String,
        /// The worker.
        worker: WorkerId,
    },
    /// A client was refused.
    ClientRefused {
        /// Its address.
        address: String,
        /// What it was told.
        why: &'static str,
    },
    /// A client was disconnected because of what it left unread or unsaid. There are only so many of these in a time.
    ClientCutOff {
        /// Its number.
        client: ClientNumber,
        /// Its address.
        address: String,
        /// Its user.
        user: String,
        /// Bytes that were held for it.
        bytes: usize,
        /// Why.
        why: &'static str,
        /// Clients before it that were not told of.
        untold: u64,
    },
    /// What was taken for a client that had left could not be put back. There are only so many of these in a time.
    ElementLost {
        /// The node's name.
        node: String,
        /// The worker.
        worker: WorkerId,
        /// What went wrong.
        why: String,
        /// Times before it that were not told of.
        untold: u64,
    },
    /// A worker has ended although nodes had not answered all that they were sent: the drain's time was over.
    DrainCutOff {
        /// The worker.
        worker: WorkerId,
        /// Requests of which it is not known whether they have been executed.
        requests: usize,
    },
    /// An operator gave an order on the console.
    Ordered {
        /// The order as it was given.
        order: String,
        /// The operator or client that gave it.
        client: String,
    },
}

/// What an operator wants of the process as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessAction {
    /// Read the settings again.
    Reload,
    /// End once what is owed has been answered.
    Drain,
    /// End at once: what is owed may never come.
    Stop,
}

/// What clients ask of the parameters of a server that is nothing but an engine.
#[derive(Clone, Copy, Debug)]
pub enum ConfigVerb<'a> {
    /// The values of those that match patterns.
    Get(Args<'a>),
    /// Other values, names and values in turn: whether they can be had. Nothing is changed yet.
    Prepare {
        /// Names and values, an even number.
        pairs: Args<'a>,
        /// Whether the client is on this machine.
        is_local: bool,
    },
    /// What was prepared last holds from now on.
    Commit,
    /// Other values, which hold from now on if all of them can be had: the server's engines have threads of their own, and several
    /// workers may set values at the same time.
    Set {
        /// Names and values, an even number.
        pairs: Args<'a>,
        /// Whether the client is on this machine.
        is_local: bool,
    },
    /// What one of those engines takes over: the values that hold now, by whichever worker they were set.
    OfEngine,
    /// They are written to the file that they were read from.
    Rewrite {
        /// The users, a line each; `None`: they have a file of their own.
        users: Option<&'a [u8]>,
        /// Values that are their defaults are written, too.
        is_forced: bool,
    },
}

/// What the program says to a [`ConfigVerb`].
#[derive(Debug)]
pub enum ConfigAnswer {
    /// To `Get`: names and values.
    Shown(Vec<(Vec<u8>, Vec<u8>)>),
    /// To `Prepare`: names and values in turn.
    Prepared {
        /// Parameters that the engine receives before the change is committed.
        for_engine: ArgsBuf,
        /// The same names with the values that they have: the engine gets them back if the rest cannot be done.
        before: ArgsBuf,
    },
    /// To `Commit`.
    Committed {
        /// What the worker does from now on.
        config: Arc<Config>,
        /// Names and values of what is about users.
        about_users: Vec<(&'static str, Vec<u8>)>,
    },
    /// To `Set`.
    Set {
        /// What the worker does from now on.
        config: Arc<Config>,
        /// Names and values of what is about users.
        about_users: Vec<(&'static str, Vec<u8>)>,
    },
    /// To `OfEngine`.
    OfEngine {
        /// What the engine's worker does from now on.
        config: Arc<Config>,
        /// Parameters of the engine: names and values in turn.
        parameters: ArgsBuf,
    },
    /// To `Rewrite`.
    Written,
}

/// What the process has taken of the machine, as the system counts it.
#[derive(Clone, Debug, Default)]
pub struct ProcessUsage {
    /// Time of all its threads.
    pub process: ProcessorTime,
    /// Time of processes that it has started and that have ended.
    pub children: ProcessorTime,
    /// Time of the thread that asks.
    pub thread: ProcessorTime,
    /// Bytes of memory in use.
    pub resident_bytes: u64,
    /// Bytes of memory that the machine has.
    pub system_bytes: u64,
    /// The allocator and its version; empty: that of the system.
    pub allocator: String,
}

/// Time of a processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessorTime {
    /// In the kernel, in microseconds.
    pub system_us: u64,
    /// Outside of it, in microseconds.
    pub user_us: u64,
}

/// What `DEBUG CLOCK` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockOrder {
    /// So many milliseconds pass at once.
    Advance(u64),
    /// It is set to so many milliseconds since the epoch.
    Set(u64),
    /// It stands still.
    Freeze,
    /// It goes on.
    Run,
}

/// What becomes of a request, by the word of the program around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Pass,
    /// Its client is told this error instead.
    Refuse(String),
    /// It is left unread, with all that its client has sent behind it, until [`crate::Mail::Orders`]: then it is asked about again.
    Hold,
    /// Its client's connection is closed, and it is not answered.
    Close,
}

type OnRequest = Box<dyn Fn(&Peer, &'static Row, Args<'_>) -> Verdict + Send + Sync>;

/// The hooks, each with the method that sets it.
macro_rules! hooks {
    ($($(#[$about:meta])* $set:ident sets $hook:ident: ($($asked:ty)?) $(-> $answer:ty)?;)+) => {
        /// Where all of it goes. Called from workers in the middle of a turn, so they must not wait, and a panic ends the proxy. The
        /// exceptions are what is asked for seldom: `CONFIG REWRITE` waits until the file is on the disk, `CONFIG SET` reads
        /// the files of TLS, and `MIGRATE` within a transaction waits for the other server. The worker's other clients wait meanwhile.
        #[derive(Default)]
        pub struct Hooks {
            on_request: Option<(Categories, OnRequest)>,
            $($hook: Option<Box<dyn Fn($($asked)?) $(-> $answer)? + Send + Sync>>,)+
        }

        impl Hooks {
            $($(#[$about])*
            #[must_use]
            pub fn $set(self, hook: impl Fn($($asked)?) $(-> $answer)? + Send + Sync + 'static) -> Self {
                Self { $hook: Some(Box::new(hook)), ..self }
            })+
        }
    };
}

hooks! {
    /// Has the hook told of events.
    on_event sets on_event: (&Event);
    /// Has the hook asked for what operators demand.
    on_demand sets on_demand: (ProcessAction);
    /// Has the hook asked whether a client that connected is accepted.
    on_accept sets on_accept: (&Peer) -> bool;
    /// Has the hook asked about parameters. `Err` is the error that the client is told, without its dash.
    on_config sets on_config: (ConfigVerb<'_>) -> Result<ConfigAnswer, String>;
    /// Has the hook move the time that clients see, where `DEBUG CLOCK` may.
    on_clock sets on_clock: (ClockOrder);
    /// Has the hook asked how late it is, in microseconds of the loop's monotonic clock, where a request takes time that the turn's own
    /// time does not show.
    with_clock sets clock: () -> u64;
    /// Has the hook asked what the process has taken of the machine, for `INFO`.
    on_usage sets on_usage: () -> ProcessUsage;
    /// Has the hook send requests to a server that is no node, for `MIGRATE` of an engine in this process: what has come of it is returned if
    /// the worker waits for it or it could not be begun, and mailed otherwise.
    on_transfer sets on_transfer: (Transfer) -> Option<TransferEnd>;
    /// Has the hook asked how many connections to such servers it keeps, for `INFO`.
    on_transfer_connections sets on_transfer_connections: () -> usize;
    /// Has the hook give free memory that the allocator keeps back to the system at once, where much of `process_bytes` is held.
    with_allocator sets give_back: ();
}

impl Hooks {
    /// Has `on_request` asked about every request of one of these categories, after the user's own rules have let it pass.
    /// `Err` is what the client is told instead. Requests of other categories cost a look at their row.
    #[must_use]
    pub fn on_request(
        self,
        categories: Categories,
        on_request: impl Fn(&Peer, &'static Row, Args<'_>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.judging(categories, move |peer, row, args| match on_request(peer, row, args) {
            Ok(()) => Verdict::Pass,
            Err(words) => Verdict::Refuse(words),
        })
    }

    /// The same with all that may become of a request. A request that has passed is not asked about again, though it may be read again.
    #[must_use]
    pub fn judging(
        self,
        categories: Categories,
        judge: impl Fn(&Peer, &'static Row, Args<'_>) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        Self { on_request: Some((categories, Box::new(judge))), ..self }
    }

    pub(crate) fn give_back(&self) {
        self.give_back.iter().for_each(|give_back| give_back());
    }

    /// What the process has taken of the machine; nothing if that is not known.
    pub(crate) fn usage(&self) -> ProcessUsage {
        self.on_usage.as_ref().map(|on_usage| on_usage()).unwrap_or_default()
    }

    /// Whether requests can be sent to servers that are no nodes.
    pub(crate) fn has_transfers(&self) -> bool {
        self.on_transfer.is_some()
    }

    /// Sends requests to a server that is no node. `None`: what has come of it comes by mail.
    pub(crate) fn transfer(&self, transfer: Transfer) -> Option<TransferEnd> {
        match &self.on_transfer {
            Some(on_transfer) => on_transfer(transfer),
            None => Some(transfer.end(TransferFailure::Connecting.into())),
        }
    }

    /// Connections that are kept to such servers.
    pub(crate) fn transfer_connections(&self) -> usize {
        self.on_transfer_connections.as_ref().map_or(0, |connections| connections())
    }

    /// The time of the monotonic clock in the middle of a turn. `None`: there is none but the turn's.
    pub(crate) fn monotonic_us(&self) -> Option<u64> {
        self.clock.as_ref().map(|clock| clock())
    }

    pub(crate) fn moves_clock(&self) -> bool {
        self.on_clock.is_some()
    }

    pub(crate) fn move_clock(&self, order: ClockOrder) {
        self.on_clock.iter().for_each(|on_clock| on_clock(order));
    }

    /// Whether there are parameters. Without them the engine knows a few of its own.
    pub(crate) fn has_parameters(&self) -> bool {
        self.on_config.is_some()
    }

    pub(crate) fn configure(&self, verb: ConfigVerb<'_>) -> Result<ConfigAnswer, String> {
        match &self.on_config {
            Some(on_config) => on_config(verb),
            None => Err(error_text::NO_PARAMETERS.to_owned()),
        }
    }

    pub(crate) fn admits(&self, peer: &Peer) -> bool {
        self.on_accept.as_ref().is_none_or(|on_accept| on_accept(peer))
    }

    pub(crate) fn wants_requests(&self) -> bool {
        self.on_request.is_some()
    }

    pub(crate) fn judge(&self, peer: &Peer, row: &'static Row, args: Args<'_>) -> Verdict {
        match &self.on_request {
            Some((categories, judge)) if row.categories.has_any(*categories) => judge(peer, row, args),
            _ => Verdict::Pass,
        }
    }

    /// The same for a request within another one, which can be neither left unread nor left unanswered.
    pub(crate) fn allows(&self, peer: &Peer, row: &'static Row, args: Args<'_>) -> Result<(), String> {
        match self.judge(peer, row, args) {
            Verdict::Pass => Ok(()),
            Verdict::Refuse(words) => Err(words),
            Verdict::Hold | Verdict::Close => Err(error_text::NOT_ADMITTED.to_owned()),
        }
    }

    pub(crate) fn tell(&self, event: &Event) {
        if let Some(on_event) = &self.on_event {
            on_event(event);
        }
    }

    /// `false`: nothing does such things here.
    pub(crate) fn demand(&self, demand: ProcessAction) -> bool {
        self.on_demand.as_ref().map(|on_demand| on_demand(demand)).is_some()
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}
