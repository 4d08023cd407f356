//! Every bound of this crate that is no setting, with its reason.

/// Bytes read from one connection in one turn. A turn's reads are the batch that is written on, so this also bounds how
/// long one busy client keeps the others waiting.
pub const READ_BYTES: usize = 64 * 1024;

/// Replies that one client may be owed before it is not read any more, however small they are. Far above any sane pipeline.
pub const CLIENT_OUTSTANDING_MAX: usize = 100_000;

/// Replies that one client may be owed however large they are. With fewer, the way to the node and back would show.
pub const WINDOW_MIN: usize = 8;

/// Bytes that a reply is expected to have before a client has been given any: with the default budget, 32 of them may be
/// outstanding. A hundred clients that pipeline and do not read have 100 MB held at most then.
pub const FIRST_REPLY_BYTES: u32 = 32 * 1024;

/// Replies that are smaller than expected lower what is expected by this divisor at most: a client that had a window full of small
/// ones may have so many times as many outstanding next.
pub const REPLIES_FALL_DIVISOR: u32 = 16;

/// Bytes written to a client at once from which its replies are looked at: small ones are looked at when their number
/// matters.
pub const REVIEWED_WRITE_BYTES: usize = 16 * 1024;

/// Silence after which a leaving connection is closed if all its requests have been given up, in microseconds, unless
/// `node_silence_timeout` is shorter: requests on its successor wait for it.
pub const LEAVING_SILENCE_US: u64 = 10_000_000;

/// Bytes that wait for one node before the clients that send to it are not read any more. Half of it lets them go on.
pub const LANE_QUEUE_SOFT_DIVISOR: usize = 4;

/// How often clients that had to wait go on in one turn, each time that something was written. More is left to the next turn, in which
/// others are read as well.
pub const ROUNDS_PER_TURN_MAX: u32 = 16;

/// Requests of one EXEC that are ours to do in one turn: a listing of ten thousand clients takes milliseconds.
pub const OWN_PER_TURN_MAX: usize = 64;

/// Bytes of replies to them: the rest is done in the next turns.
pub const OWN_BYTES_PER_TURN_MAX: usize = 256 * 1024;

/// Lane classes (database, protocol) that one worker keeps: 16 databases in both protocols, twice over.
pub const CLASSES_MAX: usize = 64;

/// How often MULTI is tried for one transaction: once, unless its connection ends meanwhile.
pub const TRIALS_MAX: u8 = 3;

/// For how long a connection on which MULTI was refused is not tried again for queued requests.
pub const LOOK_AGAIN_US: u64 = 1_000_000;

/// Nodes that are asked, one after the other, whether they have a database. One that is known to be down is not asked, so more
/// would only make a client wait that many times as long as a dial may take.
pub const DATABASE_ASKED_MAX: usize = 3;

/// How often timers are looked at while something is outstanding, as a share of the response timeout: deadlines are kept
/// to within a tenth and a half.
pub const CRON_SHARE: u64 = 20;
/// Stalls of the event loop are left out of an age up to so many times the age. A request to a silent node ends after five
/// response timeouts at most, in a process that is hardly ever scheduled.
pub const STALLED_AGES_MAX: u64 = 4;
/// Times at which the event loop was late that are remembered. Each is longer than a share of the response timeout, so these
/// reach further back than a deadline with the stalls that are left out.
pub const STALLS_MAX: usize = (STALLED_AGES_MAX + 2) as usize * CRON_SHARE as usize;
/// The shortest interval between two looks at the timers, in microseconds.
pub const CRON_US_MIN: u64 = 1_000;
/// The longest while something is outstanding, in microseconds.
pub const CRON_BUSY_US_MAX: u64 = 100_000;
/// The interval when nothing is, in microseconds.
pub const CRON_IDLE_US: u64 = 1_000_000;

/// The longest client name and library name, in bytes. Redis knows no bound; a listing of 10,000 clients wants one.
pub const CLIENT_NAME_BYTES_MAX: usize = 1024;

/// Other workers' answers to a query are awaited that long, in microseconds. A worker may be busy for a
/// while, as with thousands of handshakes; what it does then is done, but would not be counted.
pub const QUERY_US_MAX: u64 = 5_000_000;

