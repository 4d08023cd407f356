//! The parameters of redis.conf and `CONFIG`: which there are, what each does here, and the values that an embedded server has.
//!
//! ```text
//!  redis.conf, flags of redis-server --> words --> Parameters --> Process (settings), engine, users
//!                      CONFIG SET --------------------^   |
//!                      CONFIG GET, CONFIG REWRITE <-------+
//! ```
//!
//! [`table`] is the only list. Nothing here opens a file or changes the process; [`crate::serve`] does what `CONFIG` asks for.

pub(crate) mod listening;
mod live;
mod output_limits;
pub mod page;
pub mod rewrite;
pub mod row;
pub mod table;
mod value;

use std::path::PathBuf;
use std::sync::Arc;

use respool_command::{RenameError, Renames, glob, words};

use crate::settings::Process;
use row::{Effect, HIDDEN, IMMUTABLE, Kind, LISTENING, MULTI, PROCESS, PROTECTED, Parameter, SENSITIVE};

/// The values of all parameters of one server.
#[derive(Debug, Clone)]
pub struct Parameters {
    values: Vec<String>,
    /// What the process showed of each setting when it was last looked at: another value was set by other means since.
    seen: Vec<String>,
    /// Which were said to be something else than by default.
    said: Vec<bool>,
    has_save_points: bool,
    /// The settings say where is listened, not these.
    listens_by_settings: bool,
    /// The file that `CONFIG REWRITE` writes.
    file: Option<PathBuf>,
    /// What `rename-command` has said.
    renames: Arc<Renames>,
}

/// What a `CONFIG SET` changes, before it does.
#[derive(Debug)]
pub struct Changes(Vec<(usize, String)>);

/// The client of a `CONFIG SET`, as far as protected parameters depend on it.
#[derive(Debug, Clone, Copy)]
pub struct Asker {
    /// The client is on this machine.
    pub is_local: bool,
    /// There are pools beside that of the client in this process.
    pub has_other_pools: bool,
}

impl Default for Parameters {
    fn default() -> Self {
        let values: Vec<String> = table::all().map(|row| row.default.to_owned()).collect();
        let count = values.len();
        let (has_save_points, listens_by_settings) = (false, false);
        let (said, seen, renames) = (vec![false; count], values.clone(), Arc::default());
        Self { values, seen, said, has_save_points, listens_by_settings, file: None, renames }
    }
}

/// The parameter whose value is no text: any bytes, of which the hash is kept.
pub(crate) const PASSWORD: &str = "requirepass";

/// Whether the values of what goes by that name are secrets, which no message names.
#[must_use]
pub fn is_secret(name: &[u8]) -> bool {
    find(name).is_some_and(|(_, row)| row.has(SENSITIVE))
}

/// The place and the row of a parameter.
fn find(name: &[u8]) -> Option<(usize, &'static Parameter)> {
    table::all().enumerate().find(|(_, row)| row.is_named(name))
}

impl Parameters {
    /// Parameters of a server whose settings were made without them.
    #[must_use]
    pub fn of(process: &Process, number: usize) -> Self {
        let mut parameters = Self::default();
        parameters.values = parameters.shown(process, number);
        parameters.seen.clone_from(&parameters.values);
        // Nothing is saved, so nothing is said to be.
        parameters.put("save", "");
        parameters
    }

