//! What is told of a command and not looked at while requests run: its arguments, its reply and its complexity.
//!
//! Owns: the columns as they stand in the tables ([`Usage`]), and the reading of their two notations, that of arguments
//! ([`Arguments`]) and that of replies ([`Returns`]). Both are read anew each time, without an allocation.

mod arguments;
mod returns;

pub use arguments::{Argument, ArgumentKind, Arguments, Repeat};
pub(crate) use returns::ReplySize;
pub use returns::{ReplyForm, ReplyType, ReplyTypes, Returns};

/// The columns of a row that are told.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// The arguments, in the notation of [`Arguments`].
    pub(crate) args: &'static str,
    /// The reply, in the notation of [`Returns`].
    pub(crate) reply: &'static str,
    /// How the time that it takes grows: `O(1)`. Empty if that cannot be said.
    pub complexity: &'static str,
    /// `connection`: it changes what a server says to this connection, or takes for granted of it, from then on.
    pub(crate) changes: &'static str,
}

impl Usage {
    /// Nothing is known.
    pub(crate) const NONE: Self = Self { args: "", reply: "", complexity: "", changes: "" };

    /// The arguments behind the name.
    pub const fn arguments(&self) -> Arguments {
        Arguments::of(self.args)
    }

    /// Whether it changes what holds for its connection from then on: its user, what it is told, how it is answered. A
    /// client that shares a connection among callers cannot let one of them do so.
    pub const fn changes_connection(&self) -> bool {
        !self.changes.is_empty()
    }

    /// What the reply is. `None`: that of a container, or it is not known.
    pub const fn returns(&self) -> Option<Returns> {
        if self.reply.is_empty() { None } else { Some(Returns::of(self.reply)) }
    }
}
