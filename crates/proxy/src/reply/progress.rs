//! What a reply, or its loss, means to the request that waits for it.

/// Whether a task waits for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Replies are still due.
    Waits,
    /// It is through: it gets no more replies and is concluded.
    Through,
    /// The same, because no node answers so: this reply is another request's, and so are those behind it.
    OutOfStep,
}

/// Why a reply will not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LostReply {
    /// The request never left: it may be sent again, to any node.
    Unsent,
    /// It left, at least in part: its outcome is not known.
    Unknown,
    /// The same, and the connection is still there: the reply comes late, or never.
    Late,
}

/// Whether replies are wanted (`CLIENT REPLY`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    #[default]
    On,
    /// None is, until `CLIENT REPLY ON`.
    Off,
    /// `CLIENT REPLY SKIP` was just read: the next request's reply is not wanted.
    SkipNext,
}

impl ReplyMode {
    /// A reply that was not wanted has been left out.
    pub(crate) fn pass(&mut self) {
        if *self == Self::SkipNext {
            *self = Self::On;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ReplyMode;

    #[test]
    fn skip_leaves_out_one_reply_and_off_all() {
        let mut modes = [ReplyMode::SkipNext, ReplyMode::Off, ReplyMode::On];
        modes.iter_mut().for_each(ReplyMode::pass);
        assert_eq!(modes, [ReplyMode::On, ReplyMode::Off, ReplyMode::On]);
    }
}
