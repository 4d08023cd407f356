//! Rights, as all workers of a process know them: the users in force, their quotas, and the log of denials.
//!
//! Workers hold the snapshot of users that they saw last, and those of all pools are told when there is another one. One writer at a time makes
//! the next one. The locks here are taken when users are changed, or a client logs in or is refused, never on behalf of a request
//! that is allowed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use respool_access::{DenialLog, Users, diff};

use crate::users::quota::{UserLimits, UserQuota};

/// What the users need that a pure crate does not have: a file and chance.
pub trait AclStore: fmt::Debug + Send + Sync {
    /// The path of the ACL file as the settings name it; `None` if users are kept in no file.
    fn acl_file(&self) -> Option<&str>;

    /// The text of the ACL file.
    ///
    /// # Errors
    /// What the system says.
    fn read_acl_file(&self) -> Result<Vec<u8>, String>;

    /// Puts a text into the place of the ACL file, all of it or nothing.
    ///
    /// # Errors
    /// What the system says.
    fn write_acl_file(&self, text: &[u8]) -> Result<(), String>;

    /// Fills `out` with unpredictable bytes.
    ///
    /// # Errors
    /// What the system says.
    fn fill_with_chance(&self, out: &mut [u8]) -> Result<(), String>;
}

/// Nothing outside: users are kept in no file, and no password can be made.
#[derive(Debug)]
struct NoAclStore;

impl AclStore for NoAclStore {
    fn acl_file(&self) -> Option<&str> {
        None
    }

    fn read_acl_file(&self) -> Result<Vec<u8>, String> {
        Err("there is no file".to_owned())
    }

    fn write_acl_file(&self, _: &[u8]) -> Result<(), String> {
        Err("there is no file".to_owned())
    }

    fn fill_with_chance(&self, _: &mut [u8]) -> Result<(), String> {
        Err("there is no source of chance".to_owned())
    }
}

/// What is told about all users at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessRules {
    /// Whether only clients of this machine are accepted while the default user needs no password.
    pub is_protected: bool,
    /// How long a client may stay unauthenticated, in microseconds.
    pub auth_deadline_us: u64,
    /// Whether users that may not do everything may run scripts on nodes, where these do what the proxy's own user may.
    pub trusts_scripts: bool,
}

impl Default for AccessRules {
    /// Every client may connect, without a limit.
    fn default() -> Self {
        Self { is_protected: false, auth_deadline_us: u64::MAX, trusts_scripts: true }
    }
}

/// Users by name with what each may ask for.
pub(crate) type UserQuotas = BTreeMap<Box<[u8]>, Arc<UserQuota>>;

/// Shared by all workers of a process.
#[derive(Debug)]
pub struct Access {
    users: Mutex<Arc<Users>>,
    /// The users as the settings or the ACL file have them.
    saved: Mutex<Arc<Users>>,
    allowances: Mutex<Arc<UserQuotas>>,
    log: Mutex<DenialLog>,
    outside: Box<dyn AclStore>,
}

impl Default for Access {
    /// One user, which needs no password and may do everything.
    fn default() -> Self {
        Self::new(Users::new(), Box::new(NoAclStore))
    }
}

impl Access {
    /// With these users.
    pub fn new(users: Users, outside: Box<dyn AclStore>) -> Self {
        let users = Arc::new(users);
        Self {
            saved: Mutex::new(Arc::clone(&users)),
            users: Mutex::new(users),
            allowances: Mutex::default(),
            log: Mutex::default(),
            outside,
        }
    }

    /// The users in force.
    pub fn users(&self) -> Arc<Users> {
        Arc::clone(&lock(&self.users))
    }

    /// Puts other users in the place of those in force, unless `change` finds something wrong. Workers have to be told.
    ///
    /// # Errors
    /// What `change` says.
    pub fn change<R, F>(&self, change: impl FnOnce(&Users) -> Result<(Users, R), F>) -> Result<R, F> {
        let mut users = lock(&self.users);
        let (next, result) = change(&users)?;
        *users = Arc::new(next.renumbered(&users));
        Ok(result)
    }

    /// Writes the users in force down. Two writes at the same time happen one after the other, so that the later users stay.
    ///
    /// # Errors
    /// What `write` says.
    pub(crate) fn save(&self, write: impl FnOnce(&Users) -> Result<(), String>) -> Result<(), String> {
        let mut saved = lock(&self.saved);
        let users = self.users();
        write(&users)?;
        // Others may be in force by now, which are not written down.
        *saved = users;
        Ok(())
    }

    /// The users as they are in the file now, whichever are in force.
    pub fn note_written(&self, users: Users) {
        *lock(&self.saved) = Arc::new(users);
    }

    /// What has become of users since, for a process that goes on with them; empty if nothing has.
    pub fn unsaved(&self) -> Vec<u8> {
        let (saved, now) = (Arc::clone(&lock(&self.saved)), self.users());
        diff::between(&saved, &now)
    }

    /// Goes on with what [`Access::unsaved`] of another process says. It stays unsaved.
    ///
    /// # Errors
    /// What is wrong with it; then nothing is changed.
    pub fn go_on_with(&self, unsaved: &[u8]) -> Result<(), String> {
        self.change(|users| Ok((diff::applied(users, unsaved)?, ())))
    }

    /// What each user may ask for from now on. What is in use stays counted. Workers have to be told.
    pub fn set_limits(&self, limits: impl Iterator<Item = (Box<[u8]>, UserLimits)>) {
        let mut allowances = lock(&self.allowances);
        let next = limits.map(|(name, limits)| {
            let allowance = UserQuota::with(limits, allowances.get(&name).map(Arc::as_ref));
            (name, Arc::new(allowance))
        });
        *allowances = Arc::new(next.collect());
    }

    /// What users may ask for.
    pub(crate) fn allowances(&self) -> Arc<UserQuotas> {
        Arc::clone(&lock(&self.allowances))
    }

    /// The log of denials.
    pub(crate) fn log(&self) -> MutexGuard<'_, DenialLog> {
        lock(&self.log)
    }

    /// Keeps at most so many entries of the log of denials (Redis' `acllog-max-len`).
    pub fn set_log_entries_max(&self, entries_max: usize) {
        self.log().set_entries_max(entries_max);
    }

    pub(crate) fn outside(&self) -> &dyn AclStore {
        &*self.outside
    }
}

/// What is guarded is replaced as a whole, so it is sound even after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
