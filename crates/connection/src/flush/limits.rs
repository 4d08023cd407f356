//! All bounds of the policy, in one struct, each with its reason.

/// The bounds of [`super::FlushPolicy`]. There is one set, [`FLUSH_LIMITS`]: what an operator may choose is in the policy itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushLimits {
    /// Bytes that may be held: a few segments of loopback or Ethernet.
    pub bytes_max: usize,
    /// The round trip from which on nothing is held, in microseconds. What is held for replies waits for one round trip at most,
    /// which has to be shorter than a scheduler's time slice.
    pub link_us_max: u64,
    /// How long bytes may be held for replies, in microseconds. Reached only when a node stops answering.
    pub replies_us_max: u64,
    /// With requests of so many senders outstanding, replies of a connection are waited for. With fewer, the node is soon idle: what a
    /// shared write saves is less than what the requests lose that wait for it. The requests of one pipeline have one sender: they
    /// share a write already.
    pub senders_min: usize,
    /// Outstanding requests up to which replies of a connection are waited for before clients are read. With more, node and
    /// worker have enough to do at the same time.
    pub replies_outstanding_max: usize,
    /// Connections up to which a worker waits for nodes alone. Each of them is asked in every turn.
    pub links_max: usize,
    /// A client that sends again within this time after its replies were written is expected to do so the next time, in
    /// microseconds. Longer than a round of a program's own loop, far shorter than a person or a database.
    pub return_us_max: u64,
    /// Fewer expected clients than this are not waited for: their requests would not make a batch much larger.
    pub returning_min: usize,
    /// How long a batch that is smaller than usual may wait for expected clients, in microseconds; never longer than half a
    /// round trip either, so that it cannot cost more than it may gain.
    pub returning_us_max: u64,
    /// Connections whose writes fewer senders usually share do not wait for expected clients, nor for replies unless
    /// [`Self::senders_min`] is reached.
    pub usual_senders_min: usize,
    /// The longest delay that an operator may allow [`super::FlushPolicy::Adaptive`], in microseconds.
    pub delay_us_max: u64,
    /// A request may be delayed by this part of the time that its client let pass since its last one, as a divisor. So clients of
    /// a closed loop lose six in a hundred at most.
    pub delay_divisor: u64,
    /// So many further requests have to be expected within the delay.
    pub arrivals_min: u64,
    /// A batch of so many requests is not delayed for more, nor is one of a connection that usually writes as many: what a write
    /// costs is shared well enough. Nor does the round trip of a large batch say how long the node's queue is.
    pub batch_enough: usize,
    /// How long arrivals are counted, in microseconds: fifty requests at the rate where it begins to matter.
    pub window_us: u64,
    /// A request may be delayed by this part of the time that requests wait at the node, as a divisor: a delay as long as that would
    /// double the time of a request that finds no queue by chance.
    pub queue_divisor: u64,
    /// A wait that took less found its event there: the loop did not sleep, in microseconds.
    pub at_once_us: u64,
    /// So many messages have to be expected within [`Self::replies_us_max`] before one waits for others that are not there to be
    /// read. With fewer a subscriber would hardly have two in a write.
    pub messages_min: u64,
    /// How many callers of a program have to share a write so that it is worth one of its own while others of the same read are on their way: of
    /// fewer, a write costs the server more than it gains.
    pub wave_callers_min: usize,
    /// Samples over which the least round trip is sought. It tells the link from the node's queue.
    pub least_round_trip_samples: u32,
}

/// The bounds.
pub const FLUSH_LIMITS: FlushLimits = FlushLimits {
    bytes_max: 16 * 1024,
    link_us_max: 300,
    replies_us_max: 1_000,
    senders_min: 16,
    replies_outstanding_max: 1_024,
    links_max: 64,
    return_us_max: 1_000,
    returning_min: 4,
    returning_us_max: 200,
    usual_senders_min: 8,
    delay_us_max: 1_000,
    delay_divisor: 16,
    arrivals_min: 2,
    batch_enough: 16,
    window_us: 2_500,
    queue_divisor: 2,
    at_once_us: 10,
    messages_min: 8,
    wave_callers_min: 48,
    least_round_trip_samples: 1_024,
};
