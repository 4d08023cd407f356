//! `cargo xtask differential`: does Respool with one node behind it answer as the node itself?
//!
//! Every command of the table with generated arguments goes to a redis-server directly and to an equal one behind Respool,
//! in both protocols. Replies have to be the same byte for byte, but for the list of differences that is kept with the
//! generator; `--list` prints that. With `--embedded` the embedded server answers instead, in whose list are also the commands
//! that it does not have. Now and then all keys are compared: their values, encodings and whether they expire. What waits, watches,
//! subscribes or is not answered is compared by scripts of several clients in lock step.

use std::collections::BTreeMap;

use clap::Args;
use respool_testkit::{
    Comparison, DIFFERENCES, Disagreement, EMBEDDED_DIFFERENCES, Likeness, RedisServer, Respool, Subset, Theme,
    compare_all, play_in_lock_step,
};

use crate::Outcome;
use crate::binary::Binary;

/// Requests between two starts of all servers.
const ROUND: usize = 20_000;

/// Compare Respool's replies with those of a redis-server, for every command
#[derive(Args)]
pub(crate) struct Options {
    /// Requests to compare, half of them in each protocol
    #[arg(long, default_value_t = 200_000)]
    commands: usize,
    /// Scripts of several clients in lock step, for each of their themes
    #[arg(long, default_value_t = 100)]
    scripts: u64,
    /// What the requests follow from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Differences to go on after before a round gives up
    #[arg(long, default_value_t = 20)]
    differences: usize,
    /// A node that refuses HELLO, whose replies Respool has to convert for clients that speak RESP3
    #[arg(long)]
    old_node: bool,
    /// No node: the embedded server itself answers, as far as it has the commands
    #[arg(long, conflicts_with = "old_node")]
    embedded: bool,
    #[command(flatten)]
    binary: Binary,
    /// Print the list of differences that are allowed, and why
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(options: &Options) -> Outcome {
    if options.list {
        let of_engine = if options.embedded { EMBEDDED_DIFFERENCES } else { &[] };
        let all = of_engine.iter().chain(DIFFERENCES);
        for one in all.clone() {
            println!("{:?}: {}\n    {}", one.likeness, one.commands, one.reason);
        }
        return Ok(format!("{} entries", all.count()));
    }
    let binary = options.binary.locate("dev")?;
    let arguments = options.binary.arguments(&["--workers", "1", "--admin-commands", "allow"]);
    let mut compared: BTreeMap<Likeness, usize> = BTreeMap::new();
    let mut found: BTreeMap<String, Vec<Disagreement>> = BTreeMap::new();
    let (rounds, mut keys) = (options.commands.div_ceil(ROUND).max(2), 0);
    for round in 0..rounds {
        let direct = RedisServer::start()?;
        let behind = if options.old_node { RedisServer::start_without_hello()? } else { RedisServer::start()? };
        let nodes = if options.embedded { Vec::new() } else { vec![behind.tcp()] };
        let respool = Respool::start(&binary, &nodes, &arguments)?;
        let comparison = Comparison {
            subset: if options.embedded { Subset::EmbeddedTable } else { Subset::Table },
            protocol: if round % 2 == 0 { 2 } else { 3 },
            requests: options.commands / rounds,
            seed: options.seed.wrapping_add(round as u64),
        };
        let compared_now = compare_all(&direct.tcp(), &respool.tcp(), &comparison, options.differences)?;
        keys += compared_now.keys;
        for (likeness, count) in compared_now.replies {
            *compared.entry(likeness).or_default() += count;
        }
        let is_told = |one: &Disagreement| !(options.old_node && one.is_lost_by_resp2 || one.is_stale_error);
        for one in compared_now.found.into_iter().filter(is_told) {
            found.entry(one.command.clone()).or_default().push(one);
        }
    }
    let mut in_lock_step = 0;
    if !options.old_node {
        let (direct, behind) = (RedisServer::start()?, RedisServer::start()?);
        let node = (!options.embedded).then_some(&behind);
        let nodes: Vec<_> = node.iter().map(|node| node.tcp()).collect();
        let respool = Respool::start(&binary, &nodes, &arguments)?;
        for theme in Theme::ALL {
            for script in 0..options.scripts {
                let seed = options.seed.wrapping_mul(1_000_003).wrapping_add(script);
                in_lock_step += play_in_lock_step(&direct, &respool.tcp(), node, theme, seed)?;
            }
        }
    }
    for (command, disagreements) in &found {
        println!("\n{command}: {} times. {}", disagreements.len(), disagreements[0].told);
    }
    let total: usize = compared.values().sum();
    let counts: Vec<String> = compared.iter().map(|(likeness, count)| format!("{count} {likeness:?}")).collect();
    let summary = format!(
        "{total} replies compared: {}; {keys} values of keys; {in_lock_step} of clients in lock step",
        counts.join(", ")
    );
    match found.len() {
        0 => Ok(summary),
        commands => Err(format!("{summary}; {commands} kinds of requests differ").into()),
    }
}
