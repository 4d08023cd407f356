//! Clients that are owed more than a soft limit allows, and for how long.
//!
//! A client that has more waiting for it when it is looked at is remembered. From then on it is looked at by the timers: with less it is
//! forgotten, with more for too long it is disconnected, whether anything is written to it meanwhile or not.

use crate::config::Config;
use crate::env::Env;
use crate::ids::{ClientHandle, ClientId};
use crate::session::disconnect_log::DisconnectReason;
use crate::session::table::Clients;
use respool_command::Execute;

impl<E: Execute> Env<E> {
    /// Something waits for a client, and it may be more than its soft limit allows.
    #[cold]
    pub(crate) fn note_soft_limit(&mut self, index: ClientId) {
        let Some(client) = self.clients.sessions.handle(index) else { return };
        let is_known = self.client_limits.over_soft.contains_key(&client);
        if !is_known && self.clients.excess_us(&self.config, client).is_some() {
            self.client_limits.over_soft.insert(client, self.now.mono_us);
        }
    }

    /// Disconnects clients that have been beyond their limit for too long.
    pub(crate) fn check_soft_limits(&mut self) {
        if self.client_limits.over_soft.is_empty() {
            return;
        }
        let now_us = self.now.mono_us;
        let mut kept = std::mem::take(&mut self.client_limits.over_soft);
        kept.retain(|client, since_us| match self.clients.excess_us(&self.config, *client) {
            None => false,
            Some(us) if now_us.saturating_sub(*since_us) <= us => true,
            Some(_) => {
                self.cut_off(client.index, DisconnectReason::SoftLimit);
                false
            }
        });
        self.client_limits.over_soft = kept;
    }
}

impl Clients {
    /// For how long a client may be owed what it is owed now, in microseconds. `None`: for ever.
    fn excess_us(&self, config: &Config, client: ClientHandle) -> Option<u64> {
        let session = self.sessions.get(client)?;
        if session.is_replica() {
            return None;
        }
        let subscriber = session.subscriber.as_ref().filter(|subscriber| subscriber.is_subscribed());
        let limits = config.budgets.soft_limits;
        let limit = if subscriber.is_some() { limits.subscriber } else { limits.normal };
        let owed = session.reply_bytes() + session.subscriber.as_ref().map_or(0, |s| s.backlog_bytes());
        (owed > limit.bytes).then_some(limit.us)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::SoftLimit;
    use crate::testing::{env_of, roomy_config};

    #[test]
    fn a_client_over_its_soft_limit_has_so_much_time_to_read() {
        let mut config = roomy_config();
        config.budgets.soft_limits.normal = SoftLimit { bytes: 10, us: 100 };
        let mut env = env_of(config, None);
        let [slow, quick] = [(), ()].map(|()| env.test_client());
        for client in [slow, quick] {
            env.answer(client, |reply| reply.bulk(&[b'x'; 20]));
            env.note_soft_limit(client);
            env.note_soft_limit(client);
        }
        assert_eq!(env.client_limits.over_soft.len(), 2, "each is noted once");
        env.take_output(quick);
        env.now.mono_us += 100;
        env.check_soft_limits();
        assert_eq!((env.client_limits.over_soft.len(), env.clients.sessions.len()), (1, 2));
        env.now.mono_us += 1;
        env.check_soft_limits();
        assert!(env.clients.sessions.at(slow).is_none() && env.clients.sessions.at(quick).is_some());
        assert!(env.client_limits.over_soft.is_empty());
    }
}
