//! Routes and the pools they lead to: `[[routes]]` and `[pools.NAME]`. How they are said in the file, and what they mean.
//!
//! They are lists of tables, so they are no rows of the settings' table: a file is the only place to say them.

use std::collections::HashSet;
use std::ops::Range;

use respool_command::{Categories, lookup_full};
use respool_route::limits::{POOLS_MAX, PREFIX_BYTES_MAX, ROUTES_MAX};
use respool_route::{Commands, DeadNode, PoolMode, Reads, Rewrite, Route, When};
use toml::Spanned;
use toml::de::DeValue;

use super::config::{NodeSettings, PoolSettings, RoutingSettings};
use super::diagnostic::{self, Fault};
use super::placement;
use super::raw::{Origin, RawNamedPool, RawPool, RawRoute, RawRouting, RouteKey, Statement, Text};
use super::resolver::{Resolver, default_of};
use super::row::Value;
use super::suggestion::nearest;
use super::table::Setting;
use super::values::Values;

/// The settings that a pool with a name may have of its own. What it does not say is as in the pool around it, nodes apart.
const OF_NAMED_POOL: [Setting; 9] = [
    Setting::Nodes,
    Setting::Placement,
    Setting::HashTag,
    Setting::DefaultNode,
    Setting::DeadNode,
    Setting::CrossSlot,
    Setting::NodeUsername,
    Setting::NodePassword,
    Setting::NodePasswordFile,
];

/// Reads `pools` and `routes` from a table of the settings file.
pub(super) struct RoutingReader<'a> {
    pub(super) said: &'a mut RawRouting,
    pub(super) faults: &'a mut Vec<Fault>,
}

impl RoutingReader<'_> {
    fn fault(&mut self, span: Range<usize>, message: String) {
        diagnostic::add(self.faults, || Fault::new(Origin::File { span }, message));
    }

    /// Takes `[pools.NAME]`. Statements of a pool are read by `statement`, as those of any other table.
    pub(super) fn pools(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        mut statement: impl FnMut(
            &Spanned<std::borrow::Cow<'_, str>>,
            &Spanned<DeValue<'_>>,
            &mut Vec<Fault>,
        ) -> Option<Statement>,
    ) {
        let DeValue::Table(pools) = value.get_ref() else {
            return self.fault(value.span(), "pools that routes lead to are written [pools.NAME]".to_owned());
        };
        for (name, value) in pools {
            let DeValue::Table(table) = value.get_ref() else {
                self.fault(value.span(), "a pool is a table: [pools.NAME]".to_owned());
                continue;
            };
            let mut pool = RawNamedPool {
                name: name.get_ref().to_string(),
                origin: Origin::File { span: name.span() },
                statements: Vec::new(),
            };
            if !is_plain(&pool.name) {
                self.fault(name.span(), "a pool's name has 1 to 64 letters, digits, dashes or underscores".to_owned());
            }
            for (key, value) in table {
                let Some(said) = statement(key, value, self.faults) else { continue };
                if OF_NAMED_POOL.contains(&said.setting) {
                    pool.statements.push(said);
                    continue;
                }
                let names = OF_NAMED_POOL.map(|setting| setting.row().name).join(", ");
                let fault = Fault::new(
                    Origin::File { span: key.span() },
                    format!("{} is no setting of a pool that routes lead to", key.get_ref()),
                );
                diagnostic::add(self.faults, || fault.hint(format!("such a pool has {names}")));
            }
            self.said.pools.push(pool);
        }
    }

    /// Takes `[[routes]]`.
    pub(super) fn routes(&mut self, value: &Spanned<DeValue<'_>>) {
        let DeValue::Array(routes) = value.get_ref() else {
            return self.fault(value.span(), "a route is written with two brackets: [[routes]]".to_owned());
        };
        for route in routes {
            let DeValue::Table(table) = route.get_ref() else {
                self.fault(route.span(), "a route is a table".to_owned());
                continue;
            };
            // The span of a table that is written with brackets begins at its head.
            let start = route.span().start;
            let mut said = RawRoute { origin: Origin::File { span: start..start + 1 }, keys: Vec::new() };
            for (key, value) in table {
                let known = RouteKey::ALL.iter().find(|(_, word)| *word == key.get_ref());
                let Some((known, _)) = known else {
                    self.unknown(key);
                    continue;
                };
                if let Some(texts) = self.texts(value) {
                    said.keys.push((*known, texts));
                }
            }
            self.said.routes.push(said);
        }
    }

    fn unknown(&mut self, key: &Spanned<std::borrow::Cow<'_, str>>) {
        let words = || RouteKey::ALL.iter().map(|(_, word)| *word);
        let hint = match nearest(key.get_ref(), words()) {
            Some(near) => format!("the nearest is {near}"),
            None => format!("a route has {}", words().collect::<Vec<_>>().join(", ")),
        };
        let fault = Fault::new(Origin::File { span: key.span() }, format!("a route has no {:.64?}", key.get_ref()));
        diagnostic::add(self.faults, || fault.hint(hint));
    }

    fn texts(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Vec<Text>> {
        match value.get_ref() {
            DeValue::Array(items) => items.iter().map(|item| self.text(item)).collect(),
            _ => self.text(value).map(|text| vec![text]),
        }
    }

    fn text(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Text> {
        let origin = Origin::File { span: value.span() };
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Boolean(is) => is.to_string(),
            _ => {
                self.fault(value.span(), "a text, a whole number, true or false is needed here".to_owned());
                return None;
            }
        };
        Some(Text { text, origin })
    }
}

