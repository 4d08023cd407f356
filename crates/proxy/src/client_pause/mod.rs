//! CLIENT PAUSE: all clients of the process hold their requests back for a while, or only those that would change data.
//!
//! Every session gets a flag, so that a pause costs nothing while there is none; a request that has to wait stays unread in its
//! client's input, and is read again when the pause is over.

pub(crate) mod functions;
pub(crate) mod listing;

use crate::client_pause::functions::{Functions, PausedCall, script_of};
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::ClientId;
use crate::integer::integer;
use crate::interfaces::client_query::{ClientFilter, ClientQuestion, ClientStep};
use crate::interfaces::held_back::WaitsAtNodes;
use crate::request::client_pause::{ClientPause, is_readonly_script, may_change};
use crate::session::table::Clients;
use crate::session::{PauseReasons, SessionFlags};
use crate::workers::operator_state::KeptClientPause;
use crate::workers::shared::Shared;
use respool_command::{Command, ConnectionCommand, Execute, Row, ScriptingCommand, TransactionsCommand, text as texts};
use respool_wire::Args;

impl From<KeptClientPause> for ClientPause {
    fn from(KeptClientPause { until_us, is_for_all }: KeptClientPause) -> Self {
        Self { until_us, is_for_all }
    }
}

impl Functions {
    /// Replaces the pause of this worker by the one in the standing orders. These may have changed since the letter was
    /// sent, and letters of two workers arrive in any order: after the last of them all workers hold back the same
    /// requests.
    pub(crate) fn adopt_client_pause(&mut self, env: &mut Env<impl Execute>, waits: &mut impl WaitsAtNodes) {
        let ordered = env.shared.standing().client_pause.map(ClientPause::from);
        let Some(hold) = ordered.filter(|hold| hold.until_us > env.now.client_us) else {
            return self.end_client_pause(env, waits);
        };
        let before = env.client_pause.replace(hold);
        env.keep_keys(true);
        env.clients.sessions.iter_mut().for_each(|(_, session)| session.flags.add(SessionFlags::HELD));
        env.schedule_client_pause();
        if before.is_some_and(|before| before.is_for_all && !hold.is_for_all) {
            env.settle_holding(waits);
        }
    }

    /// Ends a pause whose time has come.
    pub(crate) fn check_client_pause(&mut self, env: &mut Env<impl Execute>, waits: &mut impl WaitsAtNodes) {
        if env.client_pause.is_some_and(|hold| env.now.client_us >= hold.until_us) {
            self.end_client_pause(env, waits);
        }
    }

    /// Ends a pause, if there is one: what was held back goes on.
    fn end_client_pause(&mut self, env: &mut Env<impl Execute>, waits: &mut impl WaitsAtNodes) {
        if env.client_pause.take().is_some() {
            env.keep_keys(false);
            self.forget();
            env.settle_holding(waits);
            // What else has waited for the end is done by the timers, in this turn.
            env.cron_at_us = 0;
        }
    }

    /// How a request is held back by a pause. `None`: it is not.
    pub(crate) fn hold(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        row: &'static Row,
        args: Args<'_>,
    ) -> Option<PausedCall> {
        let hold = env.client_pause?;
        // The end of a pause may wait for a clock that only this moves.
        let ends_it = row.command == Command::Connection(ConnectionCommand::ClientUnpause)
            || env.is_debug_clock(row, args) && !env.refuses_debug(index, row);
        let is_exec = row.command == Command::Transactions(TransactionsCommand::Exec);
        let changes = if is_exec { env.block_may_change(index)? } else { env.may_change(row, args) };
        if ends_it || row.is_ours() || !(hold.is_for_all || changes) {
            return None;
        }
        Some(match hold.is_for_all {
            true => env.wait_for_pause(index),
            false => self.handle_request(env, index, row, args),
        })
    }
}

/// The engine of this worker, if it is one of several of a server, keeps its keys while the clients of the server are paused.
#[inline]
pub(crate) fn follow_server<E: Execute>(env: &mut Env<E>) {
    let is_paused = env.shared.server_pause.holds(env.now.client_us);
    if env.shared.engine_place.is_some() && is_paused != env.is_server_paused {
        env.is_server_paused = is_paused;
        env.keep_keys(is_paused);
        // What waits for the end is done by the timers.
        env.cron_at_us = if is_paused { env.cron_at_us } else { 0 };
    }
}

