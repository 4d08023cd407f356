//! What workers tell each other: questions about clients, and orders from outside.

use crate::blocking::request::Release;
use crate::config::Config;
use crate::limits::QUESTION_US_MAX;
use crate::pubsub::{SubscriptionAnswer, SubscriptionInquiry};
use crate::session::id::{ClientHandle, ClientId};
use crate::session::{Asker, Flow, Pause, Session};
use crate::slab::{Handle, Slab};
use crate::tracking::{LostRedirect, Redirected};
use crate::worker::Worker;
use respool_command::{Execute, text as texts};
use respool_connection::{Action, ServiceAction};
use respool_wire::Encoder;
use std::cmp::Ordering;
use std::sync::Arc;

/// What may be sent to a worker.
#[derive(Clone, Debug)]
pub enum Mail {
    /// Another worker wants to know.
    Ask(Box<Inquiry>),
    /// Another worker has answered.
    Tell(Box<Answer>),
    /// About the console.
    Console(Box<crate::admin::AdminMessage>),
    /// Stop accepting, answer what has been asked, then end.
    Drain,
    /// Stop accepting, since another process does; serve those who are there until the drain's time is over, then drain.
    Retire,
    /// End at once.
    Stop,
    /// To oneself: secrets have been read, and are to be overwritten.
    Wipe,
    /// Another worker wants to know about channels.
    AskSubscriptions(Box<SubscriptionInquiry>),
    /// Another worker has answered about channels.
    TellSubscriptions(Box<SubscriptionAnswer>),
    /// A client is told of changed keys in the place of another.
    Redirected(Box<Redirected>),
    /// The client that was to be told in the place of this one has gone.
    RedirectionBroken(LostRedirect),
    /// Other settings hold from now on.
    Reload(Arc<Config>),
    /// A process that ran before has left orders, see [`crate::Shared::go_on_with_orders`].
    Orders,
}

/// A question from one worker to another.
#[derive(Clone, Debug)]
pub struct Inquiry {
    from: usize,
    handle: Handle,
    question: Question,
    filter: ClientFilter,
}

/// The answer to it.
#[derive(Clone, Debug)]
pub struct Answer {
    handle: Handle,
    lines: Vec<(u64, String)>,
    killed: usize,
}

/// What is asked about clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Describe them; the request that asks for it has so many bytes.
    List { request_bytes: usize },
    /// Close the one with this address; it is an error if there is none.
    KillOne,
    /// Close them and say how many there were.
    KillSome,
    /// Go by the users that are in force now; how many were removed, if that was asked.
    Users {
        /// Users that there were.
        removed: Option<u32>,
    },
    /// Let them wait no longer, if they do.
    Unblock(Release),
    /// Adopt the pause of the standing orders (`CLIENT PAUSE`).
    ClientPause,
}

/// Which clients are meant: those that fit everything that is said.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientFilter {
    pub(crate) ids: Option<Ids>,
    pub(crate) address: Option<String>,
    pub(crate) local_address: Option<String>,
    pub(crate) user: Option<Vec<u8>>,
    /// A client that is not meant whatever else fits.
    pub(crate) spared: Option<u64>,
    /// Only clients of this kind.
    pub(crate) kind: Option<ClientKind>,
}

/// Numbers of clients. A request may name a million of them, and every client of every worker is looked for among them: they are
/// sorted once, and all workers share them.
#[derive(Clone, Debug)]
pub(crate) struct Ids(Arc<[u64]>);

impl Ids {
    pub(crate) fn of(mut ids: Vec<u64>) -> Self {
        ids.sort_unstable();
        ids.dedup();
        Self(ids.into())
    }

    pub(crate) fn has(&self, id: u64) -> bool {
        self.place(id, |one, other| one.cmp(other)).is_ok()
    }

    fn place(&self, id: u64, mut compare: impl FnMut(&u64, &u64) -> Ordering) -> Result<usize, usize> {
        self.0.binary_search_by(|known| compare(known, &id))
    }
}

