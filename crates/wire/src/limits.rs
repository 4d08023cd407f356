//! Every bound of the wire format, named, with its reason. All of them can be set; the constants are the defaults.
//!
//! None of these limits causes an allocation: memory grows with the bytes that were received. They say when a peer
//! has announced more than it may ever send, so that it is refused at once and not after the bytes have been paid for.

/// Arguments of one request in strict mode: 1 Mi, what Redis accepted before 7.0. A real request stays far below, and a
/// peer that announces more is broken or hostile.
pub const REQUEST_ELEMENTS_MAX: usize = 1 << 20;

/// Arguments of one request in lenient mode: the largest C `int`, the only bound that redis-server 7.0 checks. The embedded
/// server decodes leniently, but this bound of it is a setting, whose default is the strict one.
pub const REQUEST_ELEMENTS_MAX_LENIENT: usize = i32::MAX as usize;

/// Bytes of one bulk string: 512 MB, the default of Redis' `proto-max-bulk-len`.
pub const BULK_BYTES_MAX: usize = 512 << 20;

/// Bytes of one inline request without its newline, and in lenient mode of one unfinished head: Redis' 64 KB.
pub const INLINE_BYTES_MAX: usize = 64 << 10;

/// Bytes of one whole request: 1 GB, the default of Redis' `client-query-buffer-limit`.
pub const REQUEST_BYTES_MAX: usize = 1 << 30;

/// The most that [`RequestLimits::request_bytes_max`] can be set to: spans hold offsets of 32 bits.
pub const REQUEST_BYTES_CEILING: usize = u32::MAX as usize;

/// Arguments of one request before authentication: Redis' answer to CVE-2021-32675. `AUTH` and `HELLO` need fewer.
pub const UNAUTH_ELEMENTS_MAX: usize = 10;

/// Bytes of one argument before authentication: Redis' answer to CVE-2021-32675.
pub const UNAUTH_BULK_BYTES_MAX: usize = 16_384;

/// Elements of one aggregate reply: what 32 bits count, as the common C client library. Honest servers do send millions.
pub const REPLY_ELEMENTS_MAX: usize = u32::MAX as usize;

/// How deep aggregates of a reply may lie in each other. Real replies stay below ten, but a script that returns a table
/// which holds itself gets 7,995 levels out of Redis before its stack ends, and that reply has to pass: finding its end
/// costs 16 bytes a level for the four that were received.
pub const REPLY_DEPTH_MAX: usize = 10_000;

/// How deep a reply may be that is made into a tree of values: the C client libraries' number. Dropping one goes down as
/// many calls.
pub const VALUE_DEPTH_MAX: usize = 1_024;

/// Bytes of one line of a reply (simple string, error, double, big number) without its newline: 1 MiB. Errors of scripts
/// carry user data, so it is generous; a peer that never ends its line must be noticed all the same.
pub const REPLY_LINE_BYTES_MAX: usize = 1 << 20;

/// How doubtful request bytes are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strictness {
    /// For proxies: only the canonical form is accepted, and refused at the first wrong byte, so that
    /// the bytes of an accepted multibulk request equal its re-encoding.
    #[default]
    Strict,
    /// For the embedded server: as redis-server 7.0. The two bytes behind a bulk string and the byte behind a head's CR
    /// are skipped unseen, a head is judged only when its CR is there, and a NUL stops the search for a line's end.
    Lenient,
}

/// What one request may ask for. Passed to every call of [`RequestDecoder::decode`](crate::RequestDecoder::decode), so that
/// a session can change it, and holds the limits *in force*: after authentication take the other value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// How doubtful bytes are treated.
    pub strictness: Strictness,
    /// Most arguments of one multibulk request, the command's name included.
    pub elements_max: usize,
    /// Most bytes of one bulk string.
    pub bulk_bytes_max: usize,
    /// Most bytes of one inline request without its newline.
    pub inline_bytes_max: usize,
    /// Most bytes of one request from its first byte to its last; at most [`REQUEST_BYTES_CEILING`] counts.
    pub request_bytes_max: usize,
    /// As `elements_max`, with the answer that Redis gives to the unauthenticated. `usize::MAX` once authenticated.
    pub unauth_elements_max: usize,
    /// As `bulk_bytes_max`, with the answer that Redis gives to the unauthenticated. `usize::MAX` once authenticated.
    pub unauth_bulk_bytes_max: usize,
}

