//! Users: `[users.NAME]` tables, and the settings that hold for all users. How they are said, and what they mean.
//!
//! A table gives rules, in Redis' ACL language, and limits. With an ACL file the rules stand there, and a table of the same
//! name may still say limits. Rules may hold passwords, so they are secrets.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use respool_access::{ChangeError, DEFAULT_USER, Users};
use respool_connection::Credentials;
use respool_proxy::{PoolMode, UserLimits};
use toml::Spanned;
use toml::de::DeValue;

use super::choices::{ChannelsByDefault, Switch};
use super::diagnostic::{self, Fault};
use super::raw::{Origin, RawUser, Text, UserKey};
use super::resolver::Resolver;
use super::row::{Secret, Value};
use super::suggestion::nearest;
use super::table::Setting;
use super::unit;
use super::values::Values;

/// Most tables of users.
pub const TABLES_MAX: usize = 10_000;

/// Users and their rights.
#[derive(Debug, Clone, PartialEq)]
pub struct UsersSettings {
    /// Where users are kept; `None`: the tables are all there is.
    pub file: Option<PathBuf>,
    /// The default user's password.
    pub password: Option<Secret>,
    /// Whether new users may use all channels.
    pub has_channels_by_default: bool,
    /// Entries of the log of denials.
    pub log_entries_max: usize,
    /// Whether only clients of this machine are accepted while the default user needs no password.
    pub is_protected: bool,
    /// How long a client may stay unauthenticated; `None` is without bound.
    pub auth_timeout: Option<Duration>,
    /// Whether users that may not do everything may run scripts on nodes.
    pub trusts_scripts: bool,
    /// The users' tables, by name.
    pub tables: Vec<UserSettings>,
}

/// One user.
#[derive(Debug, Clone, PartialEq)]
pub struct UserSettings {
    /// Its name.
    pub name: String,
    /// Its rules, each as an argument of `ACL SETUSER`; none if the table only has limits.
    pub rules: Vec<Secret>,
    /// What it may ask for.
    pub limits: UserLimits,
}

impl UsersSettings {
    /// The users that the tables and the default user's password make.
    ///
    /// # Errors
    /// The user whose rules are wrong, and what is wrong with them.
    pub fn users(&self) -> Result<Users, (String, ChangeError)> {
        let mut users = Users::new().with_channels_by_default(self.has_channels_by_default);
        if let Some(password) = &self.password {
            users = users.with_default_password(Some(password.reveal().as_bytes()));
        }
        for table in self.tables.iter().filter(|table| !table.rules.is_empty()) {
            users = with_rules(&users, table).map_err(|error| (table.name.clone(), error))?;
        }
        Ok(users)
    }

    /// What each user may ask for.
    pub fn limits(&self) -> impl Iterator<Item = (Box<[u8]>, UserLimits)> {
        let bounded = self.tables.iter().filter(|table| table.limits != UserLimits::default());
        bounded.map(|table| (table.name.as_bytes().into(), table.limits.clone()))
    }
}

/// The table says all of the user: what it was before, as the default user is something, does not count.
fn with_rules(users: &Users, table: &UserSettings) -> Result<Users, ChangeError> {
    let rules: Vec<&[u8]> =
        std::iter::once(&b"reset"[..]).chain(table.rules.iter().map(|rule| rule.reveal().as_bytes())).collect();
    users.with_rules(table.name.as_bytes(), &rules)
}

