//! The console: Respool's own commands. No server has them, so they are not listed to clients that ask for all commands,
//! and `since` is the version of Respool.

use crate::Lane;
use crate::row::row;

/// Flags of everything in the console: it is administration, and works whatever state the data is in.
const ADMIN: &str = "admin noscript loading stale";

rows! {
    /// The console of the proxy.
    ProxyCommand, Proxy;

    /// See and steer the proxy.
    Proxy = row("PROXY", -2, "0.1.0").lane(Lane::Local) => {
        /// Stop sending to a node, or end the process once what is owed has been answered.
        #[args = "[node+]"]
        #[reply = "any"]
        ProxyDrain = row("PROXY DRAIN", -2, "0.1.0").flags(ADMIN).lane(Lane::Local);
        /// Say what would be done with a command, without doing it.
        #[args = "command [arg+]"]
        #[reply = "any"]
        ProxyExplain = row("PROXY EXPLAIN", -3, "0.1.0").flags(ADMIN).lane(Lane::Local);
        /// List the subcommands.
        #[reply = "[simple]"]
        ProxyHelp = row("PROXY HELP", 2, "0.1.0").flags("loading stale").lane(Lane::Local);
        /// Disconnect clients by their numbers.
        #[args = "client-id:int+"]
        #[reply = "any"]
        ProxyKill = row("PROXY KILL", -3, "0.1.0").flags(ADMIN).lane(Lane::Local);
        /// Ask one node something about itself: INFO, SLOWLOG, LATENCY, CONFIG GET.
        #[args = "node command [arg+]"]
        #[reply = "any"]
        ProxyNode = row("PROXY NODE", -4, "0.1.0").flags(ADMIN).lane(Lane::Local);
        /// Hold requests to the named nodes, or all requests, until they are resumed; WAIT: answer once nothing is outstanding.
        #[args = "[node+] [WAIT]"]
        #[reply = "any"]
        ProxyPause = row("PROXY PAUSE", -2, "0.1.0").flags(ADMIN).lane(Lane::Local);
        /// Replace the connections to the named nodes, or to all, without losing a reply.
        #[args = "[node+]"]
        #[reply = "any"]
        ProxyReconnect = row("PROXY RECONNECT", -2, "0.1.0").flags(ADMIN).lane(Lane::Local);
        /// Read the settings again, as SIGHUP does.
        #[reply = "any"]
        ProxyReload = row("PROXY RELOAD", 2, "0.1.0").flags(ADMIN).lane(Lane::Local);
        /// Send to nodes again that were paused or drained.
        #[args = "[node+]"]
        #[reply = "any"]
        ProxyResume = row("PROXY RESUME", -2, "0.1.0").flags(ADMIN).lane(Lane::Local);
        /// Show what the proxy knows: pools, clients, nodes, pins, routes, memory, hot keys, big keys, latencies.
        #[args = "what [arg+]"]
        #[reply = "any"]
        ProxyShow = row("PROXY SHOW", -3, "0.1.0").flags(ADMIN).lane(Lane::Local);
        /// Show or empty the log of slow requests, with the times in the queue and at the node apart.
        #[args = "subcommand [arg+]"]
        #[reply = "any"]
        ProxySlowlog = row("PROXY SLOWLOG", -3, "0.1.0").flags(ADMIN).lane(Lane::Local);
        /// Hold all requests, read no client, and answer once nodes have answered and clients have been given everything.
        #[reply = "any"]
        ProxySuspend = row("PROXY SUSPEND", 2, "0.1.0").flags(ADMIN).lane(Lane::Local);
        /// Answer once the connections to the named nodes, or to all, that were to be replaced or closed are closed.
        #[args = "[node+]"]
        #[reply = "any"]
        ProxyWaitClose = row("PROXY WAIT_CLOSE", -2, "0.1.0").flags(ADMIN).lane(Lane::Local);
    };
}
