//! The clients that are compared, each behind the same few calls.
//!
//! A client is used as its own documentation shows: one shared connection, `TCP_NODELAY` on, replies in the type that costs it least.

#[cfg(feature = "glide")]
mod glide_peer;

use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[cfg(feature = "glide")]
pub(crate) use glide_peer::Glide;

/// What stands in front of the path of a socket.
pub(crate) const UNIX: &str = "unix:";

/// Why a call has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It was not executed, and will not be, as the client says.
    NotSent,
    /// It may have been. What all clients say that do not tell the two apart.
    Maybe,
}

/// A handle that every task has a copy of.
pub(crate) trait Peer: Clone + Send + Sync + 'static {
    /// Its calls wait in the thread, and are over when they are polled first.
    const IN_THREADS: bool = false;

    /// Whether the value of `key` is this one.
    fn get_is(&mut self, key: &str, value: &[u8]) -> impl Future<Output = Result<bool, Failure>> + Send;

    fn set(&mut self, key: &str, value: &[u8]) -> impl Future<Output = Result<(), Failure>> + Send;

    fn incr(&mut self, key: &str) -> impl Future<Output = Result<i64, Failure>> + Send;

    /// Sets these keys to these values, in one batch.
    fn set_all(&mut self, pairs: &[(String, String)]) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Whether the keys have these values, read in one batch.
    fn get_are(&mut self, pairs: &[(String, String)]) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// As [`Self::incr`], given up after so much time if it waits in a thread, and by being dropped after so many turns of a task.
    fn incr_for(
        &mut self,
        key: &str,
        turns: u32,
        _limit: Duration,
    ) -> impl Future<Output = Option<Result<i64, Failure>>> + Send {
        async move {
            tokio::select! {
                biased;
                reply = self.incr(key) => Some(reply),
                () = wait_turns(turns) => None,
            }
        }
    }

    /// Places of callers that are still taken, where it can be known.
    fn taken(&self) -> Option<usize> {
        None
    }
}

async fn wait_turns(turns: u32) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}

fn of_respool(error: &respool_client::Error) -> Failure {
    match error.outcome() {
        respool_client::Outcome::NotSent => Failure::NotSent,
        _ => Failure::Maybe,
    }
}

/// Whether values are the ones that were asked for, each in its place.
fn are_values(found: impl ExactSizeIterator<Item: AsRef<[u8]>>, pairs: &[(String, String)]) -> bool {
    found.len() == pairs.len() && found.zip(pairs).all(|(found, (_, value))| found.as_ref() == value.as_bytes())
}

fn sets(pairs: &[(String, String)]) -> impl Iterator<Item = respool_client::Command> {
    pairs.iter().map(|(key, value)| respool_client::cmd("SET").key(key).arg(value))
}

fn gets(pairs: &[(String, String)]) -> impl Iterator<Item = respool_client::Command> {
    pairs.iter().map(|(key, _)| respool_client::cmd("GET").key(key))
}

type Replies = Result<Vec<Result<respool_client::Reply, respool_client::ServerError>>, respool_client::Error>;

fn are_set(replies: Replies) -> Result<(), Failure> {
    let replies = replies.map_err(|error| of_respool(&error))?;
    if replies.iter().all(Result::is_ok) { Ok(()) } else { Err(Failure::Maybe) }
}

fn are_found(replies: Replies, pairs: &[(String, String)]) -> Result<bool, Failure> {
    let replies = replies.map_err(|error| of_respool(&error))?;
    let is = |(reply, (_, value)): (&Result<respool_client::Reply, _>, &(String, String))| match reply {
        Ok(respool_client::Reply::Bulk(found)) => *found == value.as_bytes(),
        _ => false,
    };
    Ok(replies.len() == pairs.len() && replies.iter().zip(pairs).all(is))
}

/// The client of this project, by tasks.
#[derive(Clone)]
pub(crate) struct Respool(pub(crate) respool_client::Client);

impl Peer for Respool {
    async fn get_is(&mut self, key: &str, value: &[u8]) -> Result<bool, Failure> {
        let found: Option<Bytes> = self.0.get(key).await.map_err(|error| of_respool(&error))?;
        Ok(found.as_deref() == Some(value))
    }

    async fn set(&mut self, key: &str, value: &[u8]) -> Result<(), Failure> {
        self.0.call(respool_client::cmd("SET").key(key).arg(value)).await.map_err(|error| of_respool(&error))
    }

    async fn incr(&mut self, key: &str) -> Result<i64, Failure> {
        self.0.call(respool_client::cmd("INCR").key(key)).await.map_err(|error| of_respool(&error))
    }