/// Reads `[users.NAME]`.
pub(super) fn hear(value: &Spanned<DeValue<'_>>, said: &mut Vec<RawUser>, faults: &mut Vec<Fault>) {
    let mut fault = |span, message: &str, hint: &str| {
        diagnostic::add(faults, || Fault::new(Origin::File { span }, message.to_owned()).hint(hint));
    };
    let form = "users are written [users.NAME]";
    let DeValue::Table(users) = value.get_ref() else {
        return fault(value.span(), form, "a user has rules, and perhaps limits");
    };
    for (name, value) in users {
        let DeValue::Table(table) = value.get_ref() else {
            fault(name.span(), form, "a user is a table");
            continue;
        };
        if said.len() >= TABLES_MAX {
            return fault(name.span(), "there are too many users", "an ACL file may hold more (aclfile)");
        }
        let origin = Origin::File { span: name.span() };
        let mut user = RawUser { name: name.get_ref().to_string(), origin, keys: Vec::new() };
        for (key, value) in table {
            let words = || UserKey::ALL.iter().map(|(_, word)| *word);
            let Some((known, _)) = UserKey::ALL.iter().find(|(_, word)| *word == key.get_ref()) else {
                let hint = match nearest(key.get_ref(), words()) {
                    Some(near) => format!("the nearest is {near}"),
                    None => format!("a user has {}", words().collect::<Vec<_>>().join(", ")),
                };
                fault(key.span(), &format!("a user has no {:.64?}", key.get_ref()), &hint);
                continue;
            };
            match texts(value) {
                Some(texts) => user.keys.push((*known, texts)),
                None => fault(key.span(), "a text or a whole number is needed here", "rules may be a list of texts"),
            }
        }
        said.push(user);
    }
}

fn texts(value: &Spanned<DeValue<'_>>) -> Option<Vec<Text>> {
    match value.get_ref() {
        DeValue::Array(items) => items.iter().map(text).collect(),
        _ => text(value).map(|text| vec![text]),
    }
}

fn text(value: &Spanned<DeValue<'_>>) -> Option<Text> {
    let text = match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        _ => return None,
    };
    Some(Text { text, origin: Origin::File { span: value.span() } })
}

