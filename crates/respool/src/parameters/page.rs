//! The page docs/redis-conf.md, made from the table.

use std::fmt::Write as _;

use super::row::{Effect, HIDDEN, IMMUTABLE, LISTENING, PROCESS, PROTECTED, Parameter};
use super::table::SECTIONS;

const HEAD: &str = "\
# Parameters of redis.conf

<!-- Printed by `respool settings --format redis-conf`; do not edit. -->

`respool server` reads redis-server's configuration file and flags, and `CONFIG GET` and `CONFIG SET` of an embedded server know the
same parameters; see [the embedded server](embedded-server.md). *Effect*: what a parameter does here. *Set*: whether `CONFIG SET` changes it;
*alone*: not where several pools share the process (`respool serve` with `[[pool]]` tables), as it would hold for all of them;
*server*: in `respool server`, not where settings of `respool serve` say where to listen.

Besides: `include FILE`, with patterns; `user NAME RULE ...`; `rename-command NAME OTHER`. Refused: `loadmodule`, `sentinel`, `syslog-enabled yes`.
";

/// The page.
#[must_use]
pub fn markdown() -> String {
    let mut out = HEAD.to_owned();
    for section in SECTIONS {
        let _ = write!(out, "\n## {}\n\n| parameter | default | set | effect |\n|---|---|---|---|\n", section.title);
        for row in section.parameters {
            let alias = row.alias.map_or_else(String::new, |alias| format!(", `{alias}`"));
            let default = if row.default.is_empty() { String::new() } else { format!("`{}`", row.default) };
            let _ = writeln!(out, "| `{}`{alias} | {default} | {} | {} |", row.name, set(row), effect(row));
        }
    }
    out
}

fn set(row: &Parameter) -> &'static str {
    match () {
        () if row.has(IMMUTABLE) => "no",
        () if row.has(LISTENING) => "server",
        () if row.has(PROTECTED) => "protected",
        () if row.has(PROCESS) => "alone",
        () => "yes",
    }
}

fn effect(row: &Parameter) -> String {
    match &row.effect {
        Effect::Setting(_) if row.has(HIDDEN) => "not of Redis: see [settings](settings.md)".to_owned(),
        Effect::Setting(_)
        | Effect::Start
        | Effect::Engine
        | Effect::SettingAndEngine(_)
        | Effect::Users
        | Effect::SettingOfUsers(_)
        | Effect::Kept => "as in Redis".to_owned(),
        Effect::Without(why) => format!("none: {why}"),
        Effect::Only(values, why) => {
            let shown = |value: &&str| if value.is_empty() { "empty".to_owned() } else { format!("`{value}`") };
            let values: Vec<String> = values.iter().map(shown).collect();
            format!("only {}: {why}", values.join(" or "))
        }
    }
}
