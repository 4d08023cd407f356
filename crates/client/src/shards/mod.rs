//! Servers among which a program itself has spread its keys, by any rule that the proxy knows: the placement and the splitting and
//! joining of requests are those of `respool-route`.
//!
//! A request that is for one server goes there as a call of that server alone. What is for several is a [`Spread`].

mod address;
mod plan;
mod spread;

use crate::core::Waiter;
use crate::lanes::Side;
use crate::parts::{Join, Kind};
use crate::pubsub::{Bounds, Kind as Topic, Mailbox, Moving};
use crate::topology::{Node, Via};
use crate::{Command, Config, Error, ErrorKind};
pub(crate) use address::ShardsAddress;
use bytes::Bytes;
use plan::{FOR_SEVERAL, Plan, together};
use respool_route::{Node as Named, Scheme, Topology};
pub(crate) use spread::Spread;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// One of the servers of [`Config::of_shards`].
#[derive(Clone, Debug)]
pub struct Shard {
    name: String,
    config: Config,
    weight: u32,
}

impl Shard {
    /// A server by the name that the rule knows it by. Where it is and who its clients are there is taken from these settings; all others are
    /// those of the whole client.
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

/// Where one of the servers is.
#[derive(Clone, Debug)]
enum Place {
    /// At this host and port, and otherwise as the settings of the client say.
    At(String, u16),
    /// As its own settings say.
    Own(Box<Config>),
}

impl Place {
    /// The settings of its connections, in a client with these.
    fn config(&self, client: &Config) -> Config {
        let config = match self {
            Self::At(host, port) => client.at(host, *port),
            Self::Own(own) => {
                let own = (**own).clone();
                Config {
                    endpoint: own.endpoint,
                    identity: own.identity,
                    sentinels: own.sentinels,
                    #[cfg(feature = "tls")]
                    tls: own.tls,
                    ..client.clone()
                }
            }
        };
        Config { shards: None, ..config }
    }
}

/// Which servers there are, and which keys each of them has.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    topology: Topology,
    places: Vec<Place>,
}

impl Layout {
    fn new(rule: &str, shards: Vec<(String, u32, Place)>) -> Result<Self, Error> {
        let scheme: Scheme = rule.parse().map_err(|error| Error::config(format!("the rule of shards: {error}")))?;
        let named = |(name, weight, _): &(String, u32, Place)| Named::new(name).with_weight(*weight);
        let topology = Topology::new(scheme, shards.iter().map(named).collect());
        let topology = topology.map_err(|error| Error::config(format!("the shards: {error}")))?;
        Ok(Self { topology, places: shards.into_iter().map(|(.., place)| place).collect() })
    }

    /// As [`Config::of_shards`] says, with the settings of the first for the whole client.
    pub(crate) fn of(rule: &str, shards: impl IntoIterator<Item = Shard>) -> Result<(Config, Self), Error> {
        let shards: Vec<Shard> = shards.into_iter().collect();
        if shards.iter().any(|shard| shard.config.is_member() || shard.config.shards.is_some()) {
            return Err(Error::config("a shard is one server, or what sentinels tell of"));
        }
        let first = shards.first().map(|shard| shard.config.clone());
        let own = |shard: Shard| (shard.name, shard.weight, Place::Own(Box::new(shard.config)));
        let layout = Self::new(rule, shards.into_iter().map(own).collect())?;
        let none = || Error::config("there are no shards");
        Ok((first.ok_or_else(none)?, layout))
    }
}

/// The servers of a client.
#[derive(Debug)]
pub(crate) struct Shards {
    /// The settings of the client.
    pub(crate) config: Config,
    topology: Topology,
    nodes: Vec<Arc<Node>>,
    /// Held while channels are put into hubs and taken out.
    channels: Mutex<()>,
}

