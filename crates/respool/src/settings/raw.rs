//! The raw settings: texts and where they stand, before they are checked.

use std::ops::Range;

use super::row::Row;
use super::table::Setting;

/// The environment variable that names the settings file.
pub const CONFIG_ENV: &str = "RESPOOL_CONFIG";

/// Where a text stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The table's default.
    Default,
    /// A part of the settings file, in bytes.
    File {
        /// From the first byte of the text to the one behind it.
        span: Range<usize>,
    },
    /// An environment variable.
    Env {
        /// Its name.
        name: String,
    },
    /// A flag; also a flag or key of another program whose place Respool takes.
    Flag {
        /// As it was written, with its value unless that is a secret.
        said: String,
    },
}

impl Origin {
    /// Where to look, for people. A place in a file is shown as an excerpt instead.
    #[must_use]
    pub fn describe(&self) -> Option<String> {
        match self {
            Self::Default | Self::File { .. } => None,
            Self::Env { name } => Some(format!("environment variable {name}")),
            Self::Flag { said } => Some(said.clone()),
        }
    }
}

/// One text, as said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// What was said.
    pub text: String,
    /// Where.
    pub origin: Origin,
}

/// What one source said about one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// About which setting.
    pub setting: Setting,
    /// One text, or any number for a list.
    pub texts: Vec<Text>,
    /// Where the statement as a whole stands.
    pub origin: Origin,
}

impl Statement {
    /// A statement of a single line: a list's texts are separated by commas.
    #[must_use]
    pub fn line(setting: Setting, said: &str, origin: Origin) -> Self {
        let text = |text: &str| Text { text: text.to_owned(), origin: origin.clone() };
        let texts = match setting.row().is_list() {
            true => said.split(',').map(str::trim).filter(|part| !part.is_empty()).map(text).collect(),
            false => vec![text(said)],
        };
        Self { setting, texts, origin }
    }
}

/// What was said about one pool.
#[derive(Debug, Clone, Default)]
pub struct RawPool {
    /// Its name, if it was given one.
    pub name: Option<String>,
    /// What was said about it alone.
    pub statements: Vec<Statement>,
    /// Its routes and the pools that they lead to.
    pub routing: RawRouting,
}

/// What was said about routes in one place: outside every pool, or in one.
#[derive(Debug, Clone, Default)]
pub struct RawRouting {
    /// The pools that routes lead to.
    pub pools: Vec<RawNamedPool>,
    /// The routes, in order.
    pub routes: Vec<RawRoute>,
}

impl RawRouting {
    pub(super) fn is_empty(&self) -> bool {
        self.pools.is_empty() && self.routes.is_empty()
    }
}

/// What was said about a pool that routes lead to.
#[derive(Debug, Clone)]
pub struct RawNamedPool {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub origin: Origin,
    /// Settings of its own.
    pub statements: Vec<Statement>,
}

/// What was said about a route.
#[derive(Debug, Clone)]
pub struct RawRoute {
    /// Where it stands.
    pub origin: Origin,
    /// What its keys say; one text, or any number.
    pub keys: Vec<(RouteKey, Vec<Text>)>,
}

macro_rules! route_keys {
    ($($variant:ident = $word:literal,)+) => {
        /// A key of a route.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum RouteKey {
            $(#[doc = concat!("`", $word, "`")] $variant,)+
        }

        impl RouteKey {
            pub(super) const ALL: &'static [(Self, &'static str)] = &[$((Self::$variant, $word),)+];
        }
    };
}

route_keys! {
    Name = "name", Users = "users", Prefix = "prefix", Databases = "databases", Commands = "commands", To = "to",
    Strip = "strip", Add = "add", Reads = "reads", DeadNode = "dead_node", PoolMode = "pool_mode",
}

macro_rules! user_keys {
    ($($variant:ident = $word:literal,)+) => {
        /// A key of a user's table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum UserKey {
            $(#[doc = concat!("`", $word, "`")] $variant,)+
        }

        impl UserKey {
            pub(super) const ALL: &'static [(Self, &'static str)] = &[$((Self::$variant, $word),)+];
        }
    };
}

user_keys! {
    Rules = "rules", Password = "password", PasswordFile = "password_file", Connections = "connections",
    RequestsPerSecond = "requests_per_second", BytesPerSecond = "bytes_per_second", NodeUsername = "node_username",
    NodePassword = "node_password", NodePasswordFile = "node_password_file", PoolMode = "pool_mode",
    PrivateConnections = "private_connections",
}

/// What was said about one user.
#[derive(Debug, Clone)]
pub struct RawUser {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub origin: Origin,
    /// What its keys say.
    pub keys: Vec<(UserKey, Vec<Text>)>,
}

