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

    /// The number that the server answers, or that is the text of what it answers.
    pub(super) fn number(&mut self, words: &str) -> io::Result<u64> {
        let reply = self.ask(words)?;
        let number = reply.strip_prefix(':').or_else(|| reply.starts_with('$').then(|| reply.lines().nth(1))?);
        let number = number.and_then(|number| number.trim().parse().ok());
        number.ok_or_else(|| io::Error::other(format!("{words} got {reply:?}, which is no number")))
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
        let counts = list.split_whitespace().filter_map(|word| word.strip_prefix("sub="));
        let counts = counts.map(|count| count.parse::<u64>().map_err(io::Error::other));
        counts.sum()
    }
}
