//! `CONFIG` of an embedded server: its parameters, its settings, its file.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use respool_proxy::Config;
use respool_proxy::hooks::{ConfigAnswer, ConfigVerb};
use respool_wire::{Args, ArgsBuf};
use zeroize::Zeroizing;

use super::config;
use super::files::Files;
use super::oom_score::OomScore;
use super::server_listeners::{Opened, ServerListeners};
use super::whole_file::replace;
use crate::control::Control;
use crate::parameters::{Asker, Changes, PASSWORD, Parameters, rewrite};
use crate::settings::Process;

/// The largest file that is written anew.
const FILE_BYTES_MAX: u64 = 16 << 20;

const OOM_SCORE: &str = "oom-score-adj";
const OOM_SCORE_VALUES: &str = "oom-score-adj-values";

/// The parameters of one embedded server, and what they are about.
pub(super) struct ServerConfig {
    control: Arc<Control>,
    /// The place of the server among the instances.
    number: usize,
    files: Arc<Files>,
    /// What its parameters say to listen on; `None`: the settings do.
    listeners: Option<Arc<ServerListeners>>,
    state: Mutex<State>,
}

struct State {
    parameters: Parameters,
    prepared: Option<Changes>,
    /// The password among what is prepared.
    password: Option<Zeroizing<Vec<u8>>>,
    oom_score: OomScore,
}

impl State {
    fn adjust_oom_score(&mut self, changes: &Changes) -> Result<(), String> {
        let Self { parameters, oom_score, .. } = self;
        let changed = [OOM_SCORE, OOM_SCORE_VALUES].map(|name| changes.value(name));
        let Some(name) = changed.iter().position(Option::is_some).map(|place| [OOM_SCORE, OOM_SCORE_VALUES][place])
        else {
            return Ok(());
        };
        let [mode, values] = changed;
        let mode = mode.unwrap_or_else(|| parameters.value(OOM_SCORE));
        let values = values.unwrap_or_else(|| parameters.value(OOM_SCORE_VALUES));
        oom_score.apply(mode, values).map_err(|error| {
            tracing::warn!("{OOM_SCORE} cannot be applied: {error}");
            failed(name, "Failed to apply new oom_score_adj configuration, check server logs.")
        })
    }

    /// What comes behind the adjustment has failed, for this reason: the score becomes what it was.
    fn restore_oom_score(&mut self, changes: &Changes, why: String) -> String {
        let Self { parameters, oom_score, .. } = self;
        let is_adjusted = [OOM_SCORE, OOM_SCORE_VALUES].iter().any(|name| changes.value(name).is_some());
        if is_adjusted
            && let Err(error) = oom_score.apply(parameters.value(OOM_SCORE), parameters.value(OOM_SCORE_VALUES))
        {
            tracing::warn!("{OOM_SCORE} cannot be restored: {error}");
        }
        why
    }
}

