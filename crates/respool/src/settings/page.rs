//! Documents made from the table: `docs/settings.md` and a settings file to start from.

use std::fmt::Write as _;

use super::row::{Group, Kind, Reload, Row, Scope};
use super::table::ROWS;

/// `docs/settings.md`.
#[must_use]
pub fn markdown() -> String {
    let mut out = String::from(MARKDOWN_HEAD);
    for (group, rows) in groups() {
        let _ = writeln!(out, "\n## {}", group.title());
        for row in rows {
            markdown_row(&mut out, row);
        }
    }
    out
}

const MARKDOWN_HEAD: &str = "\
# Settings

<!-- Made from the table of settings by `respool settings --format markdown`; a test compares them. -->

Every setting can be said as a flag of `respool serve`, as an environment variable, or in a TOML file (`--config FILE`, or
`RESPOOL_CONFIG`). A flag overrules the environment, the environment the file, the file the default. An unknown key or flag is
an error that names the nearest one; `respool check FILE` says what a file means without starting anything.

Several pools share a process as `[[pool]]` tables: what stands in front of the first one holds for all of them, and each may
have its own value for every setting that is not marked *whole process*, and a `name`.

```toml
workers = 2
connect_timeout = \"500ms\"

[[pool]]
name = \"sessions\"
listen = [\"127.0.0.1:6379\", \"unix:/run/respool/sessions.sock\"]
nodes = [\"10.0.0.1:6379\", \"10.0.0.2:6379\"]

[[pool]]
name = \"cache\"
listen = \":6380\"
nodes = [\"10.0.1.1:6379 name=a weight=2\", \"10.0.1.2:6379 name=b\"]
placement = \"ketama\"
```

Durations are a whole number with a unit (`us`, `ms`, `s`, `m`, `h`, `d`). Sizes are bytes, or a whole number with `kb`, `mb` or
`gb`, powers of 1024 as in redis.conf.

*Live* settings follow the file on SIGHUP or `PROXY RELOAD`, for clients and connections that are there as well unless it says
otherwise; what is marked *restart* is read at the start alone, and a reload that finds it changed says so and leaves it as it is.
Settings of [users](routing-and-users.md#users), pools for routes and routes are live, those of `[[pool]]` tables as each is
marked; such pools themselves come and go with a restart. `respool check` marks the same.
";

fn markdown_row(out: &mut String, row: &Row) {
    let alias = row.alias.map_or_else(String::new, |alias| format!(" or `--{alias}`"));
    let default = if row.default.is_empty() { "unset".to_owned() } else { format!("`{}`", row.default) };
    let scope = if row.scope == Scope::Process { "whole process, " } else { "" };
    let reload = if row.reload == Reload::Live { "live" } else { "restart" };
    let _ = writeln!(out, "\n### `{}` *({scope}{reload})*\n\n{}", row.name, row.doc);
    if !row.more.is_empty() {
        let _ = writeln!(out, "{}", row.more);
    }
    if let Kind::Word(choices) = row.kind {
        out.push('\n');
        for choice in choices() {
            let _ = writeln!(out, "* `{}`: {}", choice.name, choice.doc);
        }
    }
    let _ = writeln!(out, "\nDefault {default}; allowed: {}.", row.bounds());
    let _ = writeln!(out, "`--{}`{alias}, `{}`, CONFIG `{}`.", row.flag(), row.env(), row.config());
}

/// A settings file in which everything is said as it is by default, behind comment signs.
#[must_use]
pub fn toml() -> String {
    let mut out = String::from("# Settings of respool; remove the # in front of what you change.\n");
    for (group, rows) in groups() {
        let _ = writeln!(out, "\n# {}", group.title());
        for row in rows {
            let _ = writeln!(out, "\n# {}", row.doc);
            let _ = writeln!(out, "# Allowed: {}", row.bounds());
            if row.reload == Reload::Restart {
                let _ = writeln!(out, "# Read at the start alone.");
            }
            let _ = writeln!(out, "#{} = {}", row.name, toml_value(row));
        }
    }
    out
}

fn toml_value(row: &Row) -> String {
    let is_number = matches!(row.kind, Kind::Count { .. }) && row.default.bytes().all(|b| b.is_ascii_digit());
    match (row.is_list(), row.default) {
        (true, "") => "[]".to_owned(),
        (true, default) => format!("[{default:?}]"),
        (false, default) if is_number && !default.is_empty() => default.to_owned(),
        (false, default) => format!("{default:?}"),
    }
}

fn groups() -> impl Iterator<Item = (Group, &'static [Row])> {
    ROWS.chunk_by(|a, b| a.group == b.group).map(|rows| (rows[0].group, rows))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::settings::{RawSettings, file, resolve};

    #[test]
    fn the_settings_file_to_start_from_says_the_defaults() {
        let everything: String = toml()
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let mut said = RawSettings::default();
        assert_eq!(file::hear(&mut said, "sample", everything), []);
        assert_eq!(said.top.len(), ROWS.len(), "every setting is in it");
        let nothing = resolve(&RawSettings::default(), &|_| unreachable!("no secret is asked for")).unwrap();
        let spelt = resolve(&said, &|_| unreachable!("no secret is asked for")).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(spelt.changes_to(&nothing), []);
    }

    #[test]
    fn the_page_in_docs_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
        let page = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            page == markdown(),
            "docs/settings.md is stale; write it anew with: cargo run -p respool -- settings --format markdown"
        );
    }
}
