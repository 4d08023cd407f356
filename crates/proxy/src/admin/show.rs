//! `PROXY SHOW`: what each worker has to tell about one thing.

use crate::admin::query::Show;
use crate::admin::table::{Cell, Line, Table};
use crate::config::Config;
use crate::env::Env;
use crate::ids::{ClientId, ClientNumber, NodeId};
use crate::observe::histogram::quantile_us;
use crate::observe::samples::Samples;
use crate::pool::{Lane, LaneUse, Lanes};
use crate::session::table::Clients;
use crate::session::{PauseReasons, SessionFlags};
use crate::workers::shared::Shared;
use respool_command::Execute;
use respool_connection::{Now, WorkerId};
use respool_route::{NodePlace, Pool, PoolMode, Route, When};
use std::cmp::Reverse;

fn text(text: impl Into<String>) -> Cell {
    Cell::Text(text.into())
}

/// What a client holds that is not shared, whichever feature gave it to it: a line of `PROXY SHOW PINS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PinLine {
    /// The client that holds it.
    pub(crate) client: ClientNumber,
    /// The node, if the pin has one already.
    pub(crate) node: Option<String>,
    /// Why: `multi`, `watch`, ...
    pub(crate) reason: &'static str,
    /// The client's pool mode.
    pub(crate) mode: PoolMode,
    /// For how long, in microseconds.
    pub(crate) age_us: u64,
}

impl PinLine {
    fn into_line(self, worker: WorkerId) -> Line {
        vec![
            ("client", Cell::Same(self.client.get())),
            ("worker", Cell::Same(worker.get() as u64)),
            ("node", text(self.node.unwrap_or_default())),
            ("reason", text(self.reason)),
            ("mode", text(self.mode.name())),
            ("age_ms", Cell::Same(self.age_us / 1000)),
        ]
    }
}

/// What of a worker is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<'e> {
    config: &'e Config,
    shared: &'e Shared,
    clients: &'e Clients,
    lanes: &'e Lanes,
    seen: &'e Samples,
    route_hits: &'e [u64],
    is_all_paused: bool,
    number: WorkerId,
    now: Now,
}

impl<'e> Shown<'e> {
    pub(crate) fn of<E: Execute>(env: &'e Env<E>) -> Self {
        let Env { config, shared, clients, lanes, seen, route_hits, .. } = env;
        let (is_all_paused, number, now) = (env.is_all_paused, env.number, env.now);
        Self { config, shared, clients, lanes, seen, route_hits, is_all_paused, number, now }
    }

    /// What this worker has to tell, `rows_max` lines at the most. What features know is asked of them: what clients hold (`pins`), and
    /// how many channels the nodes of a pool are told of.
    pub(crate) fn table(
        &self,
        show: Show,
        rows_max: usize,
        pins: impl FnOnce() -> Vec<PinLine>,
        told_to: impl Fn(&Pool) -> usize,
    ) -> Table {
        let mut table = Table::of(match show {
            Show::Pins => pins().into_iter().map(|pin| pin.into_line(self.number)).collect(),
            Show::Pools => self.show_pools(told_to),
            Show::Bigkeys => self.show_bigkeys(),
            Show::Clients => self.show_clients(rows_max),
            Show::Hotkeys => self.show_hotkeys(),
            Show::Latency => self.show_latency(),
            Show::Mem => self.show_mem(),
            Show::Nodes => self.config.node_ids().map(|node| self.show_node(node)).collect(),
            Show::Routes => self.show_routes(),
        });
        match show {
            Show::Clients => table.left_out = self.clients.sessions.len().saturating_sub(table.rows.len()),
            // Their order and number are known only when all workers have told theirs.
            show if show.is_joined() => {}
            _ => table.truncate(rows_max),
        }
        table
    }