/// What a client is to the others, as Redis tells clients apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientKind {
    Normal,
    /// It subscribes to something.
    Pubsub,
    /// It follows a node.
    Replica,
    /// A node follows it. None of a proxy's ever is.
    Master,
}

impl ClientKind {
    fn of(session: &Session) -> Self {
        if session.is_replica() {
            Self::Replica
        } else if session.subscriber.as_ref().is_some_and(|s| s.is_subscribed()) {
            Self::Pubsub
        } else {
            Self::Normal
        }
    }
}

impl ClientFilter {
    pub(crate) fn matches(&self, session: &Session) -> bool {
        let peer = &session.details.peer;
        self.spared != Some(session.id)
            && self.kind.is_none_or(|kind| kind == ClientKind::of(session))
            && self.ids.as_ref().is_none_or(|ids| ids.has(session.id))
            && self.address.as_ref().is_none_or(|a| *a == peer.address)
            && self.local_address.as_ref().is_none_or(|a| *a == peer.local_address)
            && self.user.as_ref().is_none_or(|user| session.user_name() == user)
    }
}

/// A question that waits for workers to answer.
#[derive(Debug)]
struct Pending {
    /// `None` if no reply is wanted.
    asker: Option<Asker>,
    question: Question,
    awaited: usize,
    asked_us: u64,
    lines: Vec<(u64, String)>,
    killed: usize,
}

/// The questions that clients of this worker have asked.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    waiting: Slab<Pending>,
}

impl Questions {
    /// How many wait for answers.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

impl<E: Execute> Worker<E> {
    /// Puts a question about clients to every worker, this one included.
    pub(crate) fn ask_all(&mut self, index: ClientId, question: Question, filter: ClientFilter) -> Flow {
        // Such an answer may be large and come late: one at a time, so that a pipeline of questions costs no more than one.
        if matches!(question, Question::List { .. }) && self.settle_before(index).is_none() {
            return Flow::Again;
        }
        let Some(asker) = self.expect_reply(index) else { return Flow::Stop };
        let workers = self.shared.counters.len();
        let pending =
            Pending { asker, question, awaited: workers, asked_us: self.now.mono_us, lines: Vec::new(), killed: 0 };
        let handle = self.questions.waiting.insert(pending);
        let inquiry = Inquiry { from: self.number, handle, question, filter };
        for worker in (0..workers).filter(|w| *w != self.number) {
            self.actions
                .push_back(Action::Service(ServiceAction::Post { worker, mail: Mail::Ask(Box::new(inquiry.clone())) }));
        }
        self.is_busy = true;
        let is_closing = |worker: &Self| worker.clients.sessions.at(index).is_some_and(|s| s.pause.has(Pause::CLOSING));
        let was_closing = is_closing(self);
        let answer = self.answer_inquiry(&inquiry, self.clients.sessions.handle(index));
        self.take_answer(answer);
        // A client that has just closed itself is not read on.
        if is_closing(self) && !was_closing {
            return Flow::Stop;
        }
        self.keep_outstanding(index)
    }

    pub(crate) fn take_mail(&mut self, mail: Mail) {
        match mail {
            Mail::Ask(inquiry) => {
                let answer = self.answer_inquiry(&inquiry, None);
                let mail = Mail::Tell(Box::new(answer));
                self.actions.push_back(Action::Service(ServiceAction::Post { worker: inquiry.from, mail }));
            }
            Mail::Tell(answer) => self.take_answer(*answer),
            Mail::Console(letter) => self.take_letter(*letter),
            Mail::Redirected(redirected) => self.take_redirected(*redirected),
            Mail::RedirectionBroken(broken) => self.break_redirection(broken),
            Mail::AskSubscriptions(inquiry) => self.tell_subscriptions(*inquiry),
            Mail::TellSubscriptions(answer) => self.take_subscriptions(*answer),
            Mail::Drain => self.begin_drain(),
            Mail::Retire => self.begin_retirement(),
            Mail::Stop => self.actions.push_back(Action::Service(ServiceAction::Exit)),
            Mail::Reload(config) => self.adopt(config),
            Mail::Wipe => self.wipe_reads(),
            Mail::Orders => self.take_up_orders(),
        }
    }

