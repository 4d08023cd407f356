//! The connection and its state.

use crate::row::row;
use crate::Lane;

rows! {
    /// The connection and its state.
    ConnectionCommand, Connection;

    /// Authenticate the connection.
    Auth = row("AUTH", -2, "1.0.0")
        .flags("noscript loading stale fast no_auth allow_busy")
        .acl("connection")
        .lane(Lane::Local);

    /// See and steer client connections.
    Client = row("CLIENT", -2, "2.4.0").lane(Lane::Local) => {
        /// Say whether the keys of the next command are to be tracked.
        ClientCaching = row("CLIENT CACHING", 3, "6.0.0")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Tell the name given to this connection.
        ClientGetname = row("CLIENT GETNAME", 2, "2.6.9")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Tell which connection receives this one's invalidations.
        ClientGetredir = row("CLIENT GETREDIR", 2, "6.0.0")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// List the subcommands.
        ClientHelp = row("CLIENT HELP", 2, "5.0.0").flags("loading stale").acl("connection").lane(Lane::Local);
        /// Tell the number of this connection.
        ClientId = row("CLIENT ID", 2, "5.0.0")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Describe this connection.
        ClientInfo = row("CLIENT INFO", 2, "6.2.0")
            .flags("noscript loading stale")
            .acl("connection")
            .tips(&["nondeterministic_output"])
            .lane(Lane::Local);
        /// Close connections by address, number, user or kind.
        ClientKill = row("CLIENT KILL", -3, "2.4.0")
            .flags("admin noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Describe the open connections.
        ClientList = row("CLIENT LIST", -2, "2.4.0")
            .flags("admin noscript loading stale")
            .acl("connection")
            .tips(&["nondeterministic_output"])
            .lane(Lane::Local);
        /// Spare this connection when memory for clients runs out.
        ClientNoEvict = row("CLIENT NO-EVICT", 3, "7.0.0")
            .flags("admin noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Have the connection's reads leave no trace in how recently keys were used.
        ClientNoTouch = row("CLIENT NO-TOUCH", 3, "7.2.0")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Hold back the commands of all clients for a while.
        ClientPause = row("CLIENT PAUSE", -3, "2.9.50")
            .flags("admin noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Turn replies to this connection off and on, or skip one.
        ClientReply = row("CLIENT REPLY", 3, "3.2.0")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Record the name and version of the client library.
        ClientSetinfo = row("CLIENT SETINFO", 4, "7.2.0")
            .flags("noscript loading stale allow_busy")
            .acl("connection")
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
            .lane(Lane::Local);
        /// Give this connection a name.
        ClientSetname = row("CLIENT SETNAME", 3, "2.6.9")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Ask to be told when keys that were read here change.
        ClientTracking = row("CLIENT TRACKING", -3, "6.0.0")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Show how this connection tracks keys.
        ClientTrackinginfo = row("CLIENT TRACKINGINFO", 2, "6.2.0")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Wake a connection that waits in a blocking command.
        ClientUnblock = row("CLIENT UNBLOCK", -3, "5.0.0")
            .flags("admin noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// End a pause of all clients.
        ClientUnpause = row("CLIENT UNPAUSE", 2, "6.2.0")
            .flags("admin noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
    };

    /// Answer with the argument.
    Echo = row("ECHO", 2, "1.0.0").flags("loading stale fast").acl("connection").lane(Lane::Local);

    /// Choose the protocol version, and perhaps authenticate and name the connection.
    Hello = row("HELLO", -1, "6.0.0")
        .flags("noscript loading stale fast no_auth allow_busy")
        .acl("connection")
        .lane(Lane::Local);

    /// Answer PONG, or the argument.
    Ping = row("PING", -1, "1.0.0")
        .flags("fast")
        .acl("connection")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .lane(Lane::Local);

    /// Close the connection.
    Quit = row("QUIT", -1, "1.0.0")
        .flags("noscript loading stale fast no_auth allow_busy")
        .acl("connection")
        .lane(Lane::Local);

    /// Bring the connection back to its first state.
    Reset = row("RESET", 1, "6.2.0")
        .flags("noscript loading stale fast no_auth allow_busy")
        .acl("connection")
        .lane(Lane::Local);

    /// Choose the database.
    Select = row("SELECT", 2, "1.0.0").flags("loading stale fast").acl("connection").lane(Lane::Local);
}
