//! What is asked about channels: of all workers, and of the node that passes a message on.

use crate::config::Config;
use crate::error_reply::ErrorReply;
use crate::ids::{Asker, NodeId};
use crate::integer::integer;
use crate::nodes::moves::Moves;
use crate::observe::counters::Counters;
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskReply};
use crate::session::table::Clients;
use crate::workers::query::{Step, WorkerQuery};
use respool_command::{PubsubCommand, Row, text as texts};
use respool_connection::push::frame::Kind;
use respool_connection::push::scope::Scope;
use respool_wire::{Args, Encoder, ReplyKind};
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
    pub(super) names: BTreeSet<Box<[u8]>>,
    pub(super) counts: Vec<i64>,
}

impl PubsubQuery {
    /// What a request asks; `None`: for help.
    pub(super) fn read(
        command: PubsubCommand,
        row: &'static Row,
        args: Args<'_>,
        scope: impl FnOnce() -> Scope,
    ) -> Result<Option<Self>, ErrorReply> {
        let publish = |kind| Self::Publish { kind, channel: args.at(1).into(), payload: args.at(2).into() };
        let pattern = || args.get(2).map(Into::into);
        let named = || args.from(2).iter().map(Into::into).collect();
        Ok(Some(match command {
            PubsubCommand::Publish => publish(Kind::Channel),
            PubsubCommand::Spublish => publish(Kind::Shard),
            PubsubCommand::PubsubChannels | PubsubCommand::PubsubShardchannels if args.len() > 3 => {
                return Err(ErrorReply::of(|words| texts::wrong_subcommand_arguments(row, args, words)));
            }
            PubsubCommand::PubsubChannels => Self::Names { kind: Kind::Channel, pattern: pattern(), scope: scope() },
            PubsubCommand::PubsubShardchannels => Self::Names { kind: Kind::Shard, pattern: pattern(), scope: scope() },
            PubsubCommand::PubsubNumsub => Self::Counts { kind: Kind::Channel, names: named(), scope: scope() },
            PubsubCommand::PubsubShardnumsub => Self::Counts { kind: Kind::Shard, names: named(), scope: scope() },
            PubsubCommand::PubsubNumpat => Self::Patterns,
            _ => return Ok(None),
        }))
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

impl WorkerQuery for PubsubQuery {
    type Answer = PubsubAnswer;

    fn is_large(&self) -> bool {
        matches!(self, Self::Names { .. } | Self::Patterns | Self::Counts { .. })
    }

    fn concerns(&self, counters: &Counters) -> bool {
        counters.subscriptions.value() > 0
    }

    fn no_answer(&self) -> PubsubAnswer {
        PubsubAnswer::default()
    }

    fn join(&self, all: &mut PubsubAnswer, mut one: PubsubAnswer) {
        if all.names.is_empty() && all.counts.is_empty() {
            *all = one;
            return;
        }
        all.names.append(&mut one.names);
        all.counts.resize(one.counts.len().max(all.counts.len()), 0);
        all.counts.iter_mut().zip(one.counts).for_each(|(sum, count)| *sum += count);
    }

    fn bytes_of(answer: &PubsubAnswer) -> usize {
        answer.names.iter().map(|name| name.len()).sum::<usize>() + size_of_val(&*answer.counts)
    }
}

/// A message that a node is passing on.
#[derive(Debug)]
pub(crate) struct Publishing {
    pub(crate) asker: Asker,
    pub(super) kind: Kind,
    pub(super) channel: Box<[u8]>,
    /// `NodeId::NONE` once it is not among the nodes any more.
    pub(super) node: NodeId,
    /// To how many connections the node says it did.
    pub(super) count: Option<i64>,
}

impl Publishing {
    /// The node has passed the message on; the clients behind our own lanes are to be counted.
    pub(crate) fn question(self, config: &Config) -> Option<(Asker, PubsubQuery)> {
        let Self { asker, kind, channel, node, count } = self;
        // Another worker may go by other settings at the moment, so its nodes may be in another order.
        let node = config.node(node).map_or("", |node| &node.name).into();
        Some((asker, PubsubQuery::Receivers { kind, channel, node, at_node: count? }))
    }
}

impl InternalTask for Publishing {
    fn handle_reply(&mut self, reply: TaskReply<'_>, clients: &mut Clients) -> Progress {
        let digits = reply.bytes.strip_prefix(b":").and_then(|r| r.strip_suffix(b"\r\n"));
        let count = digits.filter(|_| reply.kind == ReplyKind::Integer).and_then(integer);
        match count {
            Some(count) => self.count = Some(count),
            None => clients.feed(self.asker.session, self.asker.seq, reply.bytes, true),
        }
        Progress::Through
    }

    fn asker(&self) -> Option<Asker> {
        Some(self.asker)
    }

    fn move_to(&mut self, moves: &Moves, _: bool) {
        self.node = moves.place_of(self.node);
    }
}

/// What becomes of a request about subscriptions.
pub(crate) type PubsubStep = Step<PubsubQuery>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{env_with_node, request};
    use respool_command::Command;
    use respool_wire::Protocol;

    fn read(said: &str) -> Result<Option<PubsubQuery>, ErrorReply> {
        request(said, |row, args| match row.command {
            Command::Pubsub(command) => PubsubQuery::read(command, row, args, Scope::default),
            _ => panic!("{said} is not about channels"),
        })
    }

    /// The reply to a question that two workers have answered with these counts.
    fn joint(said: &str, counts: [&[i64]; 2]) -> String {
        let query = read(said).expect("it is right").expect("it asks");
        let mut all = PubsubAnswer::default();
        counts.iter().for_each(|counts| {
            query.join(&mut all, PubsubAnswer { counts: counts.to_vec(), ..PubsubAnswer::default() })
        });
        let mut out = Vec::new();
        query.reply(&all, &mut Encoder::new(&mut out, Protocol::Resp2));
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn answers_of_workers_are_added_up() {
        assert_eq!(joint("PUBLISH c m", [&[2], &[3]]), ":5\r\n");
        assert_eq!(joint("PUBSUB NUMSUB a b", [&[1, 0], &[1]]), "*4\r\n$1\r\na\r\n:2\r\n$1\r\nb\r\n:0\r\n");
        assert_eq!(joint("PUBSUB NUMSUB a", [&[], &[]]), "*2\r\n$1\r\na\r\n:0\r\n", "no worker has answered");
    }

    #[test]
    fn a_channel_that_several_workers_know_is_named_once() {
        let answer = |name: &str| PubsubAnswer { names: [name.as_bytes().into()].into(), ..PubsubAnswer::default() };
        let mut all = answer("c");
        ["c", "d"].into_iter().for_each(|name| PubsubQuery::Patterns.join(&mut all, answer(name)));
        assert_eq!((all.names.len(), PubsubQuery::bytes_of(&all)), (2, 2));
    }

    #[test]
    fn too_many_patterns_are_refused_and_help_asks_nothing() {
        assert!(read("PUBSUB CHANNELS a b").is_err());
        assert!(matches!(read("PUBSUB HELP"), Ok(None)));
        assert!(matches!(read("PUBSUB CHANNELS n*"), Ok(Some(PubsubQuery::Names { pattern: Some(_), .. }))));
    }

    #[test]
    fn a_node_that_counts_nothing_is_answered_with_its_own_words() {
        let mut env = env_with_node();
        let client = env.test_client();
        let asker = env.test_asker(client);
        let node = NodeId::nth(0);
        let mut publishing = Publishing { asker, kind: Kind::Channel, channel: b"c"[..].into(), node, count: None };
        let reply = TaskReply { step: 0, kind: ReplyKind::Error, bytes: b"-ERR no\r\n" };
        assert_eq!(publishing.handle_reply(reply, &mut env.clients), Progress::Through);
        assert_eq!(env.take_output(client), "-ERR no\r\n");
        assert!(publishing.question(&env.config).is_none());
    }
}
