//! Servers among which a program itself has spread its keys, by any rule that the proxy knows: the placement and the splitting and
//! joining of requests are those of `respool-route`.

mod plan;

use crate::call::convert;
use crate::core::standing;
use crate::fitness::unfit;
use crate::{Call, Client, Command, Config, Error, ErrorKind, FromReply, Outcome, Reply};
use plan::Plan;
use respool_route::{Gather, Node, Scheme, Topology};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Servers that share the keys of a program, each by a client of its own. Copies share the clients.
///
/// The rule is written as the proxy's settings write it: `rmux`, `rmux-2013`, `crc32` (redis-sharding), `slots`, `ketama` (twemproxy,
/// also `ketama:md5` and other hashes), `rendezvous`, `jump`, each with `+TAG` for another rule of hash tags. The order of the servers decides
/// where keys are, and for `ketama` and `rendezvous` their names and weights do.
///
/// ```
/// # mod on { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/server.rs")); }
/// # on::a_server(async |url| {
/// # let [one, other] = [format!("{url}/0"), format!("{url}/1")];
/// use respool_client::{Shard, Shards, cmd, commands};
///
/// // "redis://10.0.0.1" and "redis://10.0.0.2"
/// let shards = Shards::new("ketama", [Shard::open("a", &one)?, Shard::open("b", &other)?])?;
/// shards.call::<()>(commands::set("k", "v")).await?;
/// let values: Vec<Option<String>> = shards.call(cmd("MGET").key(["k", "l", "m"])).await?;
/// assert_eq!(values, [Some("v".to_owned()), None, None]);
/// # Ok(()) });
/// ```
///
/// By its row of the command table a request goes to the one server that has its keys, in parts to those that have some of them
/// (`MGET`, `MSET`, `DEL` ...), or to all (`DBSIZE`, `FLUSHALL` ...), and the replies are joined. A request whose keys have to be on one server
/// and are not is refused before it is sent. A request without keys goes to the first server. Batches, transactions, subscriptions and
/// scripts go to the client of one server, see [`Self::of_key`].
#[derive(Clone)]
pub struct Shards {
    inner: Arc<Inner>,
}

struct Inner {
    clients: Vec<Client>,
    topology: Topology,
}

/// One of the servers of [`Shards`].
#[derive(Clone, Debug)]
pub struct Shard {
    name: String,
    config: Config,
    weight: u32,
}

impl Shard {
    /// A server by the name that the rule knows it by, and its settings.
    pub fn new(name: &str, config: Config) -> Self {
        Self { name: name.to_owned(), config, weight: 1 }
    }

    /// As [`Self::new`], of the server at `url`, see [`Config::from_url`].
    ///
    /// # Errors
    ///
    /// The address cannot be used.
    pub fn open(name: &str, url: &str) -> Result<Self, Error> {
        Ok(Self::new(name, Config::from_url(url)?))
    }

    /// How many of the keys it has in proportion to others, where the rule knows weights. 1 unless set.
    #[must_use]
    pub fn weight(self, weight: u32) -> Self {
        Self { weight, ..self }
    }
}

impl Shards {
    /// These servers, in this order. Nothing is dialled yet.
    ///
    /// # Errors
    ///
    /// The rule is not known, or it cannot place keys on these servers.
    pub fn new(rule: &str, shards: impl IntoIterator<Item = Shard>) -> Result<Self, Error> {
        let scheme: Scheme = rule.parse().map_err(|error| Error::config(format!("the rule of shards: {error}")))?;
        let shards: Vec<Shard> = shards.into_iter().collect();
        let nodes = shards.iter().map(|shard| Node::new(&shard.name).with_weight(shard.weight)).collect();
        let topology = Topology::new(scheme, nodes).map_err(|error| Error::config(format!("the shards: {error}")))?;
        let clients = shards.into_iter().map(|shard| Client::with_config(shard.config)).collect();
        Ok(Self { inner: Arc::new(Inner { clients, topology }) })
    }

