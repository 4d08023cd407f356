//! What makes something a local node: it executes requests, lets time pass, and owns what its clients block on and watch.
//!
//! A request that blocks is parked under a [`WaitId`]. The node knows which keys it waits for, of what type, and in which order
//! parked requests are served; the caller knows the client, its timeout and when it leaves. What a client watches the node
//! keeps by the client's number until the caller ends it: the caller runs the commands of a transaction one by one, and asks
//! [`Execute::is_dirty`] before the first.

use respool_wire::{Args, ArgsBuf, Encoder, Protocol};

use crate::Row;
use crate::events::{Change, Wanted};

/// Numbers from here on are no clients': they watch keys that are moved elsewhere, and for those whatever `DUMP` shows is a change, also
/// what is none for `WATCH`.
pub const MOVERS_FROM: u64 = 1 << 63;

/// Something that executes requests in this process.
pub trait Execute {
    /// Runs one request and writes its reply, unless it is parked. The caller has resolved the row and checked the arity.
    ///
    /// The request is borrowed: whatever is kept of it is copied. A session that has parked a request sends no other one
    /// before the parked one is answered or cancelled.
    fn execute(
        &mut self,
        row: &'static Row,
        args: Args<'_>,
        session: &mut SessionView,
        reply: &mut Encoder<'_>,
    ) -> Outcome;

    /// Lets time pass: expires what has expired. Returns when it wants to be called next, or `None` if only a request can make it
    /// necessary.
    fn tick(&mut self, now: Millis) -> Option<Millis>;

    /// When the next [`Execute::tick`] is due, if a deadline that a request has set since the last one is earlier than what that one returned.
    /// `None`: the time that it returned stands.
    fn sooner_tick(&self, _now: Millis) -> Option<Millis> {
        None
    }

    /// Expires all whose deadline is that time or earlier, however long it takes. A node that keeps what has expired for a reason keeps
    /// it.
    fn expire_due(&mut self, _now: Millis) {}

    /// Serves one parked request that has become ready, and writes its reply in the protocol in which it was parked. Keys are
    /// served in the order in which they became ready, the requests of a key in the order in which they came. `None`: no
    /// request is ready, or a script has not ended.
    ///
    /// To be called until `None` after each request that is no part of a transaction, after each transaction, and after
    /// [`Execute::tick`].
    fn poll_ready(&mut self, _now: Millis, _reply: &mut Vec<u8>) -> Option<WaitId> {
        None
    }

    /// Forgets a parked request. One that has been served is forgotten already.
    fn cancel(&mut self, _wait: WaitId) {}

    /// The number of keys that parked requests wait for.
    fn awaited_keys(&self) -> usize {
        0
    }

    /// The command that a script calls, after [`Outcome::Asks`].
    fn asked(&mut self) -> Option<Asked> {
        None
    }

    /// Gives the script the reply to [`Execute::asked`].
    fn answer_asked(&mut self, _reply: &[u8]) {}

    /// The next script that begins has these rights, to its end; `None`: it may do everything.
    fn set_script_rights(&mut self, _rights: Option<Box<dyn ScriptRights>>) {}

    /// Whether the keys that the next script reads are kept for [`Execute::script_reads`].
    fn keep_script_reads(&mut self, _is_wanted: bool) {}

    /// The keys that commands of the script that ended last have read, if they were to be kept. `None`: more than are kept.
    fn script_reads(&mut self) -> Option<Vec<Box<[u8]>>> {
        None
    }

    /// What scripts have called since this was last asked.
    fn script_calls(&mut self) -> ScriptCalls {
        ScriptCalls::default()
    }

    /// Another node with the same keys, for a debugger whose changes no other client is to see. It has its own time and its own limits, and
    /// nothing of what clients have at this one. `Err`: there is none, and why.
    fn copy_for_debugging(&self, _now: Millis) -> Result<Self, &'static str>
    where
        Self: Sized,
    {
        Err("this server has no debugger of scripts")
    }

    /// Whether what scripts call is kept for [`Execute::script_lines`] from now on.
    fn watch_scripts(&mut self, _is_watched: bool) {}

    /// What scripts have called since this was last asked, with the databases. To be asked after each call of a request that runs a
    /// script, as it is bounded.
    fn script_lines(&mut self) -> Vec<(u32, ArgsBuf)> {
        Vec::new()
    }

    /// A client watches keys of a database from now on, and watches on what it watched. Returns about how many bytes the node keeps
    /// of all that the client watches.
    fn watch(&mut self, _client: u64, _database: u32, _now: Millis, _keys: Args<'_>) -> usize {
        0
    }

    /// Whether something has changed, or expired, that a client watches: its transaction must not run.
    fn is_dirty(&mut self, _client: u64, _now: Millis) -> bool {
        false
    }

    /// A client watches nothing any more.
    fn unwatch(&mut self, _client: u64) {}

    /// While it is set, requests leave the use of keys as it was, but for `TOUCH`: those of a client that said `CLIENT NO-TOUCH`.
    /// A parked request goes on as it was parked. Whether it was set until now.
    fn spare_uses(&mut self, _is_spared: bool) -> bool {
        false
    }

