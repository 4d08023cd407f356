//! Questions about channels that concern every worker: PUBSUB, the receivers of a message, and messages themselves where
//! there are no nodes to pass them on.
//!
//! PUBSUB speaks of this process's clients. What others subscribe to at the nodes is theirs to say.

use super::routing::{Scope, scope_of};
use crate::limits::QUESTION_US_MAX;
use crate::push::frame::Kind;
use crate::session::id::ClientId;
use crate::session::{Asker, Flow};
use crate::slab::{Handle, Slab};
use crate::tracking::{Redirect, TrackingOptions};
use crate::worker::Worker;
use crate::workers::mail::Mail;
use respool_command::{Execute, PubsubCommand, Row, glob, text as texts};
use respool_connection::{Action, Seq, ServiceAction};
use respool_wire::{Args, Encoder};
use std::collections::BTreeSet;

/// What is asked.
#[derive(Clone, Debug)]
pub(super) enum Question {
    /// The channels that have subscribers; those that match a pattern, if one is given.
    Names { kind: Kind, pattern: Option<Box<[u8]>>, scope: Scope },
    /// How many patterns there are.
    Patterns,
    /// How many subscribe to each of these.
    Counts { kind: Kind, names: Vec<Box<[u8]>>, scope: Scope },
    /// By how much the clients that a node reaches with a message exceed the lanes it counts.
    Receivers { kind: Kind, channel: Box<[u8]>, node: Box<str> },
    /// Which worker has the client of this number, and where.
    Find { id: u64 },
    /// Deliver this and say to how many.
    Publish { kind: Kind, channel: Box<[u8]>, payload: Box<[u8]> },
}

/// What is done with the sum of the answers.
#[derive(Debug)]
pub(super) enum Then {
    /// It is the reply.
    Reply,
    /// It and this is the reply.
    Add(i64),
    /// The client that was asked for is told in the asker's place.
    Redirect(TrackingOptions),
}

/// A question from one worker to another.
#[derive(Clone, Debug)]
pub struct SubscriptionInquiry {
    from: usize,
    handle: Handle,
    question: Question,
}

/// The answer to it.
#[derive(Clone, Debug)]
pub struct SubscriptionAnswer {
    handle: Handle,
    names: Vec<Box<[u8]>>,
    counts: Vec<i64>,
}

/// A question that waits for workers to answer.
#[derive(Debug)]
struct Asking {
    /// `None` if no reply is wanted.
    asker: Option<Asker>,
    question: Question,
    then: Then,
    awaited: usize,
    asked_us: u64,
    names: BTreeSet<Box<[u8]>>,
    counts: Vec<i64>,
}

/// The questions that clients of this worker have asked.
#[derive(Debug, Default)]
pub(super) struct Askings(Slab<Asking>);

impl Askings {
    /// How many wait for answers.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<E: Execute> Worker<E> {
    /// PUBSUB.
    pub(crate) fn ask_about_channels(
        &mut self,
        index: ClientId,
        command: PubsubCommand,
        row: &'static Row,
        args: Args<'_>,
    ) -> Flow {
        // Channels are those that routes lead the client to, by the names that it has for them.
        let scope = || self.clients.sessions.at(index).map(scope_of).unwrap_or_default();
        let names = |kind| Question::Names { kind, pattern: args.get(2).map(Into::into), scope: scope() };
        let named = || args.from(2).iter().map(Into::into).collect();
        let counts = |kind| Question::Counts { kind, names: named(), scope: scope() };
        let question = match command {
            PubsubCommand::PubsubChannels | PubsubCommand::PubsubShardchannels if args.len() > 3 => {
                let mut words = Vec::new();
                texts::wrong_subcommand_arguments(row, args, &mut words);
                return self.refuse(index, &words);
            }
            PubsubCommand::PubsubChannels => names(Kind::Channel),
            PubsubCommand::PubsubShardchannels => names(Kind::Shard),
            PubsubCommand::PubsubNumsub => counts(Kind::Channel),
            PubsubCommand::PubsubShardnumsub => counts(Kind::Shard),
            PubsubCommand::PubsubNumpat => Question::Patterns,
            _ => {
                self.answer(index, |reply| crate::commands::client::help(row, reply));
                return Flow::Next;
            }
        };
        // One at a time: a pool's channels are many bytes.
        if self.settle_before(index).is_none() {
            return Flow::Again;
        }
        self.ask_workers(index, question)
    }

    /// Puts a client's question to every worker; the sum of their answers is the reply.
    pub(super) fn ask_workers(&mut self, index: ClientId, question: Question) -> Flow {
        let Some(asker) = self.expect_reply(index) else { return Flow::Stop };
        self.counters.requests_local.add(1);
        self.ask_workers_for(asker, question, Then::Reply);
        self.keep_outstanding(index)
    }

    /// Puts a question to every worker that has anything to say to it.
    pub(super) fn ask_workers_for(&mut self, asker: Option<Asker>, question: Question, then: Then) {
        let has_subscriptions = |worker: &usize| self.shared.counters[*worker].subscriptions.value() > 0;
        let others = (0..self.shared.counters.len()).filter(|worker| *worker != self.number);
        let concerns_all = matches!(question, Question::Find { .. });
        let asked: Vec<usize> = others.filter(|worker| concerns_all || has_subscriptions(worker)).collect();
        let asking = Asking {
            asker,
            question: question.clone(),
            then,
            awaited: asked.len() + 1,
            asked_us: self.now.mono_us,
            names: BTreeSet::new(),
            counts: Vec::new(),
        };
        let handle = self.subscriptions.askings.0.insert(asking);
        let inquiry = SubscriptionInquiry { from: self.number, handle, question };
        for worker in asked {
            let mail = Mail::AskSubscriptions(Box::new(inquiry.clone()));
            self.actions.push_back(Action::Service(ServiceAction::Post { worker, mail }));
            self.is_busy = true;
        }
        let answer = self.answer_subscriptions(inquiry);
        self.take_subscriptions(answer);
    }

