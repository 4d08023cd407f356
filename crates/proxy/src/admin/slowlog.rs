//! `PROXY SLOWLOG`: the slow requests of all workers.

use crate::admin::query::{AdminAnswer, AdminQuery, SlowlogOrder};
use crate::admin::table::{Cell, Line, Table};
use crate::env::Env;
use crate::observe::slow_log::Slow;
use crate::session::id::ClientId;
use crate::workers::query::Step;
use respool_command::{Execute, text as texts};
use respool_wire::Args;

/// How many are shown by default, as in Redis.
const SHOWN: usize = 10;

impl<E: Execute> Env<E> {
    pub(super) fn slowlog(&mut self, index: ClientId, args: Args<'_>) -> Step<AdminQuery> {
        let is = |word: &str| args.at(0).eq_ignore_ascii_case(word.as_bytes());
        let order = match args.len() {
            1 if is("LEN") => SlowlogOrder::Len,
            1 if is("RESET") => SlowlogOrder::Reset,
            1 if is("GET") => SlowlogOrder::Get(SHOWN),
            2 if is("GET") => match crate::integer::integer(args.at(1)) {
                Some(-1) => SlowlogOrder::Get(usize::MAX),
                Some(count) if count >= 0 => SlowlogOrder::Get(usize::try_from(count).unwrap_or(usize::MAX)),
                _ => return self.refuse(index, texts::NOT_AN_INTEGER.as_bytes()).into(),
            },
            _ => return self.refuse(index, texts::SYNTAX.as_bytes()).into(),
        };
        if order == SlowlogOrder::Reset && self.refuses_admin() {
            return self.refuse(index, crate::error_text::admin_refused("PROXY SLOWLOG RESET").as_bytes()).into();
        }
        Step::Ask(AdminQuery::Slowlog(order))
    }

    /// This worker's part.
    pub(crate) fn slowlog_of(&mut self, order: SlowlogOrder) -> AdminAnswer {
        let log = &mut self.seen.slow;
        match order {
            SlowlogOrder::Get(count) => {
                let rows: Vec<Line> = log.entries().take(count).map(line).collect();
                AdminAnswer::of_table(Table { left_out: log.len().saturating_sub(rows.len()), rows })
            }
            SlowlogOrder::Len => AdminAnswer::of_count(log.len() as u64),
            SlowlogOrder::Reset => {
                log.clear();
                AdminAnswer::default()
            }
        }
    }
}

fn line(slow: &Slow) -> Line {
    let text = |text: &str| Cell::Text(text.to_owned());
    vec![
        ("unix_us", Cell::Same(slow.unix_us)),
        ("total_us", Cell::Same(slow.total_us)),
        ("queue_us", Cell::Same(slow.queue_us)),
        ("upstream_us", Cell::Same(slow.upstream_us)),
        ("node", text(&slow.node)),
        ("command", text(&slow.command)),
        ("client", text(&slow.client)),
        ("client_name", text(&slow.client_name)),
        ("user", text(&slow.user)),
    ]
}
