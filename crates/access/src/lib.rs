//! Users, and what each may do: Redis' ACL language as values.
//!
//! ```text
//!   rules, one by one            what they make of a user               a request
//!   "+@read ~app:* >secret"  ->  [User: passwords, selectors]  --check-->  allowed, or what is denied
//!                                          |
//!                             [Users: an immutable snapshot]  <-- a line of the ACL file each
//! ```
//!
//! Owns: the language ([`User::apply`]), its canonical form ([`User::rules`]), the ACL file ([`mod@file`]), passwords
//! ([`Users::authenticate`]), verdicts ([`User::check`]), the log of denials ([`DenialLog`]) and the answers of `ACL` that
//! need no more than these ([`answer`]). A change makes a new snapshot; holders of an old one are not disturbed.
//!
//! Which arguments of a request are keys, and how each is used, is asked of `respool-command` alone: what is permitted is
//! what is routed. Never reads a file, asks for the time, or makes a random number: those are arguments.
//!
//! ```
//! use respool_access::{Denial, Users};
//! use respool_command::{KeyPositions, resolve};
//!
//! let users = Users::new().with_rules(b"app", &[b"on", b">secret", b"~app:*", b"+@read"]).expect("the rules are valid");
//! let user = users.authenticate(b"app", b"secret").expect("this is the password");
//!
//! let request: respool_wire::ArgsBuf = ["get", "other:1"].into_iter().collect();
//! let row = resolve(request.as_args()).expect("GET is a command");
//! assert_eq!(user.check(row, request.as_args(), &mut KeyPositions::new()), Err(Denial::Key(1)));
//! ```
#![forbid(unsafe_code)]

pub mod answer;
mod c_string;
mod commands;
mod describe;
pub mod diff;
mod exact;
pub mod file;
pub mod limits;
mod log;
mod password;
mod pattern;
mod rule;
mod selector;
mod sort;
mod user;
mod users;
mod verdict;

pub use log::{DenialLog, Denied, Place, Reason};
pub use rule::RuleError;
pub use sort::SortOption;
pub use user::User;
pub use users::{ChangeError, DEFAULT_USER, DEFAULT_USER_TEXT, Users};
pub use verdict::{Denial, needs_no_auth};