/// Requests of one worker that move keys to other servers at the same time, those that wait for each other among them. Each has a thread of the program.
pub const MIGRATIONS_MAX: usize = 64;
/// Bytes of keys that one of them sends before the other server has answered. A larger key is sent alone.
pub const MIGRATED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Keys that it sends before the other server has answered.
pub const MIGRATED_KEYS_MAX: usize = 10_000;
/// The timeout of MIGRATE in milliseconds if it says none, as in Redis.
pub const MIGRATE_TIMEOUT_MS: u64 = 1_000;
/// The longest, a year: more would not fit the clocks that it is added to.
pub const MIGRATE_TIMEOUT_MS_MAX: u64 = 365 * 24 * 3_600_000;

/// Bytes of scripts that are remembered for nodes that forget them. The oldest are forgotten first.
pub const SCRIPTS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The longest script that is remembered, in bytes: one that is longer should not crowd out all others.
pub const SCRIPT_BYTES_MAX: usize = 1024 * 1024;

/// The longest list of a node's functions that is looked at during a pause of writes, in bytes. Behind a longer one calls of functions
/// wait like writes.
pub const FUNCTIONS_READ_BYTES_MAX: usize = 1 << 20;

/// A connection for scripts that has not been answered for so long, in microseconds, is given no scripts of clients that can take
/// the other one: a node answers there that it is busy, once its `busy-reply-threshold` is over. Most scripts take far less.
pub const SCRIPT_AHEAD_US: u64 = 100_000;

/// A client that has sent scripts without waiting for what it had asked before does so again: for so long, in microseconds, it
/// shares the connections for scripts with all that it asks.
pub const SCRIPTS_MIXED_US: u64 = 60_000_000;

/// Orders of one worker whose replies wait at a time (`PROXY PAUSE WAIT`): each run of the timers adds up what is left for
/// each.
pub const SETTLING_MAX: usize = 64;

/// How long INFO waits for a node whose last reply is remembered, in microseconds: less than a monitor that asks every
/// second would notice.
pub const INFO_PATIENCE_US: u64 = 20_000;

/// And so many times the shortest round trip to the node, if that is longer.
pub const INFO_LINK_FACTOR: u64 = 4;

/// Replies of nodes to INFO that are remembered in the whole process: enough for the sections that monitoring asks for.
pub const INFO_KEPT_MAX: usize = 256;

/// Bytes of the longest reply that is remembered. All sections of a server that has executed many kinds of commands take
/// some tens of thousands.
pub const INFO_KEPT_BYTES_MAX: usize = 128 * 1024;

/// Bytes of a list of sections up to which the reply is remembered: the list is kept with each reply.
pub const INFO_SECTIONS_BYTES_MAX: usize = 256;

/// Bytes of parts of a reply that are not worth counting while the others are waited for: no more than what joins them takes
/// itself.
pub const GATHERED_BYTES_MIN: usize = 256;

/// Parts of replies, and replies that are read before their client gets them, from which it is looked at whether they fit what
/// may be held for that client, in bytes.
pub const PART_LOOKED_AT_BYTES: usize = 64 * 1024;

/// Bytes of the longest reply to what the proxy asks by itself, for no client in particular. The longest are descriptions of commands, of some
/// tens of thousands.
pub const INTERNAL_REPLY_BYTES_MAX: usize = 4 << 20;

/// Scripts that one connection remembers to have given its node for transactions; at more it begins anew.
pub const SCRIPTS_GIVEN_MAX: usize = 1024;

