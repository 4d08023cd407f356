//! A server that is nothing but an engine is its own: clients read and change its parameters (`CONFIG`), see
//! how it is (`INFO`) and end it (`SHUTDOWN`).
//!
//! The program around the worker knows what there is and what each does ([`crate::hooks::ConfigVerb`]). What belongs to the engine is told to
//! the engine first, which may refuse it while a script runs; only then does the rest hold. If the rest fails, the engine gets its values back.

mod debug;
mod server_info;
mod shutdown;

use crate::config::Config;
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::hooks::{ConfigAnswer, ConfigVerb};
use crate::ids::ClientId;
use crate::interfaces::call::Call;
use crate::interfaces::client_query::ClientStep;
use crate::request::forward::asks_for_proxy;
use crate::session::Flow;
use respool_access::file;
use respool_command::{Command, Execute, GenericCommand, Outcome, Row, ServerCommand, SessionView, text as texts};
use respool_wire::{Args, ArgsBuf, Encoder, Request};
use std::sync::Arc;

/// What becomes of a request that steers or shows a server.
#[derive(Debug)]
pub(crate) enum AdminStep {
    /// The time that clients see has been moved: the client is told once all that is over by then has ended.
    ClockMoved,
    /// It has been dealt with.
    Done(Flow),
    /// It may concern the clients of all workers.
    Clients(ClientStep),
    /// The same, and parameters may have changed with it.
    Parameters(ClientStep),
    /// The engine in this process does it, and takes its time.
    Debug,
    /// Keys are moved to another server.
    Migrate,
    /// It is answered here, as a request of the local lane.
    Local,
    /// The engine or the nodes answer.
    PassOn,
}

impl<E: Execute> Env<E> {
    /// Whether the keys are kept by nothing but this process: by the engine of this worker, or by engines with threads of their own.
    pub(crate) fn is_server(&self) -> bool {
        self.engine.is_some() || self.config.is_server
    }

