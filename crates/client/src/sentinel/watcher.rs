//! The thread that hears what sentinels tell: that another server is the master now.
//!
//! It listens to one sentinel, and to the next when that one is silent, gone, or behind what another has told. What was told meanwhile is made
//! up for: whenever it has begun to listen it asks where the master is, on another connection, since one that listens answers nothing else.

use super::{Role, Sentinels, Told};
use crate::Config;
use crate::core::{Failure, Lookup};
use crate::limits::SENTINEL_SILENCE;
use std::net::SocketAddr;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long it is waited before sentinels are tried again of which none answers.
const PAUSE: Duration = Duration::from_millis(500);

/// The life of the thread.
pub(super) fn run(weak: &Weak<Sentinels>, config: &Config) {
    let lookup = Lookup::default();
    // Sentinels in a row that knew of an older master than was told. If all are such, one is listened to.
    let mut behind = 0;
    loop {
        // It returns when nothing is connected any longer, or this sentinel is gone.
        let ended = listen(weak, config, &lookup, behind);
        let Some(sentinels) = weak.upgrade() else { return };
        if sentinels.retire() {
            return;
        }
        behind = if matches!(ended, Ok(Ended::IsBehind)) { behind + 1 } else { 0 };
        if matches!(ended, Ok(Ended::IsIdle)) {
            // A connection was begun just now.
            continue;
        }
        sentinels.last.fetch_add(1, Ordering::Relaxed);
        drop(sentinels);
        std::thread::sleep(PAUSE);
    }
}

/// Why a sentinel is not listened to any longer, beside that it is gone.
enum Ended {
    /// Nothing is connected any longer.
    IsIdle,
    /// It knows of an older master than was told.
    IsBehind,
}

/// Hears what one sentinel tells, until it is gone or nothing is connected any longer. So many were `behind` just now.
fn listen(weak: &Weak<Sentinels>, config: &Config, lookup: &Lookup, behind: usize) -> Result<Ended, Failure> {
    let Some(sentinels) = weak.upgrade() else { return Ok(Ended::IsIdle) };
    let is_last_resort = behind >= super::lock(&sentinels.known).len();
    let settings = {
        let known = super::lock(&sentinels.known).clone();
        let place = sentinels.last.load(Ordering::Relaxed) % known.len().max(1);
        let Some((host, port)) = known.get(place) else {
            return Err(Failure::Lost("no sentinel is known".to_owned()));
        };
        sentinels.settings(config, host, *port)
    };
    let mut talk = super::Talk::connect(&settings, lookup, Instant::now() + config.connect_limit)?;
    sentinels.learn(&mut talk)?;
    talk.ask(&[b"SUBSCRIBE", b"+switch-master"])?;
    // The order matters: what changes behind the subscription is told, and what has changed before it is in the answer.
    let (mut asked, mut epoch) = (None, None);
    if sentinels.role == Role::Master {
        asked = ask_beside(&sentinels, &settings, config, lookup)?;
        epoch = asked.as_ref().and_then(|told| told.epoch);
        if asked.as_ref().is_some_and(|told| !sentinels.note_epoch(told)) {
            asked = None;
        }
    }
    drop(sentinels);
    let mut heard = Instant::now();
    let mut pinged = heard;
    loop {
        if let (Some(told), Some(sentinels)) = (&asked, weak.upgrade()) {
            // While the name is not found, no connection is given up: it may be in good order.
            let found = addresses(lookup, &told.host, told.port);
            if !found.is_empty() {
                sentinels.leave(found);
                asked = None;
            }
        }
        talk.extend(Instant::now() + SENTINEL_SILENCE / 4);
        let reply = talk.hear()?;
        let Some(sentinels) = weak.upgrade() else { return Ok(Ended::IsIdle) };
        if super::lock(&sentinels.sockets).is_idle() {
            return Ok(Ended::IsIdle);
        }
        // Others may have told of a later one since, as when the first connection is made.
        if !is_last_resort && epoch.is_some() && epoch < *super::lock(&sentinels.epoch) {
            return Ok(Ended::IsBehind);
        }
        let now = Instant::now();
        if let Some(reply) = reply {
            heard = now;
            let mut words = super::talk::words(reply);
            if words.next().as_deref() == Some("message") {
                let what = words.nth(1).unwrap_or_default();
                if sentinels.take_switch(&what, lookup) {
                    asked = None;
                    // By its epoch a sentinel that has not heard of it is known.
                    if let Ok(Some(told)) = ask_beside(&sentinels, &settings, config, lookup) {
                        sentinels.note_epoch(&told);
                        epoch = told.epoch;
                    }
                }
            }
        }
        if now.saturating_duration_since(heard) >= SENTINEL_SILENCE {
            return Err(Failure::Lost("the sentinel is silent".to_owned()));
        }
        if now.saturating_duration_since(pinged) >= SENTINEL_SILENCE / 4 {
            pinged = now;
            talk.tell(&[b"PING"])?;
        }
    }
}

/// Asks the sentinel that is listened to where the master is, by another connection.
fn ask_beside(
    sentinels: &Sentinels,
    settings: &Config,
    config: &Config,
    lookup: &Lookup,
) -> Result<Option<Told>, Failure> {
    let mut second = super::Talk::connect(settings, lookup, Instant::now() + config.connect_limit)?;
    sentinels.master(&mut second)
}

/// The addresses of a host; none if they are not found.
fn addresses(lookup: &Lookup, host: &str, port: u16) -> Vec<SocketAddr> {
    lookup.addresses(host, port, SENTINEL_SILENCE / 4).unwrap_or_default()
}

impl Sentinels {
    /// A sentinel tells: name, old host, old port, new host, new port. Whether that is about this master.
    fn take_switch(&self, text: &str, lookup: &Lookup) -> bool {
        let words: Vec<&str> = text.split(' ').collect();
        let [name, _, _, host, port] = words[..] else { return false };
        if name != self.name {
            return false;
        }
        self.leave(match (self.role, port.parse()) {
            // The server that was left is no master, also while the name of the other is not found.
            (Role::Master, Ok(port)) => addresses(lookup, host, port),
            // The roles of all have changed.
            _ => Vec::new(),
        });
        true
    }
}
