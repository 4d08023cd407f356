//! Every bound of this crate, with its reason.

/// Readiness events taken from the kernel at once. More than this many ready sockets simply take two turns.
pub const EVENTS_MAX: usize = 1024;

/// Bytes read of clients in one turn before it reads no more of them, so that the replies of nodes, and other clients, do not wait
/// longer. Two more reads may follow the one that reaches it.
pub const CLIENT_BYTES_PER_TURN: usize = 32 * 1024;

/// Connections accepted from one listener in one turn, so that a storm of them cannot keep a worker from its clients:
/// less than a millisecond of them.
pub const ACCEPTS_PER_TURN_MAX: usize = 32;

/// Half-closed connections that are handled in one turn, for the same reason.
pub const HALF_CLOSES_PER_TURN_MAX: usize = 32;

/// How long a worker that ran out of file descriptors leaves a listener alone, in microseconds.
pub const ACCEPT_PAUSE_US: u64 = 100_000;

/// Minimum interval between "cannot accept" log lines, in microseconds: the worker tries ten times a second.
pub const ACCEPT_LOG_INTERVAL_US: u64 = 10_000_000;

/// Rounds of "do the actions, write the outboxes" in one turn. What is left after them is done in the next turn.
pub const SETTLE_ROUNDS_MAX: usize = 16;

/// Names that may wait to be resolved. A further dial fails at once; nodes are few, so this is reached only by a loop.
pub const RESOLUTIONS_MAX: usize = 1024;

/// Names that one worker looks for at the same time, each on a thread. So many of them can get no answer before one of a name
/// server that does answer has to wait.
pub const RESOLVERS_MAX: usize = 16;

/// DNS answers in a row without a connection's address after which the name counts as moved: a single answer may be stale, or a
/// part of a longer list.
pub const ANSWERS_WITHOUT_MIN: u8 = 2;

/// The same for a name whose addresses come and go: a quarter of an hour with the default interval.
pub const ANSWERS_WITHOUT_MAX: u8 = 64;

/// An address that is in one of so many answers after it was taken for gone shows that a name's addresses come and go. One that
/// returns later may be a server that is the primary again.
pub const ANSWERS_TO_RETURN: u64 = 64;

/// After so many answers in which no address returned, half as many without an address are enough again: an hour with the
/// default interval.
pub const ANSWERS_CALM: u64 = 256;

/// Addresses of a name that are remembered for that.
pub const ADDRESSES_REMEMBERED_MAX: usize = 64;

/// Names that one worker looks up again at once, because connections to them stand: a part of [`RESOLVERS_MAX`], so that those
/// that are never answered leave room for dials.
pub const NAMES_CHECKED_AT_ONCE_MAX: usize = 4;

/// A yield that took longer than this, in microseconds, gave the core to another process; one is enough then.
pub const YIELD_ALONE_US_MAX: u64 = 20;

/// A yield of the core that took longer than this, in microseconds, was no favour to clients that are about to send:
/// fifty of them take some hundred microseconds on one core.
pub const YIELD_US_MAX: u64 = 1_000;

/// How long the core is not yielded after a yield that took too long, in microseconds. Doubles while that goes on, so that
/// beside a process that wants the core for itself the attempt costs next to nothing.
pub const YIELD_PAUSE_US_MIN: u64 = 250_000;

/// The longest such pause, in microseconds.
pub const YIELD_PAUSE_US_MAX: u64 = 30_000_000;

/// TLS handshakes of clients under way in one worker. One more is refused: a handshake costs memory before it is known who
/// asks.
pub const HANDSHAKES_MAX: usize = 4096;

/// How many of them one address may have, so that it cannot keep all others out.
pub const HANDSHAKES_PER_ADDRESS_MAX: usize = HANDSHAKES_MAX / 2;

/// Steps of handshakes that are taken in one turn. A step is up to half a millisecond of arithmetic, which the clients that
/// are there already wait for.
pub const HANDSHAKE_STEPS_PER_TURN_MAX: usize = 8;

/// Bytes that a peer may send before the handshake is over: a long chain of certificates, several times.
pub const HANDSHAKE_BYTES_MAX: usize = 64 * 1024;

/// Plaintext that is encrypted and written at once, in bytes: four records, so that a large reply takes few calls and
/// little waits encrypted for a peer that does not read.
pub const TLS_FLIGHT_BYTES: usize = 64 * 1024;

/// Encrypted bytes that one read of a connection takes. Records without content fill no buffer, so the buffer alone would
/// be no bound.
pub const TLS_READ_BYTES_MAX: usize = 256 * 1024;

/// The largest certificate whose names are looked at, in bytes.
pub const CERTIFICATE_BYTES_MAX: usize = 64 * 1024;

/// Names of one kind in a certificate that are looked at. One with more is refused.
pub const CERTIFICATE_NAMES_MAX: usize = 1024;

/// How long a connection that we have ended waits for its peer to close it, in microseconds: several round trips of a long
/// link.
pub const LINGER_US: u64 = 1_000_000;

/// How long at most if the peer goes on sending, in microseconds: it sends a long pipeline before it reads replies. A process
/// that ends is held up by that much.
pub const LINGER_US_MAX: u64 = 5_000_000;

/// Connections of one worker that may wait so. One more is closed at once.
pub const LINGERING_MAX: usize = 16_384;

/// Reads by which bytes of such a connection are thrown away in one turn.
pub const LINGER_READS_MAX: usize = 64;

/// Sockets that one process gives to another: as many as it can have listeners.
pub const HANDOVER_SOCKETS_MAX: usize = 16_384;

/// Longest name of a socket that is given away, in bytes: an address and a few words.
pub const HANDOVER_LABEL_BYTES_MAX: usize = 510;

/// Longest line that two processes say to each other then, in bytes.
pub const HANDOVER_LINE_BYTES_MAX: usize = 1024;

/// As far as a clock is moved, in microseconds: the end of the year 9999. What deadlines are computed from it stays far below
/// what 64 bits hold, in milliseconds and in microseconds.
pub const MOVED_CLOCK_US_MAX: u64 = 253_402_300_799_999_999;

/// Where the clock that the timeouts of clients go by stops, in microseconds: no time of day, so it goes on where that one is set back.
/// Eighteen times the whole of the time of day, and timeouts can be added to it.
pub const CLIENT_CLOCK_US_MAX: u64 = u64::MAX / 4;

/// How old a reading of the wall clock may be, in microseconds: a change of it is noticed that late.
pub const WALL_CLOCK_AGE_US_MAX: u64 = 10_000;

/// How often connections to nodes are looked at to which something was written and from which nothing comes, in
/// microseconds: a tenth of the default patience.
pub const LOOK_US: u64 = 100_000;

/// The same for connections to clients, which are many and may be missed for longer.
pub const LOOK_AT_CLIENTS_US: u64 = 1_000_000;

/// Connections to clients that the kernel is asked about in one look of one worker: a few milliseconds' worth. The others' turn
/// comes with the next.
pub const CLIENTS_LOOKED_AT_MAX: usize = 1_000;

/// Places for connections that are never given back: those of a small crowd, which comes and goes.
pub const CONNECTIONS_KEPT: usize = 128;

/// Answers of the kernel that are read for one question about a connection.
pub const DIAG_ANSWERS_MAX: usize = 16;

/// Bytes that the kernel takes for a client before it sends them. Otherwise it takes up to 4 MB (`tcp_wmem`) for each that reads
/// nothing, which no budget knows of, and nodes are asked for as much more. Half of it is free again when the kernel says that there is
/// room, so a fast client never waits for the process.
pub const UNSENT_BYTES_MAX: u32 = 512 * 1024;