/// Commands that are learnt from nodes, in the whole process: their rows are never freed. The largest modules have a hundred.
pub const LEARNT_MAX: usize = 512;
/// Entries of the negative cache of unknown commands.
pub const UNKNOWN_COMMANDS_MAX: usize = 1024;
/// How long a name that no node knew is not asked for again, in microseconds.
pub const LEARN_AGAIN_US: u64 = 30_000_000;
/// Names that nodes may be asked for at once on behalf of one client, and the pause between two beyond that, in microseconds.
/// No program has as many unknown commands; a client that makes names up waits for its next question, and no other does.
pub const LEARN_BURST: u64 = 32;
/// See [`LEARN_BURST`].
pub const LEARN_INTERVAL_US: u64 = 50_000;
/// The same for all clients of a worker together: a node answers some hundred thousand such questions a second, so that many
/// clients that make names up cost it little.
pub const WORKER_LEARN_BURST: u64 = 128;
/// See [`WORKER_LEARN_BURST`].
pub const WORKER_LEARN_INTERVAL_US: u64 = 1_000;

/// Connections to one node that a worker makes at the same time. Sixteen workers fill with it what Redis lets wait to be
/// accepted (`tcp-backlog`, 511): the kernel drops what comes beyond that, and tries again only after a second, which is the
/// whole `connect_timeout`. On a link of 5 ms each way it still makes 1,600 a second.
pub const DIALS_AT_ONCE_MAX: usize = 32;

/// Attempts to connect to a node that could not be connected to that may begin at once, before the process's governor spaces
/// them out: one of each of sixteen workers.
pub const REDIAL_BURST: u64 = 16;

/// Nodes whose attempts the governor remembers; beyond it those of further ones are not spaced out by it, but by the pauses of
/// each worker alone. Several times as many as stand behind one process.
pub const GOVERNED_NODES_MAX: usize = 4096;

/// A shared connection that ends before it is so old is not dialled again without a pause, in microseconds: it might end at
/// once again. An older one is.
pub const LANE_YOUNG_US: u64 = 1_000_000;

/// A shared connection that breaks after it has owed replies and been silent for that long says that its node has vanished, in
/// microseconds. The kernel gives up a peer that acknowledges nothing after more than that; one that closes or resets its
/// connections is there.
pub const BROKEN_SILENT_US: u64 = 500_000;

/// A PING to the only node is answered here if anything was heard of the node within this time, in microseconds, and by the
/// node otherwise.
pub const PING_FRESH_US: u64 = 100_000;

/// Bytes of the text of a subscriber's PING that is forwarded: the text is kept until the node replies, and is in no
/// account. A longer one is answered here.
pub const PING_TEXT_BYTES_MAX: usize = 64;

/// A shared connection that begins to bring a reply of this size is its client's own from then on, in bytes: a millisecond
/// of a fast network, for which the replies of other clients are blocked.
pub const LARGE_REPLY_BYTES: usize = 1 << 20;

/// A client that leaves so many times `client_output_soft_bytes` unread, although it is read no further than that, is owed
/// larger replies than it used to get: the connections that bring them are taken out of sharing.
pub const CLAIM_SOFT_FACTOR: usize = 4;

/// Requests of one connection that are looked at to see whether such a client's are among the next.
pub const CLAIM_LOOKED_AT_MAX: usize = 64;

/// Bytes that one connection of a client's own may bring after it was to be left alone: a read, and what was collected of a
/// reply before.
pub const CUT_OFF_SLACK_BYTES: usize = 256 * 1024;

/// A client that has got no large reply for this long goes back to the shared connections, in microseconds.
pub const LARGE_US: u64 = 60_000_000;

/// Bytes of a large request that wait to be written to its node before its client is not read: a few reads' worth.
pub const PIECES_QUEUE_BYTES: usize = 256 * 1024;

/// A client that sends nothing for this long in the middle of a large request, although it is read, is disconnected, in
/// microseconds: it has a connection to a node to itself.
pub const STALLED_REQUEST_US: u64 = 30_000_000;

/// Where more than half of the process's budget is held, free memory goes back to the system whenever this share of the budget has come
/// or gone since, as a divisor: a buffer that grows leaves behind what it was, and an allocator keeps that for the next. What the
/// process occupies beyond what it holds stays below such a share, and giving back costs as much as the kernel's zeroing of that.
pub const GIVE_BACK_DIVISOR: usize = 8;

/// Free memory goes back at such a step at most once in this time, in microseconds, in the whole process: the worker that gives it back
/// serves no client meanwhile, and what large replies take comes and goes with each of them.
pub const GIVE_BACK_INTERVAL_US: u64 = 10_000;

