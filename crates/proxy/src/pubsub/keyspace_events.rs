//! Keyspace events of the engine in this process: a message to the channel of the key, and one to the channel of the event.
//!
//! An event is published as soon as the engine has executed the command that it follows from, or let time pass. Other clients receive it
//! behind what was published before. A client that makes the change itself and subscribes to it, which takes RESP3, receives it before
//! the reply to its command, and behind the whole reply to EXEC: nothing is written between the elements of an array.

use crate::env::Env;
use crate::push::subscriptions::{Subscriptions, TrackedKeys};
use respool_command::{EventClasses, Execute};
use respool_connection::push::frame::Kind;

impl<T: TrackedKeys> Subscriptions<T> {
    /// Publishes events, each with its database and key, in this order. An engine belongs to one worker, and so do its clients.
    #[cold]
    pub(crate) fn publish_events(&mut self, env: &mut Env<impl Execute>, events: &[(u32, Box<[u8]>, &'static str)]) {
        let is_unheard = |kind: Kind| self.registries[kind as usize].is_empty();
        if events.is_empty() || is_unheard(Kind::Channel) && is_unheard(Kind::Pattern) {
            return;
        }
        let classes = env.config.keyspace_events;
        for (database, key, event) in events {
            if classes.has_any(EventClasses::KEYSPACE) {
                let channel = [format!("__keyspace@{database}__:").as_bytes(), key].concat();
                self.deliver_here(env, Kind::Channel, &channel, event.as_bytes());
            }
            if classes.has_any(EventClasses::KEYEVENT) {
                let channel = format!("__keyevent@{database}__:{event}");
                self.deliver_here(env, Kind::Channel, channel.as_bytes(), key);
            }
        }
    }
}