    fn answer_inquiry(&mut self, inquiry: &Inquiry, asker: Option<ClientHandle>) -> Answer {
        let Inquiry { handle, question, filter, .. } = inquiry;
        let mut answer = Answer { handle: *handle, lines: Vec::new(), killed: 0 };
        if let Question::Users { .. } = question {
            self.adopt_users(asker.map(|asker| asker.index));
        } else if let Question::ClientPause = question {
            self.adopt_client_pause();
        } else if let Question::Unblock(release) = question {
            answer.killed = filter.ids.as_ref().map_or(0, |ids| self.unblock_clients(ids, *release));
        } else if let Question::List { request_bytes } = *question {
            let matched = self.clients.sessions.iter().filter(|(_, s)| filter.matches(s));
            let describe = |index| {
                let is_asking = asker.is_some_and(|asker| asker.index == index);
                self.describe_client(index, is_asking.then_some(request_bytes))
            };
            answer.lines = matched.map(|(index, s)| (s.id, describe(index))).collect();
        } else {
            answer.killed = self.kill_clients(filter, asker);
        }
        answer
    }

    fn take_answer(&mut self, answer: Answer) {
        let Some(pending) = self.questions.waiting.get_mut(answer.handle) else { return };
        pending.awaited -= 1;
        pending.killed += answer.killed;
        pending.lines.extend(answer.lines);
        if pending.awaited == 0 {
            self.finish_question(answer.handle);
        }
    }

    fn finish_question(&mut self, handle: Handle) {
        let Some(mut pending) = self.questions.waiting.remove(handle.index) else { return };
        let Some(asker) = pending.asker else { return };
        let Some(session) = self.clients.sessions.get_mut(asker.session) else { return };
        let mut out = Vec::new();
        let mut reply = Encoder::new(&mut out, session.protocol);
        match pending.question {
            Question::List { .. } => {
                pending.lines.sort_unstable();
                let mut text = String::new();
                for (_, line) in &pending.lines {
                    text.push_str(line);
                    text.push('\n');
                }
                reply.verbatim("txt", text.as_bytes());
            }
            Question::KillOne if pending.killed == 0 => reply.error(texts::NO_SUCH_CLIENT.as_bytes()),
            Question::KillOne | Question::ClientPause => reply.raw(respool_wire::replies::OK),
            Question::Users { removed: None } => reply.raw(respool_wire::replies::OK),
            Question::Users { removed: Some(removed) } => reply.integer(removed.into()),
            Question::KillSome | Question::Unblock(_) => reply.integer(pending.killed as i64),
        }
        self.clients.feed(asker.session, asker.seq, &out, true);
    }

    /// Questions that a worker has not answered in time are answered with what is known.
    pub(crate) fn expire_questions(&mut self) -> bool {
        let now_us = self.now.mono_us;
        let waiting = self.questions.waiting.iter();
        let due: Vec<u32> =
            waiting.filter(|(_, p)| now_us.saturating_sub(p.asked_us) > QUESTION_US_MAX).map(|(i, _)| i).collect();
        for index in due {
            if let Some(handle) = self.questions.waiting.handle(index) {
                self.finish_question(handle);
            }
        }
        !self.questions.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Ids;

    #[test]
    fn a_client_is_found_among_many_numbers_in_few_steps() {
        let ids = Ids::of((0..100_000).rev().flat_map(|id| [2 * id, 2 * id]).collect());
        for id in [0, 2, 77_776, 199_998] {
            assert!(ids.has(id) && !ids.has(id + 1));
        }
        let mut steps = 0;
        let _ = ids.place(77_777, |one, other| {
            steps += 1;
            one.cmp(other)
        });
        assert!(steps < 20, "{steps}");
    }
}
