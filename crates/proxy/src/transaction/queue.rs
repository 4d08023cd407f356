//! The requests of one transaction, from MULTI to EXEC.
//!
//! Those that a node will run are kept as they will be sent, one behind the other; those that are ours are kept as
//! arguments, in their places between them.

use crate::config::LaneLimits;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::NodeId;
use crate::interfaces::known_scripts::{Hash, NamedScript, flushes_scripts};
use crate::nodes::moves::Moves;
use crate::session::marks::WantedState;
use respool_access::DEFAULT_USER;
use respool_command::{
    Command, ConnectionCommand as C, Flags, GenericCommand, Lane, ReplyShapes, Row, ScriptingCommand, ServerCommand,
    TransactionsCommand as T, shows_secrets, text as texts,
};
use respool_route::{PlanError, PoolMode, RouteScratch, Routed, Routes, Subject};
use respool_wire::{Args, ArgsBuf, Protocol, Request, SecretArgs, encode_request};
use std::collections::BTreeSet;

/// One queued request.
#[derive(Debug)]
pub(crate) enum QueuedCommand {
    /// A node runs it. It ends there in the block's bytes.
    Node { end: usize },
    /// A node runs it, and it selects this database if it succeeds.
    Select { end: usize, database: u32 },
    /// The proxy runs it once the node has run the others.
    Local { row: &'static Row, args: SecretArgs },
}

/// What runs a request of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runner {
    Node,
    Us,
}

/// The queued requests of one client.
#[derive(Debug, Default)]
pub(crate) struct QueuedCommands {
    pub(crate) entries: Vec<QueuedCommand>,
    bytes: Vec<u8>,
    own_bytes: usize,
    /// How many of the entries a node runs.
    pub(crate) for_node: usize,
    /// The node that has the keys, once one was named.
    pub(crate) node: Option<NodeId>,
    /// The pool that the block is in, under routes.
    pool: Option<usize>,
    /// Under routes, the node that runs a block without keys.
    pub(crate) keyless_node: Option<NodeId>,
    /// What its routes say of connections to itself.
    pub(crate) mode: Option<PoolMode>,
    /// The first key, for the error that names two.
    key: Vec<u8>,
    /// Scripts that its requests name by their hashes, and that are known.
    pub(crate) scripts: Vec<NamedScript>,
    /// Their hashes.
    script_hashes: BTreeSet<Hash>,
    script_bytes: usize,
    /// Something was refused: EXEC will run nothing.
    pub(crate) is_dirty: bool,
    pub(crate) has_select: bool,
    /// Some request would wait if it were not in a transaction.
    pub(crate) has_blocking: bool,
    /// Some request runs a script.
    pub(crate) has_scripts: bool,
    /// The only node forgets its scripts in it.
    pub(crate) flushes_scripts: bool,
    /// A database is selected in it, whether or not it will run.
    wants_select: bool,
    /// It will not run for reasons that a server would not have.
    is_ours: bool,
    /// It would not run at a server either.
    is_mistaken: bool,
    /// Some request may change data, which a pause of writes holds back. Of scripts for the engine in this process see
    /// [`QueuedCommands::digests`].
    pub(crate) may_change: bool,
}

