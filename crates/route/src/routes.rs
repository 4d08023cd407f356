//! Which requests go to which pool of nodes: an ordered list of routes, an immutable snapshot like the topology.
//!
//! ```text
//!   user, database, command --- the routes that fit ---\
//!                                                       first that fits, the longer prefix first among those that
//!   each key ------------------ the prefixes that fit --/  differ in nothing else --> pool, new name of the key
//! ```
//!
//! A request without keys goes by the routes that ask for no prefix. The last route fits everything: it leads to the pool
//! that the settings give no name, number 0. A request whose keys fall under several routes is split like one whose keys
//! are on several nodes, or refused as such.

use std::fmt;
use std::sync::Arc;

use respool_command::{Categories, Command, Row};

use crate::limits::{POOLS_MAX, PREFIX_BYTES_MAX, ROUTES_MAX};
use crate::node::{NodeIndex, NodePlace};
use crate::topology::Topology;

/// A group of nodes with a placement of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// What the settings call it.
    pub name: Box<str>,
    /// Where its keys are.
    pub topology: Arc<Topology>,
    /// Where its first node stands in the list of all nodes; the others follow.
    pub first: NodePlace,
    /// For each of its nodes, where its replicas stand in the list of all nodes. Empty if none has any.
    pub replicas: Box<[Box<[NodePlace]>]>,
    /// What becomes of requests to a node that is down, where the route says nothing else.
    pub dead_node: DeadNode,
}

impl Pool {
    /// A pool without replicas whose first node is the first of all.
    pub fn plain(name: &str, topology: Arc<Topology>) -> Self {
        Self {
            name: name.into(),
            topology,
            first: NodePlace::FIRST,
            replicas: Box::default(),
            dead_node: DeadNode::Error,
        }
    }

    /// Where a node of the pool stands in the list of all nodes.
    #[inline]
    pub fn place(&self, node: NodeIndex) -> NodePlace {
        NodePlace::new(self.first.get() + node.get())
    }

    /// The replicas of the node at `place` of the list of all nodes.
    pub fn replicas_of(&self, place: NodePlace) -> &[NodePlace] {
        place
            .get()
            .checked_sub(self.first.get())
            .and_then(|node| self.replicas.get(node))
            .map_or(&[], |replicas| replicas)
    }

    /// Where its nodes and their replicas stand in the list of all nodes.
    fn all_places(&self) -> impl Iterator<Item = NodePlace> {
        self.places().chain(self.replicas.iter().flatten().copied())
    }

    /// Where its nodes stand in the list of all nodes, replicas apart.
    pub fn places(&self) -> impl ExactSizeIterator<Item = NodePlace> + use<> {
        let first = self.first.get();
        (first..first + self.topology.node_count()).map(NodePlace::new)
    }

    /// Whether the node at this place of the list of all nodes is one of its nodes, replicas apart.
    pub fn has(&self, place: NodePlace) -> bool {
        place.get().checked_sub(self.first.get()).is_some_and(|node| node < self.topology.node_count())
    }
}

/// What becomes of requests to a node that is down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeadNode {
    /// They are answered with an error.
    #[default]
    Error,
    /// The next node of the pool that is up takes them. For caches: what it is told meanwhile stays there.
    Next,
    /// A replica answers what only reads; the rest is answered with an error.
    Replica,
}

impl DeadNode {
    /// All of them, with the words of the settings.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Error, "error"), (Self::Next, "next"), (Self::Replica, "replica")];

    /// The word of the settings.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// What answers requests that only read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// The node that has the key.
    #[default]
    Primary,
    /// A replica of it that is up, if it has one.
    Replica,
}