    /// Pools, each with how many channels its nodes are told of.
    fn show_pools(&self, told_to: impl Fn(&Pool) -> usize) -> Vec<Line> {
        let line = |pool: &Pool| -> Line {
            let lanes = || self.lanes.all.iter().filter(|lane| lane.node.is_in(pool) && !lane.is_retired);
            let down = NodeId::of_pool(pool).filter(|node| self.lanes.nodes[*node].is_unhealthy()).count();
            vec![
                ("pool", text(&*pool.name)),
                ("placement", text(pool.topology.scheme().to_string())),
                ("nodes", Cell::Same(pool.topology.node_count() as u64)),
                ("nodes_down", Cell::Max(down as u64)),
                ("replicas", Cell::Same(pool.replicas.iter().map(|replicas| replicas.len() as u64).sum())),
                ("dead_node", text(pool.dead_node.name())),
                ("connections", Cell::Sum(lanes().filter(|lane| lane.up.is_ready()).count() as u64)),
                ("outstanding", self.waiting(Lane::unanswered, |node| node.is_in(pool))),
                ("queued_bytes", self.waiting(|lane| lane.up.queued_bytes(), |node| node.is_in(pool))),
                ("subscriptions", Cell::Sum(told_to(pool) as u64)),
            ]
        };
        if self.config.nodes.is_empty() { Vec::new() } else { self.config.routes.pools().iter().map(line).collect() }
    }

    /// Keys by how often they were seen in samples.
    fn show_hotkeys(&self) -> Vec<Line> {
        let often = &self.seen.often;
        let line = |ranked: crate::observe::top_keys::Ranked| -> Line {
            vec![
                ("key", text(ranked.key.escape_ascii().to_string())),
                ("seen", Cell::Sum(ranked.figure)),
                ("seen_too_often_by", Cell::Sum(ranked.error)),
                ("of_samples", Cell::Sum(often.seen)),
                ("command", text(ranked.command)),
            ]
        };
        often.ranked().into_iter().map(line).collect()
    }

    /// Keys by the largest request or reply that was seen in samples.
    fn show_bigkeys(&self) -> Vec<Line> {
        let line = |ranked: crate::observe::top_keys::Ranked| -> Line {
            vec![
                ("key", text(ranked.key.escape_ascii().to_string())),
                ("bytes", Cell::Max(ranked.figure)),
                ("command", text(ranked.command)),
            ]
        };
        self.seen.largest.ranked().into_iter().map(line).collect()
    }

