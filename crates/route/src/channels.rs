//! Which pool a channel is in, and what it is called there: routes hold for channels as they do for keys.
//!
//! ```text
//!   channel --- the first route that fits, by its name as by a key's --> pool, name at the node
//!   pattern --- every route that can lead to a name that matches -----> pools, patterns at the nodes
//!   name at the node --- the first route that leads its client there --> what that client calls it
//! ```
//!
//! What nodes are asked for a pattern may match more than the client's own pattern does: the receivers of a message are decided by the
//! name that the client has for its channel.

use respool_command::glob::{self, Rest};

use crate::routes::{Routes, Subject};

/// Where a route leads a channel, or a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Led {
    /// The number of the route.
    pub route: u16,
    /// The name or pattern on the other side: at nodes, or what a client calls it.
    pub name: Vec<u8>,
}

impl Routes {
    /// Whether all channels are in pool 0 under the names that clients have for them.
    pub fn keep_channels(&self) -> bool {
        matches!(self.routes(), [only] if only.pool == 0 && only.rewrite.is_none())
    }

    /// Where a channel is.
    pub fn channel(&self, subject: Subject<'_>, name: &[u8]) -> Led {
        let mut candidates = Vec::new();
        self.candidates(subject, &mut candidates);
        let route = self.choose(&candidates, Some(name));
        let mut renamed = Vec::new();
        self.route(route).rewrite.apply(name, &mut renamed);
        Led { route, name: renamed }
    }

    /// Where channels may be whose names match a pattern, each with the pattern that nodes have to be asked for.
    pub fn pattern(&self, subject: Subject<'_>, pattern: &[u8]) -> Vec<Led> {
        let asked = |route: u16| Some(Led { route, name: self.pattern_under(route, pattern)? });
        self.reachable(subject).into_iter().filter_map(asked).collect()
    }

    /// The pattern that nodes have to be asked for if a client's is to be matched under a route. `None`: it matches nothing
    /// that begins as the route asks.
    pub fn pattern_under(&self, number: u16, pattern: &[u8]) -> Option<Vec<u8>> {
        let route = self.route(number);
        if glob::rest_behind(pattern, &route.when.prefix) == Rest::Nothing {
            return None;
        }
        let stripped = route.when.prefix.get(..route.rewrite.strip).unwrap_or_default();
        let mut asked = glob::escape(&route.rewrite.add);
        match glob::rest_behind(pattern, stripped) {
            Rest::Nothing => return None,
            Rest::Pattern(rest) => asked.extend_from_slice(rest),
            Rest::Anything => asked.push(b'*'),
        }
        Some(asked)
    }

    /// What a client calls a channel of a pool, by the first route that leads it there under a name for which `is_meant` holds.
    pub fn channel_name(
        &self,
        subject: Subject<'_>,
        pool: usize,
        name: &[u8],
        is_meant: impl Fn(&[u8]) -> bool,
    ) -> Option<Led> {
        let candidates = self.reachable(subject);
        let led = |route: u16| {
            let name = self.name_before(route, name).filter(|name| is_meant(name))?;
            (self.choose(&candidates, Some(&name)) == route).then_some(Led { route, name })
        };
        candidates.iter().filter(|route| self.route(**route).pool == pool).find_map(|route| led(*route))
    }

    /// The pools that some route leads to, whatever the name, in order.
    pub fn pools_for(&self, subject: Subject<'_>) -> Vec<usize> {
        let mut pools: Vec<usize> = self.reachable(subject).into_iter().map(|route| self.route(route).pool).collect();
        pools.sort_unstable();
        pools.dedup();
        pools
    }

    /// The routes that fit some name. The first that asks for no prefix is the last of them.
    fn reachable(&self, subject: Subject<'_>) -> Vec<u16> {
        let mut candidates = Vec::new();
        self.candidates(subject, &mut candidates);
        if let Some(last) = candidates.iter().position(|route| self.route(*route).when.prefix.is_empty()) {
            candidates.truncate(last + 1);
        }
        candidates
    }
}
