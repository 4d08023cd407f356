//! `PROXY SLOWLOG`: the slow requests of all workers.

use crate::admin::query::{AdminAnswer, AdminQuery, SlowlogOrder};
use crate::admin::table::{Cell, Line, Table};
use crate::env::Env;
use crate::error_text;
use crate::ids::ClientId;
use crate::observe::slow_log::Slow;
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
                _ => return self.refuse(index, texts::NOT_AN_INTEGER).into(),
            },
            _ => return self.refuse(index, texts::SYNTAX).into(),
        };
        if order == SlowlogOrder::Reset && self.refuses_admin() {
            return self.refuse(index, error_text::admin_refused("PROXY SLOWLOG RESET")).into();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::session::Flow;
    use crate::testing::{env_of, env_with_node, request, roomy_config};

    #[test]
    fn what_is_asked_of_the_slow_log() {
        use SlowlogOrder::{Get, Len, Reset};
        for (said, order) in [
            ("GET", Some(Get(SHOWN))),
            ("get 3", Some(Get(3))),
            ("GET -1", Some(Get(usize::MAX))),
            ("GET -2", None),
            ("GET x", None),
            ("LEN", Some(Len)),
            ("RESET", Some(Reset)),
            ("LEN 1", None),
            ("NOSUCH", None),
        ] {
            let mut env = env_with_node();
            let client = env.test_client();
            let step = request(&format!("PROXY SLOWLOG {said}"), |_, args| env.slowlog(client, args.from(2)));
            match (step, order) {
                (Step::Ask(AdminQuery::Slowlog(asked)), Some(order)) => assert_eq!(asked, order, "{said}"),
                (Step::Done(Flow::Next), None) => assert!(env.take_output(client).starts_with("-ERR"), "{said}"),
                (step, _) => panic!("{said}: {step:?}"),
            }
        }
    }

    #[test]
    fn only_those_that_may_steer_empty_the_log() {
        let mut env = env_of(Config { allows_admin: false, ..roomy_config() }, None);
        let client = env.test_client();
        let step = request("PROXY SLOWLOG RESET", |_, args| env.slowlog(client, args.from(2)));
        assert!(matches!(step, Step::Done(Flow::Next)));
        let step = request("PROXY SLOWLOG LEN", |_, args| env.slowlog(client, args.from(2)));
        assert!(matches!(step, Step::Ask(_)));
    }
}