fn is_plain(name: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(is_allowed)
}

impl Resolver<'_> {
    /// Understands the routes of one instance, whose own settings are `values`.
    pub(super) fn routing(
        &mut self,
        values: &[Value],
        own_nodes: &[NodeSettings],
        pool: Option<&RawPool>,
    ) -> RoutingSettings {
        let of_pool = pool.map(|pool| &pool.routing).filter(|routing| !routing.is_empty());
        let said = of_pool.unwrap_or(&self.said.routing).clone();
        if said.is_empty() {
            return RoutingSettings::default();
        }
        if own_nodes.is_empty() {
            let origin = said.routes.first().map(|route| &route.origin).or(said.pools.first().map(|pool| &pool.origin));
            let fault = Fault::new(origin.cloned().unwrap_or(Origin::Default), "routes need nodes".to_owned());
            self.fault(fault.hint("set nodes as well: they get what no route fits"));
            return RoutingSettings::default();
        }
        let pools: Vec<PoolSettings> = said.pools.iter().map(|pool| self.named_pool(values, pool)).collect();
        self.names_differ(own_nodes, &pools, &said);
        let names: Vec<&str> = std::iter::once("main").chain(pools.iter().map(|pool| pool.name.as_str())).collect();
        let mut routes = Vec::new();
        for (number, route) in said.routes.iter().enumerate() {
            routes.extend(self.route(number, route, &names));
        }
        if let Some(first) = said.routes.get(ROUTES_MAX).filter(|_| routes.len() > ROUTES_MAX).or(said.routes.last())
            && routes.len() > ROUTES_MAX
        {
            let fault = Fault::new(first.origin.clone(), format!("there are more than {ROUTES_MAX} routes"));
            self.fault(fault.hint("each prefix counts as one"));
        }
        if let Some(pool) = said.pools.get(POOLS_MAX - 1) {
            self.fault(Fault::new(pool.origin.clone(), format!("there are more than {POOLS_MAX} pools")));
        }
        let is_reached = |number: usize| routes.iter().any(|route: &Route| route.pool == number + 1);
        for (_, pool) in pools.iter().enumerate().filter(|(number, _)| !is_reached(*number)) {
            self.warnings.push(format!("no route leads to pool {}", pool.name));
        }
        RoutingSettings { pools, routes }
    }

    fn named_pool(&mut self, values: &[Value], said: &RawNamedPool) -> PoolSettings {
        let mut values = values.to_vec();
        for setting in [Setting::Nodes, Setting::DefaultNode] {
            values[setting as usize] = default_of(setting.row());
        }
        let says = |setting: Setting| said.statements.iter().any(|statement| statement.setting == setting);
        if says(Setting::NodePassword) || says(Setting::NodePasswordFile) {
            for setting in [Setting::NodePassword, Setting::NodePasswordFile, Setting::NodeUsername] {
                values[setting as usize] = Value::Absent;
            }
        }
        for statement in &said.statements {
            values[statement.setting as usize] = self.value_of(statement);
        }
        // Blamed are the pool's own statements: it is judged as if it stood alone.
        let pool = RawPool { statements: said.statements.clone(), ..RawPool::default() };
        let of = Values(&values);
        let credentials = self.credentials(&of, Some(&pool));
        let nodes = self.nodes(&of, credentials.as_ref(), Some(&pool));
        if nodes.is_empty() {
            let fault = Fault::new(said.origin.clone(), format!("pool {} has no nodes", said.name));
            self.fault(fault.hint("set nodes = [\"host:port\", ...] in it"));
        }
        if said.name == "main" {
            let fault = Fault::new(said.origin.clone(), "the name main means the nodes outside every pool".to_owned());
            self.fault(fault.hint("give the pool another name"));
        }
        let placement = placement::scheme(of.word(Setting::Placement), of.word(Setting::HashTag));
        self.nodes_fit(&nodes, placement, Some(&pool));
        PoolSettings {
            name: said.name.clone(),
            default_node: self.default_node(&of, &nodes, Some(&pool)),
            nodes,
            placement,
            dead_node: DeadNode::ALL[of.word(Setting::DeadNode)].0,
            splits: super::resolve::splits(&of),
        }
    }

    /// Nodes are told apart by name in messages and on the console, whatever pool they are in.
    fn names_differ(&mut self, own: &[NodeSettings], pools: &[PoolSettings], said: &RawRouting) {
        let mut seen: HashSet<&str> = own.iter().map(|node| node.name.as_str()).collect();
        for (pool, said) in pools.iter().zip(&said.pools) {
            for node in pool.nodes.iter().filter(|node| !seen.insert(&node.name)) {
                let fault = Fault::new(said.origin.clone(), format!("two nodes have the name {}", node.name));
                self.fault(fault.hint("give one of them another with name=NAME behind its address"));
            }
        }
    }

    /// Understands one route: one for each of its prefixes.
    fn route(&mut self, number: usize, said: &RawRoute, pools: &[&str]) -> Vec<Route> {
        let mut route = Route {
            name: format!("route-{}", number + 1).into(),
            when: When::default(),
            pool: 0,
            rewrite: Rewrite::default(),
            reads: Reads::default(),
            dead_node: None,
            pool_mode: None,
        };
        let (mut prefixes, mut strips, mut has_target) = (Vec::new(), false, false);
        for (key, texts) in &said.keys {
            match key {
                RouteKey::Name => {
                    if let Some(name) = self.one(texts, said) {
                        match is_plain(&name.text) {
                            true => route.name = name.text.as_str().into(),
                            false => self
                                .blame_text(name, "a route's name has 1 to 64 letters, digits, dashes or underscores"),
                        }
                    }
                }
                RouteKey::Users => route.when.users = texts.iter().map(|text| text.text.as_str().into()).collect(),
                RouteKey::Prefix => prefixes.clone_from(texts),
                RouteKey::Databases => {
                    let numbers = texts.iter().map(|text| self.parsed(text, "a database is a whole number"));
                    route.when.databases = numbers.collect::<Option<_>>().unwrap_or_default();
                }
                RouteKey::Commands => route.when.commands = self.commands(texts),
                RouteKey::To => {
                    has_target = true;
                    if let Some(name) = self.one(texts, said) {
                        match pools.iter().position(|pool| *pool == name.text) {
                            Some(pool) => route.pool = pool,
                            None => self.unknown_pool(name, pools),
                        }
                    }
                }
                RouteKey::Strip => {
                    let text = self.one(texts, said);
                    strips = text.and_then(|text| self.parsed(text, "strip is true or false")).unwrap_or(false);
                }
                RouteKey::Add => {
                    if let Some(text) = self.one(texts, said) {
                        if text.text.len() > PREFIX_BYTES_MAX {
                            self.blame_text(text, &format!("at most {PREFIX_BYTES_MAX} bytes may be added"));
                        }
                        route.rewrite.add = text.text.as_bytes().into();
                    }
                }
                RouteKey::Reads => {
                    if let Some(text) = self.one(texts, said) {
                        route.reads = self.word(text, &Reads::ALL).unwrap_or_default();
                    }
                }
                RouteKey::PoolMode => {
                    if let Some(text) = self.one(texts, said) {
                        route.pool_mode = self.word(text, &PoolMode::ALL);
                    }
                }
                RouteKey::DeadNode => {
                    if let Some(text) = self.one(texts, said) {
                        route.dead_node = self.word(text, &DeadNode::ALL);
                    }
                }
            }
        }
        if !has_target {
            let fault = Fault::new(said.origin.clone(), format!("{} does not say where to", route.name));
            self.fault(fault.hint(format!("set to = NAME; the pools are {}", pools.join(", "))));
        }
        if strips && prefixes.is_empty() {
            let fault =
                Fault::new(said.origin.clone(), format!("{} strips a prefix that it does not name", route.name));
            self.fault(fault.hint("set prefix, or leave strip out"));
        }
        if prefixes.is_empty() {
            return vec![route];
        }
        for text in prefixes.iter().filter(|text| text.text.len() > PREFIX_BYTES_MAX) {
            self.blame_text(text, &format!("a prefix has at most {PREFIX_BYTES_MAX} bytes"));
        }
        let with_prefix = |text: &Text| {
            let prefix: Box<[u8]> = text.text.as_bytes().into();
            let rewrite = Rewrite { strip: if strips { prefix.len() } else { 0 }, add: route.rewrite.add.clone() };
            Route { when: When { prefix, ..route.when.clone() }, rewrite, ..route.clone() }
        };
        prefixes.iter().map(with_prefix).collect()
    }

    fn one<'t>(&mut self, texts: &'t [Text], said: &RawRoute) -> Option<&'t Text> {
        let [only] = texts else {
            let origin = texts.get(1).map_or(&said.origin, |second| &second.origin).clone();
            self.fault(Fault::new(origin, "one value is needed here".to_owned()));
            return None;
        };
        Some(only)
    }

    fn parsed<T: std::str::FromStr>(&mut self, text: &Text, rule: &str) -> Option<T> {
        let value = text.text.parse().ok();
        if value.is_none() {
            self.blame_text(text, rule);
        }
        value
    }

    fn word<T: Copy>(&mut self, text: &Text, words: &[(T, &'static str)]) -> Option<T> {
        let found = words.iter().find(|(_, word)| *word == text.text).map(|(value, _)| *value);
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(_, word)| *word).collect();
            self.blame_text(text, &format!("allowed are {}", names.join(", ")));
        }
        found
    }

    /// `@category` or a command's name as ACL rules write it.
    fn commands(&mut self, texts: &[Text]) -> Commands {
        let (mut categories, mut named) = (Categories::NONE, Vec::new());
        for text in texts {
            let found = match text.text.strip_prefix('@') {
                Some(name) => Categories::named(name.as_bytes()).map(|category| categories = categories.with(category)),
                None => lookup_full(text.text.as_bytes()).map(|row| {
                    named.push(row.command);
                    named.extend(row.subcommands.iter().map(|row| row.command));
                }),
            };
            if found.is_none() {
                self.blame_text(
                    text,
                    "a command is its name (get, client|list) or a category (@read), as ACL rules write it",
                );
            }
        }
        Commands { categories, named: named.into() }
    }

    fn unknown_pool(&mut self, name: &Text, pools: &[&str]) {
        let hint = match nearest(&name.text, pools.iter().copied()) {
            Some(near) => format!("the nearest is {near}"),
            None => format!("the pools are {}; [pools.NAME] adds one", pools.join(", ")),
        };
        self.fault(Fault::new(name.origin.clone(), format!("there is no pool {:.64?}", name.text)).hint(hint));
    }

    fn blame_text(&mut self, text: &Text, rule: &str) {
        self.fault(Fault::new(text.origin.clone(), format!("{:.64?} cannot stand here", text.text)).hint(rule));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Faults, RawSettings, file, resolve};

    fn understood(text: &str) -> Result<RoutingSettings, String> {
        let mut said = RawSettings::default();
        let faults = file::hear(&mut said, "r.toml", text.to_owned());
        if !faults.is_empty() {
            return Err(Faults { file: said.file, faults }.to_string());
        }
        let understood =
            resolve(&said, &|_| unreachable!("no secret is asked for")).map_err(|faults| faults.to_string())?;
        Ok(understood.process.instances[0].proxy.routing.clone())
    }

    const NODES: &str = "nodes = \"a:1\"\n";

    #[test]
    fn routes_are_understood_with_one_for_each_prefix() {
        let text = format!(
            "{NODES}[pools.p]\nnodes = [\"b:1\", \"c:1 replica_of=b:1\"]\nplacement = \"ketama\"\ndead_node = \"next\"\n\
             [[routes]]\nname = \"x\"\nto = \"p\"\nusers = \"ann\"\nprefix = [\"a:\", \"b\"]\nstrip = true\nadd = \"n\"\n\
             [[routes]]\nto = \"main\"\ndatabases = [1, 2]\ncommands = [\"@read\", \"client|list\"]\nreads = \"replica\"\n"
        );
        let routing = understood(&text).unwrap();
        let pool = &routing.pools[0];
        assert_eq!(
            (pool.nodes.len(), pool.dead_node, pool.placement.to_string().as_str()),
            (2, DeadNode::Next, "ketama:fnv1a_64")
        );
        let [first, second, third] = &routing.routes[..] else { panic!("{:?}", routing.routes) };
        assert_eq!((&*first.name, first.pool, &*first.when.prefix, first.rewrite.strip), ("x", 1, &b"a:"[..], 2));
        assert_eq!((&*second.when.prefix, second.rewrite.strip, &*second.rewrite.add), (&b"b"[..], 1, &b"n"[..]));
        assert_eq!((&*third.name, third.pool, &*third.when.databases), ("route-2", 0, &[1, 2][..]));
        assert_eq!((third.when.commands.categories, third.when.commands.named.len()), (Categories::READ, 1));
        assert_eq!(understood(NODES).unwrap(), RoutingSettings::default());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let pool = "[pools.p]\nnodes = \"b:1\"\n";
        for (text, message, line) in [
            ("[[routes]]\nto = \"main\"\n".to_owned(), "routes need nodes", 1),
            (format!("{NODES}[[routes]]\nto = \"q\"\n"), "there is no pool \"q\"", 3),
            (format!("{NODES}{pool}[[routes]]\nprefix = \"a\"\n"), "route-1 does not say where to", 4),
            (format!("{NODES}[[routes]]\nto = \"main\"\nprefx = \"a\"\n"), "the nearest is prefix", 4),
            (format!("{NODES}[[routes]]\nto = \"main\"\nstrip = true\n"), "strips a prefix that it does not name", 2),
            (
                format!("{NODES}[[routes]]\nto = \"main\"\ncommands = [\"@read\", \"nope\"]\n"),
                "\"nope\" cannot stand",
                4,
            ),
            (format!("{NODES}[[routes]]\nto = \"main\"\nreads = \"replicas\"\n"), "allowed are primary, replica", 4),
            (format!("{NODES}[[routes]]\nto = \"main\"\ndatabases = \"x\"\n"), "a whole number", 4),
            (format!("{NODES}[pools.p]\nplacement = \"slots\"\n"), "pool p has no nodes", 2),
            (format!("{NODES}[pools.p]\nnodes = \"a:1\"\n"), "two nodes have the name a:1", 2),
            (format!("{NODES}[pools.main]\nnodes = \"b:1\"\n"), "the name main means", 2),
            (format!("{NODES}[pools.p]\nnodes = \"b:1\"\nlisten = \":1\"\n"), "listen is no setting of a pool", 4),
            (format!("{NODES}[pools.p]\nnodes = \"b:1 replica_of=x\"\n"), "a replica of x, which is not there", 3),
            (format!("{NODES}[pools.p]\nnodes = \"b\"\n"), "nodes cannot be \"b\"", 3),
            (format!("{NODES}routes = 1\n"), "a route is written with two brackets", 2),
        ] {
            let shown = understood(&text).unwrap_err();
            assert!(shown.contains(message) && shown.contains(&format!("r.toml:{line}:")), "{text}\n{shown}");
        }
    }
}