    /// Has the command `from` be called `to`, or by no name.
    ///
    /// # Errors
    /// There is no such command, or another is called that.
    pub fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), RenameError> {
        Arc::make_mut(&mut self.renames).rename(from, to)
    }

    /// Under which names clients call commands.
    #[must_use]
    pub fn renames(&self) -> Arc<Renames> {
        Arc::clone(&self.renames)
    }

    /// Says whether these parameters decide where is listened; otherwise settings do.
    pub fn decide_listeners(&mut self, is_so: bool) {
        self.listens_by_settings = !is_so;
    }

    /// Names the file that `CONFIG REWRITE` writes.
    pub fn set_file(&mut self, file: PathBuf) {
        self.file = Some(file);
    }

    /// The file that `CONFIG REWRITE` writes.
    #[must_use]
    pub fn file(&self) -> Option<&PathBuf> {
        self.file.as_ref()
    }

    /// The value of a parameter, as `CONFIG GET` shows it.
    #[must_use]
    pub fn value(&self, name: &str) -> &str {
        find(name.as_bytes()).map_or("", |(place, _)| &self.values[place])
    }

    /// Whether a directive has said what a parameter is.
    #[must_use]
    pub fn is_said(&self, name: &str) -> bool {
        find(name.as_bytes()).is_some_and(|(place, _)| self.said[place])
    }

    fn put(&mut self, name: &str, value: &str) {
        if let Some((place, _)) = find(name.as_bytes()) {
            value.clone_into(&mut self.values[place]);
        }
    }

    /// Takes a directive of a file or of the command line. `None`: no parameter is called that.
    ///
    /// # Errors
    /// What is wrong with it, in redis-server's words.
    pub fn hear(&mut self, name: &[u8], words: &[Vec<u8>]) -> Option<Result<(), String>> {
        let (place, row) = find(name)?;
        Some(self.hear_row(place, row, words))
    }

    fn hear_row(&mut self, place: usize, row: &Parameter, words: &[Vec<u8>]) -> Result<(), String> {
        let split;
        let mut words = words;
        if !row.has(MULTI) && words.len() != 1 {
            return Err("wrong number of arguments".to_owned());
        }
        if row.has(MULTI)
            && let [word] = words
            && !word.is_empty()
        {
            split = words::split(word).ok_or("Unbalanced quotes in configuration line")?;
            words = &split;
        }
        let mut value = value::read(row, words, &self.values[place])?;
        if matches!(row.kind, Kind::Save) {
            // The first directive takes the place of what holds by default, others add to it.
            if self.has_save_points && !value.is_empty() && !self.values[place].is_empty() {
                value = format!("{} {value}", self.values[place]);
            }
            self.has_save_points = true;
        }
        self.check(row, &value)?;
        self.values[place] = tidied(row, value);
        self.said[place] = self.values[place] != row.default;
        Ok(())
    }

    /// Whether a value can be had here.
    fn check(&self, row: &Parameter, value: &str) -> Result<(), String> {
        match &row.effect {
            Effect::Only(values, why) if !values.contains(&value) => {
                let value = match value {
                    _ if row.has(SENSITIVE) => "this value",
                    "" => "an empty value",
                    named => named,
                };
                Err(format!("{value} cannot be had here: {why}"))
            }
            _ => Ok(()),
        }
    }

    /// Parameters that were said and change nothing, with the reasons.
    pub fn without_effect(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        table::all().zip(&self.said).filter(|(_, is_said)| **is_said).filter_map(|(row, _)| match row.effect {
            Effect::Without(why) => Some((row.name, why)),
            _ => None,
        })
    }

    /// Gives the process the settings among the parameters.
    pub fn take_into(&mut self, process: &mut Process, number: usize) {
        for (row, value) in table::all().zip(&self.values) {
            if let Some(live) = live_of(row) {
                (live.take)(process, number, value);
            }
        }
        self.seen = self.shown(process, number);
    }

    fn shown(&self, process: &Process, number: usize) -> Vec<String> {
        let show = |(row, value): (&Parameter, &String)| match (&row.effect, row.name) {
            (Effect::Setting(live) | Effect::SettingAndEngine(live) | Effect::SettingOfUsers(live), _) => {
                (live.show)(process, number)
            }
            (_, "databases") => process.instances[number].engine.databases.to_string(),
            (_, "tcp-backlog") => process.instances[number].net.backlog.to_string(),
            (_, "port") => {
                let mut listeners = process.instances[number].net.listen.iter().filter(|spec| spec.tls.is_none());
                listeners.find_map(|spec| spec.address.port()).unwrap_or(0).to_string()
            }
            (_, "acl-pubsub-default") if process.users.has_channels_by_default => "allchannels".to_owned(),
            (_, "acl-pubsub-default") => "resetchannels".to_owned(),
            (_, "aclfile") => process.users.file.as_ref().map_or_else(String::new, |file| file.display().to_string()),
            _ => value.clone(),
        };
        table::all().zip(&self.values).map(show).collect()
    }

    /// Takes what the settings have become by other means: a reload.
    fn look_at(&mut self, process: &Process, number: usize) {
        for (place, (row, now)) in table::all().zip(self.shown(process, number)).enumerate() {
            if live_of(row).is_some() && self.seen[place] != now {
                self.values[place].clone_from(&now);
                self.seen[place] = now;
            }
        }
    }

    /// What the engine is told at its start: names and values, in turn.
    pub fn for_engine(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let rows = table::all().zip(&self.values);
        rows.filter(|(row, _)| is_engines(row)).map(|(row, value)| (row.name, value.as_str()))
    }

    /// `CONFIG GET`: names and values, each name once.
    pub fn matching<'p>(
        &mut self,
        patterns: impl Iterator<Item = &'p [u8]>,
        process: &Process,
        number: usize,
    ) -> Vec<(Vec<u8>, String)> {
        self.look_at(process, number);
        let mut found: Vec<(Vec<u8>, String)> = Vec::new();
        let mut add = |name: &[u8], value: &str| {
            if found.iter().all(|(known, _)| !known.eq_ignore_ascii_case(name)) {
                found.push((name.to_vec(), value.to_owned()));
            }
        };
        for pattern in patterns {
            if !pattern.iter().any(|byte| b"[*?".contains(byte)) {
                if let Some((place, _)) = find(pattern) {
                    add(pattern, &self.values[place]);
                }
                continue;
            }
            for (row, value) in table::all().zip(&self.values).filter(|(row, _)| !row.has(HIDDEN)) {
                let names = std::iter::once(row.name).chain(row.alias);
                for name in names.filter(|name| glob::matches_in_any_case(pattern, name.as_bytes())) {
                    add(name.as_bytes(), value);
                }
            }
        }
        found
    }

    /// `CONFIG SET`, before anything is changed: names and values in turn.
    ///
    /// # Errors
    /// What the client is told.
    pub fn prepare(&self, pairs: &[(&[u8], &[u8])], asker: Asker) -> Result<Changes, String> {
        let mut changes: Vec<(usize, String)> = Vec::new();
        let failed = |name: &[u8], why: &str| {
            let name = String::from_utf8_lossy(name);
            format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}")
        };
        let mut rows: Vec<(usize, &Parameter, &str)> = Vec::new();
        for (name, _) in pairs {
            let Some((place, row)) = find(name) else {
                let name = String::from_utf8_lossy(name);
                return Err(format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'"));
            };
            if row.has(IMMUTABLE) {
                return Err(failed(name, "can't set immutable config"));
            }
            if row.has(PROTECTED) && !self.allows_protected(asker) {
                return Err(failed(name, "can't set protected config"));
            }
            if row.has(PROCESS) && asker.has_other_pools {
                return Err(failed(name, "can't set config of the process: several pools share it"));
            }
            // As in Redis, the former name of a parameter is another one: the last word counts.
            let named = row.name_said(name);
            if rows.iter().any(|(.., known)| *known == named) {
                return Err(failed(name, "duplicate parameter"));
            }
            rows.push((place, row, named));
        }
        for ((place, row, named), (_, value)) in rows.into_iter().zip(pairs) {
            if row.name == PASSWORD {
                // It need not be text, and only its hash is kept.
                changes.push((place, String::new()));
                continue;
            }
            let words: Vec<Vec<u8>> = match row.has(MULTI) {
                true => value.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect(),
                false => vec![value.to_vec()],
            };
            let value = value::read(row, &words, &self.values[place]).and_then(|value| {
                self.check(row, &value)?;
                if row.has(LISTENING) && self.listens_by_settings && value != self.values[place] {
                    return Err(needs_restart(row));
                }
                Ok(tidied(row, value))
            });
            changes.push((place, value.map_err(|why| failed(named.as_bytes(), &why))?));
        }
        Ok(Changes(changes))
    }

    fn allows_protected(&self, asker: Asker) -> bool {
        match self.value("enable-protected-configs") {
            "yes" => true,
            "local" => asker.is_local,
            _ => false,
        }
    }

    /// Does what was prepared.
    pub fn commit(&mut self, changes: Changes, process: &Process, number: usize) {
        // Others may have changed by other means since they were looked at.
        self.look_at(process, number);
        for (place, value) in changes.0 {
            self.said[place] = true;
            self.values[place] = value;
        }
        self.seen = self.shown(process, number);
    }

    /// The values of all parameters as they are, for [`rewrite`].
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static Parameter, &str)> {
        table::all().zip(self.values.iter().map(String::as_str))
    }
}