    /// Round trips of nodes and times of commands; every worker knows those of all.
    fn show_latency(&self) -> Vec<Line> {
        let mut joined: Vec<(String, Vec<u64>, u64)> = Vec::new();
        for measured in self.shared.measured() {
            let name = format!("{} {}", measured.kind, measured.name);
            let (counts, sum_us) = (measured.histogram.counts(), measured.histogram.sum_us());
            match joined.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, all, sum)) => {
                    all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
                    *sum += sum_us;
                }
                None => joined.push((name, counts, sum_us)),
            }
        }
        joined.sort();
        let line = |(name, counts, sum_us): (String, Vec<u64>, u64)| -> Line {
            let count: u64 = counts.iter().sum();
            let at = |share: f64| Cell::Same(quantile_us(&counts, share));
            vec![
                ("of", text(name)),
                ("samples", Cell::Same(count)),
                ("mean_us", Cell::Same(sum_us / count.max(1))),
                ("p50_us", at(0.5)),
                ("p99_us", at(0.99)),
                ("p999_us", at(0.999)),
                ("max_us", at(1.0)),
            ]
        };
        joined.into_iter().map(line).collect()
    }

    /// So many clients at most: those that hold the most, and of these the ones that were active last.
    fn show_clients(&self, rows_max: usize) -> Vec<Line> {
        let seconds_since = |then: u64| self.now.mono_us.saturating_sub(then) / 1_000_000;
        let line = |(index, session): (ClientId, &crate::session::Session)| -> Line {
            vec![
                ("id", Cell::Same(session.id.get())),
                ("addr", text(&*session.details.peer.address)),
                ("name", text(&*session.details.name)),
                ("user", text(self.clients.user_of(index))),
                ("worker", Cell::Same(self.number.get() as u64)),
                ("db", Cell::Same(u64::from(session.database))),
                ("resp", Cell::Same(session.protocol.version() as u64)),
                ("age_s", Cell::Same(seconds_since(session.details.connected_us))),
                ("idle_s", Cell::Same(seconds_since(session.last_active_us))),
                ("outstanding", Cell::Same(session.down.outstanding() as u64)),
                ("output_bytes", Cell::Same(session.reply_bytes() as u64)),
                ("held_bytes", Cell::Same(session.held_bytes() as u64)),
                ("state", text(words(STATES.iter().filter(|(state, _)| session.flags.has(*state))))),
                ("paused_for", text(words(PauseReasons::ALL.iter().filter(|(reason, _)| session.pause.has(*reason))))),
                ("cmd", text(session.last_row.map_or("", |row| row.full_name()))),
            ]
        };
        let mut chosen: Vec<_> = self.clients.sessions.iter().collect();
        if rows_max < chosen.len() {
            chosen.select_nth_unstable_by_key(rows_max, |(_, session)| {
                (Reverse(session.held_bytes()), Reverse(session.last_active_us))
            });
            chosen.truncate(rows_max);
        }
        chosen.into_iter().map(line).collect()
    }

    fn show_mem(&self) -> Vec<Line> {
        let sessions = self.clients.sessions.iter();
        let (waiting, input) = sessions.fold((0, 0), |(waiting, input), (_, session)| {
            let output = session.reply_bytes();
            (waiting + output, input + session.held_bytes().saturating_sub(output))
        });
        let lanes = || self.lanes.all.iter();
        let figure = |figure: usize| Cell::Same(figure as u64);
        vec![vec![
            ("worker", figure(self.number.get())),
            ("clients", figure(self.clients.sessions.len())),
            ("client_output_bytes", figure(waiting)),
            ("client_input_bytes", figure(input)),
            ("node_queue_bytes", figure(lanes().map(|lane| lane.up.queued_bytes()).sum())),
            ("node_reply_bytes", figure(lanes().map(|lane| lane.up.partial_bytes()).sum())),
            ("lanes", figure(lanes().filter(|lane| !lane.is_retired).count())),
            ("process_bytes", figure(self.shared.ledger.held_bytes())),
            ("process_bytes_max", figure(self.config.budgets.process)),
        ]]
    }

    /// How much waits at some nodes, and for their former addresses: that is still to be done there.
    fn waiting(&self, figure: fn(&Lane) -> usize, is_wanted: impl Fn(NodeId) -> bool) -> Cell {
        let is_there = |lane: &&Lane| !lane.is_retired && self.lanes.namesake_of(lane.node).is_some_and(&is_wanted);
        Cell::Sum(self.lanes.all.iter().filter(is_there).map(figure).sum::<usize>() as u64)
    }

    fn show_node(&self, node: NodeId) -> Line {
        let (told, known) = (&self.config.nodes[node.index()], &self.lanes.nodes[node]);
        let lanes = || self.lanes.all.iter().filter(|lane| lane.node == node && !lane.is_retired);
        let ready = || lanes().filter(|lane| lane.up.is_ready());
        let sum = |of: fn(&Lane) -> usize| self.waiting(of, |waits_at| waits_at == node);
        let (rank, state) = self.state_of(node);
        let (pool, role) = self.role_of(node);
        let kind = self.shared.kinds.of(&told.name);
        vec![
            ("node", text(&*told.name)),
            ("pool", text(pool)),
            ("role", text(role)),
            ("address", text(told.endpoint.to_string())),
            ("state", Cell::Word(rank, state)),
            ("connections", Cell::Sum(ready().filter(|lane| lane.purpose == LaneUse::Shared).count() as u64)),
            ("private_connections", Cell::Sum(ready().filter(|lane| lane.purpose != LaneUse::Shared).count() as u64)),
            ("outstanding", sum(Lane::unanswered)),
            ("queued_bytes", sum(|lane| lane.up.queued_bytes())),
            ("round_trip_us", Cell::Max(ready().map(|lane| lane.up.round_trip_us()).max().unwrap_or(0))),
            ("server", text(kind.words())),
            ("unfit", text(kind.misfit.map_or("", |misfit| misfit.name()))),
            ("failures", Cell::Max(u64::from(known.health.failures()))),
            ("last_failure", text(known.health.last_failure())),
        ]
    }

    /// What a node is to this worker, in a word, the worst having the highest rank.
    fn state_of(&self, node: NodeId) -> (u8, &'static str) {
        let known = &self.lanes.nodes[node];
        if known.is_drained {
            return (5, "drained");
        }
        if known.is_paused || self.is_all_paused {
            return (4, "paused");
        }
        let is_up = self.lanes.all.iter().any(|lane| lane.node == node && lane.up.is_ready());
        match is_up {
            _ if known.health.is_down() => (3, "down"),
            true if known.health.is_suspect() => (2, "suspect"),
            true => (1, "up"),
            false => (0, "idle"),
        }
    }

    /// A node's pool, and what it is in it.
    fn role_of(&self, node: NodeId) -> (String, String) {
        for pool in self.config.routes.pools() {
            if node.is_in(pool) {
                return (pool.name.to_string(), "primary".to_owned());
            }
            let is_replica = |replicas: &[NodePlace]| replicas.iter().any(|replica| NodeId::at(*replica) == node);
            if let Some(primary) = pool.places().find(|place| is_replica(pool.replicas_of(*place))) {
                return (pool.name.to_string(), format!("replica of {}", self.config.nodes[primary.get()].name));
            }
        }
        (String::new(), String::new())
    }

    fn show_routes(&self) -> Vec<Line> {
        let routes = &self.config.routes;
        let line = |(number, route): (usize, &Route)| -> Line {
            vec![
                ("number", Cell::Same(number as u64 + 1)),
                ("route", text(&*route.name)),
                ("when", text(when(&route.when))),
                ("pool", text(&*routes.pools()[route.pool].name)),
                (
                    "strip",
                    text(route.when.prefix.get(..route.rewrite.strip).unwrap_or_default().escape_ascii().to_string()),
                ),
                ("add", text(route.rewrite.add.escape_ascii().to_string())),
                ("reads", text(route.reads.name())),
                ("dead_node", text(routes.dead_node(number as u16).name())),
                ("requests", Cell::Sum(self.route_hits.get(number).copied().unwrap_or(0))),
            ]
        };
        routes.routes().iter().enumerate().map(line).collect()
    }
}