    /// Looks for the client that is to be told in a client's place.
    pub(crate) fn find_redirect(&mut self, index: ClientId, seq: Seq, id: u64, wanted: TrackingOptions) {
        let Some(session) = self.clients.sessions.handle(index) else { return };
        let asker = Asker { session, seq };
        self.is_busy = true;
        self.ask_workers_for(Some(asker), Question::Find { id }, Then::Redirect(wanted));
    }

    /// Another worker asks.
    pub(crate) fn tell_subscriptions(&mut self, inquiry: SubscriptionInquiry) {
        let from = inquiry.from;
        let mail = Mail::TellSubscriptions(Box::new(self.answer_subscriptions(inquiry)));
        self.actions.push_back(Action::Service(ServiceAction::Post { worker: from, mail }));
    }

    fn answer_subscriptions(&mut self, inquiry: SubscriptionInquiry) -> SubscriptionAnswer {
        let SubscriptionInquiry { handle, question, .. } = inquiry;
        let mut answer = SubscriptionAnswer { handle, names: Vec::new(), counts: Vec::new() };
        let registries = &self.subscriptions.registries;
        match question {
            Question::Names { kind, pattern, scope } => {
                let is_asked = |name: &[u8]| pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, name));
                answer.names = self.subscriptions.names_for(&self.config, &scope, kind, is_asked);
            }
            Question::Patterns => {
                let registry = &registries[Kind::Pattern as usize];
                answer.names = registry.active_from(0).map(|id| registry.name(id).into()).collect();
            }
            Question::Counts { kind, names, scope } => {
                let count = |name: &[u8]| self.subscriptions.count_for(&self.config, &scope, kind, name) as i64;
                answer.counts = names.iter().map(|name| count(name)).collect();
            }
            Question::Receivers { kind, channel, node } => {
                let node = self.config.find_node(|known| *known.name == *node);
                answer.counts =
                    vec![node.map_or(0, |node| self.subscriptions.surplus(&self.config, kind, &channel, node))];
            }
            Question::Find { id } => {
                let found = self.clients.sessions.iter().find(|(_, session)| session.id == id);
                if let Some(handle) = found.and_then(|(index, _)| self.clients.sessions.handle(index)) {
                    let worker = self.number as i64 + 1;
                    answer.counts = vec![worker, i64::from(handle.index.number()), i64::from(handle.generation)];
                }
            }
            Question::Publish { kind, channel, payload } => {
                answer.counts = vec![self.deliver_here(kind, &channel, &payload)];
            }
        }
        answer
    }

    /// A worker has answered.
    pub(crate) fn take_subscriptions(&mut self, answer: SubscriptionAnswer) {
        let Some(asking) = self.subscriptions.askings.0.get_mut(answer.handle) else { return };
        asking.awaited -= 1;
        asking.names.extend(answer.names);
        asking.counts.resize(answer.counts.len().max(asking.counts.len()), 0);
        asking.counts.iter_mut().zip(answer.counts).for_each(|(sum, count)| *sum += count);
        if asking.awaited == 0 {
            self.finish_asking(answer.handle);
        }
    }

    fn finish_asking(&mut self, handle: Handle) {
        let Some(asking) = self.subscriptions.askings.0.remove(handle.index) else { return };
        let Some(asker) = asking.asker else { return };
        let base = if let Then::Add(base) = asking.then { base } else { 0 };
        if let (Then::Redirect(wanted), Question::Find { id }) = (asking.then, &asking.question) {
            let found = match asking.counts[..] {
                [worker, index, generation] if worker > 0 => Some(Redirect {
                    id: *id,
                    worker: worker as usize - 1,
                    session: ClientId::handle(index as u32, generation as u32),
                }),
                _ => None,
            };
            return self.redirect_tracking(asker.session, asker.seq, wanted, found);
        }
        let Some(session) = self.clients.sessions.get_mut(asker.session) else { return };
        let mut out = Vec::new();
        let mut reply = Encoder::new(&mut out, session.protocol);
        match asking.question {
            Question::Names { .. } => {
                reply.array(asking.names.len());
                asking.names.iter().for_each(|name| reply.bulk(name));
            }
            Question::Patterns => reply.integer(asking.names.len() as i64),
            Question::Counts { names, .. } => {
                reply.array(names.len() * 2);
                for (place, name) in names.iter().enumerate() {
                    reply.bulk(name);
                    reply.integer(asking.counts.get(place).copied().unwrap_or_default());
                }
            }
            Question::Find { .. } => return,
            Question::Receivers { .. } | Question::Publish { .. } => {
                reply.integer((base + asking.counts.iter().sum::<i64>()).max(0));
            }
        }
        self.clients.feed(asker.session, asker.seq, &out, true);
    }

    /// Questions that a worker has not answered in time are answered with what is known. Returns whether any wait.
    pub(crate) fn expire_askings(&mut self) -> bool {
        let now_us = self.now.mono_us;
        let waiting = self.subscriptions.askings.0.iter();
        let due: Vec<u32> =
            waiting.filter(|(_, a)| now_us.saturating_sub(a.asked_us) > QUESTION_US_MAX).map(|(i, _)| i).collect();
        for index in due {
            if let Some(handle) = self.subscriptions.askings.0.handle(index) {
                self.finish_asking(handle);
            }
        }
        !self.subscriptions.askings.0.is_empty()
    }
}
