//! Signals: SIGTERM and SIGINT drain, a second one stops at once, SIGHUP reads the settings again. With a `drain_delay` the
//! first one begins the delay and the second one ends it.
//!
//! A thread of its own waits for them, so that nothing here runs in a signal handler.

use std::sync::Arc;
use std::{io, thread};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::{error, info, warn};

use crate::control::{Adopted, Change, Control, Phase};
use crate::logging::Logging;
use crate::settings::Faults;
use crate::settings::config::Resolved;

/// Reads the settings from where they came from.
pub type Load = Box<dyn Fn() -> Result<Resolved, Faults> + Send>;

/// Starts to wait for signals.
///
/// # Errors
/// What the system says when it refuses the thread or the handlers.
pub fn watch(control: Arc<Control>, logging: Logging, load: Load) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let wait = move || {
        for signal in signals.forever() {
            match signal {
                SIGHUP => reload(&control, &logging, &load),
                _ => end(&control),
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop)
}

/// Starts to wait for signals as redis-server does: SIGTERM and SIGINT end it, a second one at once; SIGHUP does nothing.
///
/// # Errors
/// What the system says when it refuses the thread or the handlers.
pub fn watch_as_redis_server(control: Arc<Control>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let wait = move || {
        for signal in signals.forever() {
            match signal {
                SIGHUP => continue,
                SIGINT => warn!("Received SIGINT scheduling shutdown..."),
                _ => warn!("Received SIGTERM scheduling shutdown..."),
            }
            match control.begin_to_end() {
                Phase::Stopping => warn!("stopping at once"),
                _ => warn!("User requested shutdown..."),
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop)
}

fn end(control: &Arc<Control>) {
    match control.begin_to_end() {
        Phase::Leaving => {
            info!("not ready any more: clients are served until the drain delay is over; a second signal ends it");
        }
        Phase::Draining => {
            info!("draining: no new clients, replies still owed are sent; a second signal ends at once");
        }
        _ => warn!("stopping at once"),
    }
}

fn reload(control: &Control, logging: &Logging, load: &Load) {
    match load() {
        Ok(new) => {
            new.warnings.iter().for_each(|warning| warn!("{warning}"));
            let Adopted { changes, has_other_pools, has_other_routes, has_other_users } = control.adopt(new);
            logging.set_level(control.settings().log.level);
            if has_other_users {
                info!("the tables of users were taken over");
            }
            if has_other_pools {
                warn!("pools were added, removed, renamed or moved, which needs a restart");
            } else if has_other_routes {
                info!("the routes and their pools were taken over");
            } else if changes.is_empty() && !has_other_users {
                info!("the settings were read again; nothing changed");
            }
            changes.iter().for_each(tell);
        }
        Err(faults) => error!("the settings were not taken, everything stays as it was:\n{faults}"),
    }
}

fn tell(change: &Change) {
    let name = change.setting.row().name;
    let whose = change.pool.as_ref().map_or_else(String::new, |pool| format!(" of pool {pool}"));
    match change.is_live {
        true => info!("{name}{whose} is now {}", change.value),
        false => warn!("{name}{whose} was changed to {}, which needs a restart", change.value),
    }
}
