//! The numbers of which serialised values are made.

/// The input is invalid: no server can have written it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Broken;

/// The type byte of a value.
pub(crate) mod kind {
    pub(crate) const STRING: u8 = 0;
    pub(crate) const LIST: u8 = 1;
    pub(crate) const SET: u8 = 2;
    pub(crate) const SORTED_SET_TEXT: u8 = 3;
    pub(crate) const HASH: u8 = 4;
    pub(crate) const SORTED_SET: u8 = 5;
    pub(crate) const HASH_ZIPMAP: u8 = 9;
    pub(crate) const LIST_ZIPLIST: u8 = 10;
    pub(crate) const SET_INTSET: u8 = 11;
    pub(crate) const SORTED_SET_ZIPLIST: u8 = 12;
    pub(crate) const HASH_ZIPLIST: u8 = 13;
    pub(crate) const QUICKLIST_ZIPLISTS: u8 = 14;
    pub(crate) const STREAM: u8 = 15;
    pub(crate) const HASH_LISTPACK: u8 = 16;
    pub(crate) const SORTED_SET_LISTPACK: u8 = 17;
    pub(crate) const QUICKLIST: u8 = 18;
    pub(crate) const STREAM_WITH_FIGURES: u8 = 19;
    /// Of Valkey 9: each field with its value and its deadline.
    pub(crate) const HASH_WITH_DEADLINES: u8 = 22;
}

/// The deadline of a field that has none, in a hash where others have one.
pub(crate) const NO_DEADLINE: i64 = -1;

/// The two highest bits of a length.
pub(crate) mod length {
    /// Six more bits.
    pub(crate) const SHORT: u8 = 0;
    /// Fourteen more bits.
    pub(crate) const MIDDLE: u8 = 1;
    /// The length follows in four or eight bytes.
    pub(crate) const LONG: u8 = 2;
    pub(crate) const FOUR_BYTES: u8 = 0x80;
    pub(crate) const EIGHT_BYTES: u8 = 0x81;
    /// No length: the six other bits are the encoding of a string.
    pub(crate) const SPECIAL: u8 = 3;
}

/// The encoding of a string that is not stored as plain bytes.
pub(crate) mod special {
    pub(crate) const ONE_BYTE: u8 = 0;
    pub(crate) const TWO_BYTES: u8 = 1;
    pub(crate) const FOUR_BYTES: u8 = 2;
    pub(crate) const COMPRESSED: u8 = 3;
}

/// The container of a node of a quicklist.
pub(crate) mod node {
    /// One element as plain bytes.
    pub(crate) const PLAIN: u64 = 1;
    pub(crate) const LISTPACK: u64 = 2;
}