impl Reads {
    /// All of them, with the words of the settings.
    pub const ALL: [(Self, &'static str); 2] = [(Self::Primary, "primary"), (Self::Replica, "replica")];

    /// The word of the settings.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// For how long a client has a connection to a node to itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PoolMode {
    /// Never, unless the protocol forces it: all share.
    #[default]
    Multiplex,
    /// For each transaction.
    Transaction,
    /// From its first request to that node until it leaves.
    Session,
}

impl PoolMode {
    /// All of them, with the words of the settings.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Multiplex, "multiplex"), (Self::Transaction, "transaction"), (Self::Session, "session")];

    /// The word of the settings.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// Commands by ACL category or by name; nothing said means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// Those of any of these categories.
    pub categories: Categories,
    /// And these.
    pub named: Box<[Command]>,
}

impl Commands {
    /// Whether a command is meant.
    pub fn include(&self, row: &Row) -> bool {
        let means_all = self.categories.is_empty() && self.named.is_empty();
        means_all || row.categories.has_any(self.categories) || self.named.contains(&row.command)
    }
}

/// Which requests a route is for. What is empty asks for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// Of one of these users.
    pub users: Box<[Box<str>]>,
    /// In one of these databases.
    pub databases: Box<[u32]>,
    /// These commands.
    pub commands: Commands,
    /// Keys that begin with this.
    pub prefix: Box<[u8]>,
}

impl When {
    fn fits(&self, subject: Subject<'_>) -> bool {
        self.is_for(subject.user)
            && (self.databases.is_empty() || self.databases.contains(&subject.database))
            && self.commands.include(subject.row)
    }

    /// Whether both differ in their prefix at most.
    fn is_like(&self, other: &Self) -> bool {
        self.users == other.users && self.databases == other.databases && self.commands == other.commands
    }

    /// Whether every request fits.
    pub fn is_always(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it is about a user.
    fn is_for(&self, user: &str) -> bool {
        self.users.is_empty() || self.users.iter().any(|name| **name == *user)
    }

    /// Whether only user and prefix restrict it.
    fn is_for_all_requests(&self) -> bool {
        self.databases.is_empty() && self.commands == Commands::default()
    }
}

/// What a key is called at the node: the first `strip` bytes go, `add` comes in front.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// How many bytes go. No more than the route's prefix has.
    pub strip: usize,
    /// What comes in front.
    pub add: Box<[u8]>,
}

impl Rewrite {
    /// Whether keys keep their names.
    pub fn is_none(&self) -> bool {
        self.strip == 0 && self.add.is_empty()
    }

    /// Puts the key's name at the node into `out`, which is emptied first.
    pub fn apply(&self, key: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.add);
        out.extend_from_slice(key.get(self.strip..).unwrap_or_default());
    }
}

/// One route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// What the settings call it.
    pub name: Box<str>,
    /// Which requests it is for.
    pub when: When,
    /// The number of the pool that it leads to.
    pub pool: usize,
    /// What keys are called there.
    pub rewrite: Rewrite,
    /// What answers requests that only read.
    pub reads: Reads,
    /// What becomes of requests to a node that is down; `None`: what the pool says.
    pub dead_node: Option<DeadNode>,
    /// For how long its clients have connections to themselves; `None`: what is said for the user, or for all.
    pub pool_mode: Option<PoolMode>,
}

impl Route {
    /// A route that fits everything and changes nothing.
    fn of_rest() -> Self {
        Self {
            name: REST.into(),
            when: When::default(),
            pool: 0,
            rewrite: Rewrite::default(),
            reads: Reads::default(),
            dead_node: None,
            pool_mode: None,
        }
    }
}

/// The name of the route for everything that fits no other.
const REST: &str = "default";

/// Route look-up key: user, database, command.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The user's name.
    pub user: &'a str,
    /// The database that is selected.
    pub database: u32,
    /// The command.
    pub row: &'a Row,
}

/// All pools and the routes to them. The last route fits everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes {
    pools: Box<[Pool]>,
    routes: Box<[Route]>,
    /// See [`Self::are_plain`].
    are_plain: bool,
}

/// Why routes and pools do not fit together: a mistake in the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutesError {
    /// There is no pool.
    NoPool,
    /// There are more than [`POOLS_MAX`] pools.
    TooManyPools,
    /// There are more than [`ROUTES_MAX`] routes.
    TooManyRoutes,
    /// The route at this place leads to a pool that does not exist.
    UnknownPool(usize),
    /// The route at this place has a prefix, or adds one, of more than [`PREFIX_BYTES_MAX`] bytes.
    LongPrefix(usize),
    /// The route at this place strips more than its prefix.
    StripsMore(usize),
}

