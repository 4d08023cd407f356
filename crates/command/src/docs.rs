//! The page that documents every command, made from the rows.

use std::fmt::Write;

use crate::{Begin, Find, GROUP_ORDER, Keys, Lane, RequestPolicy, ResponsePolicy, Row, all};

const HEAD: &str = "\
# Commands

Made from the command table by `cargo xtask codegen`; change the table, not this page.

What Respool knows of each command before it runs. *Keys* are positions among the arguments, the name being 0 and -1 the last one.
*Nodes* says where a request goes if there are several, and *reply* how their replies become one. The *lane* says whether a request
may share its connection to a node with those of other clients:

| lane | meaning |
|---|---|
| shared | may share |
| pinned | belongs to a transaction: a connection of its own until that ends |
| blocking | may wait, so it gets a connection of its own while it waits |
| push | about subscriptions |
| local | answered by Respool itself |
| dedicated | changes what its connection is: on a connection of its own (MONITOR, SYNC, PSYNC, REPLCONF), else refused with an error |
| script | may share; a script that the node has forgotten is brought back |
| admin | may share, but is refused unless the settings allow what steers servers |

A request that was sent and not answered is sent again only where *again* says yes. A *replica* may answer where that says yes.
";

/// The page `docs/commands.md`.
pub fn docs_markdown() -> String {
    let mut page = HEAD.to_owned();
    for group in GROUP_ORDER {
        let name = group.name();
        page.push_str("\n## ");
        page.extend(name.chars().take(1).flat_map(char::to_uppercase).chain(name.chars().skip(1)));
        page.push_str(
            "\n\n| command | what it does | since | keys | nodes | reply | lane | again | replica |\n\
             |---|---|---|---|---|---|---|---|---|\n",
        );
        for row in all().filter(|row| row.group == *group) {
            line(row, &mut page);
        }
    }
    page
}

fn line(row: &Row, page: &mut String) {
    let mut doc = row.doc.trim_end_matches('.').to_owned();
    if let Some(deprecation) = row.deprecation {
        let _ = write!(doc, " (deprecated since {}: use {})", deprecation.since, deprecation.replaced_by);
    }
    if row.is_internal {
        doc.push_str(" (internal)");
    }
    let (keys, nodes, reply) = (keys(&row.keys), nodes(row), reply(row));
    let (again, replica) = (yes(row.is_retry_safe), yes(row.is_replica_readable));
    let lane = lane(row);
    let _ = if row.is_container() && row.name != "COMMAND" {
        // A container is never executed: only its subcommands have a lane and nodes.
        writeln!(page, "| {} | {doc} | {} | | | | | | |", row.name, row.since)
    } else {
        writeln!(
            page,
            "| {} | {doc} | {} | {keys} | {nodes} | {reply} | {lane} | {again} | {replica} |",
            row.name, row.since
        )
    };
}

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "" }
}

fn keys(keys: &Keys) -> String {
    let mut words: Vec<String> = Vec::new();
    for spec in keys.specs() {
        words.push(match (spec.begin, spec.find) {
            (Begin::Index(at), Find::Range { last: 0, .. }) => at.to_string(),
            (Begin::Index(at), Find::Range { last, step, .. }) => {
                let last = if last < 0 { i64::from(last) } else { i64::from(at) + i64::from(last) };
                let every = if step > 1 { format!(", every {step}") } else { String::new() };
                format!("{at} to {last}{every}")
            }
            (Begin::Index(at), Find::Count { .. }) => format!("counted at {at}"),
            (Begin::Keyword { word, .. }, _) => format!("behind {word}"),
            _ => continue,
        });
    }
    if keys.specs().iter().any(|spec| spec.begin == Begin::Unknown) {
        words.push("by options".to_owned());
    }
    words.join("; ")
}

fn lane(row: &Row) -> String {
    let (lane, depends) = row.widest_lane();
    let name = lane.name();
    if depends { format!("shared or {name}, by options") } else { name.to_owned() }
}

fn nodes(row: &Row) -> &'static str {
    match row.request_policy {
        _ if row.widest_lane().0 == Lane::Local => "",
        RequestPolicy::OneShard if row.has_ways() => "by subcommand",
        RequestPolicy::OneShard if row.keys.is_none() => "default",
        RequestPolicy::OneShard => "that of its keys",
        RequestPolicy::SplitByKey => "split by key",
        RequestPolicy::AllShards => "all shards",
        RequestPolicy::AllNodes => "all nodes",
        RequestPolicy::AnyNode => "any",
        RequestPolicy::Special => "by its own rules",
    }
}

fn reply(row: &Row) -> &'static str {
    match row.response_policy {
        _ if row.widest_lane().0 == Lane::Local => "",
        ResponsePolicy::Single => "",
        ResponsePolicy::KeyOrder => "order of keys",
        ResponsePolicy::Sum => "sum",
        ResponsePolicy::Min => "least",
        ResponsePolicy::Max => "greatest",
        ResponsePolicy::And => "and",
        ResponsePolicy::Or => "or",
        ResponsePolicy::AllSucceeded => "if all succeed",
        ResponsePolicy::OneSucceeded => "if one succeeds",
        ResponsePolicy::Concat => "put together",
        ResponsePolicy::Random => "one of them",
        ResponsePolicy::Newest => "the newest entries",
        ResponsePolicy::Figures => "figures in sum",
        ResponsePolicy::Texts => "one below the other",
        ResponsePolicy::Busiest => "that of a busy node",
        ResponsePolicy::Sections => "in sum",
        ResponsePolicy::Special => "by its own rules",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_line_for_every_row() {
        let page = docs_markdown();
        for row in all() {
            assert!(page.contains(&format!("\n| {} | ", row.name)), "{row:?} is not documented");
        }
        assert!(page.contains("\n| MSET | Set several strings | 1.0.1 | 1 to -1, every 2 | split by key | if all succeed | shared |  |  |\n"));
    }

    #[test]
    fn the_committed_page_is_the_one_that_would_be_made() {
        assert!(
            docs_markdown() == include_str!("../../../docs/commands.md"),
            "docs/commands.md is stale: run `cargo xtask codegen`"
        );
    }
}
