//! Questions about channels that concern every worker: PUBSUB, the receivers of a message, and messages themselves where
//! there are no nodes to pass them on.
//!
//! PUBSUB speaks of this process's clients. What others subscribe to at the nodes is theirs to say.

use super::query::{PubsubAnswer, PubsubQuery};
use crate::env::Env;
use crate::ids::ClientId;
use crate::pubsub::query::PubsubStep;
use crate::push::routing::scope_of;
use crate::push::subscriptions::{Subscriptions, TrackedKeys};
use respool_command::{Execute, PubsubCommand, Row, glob};
use respool_connection::push::frame::Kind;
use respool_connection::push::scope::Scope;
use respool_wire::{Args, Encoder};

impl<E: Execute> Env<E> {
    /// PUBSUB.
    pub(crate) fn ask_about_channels(
        &mut self,
        index: ClientId,
        command: PubsubCommand,
        row: &'static Row,
        args: Args<'_>,
    ) -> PubsubStep {
        // Channels are those that routes lead the client to, by the names that it has for them.
        let scope = || self.clients.sessions.at(index).map(scope_of).unwrap_or_default();
        match PubsubQuery::read(command, row, args, scope) {
            Ok(Some(query)) => PubsubStep::Ask(query),
            Ok(None) => PubsubStep::Done(self.answer(index, |reply| crate::interfaces::help::help(row, reply))),
            Err(error) => PubsubStep::Done(self.refuse(index, error)),
        }
    }
}

impl<T: TrackedKeys> Subscriptions<T> {
    /// A script of the engine in this process publishes a message, or asks about channels.
    pub(crate) fn answer_for_script(
        &mut self,
        env: &mut Env<impl Execute>,
        command: PubsubCommand,
        row: &'static Row,
        args: Args<'_>,
        reply: &mut Encoder<'_>,
    ) {
        match PubsubQuery::read(command, row, args, Scope::default) {
            // An engine belongs to one worker, and so do its clients.
            Ok(Some(query)) => query.reply(&self.answer_pubsub_query(env, &query), reply),
            Ok(None) => crate::interfaces::help::help(row, reply),
            Err(error) => reply.raw(error.as_bytes()),
        }
    }

    /// Answers for the subscriptions of this worker.
    pub(crate) fn answer_pubsub_query(&mut self, env: &mut Env<impl Execute>, query: &PubsubQuery) -> PubsubAnswer {
        let mut answer = PubsubAnswer::default();
        let registries = &self.registries;
        match query {
            PubsubQuery::Names { kind, pattern, scope } => {
                let is_asked = |name: &[u8]| pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, name));
                let names = self.names_for(&env.config, scope, *kind, is_asked);
                answer.names = names.into_iter().collect();
            }
            PubsubQuery::Patterns => {
                let registry = &registries[Kind::Pattern as usize];
                answer.names = registry.active_from(0).map(|id| registry.name(id).into()).collect();
            }
            PubsubQuery::Counts { kind, names, scope } => {
                let count = |name: &[u8]| self.count_for(&env.config, scope, *kind, name) as i64;
                answer.counts = names.iter().map(|name| count(name)).collect();
            }
            PubsubQuery::Receivers { kind, channel, node, .. } => {
                let node = env.config.find_node(|known| *known.name == **node);
                answer.counts = vec![node.map_or(0, |node| self.surplus(&env.config, *kind, channel, node))];
            }
            PubsubQuery::Publish { kind, channel, payload } => {
                answer.counts = vec![self.deliver_here(env, *kind, channel, payload)];
            }
        }
        answer
    }
}
