//! Every bound of this crate, with its reason. Redis has none of them: there, a client that may change users may fill the memory.

/// Users of one snapshot. Every one costs a line of the ACL file and half a kilobyte.
pub const USERS_MAX: usize = 100_000;

/// Passwords of one user. An attempt to authenticate compares with all of them, always.
pub const PASSWORDS_MAX: usize = 256;

/// Selectors of one user, the first one included. A request may be checked against all of them.
pub const SELECTORS_MAX: usize = 256;

/// Key patterns, and channel patterns, of one selector. A key is compared with all of them, and each new one with those
/// that are there.
pub const PATTERNS_MAX: usize = 4_096;

/// First arguments that are allowed of one command.
pub const FIRST_ARGUMENTS_MAX: usize = 1_024;

/// Bytes of the rules that one user may have. A user's rules are told as one line.
pub const RULE_BYTES_MAX: usize = 1 << 20;

/// Entries of the log of denials that are looked at for one that is alike, as in Redis.
pub const LOG_COMPARED_MAX: usize = 10;

/// Entries of the log of denials that are kept, as in Redis unless it is told otherwise.
pub const LOG_ENTRIES_MAX: usize = 128;

/// Bytes of a key, channel or name that the log of denials keeps.
pub const LOG_OBJECT_BYTES_MAX: usize = 1_024;

/// Bits of the longest password that `ACL GENPASS` makes.
pub const GENPASS_BITS_MAX: usize = 4_096;
