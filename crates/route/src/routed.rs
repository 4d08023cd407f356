//! From a request to the nodes that have to answer it, under routes: as [`plan`](crate::plan()), with a pool for each key
//! and new names for keys. Where no routes are configured there is one, which leads everything to one pool as it came, so
//! that is the same question.
//!
//! Keys are found by the row's specification alone, as everywhere. What a command does to keys that its arguments do not
//! name cannot be renamed, so under a route that renames keys such commands are refused.

use std::collections::BTreeMap;

use respool_command::{KeyPosition, RequestPolicy, Row};
use respool_wire::{Args, ArgsBuf, Encoder, Request, request_bulk, request_head};

use crate::limits::{PARTS_MAX, PATTERNS_TOLD_APART_MAX};
use crate::node::{NodeIndex, NodePlace};
use crate::plan::{Plan, PlanError, plan};
use crate::routes::{Pool, Rewrite, Routes, Subject, When};
use crate::scan::ScanStep;
use crate::split::{Layout, Part, Scratch};

/// A node under a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number of the route.
    pub route: u16,
    /// Where the node stands in the list of all nodes.
    pub node: NodePlace,
}

/// Where a request goes under routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routed {
    /// To one node; its reply is the reply.
    One(Place),
    /// To several, each with its own keys: [`RouteScratch::parts`].
    Split,
    /// To every node of the pool that this route leads to.
    All(u16),
    /// To one node after the other, one at a time: this is the step for this time.
    Scan(u16, ScanStep),
}

/// Why a request cannot be sent anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteError {
    /// As without routes.
    Plan(PlanError),
    /// It means keys that no argument names, and the route of this number renames keys.
    Renamed(u16),
    /// It would put a key into this database, where routes lead it to another pool or give it another name.
    Elsewhere(u32),
    /// It would swap these two databases, which routes tell apart.
    ToldApart(u32, u32),
    /// Its keys are at more than [`PARTS_MAX`] places.
    TooManyParts,
}

/// Working memory for [`Routes::plan`], made to be reused. It holds the parts and the new names of the latest plan.
#[derive(Debug, Default)]
pub struct RouteScratch {
    inner: Scratch,
    candidates: Vec<u16>,
    /// The different places that the keys are at.
    places: Vec<Place>,
    /// Their numbers.
    numbers: BTreeMap<Place, u16>,
    /// For each key in order, which of the places it is at.
    placed: Vec<u16>,
    /// Positions of the keys that may be renamed, ascending.
    renamed: Vec<u32>,
    name: Vec<u8>,
}

/// What is known of one key, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPlace {
    /// Its position among the arguments.
    pub index: u32,
    /// The name it has at the node.
    pub name: Vec<u8>,
    /// Where it is.
    pub place: Place,
}

impl RouteScratch {
    /// The parts of the latest [`Routed::Split`], in the order in which the keys name their places first.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = (Place, Part<'_>)> {
        self.inner.parts().map(|part| (self.places[part.node.get()], part))
    }

    /// For [`Gather::begin_split`](crate::Gather::begin_split).
    pub fn as_scratch(&self) -> &Scratch {
        &self.inner
    }

    /// The keys of the latest [`Routes::plan_keys`], with their names at the nodes, in the order in which the row names them.
    pub fn keys(&self, routes: &Routes, args: Args<'_>) -> Vec<KeyPlace> {
        let placed = self.inner.key_indexes().zip(&self.placed);
        let shown = placed.map(|(index, place)| {
            let place = self.places[usize::from(*place)];
            let mut name = Vec::new();
            routes.route(place.route).rewrite.apply(args.get(index as usize).unwrap_or_default(), &mut name);
            KeyPlace { index, name, place }
        });
        shown.collect()
    }

    /// Appends the request of the latest [`Routed::One`] as its node is to get it.
    pub fn encode_one(&self, routes: &Routes, route: u16, args: Args<'_>, raw: Option<&[u8]>, out: &mut Vec<u8>) {
        let rewrite = &routes.route(route).rewrite;
        match raw {
            _ if self.renames(rewrite) => {
                request_head(out, args.len());
                self.each_argument(rewrite, args, |arg| request_bulk(out, arg));
            }
            Some(raw) => out.extend_from_slice(raw),
            None => respool_wire::encode_request(out, args.iter()),
        }
    }

    /// The arguments of the latest [`Routed::One`] as its node is to get them. `None`: as they are.
    pub fn renamed(&self, routes: &Routes, route: u16, args: Args<'_>) -> Option<ArgsBuf> {
        let rewrite = &routes.route(route).rewrite;
        let mut renamed = self.renames(rewrite).then(ArgsBuf::default)?;
        self.each_argument(rewrite, args, |arg| _ = renamed.push(arg));
        Some(renamed)
    }

    fn renames(&self, rewrite: &Rewrite) -> bool {
        !rewrite.is_none() && !self.renamed.is_empty()
    }

    /// The arguments with the new names of keys.
    fn each_argument(&self, rewrite: &Rewrite, args: Args<'_>, mut take: impl FnMut(&[u8])) {
        let mut renamed = self.renamed.iter().copied().peekable();
        let mut name = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            if renamed.next_if(|next| *next as usize == at).is_some() {
                rewrite.apply(arg, &mut name);
                take(&name);
            } else {
                take(arg);
            }
        }
    }

    /// Appends the request of one part.
    pub fn encode_part(&self, routes: &Routes, place: Place, part: Part<'_>, request: &Request<'_>, out: &mut Vec<u8>) {
        part.encode_as(request, &routes.route(place.route).rewrite, out);
    }

    /// Forgets the latest plan.
    fn forget(&mut self) {
        self.places.clear();
        self.numbers.clear();
        self.placed.clear();
        self.renamed.clear();
    }

    /// Places every key that was found. Says whether any of them is renamed, and by which route.
    fn place_keys(&mut self, routes: &Routes, args: Args<'_>) -> Result<Option<u16>, RouteError> {
        let mut renaming = None;
        let Self { inner, candidates, places, numbers, placed, renamed, name } = self;
        for KeyPosition { index, access } in inner.keys().iter().copied() {
            let key = args.get(index as usize).unwrap_or_default();
            let route = routes.choose(candidates, Some(key));
            let (pool, rewrite) = (routes.pool_of(route), &routes.route(route).rewrite);
            let is_renamed = !rewrite.is_none() && access.is_key();
            let node = if is_renamed {
                renaming = Some(route);
                renamed.push(index);
                rewrite.apply(key, name);
                pool.topology.place(name)
            } else {
                pool.topology.place(key)
            };
            let place = Place { route, node: pool.place(node) };
            let number = *numbers.entry(place).or_insert_with(|| {
                places.push(place);
                (places.len() - 1) as u16
            });
            if places.len() > PARTS_MAX {
                return Err(RouteError::TooManyParts);
            }
            placed.push(number);
        }
        renamed.sort_unstable();
        renamed.dedup();
        Ok(renaming)
    }
}

