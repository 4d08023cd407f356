//! Which feature deals with a request: by a rare state of its session, and by the lane of its command.
//!
//! The way there, the same for all requests, is [`crate::request::dispatch`].

use crate::blocking::engine::EngineSide;
use crate::command_log::timed;
use crate::env::Env;
use crate::ids::ClientId;
use crate::interfaces::call::Call;
use crate::interfaces::engine_changes::EngineChanges;
use crate::interfaces::read_tracker::ReadTracker;
use crate::interfaces::requests::HandleRequests;
use crate::migrate::Migrations;
use crate::parameters::AdminStep;
use crate::request::fast_path::Plain;
use crate::request::filters::ask_hooks;
use crate::request::forward::is_own_info;
use crate::scripts::debugging;
use crate::scripts::engine::{go_on_with_script, run_in_engine};
use crate::session::{Flow, SessionFlags};
use crate::tracking::Subscriptions;
use crate::transaction::engine::watch_engine;
use crate::transaction::exec_reply::go_on_behind_script;
use crate::visits::Visit;
use crate::worker::Worker;
use respool_command::{Execute, Lane, Row, UnknownCommand};
use respool_wire::Request;

impl<E: Execute> HandleRequests for Worker<E> {
    type Engine = E;
    type Reads = Subscriptions;

    #[inline(always)]
    fn parts(&mut self) -> (&mut Env<E>, &mut Subscriptions) {
        (&mut self.env, &mut self.subscriptions)
    }

    #[inline(always)]
    fn do_plain(&mut self, way: Plain, index: ClientId, request: &Request<'_>) -> Option<Flow> {
        match way {
            Plain::Neither => None,
            Plain::Nodes => self.env.forward_plain(index, request),
            Plain::Engine => self.engine_side().execute_plain(index, request),
        }
    }

    fn learnt_row(
        &mut self,
        index: ClientId,
        unknown: UnknownCommand,
        request: &Request<'_>,
    ) -> Result<&'static Row, Flow> {
        self.learnings.learnt_row(&mut self.env, index, unknown, request)
    }

    fn ask_state(&mut self, state: SessionFlags, call: Call<'_>) -> Option<Flow> {
        let Call { index, row, request } = call;
        match state {
            SessionFlags::HOOKED => ask_hooks(&mut self.env, index, row, request.args),
            SessionFlags::TRACKING => settle_tracking(self, call),
            SessionFlags::HELD => self
                .hold_for_client_pause(index, row, request.args)
                .or_else(|| self.env.hold_for_operator(index, row, request.args)),
            SessionFlags::SUBSCRIBED => self.env.ask_subscribed(index, row, request.args),
            SessionFlags::UNAUTHENTICATED => self.env.check_unauthenticated(index, row),
            SessionFlags::UNMET => self.env.ask_unmet(index, row, request.args),
            SessionFlags::RESTRICTED => self.env.check_restricted(index, row, request.args),
            SessionFlags::LIMITED => self.env.ask_limited(index, request),
            // Subscriptions have an order of their own, see `push::pending`.
            SessionFlags::OVERTAKEN if row.lane(request.args) == Lane::Push => None,
            SessionFlags::OVERTAKEN => self.env.settle_reload(index),
            SessionFlags::UNSETTLED => self.env.settle_mode(index),
            SessionFlags::SCRIPTING => {
                self.env.leave_scripts_before(index, row, request.args);
                None
            }
            SessionFlags::DEDICATED => self.dedicated.handle_any_request(&mut self.env, call),
            SessionFlags::DEBUGS => debugging::ask_debugging(&mut self.engine_side(), call),
            SessionFlags::QUEUEING => self.while_queueing(index, row, request),
            SessionFlags::LARGE => self.env.order_large(index, row, row.lane(request.args)),
            _ => None,
        }
    }

    fn ask_debugger(&mut self, index: ClientId, request: &Request<'_>) -> Option<Flow> {
        debugging::ask_debugger(&mut self.engine_side(), index, request)
    }

    #[inline]
    fn run(&mut self, call: Call<'_>) -> Flow {
        timed::run(self, call)
    }

    #[inline]
    fn run_in_lane(&mut self, call: Call<'_>) -> Flow {
        let Call { index, row, request } = call;
        match row.lane(request.args) {
            Lane::Shared => self.pass_on(call),
            Lane::Local => {
                let flow = self.answer_locally(index, row, request.args);
                self.env.keep_room(index, flow)
            }
            Lane::Pinned => match self.env.transaction_command(call) {
                Some(flow) => flow,
                None => watch_engine(&mut self.engine_side(), index, request.args),
            },
            Lane::Admin => {
                let step = self.env.handle_admin(index, row, request);
                self.take_admin_step(call, step)
            }
            Lane::Script => self.run_with_script(call),
            Lane::Push => {
                let step = self.subscriptions.handle_request(&mut self.env, call);
                self.take_step(index, step)
            }
            Lane::Blocking => self.block(call),
            Lane::Dedicated => run_dedicated(self, call),
        }
    }

    fn end_transaction(&mut self) {
        self.engine_side().serve_ready();
        self.subscriptions.tell_changes(&mut self.env);
    }

    #[inline(always)]
    fn tell_ended(&mut self) {
        Self::tell_ended(self);
    }
}

impl<E: Execute> Worker<E> {
    /// Does what is left to do of a request that steers or shows a server.
    #[cold]
    fn take_admin_step(&mut self, call: Call<'_>, step: AdminStep) -> Flow {
        let Call { index, row, request } = call;
        match step {
            AdminStep::Done(flow) => flow,
            AdminStep::Clients(step) => self.take_step(index, step),
            AdminStep::Parameters(step) => {
                self.engine_side().review_events();
                self.take_step(index, step)
            }
            AdminStep::Debug => {
                let flow = self.pass_on(call);
                self.env.catch_up_behind(index);
                self.engine_side().serve_after(index);
                flow
            }
            AdminStep::ClockMoved => answer_behind_time(self, index),
            AdminStep::Migrate => migrate(self, call),
            AdminStep::Local => self.answer_locally(index, row, request.args),
            AdminStep::PassOn => self.pass_on(call),
        }
    }