impl Changes {
    /// Gives a process the settings that are changed.
    pub(crate) fn take_into(&self, process: &mut Process, number: usize) {
        for (row, value) in self.rows() {
            if let Some(live) = live_of(row) {
                (live.take)(process, number, value);
            }
        }
    }

    /// The changed parameters of the engine.
    pub(crate) fn for_engine(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.rows().filter(|(row, _)| is_engines(row)).map(|(row, value)| (row.name, value))
    }

    /// How many parameters are changed.
    pub(crate) fn count(&self) -> usize {
        self.rows().count()
    }

    /// What is about users.
    pub(crate) fn about_users(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let is_about_users = |row: &Parameter| matches!(row.effect, Effect::Users | Effect::SettingOfUsers(_));
        self.rows().filter(move |(row, _)| is_about_users(row)).map(|(row, value)| (row.name, value))
    }

    /// The value of a parameter, if it is changed.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.rows().find(|(row, _)| row.name == name).map(|(_, value)| value)
    }

    /// What changes nothing although it is changed, with the reasons.
    pub(crate) fn without_effect(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.rows().filter(|(row, value)| *value != row.default).filter_map(|(row, _)| match row.effect {
            Effect::Without(why) => Some((row.name, why)),
            _ => None,
        })
    }

    /// The parameters that are changed, in the order said.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.rows().map(|(row, _)| row.name)
    }

    fn rows(&self) -> impl Iterator<Item = (&'static Parameter, &str)> {
        self.0.iter().map(|(place, value)| (row_at(*place), value.as_str()))
    }
}