/// More than the process's budget by this share of it, as a divisor, and the largest client is disconnected at once.
pub const PRESSURE_EXCESS_DIVISOR: usize = 8;

/// Above the budget for longer than this, in microseconds, and the largest client is disconnected: clients that take their
/// replies would have made room by then.
pub const PRESSURE_PATIENCE_US: u64 = 1_000_000;

/// One client is disconnected in two of these intervals at most, in microseconds, so that what it held is given back before
/// the next one is chosen.
pub const PRESSURE_INTERVAL_US: u64 = 250_000;

/// Minimum interval of the check for clients that do not read while memory is short, in microseconds. What nodes send in this time may be held
/// beyond the budget.
pub const SHORT_TURN_US: u64 = 1_000;

/// Added to that interval for each client whose connection is full, in nanoseconds: the check takes a bounded share of the time. Nodes are
/// left unread meanwhile.
pub const SHORT_TURN_NS_PER_CLIENT: u64 = 1_000;

/// The timers run so often then, in microseconds.
pub const SHORT_LOOK_US: u64 = 5_000;

/// In so long an interval workers tell each other then how much is held for the largest client whose connection is full, in microseconds: two
/// runs of the timers.
pub const SHORT_INTERVAL_US: u64 = 2 * SHORT_LOOK_US;

/// A client whose connection is full and that takes nothing for so long then, in microseconds, is disconnected if it is among the largest.
/// Until that is known nodes are not read, and others wait as well. Kernels tell each other of room in steps: on the loopback device one that
/// reads 100 kB/s is seen to take 131 KB once in 1.3 s, and over a unix socket 73 KB in 0.7 s. What a kernel holds of a connection is more than
/// its buffer at first, so that the first of these steps makes no room: two fit in this time.
pub const TAKES_NOTHING_US: u64 = 3_000_000;

/// Minimum read rate while memory is short, in bytes per second; a slower client is disconnected as if it read nothing, however steadily.
pub const TAKES_BYTES_PER_S_MIN: u64 = 64 << 10;

/// What it has taken is no reason to wait for longer than this beyond [`TAKES_NOTHING_US`], in microseconds: longer than two of the steps of
/// the slowest client that may stay.
pub const TAKES_AHEAD_US: u64 = 2_000_000;

/// Once nodes have been left unread for [`PRESSURE_PATIENCE_US`], the same goes for a client that has not taken within so long what waited for
/// it at its beginning, in microseconds: others are read only as fast as it reads, so a client with more unread output has to read faster.
pub const TAKES_ALL_US: u64 = 30_000_000;

/// A client that takes what waits for it is disconnected as the largest only when this part more than the budget is held: it makes room.
pub const PRESSURE_TAKER_EXCESS_DIVISOR: usize = 2;

/// In one look so many clients are asked by a write whether they have taken something, before they are disconnected. The others are asked
/// in the next looks.
pub const TRIED_WRITES_MAX: usize = 256;

/// What they were left unread is forgotten in so many times the time.
pub const UNREAD_SHARE_DIVISOR: u64 = 8;

/// Bytes of commands that wait on one push lane before no more are made.
pub const PUSH_QUEUE_BYTES_MAX: usize = 256 * 1024;

/// Channels whose acknowledgement a node may owe before it is told of more. A million acknowledgements at once would pass
/// the mark at which Redis gives a subscriber up (8 MB over a minute, 32 MB at once); these are about one.
pub const PUSH_ORDERS_MAX: usize = 20_000;

/// Patterns that one client may subscribe to. Nodes compare each of them with every message and look through all of them for
/// every new one, and all of a worker's clients have theirs on one connection to each node.
pub const PATTERNS_PER_CLIENT_MAX: usize = 10_000;

/// How often push lanes are looked at while there are any, in microseconds.
pub const PUSH_CHECK_US: u64 = 250_000;

/// A push lane on which nothing was heard for that long is sent a PING, in microseconds. If its peer has vanished, the kernel
/// hears no acknowledgement of that and the connection is given up, within two seconds together with the above. A node that is
/// there and busy keeps it as long as any other connection: what it publishes in the end would be lost otherwise.
pub const PUSH_SILENT_US_MAX: u64 = 400_000;

