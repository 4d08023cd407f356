//! Peers that ask for more than they may have, or answer as no node should: what it costs, and which client.

#[path = "support/bench.rs"]
mod bench;
#[path = "hostile/blocks.rs"]
mod blocks;
#[path = "support/chance.rs"]
mod chance;
#[path = "hostile/channels.rs"]
mod channels;
#[path = "hostile/claims.rs"]
mod claims;
#[path = "hostile/classes.rs"]
mod classes;
#[path = "hostile/clocks.rs"]
mod clocks;
#[path = "hostile/costs.rs"]
mod costs;
#[path = "hostile/debuggers.rs"]
mod debuggers;
#[path = "hostile/dials.rs"]
mod dials;
#[path = "hostile/doubt.rs"]
mod doubt;
#[path = "hostile/draining.rs"]
mod draining;
#[path = "hostile/endings.rs"]
mod endings;
#[path = "hostile/farewell.rs"]
mod farewell;
#[path = "hostile/flush_delay.rs"]
mod flush_delay;
#[path = "hostile/following.rs"]
mod following;
#[path = "hostile/following_all.rs"]
mod following_all;
#[path = "hostile/gathering.rs"]
mod gathering;
#[path = "hostile/holding.rs"]
mod holding;
#[path = "hostile/idle.rs"]
mod idle;
#[path = "hostile/kinds.rs"]
mod kinds;
#[path = "hostile/late_scripts.rs"]
mod late_scripts;
#[path = "hostile/many.rs"]
mod many;
#[path = "hostile/moving.rs"]
mod moving;
#[path = "hostile/multi.rs"]
mod multi;
#[path = "hostile/names.rs"]
mod names;
#[path = "hostile/order.rs"]
mod order;
#[path = "hostile/orders.rs"]
mod orders;
#[path = "hostile/overdue.rs"]
mod overdue;
#[path = "hostile/parked.rs"]
mod parked;
#[path = "hostile/pauses.rs"]
mod pauses;
#[path = "hostile/pieces.rs"]
mod pieces;
#[path = "hostile/pings.rs"]
mod pings;
#[path = "hostile/pressure.rs"]
mod pressure;
#[path = "hostile/queues.rs"]
mod queues;
#[path = "hostile/quotas.rs"]
mod quotas;
#[path = "hostile/reloads.rs"]
mod reloads;
#[path = "hostile/remains.rs"]
mod remains;
#[path = "hostile/rights.rs"]
mod rights;
#[path = "support/routes.rs"]
mod routes;
#[path = "hostile/scripts.rs"]
mod scripts;
#[path = "hostile/selects.rs"]
mod selects;
#[path = "hostile/settling.rs"]
mod settling;
#[path = "hostile/shortage.rs"]
mod shortage;
#[path = "hostile/silences.rs"]
mod silences;
#[path = "hostile/stalls.rs"]
mod stalls;
#[path = "hostile/stand_ins.rs"]
mod stand_ins;
mod support;
#[path = "hostile/tracking.rs"]
mod tracking;
#[path = "hostile/vitals.rs"]
mod vitals;
#[path = "hostile/waiting.rs"]
mod waiting;
#[path = "hostile/watch_ends.rs"]
mod watch_ends;
#[path = "hostile/watching.rs"]
mod watching;

use respool_proxy::limits;
use support::NoEngine;