impl fmt::Display for RoutesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPool => f.write_str("there is no pool to lead to"),
            Self::TooManyPools => write!(f, "there are at most {POOLS_MAX} pools"),
            Self::TooManyRoutes => write!(f, "there are at most {ROUTES_MAX} routes, each prefix counting as one"),
            Self::UnknownPool(route) => write!(f, "route {} leads to a pool that does not exist", route + 1),
            Self::LongPrefix(route) => {
                write!(f, "route {} has a prefix of more than {PREFIX_BYTES_MAX} bytes", route + 1)
            }
            Self::StripsMore(route) => write!(f, "route {} strips more than its prefix", route + 1),
        }
    }
}

impl std::error::Error for RoutesError {}

impl Routes {
    /// Everything goes to one pool.
    pub fn plain(pool: Pool) -> Self {
        Self::of([pool].into(), [Route::of_rest()].into())
    }

    /// These routes, in this order, to these pools; what fits none of them goes to pool 0.
    pub fn new(pools: Vec<Pool>, routes: Vec<Route>) -> Result<Self, RoutesError> {
        if pools.is_empty() {
            return Err(RoutesError::NoPool);
        }
        if pools.len() > POOLS_MAX {
            return Err(RoutesError::TooManyPools);
        }
        if routes.len() > ROUTES_MAX {
            return Err(RoutesError::TooManyRoutes);
        }
        for (at, route) in routes.iter().enumerate() {
            if route.pool >= pools.len() {
                return Err(RoutesError::UnknownPool(at));
            }
            if route.when.prefix.len().max(route.rewrite.add.len()) > PREFIX_BYTES_MAX {
                return Err(RoutesError::LongPrefix(at));
            }
            if route.rewrite.strip > route.when.prefix.len() {
                return Err(RoutesError::StripsMore(at));
            }
        }
        let mut routes = longest_first(routes);
        if routes.last().is_none_or(|last| !last.when.is_always()) {
            routes.push(Route::of_rest());
        }
        Ok(Self::of(pools.into(), routes.into()))
    }

    fn of(pools: Box<[Pool]>, routes: Box<[Route]>) -> Self {
        let mut this = Self { pools, routes, are_plain: false };
        this.are_plain = match &this.routes[..] {
            [only] => {
                let changes = only.pool != 0 || !only.rewrite.is_none() || only.reads != Reads::Primary;
                !changes && only.pool_mode.is_none() && this.dead_node(0) == DeadNode::Error
            }
            _ => false,
        };
        this
    }

    /// Whether there is nothing to decide: everything goes to pool 0 as it came.
    #[inline]
    pub fn are_plain(&self) -> bool {
        self.are_plain
    }

    /// The pools.
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// The routes in the order in which they are tried.
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// The route of that number.
    #[inline]
    pub fn route(&self, number: u16) -> &Route {
        &self.routes[usize::from(number)]
    }

    /// The pool that a route leads to.
    #[inline]
    pub fn pool_of(&self, number: u16) -> &Pool {
        &self.pools[self.route(number).pool]
    }

    /// What becomes of requests under a route to a node that is down.
    pub fn dead_node(&self, number: u16) -> DeadNode {
        self.route(number).dead_node.unwrap_or(self.pool_of(number).dead_node)
    }

    /// The number of the pool that has a node, a replica perhaps, at this place of the list of all nodes.
    pub fn pool_at(&self, node: NodePlace) -> Option<usize> {
        self.pools.iter().position(|pool| pool.all_places().any(|place| place == node))
    }

    /// What a key of a node is called by clients under this route. `None`: the route does not lead to it.
    pub fn name_before(&self, number: u16, key: &[u8]) -> Option<Vec<u8>> {
        let Route { when, rewrite, .. } = self.route(number);
        let rest = key.strip_prefix(&*rewrite.add)?;
        let name = [when.prefix.get(..rewrite.strip)?, rest].concat();
        name.starts_with(&when.prefix).then_some(name)
    }

