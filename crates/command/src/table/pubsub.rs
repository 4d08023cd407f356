//! Publish and subscribe.

use crate::row::row;
use crate::Lane;

rows! {
    /// Publish and subscribe.
    PubsubCommand, Pubsub;

    /// Receive the messages of channels that match patterns.
    #[args = "pattern(pattern:pattern)+"]
    #[reply = "push"]
    #[complexity = "O(N)"]
    #[changes = "connection"]
    Psubscribe = row("PSUBSCRIBE", -2, "2.0.0").flags("pubsub noscript loading stale").lane(Lane::Push);

    /// Send a message to a channel.
    #[args = "channel message"]
    #[reply = "int"]
    #[complexity = "O(N+M)"]
    Publish = row("PUBLISH", 3, "2.0.0").flags("pubsub loading stale fast").lane(Lane::Push);

    /// Look at channels and their subscribers.
    Pubsub = row("PUBSUB", -2, "2.8.0").lane(Lane::Local) => {
        /// List the channels that have subscribers.
        #[args = "[pattern:pattern]"]
        #[reply = "[bulk]"]
        #[complexity = "O(N)"]
        PubsubChannels = row("PUBSUB CHANNELS", -2, "2.8.0").flags("pubsub loading stale").lane(Lane::Local);
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        PubsubHelp = row("PUBSUB HELP", 2, "6.2.0").flags("loading stale").lane(Lane::Local);
        /// Count the patterns that are subscribed to.
        #[reply = "int"]
        #[complexity = "O(1)"]
        PubsubNumpat = row("PUBSUB NUMPAT", 2, "2.8.0").flags("pubsub loading stale").lane(Lane::Local);
        /// Count the subscribers of channels.
        #[args = "[channel+]"]
        #[reply = "flat<int>"]
        #[complexity = "O(N)"]
        PubsubNumsub = row("PUBSUB NUMSUB", -2, "2.8.0").flags("pubsub loading stale").lane(Lane::Local);
        /// List the sharded channels that have subscribers.
        #[args = "[pattern:pattern]"]
        #[reply = "[bulk]"]
        #[complexity = "O(N)"]
        PubsubShardchannels = row("PUBSUB SHARDCHANNELS", -2, "7.0.0")
            .flags("pubsub loading stale")
            .lane(Lane::Local);
        /// Count the subscribers of sharded channels.
        #[args = "[shardchannel+]"]
        #[reply = "flat<int>"]
        #[complexity = "O(N)"]
        PubsubShardnumsub = row("PUBSUB SHARDNUMSUB", -2, "7.0.0")
            .flags("pubsub loading stale")
            .lane(Lane::Local);
    };

    /// Give up patterns.
    #[args = "[pattern:pattern+]"]
    #[reply = "push"]
    #[complexity = "O(N+M)"]
    #[changes = "connection"]
    Punsubscribe = row("PUNSUBSCRIBE", -1, "2.0.0").flags("pubsub noscript loading stale").lane(Lane::Push);

    /// Send a message to a sharded channel.
    #[args = "shardchannel message"]
    #[reply = "int"]
    #[complexity = "O(N)"]
    Spublish = row("SPUBLISH", 3, "7.0.0")
        .flags("pubsub loading stale fast")
        .key(1, "not_key")
        .lane(Lane::Push);

    /// Receive the messages of sharded channels.
    #[args = "shardchannel+"]
    #[reply = "push"]
    #[complexity = "O(N)"]
    #[changes = "connection"]
    Ssubscribe = row("SSUBSCRIBE", -2, "7.0.0")
        .flags("pubsub noscript loading stale")
        .key_range(1, -1, 1, "not_key")
        .lane(Lane::Push);

    /// Receive the messages of channels.
    #[args = "channel+"]
    #[reply = "push"]
    #[complexity = "O(N)"]
    #[changes = "connection"]
    Subscribe = row("SUBSCRIBE", -2, "2.0.0").flags("pubsub noscript loading stale").lane(Lane::Push);

    /// Give up sharded channels.
    #[args = "[shardchannel+]"]
    #[reply = "push"]
    #[complexity = "O(N)"]
    #[changes = "connection"]
    Sunsubscribe = row("SUNSUBSCRIBE", -1, "7.0.0")
        .flags("pubsub noscript loading stale")
        .key_range(1, -1, 1, "not_key")
        .lane(Lane::Push);

    /// Give up channels.
    #[args = "[channel+]"]
    #[reply = "push"]
    #[complexity = "O(N)"]
    #[changes = "connection"]
    Unsubscribe = row("UNSUBSCRIBE", -1, "2.0.0").flags("pubsub noscript loading stale").lane(Lane::Push);
}
