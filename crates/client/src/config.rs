//! What a client is told: where the server is, who it is to it, and how much may wait.

use crate::Error;
use crate::events::{Event, Observed, Observer};
use crate::limits::{LANES_MAX, LARGE_BYTES, QUEUED_BYTES_MAX, RELEASE_LIMIT, REQUESTS_MAX, SILENCE};
use crate::sentinel::{Role, SentinelAddress, Sentinels};
use crate::shards::{Layout, Shard, ShardsAddress};
use crate::url::Address;
use respool_connection::{ClientInfo, Credentials, Endpoint, Identity, Pacing, ReconnectTerms};
use respool_route::cluster;
use respool_wire::Protocol;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// What happens to a call when too much waits already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overload {
    /// It waits for room, within its time.
    #[default]
    Wait,
    /// It fails at once with [`ErrorKind::Overloaded`](crate::ErrorKind::Overloaded).
    Fail,
}

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) endpoint: Endpoint,
    pub(crate) identity: Identity,
    pub(crate) deadline: Option<Duration>,
    pub(crate) connect_limit: Duration,
    pub(crate) silence: Option<Duration>,
    pub(crate) requests_max: usize,
    pub(crate) queued_bytes_max: usize,
    pub(crate) large_bytes: Option<usize>,
    pub(crate) overload: Overload,
    pub(crate) reconnect: ReconnectTerms,
    pub(crate) lanes_max: usize,
    pub(crate) release_limit: Duration,
    pub(crate) observer: Observed,
    #[cfg(feature = "tls")]
    pub(crate) tls: crate::Tls,
    /// What tells where the server is, if that is not always at the same place.
    pub(crate) sentinels: Option<Arc<Sentinels>>,
    /// The servers among which keys are spread.
    pub(crate) shards: Option<Arc<Layout>>,
    /// Those of the client, which forget what it writes.
    #[cfg(feature = "cache")]
    pub(crate) caches: Arc<crate::cache::Caches>,
    /// The seeds of a cluster; none for one server.
    pub(crate) cluster: Vec<cluster::Address>,
    #[cfg(feature = "cluster")]
    pub(crate) reads: crate::Reads,
    /// When nodes of a cluster are asked what it looks like.
    #[cfg(feature = "cluster")]
    pub(crate) refresh: cluster::RefreshTerms,
    /// Redirects of a request that are followed at once.
    #[cfg(feature = "cluster")]
    pub(crate) redirects_max: u8,
}

impl Config {
    /// Settings from an address:
    ///
    /// * `redis://[[user]:password@]host[:port][/database]`, or `host[:port]` alone; `valkey://` is the same
    /// * `rediss://...` over TLS, with the feature `tls`; `valkeys://` is the same
    /// * `redis+sentinel://[[user]:password@]host[:port],host[:port].../name[/database]`, the master of that name; the user and the
    ///   password are those of the servers. `rediss+sentinel://` reaches sentinels and servers over TLS
    /// * `unix://[[user]:password@]/path/to/socket`
    /// * `redis+cluster://[[user]:password@]host[:port][,host[:port]...]`, and `rediss+cluster://`: Redis Cluster, by some of its nodes.
    ///   The others are found by them
    /// * `redis+shards://[[user]:password@]host[:port],host[:port]...[/database]?rule=RULE`, and `rediss+shards://`: servers among which keys are
    ///   spread, as [`Self::of_shards`] says; by `names=a,b` and `weights=1,2`, one for each of them, if the rule knows them by others than
    ///   `host:port` and 1
    ///
    /// Behind a `?` there may be `db`, `user`, `password`, `protocol` (2 or 3; 3 unless said) and `name`, which the server shows;
    /// with sentinels also `role` (`master` or `replica`), `sentinel_user` and `sentinel_password`;
    /// with TLS also `ca_file`, `cert_file` and `key_file`, `server_name`, and `tls=insecure`, which takes any certificate: see `Tls`.
    /// Letters that mean something in an address are written as `%40`, also in names and passwords. No error repeats a part of the
    /// address, since a password may be in it.
    ///
    /// ```
    /// use respool_client::Config;
    ///
    /// let config = Config::from_url("redis://ann:p%40ss@localhost:6380/2?protocol=2").unwrap();
    /// assert!(!format!("{config:?}").contains("p@ss"));
    /// assert!(Config::from_url("http://localhost").is_err());
    /// ```
    pub fn from_url(url: &str) -> Result<Self, Error> {
        let (address, sentinels, layout) = match (SentinelAddress::parse(url), ShardsAddress::parse(url)) {
            (Some(parsed), _) => {
                let (address, sentinels) = Sentinels::of(parsed?);
                (address, Some(sentinels), None)
            }
            (None, Some(parsed)) => {
                let ShardsAddress { layout, rest } = parsed?;
                (rest, None, Some(layout))
            }
            (None, None) => (Address::parse(url)?, None, None),
        };
        let Address { endpoint, cluster, credentials, database, protocol, name, tls } = address;
        #[cfg(feature = "tls")]
        let tls = tls_of(tls)?;
        #[cfg(not(feature = "tls"))]
        let _ = tls;
        #[cfg(not(feature = "tls"))]
        if matches!(endpoint, Endpoint::Tls { .. }) {
            return Err(Error::config("this client was built without the feature `tls`"));
        }
        #[cfg(not(feature = "cluster"))]
        if !cluster.is_empty() {
            return Err(Error::config("this client was built without the feature `cluster`"));
        }
        let client = ClientInfo {
            name,
            library: Some("respool".to_owned()),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        };
        let identity = Identity {
            database,
            protocol: protocol.unwrap_or(Protocol::Resp3),
            credentials: credentials.map(Arc::new),
            client: Some(Arc::new(client)),
            pacing: Pacing::BehindAuth,
            ..Identity::default()
        };
        Ok(Self {
            endpoint,
            identity,
            deadline: Some(Duration::from_secs(5)),
            connect_limit: Duration::from_secs(1),
            silence: Some(SILENCE),
            requests_max: REQUESTS_MAX,
            queued_bytes_max: QUEUED_BYTES_MAX,
            large_bytes: Some(LARGE_BYTES),
            overload: Overload::Wait,
            reconnect: ReconnectTerms::default(),
            lanes_max: LANES_MAX,
            release_limit: RELEASE_LIMIT,
            observer: Observed::default(),
            sentinels,
            #[cfg(feature = "tls")]
            tls,
            #[cfg(feature = "cache")]
            caches: Arc::default(),
            cluster,
            shards: layout.map(Arc::new),
            #[cfg(feature = "cluster")]
            reads: crate::Reads::default(),
            #[cfg(feature = "cluster")]
            refresh: cluster::RefreshTerms::default(),
            #[cfg(feature = "cluster")]
            redirects_max: respool_route::limits::HOPS_MAX,
        })
    }