    /// A command that steers nodes, which the settings may not let clients do. An engine without nodes is its own server.
    #[cold]
    pub(crate) fn handle_admin(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> AdminStep {
        if self.refuses_to_steer(row) {
            return AdminStep::Done(self.refuse(index, error_text::admin_refused(row.name)));
        }
        if let Some(step) = self.own_config(index, row, request.args) {
            return AdminStep::Parameters(step);
        }
        if row.command == Command::Server(ServerCommand::ConfigResetstat) && self.is_server() {
            self.shared.reset_statistics();
            self.command_log.reset_counts();
        }
        if self.is_own_debug(row) {
            return self.own_debug(index, row, request);
        }
        if let Some(step) = self.set_user_setting(index, row, request.args) {
            return AdminStep::Clients(step);
        }
        self.show_settings(index, row, request).map_or_else(|| passed_on(self, row), AdminStep::Done)
    }

    /// INFO, which has sections of our own, or parameters that are ours.
    #[cold]
    pub(crate) fn handle_info(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> AdminStep {
        if let Some(step) = self.own_config(index, row, request.args) {
            return AdminStep::Parameters(step);
        }
        if self.engine.is_some() || asks_for_proxy(request.args) {
            return AdminStep::Local;
        }
        AdminStep::Done(self.info_of_nodes(index, row, request))
    }

    /// A request about parameters. `None`: it is about something else, or there are none here.
    #[cold]
    fn own_config(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<ClientStep> {
        if !self.is_server() || !self.shared.hooks.has_parameters() {
            return None;
        }
        match row.command {
            Command::Server(ServerCommand::ConfigGet) => Some(self.show_parameters(index, row, args.from(2)).into()),
            Command::Server(ServerCommand::ConfigSet) if self.config.trusts_clients => {
                Some(self.take_parameters(index, row).into())
            }
            Command::Server(ServerCommand::ConfigSet) => Some(self.set_parameters(index, row, args)),
            Command::Server(ServerCommand::ConfigRewrite) => Some(self.rewrite_parameters(index, false).into()),
            _ => None,
        }
    }

    fn show_parameters(&mut self, index: ClientId, row: &'static Row, patterns: Args<'_>) -> Flow {
        let shown = match self.shared.hooks.configure(ConfigVerb::Get(patterns)) {
            Ok(ConfigAnswer::Shown(shown)) => shown,
            Ok(_) => Vec::new(),
            Err(words) => return self.refuse(index, words),
        };
        let terms = self.terms_of_hiding(row, false);
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        let mut reply = Vec::new();
        let mut encoder = Encoder::new(&mut reply, session.protocol);
        encoder.map(shown.len());
        for (name, value) in &shown {
            encoder.bulk(name);
            encoder.bulk(value);
        }
        self.answer(index, |out| out.raw(&terms.redact(&reply)))
    }

    /// `CONFIG SET`. Limits of the settings may have changed with it.
    fn set_parameters(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> ClientStep {
        self.note_secret();
        let pairs = args.from(2);
        if !pairs.len().is_multiple_of(2) {
            return self.refuse(index, texts::SYNTAX).into();
        }
        if self.shared.ledger.has_successor() {
            return self.refuse(index, error_text::HANDED_OVER).into();
        }
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop.into() };
        let (is_local, is_amid) = (session.details.peer.is_local(), session.is_amid_exec_reply());
        if self.engine.is_none() {
            return self.set_parameters_of_engines(index, row, args, is_local);
        }
        let (for_engine, before) = match self.shared.hooks.configure(ConfigVerb::Prepare { pairs, is_local }) {
            Ok(ConfigAnswer::Prepared { for_engine, before }) => (for_engine, before),
            Ok(_) => (ArgsBuf::new(), ArgsBuf::new()),
            Err(words) => return self.refuse(index, words).into(),
        };
        if let Some(error) = self.tell_engine(row, for_engine.as_args()) {
            return self.refuse(index, error).into();
        }
        let (config, about_users) = match self.shared.hooks.configure(ConfigVerb::Commit) {
            Ok(ConfigAnswer::Committed { config, about_users }) => (config, about_users),
            Ok(_) => return self.refuse(index, texts::SYNTAX).into(),
            Err(words) => {
                // It had these values and takes them again: nothing came in between.
                let _: Option<ErrorReply> = self.tell_engine(row, before.as_args());
                return self.refuse(index, words).into();
            }
        };
        if !is_amid {
            // As in Redis, keys that a new limit leaves no room for do not wait for a request that adds data.
            self.make_engine_room();
        }
        self.take_limits(&config);
        self.config = config;
        self.end_setting(index, &about_users)
    }

    /// `CONFIG SET` where the engines have threads of their own: the values hold once this returns, and every engine is asked to take
    /// them over before the client has its reply.
    fn set_parameters_of_engines(
        &mut self,
        index: ClientId,
        row: &'static Row,
        args: Args<'_>,
        is_local: bool,
    ) -> ClientStep {
        if let Some(busy) = self.shared.late_scripts.busy() {
            return self.refuse(index, busy).into();
        }
        let (config, about_users) = match self.shared.hooks.configure(ConfigVerb::Set { pairs: args.from(2), is_local })
        {
            Ok(ConfigAnswer::Set { config, about_users }) => (config, about_users),
            Ok(_) => return self.refuse(index, texts::SYNTAX).into(),
            Err(words) => return self.refuse(index, words).into(),
        };
        // The letter that tells all workers of it brings the rest.
        self.take_limits(&config);
        if !about_users.is_empty() {
            return self.end_setting(index, &about_users);
        }
        self.forward_planned(Call { index, row, request: &Request::made(args) }).into()
    }

    /// `CONFIG SET` at one of those engines. Requests of several workers come to each engine in another order, so an engine takes over
    /// what holds now and not what the request says: behind the last of them all engines have the same values. With a late script it
    /// does so once that has ended, before it takes any other request.
    fn take_parameters(&mut self, index: ClientId, row: &'static Row) -> Flow {
        let taken = if self.slices.script.is_some() { Ok(()) } else { self.take_over_parameters(row) };
        match taken {
            Ok(()) => self.confirm(index),
            Err(error) => self.refuse(index, error),
        }
    }

    /// Takes over the server's parameters. `Err`: the engine's error reply.
    fn take_over_parameters(&mut self, row: &'static Row) -> Result<(), ErrorReply> {
        let Ok(ConfigAnswer::OfEngine { config, parameters }) = self.shared.hooks.configure(ConfigVerb::OfEngine)
        else {
            return Ok(());
        };
        if let Some(error) = self.tell_engine(row, parameters.as_args()) {
            return Err(error);
        }
        self.make_engine_room();
        self.take_limits(&config);
        self.config = config;
        Ok(())
    }

    /// A script that was late has ended. Meanwhile the engine has taken over nothing.
    pub(crate) fn catch_up_with_parameters(&mut self) {
        let args: ArgsBuf = ["CONFIG", "SET"].iter().collect();
        if let Ok(row) = respool_command::resolve(args.as_args()) {
            // Another script may be late already; the values are taken over behind it.
            let _: Result<(), ErrorReply> = self.take_over_parameters(row);
        }
    }

    /// What was set holds, but for what is about users.
    fn end_setting(&mut self, index: ClientId, about_users: &[(&'static str, Vec<u8>)]) -> ClientStep {
        for (name, value) in about_users {
            if let Err(words) = self.apply_user_setting(name.as_bytes(), value) {
                return self.refuse(index, words).into();
            }
        }
        if about_users.is_empty() {
            return self.confirm(index).into();
        }
        ClientStep::tell_of_users()
    }

    /// Has the engine make room; whether there is some.
    pub(crate) fn make_engine_room(&mut self) -> bool {
        let now = self.engine_now();
        self.engine.as_mut().is_none_or(|engine| engine.make_room(now))
    }

    /// Names and values in turn, by `CONFIG SET`. If there is less room then, the engine's clock makes keys go. Result: the engine's error.
    fn tell_engine(&mut self, row: &'static Row, pairs: Args<'_>) -> Option<ErrorReply> {
        if pairs.is_empty() {
            return None;
        }
        let args = config_set(pairs);
        let mut view = SessionView { now: self.engine_now(), ..Default::default() };
        self.engine_at_us = self.engine_at_us.min(self.now.mono_us);
        let mut reply = Vec::new();
        let mut encoder = Encoder::new(&mut reply, respool_wire::Protocol::Resp2);
        let _: Outcome = self.engine.as_mut()?.execute(row, args.as_args(), &mut view, &mut encoder);
        reply.starts_with(b"-").then(|| ErrorReply::of_reply(&reply))
    }

    /// What later requests in the same bytes have to be held to already. The rest comes with the letter that tells of other settings.
    fn take_limits(&mut self, config: &Config) {
        self.clients.output_hard = config.budgets.client_output_hard;
        self.look_at_client_memory_again();
        self.command_log.calls.time_next();
        self.seen.begin_countdown(config.seeing);
        self.is_busy = true;
    }

    /// `is_forced`: values that are their defaults are written, too.
    pub(super) fn rewrite_parameters(&mut self, index: ClientId, is_forced: bool) -> Flow {
        let access = Arc::clone(&self.shared.access);
        let users = match access.outside().acl_file().is_none().then(|| file::directives(&self.users)).transpose() {
            Ok(users) => users,
            Err(words) => return self.refuse(index, words),
        };
        match self.shared.hooks.configure(ConfigVerb::Rewrite { users: users.as_deref(), is_forced }) {
            Ok(_) => self.confirm(index),
            Err(words) => self.refuse(index, words),
        }
    }
}

/// What is neither refused nor answered here: keys are moved by this process, and all else is done by the engine or the nodes.
fn passed_on(env: &Env<impl Execute>, row: &Row) -> AdminStep {
    let moves_keys = || if env.engine.is_some() { env.shared.hooks.has_transfers() } else { env.config.is_server };
    match row.command {
        Command::Generic(GenericCommand::Migrate) if moves_keys() => AdminStep::Migrate,
        _ => AdminStep::PassOn,
    }
}

/// `CONFIG SET` of names and values in turn.
fn config_set(pairs: Args<'_>) -> ArgsBuf {
    let mut args = ArgsBuf::new();
    args.push(b"CONFIG").push(b"SET");
    pairs.iter().for_each(|arg| {
        args.push(arg);
    });
    args
}