impl Resolver<'_> {
    /// Reads users and their rights.
    pub(super) fn users(&mut self, values: &[Value]) -> UsersSettings {
        let of = Values(values);
        let mut settings = UsersSettings {
            file: of.text(Setting::Aclfile).map(PathBuf::from),
            password: self.secret(&of, [Setting::Requirepass, Setting::RequirepassFile], None),
            has_channels_by_default: ChannelsByDefault::ALL[of.word(Setting::AclPubsubDefault)]
                == ChannelsByDefault::All,
            log_entries_max: of.count(Setting::AcllogMaxLen).map_or(0, |count| count as usize),
            is_protected: Switch::ALL[of.word(Setting::ProtectedMode)] == Switch::Yes,
            auth_timeout: of.duration(Setting::AuthTimeout),
            trusts_scripts: Switch::ALL[of.word(Setting::ScriptTrust)] == Switch::Yes,
            tables: Vec::new(),
        };
        if settings.file.is_some() && settings.password.is_some() {
            let hint = "give the default user a password in the file: user default on >PASSWORD ~* &* +@all";
            self.blame(Setting::Aclfile, None, "an ACL file and requirepass are both said", hint);
        }
        let said: &[RawUser] = &self.said.users;
        for user in said {
            let table = self.user(user, settings.file.is_some());
            settings.tables.extend(table);
        }
        settings.tables.sort_by(|a, b| a.name.cmp(&b.name));
        if settings.password.is_some() {
            let default = settings.tables.iter().any(|t| t.name.as_bytes() == DEFAULT_USER && !t.rules.is_empty());
            if default {
                let hint = "say the password in one of them";
                self.blame(Setting::Requirepass, None, "requirepass and [users.default] are both said", hint);
            }
        }
        settings
    }

    fn user(&mut self, said: &RawUser, has_file: bool) -> Option<UserSettings> {
        let mut user = UserSettings { name: said.name.clone(), rules: Vec::new(), limits: UserLimits::default() };
        let mut place = said.origin.clone();
        let (mut node_username, mut node_password) = (None, None);
        for (key, texts) in &said.keys {
            let origin = texts.first().map_or(&said.origin, |text| &text.origin).clone();
            if matches!(key, UserKey::Rules | UserKey::Password | UserKey::PasswordFile) {
                place = origin.clone();
            }
            if *key == UserKey::Rules {
                let words = texts.iter().flat_map(|text| match texts.len() {
                    // One text is a line of the ACL file, several are a rule each.
                    1 => text.text.split_ascii_whitespace().collect(),
                    _ => vec![text.text.as_str()],
                });
                user.rules.extend(words.map(|rule| Secret::new(rule.to_owned())));
                continue;
            }
            let [text] = texts.as_slice() else {
                self.fault(Fault::new(origin, "one value is needed here".to_owned()));
                continue;
            };
            match key {
                UserKey::NodeUsername => {
                    node_username = Some(text.text.clone());
                    continue;
                }
                UserKey::NodePassword => {
                    node_password = Some(Secret::new(text.text.clone()));
                    continue;
                }
                UserKey::PoolMode => {
                    let known = PoolMode::ALL.iter().find(|(_, word)| *word == text.text);
                    user.limits.pool_mode = known.map(|(mode, _)| *mode);
                    if known.is_none() {
                        let words = PoolMode::ALL.map(|(_, word)| word).join(", ");
                        self.fault(Fault::new(origin, format!("allowed are {words}")));
                    }
                    continue;
                }
                UserKey::NodePasswordFile => {
                    node_password = self.secret_at(&text.text, &origin);
                    continue;
                }
                _ => {}
            }
            let number = || text.text.parse::<u64>().ok().filter(|number| *number > 0);
            let limit = match key {
                UserKey::Password => {
                    user.rules.push(Secret::new(format!(">{}", text.text)));
                    continue;
                }
                UserKey::PasswordFile => {
                    if let Some(password) = self.secret_at(&text.text, &origin) {
                        user.rules.push(Secret::new(format!(">{}", password.reveal())));
                    }
                    continue;
                }
                UserKey::BytesPerSecond => unit::parse_bytes(&text.text).ok().filter(|bytes| *bytes > 0),
                _ => number(),
            };
            let Some(limit) = limit else {
                let fault = Fault::new(origin, "a limit is a number above 0".to_owned());
                self.fault(fault.hint("leave it out for no limit"));
                continue;
            };
            match key {
                UserKey::Connections => user.limits.connections = Some(usize::try_from(limit).unwrap_or(usize::MAX)),
                UserKey::PrivateConnections => {
                    user.limits.private_connections = Some(usize::try_from(limit).unwrap_or(usize::MAX));
                }
                UserKey::RequestsPerSecond => user.limits.requests_per_second = Some(limit),
                _ => user.limits.bytes_per_second = Some(limit),
            }
        }
        user.limits.node_credentials = node_username.zip(node_password).map(|(username, password)| {
            Arc::new(Credentials { username: Some(username), password: password.reveal().to_owned().into() })
        });
        // A password's file that cannot be read has been told already.
        let says = |wanted: &[UserKey]| said.keys.iter().any(|(key, _)| wanted.contains(key));
        if says(&[UserKey::NodeUsername]) != says(&[UserKey::NodePassword, UserKey::NodePasswordFile]) {
            let message = format!("user {:.64?} has half of what nodes ask for", user.name);
            let fault = Fault::new(said.origin.clone(), message);
            self.fault(fault.hint("say node_username and one of node_password and node_password_file"));
        }
        if has_file && !user.rules.is_empty() {
            let fault = Fault::new(place, format!("user {} has rules here, and there is an ACL file", user.name));
            self.fault(fault.hint("move the rules to the file, or leave aclfile out; limits may stay"));
            return None;
        }
        if let Err(error) = with_rules(&Users::new(), &user) {
            let fault = Fault::new(place, format!("the rules of user {:.64?} are wrong", user.name));
            self.fault(fault.hint(reason(&error)));
            return None;
        }
        Some(user)
    }
}

