//! The servers that are compared, each with as much room for slow subscribers as the others.

use std::fmt;
use std::io;
use std::path::Path;

use clap::ValueEnum;
use respool_testkit::{Address, Client, RedisServer, Respool};

use crate::binary::Binary;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Subject {
    /// redis-server.
    Redis,
    /// The embedded server.
    Engine,
    /// The proxy, with a redis-server behind it.
    Proxy,
}

impl Subject {
    pub(super) const ALL: [Self; 3] = [Self::Redis, Self::Engine, Self::Proxy];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis-server",
            Self::Engine => "engine",
            Self::Proxy => "proxy",
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A subject that runs.
pub(super) struct Server {
    redis: Option<RedisServer>,
    respool: Option<Respool>,
}

impl Server {
    /// Starts it anew. A subscriber that has not taken so many bytes of messages is too slow.
    pub(super) fn start(subject: Subject, binary: &Path, options: &Binary, output_bytes: u64) -> io::Result<Server> {
        let redis = match subject {
            Subject::Redis | Subject::Proxy => {
                let limit = format!("pubsub {output_bytes} {output_bytes} 60");
                Some(RedisServer::start_with(&["--client-output-buffer-limit", &limit])?)
            }
            Subject::Engine => None,
        };
        let respool = match subject {
            Subject::Redis => None,
            Subject::Engine | Subject::Proxy => {
                let nodes: Vec<Address> = redis.iter().map(RedisServer::tcp).collect();
                let bytes = output_bytes.to_string();
                let own = ["--workers", "1", "--subscriber-output-bytes", &bytes];
                Some(Respool::start(binary, &nodes, &options.arguments(&own))?)
            }
        };
        Ok(Server { redis, respool })
    }

    /// Where clients connect to.
    pub(super) fn address(&self) -> Address {
        match (&self.respool, &self.redis) {
            (Some(respool), _) => respool.tcp(),
            (None, Some(redis)) => redis.tcp(),
            (None, None) => unreachable!("every subject has a server"),
        }
    }

    pub(super) fn client(&self) -> io::Result<Client> {
        Client::connect(&self.address())
    }

    /// The process that clients connect to.
    pub(super) fn pid(&self) -> u32 {
        match (&self.respool, &self.redis) {
            (Some(respool), _) => respool.pid(),
            (None, Some(redis)) => redis.pid(),
            (None, None) => unreachable!("every subject has a server"),
        }
    }

    /// The redis-server behind the proxy.
    pub(super) fn node(&self) -> Option<&RedisServer> {
        self.redis.as_ref().filter(|_| self.respool.is_some())
    }

    /// How many subscriptions the server behind the proxy holds, those of all connections together.
    pub(super) fn subscriptions_behind(&self) -> io::Result<Option<u64>> {
        let Some(node) = self.node() else { return Ok(None) };
        let list = node.client()?.ask("CLIENT LIST")?;
        let counts = list.split_whitespace().filter_map(|field| field.strip_prefix("sub=")?.parse::<u64>().ok());
        Ok(Some(counts.sum()))
    }
}