impl QueuedCommands {
    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        // A hash is kept twice, once in a tree.
        let scripts =
            self.scripts.capacity() * size_of::<NamedScript>() + self.script_hashes.len() * 2 * size_of::<Hash>();
        let entries = self.entries.capacity() * size_of::<QueuedCommand>();
        self.bytes.capacity() + self.own_bytes + self.script_bytes + scripts + entries
    }

    /// Whether some request of ours is refused without memory.
    pub(crate) fn adds_data(&self) -> bool {
        let adds =
            |entry: &QueuedCommand| matches!(entry, QueuedCommand::Local { row, .. } if row.flags.has(Flags::DENYOOM));
        self.entries.iter().any(adds)
    }

    /// The scripts that requests for the engine in this process name by their hashes, and that may write.
    pub(crate) fn digests(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().filter_map(|entry| match entry {
            QueuedCommand::Local { row, args } if row.command == Command::Scripting(ScriptingCommand::Evalsha) => {
                Some(args.as_args().at(1))
            }
            _ => None,
        })
    }

    /// The requests that are ours to run.
    pub(crate) fn own(&self) -> impl Iterator<Item = (&'static Row, Args<'_>)> {
        self.entries.iter().filter_map(|entry| match entry {
            QueuedCommand::Local { row, args } => Some((*row, args.as_args())),
            _ => None,
        })
    }

    /// What the block would make of its client, as this user and in this dialect, before a node runs more of it: all that nodes run
    /// is sent as one, before anything of ours is done, and replies can be converted for RESP3 alone.
    pub(crate) fn changes_midway(&self, user: &[u8], protocol: Protocol) -> Option<WantedState> {
        let last = self.entries.iter().rposition(|entry| !matches!(entry, QueuedCommand::Local { .. }))?;
        self.entries[..last].iter().find_map(|entry| {
            let QueuedCommand::Local { row, args } = entry else { return None };
            let args = args.as_args();
            if names_another_user(row, args, user) {
                return Some(WantedState::User);
            }
            let version = args.get(1).filter(|_| is_hello(row)).and_then(crate::integer::integer);
            let asked = version.and_then(Protocol::from_version);
            asked.is_some_and(|asked| asked.version() < protocol.version()).then_some(WantedState::Dialect)
        })
    }

    /// What the replies to the requests of nodes look like, if the dialect may change among them.
    pub(crate) fn shapes(&self) -> Option<ReplyShapes> {
        self.own().any(|(row, _)| is_hello(row)).then(|| {
            let mut shapes = ReplyShapes::default();
            shapes.note(&self.bytes);
            shapes
        })
    }

    /// Whether some requests are ours to run.
    pub(crate) fn has_own(&self) -> bool {
        self.for_node < self.entries.len()
    }

    /// Other nodes are configured. A block goes to the node of the same name, wherever that is now. If its node has gone, or
    /// keys are placed or named in another way now (`has_other_ways`), it runs nothing.
    pub(crate) fn move_to(&mut self, moves: &Moves, has_other_ways: bool) {
        for node in [&mut self.node, &mut self.keyless_node] {
            let now = node.map(|node| moves.namesake_of(node).filter(|_| !has_other_ways));
            self.is_dirty |= now == Some(None);
            self.is_ours |= now == Some(None);
            *node = now.flatten();
        }
    }

    /// It is bound to no node any more, as it will not run.
    pub(crate) fn unbind(&mut self) {
        (self.node, self.keyless_node, self.pool) = (None, None, None);
    }

    /// The requests that a node runs, each as it is sent.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.entries.iter().filter_map(move |entry| {
            let (QueuedCommand::Node { end } | QueuedCommand::Select { end, .. }) = entry else { return None };
            let request = self.bytes.get(start..*end);
            start = *end;
            request
        })
    }

    /// A request names a script that is known. It is kept until EXEC, as far as there is room: a node that lacks one of the
    /// others says so.
    pub(crate) fn note_script(&mut self, named: NamedScript, limits: &LaneLimits) {
        let bytes = named.script.len();
        if self.script_bytes + bytes <= limits.transaction_bytes_max && self.script_hashes.insert(named.hash()) {
            self.script_bytes += bytes;
            self.scripts.push(named);
        }
    }

    /// It will not run: what was queued is forgotten.
    fn spoil(&mut self) {
        *self = Self {
            is_dirty: true,
            wants_select: self.wants_select,
            is_ours: self.is_ours,
            is_mistaken: self.is_mistaken,
            ..Self::default()
        };
    }

    /// A request was refused before it came here, as a server would have.
    pub(crate) fn refuse(&mut self) {
        self.is_mistaken = true;
        self.spoil();
    }

    /// The same for a reason that a server would not have.
    pub(crate) fn refuse_for_ours(&mut self) {
        self.is_ours = true;
        self.spoil();
    }

    /// Whether the client would be in another database behind its EXEC, at a server.
    pub(crate) fn strands(&self) -> bool {
        self.is_ours && !self.is_mistaken && self.wants_select
    }

    /// Takes a request. `Err` is what the client is told instead; the block is then spoilt.
    pub(crate) fn queue(
        &mut self,
        row: &'static Row,
        request: &Request<'_>,
        to: &mut Destination<'_>,
    ) -> Result<(), ErrorReply> {
        let taken = self.try_queue(row, request, to);
        self.wants_select |= selected(row, request.args).is_some();
        if taken.is_err() {
            let is_mistaken = row.flags.has(Flags::NO_MULTI);
            self.is_mistaken |= is_mistaken;
            self.is_ours |= !is_mistaken;
            self.spoil();
        }
        taken
    }

    fn try_queue(
        &mut self,
        row: &'static Row,
        request: &Request<'_>,
        to: &mut Destination<'_>,
    ) -> Result<(), ErrorReply> {
        let args = request.args;
        if row.flags.has(Flags::NO_MULTI) {
            return Err(texts::NOT_IN_TRANSACTION.into());
        }
        if self.is_dirty {
            // It is looked at, so that the client hears of every mistake, and dropped.
            return if to.runner(row, args) == Runner::Node { self.place(row, args, to).map(|_| ()) } else { Ok(()) };
        }
        if self.entries.len() >= to.limits.transaction_commands_max {
            return Err(error_text::transaction_too_long(to.limits.transaction_commands_max));
        }
        let bytes = request.raw.map_or_else(|| args.iter().map(|a| a.len() + 16).sum(), <[u8]>::len);
        if self.bytes.len() + self.own_bytes + bytes > to.limits.transaction_bytes_max {
            return Err(error_text::transaction_too_large(to.limits.transaction_bytes_max));
        }
        if to.runner(row, args) == Runner::Us {
            self.own_bytes += bytes;
            self.entries.push(QueuedCommand::Local { row, args: args.into() });
            return Ok(());
        }
        let renamed = self.place(row, args, to)?;
        match (renamed, request.raw) {
            (Some(renamed), _) => encode_request(&mut self.bytes, renamed.as_args().iter()),
            (None, Some(raw)) => self.bytes.extend_from_slice(raw),
            (None, None) => encode_request(&mut self.bytes, args.iter()),
        }
        self.for_node += 1;
        let end = self.bytes.len();
        self.entries.push(match selected(row, args) {
            Some(database) => QueuedCommand::Select { end, database },
            None => QueuedCommand::Node { end },
        });
        self.has_select |= row.command == Command::Connection(C::Select);
        self.has_blocking |= row.lane(args) == Lane::Blocking;
        self.has_scripts |= row.runs_scripts;
        self.flushes_scripts |= flushes_scripts(row, args);
        Ok(())
    }

    /// All keys of a transaction are on one node; what has no key goes along. Under routes it stays in one pool as well.
    /// `Some`: the request as the node gets it, where its keys have other names.
    fn place(
        &mut self,
        row: &'static Row,
        args: Args<'_>,
        to: &mut Destination<'_>,
    ) -> Result<Option<ArgsBuf>, ErrorReply> {
        let Destination { routes, user, database, scratch, .. } = to;
        if routes.are_plain() && runs_at_any_node(row, args) {
            return Ok(None);
        }
        if !routes.are_plain() && row.command == Command::Connection(C::Select) {
            return Err(error_text::SELECT_UNDER_ROUTES.into());
        }
        let place = match routes.plan(Subject { user, database: *database, row }, args, scratch) {
            Ok(Routed::One(place)) => place,
            Ok(Routed::Split) => {
                let mut keys = scratch.parts().filter_map(|(_, part)| part.keys.first().copied());
                let (first, second) = (keys.next().unwrap_or(0), keys.next().unwrap_or(0));
                return Err(ErrorReply::written(|reply| {
                    PlanError::CrossSlot { first, second }.write(row, args, reply)
                }));
            }
            Ok(Routed::All(_)) if runs_at_any_node(row, args) => return Ok(None),
            Ok(Routed::All(_) | Routed::Scan(..)) => {
                return Err(error_text::block_on_all_nodes(row.full_name()));
            }
            Err(error) => return Err(ErrorReply::written(|reply| error.write(routes, row, args, reply))),
        };
        let node = NodeId::at(place.node);
        if !routes.are_plain() {
            let route = routes.route(place.route);
            if self.pool.is_some_and(|other| other != route.pool) {
                return Err(error_text::BLOCK_IN_TWO_POOLS.into());
            }
            self.pool = Some(route.pool);
            self.mode = self.mode.max(route.pool_mode);
            self.keyless_node.get_or_insert(node);
        }
        self.bind(node, row, args)?;
        Ok(scratch.renamed(routes, place.route, args))
    }

    /// A request with keys binds the block to their node.
    fn bind(&mut self, node: NodeId, row: &'static Row, args: Args<'_>) -> Result<(), ErrorReply> {
        let Some(key) = row.keys.first(args).and_then(|place| args.get(place)) else { return Ok(()) };
        match self.node {
            None => {
                self.node = Some(node);
                self.key = key.to_vec();
                Ok(())
            }
            Some(other) if other == node => Ok(()),
            Some(_) => {
                let both: ArgsBuf = [self.key.as_slice(), key].into_iter().collect();
                let error = PlanError::CrossSlot { first: 0, second: 1 };
                Err(ErrorReply::written(|reply| error.write(row, both.as_args(), reply)))
            }
        }
    }
}

