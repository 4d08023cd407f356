//! The settings file: TOML, flat, with any number of `[[pool]]` tables. Collects what is said, with places; an unknown
//! key is a fault that names the nearest one.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostic::{self, Fault};
use super::raw::{FileText, Origin, RawPool, RawRouting, RawSettings, Statement, Text};
use super::routing::RoutingReader;
use super::row::Scope;
use super::suggestion::nearest;
use super::table::{ROWS, Setting};

/// Largest settings file that is read, in bytes: hundreds of pools of hundreds of nodes.
pub const FILE_BYTES_MAX: usize = 4 << 20;

/// Most pools in one process.
pub const POOLS_MAX: usize = 1024;

/// Takes what a settings file says. Faults are returned in the order of their places; what could be read is kept.
pub fn hear(said: &mut RawSettings, name: &str, text: String) -> Vec<Fault> {
    let mut reader = Reader { said, faults: Vec::new() };
    if text.len() > FILE_BYTES_MAX {
        reader.fault(0..0, format!("the file is larger than {FILE_BYTES_MAX} bytes"));
        return reader.faults;
    }
    let (root, errors) = DeTable::parse_recoverable(&text);
    for error in &errors {
        reader.fault(error.span().unwrap_or(0..0), format!("this is not TOML: {}", error.message()));
    }
    if errors.is_empty() {
        reader.top(root.get_ref());
    }
    let mut faults = reader.faults;
    faults.sort_by_key(|fault| match &fault.origin {
        Origin::File { span } => span.start,
        _ => 0,
    });
    said.file = Some(FileText { name: name.to_owned(), text });
    faults
}

struct Reader<'a> {
    said: &'a mut RawSettings,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn fault(&mut self, span: Range<usize>, message: String) {
        diagnostic::add(&mut self.faults, || Fault::new(Origin::File { span }, message));
    }

    fn top(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("pool", DeValue::Array(pools)) => pools.iter().for_each(|pool| self.pool(pool)),
                ("pool", _) => {
                    let fault = Fault::new(at(key), "a pool is written with two brackets: [[pool]]".to_owned());
                    let hint = "[[pool]] may stand several times, once for each pool";
                    diagnostic::add(&mut self.faults, || fault.hint(hint));
                }
                ("pools" | "routes", _) => {
                    let mut routing = std::mem::take(&mut self.said.routing);
                    self.routing(key.get_ref(), value, &mut routing);
                    self.said.routing = routing;
                }
                ("users", _) => super::users::hear(value, &mut self.said.users, &mut self.faults),
                _ => {
                    let statement = self.statement(key, value, &["pool", "pools", "routes", "users"]);
                    self.said.top.extend(statement);
                }
            }
        }
    }

    fn pool(&mut self, value: &Spanned<DeValue<'_>>) {
        let DeValue::Table(table) = value.get_ref() else {
            return self.fault(value.span(), "a pool is a table".to_owned());
        };
        if self.said.pools.len() == POOLS_MAX {
            return self.fault(value.span(), format!("more than {POOLS_MAX} pools"));
        }
        let mut pool = RawPool::default();
        for (key, value) in table {
            if key.get_ref() == "name" {
                pool.name = self.pool_name(value);
                continue;
            }
            if matches!(key.get_ref().as_ref(), "pools" | "routes") {
                self.routing(key.get_ref(), value, &mut pool.routing);
                continue;
            }
            if let Some(statement) = self.statement(key, value, &["name", "pools", "routes"]) {
                if statement.setting.row().scope == Scope::Process {
                    let message = format!("{} holds for the whole process", key.get_ref());
                    let hint = "move it in front of the first [[pool]]";
                    diagnostic::add(&mut self.faults, || Fault::new(at(key), message).hint(hint));
                }
                pool.statements.push(statement);
            }
        }
        self.said.pools.push(pool);
    }

    /// Takes routes, or the pools that they lead to.
    fn routing(&mut self, key: &str, value: &Spanned<DeValue<'_>>, said: &mut RawRouting) {
        let mut faults = std::mem::take(&mut self.faults);
        let mut reader = RoutingReader { said, faults: &mut faults };
        if key == "routes" {
            reader.routes(value);
        } else {
            reader.pools(value, |key, value, faults| {
                std::mem::swap(&mut self.faults, faults);
                let statement = self.statement(key, value, &[]);
                std::mem::swap(&mut self.faults, faults);
                statement
            });
        }
        self.faults = faults;
    }

    fn pool_name(&mut self, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let is_plain = |name: &&str| {
            let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
            (1..=64).contains(&name.len()) && name.bytes().all(is_allowed)
        };
        let name = value.get_ref().as_str().filter(is_plain);
        if name.is_none() {
            self.fault(value.span(), "a pool's name has 1 to 64 letters, digits, dashes or underscores".to_owned());
        }
        name.map(str::to_owned)
    }

    fn statement(
        &mut self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        others: &[&str],
    ) -> Option<Statement> {
        let Some(setting) = Setting::named(key.get_ref()) else {
            diagnostic::add(&mut self.faults, || unknown(key, others));
            return None;
        };
        let row = setting.row();
        let texts = match value.get_ref() {
            DeValue::Array(items) if row.is_list() => self.texts(items)?,
            DeValue::String(text) if row.is_list() => Statement::line(setting, text, at(value)).texts,
            DeValue::Array(_) | DeValue::Table(_) => {
                self.fault(value.span(), format!("{} takes one value: {}", row.name, row.bounds()));
                return None;
            }
            scalar => vec![Text { text: scalar_text(scalar), origin: at(value) }],
        };
        Some(Statement { setting, texts, origin: at(key) })
    }

    fn texts(&mut self, items: &[Spanned<DeValue<'_>>]) -> Option<Vec<Text>> {
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            let DeValue::String(text) = item.get_ref() else {
                self.fault(item.span(), "a list of texts is needed, each in quotes".to_owned());
                return None;
            };
            texts.push(Text { text: text.trim().to_owned(), origin: at(item) });
        }
        Some(texts)
    }
}

