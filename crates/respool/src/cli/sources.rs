//! Where settings come from: the command line in Respool's words or another program's, the environment, files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::ArgMatches;

use crate::frontend::{Program, Translation, rmux};
use crate::settings::config::Resolved;
use crate::settings::{CONFIG_ENV, Fault, Faults, Origin, RawSettings, Setting, file, resolve};

/// Where settings come from; can be asked again for a reload.
pub(super) struct Sources {
    pub(super) voice: Voice,
    pub(super) env: Vec<(String, String)>,
}

/// Whose words the command line is in.
pub(super) enum Voice {
    /// Respool's own.
    Own { config: Option<PathBuf>, flags: Vec<(Setting, Vec<String>)> },
    /// Another program's, whose place Respool takes.
    Foreign { program: Program, args: Vec<String> },
}

impl Sources {
    /// What `serve` was told.
    pub(super) fn of(matches: &ArgMatches, env: Vec<(String, String)>) -> Self {
        let values = |setting: &Setting| {
            let said = matches.get_many::<String>(setting.row().name)?;
            Some((*setting, said.cloned().collect()))
        };
        let from_env = || env.iter().find(|(name, _)| name == CONFIG_ENV).map(|(_, path)| PathBuf::from(path));
        let config = matches.get_one::<PathBuf>("config").cloned().or_else(from_env);
        Self { voice: Voice::Own { config, flags: Setting::ALL.iter().filter_map(values).collect() }, env }
    }

    /// Reads everything anew.
    pub(super) fn load(&self) -> Result<Resolved, Faults> {
        let Translation { mut said, mut notes, mut faults, .. } = match &self.voice {
            Voice::Own { config, flags } => {
                let mut said = RawSettings::default();
                let faults = config.as_ref().map_or_else(Vec::new, |path| hear_file(&mut said, path));
                flags.iter().for_each(|(setting, values)| said.hear_flag(*setting, values));
                Translation { said, faults, ..Translation::default() }
            }
            Voice::Foreign { program, args } => program.translate(args, &read),
        };
        notes.extend(said.hear_env(self.env.iter().cloned()));
        let mut understood = understand(&said, &mut faults)?;
        understood.warnings.extend(notes);
        Ok(understood)
    }
}

/// A file's text, if it is not absurdly long.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let bytes_max = u64::try_from(file::FILE_BYTES_MAX).unwrap_or(u64::MAX);
    File::open(path)?.take(bytes_max + 1).read_to_string(&mut text)?;
    match text.len() > file::FILE_BYTES_MAX {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {bytes_max} bytes"))),
        false => Ok(text),
    }
}

fn hear_file(said: &mut RawSettings, path: &Path) -> Vec<Fault> {
    let name = path.display().to_string();
    match read(path) {
        Ok(text) => file::hear(said, &name, text),
        Err(error) => {
            let fault = Fault::new(Origin::Default, format!("{name} cannot be read: {error}"));
            vec![fault.hint("`respool settings` prints a settings file to start from")]
        }
    }
}

/// Adds what is wrong with the values to what was wrong with the file.
pub(super) fn understand(said: &RawSettings, faults: &mut Vec<Fault>) -> Result<Resolved, Faults> {
    let understood = resolve(said, &read);
    if faults.is_empty() {
        return understood;
    }
    let mut all = std::mem::take(faults);
    all.extend(understood.err().map_or_else(Vec::new, |more| more.faults));
    Err(Faults { file: said.file.clone(), faults: all })
}

/// A settings file of Respool's, or a JSON file of rmux'.
pub(super) fn hear_any_file(path: &Path) -> Translation {
    let mut heard = Translation::default();
    match read(path) {
        Ok(text) if path.extension().is_some_and(|extension| extension == "json") => {
            rmux::hear_json(&mut heard, &path.display().to_string(), text);
        }
        _ => heard.faults = hear_file(&mut heard.said, path),
    }
    heard
}
