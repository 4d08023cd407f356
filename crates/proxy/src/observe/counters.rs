//! What the proxy counts. Every worker has counters of its own, written by it alone and summed by readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ident,)*) => {
        /// The counters of one worker.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: Counter,)*
        }

        impl Counters {
            /// Every counter: name, help text, whether it only ever grows, value.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, &'static str, Kind, u64)> {
                [$((stringify!($name), concat!($($doc),+).trim_ascii(), Kind::$kind, self.$name.value()),)*].into_iter()
            }

            /// Takes over the sum of what several workers have counted. Theirs go on.
            pub(crate) fn set_to_sum(&self, of: &[Arc<Counters>]) {
                $(self.$name.set(of.iter().map(|counters| counters.$name.value()).sum());)*
            }
        }
    };
}

/// How a figure behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Total,
    /// It goes up and down.
    Gauge,
}

/// A number with one writer. Reading it from elsewhere is safe; writing costs what a plain integer costs.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `by`. Only the owning worker may.
    #[inline]
    pub fn add(&self, by: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
    }

    /// Sets the value. Only the owning worker may.
    #[inline]
    pub fn set(&self, to: u64) {
        self.0.store(to, Ordering::Relaxed);
    }

    /// The value now.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

counters! {
    /// Turns of the loop. Requests per turn is the batch that everything else follows from.
    turns: Total,
    /// Clients connected now.
    clients: Gauge,
    /// Clients that were accepted.
    clients_accepted: Total,
    /// Clients that were refused because of a limit.
    clients_refused: Total,
    /// Connections to TLS listeners whose handshake failed or took too long.
    handshakes_failed: Total,
    /// Clients that were cut off because they did not read their replies.
    clients_cut_off: Total,
    /// Clients that were cut off because the process held too much and they the most of it.
    clients_cut_off_for_memory: Total,
    /// Clients that fetched a large reply and got a connection of their own for it or for the next.
    clients_large: Total,
    /// Shared connections to nodes that were taken out of sharing because they brought one client more than it read.
    lanes_claimed: Total,
    /// Times that a worker left its nodes unread because the process held too much and clients might have been about to take some.
    nodes_left_unread: Total,
    /// Clients that were cut off because they sent half of a large request and then nothing.
    clients_stalled: Total,
    /// Clients that were disconnected because a node failed in the middle of their reply.
    clients_broken_off: Total,
    /// Requests read from clients.
    requests: Total,
    /// Requests answered without a node.
    requests_local: Total,
    /// Requests that were split over several nodes.
    requests_split: Total,
    /// Large requests that were passed on as they came.
    requests_in_pieces: Total,
    /// Requests refused because they would have steered nodes.
    admin_refused: Total,
    /// Scripts that a node had forgotten and was given again.
    scripts_healed: Total,
    /// Scripts that went over a second connection because another script had held the first one up.
    scripts_diverted: Total,
    /// Names of commands that a node was asked for.
    commands_asked: Total,
    /// Clients that broke the protocol.
    protocol_errors: Total,
    /// Bytes read from clients.
    client_bytes_in: Total,
    /// Bytes written to clients.
    client_bytes_out: Total,
    /// Reads that brought bytes from clients.
    client_reads: Total,
    /// Writes that took bytes to clients.
    client_writes: Total,
    /// Connections to nodes that are ready now.
    upstreams: Gauge,
    /// Dials of nodes.
    dials: Total,
    /// PINGs sent to nodes on idle connections.
    probes: Total,
    /// Nodes that acknowledge what they are sent and do not answer.
    nodes_suspect: Gauge,
    /// Dials that failed.
    dial_failures: Total,
    /// Dials that failed because the process has no file descriptor left (`ulimit -n`).
    dials_without_descriptor: Total,
    /// Connections to nodes that wait for their turn to be dialled.
    dials_waiting: Gauge,
    /// Connections to nodes that were wanted and not dialled in time, because others were before them.
    dials_expired: Total,
    /// Ready connections to nodes that were lost.
    upstream_losses: Total,
    /// Replies that were not waited for. Each ended its connection.
    unsolicited_replies: Total,
    /// Connections to nodes that were given up because their replies were not those to their requests.
    integrity_faults: Total,
    /// Replies that were not passed on because they could not be proved.
    integrity_withheld: Total,
    /// Replies read from nodes.
    replies: Total,
    /// Replies that came after their deadline or after their client had left, and were swallowed.
    replies_swallowed: Total,
    /// Requests whose deadline passed.
    timeouts: Total,
    /// Requests that nodes had not answered when the drain timeout was over.
    requests_cut_off: Total,
    /// Requests answered with an error because their node could not be reached or broke off.
    node_errors: Total,
    /// Times that a node went out of use because it could not be reached or failed.
    nodes_ejected: Total,
    /// Times that a node came back into use.
    nodes_returned: Total,
    /// Connections to nodes that ended after all they owed was answered: replaced, or not needed any more.
    lanes_renewed: Total,
    /// Requests that another node took because theirs was down.
    requests_moved: Total,
    /// Requests that a replica answered because their route says so.
    replica_reads: Total,
    /// Replies of nodes that speak RESP2 alone that were converted for clients that speak RESP3.
    replies_converted: Total,
    /// Requests whose replies took longer than the slow log tolerates.
    slow_requests: Total,
    /// Bytes read from nodes.
    upstream_bytes_in: Total,
    /// Bytes written to nodes.
    upstream_bytes_out: Total,
    /// Reads that brought bytes from nodes.
    upstream_reads: Total,
    /// Writes that took bytes to nodes.
    upstream_writes: Total,
    /// Times that a client was not read for a while because a budget was used up.
    pauses: Total,
    /// Requests refused because an operator's pause held them for longer than `pause_timeout`.
    holds_expired: Total,
    /// Transactions that were executed, or failed on the way.
    transactions: Total,
    /// Private connections that are lent to clients now.
    pinned: Gauge,
    /// Clients that have connections to nodes to themselves for as long as they stay (pool mode `session`, or a route that says
    /// so).
    owners: Gauge,
    /// Connections to nodes that one client has for good: it monitors, or follows the node as a replica does.
    dedicated: Gauge,
    /// Connections to nodes that are there to be pushed to.
    push_lanes: Gauge,
    /// Pairs of client and channel, pattern or sharded channel, that are subscribed now.
    subscriptions: Gauge,
    /// Channels with a subscriber, in each worker.
    pubsub_channels: Gauge,
    /// Patterns with a subscriber, in each worker.
    pubsub_patterns: Gauge,
    /// Sharded channels with a subscriber, in each worker.
    pubsub_shard_channels: Gauge,
    /// Subscriptions that a node refused.
    subscriptions_refused: Total,
    /// Messages that nodes passed on.
    messages_received: Total,
    /// Messages given to clients: each counts once for every client that gets it.
    messages_delivered: Total,
    /// Messages that a slow subscriber lost.
    messages_dropped: Total,
    /// Clients that want to be told of changed keys.
    tracking_clients: Gauge,
    /// Keys that such clients have read and not been told of since, in each worker.
    tracked_keys: Gauge,
    /// Pairs of such a client and such a key.
    tracked_items: Gauge,
    /// Prefixes of keys of whose changes clients are told whether they have read them or not, in each worker.
    tracked_prefixes: Gauge,
    /// Clients told that keys have changed: each counts once for every time.
    invalidations: Total,
    /// Subscribers that were disconnected because they did not keep up.
    subscribers_cut_off: Total,
    /// Attempts to authenticate that failed.
    auth_failures: Total,
    /// Requests refused because the client was not authenticated.
    refused_unauthenticated: Total,
    /// Connections to nodes on which MULTI was tried before the first transaction on them.
    multi_trials: Total,
    /// SELECT, AUTH and HELLO that a server would have granted and that could not be granted here.
    states_refused: Total,
    /// Requests refused because the user may not run the command.
    denied_commands: Total,
    /// Requests refused because the user may not use one of the keys.
    denied_keys: Total,
    /// Requests refused because the user may not use one of the channels.
    denied_channels: Total,
    /// Clients refused because their user has as many connections as it may.
    refused_by_user_limit: Total,
    /// Times that a client was not read for a while because its user had asked for as much as it may.
    throttled: Total,
    /// Clients disconnected because they did not authenticate in time.
    auth_timeouts: Total,
    /// Clients that wait for something (BLPOP and its kin) now.
    blocked_clients: Gauge,
    /// Keys of the embedded engine that clients wait for.
    keys_waited_for: Gauge,
    /// Requests that are to wait on connections that are still being made.
    blocked_dialling: Gauge,
    /// Requests that may wait and were refused because too many do.
    blocked_refused: Total,
    /// Commands that waited where their keys were not any more after a reload, and were asked back.
    blocked_recalled: Total,
    /// Times that what was taken for a client that had left was put back.
    elements_put_back: Total,
    /// Times that it could not be put back, or that it is not known.
    elements_lost: Total,
}
