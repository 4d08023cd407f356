//! Requests of sessions in a rare state. An ordinary session pays one test for all of them and never comes here.
//!
//! Each state has one owner, which is asked in the order of [`crate::session::SessionFlags::ORDER`]: the owner that deals with the request ends the
//! asking, and a request that none deals with goes on as in an ordinary session. That order alone decides what a refused
//! request may leave behind: the rights are asked first, and everything that has an effect (tracking, queueing, routes and
//! their counts) comes behind them. Commands that no row describes follow the same order in [`crate::request::unknown_command`].

use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::hooks::Verdict;
use crate::ids::ClientId;
use crate::session::{Flow, SessionFlags};
use respool_command::{Command, Execute, Row, TransactionsCommand, UnknownCommand, text as texts};
use respool_wire::{Args, Request};

/// The program around the worker may refuse a request, hold it or close its connection. One that it has let pass is not asked about again, though it was put back.
pub(crate) fn ask_hooks<E: Execute>(
    env: &mut Env<E>,
    index: ClientId,
    row: &'static Row,
    args: Args<'_>,
) -> Option<Flow> {
    let number = env.counters.requests.value();
    let details = &mut env.clients.sessions.at_mut(index)?.details;
    let verdict = match details.passed_at == number {
        true => Verdict::Pass,
        false => env.shared.hooks.judge(&details.peer, row, args),
    };
    match verdict {
        Verdict::Pass => {
            details.passed_at = number;
            None
        }
        Verdict::Refuse(words) => Some(env.refuse_for_ours(index, error_text::verbatim(&words))),
        Verdict::Hold => {
            env.clients.mark_held(index);
            Some(Flow::Again)
        }
        Verdict::Close => {
            env.close_client(index);
            Some(Flow::Stop)
        }
    }
}

impl<E: Execute> Env<E> {
    /// Refuses a request before its session's states were asked about queueing: its command does not exist, or not with so
    /// many arguments, or the client may not use it. A block that is being queued is spoilt by that.
    #[cold]
    pub(crate) fn refuse_unread(&mut self, index: ClientId, error: impl Into<ErrorReply>) -> Flow {
        self.clients.spoil_transaction(index);
        self.refuse_spoilt(index, error)
    }

    /// The same for a reason that a server would not have: behind EXEC it would have selected what the block selects.
    #[cold]
    pub(crate) fn refuse_for_ours(&mut self, index: ClientId, error: impl Into<ErrorReply>) -> Flow {
        self.clients.spoil_transaction_for_ours(index);
        self.refuse_spoilt(index, error)
    }

    fn refuse_spoilt(&mut self, index: ClientId, error: impl Into<ErrorReply>) -> Flow {
        self.note_secret();
        self.clients.spend_mark(index);
        if self.cuts_off_unauthenticated(index) {
            return Flow::Stop;
        }
        self.refuse(index, error)
    }

    /// Refuses a request of a command that exists. As in Redis, an EXEC that is refused ends its transaction, and the error says so.
    #[cold]
    pub(crate) fn refuse_known(&mut self, index: ClientId, row: &'static Row, error: impl Into<ErrorReply>) -> Flow {
        if row.command != Command::Transactions(TransactionsCommand::Exec) {
            return self.refuse_unread(index, error);
        }
        self.leave_transaction(index);
        self.refuse_unread(index, error_text::aborted(&error.into()))
    }

    /// Refuses a request with an unknown command.
    #[cold]
    pub(crate) fn refuse_unknown(&mut self, index: ClientId, unknown: UnknownCommand, request: &Request<'_>) -> Flow {
        if let Some(flow) = self.is_early(index, request) {
            return flow;
        }
        self.refuse_unread(index, ErrorReply::of(|words| unknown.write_text(request.args, words)))
    }

    /// Refuses a request with a wrong number of arguments. EXEC then ends its transaction.
    #[cold]
    pub(crate) fn refuse_arity(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        if let Some(flow) = self.is_early(index, request) {
            return flow;
        }
        if row.command == Command::Transactions(TransactionsCommand::Exec) {
            self.leave_transaction(index);
        }
        self.refuse_unread(index, ErrorReply::of(|words| texts::wrong_arity(row, words)))
    }

    /// Whether the client has to wait although its request will only be refused: that counts like any other, once.
    pub(crate) fn is_early(&mut self, index: ClientId, request: &Request<'_>) -> Option<Flow> {
        let is_limited = self.clients.sessions.at(index)?.flags.has(SessionFlags::LIMITED);
        if is_limited { self.ask_limited(index, request) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::SessionFlags;
    use crate::session::PauseReasons;

    #[test]
    fn reasons_to_pause_are_distinct() {
        let mut all = PauseReasons::default();
        for (reason, name) in PauseReasons::ALL {
            assert!(!all.has(reason), "{name}");
            all.add(reason);
        }
        for (reason, name) in PauseReasons::ALL {
            assert!(all.has(reason), "{name}");
            all.remove(reason);
        }
        assert!(all.is_none());
    }

    #[test]
    fn states_are_distinct() {
        let mut all = SessionFlags::default();
        assert!(all.is_none());
        for state in SessionFlags::ORDER {
            assert!(!all.has(state));
            all.add(state);
        }
        for state in SessionFlags::ORDER {
            all.remove(state);
            assert!(!all.has(state));
        }
        assert!(all.is_none());
    }
}