/// A pause is ordered, beside one that may hold already. `false`: another process gives the orders by now.
fn begin(shared: &Shared, now_us: u64, ordered: KeptClientPause) -> bool {
    shared.change_orders(|standing| {
        let before = standing.client_pause.filter(|hold| hold.until_us > now_us);
        let until_us = before.map_or(ordered.until_us, |before| before.until_us.max(ordered.until_us));
        let is_for_all = ordered.is_for_all || before.is_some_and(|before| before.is_for_all);
        shared.server_pause.set(Some(until_us));
        standing.client_pause = Some(KeptClientPause { until_us, is_for_all });
    })
}

/// A pause is over.
fn end(shared: &Shared) -> bool {
    shared.change_orders(|standing| {
        shared.server_pause.set(None);
        standing.client_pause = None;
    })
}

impl<E: Execute> Env<E> {
    fn keep_keys(&mut self, is_kept: bool) {
        if let Some(engine) = &mut self.engine {
            engine.keep_keys(is_kept);
        }
    }

    /// `CLIENT PAUSE timeout [WRITE|ALL]`.
    pub(crate) fn client_pause(&mut self, index: ClientId, args: Args<'_>) -> ClientStep {
        if args.len() > 4 {
            return self.refuse(index, ErrorReply::of(|words| texts::subcommand_syntax(args, words))).into();
        }
        let is_for_all = match args.get(3) {
            None => true,
            Some(word) if word.eq_ignore_ascii_case(b"ALL") => true,
            Some(word) if word.eq_ignore_ascii_case(b"WRITE") => false,
            Some(_) => return self.refuse(index, error_text::PAUSE_MODE).into(),
        };
        let Some(timeout_ms) = integer(args.at(2)) else {
            return self.refuse(index, texts::TIMEOUT_NOT_AN_INTEGER).into();
        };
        let Ok(timeout_ms) = u64::try_from(timeout_ms) else {
            return self.refuse(index, texts::TIMEOUT_NEGATIVE).into();
        };
        let until_us = self.now.client_us.saturating_add(timeout_ms.saturating_mul(1000));
        if !begin(&self.shared, self.now.client_us, KeptClientPause { until_us, is_for_all }) {
            return self.refuse(index, error_text::HANDED_OVER).into();
        }
        // Once that is answered, every worker holds requests back.
        ClientStep::ask(ClientQuestion::ClientPause, ClientFilter::default())
    }

    /// `CLIENT UNPAUSE`.
    pub(crate) fn client_unpause(&mut self, index: ClientId) -> ClientStep {
        if !end(&self.shared) {
            return self.refuse(index, error_text::HANDED_OVER).into();
        }
        ClientStep::ask(ClientQuestion::ClientPause, ClientFilter::default())
    }

    /// Sees to it that timers are looked at when a pause ends.
    pub(crate) fn schedule_client_pause(&mut self) {
        if let Some(hold) = self.client_pause {
            self.cron_at_us = self.now.due_us(hold.until_us).map_or(self.cron_at_us, |at| at.min(self.cron_at_us));
        }
    }

    /// Whether a request may change data; of a script, what its first line says of it is believed.
    pub(crate) fn may_change(&mut self, row: &Row, args: Args<'_>) -> bool {
        use ScriptingCommand as S;
        let now = self.engine_now();
        may_change(row)
            && !match row.command {
                Command::Scripting(S::Eval) => is_readonly_script(args.at(1)),
                Command::Scripting(S::Evalsha) => match &mut self.engine {
                    Some(engine) => {
                        script_of(engine, now, args.at(1)).is_some_and(|script| is_readonly_script(&script))
                    }
                    None => self.shared.scripts().find(args.at(1)).is_some_and(|script| is_readonly_script(&script)),
                },
                _ => false,
            }
    }

    /// Whether the block that a session has queued may change data. The engine in this process is asked about scripts that it
    /// names by their hashes only now: most blocks meet no pause.
    fn block_may_change(&mut self, index: ClientId) -> Option<bool> {
        let session = self.clients.sessions.at_mut(index)?;
        let Some(queued) = session.queued_mut() else { return Some(false) };
        if queued.may_change {
            return Some(true);
        }
        let digests: Vec<Vec<u8>> = queued.digests().map(<[u8]>::to_vec).collect();
        let now = self.engine_now();
        let Some(engine) = &mut self.engine else { return Some(false) };
        let is_readonly =
            |digest: &Vec<u8>| script_of(engine, now, digest).is_some_and(|text| is_readonly_script(&text));
        Some(!digests.iter().all(is_readonly))
    }
}

