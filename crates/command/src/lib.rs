//! What commands *are*: one row each.
//!
//! A [`Row`] says everything that Respool knows about a command or subcommand before it runs: its arity, flags and ACL
//! categories, which of its arguments are keys and how each is used, which lane it needs, how it is split over nodes and
//! how the replies are joined. Dispatch, routing, ACL, `COMMAND` and the documentation are projections of the rows, so
//! no second list of commands exists anywhere.
//!
//! ```
//! use respool_command::{KeyPositions, Lane, RequestPolicy, resolve};
//!
//! let request: respool_wire::ArgsBuf = ["mset", "a", "1", "b", "2"].into_iter().collect();
//! let args = request.as_args();
//! let row = resolve(args).expect("MSET is a command");
//! assert!(row.accepts(args.len()));
//! assert_eq!((row.lane(args), row.request_policy), (Lane::Shared, RequestPolicy::SplitByKey));
//!
//! let mut keys = KeyPositions::new();
//! row.keys.positions(args, &mut keys).expect("MSET says where its keys are");
//! assert!(keys.iter().map(|key| &args[key.index as usize]).eq([b"a", b"b"]));
//! ```
//!
//! Owns: the rows (`src/table/`, a file per group), finding a row by name ([`lookup()`], [`resolve`]), finding the keys of a
//! request ([`Keys`]), what its arguments and replies are ([`Usage`]), the texts of errors that clients match on ([`text`]), what `COMMAND` answers ([`introspect`]), lines as words ([`words`]), and what a
//! local node is ([`Execute`]). Never runs a command, opens a socket or asks for the time.
#![forbid(unsafe_code)]

mod bits;
mod categories;
mod cursor;
mod docs;
mod events;
mod execute;
mod flags;
pub mod glob;
mod info;
pub mod introspect;
mod keys;
mod learn;
mod limits;
mod lookup;
mod policy;
mod redaction;
mod renames;
mod row;
mod secrets;
mod shape;
mod table;
pub mod text;
mod timeout;
mod upgrade;
mod usage;
pub mod words;

pub use categories::Categories;
pub use cursor::parse_cursor;
pub use docs::docs_markdown;
pub use events::{Change, EventClasses, Wanted};
pub use execute::{
    Asked, Execute, MOVERS_FROM, Millis, Outcome, ScriptCalls, ScriptCommand, ScriptRights, SessionView, WaitId,
};
pub use flags::Flags;
pub use info::{asks_for_section, human_bytes, names_section};
pub use keys::{Begin, Find, KeyAccess, KeyPosition, KeyPositions, KeySpec, Keys, KeysError};
pub use learn::learn;
pub use lookup::{UnknownCommand, lookup, lookup_full, resolve};
pub use policy::{Group, Lane, RequestPolicy, ResponsePolicy};
pub use redaction::VisibleSettings;
pub use renames::{RenameError, Renames};
pub use row::{Deprecation, Row, Way};
pub use secrets::{
    is_confidential, is_of_one_server, is_open_setting, is_secret_argument, is_secret_setting, shows_secrets,
};
pub use shape::{Shape, ShapeOf};
pub use table::*;
pub use timeout::{TimeoutUnit, timeout_place, timeout_us};
pub use upgrade::ReplyShapes;
pub use usage::{Argument, ArgumentKind, Arguments, Repeat, ReplyForm, ReplyType, ReplyTypes, Returns, Usage};