/// Bytes of one subscriber's outbox beyond which further messages wait in its backlog, where all subscribers that wait for a message
/// share it.
pub const PUSH_OUTBOX_BYTES: usize = 64 * 1024;

/// Channels, patterns and sharded channels that one client may subscribe to. Beyond what any library does; a million
/// channels on sixteen connections, the largest experiment known, are a tenth of it each.
pub const SUBSCRIPTIONS_PER_CLIENT_MAX: usize = 1_000_000;

/// Users and databases as which one client may subscribe under routes before it has given all up. Each is looked through
/// for every channel that it names; no client needs more than a few.
pub const SCOPES_PER_CLIENT_MAX: usize = 16;

/// Channels that a client's requests may name while its earlier ones wait for nodes; then those are answered first.
pub const PENDING_NAMES_MAX: usize = 100_000;

/// Channels that one request subscribes to, or gives up, in one turn.
pub const NAMES_PER_TURN_MAX: usize = 10_000;

/// Turns that one such request takes at most. Each turn decodes all of its names again, so a request with more names has
/// more of them processed per turn.
pub const NAMES_TURNS_MAX: usize = 32;

/// Bytes of tracked keys and of the references to their readers, in one worker. Beyond that keys are evicted, and
/// invalidated as if they had changed, however few there are: keys may be of any length, and every client may have read
/// every key.
pub const TRACKED_BYTES_MAX: usize = 512 << 20;

/// Tracked keys of all workers may take this part of `process_bytes`.
pub const TRACKED_SHARE_DIVISOR: usize = 4;

/// So many bytes of tracked keys may have come or gone in a worker before its account tells of them, at the end of the turn.
pub const TRACKED_UNACCOUNTED_MAX: usize = 64 * 1024;

/// A client that said CLIENT NO-EVICT is spared while another holds this part at least of what it holds.
pub const SPARED_DIVISOR: usize = 16;

/// For how long it is spared where no other does, in microseconds.
pub const SPARED_PATIENCE_US: u64 = 2_000_000;

/// Keys of one transaction of a tracking client that are remembered until EXEC.
pub const TRACKED_TRANSACTION_KEYS_MAX: usize = 10_000;

/// Bytes of a prefix of keys that a tracking client is told of. Keys that begin alike for longer than that are told of by a shorter one.
pub const TRACKING_PREFIX_BYTES_MAX: usize = 4096;

/// Keys of a request that waits and reads (`XREAD BLOCK`) that a tracking client is told of behind its reply if they change meanwhile. Of more it is told
/// then that everything has changed.
pub const WAITING_READ_KEYS_MAX: usize = 64;

/// Bytes of those keys. Of longer ones it is told the same.
pub const WAITING_READ_BYTES_MAX: usize = 4096;

/// Bytes of the keys that a script under way has changed and its own client is told of behind the reply. Of more it is told that everything has
/// changed.
pub const SCRIPT_CHANGES_BYTES_MAX: usize = 1 << 20;

/// Prefixes of keys that one client may ask to be told of. Every change is compared with all of them.
pub const TRACKING_PREFIXES_MAX: usize = 128;

/// Subscriptions of clients that have left, and requests for some that fail, with their channels, that are dealt with in one
/// turn: some milliseconds' worth.
pub const STRUCK_OUT_PER_TURN_MAX: usize = 10_000;

/// How long a worker whose listeners another process has taken over stays at least, in microseconds: connections that it has
/// accepted may still be on their way from worker to worker or in the middle of a handshake.
pub const RETIRE_US_MIN: u64 = 1_000_000;

/// A lane that is to be replaced tries a successor that often, in microseconds.
pub const RENEW_US: u64 = 1_000_000;

/// Lanes of a database and dialect that no client has been in for that long are closed, in microseconds.
pub const LANE_UNUSED_US: u64 = 60_000_000;

/// Bytes of replies that an unauthenticated client may leave unread: what Redis lets pile up, the buffer of
/// 16 KB that every client has and 1 KB behind it.
pub const UNAUTH_OUTPUT_BYTES_MAX: usize = 17 * 1024;