/// What decides where a request of a transaction goes, and how much there may be of it.
pub(crate) struct Destination<'a> {
    pub(crate) routes: &'a Routes,
    /// The client's user and database, for routes that depend on them.
    pub(crate) user: &'a str,
    pub(crate) database: u32,
    pub(crate) scratch: &'a mut RouteScratch,
    pub(crate) limits: &'a LaneLimits,
    pub(crate) has_engine: bool,
    /// The nodes are engines of one server, whose parameters are kept here.
    pub(crate) is_server: bool,
}

impl Destination<'_> {
    /// What runs a request of a transaction.
    fn runner(&self, row: &Row, args: Args<'_>) -> Runner {
        let is_only_node = self.routes.are_plain() && self.routes.pool_of(0).topology.is_single();
        match row.lane(args) {
            _ if self.has_engine => Runner::Us,
            _ if self.is_server && row.command == Command::Server(ServerCommand::ConfigGet) => Runner::Us,
            // What steers a node is part of a transaction if there is only one; of several we ask each. What is set for
            // users is ours, and so is what is shown of secrets.
            Lane::Admin if is_only_node && !is_about_settings(row) => Runner::Node,
            // All nodes forget their scripts, not only the one that runs the block.
            Lane::Script if !is_only_node && row.command == Command::Scripting(ScriptingCommand::ScriptFlush) => {
                Runner::Us
            }
            _ => runner(row, args),
        }
    }
}