    /// A call of `command` on the servers that have its keys, whose reply is made into `T`.
    pub fn call<T: FromReply>(&self, command: impl Into<Command>) -> ShardsCall<'_, T> {
        let command = command.into();
        let name = command.name().to_vec();
        let state = match self.state(command) {
            Ok(state) => state,
            Err(kind) => State::Over(Some(Error::new(kind, Outcome::NotSent))),
        };
        ShardsCall { name, state, output: PhantomData }
    }

    fn state(&self, command: Command) -> Result<State<'_>, ErrorKind> {
        let Inner { clients, topology } = &*self.inner;
        match Plan::of(&command, topology)? {
            Plan::One(node) => Ok(State::One(Box::new(clients[node].call(command)))),
            Plan::Parts(parts, gather) => {
                // Each of them would have to be ended when another fails.
                if let Some(why) = unfit(&command) {
                    return Err(ErrorKind::Unfit(why));
                }
                let part = |(node, command): (usize, Command)| Part::Calls(Box::new(clients[node].call(command)));
                Ok(State::Parts(parts.into_iter().map(part).collect(), gather))
            }
        }
    }

    /// The client of the server that has this key: for batches, transactions, scripts and subscriptions.
    pub fn of_key(&self, key: impl AsRef<[u8]>) -> &Client {
        &self.inner.clients[self.inner.topology.place(key.as_ref()).get()]
    }

    /// The clients of all servers, in their order.
    pub fn clients(&self) -> &[Client] {
        &self.inner.clients
    }

    /// Ends all connections and calls, for good.
    pub fn close(&self) {
        self.inner.clients.iter().for_each(Client::close);
    }
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shards").field("nodes", &self.inner.topology.nodes()).finish_non_exhaustive()
    }
}

enum State<'c> {
    One(Box<Call<'c, Reply>>),
    Parts(Vec<Part<'c>>, Box<Gather>),
    /// It was over before it began; why.
    Over(Option<Error>),
}

enum Part<'c> {
    Calls(Box<Call<'c, Reply>>),
    Ended(Result<Reply, Error>),
}

/// A call on [`Shards`]: as a future, or by [`Self::wait`] in a thread. Nothing is sent before. All parts of a request are sent at once.
///
/// If a part of a request fails the error is that of the first that does, and its outcome says `MaybeExecuted` unless no part was sent:
/// others may have been executed.
#[must_use = "nothing is sent before it is awaited"]
pub struct ShardsCall<'c, T> {
    name: Vec<u8>,
    state: State<'c>,
    output: PhantomData<fn() -> T>,
}

impl<T: FromReply> ShardsCall<'_, T> {
    /// How long the call may take, instead of what the settings say.
    pub fn deadline(self, limit: Duration) -> Self {
        let state = match self.state {
            State::One(call) => State::One(Box::new(call.deadline(limit))),
            State::Parts(parts, gather) => {
                let limited = |part| match part {
                    Part::Calls(call) => Part::Calls(Box::new(call.deadline(limit))),
                    ended => ended,
                };
                State::Parts(parts.into_iter().map(limited).collect(), gather)
            }
            over => over,
        };
        Self { state, ..self }
    }

    /// Waits in this thread.
    pub fn wait(self) -> Result<T, Error> {
        if let State::One(call) = self.state {
            return call.wait().and_then(convert).map_err(|error| error.of(&self.name));
        }
        let mut this = pin!(self);
        standing::wait(|cx| this.as_mut().poll(cx))
    }
}

impl<T: FromReply> Future for ShardsCall<'_, T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let reply = match &mut this.state {
            State::One(call) => std::task::ready!(Pin::new(call).poll(cx)),
            State::Over(error) => match error.take() {
                Some(error) => Err(error),
                None => return Poll::Pending,
            },
            State::Parts(parts, gather) => {
                let mut is_over = true;
                for part in parts.iter_mut() {
                    if let Part::Calls(call) = part {
                        match Pin::new(call).poll(cx) {
                            Poll::Ready(result) => *part = Part::Ended(result),
                            Poll::Pending => is_over = false,
                        }
                    }
                }
                if !is_over {
                    return Poll::Pending;
                }
                let result = join(std::mem::take(parts), gather);
                this.state = State::Over(None);
                result
            }
        };
        Poll::Ready(reply.and_then(convert).map_err(|error| error.of(&this.name)))
    }
}

/// One reply of many.
fn join(parts: Vec<Part<'_>>, gather: &mut Gather) -> Result<Reply, Error> {
    let mut failure: Option<Error> = None;
    let mut are_unsent = true;
    let mut bytes = Vec::new();
    for (place, part) in parts.into_iter().enumerate() {
        match part {
            Part::Ended(Ok(reply)) => {
                are_unsent = false;
                bytes.clear();
                let kind = reply.write(&mut bytes);
                gather.accept(place, kind, &bytes);
            }
            Part::Ended(Err(error)) => {
                are_unsent &= error.outcome() == Outcome::NotSent;
                failure.get_or_insert(error);
            }
            Part::Calls(_) => {}
        }
    }
    if let Some(error) = failure {
        let outcome = if are_unsent { Outcome::NotSent } else { Outcome::MaybeExecuted };
        return Err(Error::new(error.kind().clone(), outcome));
    }
    let mut joint = Vec::new();
    gather.finish(&mut joint);
    let unreadable = || Error::new(ErrorKind::Lost("a reply cannot be read".into()), Outcome::Replied);
    Reply::owned(&joint.into()).ok_or_else(unreadable)
}
