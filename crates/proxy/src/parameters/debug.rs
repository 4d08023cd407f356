//! `DEBUG` of a server that is nothing but an engine: which clients may use it, and what becomes of the time that it takes.

use crate::env::Env;
use crate::error_text;
use crate::hooks::{ClockOrder, ConfigAnswer, ConfigVerb};
use crate::ids::{ClientId, NodeId};
use crate::integer::integer;
use crate::interfaces::call::Call;
use crate::parameters::AdminStep;
use crate::session::{Flow, Session};
use respool_command::{Command, Execute, Row, ServerCommand};
use respool_route::NodePlace;
use respool_wire::{Args, ArgsBuf, Request};

/// The parameter that says which clients may: `no`, `local` or `yes`. It is decided at the start.
const PARAMETER: &[u8] = b"enable-debug-command";

/// The subcommand that is about the parameters, and not about an engine.
const REWRITES: &[u8] = b"CONFIG-REWRITE-FORCE-ALL";

/// What is about all keys, and cannot be told of several engines in one reply, or would make keys in an engine that does not have them.
const OF_ONE_ENGINE: [&str; 4] = ["DIGEST", "POPULATE", "HTSTATS", "HTSTATS-KEY"];

/// What each engine does for itself.
const OF_EACH_ENGINE: [&str; 3] = ["RELOAD", "LOADAOF", "SET-SKIP-CHECKSUM-VALIDATION"];

impl<E: Execute> Env<E> {
    /// Whether a request is `DEBUG` of the engine and its client may not use it.
    pub(crate) fn refuses_debug(&self, index: ClientId, row: &Row) -> bool {
        self.is_own_debug(row) && !self.allows_debug(index)
    }

    pub(super) fn is_own_debug(&self, row: &Row) -> bool {
        row.command == Command::Server(ServerCommand::Debug) && self.is_server()
    }

    /// Whether a request is `DEBUG CLOCK` of a server whose clock can be moved.
    pub(crate) fn is_debug_clock(&self, row: &Row, args: Args<'_>) -> bool {
        row.command == Command::Server(ServerCommand::Debug)
            && args.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"CLOCK"))
            && self.engine.is_some()
            && self.shared.hooks.moves_clock()
    }

    /// Without parameters there is none that allows it.
    #[cold]
    fn allows_debug(&self, index: ClientId) -> bool {
        if self.config.trusts_clients {
            return true;
        }
        let mut patterns = ArgsBuf::new();
        patterns.push(PARAMETER);
        let Ok(ConfigAnswer::Shown(shown)) = self.shared.hooks.configure(ConfigVerb::Get(patterns.as_args())) else {
            return false;
        };
        let is_local = || self.clients.sessions.at(index).is_some_and(|session| session.details.peer.is_local());
        match shown.first().map(|(_, value)| &**value) {
            Some(b"yes") => true,
            Some(b"local") => is_local(),
            _ => false,
        }
    }

    /// `DEBUG` of a server with several engines: what is about one key is asked of the engine that has it, and what is about the data of
    /// the server of all of them, as far as their replies can be joined.
    fn debug_engines(&mut self, call: Call<'_>) -> Flow {
        let Call { index, request, .. } = call;
        let is = |names: &[&str]| names.iter().any(|name| request.args.at(1).eq_ignore_ascii_case(name.as_bytes()));
        if is(&OF_ONE_ENGINE) {
            return self.refuse(index, error_text::DEBUG_OF_ONE_ENGINE);
        }
        if is(&OF_EACH_ENGINE) {
            let nodes: Vec<NodeId> =
                (0..self.config.nodes.len()).map(|place| NodeId::at(NodePlace::new(place))).collect();
            return self.fan_out_to_all(call, &nodes);
        }
        self.forward_planned(call)
    }

    /// A request has taken its time: what comes behind it in the same turn happens later. In a transaction time stands still, so what
    /// comes behind the whole of that happens later.
    pub(crate) fn catch_up_behind(&mut self, index: ClientId) {
        let pins = self.clients.sessions.at_mut(index).and_then(|session| session.pins.as_mut());
        match pins.filter(|pins| pins.is_replying()) {
            Some(pins) => pins.has_taken_time = true,
            None => self.catch_up(),
        }
    }

    fn catch_up(&mut self) {
        let Some(mono_us) = self.shared.hooks.monotonic_us() else { return };
        let late = mono_us.saturating_sub(self.now.mono_us);
        self.now.pass(late);
    }

    /// `DEBUG` of the engine.
    #[cold]
    pub(super) fn own_debug(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> AdminStep {
        if !self.allows_debug(index) {
            return AdminStep::Done(self.refuse(index, error_text::DEBUG_NOT_ALLOWED));
        }
        let args = request.args;
        if args.len() == 2 && args.at(1).eq_ignore_ascii_case(REWRITES) {
            return AdminStep::Done(self.rewrite_parameters(index, true));
        }
        if self.is_debug_clock(row, args) {
            return debug_clock(self, index, args);
        }
        match self.engine {
            Some(_) => AdminStep::Debug,
            None => AdminStep::Done(self.debug_engines(Call { index, row, request })),
        }
    }
}