/// A node is given that long to agree at least, in microseconds: while it makes a snapshot it says so once a second.
pub const AGREEMENT_US_MIN: u64 = 5_000_000;

/// Bytes of one line that MONITOR shows. Lines of several nodes are shown one after the other, so each is kept until it is
/// whole; a longer one is cut.
pub const MONITOR_LINE_BYTES_MAX: usize = 1 << 20;

/// Bytes of lines that a client which monitors an engine may leave unread, where replies have no hard limit: behind an embedded node.
/// The proxy in front of it stops reading a connection of which its own client takes nothing.
pub const MONITOR_OUTPUT_BYTES_MAX: usize = 16 << 20;

/// Queued requests that one node is tried with at once, three commands for each: all other requests to the node come
/// behind them.
pub const TRIES_AT_ONCE: usize = 8;

/// Keys of a queued blocking request up to which it is ordered by them. One with more keys is tried whatever was queued
/// before it.
pub const TAKEN_KEYS_MAX: usize = 1_000;

/// The time between two such tries, in microseconds: ten thousand requests come round within a few seconds, for a few percent
/// of a core.
pub const TRY_US: u64 = 3_000;

/// Requests whose time has run out that are answered in one turn. Thousands that came together are over together, and each
/// takes a write.
pub const TIMEOUTS_PER_TURN_MAX: usize = 32;

/// A request that may wait and whose client closes its side within this time of sending it, in microseconds, was sent together
/// with the end, as by `printf ... | nc`: what the node has for it is the client's. Behind that time the request was waiting.
pub const AT_ONCE_US: u64 = 100_000;

/// Bytes that are read of a client behind a request that waits, without being looked at: only so the end of them is seen. Behind
/// more than this, and what the kernel takes, it is seen when the request has been answered.
pub const READ_AHEAD_BYTES_MAX: usize = 4 << 20;

/// How long it is tried to put back what was taken for a client that had left, in microseconds: longer than nodes take to be
/// replaced.
pub const RETURN_US_MAX: u64 = 60_000_000;

/// The time between two such tries, in microseconds.
pub const RETURN_AGAIN_US: u64 = 100_000;

/// How much of that may be under way or wait at once in one worker: as many clients would have to leave within one round trip
/// of being served, or while their node is away.
pub const RETURNS_MAX: usize = 10_000;

/// The same in bytes, with what is still arriving for such clients.
pub const RETURNS_BYTES_MAX: usize = 64 << 20;

/// How long a request whose client has closed its side may take to reach its node, in microseconds. It is asked there once, and
/// what cannot be had for that by then is not waited for.
pub const ASK_ONCE_US_MAX: u64 = 1_000_000;

/// How often a node is asked that without a pause: the request is on another connection, and comes within a moment of the
/// question.
pub const UNBLOCKS_AT_ONCE: u8 = 4;

/// How often a node is asked to let a waiting request go before its connection is closed. It is asked again only if the
/// request had not reached it, or its reply is on the way.
pub const UNBLOCKS_MAX: u8 = 20;

/// Arguments of a slow request that are kept, as in Redis.
pub const SLOW_ARGS_MAX: usize = 32;

/// Bytes of each of them, as in Redis.
pub const SLOW_ARG_BYTES_MAX: usize = 128;

/// A threshold of the slow log below this many microseconds has every command of an engine timed. Above it those are left out that are
/// plain and quick, and take a microsecond.
pub const QUICK_COMMAND_US: u64 = 1_000;

/// Requests and replies of so many bytes are in the logs of large ones unless these are told otherwise, as in Valkey.
pub const LOGGED_BYTES: u64 = 1 << 20;

/// Entries of each of these two logs unless they are told otherwise, as in Valkey.
pub const LARGE_ENTRIES_MAX: usize = 128;

/// Samples that are kept of an event of the latency monitor, as in Redis.
pub const LATENCY_SAMPLES_MAX: usize = 160;

/// Keys that are ranked by how often they are seen, and by the size of their values.
pub const RANKED_KEYS_MAX: usize = 128;

