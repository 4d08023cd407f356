//! Settings of servers that hold secrets, and requests that would show them.

use respool_wire::Args;

use crate::{Lane, glob};

/// What `CONFIG GET` would show of how servers authenticate each other and their clients.
const SECRET_SETTINGS: &[&[u8]] =
    &[b"requirepass", b"masterauth", b"masteruser", b"tls-key-file-pass", b"tls-client-key-file-pass"];

/// Whether a setting of servers, named in any case, holds a secret.
pub fn is_secret_setting(name: &[u8]) -> bool {
    SECRET_SETTINGS.iter().any(|secret| name.eq_ignore_ascii_case(secret))
}

/// `CONFIG GET` is a harmless look unless one of its patterns reaches a secret.
pub(crate) fn lane_of_config_get(args: Args<'_>) -> Lane {
    let shows_secret = |pattern: &[u8]| SECRET_SETTINGS.iter().any(|name| glob::matches_in_any_case(pattern, name));
    if args.from(2).iter().any(shows_secret) { Lane::Admin } else { Lane::Shared }
}
