//! What a command does with a key, in the words of Redis' key specifications.

use crate::bits::bits;

bits! {
    /// What a command does with a key. The names are those of `COMMAND INFO` and `COMMAND GETKEYSANDFLAGS`.
    pub struct KeyAccess(u16) {
        /// Reads the value, changes nothing.
        RO = "RO",
        /// Reads and changes the value or its metadata.
        RW = "RW",
        /// Overwrites the value whatever it was.
        OW = "OW",
        /// Deletes the key whatever it was.
        RM = "RM",
        /// What the value holds comes back to the user or is copied elsewhere.
        ACCESS = "access",
        /// What the value holds is changed.
        UPDATE = "update",
        /// Adds to the value; changes and deletes nothing of it.
        INSERT = "insert",
        /// Explicitly deletes some or all of it.
        DELETE = "delete",
        /// Routes like a key but is none: a sharded channel.
        NOT_KEY = "not_key",
        /// The specification may miss keys.
        INCOMPLETE = "incomplete",
        /// The request's options decide the true access.
        VARIABLE_FLAGS = "variable_flags",
    }
}

impl KeyAccess {
    /// Whether it is a key, as opposed to a sharded channel.
    pub const fn is_key(self) -> bool {
        !self.has(Self::NOT_KEY)
    }

    /// Whether a user needs the right to read the key.
    pub const fn needs_read(self) -> bool {
        self.has(Self::ACCESS)
    }

    /// Whether a user needs the right to write the key.
    pub const fn needs_write(self) -> bool {
        self.has_any(Self::UPDATE.with(Self::INSERT).with(Self::DELETE))
    }
}