/// Names and values of what is about users.
type AboutUsers = Vec<(&'static str, Vec<u8>)>;

impl State {
    /// Whether some of what is prepared is about users, and some is not.
    fn prepares_users_and_more(&self) -> bool {
        let users = |changes: &Changes| changes.about_users().count();
        self.prepared.as_ref().is_some_and(|changes| users(changes) > 0 && changes.count() > users(changes))
    }
}

impl ServerConfig {
    pub(super) fn new(
        mut parameters: Parameters,
        control: Arc<Control>,
        number: usize,
        files: Arc<Files>,
        listeners: Option<Arc<ServerListeners>>,
    ) -> Arc<Self> {
        parameters.decide_listeners(listeners.is_some());
        let mut oom_score = OomScore::default();
        if let Err(error) = oom_score.apply(parameters.value(OOM_SCORE), parameters.value(OOM_SCORE_VALUES)) {
            tracing::warn!("{OOM_SCORE} cannot be applied: {error}");
        }
        let state = Mutex::new(State { parameters, prepared: None, password: None, oom_score });
        Arc::new(Self { control, number, files, listeners, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an engine is told before it is asked anything: a `CONFIG SET`.
    pub(super) fn for_engine(&self) -> ArgsBuf {
        let mut args = ArgsBuf::new();
        args.push(b"CONFIG").push(b"SET");
        self.push_parameters(&self.state(), &self.control.settings(), &mut args);
        args
    }

    /// What one of several engines takes over. Asked while no other value is being set, so that what holds in the server and what
    /// its engines have cannot differ for good.
    fn of_engine(&self) -> ConfigAnswer {
        let state = self.state();
        let process = self.control.settings();
        let mut parameters = ArgsBuf::new();
        self.push_parameters(&state, &process, &mut parameters);
        let config = Arc::new(config::embedded_node(&process, &process.instances[self.number]));
        ConfigAnswer::OfEngine { config, parameters }
    }

    fn push_parameters(&self, state: &State, process: &Process, to: &mut ArgsBuf) {
        for parameter in state.parameters.for_engine() {
            self.push(process, to, parameter);
        }
    }

    /// Adds a parameter and what an engine is told of it: its part, if there are several and it is shared out.
    fn push(&self, process: &Process, to: &mut ArgsBuf, (name, value): (&str, &str)) {
        let engines = &process.instances[self.number].engine;
        let share = value.parse().ok().filter(|_| name == "maxmemory").map(|bytes| engines.share_of(bytes).to_string());
        to.push(name.as_bytes()).push(share.as_deref().unwrap_or(value).as_bytes());
    }

    pub(super) fn answer(&self, verb: ConfigVerb<'_>) -> Result<ConfigAnswer, String> {
        match verb {
            ConfigVerb::Get(patterns) => Ok(ConfigAnswer::Shown(self.show(patterns))),
            ConfigVerb::Prepare { pairs, is_local } => {
                let (for_engine, before) = self.prepare(&mut self.state(), pairs, is_local)?;
                Ok(ConfigAnswer::Prepared { for_engine, before })
            }
            ConfigVerb::Commit => {
                let (config, about_users) = self.commit(&mut self.state())?;
                Ok(ConfigAnswer::Committed { config, about_users })
            }
            ConfigVerb::Set { pairs, is_local } => {
                let mut state = self.state();
                self.prepare(&mut state, pairs, is_local)?;
                if state.prepares_users_and_more() {
                    return Err(USERS_AND_MORE.to_owned());
                }
                let (config, about_users) = self.commit(&mut state)?;
                Ok(ConfigAnswer::Set { config, about_users })
            }
            ConfigVerb::OfEngine => Ok(self.of_engine()),
            ConfigVerb::Rewrite { users, is_forced } => self.rewrite(users, is_forced),
        }
    }

    fn show(&self, patterns: Args<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
        let found = self.state().parameters.matching(patterns.iter(), &self.control.settings(), self.number);
        let here = |name: &[u8], value: String| match name.eq_ignore_ascii_case(b"dir") {
            true => std::env::current_dir().unwrap_or_default().into_os_string().into_vec(),
            false => value.into_bytes(),
        };
        found.into_iter().map(|(name, value)| (here(&name, value), name)).map(|(value, name)| (name, value)).collect()
    }

    /// Checks all changes. Result: the parameters of the engine, with their new values and with those before. Errors: the text of the reply.
    fn prepare(&self, state: &mut State, pairs: Args<'_>, is_local: bool) -> Result<(ArgsBuf, ArgsBuf), String> {
        state.prepared = None;
        let said: Vec<(&[u8], &[u8])> =
            (0..pairs.len()).step_by(2).map(|place| (pairs.at(place), pairs.at(place + 1))).collect();
        let asker = Asker { is_local, has_other_pools: self.control.settings().instances.len() > 1 };
        let changes = state.parameters.prepare(&said, asker)?;
        let candidate = self.with(&changes);
        let clients_max = self.files.clients_max(&candidate);
        if changes.value("maxclients").is_some() && clients_max < candidate.clients_max {
            let why = format!(
                "The operating system is not able to handle the specified number of clients, try with {clients_max}"
            );
            return Err(failed("maxclients", &why));
        }
        self.config(&candidate)?;
        if let Some(directory) = changes.value("dir") {
            // It is entered with the rest, which the engine may still refuse. What is not to be entered has no such path.
            fs::metadata(Path::new(directory).join(".")).map_err(|error| failed("dir", &reason(&error)))?;
        }
        let (mut for_engine, mut before) = (ArgsBuf::new(), ArgsBuf::new());
        for (name, value) in changes.for_engine() {
            self.push(&candidate, &mut for_engine, (name, value));
            before.push(name.as_bytes()).push(state.parameters.value(name).as_bytes());
        }
        let is_password = |(name, _): &&(&[u8], &[u8])| name.eq_ignore_ascii_case(PASSWORD.as_bytes());
        state.password = said.iter().find(is_password).map(|(_, password)| Zeroizing::new(password.to_vec()));
        state.prepared = Some(changes);
        Ok((for_engine, before))
    }

    /// Opens the listeners that the changed parameters add, and puts them into the settings. `None`: no parameter of a listener changes.
    fn open_listeners(
        &self,
        state: &State,
        changes: &Changes,
        process: &mut Process,
    ) -> Result<Option<Opened<'_>>, String> {
        let Some(listeners) = &self.listeners else { return Ok(None) };
        let opened = listeners.open(&state.parameters, changes, process, self.number);
        opened.map_err(|(name, why)| failed(name, why))
    }

    /// The settings with what is changed.
    fn with(&self, changes: &Changes) -> Process {
        let mut process = Process::clone(&self.control.settings());
        changes.take_into(&mut process, self.number);
        process
    }

    fn config(&self, process: &Process) -> Result<Arc<Config>, String> {
        let clients_max = self.files.clients_max(process);
        let config = config::proxy(process, &process.instances[self.number], clients_max);
        config.map(Arc::new).map_err(|error| format!("ERR {error}"))
    }

    /// What was prepared holds. Result: what the worker does from now on, and what is about users.
    fn commit(&self, state: &mut State) -> Result<(Arc<Config>, AboutUsers), String> {
        let changes = state.prepared.take().ok_or("ERR nothing was prepared")?;
        state.adjust_oom_score(&changes)?;
        let mut candidate = self.with(&changes);
        let opened = self.open_listeners(state, &changes, &mut candidate);
        let opened = opened.map_err(|why| state.restore_oom_score(&changes, why))?;
        if let Some(directory) = changes.value("dir") {
            let entered = std::env::set_current_dir(directory);
            entered.map_err(|error| state.restore_oom_score(&changes, failed("dir", &reason(&error))))?;
        }
        let listens = opened.map(|opened| {
            opened.settle();
            &candidate.instances[self.number]
        });
        let process = self.control.amend(self.number, |process| {
            changes.take_into(process, self.number);
            if let Some(listens) = listens {
                let instance = &mut process.instances[self.number];
                instance.net.listen.clone_from(&listens.net.listen);
                instance.tls.listen.clone_from(&listens.tls.listen);
            }
        });
        let config = self.config(&process)?;
        let password = state.password.take().unwrap_or_default();
        let value_of = |name: &str, value: &str| match name {
            PASSWORD => password.to_vec(),
            _ => value.as_bytes().to_vec(),
        };
        let about_users = changes.about_users().map(|(name, value)| (name, value_of(name, value))).collect();
        for (name, why) in changes.without_effect() {
            tracing::warn!("CONFIG SET {name} is without effect: {why}");
        }
        state.parameters.commit(changes, &process, self.number);
        Ok((config, about_users))
    }

    fn rewrite(&self, users: Option<&[u8]>, is_forced: bool) -> Result<ConfigAnswer, String> {
        let state = self.state();
        let file = state.parameters.file().ok_or("ERR The server is running without a config file")?;
        let written = read(file).and_then(|old| {
            let directory = std::env::current_dir()?;
            // A server reads its file as text, and would not start with this line.
            let directory = directory.to_str().ok_or_else(|| io::Error::other(DIRECTORY_IS_NO_TEXT))?;
            let new = rewrite::rewritten(&state.parameters, &old, users, directory, is_forced);
            replace(file, &new)
        });
        match written {
            Ok(()) => tracing::warn!("CONFIG REWRITE executed with success."),
            Err(error) => {
                tracing::warn!("CONFIG REWRITE failed: {error}");
                return Err(format!("ERR Rewriting config file: {}", reason(&error)));
            }
        }
        Ok(ConfigAnswer::Written)
    }
}

/// Why one request cannot set both: the engines and the workers would have to be heard before it is answered.
const USERS_AND_MORE: &str = "ERR CONFIG SET of parameters of users and of others in one request is not supported with engine_threads: \
                              set them one after the other";

/// Why no `dir` can be written.
const DIRECTORY_IS_NO_TEXT: &str = "the name of the working directory is not text in UTF-8";

fn failed(name: &str, why: &str) -> String {
    format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}")
}

/// The system's words, without the number that the standard library puts behind them.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words).to_owned()
}

/// A file that is not there is empty.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    match fs::metadata(path) {
        Ok(about) if about.len() > FILE_BYTES_MAX => Err(io::Error::from(io::ErrorKind::FileTooLarge)),
        Ok(_) => fs::read(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