/// `DEBUG CLOCK`: the time that clients see is moved, for tests of other programs.
#[cold]
fn debug_clock<E: Execute>(env: &mut Env<E>, index: ClientId, args: Args<'_>) -> AdminStep {
    let Some(order) = clock_order(args) else {
        return AdminStep::Done(env.refuse(index, error_text::DEBUG_CLOCK));
    };
    if env.clients.sessions.at(index).is_some_and(Session::is_amid_exec_reply) {
        return AdminStep::Done(env.refuse(index, error_text::DEBUG_CLOCK_IN_EXEC));
    }
    let Some(()) = env.clients.settle_before(index) else { return AdminStep::Done(Flow::Again) };
    env.shared.hooks.move_clock(order);
    AdminStep::ClockMoved
}

/// What the words behind `DEBUG CLOCK` say. `None`: nothing.
fn clock_order(args: Args<'_>) -> Option<ClockOrder> {
    let is = |name: &str| args.get(2).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let ms = || u64::try_from(args.get(3).and_then(integer)?).ok();
    match args.len() {
        4 if is("ADVANCE") => ms().map(ClockOrder::Advance),
        4 if is("SET") => ms().map(ClockOrder::Set),
        3 if is("FREEZE") => Some(ClockOrder::Freeze),
        3 if is("RUN") => Some(ClockOrder::Run),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::testing::{EchoEngine, env_of, env_with_node, roomy_config};

    #[test]
    fn debug_is_refused_where_no_parameter_allows_it() {
        for (trusts_clients, is_done) in [(false, true), (true, false)] {
            let config = Config { nodes: Vec::new(), trusts_clients, ..roomy_config() };
            let mut env = env_of(config, Some(EchoEngine::default()));
            let client = env.test_client();
            let args: ArgsBuf = ["DEBUG", "SLEEP", "0"].iter().collect();
            let row = respool_command::resolve(args.as_args()).expect("a known command");
            assert_eq!(env.refuses_debug(client, row), is_done);
            let step = env.own_debug(client, row, &Request::made(args.as_args()));
            assert_eq!(matches!(step, AdminStep::Done(Flow::Next)), is_done, "{step:?}");
            assert_eq!(matches!(step, AdminStep::Debug), !is_done, "{step:?}");
            assert_eq!(env.take_output(client).starts_with('-'), is_done);
        }
    }

    #[test]
    fn orders_to_the_clock_are_read() {
        let order = |said: &str| {
            let args: ArgsBuf = said.split(' ').collect();
            clock_order(args.as_args())
        };
        assert_eq!(order("DEBUG CLOCK advance 1500"), Some(ClockOrder::Advance(1500)));
        assert_eq!(order("DEBUG CLOCK SET 1600000000000"), Some(ClockOrder::Set(1_600_000_000_000)));
        assert_eq!(
            [order("DEBUG CLOCK freeze"), order("DEBUG CLOCK RUN")],
            [Some(ClockOrder::Freeze), Some(ClockOrder::Run)]
        );
        for said in ["", " ADVANCE", " ADVANCE -1", " ADVANCE x", " SET 1 2", " FREEZE 1", " STOP"] {
            assert_eq!(order(&format!("DEBUG CLOCK{said}")), None, "{said}");
        }
    }

    #[test]
    fn debug_of_a_node_is_no_business_of_ours() {
        let mut env = env_with_node();
        let client = env.test_client();
        let row = respool_command::lookup(b"DEBUG").expect("a known command");
        assert!(!env.refuses_debug(client, row));
    }
}