impl Clients {
    /// A client waits for the end of a pause. It counts as blocked, as it does in Redis.
    pub(crate) fn mark_held(&mut self, index: ClientId) {
        let Some(session) = self.sessions.at_mut(index) else { return };
        let has_hung_up = session.details.has_hung_up;
        if !session.pause.has(PauseReasons::HELD) {
            session.pause.add(PauseReasons::HELD);
            self.counters.blocked_clients.set(self.counters.blocked_clients.value() + 1);
        }
        if has_hung_up {
            self.drop_rest(index);
        }
    }

    /// Clients waited for the end of a pause and do so no more.
    pub(crate) fn unmark_held(&mut self, count: usize) {
        let gauge = &self.counters.blocked_clients;
        gauge.set(gauge.value().saturating_sub(count as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{EchoEngine, NotedWaits, env_with_node, request};

    fn pause(env: &mut Env<EchoEngine>, functions: &mut Functions, said: &str) -> NotedWaits {
        let client = env.test_client();
        let step = request(said, |_, args| match said.starts_with("CLIENT PAUSE") {
            true => env.client_pause(client, args),
            false => env.client_unpause(client),
        });
        assert!(matches!(step, ClientStep::Ask(_)), "{said}: {step:?}");
        let mut waits = NotedWaits::default();
        functions.adopt_client_pause(env, &mut waits);
        waits
    }

    #[test]
    fn a_pause_holds_what_it_says_until_its_time_or_an_unpause() {
        let (mut env, mut functions) = (env_with_node(), Functions::default());
        let client = env.test_client();
        let is_held = |env: &mut Env<EchoEngine>, functions: &mut Functions, said: &str| {
            request(said, |row, args| functions.hold(env, client, row, args)).is_some()
        };
        pause(&mut env, &mut functions, "CLIENT PAUSE 10 WRITE");
        assert!(is_held(&mut env, &mut functions, "SET k v") && !is_held(&mut env, &mut functions, "GET k"));
        pause(&mut env, &mut functions, "CLIENT PAUSE 5 ALL");
        assert!(is_held(&mut env, &mut functions, "GET k"), "the stricter of two pauses holds");
        assert!(
            !is_held(&mut env, &mut functions, "CLIENT UNPAUSE") && !is_held(&mut env, &mut functions, "PROXY HELP")
        );
        env.now.pass(9_999);
        let mut waits = NotedWaits::default();
        functions.check_client_pause(&mut env, &mut waits);
        assert!(env.client_pause.is_some(), "the longer of two times holds");
        env.now.pass(1);
        functions.check_client_pause(&mut env, &mut waits);
        assert!(env.client_pause.is_none() && waits.went_on == 1);
        pause(&mut env, &mut functions, "CLIENT PAUSE 10");
        assert_eq!(pause(&mut env, &mut functions, "CLIENT UNPAUSE").went_on, 1);
        assert!(env.client_pause.is_none());
    }

    #[test]
    fn a_client_that_waits_counts_as_blocked_once() {
        let mut env = env_with_node();
        let client = env.test_client();
        env.clients.mark_held(client);
        env.clients.mark_held(client);
        assert_eq!(env.counters.blocked_clients.value(), 1);
        env.clients.unmark_held(1);
        assert_eq!(env.counters.blocked_clients.value(), 0);
    }

    #[test]
    fn a_pause_with_a_wrong_time_or_mode_is_refused() {
        let mut env = env_with_node();
        let client = env.test_client();
        for said in ["CLIENT PAUSE x", "CLIENT PAUSE -1", "CLIENT PAUSE 1 READ", "CLIENT PAUSE 1 ALL x"] {
            let step = request(said, |_, args| env.client_pause(client, args));
            assert!(matches!(step, ClientStep::Done(_)), "{said}");
            assert!(env.take_output(client).starts_with("-ERR"), "{said}");
        }
        assert!(env.shared.standing().client_pause.is_none());
    }
}
