//! The client: a handle that threads and tasks share.

use crate::call::{Batch, Call, Transaction};
use crate::lanes::{Watch, Watched};
use crate::pubsub::{Kind, Subscribe};
use crate::scan::Walk;
use crate::script::{Invocation, Script};
use crate::stats::Stats;
use crate::topology::{Node, Topology};
use crate::{Command, Config, Error, ErrorKind, FromReply, Reply, ServerError, ToArgs, cmd};
use crate::{cluster, shards};
use respool_route::cluster::{Address, slot_of};
use std::fmt;
use std::sync::Arc;

/// A client of one server, of a cluster, or of several servers among which keys are spread. Copies share one connection to each node, which is made with the first call and made anew when
/// it is lost.
///
/// It works in threads without any runtime and in tasks, also at the same time. It holds nothing of a runtime that must outlive it: when
/// the runtime that was used is gone, the connection goes on with another. It does not survive `fork`: a child must make its own.
///
/// ```
/// # mod on { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/server.rs")); }
/// # on::a_server(async |url| {
/// use respool_client::Client;
///
/// let client = Client::open(&url)?;   // "redis://localhost"
/// client.set("greeting", "hello").ex(60).wait()?;                       // in a thread
/// let greeting = client.get("greeting").cast::<Option<String>>().await?;   // in a task
/// assert_eq!(greeting.as_deref(), Some("hello"));
/// # Ok(()) });
/// ```
#[derive(Clone)]
pub struct Client {
    topology: Topology,
}

impl Client {
    /// A client of the server at `url`, see [`Config::from_url`]. Nothing is dialled yet.
    pub fn open(url: &str) -> Result<Self, Error> {
        Ok(Self::with_config(Config::from_url(url)?))
    }

    /// A client with these settings.
    pub fn with_config(config: Config) -> Self {
        #[cfg(feature = "cache")]
        let config = Config { caches: std::sync::Arc::default(), ..config };
        Self { topology: Topology::new(config) }
    }

