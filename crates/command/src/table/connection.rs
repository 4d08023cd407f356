//! The connection and its state.

use crate::row::row;
use crate::Lane;

rows! {
    /// The connection and its state.
    ConnectionCommand, Connection;

    /// Authenticate the connection.
    #[args = "[username^6.0.0] password"]
    #[reply = "ok"]
    #[complexity = "O(N)"]
    #[changes = "connection"]
    Auth = row("AUTH", -2, "1.0.0")
        .flags("noscript loading stale fast no_auth allow_busy")
        .acl("connection")
        .lane(Lane::Local);

    /// See and steer client connections.
    Client = row("CLIENT", -2, "2.4.0").lane(Lane::Local) => {
        /// Say whether the keys of the next command are to be tracked.
        #[args = "mode<YES|NO>"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        #[changes = "connection"]
        ClientCaching = row("CLIENT CACHING", 3, "6.0.0")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Name capabilities of the client, such as redirections by a replica.
        #[args = "capability+"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        #[changes = "connection"]
        ClientCapa = row("CLIENT CAPA", -3, "8.0.0")
            .flags("noscript loading stale allow_busy")
            .acl("connection")
            .lane(Lane::Local);
        /// Tell the name given to this connection.
        #[reply = "bulk?"]
        #[complexity = "O(1)"]
        ClientGetname = row("CLIENT GETNAME", 2, "2.6.9")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Tell which connection receives this one's invalidations.
        #[reply = "int"]
        #[complexity = "O(1)"]
        ClientGetredir = row("CLIENT GETREDIR", 2, "6.0.0")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        ClientHelp = row("CLIENT HELP", 2, "5.0.0").flags("loading stale").acl("connection").lane(Lane::Local);
        /// Tell the number of this connection.
        #[reply = "int"]
        #[complexity = "O(1)"]
        ClientId = row("CLIENT ID", 2, "5.0.0")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Mark this connection as one that brings data of another server.
        #[args = "enabled<ON|OFF>"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        #[changes = "connection"]
        ClientImportSource = row("CLIENT IMPORT-SOURCE", 3, "8.1.0")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Describe this connection.
        #[reply = "text"]
        #[complexity = "O(1)"]
        ClientInfo = row("CLIENT INFO", 2, "6.2.0")
            .flags("noscript loading stale")
            .acl("connection")
            .tips(&["nondeterministic_output"])
            .lane(Lane::Local);
        /// Close connections by address, number, user or kind.
        #[args = "\
            filter<ip:port~2.8.12|new-format<[ID/client-id:int^2.8.12]|[TYPE/normal_master_slave_pubsub<NORMAL|\
                MASTER^3.2.0|SLAVE|REPLICA^5.0.0|PUBSUB>^2.8.12]|[USER/username]|[ADDR/ip:port]|\
                [LADDR/ip:port^6.2.0]|[SKIPME/yes/no]>+>"]
        #[reply = "int; ip:port -> ok"]
        #[complexity = "O(N)"]
        ClientKill = row("CLIENT KILL", -3, "2.4.0")
            .flags("admin noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Describe the open connections.
        #[args = "\
            [TYPE/normal_master_replica_pubsub<NORMAL|MASTER|REPLICA|PUBSUB>^5.0.0] [ID/id(client-id:int+)^6.2.0]"]
        #[reply = "text"]
        #[complexity = "O(N)"]
        ClientList = row("CLIENT LIST", -2, "2.4.0")
            .flags("admin noscript loading stale")
            .acl("connection")
            .tips(&["nondeterministic_output"])
            .lane(Lane::Local);
        /// Spare this connection when memory for clients runs out.
        #[args = "enabled<ON|OFF>"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        #[changes = "connection"]
        ClientNoEvict = row("CLIENT NO-EVICT", 3, "7.0.0")
            .flags("admin noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Have the connection's reads leave no trace in how recently keys were used.
        #[args = "enabled<ON|OFF>"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        #[changes = "connection"]
        ClientNoTouch = row("CLIENT NO-TOUCH", 3, "7.2.0")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Hold back the commands of all clients for a while.
        #[args = "timeout:int [mode<WRITE|ALL>^6.2.0]"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        ClientPause = row("CLIENT PAUSE", -3, "2.9.50")
            .flags("admin noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Turn replies to this connection off and on, or skip one.
        #[args = "on_off_skip<ON|OFF|SKIP>"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        #[changes = "connection"]
        ClientReply = row("CLIENT REPLY", 3, "3.2.0")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Record the name and version of the client library.
        #[args = "attr<LIB-NAME/libname|LIB-VER/libver>"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        #[changes = "connection"]
        ClientSetinfo = row("CLIENT SETINFO", 4, "7.2.0")
            .flags("noscript loading stale allow_busy")
            .acl("connection")
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
            .lane(Lane::Local);
        /// Give this connection a name.
        #[args = "connection-name"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        #[changes = "connection"]
        ClientSetname = row("CLIENT SETNAME", 3, "2.6.9")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Ask to be told when keys that were read here change.
        #[args = "status<ON|OFF> [REDIRECT/client-id:int] [PREFIX/prefix++] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        #[changes = "connection"]
        ClientTracking = row("CLIENT TRACKING", -3, "6.0.0")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Show how this connection tracks keys.
        #[reply = "map<any>"]
        #[complexity = "O(1)"]
        ClientTrackinginfo = row("CLIENT TRACKINGINFO", 2, "6.2.0")
            .flags("noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Wake a connection that waits in a blocking command.
        #[args = "client-id:int [timeout_error<TIMEOUT|ERROR>]"]
        #[reply = "flag"]
        #[complexity = "O(log N)"]
        ClientUnblock = row("CLIENT UNBLOCK", -3, "5.0.0")
            .flags("admin noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// End a pause of all clients.
        #[reply = "ok"]
        #[complexity = "O(N)"]
        ClientUnpause = row("CLIENT UNPAUSE", 2, "6.2.0")
            .flags("admin noscript loading stale")
            .acl("connection")
            .lane(Lane::Local);
    };

    /// Answer with the argument.
    #[args = "message"]
    #[reply = "bulk"]
    #[complexity = "O(1)"]
    Echo = row("ECHO", 2, "1.0.0").flags("loading stale fast").acl("connection").lane(Lane::Local);

    /// Choose the protocol version, and perhaps authenticate and name the connection.
    #[args = "[arguments(protover:int [AUTH/username_password(username password)] [SETNAME/clientname])]"]
    #[reply = "map<any>"]
    #[complexity = "O(1)"]
    #[changes = "connection"]
    Hello = row("HELLO", -1, "6.0.0")
        .flags("noscript loading stale fast no_auth allow_busy")
        .acl("connection")
        .lane(Lane::Local);

    /// Answer PONG, or the argument.
    #[args = "[message]"]
    #[reply = "simple; message -> bulk"]
    #[complexity = "O(1)"]
    Ping = row("PING", -1, "1.0.0")
        .flags("fast")
        .acl("connection")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .lane(Lane::Local);

    /// Close the connection.
    #[reply = "ok"]
    #[complexity = "O(1)"]
    #[changes = "connection"]
    Quit = row("QUIT", -1, "1.0.0")
        .flags("noscript loading stale fast no_auth allow_busy")
        .acl("connection")
        .lane(Lane::Local);

    /// Bring the connection back to its first state.
    #[reply = "simple"]
    #[complexity = "O(1)"]
    #[changes = "connection"]
    Reset = row("RESET", 1, "6.2.0")
        .flags("noscript loading stale fast no_auth allow_busy")
        .acl("connection")
        .lane(Lane::Local);

    /// Choose the database.
    #[args = "index:int"]
    #[reply = "ok"]
    #[complexity = "O(1)"]
    #[changes = "connection"]
    Select = row("SELECT", 2, "1.0.0").flags("loading stale fast").acl("connection").lane(Lane::Local);
}