/// Bytes of a ranked key that are kept.
pub const RANKED_KEY_BYTES_MAX: usize = 256;

/// Keys seen before what was often once counts half.
pub const RANKED_AGE_SAMPLES: u64 = 100_000;

/// Requests of one batch that a sample looks at, and keys of one request.
pub const SAMPLED_REQUESTS_MAX: usize = 64;

/// Lines in the log about clients that are disconnected, of one worker in [`CUT_OFF_LINES_US`].
pub const CUT_OFF_LINES_MAX: u32 = 10;
/// See [`CUT_OFF_LINES_MAX`], in microseconds.
pub const CUT_OFF_LINES_US: u64 = 1_000_000;

/// Bytes of buffers that a worker keeps for reuse from one look at the timers to the next: what a busy worker hands round.
pub const SPARE_BUFFERS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Places of a table that are never given back: those of a small crowd, which comes and goes.
pub const SLAB_KEPT_PLACES: usize = 256;

/// How often it is looked at whether tables can be made smaller, in microseconds: often enough that a crowd that has left is
/// forgotten within seconds, and so rarely that making order among thousands of places costs nothing.
pub const TIDY_US: u64 = 1_000_000;

/// Requests of one connection that wait or are not answered and are not worth counting.
pub const QUEUE_COUNTED_TICKETS_MIN: usize = 1024;

/// Bytes that wait for one node on one connection and are not worth counting: the buffer that a busy connection keeps anyway.
pub const QUEUE_COUNTED_BYTES_MIN: usize = 16 * 1024;

/// How often nodes are acknowledged what a follower of all of them has, in microseconds: as often as replicas do it.
pub const MERGED_ACKNOWLEDGE_US: u64 = 1_000_000;
/// Bytes that may wait to be sent to a node before a further acknowledgement of a follower of all nodes is left out.
pub const MERGED_ACKNOWLEDGEMENTS_BYTES_MAX: usize = 4 * 1024;

/// Silence of a node in the middle of a snapshot or a command after which its followers are disconnected, in microseconds:
/// the time after which a replica of Redis gives its primary up.
pub const MERGED_SILENCE_US: u64 = 60_000_000;

/// How long a command that concerns all keys waits for another node that sends nothing, in microseconds. It was sent to all at
/// once; a node that was down has not done it. A node that goes on sending has [`MERGED_SILENCE_US`].
pub const MERGED_APART_US: u64 = 5_000_000;

/// Kinds of errors that INFO counts; more are counted in sum only. Scripts make as many as they like.
pub const COUNTED_ERRORS_MAX: usize = 128;

/// Bytes at the beginning of an error among which its code ends, as in Redis.
pub const ERROR_CODE_BYTES_MAX: usize = 32;

/// What a client that waits for room in a connection's queue is taken to bring at least, in bytes: what it has sent may still be unread.
pub const THROTTLED_BYTES_MIN: usize = 1024;

/// With so many bytes of an unfinished request it is looked at what the clients of an engine hold, before the request is executed.
pub const CHECKED_INPUT_BYTES: usize = 64 * 1024;

/// How long after the memory of the clients of an engine was added up it is added up again, in microseconds.
pub const CLIENT_MEMORY_INTERVAL_US: u64 = 50_000;

/// Clients of one worker that may debug scripts among copies of all keys at the same time: each copy takes as much memory as the keys.
pub(crate) const DEBUGGER_COPIES_MAX: usize = 2;

/// Microseconds that copies of all keys for debuggers may take without any consequence: little more than other requests may.
pub const DEBUGGER_COPY_QUICK_US: u64 = 50_000;

/// How many times as long as they took beyond that no keys are copied by the same worker: no more than a twentieth of its time goes into copies,
/// whether they are large or many, and whether it is bytes or keys that take it.
pub const DEBUGGER_COPY_PAUSES: u64 = 20;

/// How long a script runs with a debugger whose client has closed its side, in microseconds, before that counts as having left. A client that has
/// only said all that it will is owed what comes of it.
pub const DEBUGGER_HUNG_UP_US: u64 = 5_000_000;