    /// While it is set, no key goes to make room, there is room for everything, and a key whose time has come is not there but stays
    /// stored: clients pause.
    fn keep_keys(&mut self, _is_kept: bool) {}

    /// Makes room before a transaction that may add data, or behind a new limit; whether there is some. Within a transaction none is
    /// made: its requests are marked as [`SessionView::is_in_transaction`].
    fn make_room(&mut self, _now: Millis) -> bool {
        true
    }

    /// Gives to `see` what has changed since it was last asked, as far as it was wanted: keys first, then events, each in the order
    /// in which they happened. More keys than have changed is never wrong; events are exact. What is kept from now on, until it
    /// is asked again, is what `wanted` says.
    fn changes(&mut self, _wanted: Wanted, _see: &mut dyn FnMut(Change<'_>)) {}
}

/// A point in time in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

/// A parked request. Numbers are not used again, and later requests have higher ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitId(pub u64);

/// What a local node may know of the session that asks, and may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionView {
    /// The database that the session has selected.
    pub database: u32,
    /// The time of the request.
    pub now: Millis,
    /// The number under which the session is known to clients (`CLIENT ID`).
    pub client_id: u64,
    /// The request is executed again, because it was [`Outcome::Unfinished`].
    pub has_waited: bool,
    /// The request is part of a transaction. It must not be parked: it is answered as if its time had run out. No room is made for it.
    pub is_in_transaction: bool,
    /// A script of the node calls the command.
    pub is_in_script: bool,
    /// The session has a debugger: its next script stops at its first line. A script under way whose session has none any more has been left
    /// by its client.
    pub debugs: bool,
}

/// How a local node left a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The reply was written.
    Done,
    /// The request is blocked. No reply was written; [`Execute::poll_ready`] gives it.
    Parked(WaitId),
    /// A script that takes longer than one call may. No reply was written; it goes on when the request is executed again.
    Unfinished,
    /// A script is stopped by its debugger, and what that says is written. It goes on when the request is executed again, with the next
    /// command of the debugger's client for its arguments; with none, that client has left and the script runs to its end.
    Stopped,
    /// A script calls a command that is not the node's ([`Execute::asked`]), or has made so many changes that they have to be taken
    /// first ([`Execute::changes`]). No reply was written; it goes on when the request is executed again, which has to be at once.
    Asks,
}

/// What scripts have called, for the counts of commands and errors.
#[derive(Debug, Default)]
pub struct ScriptCalls {
    /// Each command that was called, once.
    pub commands: Vec<ScriptCommand>,
    /// Codes of errors that scripts received, with their counts.
    pub errors: Vec<(String, u64)>,
    /// The last call had an error.
    pub has_failed_last: bool,
}

/// How often scripts have called a command.
#[derive(Debug)]
pub struct ScriptCommand {
    /// The command.
    pub row: &'static Row,
    /// Times it was run.
    pub calls: u64,
    /// Times it was refused before that.
    pub rejected: u64,
    /// Times it was run and replied an error.
    pub failed: u64,
}

impl ScriptCalls {
    /// Errors that differ; others are left out. Scripts cannot choose the codes of commands' errors.
    const ERRORS_MAX: usize = 64;

    /// A script has called a command, which was run unless it is refused, and receives `reply`.
    pub fn note(&mut self, row: Option<&'static Row>, was_run: bool, reply: &[u8]) {
        let line = reply.strip_prefix(b"-");
        self.has_failed_last = line.is_some();
        if let Some(row) = row {
            let known = self.commands.iter().position(|called| std::ptr::eq(called.row, row));
            let place = known.unwrap_or_else(|| {
                self.commands.push(ScriptCommand { row, calls: 0, rejected: 0, failed: 0 });
                self.commands.len() - 1
            });
            let counts = &mut self.commands[place];
            counts.calls += u64::from(was_run);
            counts.rejected += u64::from(!was_run);
            counts.failed += u64::from(was_run && line.is_some());
        }
        let Some(line) = line else { return };
        let code = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        if let Some((_, count)) = self.errors.iter_mut().find(|(known, _)| known.as_bytes() == code) {
            *count += 1;
        } else if self.errors.len() < Self::ERRORS_MAX {
            self.errors.push((String::from_utf8_lossy(code).into_owned(), 1));
        }
    }
}

/// The rights of the user whose request runs a script.
pub trait ScriptRights: std::fmt::Debug + Send {
    /// The text of the error if the script may not call a command. The number of arguments need not be right.
    fn refusal(&self, row: &'static Row, args: Args<'_>) -> Option<&'static str>;

    /// A script has called a command that it may not call.
    fn note_refusal(&self, row: &'static Row, args: Args<'_>);
}

/// A command that a script calls and that its node does not have.
#[derive(Debug)]
pub struct Asked {
    /// The row; the arity has been checked.
    pub row: &'static Row,
    /// The request.
    pub args: ArgsBuf,
    /// The protocol in which the script reads replies.
    pub protocol: Protocol,
    /// The database that the script has selected.
    pub database: u32,
}