/// The states of a session, in words.
const STATES: [(SessionFlags, &str); 13] = [
    (SessionFlags::UNAUTHENTICATED, "unauthenticated"),
    (SessionFlags::RESTRICTED, "restricted"),
    (SessionFlags::LIMITED, "limited"),
    (SessionFlags::SUBSCRIBED, "subscribed"),
    (SessionFlags::QUEUEING, "queueing"),
    (SessionFlags::PINNED, "pinned"),
    (SessionFlags::DEDICATED, "dedicated"),
    (SessionFlags::LARGE, "large"),
    (SessionFlags::HELD, "held"),
    (SessionFlags::ROUTED, "routed"),
    (SessionFlags::TRACKING, "tracking"),
    (SessionFlags::NO_TOUCH, "no-touch"),
    (SessionFlags::DEBUGS, "debugs"),
];

fn words<'a, T: 'a>(named: impl Iterator<Item = &'a (T, &'static str)>) -> String {
    named.map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
}

/// What a route asks for, as the settings would say it.
fn when(when: &When) -> String {
    let mut asked = Vec::new();
    if !when.users.is_empty() {
        asked.push(format!("users={}", when.users.join(",")));
    }
    if !when.databases.is_empty() {
        let numbers: Vec<String> = when.databases.iter().map(u32::to_string).collect();
        asked.push(format!("databases={}", numbers.join(",")));
    }
    let categories = when.commands.categories.names().map(|name| format!("@{name}"));
    let named = respool_command::all().filter(|row| when.commands.named.contains(&row.command));
    let commands: Vec<String> = categories.chain(named.map(|row| row.full_name().to_owned())).collect();
    if !commands.is_empty() {
        asked.push(format!("commands={}", commands.join(",")));
    }
    if !when.prefix.is_empty() {
        asked.push(format!("prefix={}", when.prefix.escape_ascii()));
    }
    asked.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::counters::Counters;
    use crate::observe::terms::Terms;
    use crate::session::Session;
    use crate::testing::config;
    use crate::workers::shared::ProcessFacts;
    use respool_connection::Peer;
    use std::sync::Arc;

    /// A worker with one node, as `change` leaves it.
    fn rows(show: Show, is_all_paused: bool, change: impl FnOnce(&mut Clients, &mut Lanes)) -> Vec<Line> {
        let config = config();
        let shared = Shared::new(1, 0, ProcessFacts::default(), Arc::default());
        let mut clients = Clients::new(Arc::new(Counters::default()));
        let mut lanes = Lanes::new(&config, 1);
        change(&mut clients, &mut lanes);
        let seen = Samples::new(Terms::default());
        let now = Now { mono_us: 5_000_000, ..Now::default() };
        let shown = Shown {
            config: &config,
            shared: &shared,
            clients: &clients,
            lanes: &lanes,
            seen: &seen,
            route_hits: &[7],
            is_all_paused,
            number: WorkerId::FIRST,
            now,
        };
        shown.table(show, usize::MAX, Vec::new, |_| 0).rows
    }

    fn cell(rows: &[Line], name: &str) -> Cell {
        let line = rows.first().expect("one line");
        line.iter().find(|(column, _)| *column == name).expect("such a column").1.clone()
    }

    #[test]
    fn the_worst_that_is_known_of_a_node_is_shown() {
        let node = NodeId::nth(0);
        let state = |is_all_paused, is_paused, is_drained| {
            let rows = rows(Show::Nodes, is_all_paused, |_, lanes| {
                (lanes.nodes[node].is_paused, lanes.nodes[node].is_drained) = (is_paused, is_drained);
            });
            cell(&rows, "state")
        };
        assert_eq!(state(false, false, false), Cell::Word(0, "idle"));
        assert_eq!(state(true, false, false), Cell::Word(4, "paused"));
        assert_eq!(state(false, true, false), Cell::Word(4, "paused"));
        assert_eq!(state(true, true, true), Cell::Word(5, "drained"));
    }

    #[test]
    fn a_client_is_shown_with_its_age_and_states() {
        let rows = rows(Show::Clients, false, |clients, _| {
            let mut session =
                Session::new(ClientNumber::new(9), Peer { address: "a:1".to_owned(), ..Peer::default() }, 2_000_000, 1);
            session.flags.add(SessionFlags::QUEUEING);
            session.flags.add(SessionFlags::HELD);
            clients.sessions.insert(session);
        });
        assert_eq!(cell(&rows, "id"), Cell::Same(9));
        assert_eq!(cell(&rows, "age_s"), Cell::Same(3));
        assert_eq!(cell(&rows, "addr"), text("a:1"));
        assert_eq!(cell(&rows, "state"), text("queueing held"));
        assert_eq!(cell(&rows, "cmd"), text(""), "it has asked nothing");
    }

    #[test]
    fn requests_are_shown_under_their_route() {
        let rows = rows(Show::Routes, false, |_, _| ());
        assert_eq!(rows.len(), 1);
        assert_eq!(cell(&rows, "requests"), Cell::Sum(7));
    }
}