fn row_at(place: usize) -> &'static Parameter {
    table::all().nth(place).expect("places are those of the table")
}

fn live_of(row: &'static Parameter) -> Option<&'static live::Live> {
    match &row.effect {
        Effect::Setting(live) | Effect::SettingAndEngine(live) | Effect::SettingOfUsers(live) => Some(live),
        _ => None,
    }
}

fn is_engines(row: &Parameter) -> bool {
    matches!(row.effect, Effect::Engine | Effect::SettingAndEngine(_))
}

/// The words of redis-server for what it could not do, and why that is so here.
fn needs_restart(row: &Parameter) -> String {
    let what = listening::failure(row.name).trim_end_matches(". Check server logs.").trim_end_matches('.');
    format!("{what}: a setting says it, which a restart changes")
}

/// What becomes of a value that redis-server takes and then brings into bounds.
fn tidied(row: &Parameter, value: String) -> String {
    match (row.name, value.parse::<i64>()) {
        ("hz", Ok(hz)) => hz.clamp(1, 500).to_string(),
        // Another word for it.
        ("oom-score-adj", _) if value == "relative" => "yes".to_owned(),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::settings::{RawSettings, resolve};

    fn process() -> Process {
        resolve(&RawSettings::default(), &|_| unreachable!("no secret is asked for"))
            .expect("defaults are sound")
            .process
    }

    fn heard(line: &str) -> Result<Parameters, String> {
        let mut parameters = Parameters::default();
        for line in line.split('\n') {
            let words = words::split(line.as_bytes()).expect("it is a line");
            parameters.hear(&words[0], &words[1..]).expect("it is a parameter")?;
        }
        Ok(parameters)
    }

    const HERE: Asker = Asker { is_local: true, has_other_pools: false };

    #[test]
    fn every_default_is_a_value_of_its_row() {
        let mut names = BTreeSet::new();
        for row in table::all() {
            assert!(names.insert(row.name) && row.alias.is_none_or(|alias| names.insert(alias)), "{} twice", row.name);
            let words: Vec<Vec<u8>> = match row.has(MULTI) {
                true => row.default.split(' ').map(|word| word.as_bytes().to_vec()).collect(),
                false => vec![row.default.as_bytes().to_vec()],
            };
            if !matches!(row.kind, Kind::ReplicaOf) {
                assert_eq!(value::read(row, &words, "").as_deref(), Ok(row.default), "{}", row.name);
            }
            if let Effect::Only(values, _) = row.effect {
                assert!(values.contains(&row.default), "{}", row.name);
            }
        }
    }

    #[test]
    fn settings_are_shown_as_they_were_taken() {
        let mut process = process();
        for (row, value) in [
            ("maxclients", "77"),
            ("timeout", "5"),
            ("tcp-keepalive", "0"),
            ("slowlog-log-slower-than", "-1"),
            ("slowlog-max-len", "0"),
            ("commandlog-request-larger-than", "-1"),
            ("commandlog-reply-larger-than", "0"),
            ("commandlog-large-reply-max-len", "7"),
            ("maxmemory", "12345678"),
            ("busy-reply-threshold", "77"),
            ("protected-mode", "no"),
            ("loglevel", "verbose"),
            ("shutdown-timeout", "3"),
        ] {
            let (_, row) = find(row.as_bytes()).expect("it is there");
            let live = live_of(row).expect("it is a setting");
            (live.take)(&mut process, 0, value);
            assert_eq!((live.show)(&process, 0), value, "{}", row.name);
        }
    }

    #[test]
    fn the_last_directive_wins_and_save_adds_up() {
        let all =
            heard("maxmemory 1k\nMAXMEMORY 1kb\nsave 10 1\nsave 20 2\nlua-time-limit 7\nbind 127.0.0.1 -::1").unwrap();
        assert_eq!(all.value("maxmemory"), "1024");
        assert_eq!(all.value("save"), "10 1 20 2");
        assert_eq!((all.value("busy-reply-threshold"), all.value("lua-time-limit")), ("7", "7"));
        assert_eq!(all.value("bind"), "127.0.0.1 -::1");
        assert_eq!(heard("save \"900 1 300 10\"").unwrap().value("save"), "900 1 300 10");
        assert_eq!(heard("save 900 1\nsave \"\"").unwrap().value("save"), "");
        assert_eq!(heard("hz 0").unwrap().value("hz"), "1");
    }

    #[test]
    fn what_is_wrong_is_told_in_the_words_of_redis() {
        for (line, why) in [
            ("maxmemory 1kk", "argument must be a memory value"),
            ("maxmemory 99999999999gb", "argument must be a memory value"),
            ("port 65536", "argument must be between 0 and 65535 inclusive"),
            ("port 007", "argument couldn't be parsed into an integer"),
            ("port 1 2", "wrong number of arguments"),
            ("daemonize maybe", "argument must be 'yes' or 'no'"),
            ("loglevel loud", "argument(s) must be one of the following: debug, verbose, notice, warning"),
            ("save 1", "Invalid save parameters"),
            ("save 0 1", "Invalid save parameters"),
            ("notify-keyspace-events Q", "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."),
            ("client-output-buffer-limit normal 1", "Wrong number of arguments in buffer limit configuration."),
            (
                "client-output-buffer-limit master 0 0 0",
                "Invalid client class specified in buffer limit configuration.",
            ),
            ("shutdown-on-sigint", "argument(s) must be one of the following: default, save"),
            ("dbfilename a/b", "dbfilename can't be a path, just a filename"),
            ("appendonly yes", "yes cannot be had here: there is no append-only file"),
            ("replicaof 127.0.0.1 7", "127.0.0.1 7 cannot be had here: there is no replication"),
        ] {
            let error = heard(line).expect_err(line);
            assert!(error.starts_with(why), "{line}: {error}");
        }
    }

    #[test]
    fn what_several_pools_share_is_set_by_none() {
        let (all, before) = (Parameters::default(), process());
        let set = |row: &Parameter, has_other_pools| {
            let pairs = [(row.name.as_bytes(), row.default.as_bytes())];
            all.prepare(&pairs, Asker { is_local: true, has_other_pools })
        };
        for row in table::all().filter(|row| row.has(PROCESS) && !row.has(PROTECTED)) {
            assert!(set(row, false).is_ok(), "{}", row.name);
            let error = set(row, true).expect_err(row.name);
            assert!(error.ends_with("can't set config of the process: several pools share it"), "{error}");
        }
        // All that change more than the instance are marked, but for what is about users: all pools are told of that.
        let rest = |mut process: Process| {
            process.instances.clear();
            format!("{process:?}")
        };
        for row in table::all().filter(|row| !row.has(PROCESS)) {
            let Some(live) = live_of(row).filter(|_| !matches!(row.effect, Effect::SettingOfUsers(_))) else {
                continue;
            };
            for value in ["777", "yes", "no", "debug", "warning", row.default] {
                let mut after = before.clone();
                if value::read(row, &[value.as_bytes().to_vec()], "").is_ok() {
                    (live.take)(&mut after, 0, value);
                }
                assert_eq!(rest(after), rest(before.clone()), "{}", row.name);
            }
        }
    }

    #[test]
    fn no_message_names_the_value_of_a_secret() {
        let all = Parameters::default();
        let mut refused = 0;
        for row in table::all().filter(|row| row.has(SENSITIVE)) {
            for value in ["canary", "canary\0"] {
                let told = [
                    Parameters::default().hear_row(0, row, &[value.as_bytes().to_vec()]),
                    all.prepare(&[(row.name.as_bytes(), value.as_bytes())], HERE).map(drop),
                ];
                for why in told.into_iter().filter_map(Result::err) {
                    assert!(!why.contains("canary"), "{why}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 4, "{refused}");
    }

    #[test]
    fn patterns_find_names_and_former_names() {
        let mut all = Parameters::default();
        let process = process();
        let mut names = |patterns: &[&str]| {
            let patterns: Vec<&[u8]> = patterns.iter().map(|pattern| pattern.as_bytes()).collect();
            let found = all.matching(patterns.into_iter(), &process, 0);
            found.into_iter().map(|(name, _)| String::from_utf8(name).expect("it is text")).collect::<Vec<_>>()
        };
        assert_eq!(names(&["maxmemory"]), ["maxmemory"]);
        assert_eq!(names(&["MaxMemory", "maxmemory"]), ["MaxMemory"]);
        assert_eq!(names(&["lua-time*"]), ["lua-time-limit"]);
        assert_eq!(names(&["hash-max-*-value"]), ["hash-max-listpack-value", "hash-max-ziplist-value"]);
        assert_eq!(names(&["watchdog*"]), Vec::<String>::new());
        assert_eq!(names(&["watchdog-period"]), ["watchdog-period"]);
        assert_eq!(names(&["nothing", "no?hing"]), Vec::<String>::new());
        assert_eq!(names(&["*commandlog*"]).len(), 6);
        assert_eq!(names(&["*"]).len(), 201);
    }

    #[test]
    fn several_are_set_together_or_not_at_all() {
        let all = Parameters::default();
        let prepared = |pairs: &[(&str, &str)]| {
            let pairs: Vec<(&[u8], &[u8])> = pairs.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
            all.prepare(&pairs, HERE).map(|changes| changes.0.len())
        };
        assert_eq!(prepared(&[("maxmemory", "1gb"), ("hz", "7"), ("port", "6379"), ("bind", "* -::*")]), Ok(4));
        assert_eq!(
            prepared(&[("lua-time-limit", "1"), ("busy-reply-threshold", "2")]),
            Ok(2),
            "two names, the last word counts"
        );
        assert_eq!(prepared(&[("maxmemory", ""), ("maxmemory-clients", "kb")]), Ok(2), "no digits are a zero");
        let failed = "ERR CONFIG SET failed (possibly related to argument ";
        for (pairs, error) in [
            (
                &[("maxmemory", "1"), ("nothing", "1")][..],
                "ERR Unknown option or number of arguments for CONFIG SET - 'nothing'",
            ),
            (&[("databases", "1")], &format!("{failed}'databases') - can't set immutable config")),
            (&[("port", "65536")], &format!("{failed}'port') - argument must be between 0 and 65535 inclusive")),
            (&[("dir", "/")], &format!("{failed}'dir') - can't set protected config")),
            (&[("hz", "1"), ("HZ", "2")], &format!("{failed}'HZ') - duplicate parameter")),
            (
                &[("SLAVE-PRIORITY", "x")],
                &format!("{failed}'slave-priority') - argument couldn't be parsed into an integer"),
            ),
            (
                &[("slave-priority", "1"), ("Replica-Priority", "x")],
                &format!("{failed}'replica-priority') - argument couldn't be parsed into an integer"),
            ),
            (
                &[("proto-max-bulk-len", "")],
                &format!("{failed}'proto-max-bulk-len') - argument must be between 1048576 and 9223372036854775807"),
            ),
            (
                &[("hz", "1"), ("timeout", "x")],
                &format!("{failed}'timeout') - argument couldn't be parsed into an integer"),
            ),
            (
                &[("appendonly", "yes")],
                &format!("{failed}'appendonly') - yes cannot be had here: there is no append-only file"),
            ),
        ] {
            let told = prepared(pairs).expect_err("it is refused");
            assert!(told.starts_with(error), "{told}");
        }
    }
}