impl RequestLimits {
    /// The defaults for a session that may run commands.
    pub const fn authenticated(strictness: Strictness) -> Self {
        Self {
            strictness,
            elements_max: match strictness {
                Strictness::Strict => REQUEST_ELEMENTS_MAX,
                Strictness::Lenient => REQUEST_ELEMENTS_MAX_LENIENT,
            },
            bulk_bytes_max: BULK_BYTES_MAX,
            inline_bytes_max: INLINE_BYTES_MAX,
            request_bytes_max: REQUEST_BYTES_MAX,
            unauth_elements_max: usize::MAX,
            unauth_bulk_bytes_max: usize::MAX,
        }
    }

    /// The defaults for a session that must authenticate first: a few short arguments.
    pub const fn unauthenticated(strictness: Strictness) -> Self {
        Self {
            unauth_elements_max: UNAUTH_ELEMENTS_MAX,
            unauth_bulk_bytes_max: UNAUTH_BULK_BYTES_MAX,
            ..Self::authenticated(strictness)
        }
    }

    /// `request_bytes_max` as far as it counts.
    pub(crate) const fn request_bytes_in_force(&self) -> usize {
        if self.request_bytes_max < REQUEST_BYTES_CEILING { self.request_bytes_max } else { REQUEST_BYTES_CEILING }
    }
}

/// [`RequestLimits`] with the bounds of nearly every request computed in advance, for decoding many requests.
#[derive(Clone, Copy, Debug)]
pub struct RequestBounds {
    pub(crate) limits: RequestLimits,
    /// Arguments up to which a request is within every limit, authenticated or not.
    pub(crate) elements_max: usize,
    /// Bytes up to which a bulk string is within every limit, authenticated or not.
    pub(crate) bulk_bytes_max: usize,
    /// `request_bytes_max` as far as it counts.
    pub(crate) request_bytes_max: usize,
}

impl From<&RequestLimits> for RequestBounds {
    #[inline]
    fn from(limits: &RequestLimits) -> Self {
        Self {
            limits: *limits,
            elements_max: limits.elements_max.min(limits.unauth_elements_max),
            bulk_bytes_max: limits.bulk_bytes_max.min(limits.unauth_bulk_bytes_max),
            request_bytes_max: limits.request_bytes_in_force(),
        }
    }
}

impl Default for RequestLimits {
    /// Strict and authenticated.
    fn default() -> Self {
        Self::authenticated(Strictness::Strict)
    }
}

/// What one reply may announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Most bytes of one bulk string, blob error or verbatim string.
    pub bulk_bytes_max: usize,
    /// Most elements (pairs of a map or attribute) of one aggregate.
    pub elements_max: usize,
    /// Most aggregates around one element; attributes count.
    pub depth_max: usize,
    /// Most bytes of one line without its newline.
    pub line_bytes_max: usize,
}

impl ReplyLimits {
    /// The defaults of this module.
    pub const DEFAULT: Self = Self {
        bulk_bytes_max: BULK_BYTES_MAX,
        elements_max: REPLY_ELEMENTS_MAX,
        depth_max: REPLY_DEPTH_MAX,
        line_bytes_max: REPLY_LINE_BYTES_MAX,
    };

    /// No limit but the depth: for replies that were already accepted under other limits.
    pub(crate) const ACCEPTED: Self = Self {
        bulk_bytes_max: usize::MAX,
        elements_max: usize::MAX,
        depth_max: REPLY_DEPTH_MAX,
        line_bytes_max: usize::MAX,
    };
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