/// A file's name and contents, for excerpts.
#[derive(Debug, Clone)]
pub struct FileText {
    /// As the user named it.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// Everything that was said.
#[derive(Debug, Clone, Default)]
pub struct RawSettings {
    /// The file it was said in, if there was one.
    pub file: Option<FileText>,
    /// What the command line said: overrules everything.
    pub flags: Vec<Statement>,
    /// What the environment said: overrules the file.
    pub env: Vec<Statement>,
    /// What the file said outside every pool.
    pub top: Vec<Statement>,
    /// Routes that the file said outside every pool: they hold for each that has none of its own.
    pub routing: RawRouting,
    /// Users that the file said.
    pub users: Vec<RawUser>,
    /// What was said about each pool; none means one pool that has no name.
    pub pools: Vec<RawPool>,
}

impl RawSettings {
    /// Takes what the environment says. Variables of other programs do not matter; a name that is nearly one of ours is
    /// probably a slip, and comes back as a warning.
    pub fn hear_env(&mut self, vars: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
        let names: Vec<(String, Setting)> =
            Setting::ALL.iter().map(|setting| (setting.row().env(), *setting)).collect();
        let mut warnings = Vec::new();
        for (name, value) in vars {
            if let Some((_, setting)) = names.iter().find(|(ours, _)| *ours == name) {
                self.env.push(Statement::line(*setting, &value, Origin::Env { name }));
            } else if name.starts_with("RESPOOL_") && name != CONFIG_ENV {
                let near = names.iter().find(|(ours, _)| strsim::damerau_levenshtein(ours, &name) <= 2);
                warnings
                    .extend(near.map(|(ours, _)| format!("environment variable {name} is no setting; is it {ours}?")));
            }
        }
        warnings
    }

    /// Takes a flag with its values, in the order given.
    pub fn hear_flag(&mut self, setting: Setting, values: &[String]) {
        let row = setting.row();
        let parts = values.iter().map(|value| Statement::line(setting, value, flag_origin(row, value)));
        let texts = parts.flat_map(|statement| statement.texts).collect();
        let origin = flag_origin(row, values.first().map_or("", String::as_str));
        self.flags.push(Statement { setting, texts, origin });
    }

    /// What counts for a setting in a pool: flag, environment, pool, file, in this order.
    #[must_use]
    pub fn about<'a>(&'a self, setting: Setting, pool: Option<&'a RawPool>) -> Option<&'a Statement> {
        let pool = pool.map_or(&[][..], |pool| &pool.statements[..]);
        let sources = [&self.flags[..], &self.env[..], pool, &self.top[..]];
        sources.into_iter().find_map(|source| source.iter().rfind(|statement| statement.setting == setting))
    }
}

fn flag_origin(row: &Row, value: &str) -> Origin {
    let value = if row.is_secret() { "(hidden)" } else { value };
    Origin::Flag { said: format!("--{} {}", row.flag(), shell_quoted(value)) }
}

fn shell_quoted(value: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:=,[]@%+".contains(&b);
    if !value.is_empty() && value.bytes().all(is_plain) { value.to_owned() } else { format!("{value:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(setting: Setting, said: &RawSettings) -> Vec<&str> {
        said.about(setting, said.pools.first()).map_or(vec![], |s| s.texts.iter().map(|t| t.text.as_str()).collect())
    }

    #[test]
    fn flags_overrule_the_environment_and_that_the_file() {
        let line = |text| Statement::line(Setting::Backlog, text, Origin::Default);
        let mut said = RawSettings { top: vec![line("1")], ..RawSettings::default() };
        assert_eq!(heard(Setting::Backlog, &said), ["1"]);
        said.pools = vec![RawPool { statements: vec![line("2")], ..RawPool::default() }];
        assert_eq!(heard(Setting::Backlog, &said), ["2"]);
        said.hear_env([("RESPOOL_BACKLOG".to_owned(), "3".to_owned())]);
        assert_eq!(heard(Setting::Backlog, &said), ["3"]);
        said.hear_flag(Setting::Backlog, &["4".to_owned()]);
        assert_eq!(heard(Setting::Backlog, &said), ["4"]);
        assert_eq!(heard(Setting::Nodes, &said), Vec::<&str>::new());
    }

    #[test]
    fn lists_are_said_with_commas_or_one_by_one() {
        let mut said = RawSettings::default();
        said.hear_flag(Setting::Nodes, &["a:1, b:2 name=x".to_owned(), "c:3".to_owned()]);
        assert_eq!(heard(Setting::Nodes, &said), ["a:1", "b:2 name=x", "c:3"]);
    }

    #[test]
    fn slips_in_the_environment_are_told_others_variables_are_not() {
        let vars =
            ["RESPOOL_CONECT_TIMEOUT", "RESPOOL_SERVICE_HOST", "RESPOOL_PORT_6379_TCP", "HOME", "RESPOOL_CONFIG"];
        let warnings = RawSettings::default().hear_env(vars.map(|name| (name.to_owned(), "x".to_owned())));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("RESPOOL_CONECT_TIMEOUT") && warnings[0].contains("RESPOOL_CONNECT_TIMEOUT"));
    }

    #[test]
    fn a_secret_flag_is_not_repeated() {
        let mut said = RawSettings::default();
        said.hear_flag(Setting::NodePassword, &["hunter2".to_owned()]);
        assert_eq!(said.flags[0].origin, Origin::Flag { said: "--node-password \"(hidden)\"".to_owned() });
    }
}
