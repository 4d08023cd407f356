//! Which user a client is, and what it may ask for.

pub(crate) mod acl_command;
mod admission;
pub(crate) mod permissions;
pub(crate) mod script_rights;
pub(crate) mod secrets;
