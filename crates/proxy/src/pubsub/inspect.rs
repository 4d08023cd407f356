//! Questions about channels that concern every worker: PUBSUB, the receivers of a message, and messages themselves where
//! there are no nodes to pass them on.
//!
//! PUBSUB speaks of this process's clients. What others subscribe to at the nodes is theirs to say.

use super::routing::{Scope, scope_of};
use crate::env::Env;
use crate::pubsub::Subscriptions;
use crate::push::frame::Kind;
use crate::session::Flow;
use crate::session::id::ClientId;
use respool_command::{Execute, PubsubCommand, Row, glob, text as texts};
use respool_wire::{Args, Encoder};
use std::collections::BTreeSet;

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) enum PubsubQuery {
    /// The channels that have subscribers; those that match a pattern, if one is given.
    Names { kind: Kind, pattern: Option<Box<[u8]>>, scope: Scope },
    /// How many patterns there are.
    Patterns,
    /// How many subscribe to each of these.
    Counts { kind: Kind, names: Vec<Box<[u8]>>, scope: Scope },
    /// By how much the clients that a node reaches with a message exceed the lanes it counts. The reply is that and
    /// `at_node`, the node's own count.
    Receivers { kind: Kind, channel: Box<[u8]>, node: Box<str>, at_node: i64 },
    /// Deliver this and say to how many.
    Publish { kind: Kind, channel: Box<[u8]>, payload: Box<[u8]> },
}

/// What workers answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct PubsubAnswer {
    names: BTreeSet<Box<[u8]>>,
    counts: Vec<i64>,
}

impl PubsubQuery {
    /// What a request asks; `None`: for help.
    fn read(
        command: PubsubCommand,
        row: &'static Row,
        args: Args<'_>,
        scope: impl FnOnce() -> Scope,
    ) -> Result<Option<Self>, Vec<u8>> {
        let publish = |kind| Self::Publish { kind, channel: args.at(1).into(), payload: args.at(2).into() };
        let pattern = || args.get(2).map(Into::into);
        let named = || args.from(2).iter().map(Into::into).collect();
        Ok(Some(match command {
            PubsubCommand::Publish => publish(Kind::Channel),
            PubsubCommand::Spublish => publish(Kind::Shard),
            PubsubCommand::PubsubChannels | PubsubCommand::PubsubShardchannels if args.len() > 3 => {
                let mut words = Vec::new();
                texts::wrong_subcommand_arguments(row, args, &mut words);
                return Err(words);
            }
            PubsubCommand::PubsubChannels => Self::Names { kind: Kind::Channel, pattern: pattern(), scope: scope() },
            PubsubCommand::PubsubShardchannels => Self::Names { kind: Kind::Shard, pattern: pattern(), scope: scope() },
            PubsubCommand::PubsubNumsub => Self::Counts { kind: Kind::Channel, names: named(), scope: scope() },
            PubsubCommand::PubsubShardnumsub => Self::Counts { kind: Kind::Shard, names: named(), scope: scope() },
            PubsubCommand::PubsubNumpat => Self::Patterns,
            _ => return Ok(None),
        }))
    }

    /// Whether the reply may be large, so that a client's next request waits for it.
    pub(crate) fn is_large(&self) -> bool {
        matches!(self, Self::Names { .. } | Self::Patterns | Self::Counts { .. })
    }

    pub(crate) fn reply(&self, answer: &PubsubAnswer, reply: &mut Encoder<'_>) {
        let PubsubAnswer { names: found, counts } = answer;
        match self {
            Self::Names { .. } => {
                reply.array(found.len());
                found.iter().for_each(|name| reply.bulk(name));
            }
            Self::Patterns => reply.integer(found.len() as i64),
            Self::Counts { names, .. } => {
                reply.array(names.len() * 2);
                for (place, name) in names.iter().enumerate() {
                    reply.bulk(name);
                    reply.integer(counts.get(place).copied().unwrap_or_default());
                }
            }
            Self::Receivers { at_node, .. } => reply.integer((at_node + counts.iter().sum::<i64>()).max(0)),
            Self::Publish { .. } => reply.integer(counts.iter().sum::<i64>().max(0)),
        }
    }
}

impl PubsubAnswer {
    pub(crate) fn join(&mut self, mut other: Self) {
        self.names.append(&mut other.names);
        self.counts.resize(other.counts.len().max(self.counts.len()), 0);
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, count)| *sum += count);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.names.iter().map(|name| name.len()).sum::<usize>() + size_of_val(&*self.counts)
    }
}

/// What becomes of a request about subscriptions.
#[derive(Debug)]
pub(crate) enum PubsubStep {
    Done(Flow),
    /// All workers are asked; their answers make the reply.
    Ask(PubsubQuery),
}

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
            Ok(None) => {
                self.answer(index, |reply| crate::commands::client::help(row, reply));
                PubsubStep::Done(Flow::Next)
            }
            Err(words) => PubsubStep::Done(self.refuse(index, &words)),
        }
    }
}

impl Subscriptions {
    /// A script of the engine in this process publishes a message, or asks about channels.
    pub(crate) fn pubsub_for_script(
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
            Ok(None) => crate::commands::client::help(row, reply),
            Err(words) => reply.error(&words),
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