    /// Whether a route may lead a user to a key of this name, in some database and by some command.
    pub fn may_lead(&self, number: u16, user: &str, key: &[u8]) -> bool {
        let fits = |route: &Route| route.when.is_for(user) && key.starts_with(&route.when.prefix);
        let catches = |route: &Route| fits(route) && route.when.is_for_all_requests();
        let before = self.routes.iter().take(usize::from(number));
        fits(self.route(number)) && !before.into_iter().any(catches)
    }

    /// The nodes, replicas too, of all pools that a user may be led to, in some database and by some command, in order.
    pub fn nodes_for(&self, user: &str) -> Vec<NodePlace> {
        let mut nodes = Vec::new();
        for Route { when, pool, .. } in self.routes.iter().filter(|route| route.when.is_for(user)) {
            nodes.extend(self.pools[*pool].all_places());
            if when.is_for_all_requests() && when.prefix.is_empty() {
                break;
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// The nodes of all pools that a user may be led to in a database, by some command: each once, in the order of the routes.
    pub fn nodes_in(&self, user: &str, database: u32) -> Vec<NodePlace> {
        let mut nodes = Vec::new();
        let is_in = |when: &When| when.databases.is_empty() || when.databases.contains(&database);
        for Route { when, pool, .. } in self.routes.iter().filter(|route| route.when.is_for(user) && is_in(&route.when))
        {
            for node in self.pools[*pool].places() {
                if !nodes.contains(&node) {
                    nodes.push(node);
                }
            }
            if when.commands == Commands::default() && when.prefix.is_empty() {
                break;
            }
        }
        nodes
    }

    /// Puts the routes that fit apart from their prefixes into `out`, in order. The last of all is always among them.
    pub(crate) fn candidates(&self, subject: Subject<'_>, out: &mut Vec<u16>) {
        out.clear();
        let fitting = self.routes.iter().enumerate().filter(|(_, route)| route.when.fits(subject));
        out.extend(fitting.map(|(number, _)| number as u16));
    }

    /// The first of `candidates` whose prefix the key has; without a key, the first that asks for none.
    pub(crate) fn choose(&self, candidates: &[u16], key: Option<&[u8]>) -> u16 {
        let fits = |number: &&u16| {
            let prefix = &self.route(**number).when.prefix;
            key.map_or(prefix.is_empty(), |key| key.starts_with(prefix))
        };
        candidates.iter().find(fits).copied().unwrap_or((self.routes.len() - 1) as u16)
    }

    /// Those of `candidates` that some key falls under whose name begins so.
    pub(crate) fn reached<'a>(&'a self, candidates: &'a [u16], start: &'a [u8]) -> impl Iterator<Item = u16> {
        let prefix = |number: &u16| &*self.route(*number).when.prefix;
        let first_of_all = candidates.iter().position(|number| start.starts_with(prefix(number)));
        let tried = &candidates[..first_of_all.map_or(candidates.len(), |at| at + 1)];
        tried.iter().copied().filter(move |number| {
            let prefix = prefix(number);
            start.starts_with(prefix) || prefix.starts_with(start)
        })
    }
}

/// Among routes that differ in their prefixes alone, the longer comes first; all others keep their order.
fn longest_first(routes: Vec<Route>) -> Vec<Route> {
    let mut places: Vec<Vec<usize>> = Vec::new();
    for (at, route) in routes.iter().enumerate() {
        match places.iter_mut().find(|alike| routes[alike[0]].when.is_like(&route.when)) {
            Some(alike) => alike.push(at),
            None => places.push(vec![at]),
        }
    }
    let mut arranged: Vec<Option<Route>> = vec![None; routes.len()];
    let mut routes: Vec<Option<Route>> = routes.into_iter().map(Some).collect();
    for alike in places {
        let mut group: Vec<Route> = alike.iter().filter_map(|at| routes[*at].take()).collect();
        group.sort_by_key(|route| std::cmp::Reverse(route.when.prefix.len()));
        alike.iter().zip(group).for_each(|(at, route)| arranged[*at] = Some(route));
    }
    arranged.into_iter().flatten().collect()
}