fn at<T>(part: &Spanned<T>) -> Origin {
    Origin::File { span: part.span() }
}

fn scalar_text(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(is) => is.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(_) | DeValue::Table(_) => String::new(),
    }
}

fn unknown(key: &Spanned<std::borrow::Cow<'_, str>>, others: &[&str]) -> Fault {
    let said = key.get_ref().as_ref();
    let names = ROWS.iter().map(|row| row.name).chain(others.iter().copied());
    let fault = Fault::new(at(key), format!("there is no setting {said:.64?}"));
    match nearest(&said.replace('-', "_"), names) {
        Some(name) => fault.hint(format!("the nearest is {name}")),
        None => fault.hint("docs/settings.md and `respool settings` list them all"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::diagnostic::Faults;

    fn faults(text: &str) -> String {
        let mut said = RawSettings::default();
        let faults = hear(&mut said, "r.toml", text.to_owned());
        Faults { file: said.file, faults }.to_string()
    }

    #[test]
    fn what_is_said_is_kept_with_its_place() {
        let mut said = RawSettings::default();
        let text =
            "listen = [\":1\", \"/s\"]\nnodes = \"a:1, b:2\"\nbacklog = 7\n[[pool]]\nname = \"x\"\nbacklog = 8\n";
        assert_eq!(hear(&mut said, "r.toml", text.to_owned()), []);
        let said_about = |setting| {
            let statement = said.top.iter().find(|s| s.setting == setting).unwrap();
            statement.texts.iter().map(|t| t.text.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(said_about(Setting::Listen), [":1", "/s"]);
        assert_eq!(said_about(Setting::Nodes), ["a:1", "b:2"]);
        assert_eq!(said_about(Setting::Backlog), ["7"]);
        assert_eq!(said.pools[0].name.as_deref(), Some("x"));
        let Origin::File { span } = &said.pools[0].statements[0].texts[0].origin else { panic!("it was in the file") };
        assert_eq!(&text[span.clone()], "8");
    }

    #[test]
    fn an_unknown_key_names_the_nearest_one() {
        for (key, nearest) in [
            ("conect_timeout", "the nearest is connect_timeout"),
            ("connect-timeout", "the nearest is connect_timeout"),
            ("maxclients", "the nearest is max_clients"),
            ("poool", "the nearest is pool"),
            ("route", "the nearest is routes"),
            ("zzzzzz", "docs/settings.md and `respool settings` list them all"),
        ] {
            let shown = faults(&format!("{key} = 1\n"));
            assert_eq!(
                shown,
                format!(
                    "error: there is no setting {key:?}\n  --> r.toml:1:1\n   |\n 1 | {key} = 1\n   | {}\n   = {nearest}\n",
                    "^".repeat(key.len())
                )
            );
        }
    }

    #[test]
    fn every_fault_is_told_in_the_order_of_the_file() {
        let shown = faults("workers = [1]\nlisten = [6379]\nwokers = 1\n[[pool]]\nlog = \"info\"\nname = \"a b\"\n");
        let places: Vec<&str> = shown.lines().filter(|line| line.starts_with("  -->")).collect();
        assert_eq!(
            places,
            ["  --> r.toml:1:11", "  --> r.toml:2:11", "  --> r.toml:3:1", "  --> r.toml:5:1", "  --> r.toml:6:8"]
        );
    }

    #[test]
    fn what_is_no_toml_is_shown_where_it_stops_being_one() {
        let shown = faults("backlog = 5\nlisten = \n");
        assert!(shown.contains("this is not TOML") && shown.contains("r.toml:2:"), "{shown}");
        assert!(faults("pool = 3").contains("[[pool]]"));
    }
}