/// What is wrong, without the rule if it may be a secret.
pub(crate) fn reason(error: &ChangeError) -> String {
    match error {
        ChangeError::Rule(rule, error) if rule.first().is_some_and(|first| b"+-".contains(first)) => {
            format!("{error}: {:.64}", String::from_utf8_lossy(rule))
        }
        ChangeError::Rule(_, error) => error.to_string(),
        ChangeError::Unclosed(_) => "a selector is not closed".to_owned(),
        ChangeError::Name => "a name has neither blanks nor NULs".to_owned(),
        ChangeError::Default | ChangeError::TooMany => "there are too many users".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Process;
    use super::super::raw::RawSettings;
    use super::super::{file, resolve};
    use super::*;
    use crate::settings::diagnostic::Faults;

    fn understood(text: &str) -> Result<Process, String> {
        let mut said = RawSettings::default();
        let faults = file::hear(&mut said, "r.toml", text.to_owned());
        if !faults.is_empty() {
            return Err(Faults { file: said.file, faults }.to_string());
        }
        let secret = |path: &std::path::Path| match path.to_str() {
            Some("/gone") => Err(std::io::ErrorKind::NotFound.into()),
            _ => Ok("from-a-file\nmore\n".to_owned()),
        };
        resolve(&said, &secret).map(|understood| understood.process).map_err(|faults| faults.to_string())
    }

    #[test]
    fn tables_make_users_and_limits() {
        let text = "requirepass = \"secret\"\n\
                    [users.app]\nrules = \"on ~app:* +@read\"\npassword = \"one\"\nrequests_per_second = 100\n\
                    bytes_per_second = \"1mb\"\n\
                    [users.ops]\nrules = [\"on\", \"~*\", \"&*\", \"+@all\"]\npassword_file = \"/x\"\nconnections = 3\n";
        let settings = understood(text).expect("all of it is right").users;
        let users = settings.users().expect("the rules are valid");
        assert!(users.authenticate(b"default", b"secret").is_some() && !users.admits_unauthenticated());
        assert!(users.authenticate(b"app", b"one").is_some_and(|user| !user.is_all_powerful()));
        assert!(users.authenticate(b"ops", b"from-a-file").is_some_and(|user| user.is_all_powerful()));
        let limits: Vec<_> = settings.limits().collect();
        let app =
            UserLimits { requests_per_second: Some(100), bytes_per_second: Some(1 << 20), ..UserLimits::default() };
        let ops = UserLimits { connections: Some(3), ..UserLimits::default() };
        assert_eq!(limits, [(Box::from(&b"app"[..]), app), (Box::from(&b"ops"[..]), ops)]);
        assert!(!format!("{settings:?}").contains("secret") && !format!("{settings:?}").contains("one\""));
    }

    #[test]
    fn what_is_wrong_is_shown_without_secrets() {
        for (text, part) in [
            ("[users.a]\nrules = \"on >canary +nothing\"\n", "Unknown command or category name in ACL: +nothing"),
            ("[users.a]\nrules = [\n\"on\",\n\">canary=1\",\n\"<canary\"]\n", "does not exist"),
            ("aclfile = \"/f\"\n[users.a]\nrules = \"on >canary\"\n", "there is an ACL file"),
            ("aclfile = \"/f\"\nrequirepass = \"canary\"\n", "both said"),
            ("requirepass = \"canary\"\n[users.default]\nrules = \"on >canary\"\n", "both said"),
            ("[users.a]\npasword = \"canary\"\n", "the nearest is password"),
            ("[users]\na = { rules = \"on >canary\", connections = 0 }\n", "a limit is a number above 0"),
            ("users = 3\n", "[users.NAME]"),
            ("[users.a]\nrules = \"on >canary\"\nnode_username = \"n\"\n", "half of what nodes ask for"),
            ("[users.a]\nrules = \"on\"\nnode_password = \"canary\"\n", "half of what nodes ask for"),
            ("[users.\"a b\"]\nrules = \"on\"\n", "neither blanks"),
        ] {
            let shown = understood(text).expect_err("something is wrong");
            assert!(shown.contains(part) && !shown.contains("canary"), "{text}\n{shown}");
        }
    }

    #[test]
    fn one_mistake_is_told_once() {
        let text = "[users.a]\nrules = \"on\"\nnode_username = \"n\"\nnode_password_file = \"/gone\"\n";
        let shown = understood(text).expect_err("the file is not there");
        assert_eq!(shown.matches("error: ").count(), 1, "{shown}");
    }
}
