//! The two dialects of RESP.

/// Which dialect a connection speaks. A connection starts in [`Protocol::Resp2`] and changes only by `HELLO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// The five types of Redis 1.2 to 5: simple string, error, integer, bulk string, array.
    #[default]
    Resp2,
    /// RESP2 plus null, double, boolean, blob error, verbatim string, big number, map, set, attribute and push.
    Resp3,
}

impl Protocol {
    /// The number that `HELLO` takes and answers: 2 or 3.
    pub const fn version(self) -> u8 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }

    /// The dialect that `HELLO version` asks for, if it is one we speak.
    pub const fn from_version(version: i64) -> Option<Self> {
        match version {
            2 => Some(Self::Resp2),
            3 => Some(Self::Resp3),
            _ => None,
        }
    }
}
