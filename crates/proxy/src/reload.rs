//! Other settings, while clients are being served.

use crate::config::Config;
use crate::session::Special;
use crate::worker::Worker;
use respool_command::Execute;
use std::sync::Arc;

impl<E: Execute> Worker<E> {
    /// Other settings hold from now on.
    pub(crate) fn adopt(&mut self, config: Arc<Config>) {
        let is_plain = config.routes.are_plain();
        self.config = config;
        self.route_hits.clear();
        let indexes: Vec<u32> = self.clients.sessions.iter().map(|(index, _)| index).collect();
        for index in indexes {
            let Some(session) = self.clients.sessions.at_mut(index) else { continue };
            if is_plain {
                session.special.remove(Special::ROUTED);
            } else {
                session.special.add(Special::ROUTED);
            }
        }
    }
}
