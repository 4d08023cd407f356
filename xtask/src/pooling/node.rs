//! A redis-server behind a Respool, and what the server says about its connections.

use std::io;

use respool_testkit::{Client, RedisServer, Respool};

use super::Bench;

/// Both, and a connection to the server that was there before all others.
pub(super) struct Pair {
    pub(super) respool: Respool,
    pub(super) server: RedisServer,
    control: Client,
}

impl Pair {
    pub(super) fn start(bench: &Bench, arguments: &[&str]) -> io::Result<Pair> {
        let server = RedisServer::start()?;
        let control = server.client()?;
        let respool = Respool::start(&bench.respool, &[server.tcp()], &bench.binary.arguments(arguments))?;
        Ok(Pair { respool, server, control })
    }

    /// Asks the server itself.
    pub(super) fn ask(&mut self, words: &str) -> io::Result<String> {
        self.control.ask(words)
    }

    /// Connects to the server again after it was started anew.
    pub(super) fn reconnect(&mut self) -> io::Result<()> {
        self.control = self.server.client()?;
        Ok(())
    }

    /// Connections that the server has accepted since its start.
    pub(super) fn connections_ever(&mut self) -> io::Result<u64> {
        self.control.figure("stats", "total_connections_received")
    }

    /// Connections that Respool has to the server now.
    pub(super) fn connections(&mut self) -> io::Result<u64> {
        // This one is not Respool's.
        Ok(self.control.figure("clients", "connected_clients")?.saturating_sub(1))
    }

    /// Subscriptions to channels that Respool's connections hold together.
    pub(super) fn subscriptions(&mut self) -> io::Result<u64> {
        let list = self.ask("CLIENT LIST")?;
        Ok(list.split_whitespace().filter_map(|word| word.strip_prefix("sub=")?.parse::<u64>().ok()).sum())
    }
}
