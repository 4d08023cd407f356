//! Stands for `http.rs` in programs that are built without the feature `admin-http`: the setting is known and is refused.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::{InstanceWorkers, Metrics, Running};
use crate::control::Control;
use crate::settings::Address;

/// Refuses.
///
/// # Errors
/// Always.
pub fn start(
    _: &Address,
    _: Option<OwnedFd>,
    _: Arc<Control>,
    _: Metrics,
    _: Vec<InstanceWorkers>,
) -> io::Result<Running> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this program was built without the feature admin-http"))
}