    /// Servers that share the keys of a program, in this order. Where they are and who the client is there is said for each; all other settings
    /// are those of the first, and may be changed for all.
    ///
    /// The rule is written as the proxy's settings write it: `rmux`, `rmux-2013`, `crc32` (redis-sharding), `slots`, `ketama` (twemproxy,
    /// also `ketama:md5` and other hashes), `rendezvous`, `jump`, each with `+TAG` for another rule of hash tags. The order of the servers
    /// decides where keys are, and for `ketama` and `rendezvous` their names and weights do.
    ///
    /// ```
    /// # mod on { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/server.rs")); }
    /// # on::a_server(async |url| {
    /// # let [one, other] = [format!("{url}/0"), format!("{url}/1")];
    /// use respool_client::{Client, Config, Shard};
    ///
    /// // "redis://10.0.0.1" and "redis://10.0.0.2"; the same is "redis+shards://10.0.0.1,10.0.0.2?rule=ketama&names=a,b".
    /// let config = Config::of_shards("ketama", [Shard::open("a", &one)?, Shard::open("b", &other)?])?;
    /// let client = Client::with_config(config);
    /// client.set("k", "v").await?;
    /// let values: Vec<Option<String>> = client.mget(["k", "l", "m"]).cast().await?;
    /// assert_eq!(values, [Some("v".to_owned()), None, None]);
    /// # Ok(()) });
    /// ```
    ///
    /// By its row of the command table a request goes to the one server that has its keys, in parts to those that have some of them
    /// (`MGET`, `MSET`, `DEL` ...), or to all (`DBSIZE`, `FLUSHALL` ...), and the replies are joined. A request whose keys have to be on one
    /// server and are not is refused before it is sent, as is a transaction. A request without keys goes to the first server, and channels are
    /// at the server that has a key of their name.
    ///
    /// # Errors
    ///
    /// The rule is not known, or it cannot place keys on these servers.
    pub fn of_shards(rule: &str, shards: impl IntoIterator<Item = Shard>) -> Result<Self, Error> {
        let (config, layout) = Layout::of(rule, shards)?;
        Ok(Self { shards: Some(Arc::new(layout)), ..config })
    }

    /// Requests are over, or may have been executed: what they write is not known any longer.
    #[inline]
    pub(crate) fn note_written(&self, commands: &[crate::Command]) {
        #[cfg(feature = "cache")]
        self.caches.note_written(commands);
        #[cfg(not(feature = "cache"))]
        let _ = commands;
    }