    async fn set_all(&mut self, pairs: &[(String, String)]) -> Result<(), Failure> {
        are_set(self.0.batch(sets(pairs)).await)
    }

    async fn get_are(&mut self, pairs: &[(String, String)]) -> Result<bool, Failure> {
        are_found(self.0.batch(gets(pairs)).await, pairs)
    }

    fn taken(&self) -> Option<usize> {
        Some(self.0.stats().callers)
    }
}

/// The client of this project, by threads.
#[derive(Clone)]
pub(crate) struct RespoolThreads(pub(crate) respool_client::Client);

impl Peer for RespoolThreads {
    const IN_THREADS: bool = true;

    async fn get_is(&mut self, key: &str, value: &[u8]) -> Result<bool, Failure> {
        let found: Option<Bytes> = self.0.get(key).wait().map_err(|error| of_respool(&error))?;
        Ok(found.as_deref() == Some(value))
    }

    async fn set(&mut self, key: &str, value: &[u8]) -> Result<(), Failure> {
        let call = self.0.call(respool_client::cmd("SET").key(key).arg(value));
        call.wait().map_err(|error| of_respool(&error))
    }

    async fn incr(&mut self, key: &str) -> Result<i64, Failure> {
        self.0.call(respool_client::cmd("INCR").key(key)).wait().map_err(|error| of_respool(&error))
    }

    async fn set_all(&mut self, pairs: &[(String, String)]) -> Result<(), Failure> {
        are_set(self.0.batch(sets(pairs)).wait())
    }

    async fn get_are(&mut self, pairs: &[(String, String)]) -> Result<bool, Failure> {
        are_found(self.0.batch(gets(pairs)).wait(), pairs)
    }

    async fn incr_for(&mut self, key: &str, _turns: u32, limit: Duration) -> Option<Result<i64, Failure>> {
        match self.0.call(respool_client::cmd("INCR").key(key)).deadline(limit).wait() {
            Err(error) if matches!(error.kind(), respool_client::ErrorKind::Timeout(_)) => None,
            reply => Some(reply.map_err(|error| of_respool(&error))),
        }
    }

    fn taken(&self) -> Option<usize> {
        Some(self.0.stats().callers)
    }
}

/// The crate `redis`, of one version, by either of its shared connections: the plain one, and the one that is made anew when it is lost.
macro_rules! redis_peers {
    ($module:ident, $krate:ident) => {
        pub(crate) mod $module {
            use super::{Failure, Peer, are_values};
            use $krate::aio::{ConnectionLike, ConnectionManager, MultiplexedConnection};
            use $krate::cluster::ClusterClient;
            use $krate::cluster_async::ClusterConnection;
            use $krate::{Client, ConnectionAddr, IntoConnectionInfo, cmd, pipe};

            #[derive(Clone)]
            pub(crate) struct Shared<C>(C);

            pub(crate) fn client(address: &str) -> Client {
                let settings = $krate::io::tcp::TcpSettings::default().set_nodelay(true);
                let address = match address.strip_prefix(super::UNIX) {
                    Some(path) => ConnectionAddr::Unix(path.into()),
                    None => {
                        let (host, port) = address.rsplit_once(':').expect("host and port");
                        ConnectionAddr::Tcp(host.to_owned(), port.parse().expect("a port"))
                    }
                };
                let info = address.into_connection_info().expect("an address").set_tcp_settings(settings);
                Client::open(info).expect("a client")
            }

            pub(crate) async fn plain(address: &str) -> Shared<MultiplexedConnection> {
                Shared(client(address).get_multiplexed_async_connection().await.expect("a connection"))
            }

            pub(crate) async fn managed(address: &str) -> Shared<ConnectionManager> {
                Shared(ConnectionManager::new(client(address)).await.expect("a connection"))
            }

            pub(crate) fn cluster_client(addresses: &str) -> ClusterClient {
                let settings = $krate::io::tcp::TcpSettings::default().set_nodelay(true);
                let seeds = addresses.split(',').map(|address| format!("redis://{address}"));
                ClusterClient::builder(seeds).tcp_settings(settings).build().expect("a client")
            }

            pub(crate) async fn cluster(addresses: &str) -> Shared<ClusterConnection> {
                Shared(cluster_client(addresses).get_async_connection().await.expect("a connection"))
            }

            impl<C: ConnectionLike + Clone + Send + Sync + 'static> Peer for Shared<C> {
                async fn get_is(&mut self, key: &str, value: &[u8]) -> Result<bool, Failure> {
                    let found: Vec<u8> =
                        cmd("GET").arg(key).query_async(&mut self.0).await.map_err(|_| Failure::Maybe)?;
                    Ok(found == value)
                }

                async fn set(&mut self, key: &str, value: &[u8]) -> Result<(), Failure> {
                    cmd("SET").arg(key).arg(value).query_async(&mut self.0).await.map_err(|_| Failure::Maybe)
                }

                async fn incr(&mut self, key: &str) -> Result<i64, Failure> {
                    cmd("INCR").arg(key).query_async(&mut self.0).await.map_err(|_| Failure::Maybe)
                }

                async fn set_all(&mut self, pairs: &[(String, String)]) -> Result<(), Failure> {
                    let mut pipe = pipe();
                    for (key, value) in pairs {
                        pipe.set(key, value).ignore();
                    }
                    pipe.query_async(&mut self.0).await.map_err(|_| Failure::Maybe)
                }

                async fn get_are(&mut self, pairs: &[(String, String)]) -> Result<bool, Failure> {
                    let mut pipe = pipe();
                    for (key, _) in pairs {
                        pipe.get(key);
                    }
                    let found: Vec<Vec<u8>> = pipe.query_async(&mut self.0).await.map_err(|_| Failure::Maybe)?;
                    Ok(are_values(found.iter(), pairs))
                }
            }
        }
    };
}