    /// A client of the server at `url` that is connected.
    ///
    /// # Errors
    ///
    /// The address cannot be used, or the server cannot be reached within the time of a call, or refuses the handshake.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        let client = Self::open(url)?;
        // A user who may not ask this is connected as well.
        client.call::<Reply>(cmd("PING")).await?;
        Ok(client)
    }

    /// As [`Self::connect`], in this thread.
    ///
    /// # Errors
    ///
    /// As those of [`Self::connect`].
    pub fn connect_wait(url: &str) -> Result<Self, Error> {
        let client = Self::open(url)?;
        client.call::<Reply>(cmd("PING")).wait()?;
        Ok(client)
    }

    /// A call of `command`, whose reply is made into `T`.
    ///
    /// A command that waits on the server, as `BLPOP`, has a connection of its own while it waits. Its time is that for which it waits
    /// there and that of a call, unless it is set. See [`Event::Orphan`](crate::Event::Orphan) for calls that are dropped.
    pub fn call<T: FromReply>(&self, command: Command) -> Call<'_, T> {
        Call::new(self.topology.via(), command)
    }

    /// As [`Self::call`], at the node of a cluster that has this slot, or at the server of this number.
    pub(crate) fn call_at<T: FromReply>(&self, slot: u16, command: Command) -> Call<'_, T> {
        Call::at(self.topology.via(), slot, command)
    }

    /// The slot of the key that was marked, in a cluster.
    pub(crate) fn slot_at(&self, command: &Command) -> Option<u16> {
        match &self.topology {
            Topology::Single(_) | Topology::Shards(_) => None,
            Topology::Cluster(_) => command.marked_key().map(|key| slot_of(&key)),
        }
    }

    /// A walk over the keys of all nodes, if there are several.
    pub(crate) fn walk(&self) -> Option<Walk> {
        match &self.topology {
            Topology::Single(_) => None,
            Topology::Cluster(cluster) => Some(Walk::Slots(cluster::Walk::new(cluster))),
            Topology::Shards(shards) => Some(Walk::Shards(shards::Walk::new(shards))),
        }
    }

    /// Several requests that follow each other with none of another caller between them.
    pub fn batch(&self, commands: impl IntoIterator<Item = Command>) -> Batch<'_> {
        Batch::new(self.topology.via(), commands.into_iter().collect())
    }

    /// Several requests that are executed together or not at all.
    pub fn transaction(&self, commands: impl IntoIterator<Item = Command>) -> Transaction<'_> {
        Transaction::new(self.topology.via(), commands.into_iter().collect())
    }

    /// A call of a script, which is sent by its digest, and whole to a server that does not know it.
    pub fn script<'c>(&'c self, script: &'c Script) -> Invocation<'c> {
        Invocation::new(self, script)
    }

    /// Watches keys on a connection of its own, for a transaction that depends on what is read.
    pub fn watch(&self, keys: impl ToArgs) -> Watch {
        Watch::new(self.topology.via(), keys)
    }

    /// A transaction that depends on what is read, in a task: `make` reads on the connection that watches `keys`, and gives the requests to
    /// execute. If a key has changed meanwhile it is called again, `attempts` times at most.
    ///
    /// ```
    /// # mod on { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/server.rs")); }
    /// # on::a_server(async |url| {
    /// # let client = respool_client::Client::open(&url)?;
    /// use respool_client::{Watched, cmd};
    ///
    /// client.set("stock", 8).await?;
    /// let take_one = async |watched: &Watched| {
    ///     let stock: i64 = watched.call(cmd("GET").key("stock")).await?;
    ///     Ok(vec![cmd("SET").key("stock").arg(stock - 1)])
    /// };
    /// client.update("stock", 5, take_one).await?;
    /// assert_eq!(client.get("stock").cast::<i64>().await?, 7);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `make` and of the calls; of kind [`ErrorKind::Conflict`] when a key has changed each time.
    pub async fn update(
        &self,
        keys: impl ToArgs,
        attempts: usize,
        mut make: impl AsyncFnMut(&Watched) -> Result<Vec<Command>, Error>,
    ) -> Result<Vec<Result<Reply, ServerError>>, Error> {
        let mut left = attempts.max(1);
        loop {
            left -= 1;
            let watched = self.watch(&keys).await?;
            let asked = watched.address();
            let commands = make(&watched).await;
            let result = match commands {
                Ok(commands) => watched.exec(commands).await,
                Err(error) => Err(error),
            };
            match result {
                Err(error) if left > 0 && self.is_tried_again(&error, asked.as_ref()) => {}
                result => return result,
            }
        }
    }

    /// Whether a transaction that depends on what is read is made again: a key has changed, or is at another node of the cluster.
    fn is_tried_again(&self, error: &Error, asked: Option<&Address>) -> bool {
        let is_moved = || error.server().is_some_and(|error| self.topology.follow_moved(error, asked));
        matches!(error.kind(), ErrorKind::Conflict) || is_moved()
    }

    /// As [`Self::update`], in this thread.
    ///
    /// # Errors
    ///
    /// As those of [`Self::update`].
    pub fn update_wait(
        &self,
        keys: impl ToArgs,
        attempts: usize,
        mut make: impl FnMut(&Watched) -> Result<Vec<Command>, Error>,
    ) -> Result<Vec<Result<Reply, ServerError>>, Error> {
        let mut left = attempts.max(1);
        loop {
            left -= 1;
            let watched = self.watch(&keys).wait()?;
            let asked = watched.address();
            match make(&watched).and_then(|commands| watched.exec(commands).wait()) {
                Err(error) if left > 0 && self.is_tried_again(&error, asked.as_ref()) => {}
                result => return result,
            }
        }
    }

    /// Subscribes to channels.
    pub fn subscribe(&self, channels: impl ToArgs) -> Subscribe {
        Subscribe::new(self.topology.home(Kind::Channel), Kind::Channel, channels, self.topology.deadline())
    }

    /// Subscribes to all channels that fit patterns.
    pub fn subscribe_patterns(&self, patterns: impl ToArgs) -> Subscribe {
        Subscribe::new(self.topology.home(Kind::Pattern), Kind::Pattern, patterns, self.topology.deadline())
    }

    /// Subscribes to sharded channels.
    pub fn subscribe_sharded(&self, channels: impl ToArgs) -> Subscribe {
        Subscribe::new(self.topology.home(Kind::Shard), Kind::Shard, channels, self.topology.deadline())
    }

    /// The same request to the primary of each shard of a cluster, in the order of their slots, or to each of several servers in theirs; the
    /// results are theirs. One server is a cluster of one. A request that names keys, or may name some, is refused
    /// ([`ErrorKind::Unfit`]): they are at one server. So is one of a command that is not in the command table, unless it is said to be
    /// [`Command::keyless`].
    ///
    /// ```
    /// # mod on { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/server.rs")); }
    /// # on::a_server(async |url| {
    /// # let client = respool_client::Client::open(&url)?;
    /// use respool_client::cmd;
    ///
    /// for memory in client.each_shard(cmd("INFO").arg("memory")).await? {
    ///     println!("{memory:?}");
    /// }
    /// # Ok(()) });
    /// ```
    pub fn each_shard(&self, command: Command) -> Batch<'_> {
        Batch::each_shard(self.topology.via(), command)
    }

    /// From which nodes of a cluster's shards is read from now on, by all copies. It means nothing to one server.
    #[cfg(feature = "cluster")]
    pub fn set_reads(&self, reads: crate::Reads) {
        if let Topology::Cluster(cluster) = &self.topology {
            cluster.set_reads(reads);
        }
    }

    /// Reads that are answered in the program while the server has not told of a change, on a connection of their own to each server. Each call
    /// makes another cache.
    ///
    /// What is written by this client is forgotten in its caches before the call that writes ends, if the
    /// command table says which keys it writes.
    ///
    /// # Errors
    ///
    /// Some of the prefixes begin with others, which a server refuses.
    #[cfg(feature = "cache")]
    pub fn cache(&self, caching: crate::Caching) -> Result<crate::Cache, Error> {
        caching.check()?;
        Ok(crate::Cache::new(&self.topology, caching))
    }

    /// A client of each server among which keys are spread by [`Config::of_shards`], in their order, on the connections of this one. Of anything
    /// else, this client.
    pub fn servers(&self) -> Vec<Self> {
        match &self.topology {
            Topology::Shards(shards) => shards.nodes().iter().map(Self::of_node).collect(),
            Topology::Single(_) | Topology::Cluster(_) => vec![self.clone()],
        }
    }

    /// A client of the one among [`Self::servers`] that has this key.
    pub fn server_of(&self, key: impl AsRef<[u8]>) -> Self {
        match &self.topology {
            Topology::Shards(shards) => Self::of_node(shards.of_key(key.as_ref())),
            Topology::Single(_) | Topology::Cluster(_) => self.clone(),
        }
    }

    fn of_node(node: &Arc<Node>) -> Self {
        Self { topology: Topology::Single(Arc::clone(node)) }
    }

    /// Ends all connections, calls and subscriptions, of all copies, for good.
    pub fn close(&self) {
        #[cfg(feature = "cache")]
        self.topology.via().config().caches.close();
        self.topology.close();
    }

    /// What it has done.
    pub fn stats(&self) -> Stats {
        self.topology.stats()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A cluster of one node, which has all slots and says so at `127.0.0.1`.
    fn one_node() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let mut socket = socket.unwrap();
                std::thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while let Ok(bytes @ 1..) = socket.read(&mut buffer) {
                        let said = String::from_utf8_lossy(&buffer[..bytes]).to_ascii_uppercase();
                        let node = format!("*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$40\r\n{}\r\n", "a".repeat(40));
                        // No argument has an asterisk.
                        let answers = said.split('*').skip(1).map(|said| match said {
                            said if said.contains("SLOTS") => format!("*1\r\n*3\r\n:0\r\n:16383\r\n{node}"),
                            said if said.contains("PING") => "+PONG\r\n".to_owned(),
                            said if said.contains("GET") => "$1\r\nv\r\n".to_owned(),
                            _ => "-ERR unknown command\r\n".to_owned(),
                        });
                        if socket.write_all(answers.collect::<String>().as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        port
    }

    #[test]
    fn a_node_that_leaves_out_the_host_means_its_own() {
        let config = Config::from_url(&format!("redis+cluster://localhost:{}?protocol=2", one_node())).unwrap();
        let client = Client::with_config(config);
        client.call::<Reply>(cmd("GET").key("k")).wait().unwrap();
        let Topology::Cluster(cluster) = &client.topology else { panic!("it is a cluster") };
        let asked = Address::new("127.0.0.3", 7003).unwrap();
        let Some(Reply::Error(error)) = Reply::copied(b"-MOVED 5 :7005\r\n") else { panic!("it is an error") };
        assert!(!client.topology.follow_moved(&error, None));
        assert!(client.topology.follow_moved(&error, Some(&asked)));
        let moved = Address::new("127.0.0.3", 7005).unwrap();
        assert!(cluster.table().has(&moved));
    }
}
