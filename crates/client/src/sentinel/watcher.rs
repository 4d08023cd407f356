//! The thread that hears what sentinels tell: that another server is the master now.
//!
//! It listens to one sentinel, and to the next when that one is silent or gone. What was told meanwhile is made up for: whenever it
//! begins to listen it asks where the master is.

use super::{Role, Sentinels};
use crate::Config;
use crate::core::{Failure, Lookup};
use crate::limits::SENTINEL_SILENCE;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long it is waited before sentinels are tried again of which none answers.
const PAUSE: Duration = Duration::from_millis(500);

/// The life of the thread.
pub(super) fn run(weak: &Weak<Sentinels>, config: &Config) {
    let lookup = Lookup::default();
    loop {
        // It returns when the client is gone, or this sentinel is.
        let _ = listen(weak, config, &lookup);
        let Some(sentinels) = weak.upgrade() else { return };
        sentinels.last.fetch_add(1, Ordering::Relaxed);
        drop(sentinels);
        std::thread::sleep(PAUSE);
    }
}

fn listen(weak: &Weak<Sentinels>, config: &Config, lookup: &Lookup) -> Result<(), Failure> {
    let Some(sentinels) = weak.upgrade() else { return Ok(()) };
    let mut talk = {
        let known = super::lock(&sentinels.known).clone();
        let place = sentinels.last.load(Ordering::Relaxed) % known.len().max(1);
        let Some((host, port)) = known.get(place) else { return Ok(()) };
        let settings = sentinels.settings(config, host, *port);
        super::Talk::connect(&settings, lookup, Instant::now() + config.connect_limit)?
    };
    sentinels.learn(&mut talk)?;
    // The order matters: what changes behind the question is told.
    let mut other = None;
    if sentinels.role == Role::Master {
        other = sentinels.master(&mut talk)?;
    }
    talk.ask(&[b"SUBSCRIBE", b"+switch-master"])?;
    if let Some((host, port)) = other {
        sentinels.leave_others(&host, port);
    }
    drop(sentinels);
    let mut heard = Instant::now();
    let mut pinged = heard;
    loop {
        talk.extend(Instant::now() + SENTINEL_SILENCE / 4);
        let reply = talk.hear()?;
        let Some(sentinels) = weak.upgrade() else { return Ok(()) };
        let now = Instant::now();
        if let Some(reply) = reply {
            heard = now;
            let mut words = super::talk::words(reply);
            if words.next().as_deref() == Some("message") {
                let what = words.nth(1).unwrap_or_default();
                sentinels.take_switch(&what);
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

fn addresses(host: &str, port: u16) -> Vec<SocketAddr> {
    (host, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default()
}

impl Sentinels {
    /// A sentinel tells: name, old host, old port, new host, new port.
    fn take_switch(&self, text: &str) {
        let words: Vec<&str> = text.split(' ').collect();
        let [name, _, _, host, port] = words[..] else { return };
        if name != self.name {
            return;
        }
        match (self.role, port.parse()) {
            (Role::Master, Ok(port)) => self.leave_others(host, port),
            // The roles of all have changed.
            _ => self.leave(None),
        }
    }

    /// Connections to other servers than this one are given up.
    fn leave_others(&self, host: &str, port: u16) {
        self.leave(addresses(host, port).first().copied());
    }
}