impl Routes {
    /// Decides where the request `args` goes. Where there is nothing to choose it looks at no more than [`plan`] does, and
    /// knows nothing of keys afterwards but the parts of a split.
    pub fn plan(&self, subject: Subject<'_>, args: Args<'_>, scratch: &mut RouteScratch) -> Result<Routed, RouteError> {
        if !self.are_plain() {
            return self.plan_keys(subject, args, scratch);
        }
        scratch.forget();
        let pool = self.pool_of(0);
        let planned = plan(subject.row, args, &pool.topology, &mut scratch.inner).map_err(RouteError::Plan)?;
        if planned == Plan::Split {
            scratch.places.extend(pool.places().map(|node| Place { route: 0, node }));
        }
        Ok(planned.under(0, pool))
    }

    /// The same, looking at every key: [`RouteScratch::keys`] has them until the next plan is made.
    pub fn plan_keys(
        &self,
        subject: Subject<'_>,
        args: Args<'_>,
        scratch: &mut RouteScratch,
    ) -> Result<Routed, RouteError> {
        let row = subject.row;
        scratch.forget();
        self.candidates(subject, &mut scratch.candidates);
        if !scratch.inner.find_keys(&row.keys, args) {
            return plan_keyless(self, row, args, scratch);
        }
        let renaming = scratch.place_keys(self, args)?;
        let has_unnamed = scratch.inner.has_unnamed_keys();
        if let Some(route) = renaming.filter(|_| has_unnamed || row.reply_names_keys) {
            return Err(RouteError::Renamed(route));
        }
        if has_unnamed {
            scratch.check_patterns(self, args)?;
        }
        scratch.check_databases(self, subject, args)?;
        if let [only] = scratch.places[..] {
            return Ok(Routed::One(only));
        }
        let splits = |place: &Place| self.pool_of(place.route).topology.splits();
        if row.request_policy == RequestPolicy::SplitByKey
            && scratch.places.iter().all(splits)
            && let Some(routed) = scratch.split(row, args)
        {
            return Ok(routed);
        }
        Err(RouteError::Plan(scratch.cross_slot()))
    }
}

impl Plan {
    /// The same by the number of a route that leads to this pool.
    fn under(self, route: u16, pool: &Pool) -> Routed {
        match self {
            Self::One(node) => Routed::One(Place { route, node: pool.place(node) }),
            Self::Split => Routed::Split,
            Self::All => Routed::All(route),
            Self::Scan(step) => Routed::Scan(route, step),
        }
    }
}

impl RouteScratch {
    /// Splits a request whose keys are at several places; `None` if it cannot be split.
    fn split(&mut self, row: &Row, args: Args<'_>) -> Option<Routed> {
        match self.inner.layout(&row.keys, args.len()) {
            Layout::Even(groups) => {
                let placed = &self.placed;
                let place = |key: usize, _: &[u8]| NodeIndex::new(usize::from(placed[key]));
                self.inner.split(groups, args, self.places.len(), place);
                Some(Routed::Split)
            }
            // A value is missing at the end. Any node refuses the whole of it.
            Layout::Incomplete => self.places.first().map(|place| Routed::One(*place)),
            Layout::Uneven => None,
        }
    }