fn is_about_settings(row: &Row) -> bool {
    row.command == Command::Server(ServerCommand::ConfigSet) || shows_secrets(row)
}

/// Whether any node can run a request of a transaction, whatever its row's policy is outside of one.
fn runs_at_any_node(row: &Row, args: Args<'_>) -> bool {
    row.keys.is_none() && !matches!(row.lane(args), Lane::Shared | Lane::Admin)
}

/// The database that a request selects, if it says so in a way that servers understand.
fn selected(row: &Row, args: Args<'_>) -> Option<u32> {
    let is_select = row.command == Command::Connection(C::Select);
    is_select.then(|| crate::integer::integer(args.at(1))).flatten().and_then(|number| u32::try_from(number).ok())
}

/// Whether a request may change the dialect.
pub(crate) fn is_hello(row: &Row) -> bool {
    row.command == Command::Connection(C::Hello)
}

/// Whether a request asks to be another user than this one, if it is written as servers understand it. HELLO may say AUTH more than once.
fn names_another_user(row: &Row, args: Args<'_>, user: &[u8]) -> bool {
    match (row.command, args.len()) {
        (Command::Connection(C::Auth), 2) => user != DEFAULT_USER,
        (Command::Connection(C::Auth), 3) => user != args.at(1),
        (Command::Connection(C::Hello), _) => {
            let mut options = args.from(2);
            while options.len() >= 2 {
                if options.at(0).eq_ignore_ascii_case(b"SETNAME") {
                    options = options.from(2);
                } else if options.len() >= 3 && options.at(0).eq_ignore_ascii_case(b"AUTH") {
                    if options.at(1) != user {
                        return true;
                    }
                    options = options.from(3);
                } else {
                    return false;
                }
            }
            false
        }
        _ => false,
    }
}

