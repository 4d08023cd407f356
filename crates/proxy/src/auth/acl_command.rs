//! AUTH and ACL: answered here, for all workers.
//!
//! A change of users is made once and told to every worker; the client that asked for it is answered when all of them go by it.

use crate::error_reply::ErrorReply;
use crate::ids::ClientId;
use crate::interfaces::read_tracker::ReadTracker;
use crate::workers::shared::Shared;
use respool_access::{ChangeError, Users, answer, file};
use respool_command::{Command, Execute, Row, ServerCommand, is_of_one_server, text as texts};
use respool_wire::Args;
use std::sync::Arc;

use crate::env::Env;
use crate::error_text;
use crate::integer::integer;
use crate::interfaces::client_query::{ClientFilter, ClientQuestion, ClientStep};
use crate::reply::tracked_keys_bound::set_tracked_keys_max;
use crate::session::Flow;

/// The most entries of the log of denials that may be asked for.
const LOG_KEPT_MAX: usize = 1_000_000;

/// Settings that are about our clients and no node's.
fn is_own_setting(name: &[u8]) -> bool {
    let own: [&[u8]; 3] = [b"requirepass", b"acl-pubsub-default", b"acllog-max-len"];
    own.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Entries that `ACL LOG` shows unless it is told how many.
const LOG_SHOWN: usize = 10;

impl<E: Execute> Env<E> {
    /// Answers a subcommand of ACL.
    pub(crate) fn acl(&mut self, index: ClientId, command: ServerCommand, args: Args<'_>) -> ClientStep {
        self.note_secret();
        use ServerCommand as C;
        let flow = match command {
            C::AclWhoami => {
                let name = self.clients.sessions.at(index).map_or_else(Vec::new, |s| s.user_name().to_vec());
                self.answer(index, |reply| reply.bulk(&name))
            }
            C::AclList => self.answer_of_users(index, answer::list),
            C::AclUsers => self.answer_of_users(index, answer::names),
            C::AclGetuser => self.answer_of_users(index, |users, reply| answer::user(users, args.at(2), reply)),
            C::AclDryrun => {
                let renames = Arc::clone(&self.shared.renames);
                self.answer_of_users(index, |users, reply| {
                    answer::dry_run(users, args.at(2), args.from(3), &renames, reply);
                })
            }
            C::AclCat if args.len() <= 3 => self.answer(index, |reply| answer::categories(args.get(2), reply)),
            C::AclGenpass if args.len() <= 3 => self.acl_genpass(index, args.get(2)),
            C::AclLog if args.len() <= 3 => self.acl_log(index, args.get(2)),
            C::AclSetuser => return self.acl_setuser(index, args),
            C::AclDeluser => return self.acl_deluser(index, args),
            C::AclLoad => return self.acl_load(index),
            C::AclSave => self.acl_save(index),
            C::Acl | C::AclHelp => self.answer(index, answer::help),
            _ => self.refuse(index, error_text::unknown_acl_subcommand(args.at(1))),
        };
        flow.into()
    }

    fn acl_setuser(&mut self, index: ClientId, args: Args<'_>) -> ClientStep {
        let rules: Vec<&[u8]> = args.from(3).iter().collect();
        let changed = self.shared.change_users(|users| Ok((users.with_rules(args.at(2), &rules)?, ())));
        match changed {
            Ok(()) => ClientStep::tell_of_users(),
            Err(words) => self.refuse(index, words).into(),
        }
    }

    fn acl_deluser(&mut self, index: ClientId, args: Args<'_>) -> ClientStep {
        match self.shared.change_users(|users| users.without(args.from(2).iter())) {
            Ok(removed) => {
                let removed = u32::try_from(removed).unwrap_or(u32::MAX);
                ClientStep::ask(ClientQuestion::Users { removed: Some(removed) }, ClientFilter::default())
            }
            Err(words) => self.refuse(index, words).into(),
        }
    }

    fn acl_load(&mut self, index: ClientId) -> ClientStep {
        let access = std::sync::Arc::clone(&self.shared.access);
        let Some(path) = access.outside().acl_file() else {
            return self.refuse(index, error_text::NO_ACL_FILE).into();
        };
        let text = match access.outside().read_acl_file() {
            Ok(text) => text,
            Err(why) => return self.refuse(index, error_text::acl_file_not_read(path, &why)).into(),
        };
        let loaded = access.change(|users| {
            if self.shared.ledger.has_successor() {
                return Err(error_text::HANDED_OVER.into());
            }
            let loaded = file::users(&text, path, users.has_channels_by_default());
            let loaded = loaded.map_err(|why| error_text::acl_not_loaded(&why))?.following(users);
            Ok::<_, ErrorReply>((loaded.clone(), loaded))
        });
        match loaded {
            Ok(loaded) => {
                // Others may be in force by now, which are not in the file.
                access.note_written(loaded);
                ClientStep::tell_of_users()
            }
            Err(error) => self.refuse(index, error).into(),
        }
    }

    /// `CONFIG SET` of what is ours and no node's: passwords of nodes are not set through the proxy, which would be locked out.
    /// `None`: it is about something else.
    pub(crate) fn set_user_setting(
        &mut self,
        index: ClientId,
        row: &'static Row,
        args: Args<'_>,
    ) -> Option<ClientStep> {
        if row.command != Command::Server(ServerCommand::ConfigSet) {
            return None;
        }
        self.note_secret();
        let step = self.take_user_setting(index, args);
        step.or_else(|| set_tracked_keys_max(self, index, row, args).map(ClientStep::from))
    }

    fn take_user_setting(&mut self, index: ClientId, args: Args<'_>) -> Option<ClientStep> {
        if let Some(own) = args.from(2).iter().step_by(2).find(|name| is_of_one_server(name))
            && self.config.nodes.len() > 1
        {
            return Some(self.refuse(index, error_text::set_of_one(own)).into());
        }
        if args.len() != 4 {
            let own = args.from(2).iter().step_by(2).find(|name| is_own_setting(name))?;
            return Some(self.refuse(index, error_text::set_alone(own)).into());
        }
        let (name, value) = (args.at(2), args.at(3));
        match self.apply_user_setting(name, value) {
            Ok(true) => Some(ClientStep::tell_of_users()),
            Ok(false) => None,
            Err(words) => Some(self.refuse(index, words).into()),
        }
    }

    /// `AUTH [name] password`.
    pub(crate) fn auth(&mut self, reads: &mut impl ReadTracker, index: ClientId, args: Args<'_>) -> Flow {
        self.note_secret();
        let (name, password) = match args.len() {
            2 if self.users.default_user().needs_no_password() => {
                return self.refuse(index, texts::NO_PASSWORD_CONFIGURED);
            }
            2 => (respool_access::DEFAULT_USER, args.at(1)),
            3 => (args.at(1), args.at(2)),
            _ => return self.refuse(index, texts::SYNTAX),
        };
        // Replies are charged to the user that has asked for them, and nodes know some users by names of their own.
        if !self.allowances.is_empty() && self.clients.settle_before(index).is_none() {
            return Flow::Again;
        }
        match self.authenticate(reads, index, name, password, args.name()) {
            Ok(()) => self.confirm(index),
            Err(why) => self.refuse(index, why.text()),
        }
    }

    /// Changes what is about users. `false`: it is about something else.
    pub(crate) fn apply_user_setting(&mut self, name: &[u8], value: &[u8]) -> Result<bool, ErrorReply> {
        if name.eq_ignore_ascii_case(b"requirepass") {
            let password = (!value.is_empty()).then_some(value);
            self.shared.change_users(|users| Ok((users.with_default_password(password), ())))?;
        } else if name.eq_ignore_ascii_case(b"acl-pubsub-default") {
            let is_all = value.eq_ignore_ascii_case(b"allchannels");
            if !is_all && !value.eq_ignore_ascii_case(b"resetchannels") {
                return Err(error_text::ACL_PUBSUB_DEFAULT.into());
            }
            self.shared.change_users(|users| Ok((users.with_channels_by_default(is_all), ())))?;
        } else if name.eq_ignore_ascii_case(b"acllog-max-len") {
            let Some(entries_max) = integer(value).and_then(|count| usize::try_from(count).ok()) else {
                return Err(error_text::ACLLOG_MAX_LEN.into());
            };
            if self.shared.ledger.has_successor() {
                return Err(error_text::HANDED_OVER.into());
            }
            self.shared.access.set_log_entries_max(entries_max.min(LOG_KEPT_MAX));
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn answer_of_users(
        &mut self,
        index: ClientId,
        write: impl FnOnce(&respool_access::Users, &mut respool_wire::Encoder<'_>),
    ) -> Flow {
        let users = std::sync::Arc::clone(&self.users);
        self.answer(index, |reply| write(&users, reply))
    }

    fn acl_save(&mut self, index: ClientId) -> Flow {
        let access = std::sync::Arc::clone(&self.shared.access);
        if access.outside().acl_file().is_none() {
            return self.refuse(index, error_text::NO_ACL_FILE);
        }
        if self.shared.ledger.has_successor() {
            // The file is the other process's.
            return self.refuse(index, error_text::HANDED_OVER);
        }
        let mut words = error_text::ACL_FILE_NOT_SAVED.to_owned();
        let saved = access.save(|users| {
            let text = file::savable_text(users).inspect_err(|why| words.clone_from(why))?;
            access.outside().write_acl_file(&text)
        });
        match saved {
            Ok(()) => self.confirm(index),
            Err(_) => self.refuse(index, words),
        }
    }

    fn acl_genpass(&mut self, index: ClientId, bits: Option<&[u8]>) -> Flow {
        let digits = match answer::password_digits(bits) {
            Ok(digits) => digits,
            Err(words) => return self.refuse(index, words),
        };
        let mut bytes = vec![0; digits.div_ceil(2)];
        if let Err(why) = self.shared.access.outside().fill_with_chance(&mut bytes) {
            return self.refuse(index, error_text::no_password(&why));
        }
        let mut password: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        password.truncate(digits);
        self.answer(index, |reply| reply.bulk(password.as_bytes()))
    }

    fn acl_log(&mut self, index: ClientId, asked: Option<&[u8]>) -> Flow {
        let access = std::sync::Arc::clone(&self.shared.access);
        let count = match asked {
            None => LOG_SHOWN,
            Some(word) if word.eq_ignore_ascii_case(b"RESET") => {
                access.log().clear();
                return self.confirm(index);
            }
            Some(number) => match integer(number) {
                Some(count) => usize::try_from(count).unwrap_or(0),
                None => return self.refuse(index, texts::NOT_AN_INTEGER),
            },
        };
        let unix_ms = self.now.unix_us / 1_000;
        self.answer(index, |reply| access.log().write(count, unix_ms, reply))
    }
}

impl Shared {
    /// A client changes users. `Err`: why it may not.
    fn change_users<R>(&self, change: impl FnOnce(&Users) -> Result<(Users, R), ChangeError>) -> Result<R, ErrorReply> {
        self.access.change(|users| {
            // Asked while the users are locked: what is handed over afterwards has this change, or it is refused.
            if self.ledger.has_successor() {
                return Err(error_text::HANDED_OVER.into());
            }
            change(users).map_err(|error| ErrorReply::of(|words| error.write_text(words)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{EchoEngine, Untracked, env_with_node, request};

    fn set(env: &mut Env<EchoEngine>, client: ClientId, said: &str) -> Option<ClientStep> {
        request(&format!("CONFIG SET {said}"), |row, args| env.set_user_setting(client, row, args))
    }

    #[test]
    fn a_password_is_ours_and_what_is_not_about_users_goes_on() {
        let mut env = env_with_node();
        let client = env.test_client();
        assert!(set(&mut env, client, "maxmemory 5").is_none());
        assert!(matches!(set(&mut env, client, "requirepass p"), Some(ClientStep::Ask(_))));
        assert!(!env.shared.access.users().default_user().needs_no_password());
        assert!(matches!(set(&mut env, client, "acllog-max-len x"), Some(ClientStep::Done(Flow::Next))));
        assert!(env.take_output(client).contains("couldn't be parsed into an integer"));
        assert!(matches!(set(&mut env, client, "requirepass p maxmemory 5"), Some(ClientStep::Done(Flow::Next))));
        assert!(env.take_output(client).starts_with("-ERR CONFIG SET failed"), "it could not be undone at a node");
    }

    #[test]
    fn a_password_that_is_not_needed_is_refused() {
        let mut env = env_with_node();
        let client = env.test_client();
        assert_eq!(request("AUTH p", |_, args| env.auth(&mut Untracked, client, args)), Flow::Next);
        assert!(env.take_output(client).starts_with("-ERR AUTH"));
        assert!(env.has_read_secret, "it is a secret all the same");
    }
}