redis_peers!(redis_stable, redis_1);
redis_peers!(redis_candidate, redis_2);

/// The crate `redis` by threads. It has no connection that threads share, so each has its own: what a thread pays that waits for nothing
/// but its own replies.
pub(crate) struct RedisThreads {
    connect: Arc<dyn Fn() -> Box<dyn redis_1::ConnectionLike + Send> + Send + Sync>,
    own: Mutex<Option<Box<dyn redis_1::ConnectionLike + Send>>>,
}

impl RedisThreads {
    pub(crate) fn new(addresses: &str, is_cluster: bool) -> Self {
        let connect: Arc<dyn Fn() -> Box<dyn redis_1::ConnectionLike + Send> + Send + Sync> = if is_cluster {
            let client = redis_stable::cluster_client(addresses);
            Arc::new(move || Box::new(client.get_connection().expect("a connection")))
        } else {
            let client = redis_stable::client(addresses);
            Arc::new(move || Box::new(client.get_connection().expect("a connection")))
        };
        Self { connect, own: Mutex::new(None) }
    }

    fn ask<T: redis_1::FromRedisValue>(
        &mut self,
        ask: impl FnOnce(&mut dyn redis_1::ConnectionLike) -> redis_1::RedisResult<T>,
    ) -> Result<T, Failure> {
        let own = self.own.get_mut().unwrap_or_else(PoisonError::into_inner);
        let connection = own.get_or_insert_with(&*self.connect);
        ask(&mut **connection).map_err(|_| Failure::Maybe)
    }
}

impl Clone for RedisThreads {
    fn clone(&self) -> Self {
        Self { connect: Arc::clone(&self.connect), own: Mutex::new(None) }
    }
}

impl Peer for RedisThreads {
    const IN_THREADS: bool = true;

    async fn get_is(&mut self, key: &str, value: &[u8]) -> Result<bool, Failure> {
        let found: Vec<u8> = self.ask(|connection| redis_1::cmd("GET").arg(key).query(connection))?;
        Ok(found == value)
    }

    async fn set(&mut self, key: &str, value: &[u8]) -> Result<(), Failure> {
        self.ask(|connection| redis_1::cmd("SET").arg(key).arg(value).query(connection))
    }

    async fn incr(&mut self, key: &str) -> Result<i64, Failure> {
        self.ask(|connection| redis_1::cmd("INCR").arg(key).query(connection))
    }

    async fn set_all(&mut self, pairs: &[(String, String)]) -> Result<(), Failure> {
        let mut pipe = redis_1::pipe();
        for (key, value) in pairs {
            pipe.set(key, value).ignore();
        }
        self.ask(|connection| pipe.query(connection))
    }

    async fn get_are(&mut self, pairs: &[(String, String)]) -> Result<bool, Failure> {
        let mut pipe = redis_1::pipe();
        for (key, _) in pairs {
            pipe.get(key);
        }
        let found: Vec<Vec<u8>> = self.ask(|connection| pipe.query(connection))?;
        Ok(are_values(found.iter(), pairs))
    }
}

/// The crate `fred`.
#[derive(Clone)]
pub(crate) struct Fred(fred::clients::Client);

