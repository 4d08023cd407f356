//! Users as the process has them: made from the settings or the ACL file, followed on reload, and given what they need of
//! the system.

use std::fs;
use std::io::{Read, Seek};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use respool_access::diff::{self, Followed};
use respool_access::{Users, file};
use respool_proxy::{Access, AccessRules, AclStore};

use super::whole_file::replace;
use crate::control::Control;
use crate::failure::Failure;
use crate::settings::Process;
use crate::settings::users::{UsersSettings, reason};

/// Largest ACL file that is read.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The system, as far as users need it.
#[derive(Debug)]
struct System {
    /// The ACL file as the settings name it, and where it is.
    file: Option<(String, PathBuf)>,
}

impl AclStore for System {
    fn acl_file(&self) -> Option<&str> {
        self.file.as_ref().map(|(name, _)| name.as_str())
    }

    fn read_acl_file(&self) -> Result<Vec<u8>, String> {
        let (_, path) = self.file.as_ref().ok_or("there is no file")?;
        read(path).map_err(|error| error.to_string())
    }

    fn write_acl_file(&self, text: &[u8]) -> Result<(), String> {
        let (name, path) = self.file.as_ref().ok_or("there is no file")?;
        replace(path, text).map_err(|error| {
            tracing::error!(file = name, %error, "the ACL file cannot be written");
            error.to_string()
        })
    }

    fn fill_with_chance(&self, out: &mut [u8]) -> Result<(), String> {
        let fill = |out: &mut [u8]| fs::File::open("/dev/urandom")?.read_exact(out);
        fill(out).map_err(|error| error.to_string())
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(std::io::Error::other(format!("it is larger than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// What workers are told about all users.
pub(super) fn rules(settings: &UsersSettings) -> AccessRules {
    AccessRules {
        is_protected: settings.is_protected,
        auth_deadline_us: settings
            .auth_timeout
            .map_or(u64::MAX, |limit| u64::try_from(limit.as_micros()).unwrap_or(u64::MAX)),
        trusts_scripts: settings.trusts_scripts,
    }
}

/// The users of a process that starts.
///
/// # Errors
/// The ACL file cannot be read or has errors; the text names the lines.
pub(super) fn build(process: &Process) -> Result<Arc<Access>, Failure> {
    let settings = &process.users;
    let named = settings.file.as_ref().map(|path| (path.display().to_string(), path.clone()));
    let system = System { file: named };
    let users = match system.acl_file() {
        Some(name) => {
            let text = system.read_acl_file();
            let text =
                text.map_err(|error| Failure::settings(format!("the ACL file {name} cannot be read: {error}")))?;
            file::users(&text, name, settings.has_channels_by_default).map_err(Failure::settings)?
        }
        None => of_tables(settings)?,
    };
    let access = Access::new(users, Box::new(system));
    apply_limits(&access, settings);
    Ok(Arc::new(access))
}

/// Takes what has become of users in the process whose listeners are taken over, and was not saved.
///
/// # Errors
/// It cannot be read, or does not say what users are.
pub(super) fn go_on(access: &Access, unsaved: Option<OwnedFd>) -> Result<(), Failure> {
    let Some(unsaved) = unsaved else { return Ok(()) };
    let mut file = fs::File::from(unsaved);
    let mut text = Vec::new();
    let read = file.rewind().and_then(|()| file.take(FILE_BYTES_MAX).read_to_end(&mut text));
    let taken = read.map_err(|error| error.to_string()).and_then(|_| access.go_on_with(&text));
    taken.map_err(|why| Failure::running(format!("the users of the process before cannot be taken over: {why}")))?;
    tracing::info!("users that were changed while the process before ran are as they were there");
    Ok(())
}

fn of_tables(settings: &UsersSettings) -> Result<Users, Failure> {
    settings.users().map_err(|(name, error)| Failure::settings(format!("user {name}: {}", reason(&error))))
}

fn apply_limits(access: &Access, settings: &UsersSettings) {
    access.set_limits(settings.limits());
    access.set_log_entries_max(settings.log_entries_max);
}

/// Has users follow the settings: registered before the workers are told, so that they find the new ones.
pub(super) fn follow(control: &Arc<Control>, access: &Arc<Access>) {
    let told = Mutex::new((control.adoptions(), control.settings().users.clone()));
    let weak = Arc::downgrade(control);
    let access = Arc::clone(access);
    control.on_change(Box::new(move || {
        let Some(control) = weak.upgrade() else { return };
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        let adoptions = control.adoptions();
        if adoptions == told.0 {
            return;
        }
        let new = control.settings().users.clone();
        if let Err(why) = follow_tables(&access, &told.1, &new) {
            tracing::error!(why, "the users of the settings are not taken");
        }
        apply_limits(&access, &new);
        *told = (adoptions, new);
    }));
}

/// Users whose tables, or the password, say something else than before are as these say. The others stay as they are, also as
/// they were changed while running.
fn follow_tables(access: &Access, before: &UsersSettings, now: &UsersSettings) -> Result<(), String> {
    let is_all = now.has_channels_by_default;
    if now.file.is_some() {
        if is_all != before.has_channels_by_default {
            access.change(|users| Ok::<_, String>((users.with_channels_by_default(is_all), ())))?;
        }
        return Ok(());
    }
    if (&now.password, &now.tables, is_all) == (&before.password, &before.tables, before.has_channels_by_default) {
        return Ok(());
    }
    let (before, after) =
        (of_tables(before).map_err(|error| error.message)?, of_tables(now).map_err(|error| error.message)?);
    let (changed, overruled) = access.change(|users| {
        let Followed { users, changed, overruled } = diff::followed(users, &before, &after)?;
        Ok::<_, String>((users, (changed, overruled)))
    })?;
    access.note_written(after);
    if !changed.is_empty() {
        tracing::info!("changed are the users {}", changed.join(", "));
    }
    if !overruled.is_empty() {
        let names = overruled.join(", ");
        tracing::warn!("what ACL SETUSER made of {names} is forgotten: the settings say something else now");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_fills_all_of_it() {
        let mut out = [0; 64];
        System { file: None }.fill_with_chance(&mut out).expect("the system has chance");
        assert!(out[..32] != [0; 32] && out[32..] != [0; 32] && out[..32] != out[32..]);
    }
}