    /// Whether all keys that patterns reach are, under their own names, on the node that has the keys which are named.
    #[cold]
    fn check_patterns(&self, routes: &Routes, args: Args<'_>) -> Result<(), RouteError> {
        let Some(pool) = self.places.first().map(|place| routes.route(place.route).pool) else { return Ok(()) };
        let are_many = self.inner.patterns().len() > PATTERNS_TOLD_APART_MAX;
        for index in self.inner.patterns().take(if are_many { 1 } else { PATTERNS_TOLD_APART_MAX }) {
            let pattern = args.get(index as usize).unwrap_or_default();
            let start = pattern.split(|byte| *byte == b'*').next().filter(|_| !are_many).unwrap_or_default();
            for number in routes.reached(&self.candidates, start) {
                let route = routes.route(number);
                if !route.rewrite.is_none() {
                    return Err(RouteError::Renamed(number));
                }
                if route.pool != pool || !routes.pools()[pool].topology.is_single() {
                    return Err(RouteError::Plan(PlanError::UnnamedKeys));
                }
            }
        }
        Ok(())
    }

    /// Whether a key that is put into another database is found there: by the same routes, or by ones that lead as far.
    fn check_databases(&mut self, routes: &Routes, subject: Subject<'_>, args: Args<'_>) -> Result<(), RouteError> {
        let Self { inner, candidates, places, placed, .. } = self;
        let Some((index, placed)) = inner.key_indexes().zip(&*placed).last() else { return Ok(()) };
        let here = routes.route(places[usize::from(*placed)].route);
        let key = args.get(index as usize).unwrap_or_default();
        let mut elsewhere = None;
        subject.row.each_database(args, |database| {
            routes.candidates(Subject { database, ..subject }, candidates);
            let there = routes.route(routes.choose(candidates, Some(key)));
            if (here.pool, &here.rewrite) != (there.pool, &there.rewrite) {
                elsewhere = Some(database);
            }
        });
        elsewhere.map_or(Ok(()), |database| Err(RouteError::Elsewhere(database)))
    }

    /// Names the first two keys that are at different places.
    fn cross_slot(&self) -> PlanError {
        let mut keys = self.inner.key_indexes().zip(&self.placed);
        let first = keys.next().unwrap_or((0, &0));
        let second = keys.find(|(_, place)| *place != first.1).unwrap_or(first);
        PlanError::CrossSlot { first: first.0, second: second.0 }
    }
}

fn plan_keyless(routes: &Routes, row: &Row, args: Args<'_>, scratch: &mut RouteScratch) -> Result<Routed, RouteError> {
    let route = routes.choose(&scratch.candidates, None);
    if row.means_other_keys && !routes.route(route).rewrite.is_none() {
        return Err(RouteError::Renamed(route));
    }
    let mut named = Vec::new();
    row.each_database(args, |database| named.push(database));
    if let [one, other] = named[..] {
        let tells_apart = |when: &When| when.databases.contains(&one) != when.databases.contains(&other);
        if routes.routes().iter().any(|route| tells_apart(&route.when)) {
            return Err(RouteError::ToldApart(one, other));
        }
    }
    let pool = routes.pool_of(route);
    let planned = plan(row, args, &pool.topology, &mut scratch.inner).map_err(RouteError::Plan)?;
    debug_assert!(planned != Plan::Split, "a request without keys is not split");
    Ok(planned.under(route, pool))
}

impl RouteError {
    /// Writes the error reply for the request that was refused.
    #[cold]
    pub fn write(self, routes: &Routes, row: &Row, args: Args<'_>, reply: &mut Encoder<'_>) {
        match self {
            Self::Plan(error) => error.write(row, args, reply),
            Self::Elsewhere(database) => {
                let words = format!(
                    "ERR '{}' into database {database} is not supported for this key: there, routes lead it to another pool \
                     or give it another name",
                    row.full_name(),
                );
                reply.error(words.as_bytes());
            }
            Self::ToldApart(one, other) => {
                let words = format!(
                    "ERR '{}' is not supported for databases {one} and {other}: routes lead them to different places",
                    row.full_name(),
                );
                reply.error(words.as_bytes());
            }
            Self::TooManyParts => {
                let words = format!("ERR '{}' with keys at more than {PARTS_MAX} nodes", row.full_name());
                reply.error(words.as_bytes());
            }
            Self::Renamed(route) => {
                let name = &routes.route(route).name;
                let words = format!(
                    "ERR '{}' is not supported under route '{}': it means keys that its arguments do not name, and the \
                     route renames keys",
                    row.full_name(),
                    name,
                );
                reply.error(words.as_bytes());
            }
        }
    }
}
