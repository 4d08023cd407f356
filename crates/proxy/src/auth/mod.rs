//! Users: who a client is, what it may ask for, and how much of it.

pub(crate) mod acl_command;
mod admission;
pub(crate) mod permissions;
pub(crate) mod quota;
pub(crate) mod script_rights;
pub(crate) mod secrets;
pub(crate) mod users;