impl Fred {
    pub(crate) async fn connect(address: &str, is_cluster: bool) -> Self {
        use fred::prelude::*;
        let scheme = if is_cluster { "redis-cluster" } else { "redis" };
        let config = Config::from_url(&format!("{scheme}://{}", first(address))).expect("an address");
        let mut builder = Builder::from_config(config);
        builder.with_connection_config(|config| config.tcp.nodelay = Some(true));
        // Without end: it gives up by default.
        builder.set_policy(ReconnectPolicy::new_constant(0, 100));
        let client = builder.build().expect("a client");
        client.init().await.expect("a connection");
        Self(client)
    }
}

impl Peer for Fred {
    async fn get_is(&mut self, key: &str, value: &[u8]) -> Result<bool, Failure> {
        use fred::interfaces::KeysInterface;
        let found: Option<Bytes> = self.0.get(key).await.map_err(|_| Failure::Maybe)?;
        Ok(found.as_deref() == Some(value))
    }

    async fn set(&mut self, key: &str, value: &[u8]) -> Result<(), Failure> {
        use fred::interfaces::KeysInterface;
        self.0.set(key, value, None, None, false).await.map_err(|_| Failure::Maybe)
    }

    async fn incr(&mut self, key: &str) -> Result<i64, Failure> {
        use fred::interfaces::KeysInterface;
        self.0.incr(key).await.map_err(|_| Failure::Maybe)
    }

    async fn set_all(&mut self, pairs: &[(String, String)]) -> Result<(), Failure> {
        use fred::interfaces::KeysInterface;
        let pipeline = self.0.pipeline();
        for (key, value) in pairs {
            let () = pipeline.set(key, value.as_str(), None, None, false).await.map_err(|_| Failure::Maybe)?;
        }
        let _: Vec<()> = pipeline.all().await.map_err(|_| Failure::Maybe)?;
        Ok(())
    }

    async fn get_are(&mut self, pairs: &[(String, String)]) -> Result<bool, Failure> {
        use fred::interfaces::KeysInterface;
        let pipeline = self.0.pipeline();
        for (key, _) in pairs {
            let () = pipeline.get(key).await.map_err(|_| Failure::Maybe)?;
        }
        let found: Vec<Bytes> = pipeline.all().await.map_err(|_| Failure::Maybe)?;
        Ok(are_values(found.iter(), pairs))
    }
}

/// The first of several addresses, for clients that are told one.
fn first(addresses: &str) -> &str {
    addresses.split(',').next().unwrap_or(addresses)
}

/// The crate `rustis`.
#[derive(Clone)]
pub(crate) struct Rustis(rustis::client::Client);

impl Rustis {
    pub(crate) async fn connect(address: &str, is_cluster: bool) -> Self {
        let url = if is_cluster { format!("redis+cluster://{address}") } else { address.to_owned() };
        Self(rustis::client::Client::connect(url).await.expect("a connection"))
    }
}

impl Peer for Rustis {
    async fn get_is(&mut self, key: &str, value: &[u8]) -> Result<bool, Failure> {
        use rustis::commands::StringCommands;
        let found: rustis::resp::BulkString = self.0.get(key).await.map_err(|_| Failure::Maybe)?;
        Ok(*found == *value)
    }

    async fn set(&mut self, key: &str, value: &[u8]) -> Result<(), Failure> {
        use rustis::commands::StringCommands;
        self.0.set(key, rustis::resp::RefBulkString::from(value)).await.map_err(|_| Failure::Maybe)
    }

    async fn incr(&mut self, key: &str) -> Result<i64, Failure> {
        use rustis::commands::StringCommands;
        self.0.incr(key).await.map_err(|_| Failure::Maybe)
    }

    async fn set_all(&mut self, pairs: &[(String, String)]) -> Result<(), Failure> {
        use rustis::client::BatchPreparedCommand;
        use rustis::commands::StringCommands;
        let mut pipeline = self.0.create_pipeline();
        for (key, value) in pairs {
            pipeline.set(key.as_str(), value.as_str()).queue();
        }
        let _: Vec<String> = pipeline.execute().await.map_err(|_| Failure::Maybe)?;
        Ok(())
    }

    async fn get_are(&mut self, pairs: &[(String, String)]) -> Result<bool, Failure> {
        use rustis::client::BatchPreparedCommand;
        use rustis::commands::StringCommands;
        let mut pipeline = self.0.create_pipeline();
        for (key, _) in pairs {
            pipeline.get::<()>(key.as_str()).queue();
        }
        let found: Vec<rustis::resp::BulkString> = pipeline.execute().await.map_err(|_| Failure::Maybe)?;
        let found: Vec<&[u8]> = found.iter().map(|value| &value[..]).collect();
        Ok(are_values(found.iter(), pairs))
    }
}