/// Where requests go.
pub(crate) enum Way<'c> {
    /// To this server.
    One(Via<'c>),
    /// To several.
    Several(Spread<'c>),
}

impl<'c> Way<'c> {
    fn to(node: &'c Arc<Node>) -> Self {
        Self::One(Via::Node(&node.core, &node.side))
    }
}

impl Shards {
    /// Nothing is dialled yet.
    pub(crate) fn new(config: Config, layout: &Layout) -> Arc<Self> {
        let node = |place: &Place| Arc::new(Node::new(place.config(&config)));
        let nodes = layout.places.iter().map(node).collect();
        let topology = layout.topology.clone();
        Arc::new(Self { config: Config { shards: None, ..config }, topology, nodes, channels: Mutex::default() })
    }

    pub(crate) fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    /// The number of the server that has this key.
    pub(crate) fn place_of(&self, key: &[u8]) -> usize {
        self.topology.place(key).get()
    }

    /// The server that has this key.
    pub(crate) fn of_key(&self, key: &[u8]) -> &Arc<Node> {
        &self.nodes[self.place_of(key)]
    }

    /// Where requests go that hang together as `kind` says, of which there is one at least.
    pub(crate) fn way(&self, kind: Kind, commands: &[Command]) -> Result<Way<'_>, ErrorKind> {
        match (kind, commands) {
            (Kind::Whole, [_, inner @ .., _]) => self.one_of(inner).map(Way::to),
            (Kind::At(place), _) => Ok(Way::to(&self.nodes[usize::from(place)])),
            (Kind::EachShard, _) => {
                let parts = self.nodes.iter().map(|node| (node, commands.to_vec()));
                Ok(Way::Several(Spread::new(parts, Join::Only)))
            }
            (_, [command]) => match Plan::of(command, &self.topology)? {
                Plan::One(place) | Plan::Any(place) => Ok(Way::to(&self.nodes[place])),
                Plan::Parts(parts, gather, _) => {
                    let places = (0..parts.len()).map(|part| vec![part]).collect();
                    let parts = parts.into_iter().map(|(place, command)| (&self.nodes[place], vec![command]));
                    Ok(Way::Several(Spread::new(parts, Join::Gathered(places, gather))))
                }
            },
            _ => self.way_of_each(commands),
        }
    }

    /// Requests, each for itself: those for one server follow each other there.
    fn way_of_each(&self, commands: &[Command]) -> Result<Way<'_>, ErrorKind> {
        let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
        for (at, command) in commands.iter().enumerate() {
            let place = match Plan::of(command, &self.topology)? {
                Plan::One(place) | Plan::Any(place) => place,
                Plan::Parts(..) => return Err(ErrorKind::Unfit(FOR_SEVERAL)),
            };
            match groups.iter_mut().find(|(other, _)| *other == place) {
                Some((_, group)) => group.push(at),
                None => groups.push((place, vec![at])),
            }
        }
        if let [(place, _)] = groups[..] {
            return Ok(Way::to(&self.nodes[place]));
        }
        let of = |at: &usize| commands[*at].clone();
        let parts = groups.iter().map(|(place, group)| (&self.nodes[*place], group.iter().map(of).collect()));
        let spread = |places| Spread::new(parts, Join::Placed(places, commands.len()));
        Ok(Way::Several(spread(groups.iter().map(|(_, group)| group.clone()).collect())))
    }

    /// The one server that all of them are for.
    pub(crate) fn one_of(&self, commands: &[Command]) -> Result<&Arc<Node>, ErrorKind> {
        let place = together(commands, &self.topology)?;
        Ok(&self.nodes[place.unwrap_or(self.topology.default_node().get())])
    }

    /// # Errors
    ///
    /// Why these are not for the server of `side` alone.
    pub(crate) fn check_at(&self, side: &Arc<Side>, commands: &[Command]) -> Result<(), ErrorKind> {
        match together(commands, &self.topology)? {
            Some(place) if !Arc::ptr_eq(&self.nodes[place].side, side) => Err(ErrorKind::CrossSlot),
            _ => Ok(()),
        }
    }

    /// The servers whose hubs have a topic: channels are where keys of their names are, and what fits a pattern may be at any.
    fn hubs_of(&self, kind: Topic, name: &[u8]) -> impl Iterator<Item = &Arc<Node>> {
        let only = (kind != Topic::Pattern).then(|| self.of_key(name));
        let all = if only.is_some() { &[][..] } else { &self.nodes };
        only.into_iter().chain(all)
    }

    /// Subscribes. The caller is woken by its mailbox.
    pub(crate) fn add_channels(&self, kind: Topic, names: &[Bytes], bounds: Bounds, until: Instant) -> Arc<Mailbox> {
        let mailbox = Arc::new(Mailbox::new(bounds));
        let mut names: Vec<&Bytes> = names.iter().collect();
        names.sort_unstable();
        names.dedup();
        mailbox.expect(names.iter().map(|name| self.hubs_of(kind, name).count()).sum());
        let mut woken = Vec::new();
        let channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            for node in self.hubs_of(kind, name) {
                let (listeners, pending) = (vec![Arc::clone(&mailbox)], vec![(Arc::clone(&mailbox), until)]);
                woken.extend(node.side.hub.adopt(Moving { kind, name: name.clone(), listeners, pending }));
            }
        }
        drop(channels);
        woken.into_iter().for_each(Waiter::wake);
        mailbox
    }

    /// A subscription to these is dropped.
    pub(crate) fn remove_channels(&self, kind: Topic, names: &[Bytes], mailbox: &Arc<Mailbox>) {
        let channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        let waiter = mailbox.end(None);
        self.nodes.iter().for_each(|node| node.side.hub.remove(kind, names, mailbox));
        drop(channels);
        drop(waiter);
    }
}

/// A walk over all keys, server by server.
#[derive(Debug)]
pub(crate) struct Walk {
    place: u16,
    count: u16,
    has_begun: bool,
}

impl Walk {
    pub(crate) fn new(shards: &Shards) -> Self {
        // A topology has no more nodes than that.
        let count = u16::try_from(shards.nodes.len()).unwrap_or(u16::MAX);
        Self { place: 0, count, has_begun: false }
    }

    /// The server at which the next page is, and whether its keys begin with it. `None` when all are gone through.
    pub(crate) fn next(&mut self) -> Option<(u16, bool)> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        (self.place < self.count).then_some((self.place, is_first))
    }

    /// A page has come with this cursor. Returns the cursor of the next one, `None` when there is none.
    pub(crate) fn turn(&mut self, cursor: u64) -> Option<u64> {
        if cursor != 0 {
            return Some(cursor);
        }
        (self.place, self.has_begun) = (self.place + 1, false);
        (self.place < self.count).then_some(0)
    }
}