/// A node runs what it can; the rest is about sessions and subscriptions, which nodes know nothing of.
fn runner(row: &Row, args: Args<'_>) -> Runner {
    match row.command {
        Command::Connection(C::Ping | C::Echo | C::Select) | Command::Server(ServerCommand::Time) => Runner::Node,
        Command::Transactions(T::Unwatch) => Runner::Node,
        // It steers a node, and is about keys of that node.
        Command::Generic(GenericCommand::Migrate) => Runner::Node,
        Command::Server(ServerCommand::Info) => Runner::Us,
        _ if matches!(row.lane(args), Lane::Shared | Lane::Blocking | Lane::Script) => Runner::Node,
        _ => Runner::Us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_route::{Node, Pool, Scheme, Topology};
    use std::sync::Arc;

    struct Bench {
        queued: QueuedCommands,
        routes: Routes,
        scratch: RouteScratch,
        limits: LaneLimits,
    }

    impl Bench {
        fn new(nodes: usize) -> Self {
            let nodes = (0..nodes).map(|n| Node::new(format!("n{n}"))).collect();
            let topology = Topology::new(Scheme::default(), nodes).expect("the nodes have names of their own");
            Self {
                queued: QueuedCommands::default(),
                routes: Routes::plain(Pool::plain("main", Arc::new(topology))),
                scratch: RouteScratch::default(),
                limits: LaneLimits { transaction_commands_max: 5, transaction_bytes_max: 200, ..LaneLimits::default() },
            }
        }

        fn queue(&mut self, words: &[&str]) -> Result<(), String> {
            let args: ArgsBuf = words.iter().collect();
            let row = respool_command::resolve(args.as_args()).expect("the test knows its commands");
            let request = Request::made(args.as_args());
            let Self { queued, routes, scratch, limits } = self;
            let mut to =
                Destination { routes, user: "", database: 0, scratch, limits, has_engine: false, is_server: false };
            queued.queue(row, &request, &mut to).map_err(|e| String::from_utf8_lossy(e.words()).into_owned())
        }
    }

    #[test]
    fn keys_of_two_nodes_are_named_and_spoil_the_block() {
        let mut bench = Bench::new(4);
        let topology = &bench.routes.pool_of(0).topology;
        let far = (0..100).map(|n| format!("k{n}")).find(|k| topology.place(k.as_bytes()) != topology.place(b"a"));
        let far = far.expect("one of a hundred keys is elsewhere");
        bench.queue(&["SET", "a", "1"]).expect("nothing is in its way");
        bench.queue(&["PING"]).expect("it goes along");
        let error = bench.queue(&["GET", &far]).expect_err("it is elsewhere");
        assert_eq!(error, format!("{}: 'a' and '{far}' are on different nodes", texts::CROSSSLOT));
        assert!(bench.queued.is_dirty && bench.queued.entries.is_empty());
        let error = bench.queue(&["MGET", "a", &far]).expect_err("still looked at");
        assert_eq!(error, format!("{}: 'a' and '{far}' are on different nodes", texts::CROSSSLOT));
        assert!(bench.queue(&["FLUSHALL"]).expect_err("on all nodes").contains("'flushall' over several nodes"));
    }

    #[test]
    fn what_nodes_cannot_run_keeps_its_place() {
        let mut bench = Bench::new(1);
        for words in [&["SET", "a", "1"][..], &["CLIENT", "ID"], &["SELECT", "3"], &["PING"]] {
            bench.queue(words).expect("nothing is in its way");
        }
        assert!(bench.queued.has_own() && bench.queued.has_select);
        assert!(matches!(
            bench.queued.entries[..],
            [
                QueuedCommand::Node { .. },
                QueuedCommand::Local { .. },
                QueuedCommand::Select { database: 3, .. },
                QueuedCommand::Node { .. }
            ]
        ));
        let sent: Vec<&[u8]> = bench.queued.requests().collect();
        assert_eq!(sent[1..], [&b"*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"[..], b"*1\r\n$4\r\nPING\r\n"]);
    }

    #[test]
    fn who_would_be_another_before_a_node_runs_more_is_known() {
        let midway = |lines: &[&str], user: &str, protocol| {
            let mut bench = Bench { limits: LaneLimits::default(), ..Bench::new(1) };
            for line in lines {
                bench.queue(&line.split(' ').collect::<Vec<_>>()).expect("nothing is in its way");
            }
            bench.queued.changes_midway(user.as_bytes(), protocol)
        };
        for (lines, user, protocol, wanted) in [
            (&["AUTH u p", "GET k"][..], "default", Protocol::Resp2, Some(WantedState::User)),
            (&["AUTH u p", "GET k"], "u", Protocol::Resp2, None),
            (&["AUTH p", "GET k"], "u", Protocol::Resp2, Some(WantedState::User)),
            (&["AUTH p", "GET k"], "default", Protocol::Resp2, None),
            (&["GET k", "AUTH u p", "CLIENT ID"], "default", Protocol::Resp2, None),
            (&["GET j", "HELLO 3 AUTH u p", "GET k"], "default", Protocol::Resp2, Some(WantedState::User)),
            (&["HELLO 3 SETNAME n auth u p", "PING"], "default", Protocol::Resp2, Some(WantedState::User)),
            (&["HELLO 3 SETNAME AUTH u p", "GET k"], "default", Protocol::Resp2, None),
            (&["HELLO 3 AUTH u", "GET k"], "default", Protocol::Resp2, None),
            (&["HELLO 3 AUTH u p AUTH v q", "GET k"], "u", Protocol::Resp2, Some(WantedState::User)),
            (&["HELLO 3 AUTH u p SETNAME n AUTH v q", "GET k"], "u", Protocol::Resp2, Some(WantedState::User)),
            (&["HELLO 3 AUTH u p AUTH u q", "GET k"], "u", Protocol::Resp2, None),
            (&["HELLO 1", "GET k"], "default", Protocol::Resp2, None),
            (&["HELLO 0", "GET k"], "default", Protocol::Resp3, None),
            (&["HELLO 3", "GET k"], "default", Protocol::Resp2, None),
            (&["HELLO 2", "GET k"], "default", Protocol::Resp3, Some(WantedState::Dialect)),
            (&["HELLO", "HELLO 3", "GET k"], "default", Protocol::Resp3, None),
        ] {
            assert_eq!(midway(lines, user, protocol), wanted, "{lines:?} of {user}");
        }
    }

    #[test]
    fn a_block_has_bounds() {
        let mut bench = Bench::new(1);
        assert!(
            bench.queue(&["ECHO", &"x".repeat(300)]).expect_err("too large").starts_with("ERR transaction too large")
        );
        let mut bench = Bench::new(1);
        (0..5).for_each(|_| bench.queue(&["PING"]).expect("five are few enough"));
        assert!(bench.queue(&["PING"]).expect_err("too many").starts_with("ERR transaction too long: more than 5"));
        assert!(bench.queue(&["SHUTDOWN"]).expect_err("not here").contains("not allowed inside a transaction"));
    }

    #[test]
    fn a_script_that_is_named_often_is_kept_once() {
        let mut bench = Bench::new(1);
        let mut scripts = crate::interfaces::known_scripts::Scripts::default();
        let row = respool_command::lookup(b"EVALSHA").expect("it has a row");
        scripts.note(b"return 1");
        scripts.note(b"return 2");
        for hash in ["e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "7f923f79fe76194c868d7e1d0820de36700eb649"] {
            for _ in 0..3 {
                let args: ArgsBuf = ["EVALSHA", hash, "0"].into_iter().collect();
                let named = scripts.named(row, args.as_args()).expect("it is known");
                bench.queued.note_script(named, &bench.limits);
            }
        }
        let kept: Vec<&[u8]> = bench.queued.scripts.iter().map(|named| &*named.script).collect();
        assert_eq!(kept, [b"return 1", b"return 2"]);
    }
}