    /// What connections over TLS demand and show, instead of what the address says of that.
    ///
    /// # Errors
    ///
    /// The address is not one of TLS, or a text of the settings cannot be used.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: crate::Tls) -> Result<Self, Error> {
        if !matches!(self.endpoint, Endpoint::Tls { .. }) {
            return Err(Error::config("the address is not one of TLS: rediss:// is"));
        }
        tls.config().map_err(Error::config)?;
        self.tls = tls;
        Ok(self)
    }

    /// How long a call may take, from when it is made; `None` without end. 5 s unless set.
    #[must_use]
    pub fn deadline(mut self, deadline: Option<Duration>) -> Self {
        self.deadline = deadline;
        self
    }

    /// How long one attempt to connect may take, with the look-up of the host's name and all of the handshake. 1 s unless set, which is enough for
    /// round trips of 200 ms: there are two, one more with a password, and two more over TLS. Sentinels have half of the time for their answers, of
    /// which several are waited for one after the other: for those that are far, set more.
    #[must_use]
    pub fn connect_limit(mut self, limit: Duration) -> Self {
        self.connect_limit = limit;
        self
    }

    /// The name that the server shows for the connection.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        let mut client = self.identity.client.as_deref().cloned().unwrap_or_default();
        client.name = Some(name.to_owned());
        self.identity.client = Some(Arc::new(client));
        self
    }

    /// The user and the password. Without a user it is the password of the default user.
    #[must_use]
    pub fn credentials(mut self, username: Option<&str>, password: &str) -> Self {
        let credentials =
            Credentials { username: username.map(str::to_owned), password: Zeroizing::new(password.to_owned()) };
        self.identity.credentials = Some(Arc::new(credentials));
        self
    }

    /// How many requests may wait for replies, and how many bytes to be written, on one connection. Each part of a request that is split
    /// counts, and each request of a batch; requests that go together and are more than that go when nothing else waits.
    #[must_use]
    pub fn limits(mut self, requests_max: usize, queued_bytes_max: usize) -> Self {
        (self.requests_max, self.queued_bytes_max) = (requests_max.max(1), queued_bytes_max.max(1));
        self
    }

    /// From how many bytes on a request or a reply is large: such go by a second connection, so that small ones do not wait behind them.
    /// [`LARGE_BYTES`] unless set. `None`: everything goes by one connection, in the order in which it is first polled.
    ///
    /// A request goes there if it is large itself, or if it only reads and its reply was large before. Calls of which each is awaited before the
    /// next are executed in their order all the same. Of calls that are under way at the same time, a large one may be executed behind
    /// others that were begun later, also when its caller has given up; what has to be in order goes into a batch.
    #[must_use]
    pub fn large(mut self, bytes: Option<usize>) -> Self {
        self.large_bytes = bytes.map(|bytes| bytes.max(1));
        self
    }

    /// After how long a silence a shared connection is replaced: nothing has come on it though a request waited for its reply all that
    /// time, the server has taken nothing of what did not fit into the kernel, and the time of a call is over. 30 seconds unless set (`limits::SILENCE`), `None` for never. What waits for replies ends with
    /// [`Outcome::MaybeExecuted`](crate::Outcome::MaybeExecuted), or is sent again if that changes nothing. It should be longer than the
    /// longest request keeps the server.
    #[must_use]
    pub fn silence(mut self, limit: Option<Duration>) -> Self {
        self.silence = limit;
        self
    }

    /// What happens to a call when that many wait.
    #[must_use]
    pub fn overload(mut self, overload: Overload) -> Self {
        self.overload = overload;
        self
    }

    /// How long the pauses between attempts to connect are, and how many attempts there may be: for each server, over all calls that wait for
    /// it. A connection that was in use is dialled again at once; each failure doubles the pause.
    ///
    /// ```
    /// use respool_client::{Config, ReconnectTerms};
    ///
    /// // 10 ms to 1 s, and no more than 50 attempts a second.
    /// let terms = ReconnectTerms {
    ///     backoff_min_us: 10_000,
    ///     backoff_max_us: 1_000_000,
    ///     dials_per_second: 50,
    ///     ..ReconnectTerms::default()
    /// };
    /// let config = Config::from_url("redis://localhost").unwrap().reconnect(terms);
    /// ```
    #[must_use]
    pub fn reconnect(mut self, terms: ReconnectTerms) -> Self {
        self.reconnect = terms;
        self
    }

    /// How many connections of their own blocking requests and watched keys may have. [`LANES_MAX`] unless set. A call that finds none free
    /// waits for one within its time, or fails, as [`Self::overload`] says.
    #[must_use]
    pub fn lanes(mut self, lanes_max: usize) -> Self {
        self.lanes_max = lanes_max.max(1);
        self
    }

    /// How long a server may take to let go of a blocking request whose time is over, and to answer it then. [`RELEASE_LIMIT`] unless set.
    /// It is the limit of each of the three answers that are waited for, so a call may be late by three times as much. After it the connection is closed, and what the server has taken may be lost.
    #[must_use]
    pub fn release_limit(mut self, limit: Duration) -> Self {
        self.release_limit = limit;
        self
    }

    /// From which nodes of a cluster's shards is read. [`Reads::Primary`](crate::Reads::Primary) unless set; a client may change it later, see
    /// [`Client::set_reads`](crate::Client::set_reads).
    #[cfg(feature = "cluster")]
    #[must_use]
    pub fn reads(mut self, reads: crate::Reads) -> Self {
        self.reads = reads;
        self
    }

    /// How often the nodes of a cluster are asked what it looks like although nothing is wrong. A minute unless set; `None` for never. It is at
    /// least a second. Redirects, nodes that cannot be reached, and caches have them asked earlier in any case.
    #[cfg(feature = "cluster")]
    #[must_use]
    pub fn refresh_period(mut self, period: Option<Duration>) -> Self {
        let micros = |period: Duration| u64::try_from(period.as_micros()).unwrap_or(u64::MAX).max(self.refresh.pace_us);
        self.refresh.period_us = period.map_or(0, micros);
        self
    }

    /// How many redirects of a cluster (`MOVED`, `ASK`) a request follows at once. 5 unless set. A redirect behind them is not
    /// followed: the request pauses, for longer and longer, and then goes to the node that the slot table names, until its time is over. So with 0 a
    /// key that `ASK` has sent elsewhere is not reached before its slot has moved.
    #[cfg(feature = "cluster")]
    #[must_use]
    pub fn redirects(mut self, redirects_max: u8) -> Self {
        self.redirects_max = redirects_max;
        self
    }

    /// What is told how calls have ended and what has happened to connections.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Observed(Some(observer));
        self
    }

    /// The same for a node of the cluster.
    pub(crate) fn at(&self, host: &str, port: u16) -> Self {
        let host = host.to_owned();
        let endpoint = match &self.endpoint {
            Endpoint::Tls { profile, .. } => {
                Endpoint::Tls { server_name: host.clone(), host, port, profile: profile.clone() }
            }
            _ => Endpoint::Tcp { host, port },
        };
        Self { endpoint, ..self.clone() }
    }

    /// Where it leads to, if that is a host.
    pub(crate) fn address(&self) -> Option<cluster::Address> {
        match &self.endpoint {
            Endpoint::Tcp { host, port } | Endpoint::Tls { host, port, .. } => cluster::Address::new(host, *port),
            Endpoint::Unix { .. } | Endpoint::Embedded { .. } => None,
        }
    }

    /// Whether it is a node of a cluster. There, a call that cannot reach it goes on elsewhere and does not wait for it.
    pub(crate) fn is_member(&self) -> bool {
        !self.cluster.is_empty()
    }

    /// Tells the observer. No lock may be held.
    pub(crate) fn tell(&self, event: &Event<'_>) {
        // It is told by threads of the library, and in front of callers being woken: a program's panic must end neither.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            #[cfg(feature = "tracing")]
            crate::trace::tell(event);
            if let Observed(Some(observer)) = &self.observer {
                observer.event(event);
            }
        }));
    }

    /// Whether anything is told of events.
    pub(crate) fn has_listener(&self) -> bool {
        let has_observer = self.observer.0.is_some();
        #[cfg(feature = "tracing")]
        let has_observer = has_observer || crate::trace::hears();
        has_observer
    }

    /// The address, if anything is told of connections.
    pub(crate) fn told_endpoint(&self) -> Option<String> {
        let shown = || self.sentinels.as_ref().map_or_else(|| self.endpoint.to_string(), |sentinels| sentinels.shown());
        self.has_listener().then(shown)
    }

    /// The same settings for servers of another role, of those that sentinels know: the master, or a replica to read from.
    ///
    /// # Errors
    ///
    /// The address names no sentinels.
    pub fn role(self, role: Role) -> Result<Self, Error> {
        let no_sentinels = || Error::config("the address names no sentinels: redis+sentinel:// does");
        let sentinels = self.sentinels.as_ref().ok_or_else(no_sentinels)?.of_role(role);
        Ok(Self { sentinels: Some(sentinels), ..self })
    }
}

/// What an address says of TLS.
#[cfg(feature = "tls")]
fn tls_of(words: crate::url::TlsWords) -> Result<crate::Tls, Error> {
    let mut tls = crate::Tls::new();
    if let Some(path) = words.ca_file {
        tls = tls.ca_file(path)?;
    }
    if let (Some(certificate), Some(key)) = (words.cert_file, words.key_file) {
        tls = tls.certificate_files(certificate, key)?;
    }
    if let Some(name) = words.server_name {
        tls = tls.server_name(&name);
    }
    Ok(if words.is_insecure == Some(true) { tls.insecure() } else { tls })
}