    /// A request that brings or names a script.
    #[cold]
    fn run_with_script(&mut self, call: Call<'_>) -> Flow {
        let flow = match self.env.engine.is_some() {
            true => call.row.runs_scripts.then(|| run_in_engine(&mut self.engine_side(), call)),
            false => self.env.run_script_at_nodes(call),
        };
        flow.unwrap_or_else(|| self.pass_on(call))
    }

    /// A request that may wait. What the client sends behind it is not read before it is answered.
    #[cold]
    fn block(&mut self, call: Call<'_>) -> Flow {
        if self.env.engine.is_none() {
            return self.blocking.block_at_node(&mut self.env, call);
        }
        let flow = self.engine_side().park(call);
        self.subscriptions.tell_changes(&mut self.env);
        flow
    }

    /// What a request for the engine in this process may concern.
    #[inline(always)]
    pub(crate) fn engine_side(&mut self) -> EngineSide<'_, E, Subscriptions> {
        EngineSide { blocking: &mut self.blocking, env: &mut self.env, changes: &mut self.subscriptions }
    }

    /// The engine or the nodes answer.
    #[inline]
    pub(crate) fn pass_on(&mut self, call: Call<'_>) -> Flow {
        let Call { index, row, request } = call;
        if is_own_info(row, &self.env.shared) {
            let step = self.env.handle_info(index, row, request);
            return self.take_admin_step(call, step);
        }
        if self.env.engine.is_none() {
            return self.env.forward(call);
        }
        let logs = self.env.own_logs(index, row, request.args);
        logs.unwrap_or_else(|| self.engine_side().execute(call))
    }
}

/// A request that moves keys to another server. Engines with threads of their own do it themselves, over connections on which no other
/// request waits behind it.
fn migrate<E: Execute>(worker: &mut Worker<E>, call: Call<'_>) -> Flow {
    match worker.env.engine.is_some() {
        true => with_migrations(worker, |migrations, side| migrations.migrate(side, call)),
        false => worker.blocking.block_at_node(&mut worker.env, call),
    }
}

/// Has something done with requests that move keys, and what they may concern.
pub(super) fn with_migrations<E: Execute, R>(
    worker: &mut Worker<E>,
    run: impl FnOnce(&mut Migrations, &mut EngineSide<'_, E, Subscriptions>) -> R,
) -> R {
    let Worker { blocking, env, subscriptions: changes, migrations, .. } = worker;
    run(migrations, &mut EngineSide { blocking, env, changes })
}

/// Goes on with the script that the engine has left, if there is one, and with the EXEC that it is part of.
#[cold]
fn go_on_with_late_script<E: Execute>(worker: &mut Worker<E>) {
    let was_late = worker.env.slices.script.is_some();
    let client = go_on_with_script(&mut worker.engine_side());
    if was_late && worker.env.slices.script.is_none() && worker.env.config.trusts_clients {
        worker.env.catch_up_with_parameters();
        worker.engine_side().review_events();
        // Changes of all engines have waited.
        worker.env.settle_holding(&mut worker.blocking);
    }
    client.into_iter().for_each(|client| go_on_behind_script(worker, client));
    with_migrations(worker, |migrations, side| migrations.take_put_off(side));
}

/// A request of a client that is told of changes to what it reads.
fn settle_tracking<E: Execute>(worker: &mut Worker<E>, call: Call<'_>) -> Option<Flow> {
    let Call { index, row, request } = call;
    let flow = worker.subscriptions.settle_noloop(&mut worker.env, index);
    if flow.is_none() {
        worker.subscriptions.track_request(&mut worker.env, index, row, request.args);
    }
    flow
}

/// What makes of a connection something else.
fn run_dedicated<E: Execute>(worker: &mut Worker<E>, call: Call<'_>) -> Flow {
    match debugging::is_for_engine(&worker.env, call.row) {
        true => debugging::enable(&mut worker.env, call.index, call.request.args),
        false => worker.dedicated.handle_request(&mut worker.env, call),
    }
}

/// Goes on with the scripts that are under way.
pub(super) fn go_on_with_scripts<E: Execute>(worker: &mut Worker<E>) {
    if worker.env.slices.script.is_some() {
        go_on_with_late_script(worker);
    }
    if !worker.env.debuggers.all.is_empty() || worker.env.debuggers.has_released {
        go_on_with_debuggers(worker);
    }
}

/// Goes on with scripts that have debuggers. What has waited for the end of one goes on behind it: keys that were on their way, then clients.
#[cold]
fn go_on_with_debuggers<E: Execute>(worker: &mut Worker<E>) {
    if debugging::go_on_debugging(&mut worker.engine_side()) {
        with_migrations(worker, |migrations, side| migrations.take_put_off(side));
        worker.env.settle_holding(&mut worker.blocking);
    }
}

/// A client has moved the clock: it is answered once all that is over by now has ended.
#[cold]
fn answer_behind_time<E: Execute>(this: &mut Worker<E>, index: ClientId) -> Flow {
    let Some(asker) = this.env.clients.expect_behind_barrier(index) else { return Flow::Stop };
    this.visits.expect(Visit::answering(asker), this.env.counters.turns.value());
    // This turn may be over but for what goes on in it: the next begins at once.
    this.env.cron_at_us = 0;
    if this.env.clients.is_leaving(index) { Flow::Stop } else { Flow::Pause }
}
