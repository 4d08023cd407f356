//! What other features tell subscriptions and tracking, see [`crate::interfaces::read_tracker`].

use crate::env::Env;
use crate::ids::{ClientId, LaneKeyId};
use crate::interfaces::read_tracker::ReadTracker;
use crate::pool::key_id::LaneKey;
use crate::session::Flow;
use crate::tracking::Subscriptions;
use respool_access::User;
use respool_command::{Execute, Row};
use respool_wire::Args;

impl ReadTracker for Subscriptions {
    fn track_request(&mut self, env: &mut Env<impl Execute>, index: ClientId, row: &'static Row, args: Args<'_>) {
        Self::track_request(self, env, index, row, args);
    }

    fn track_part(&mut self, env: &mut Env<impl Execute>, index: ClientId, row: &'static Row, args: Args<'_>) {
        Self::track_part(self, env, index, row, args);
    }

    fn end_parts(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        Self::end_parts(self, env, index);
    }

    fn hear_out(&mut self, env: &mut Env<impl Execute>, index: ClientId) -> Option<Flow> {
        Self::hear_out(self, env, index)
    }

    fn speak_otherwise(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        class: LaneKeyId,
        state: LaneKey,
    ) -> bool {
        Self::speak_otherwise(self, env, index, class, state)
    }

    fn restart_noloop(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        Self::restart_noloop(self, env, index);
    }

    fn forget_read_as_other(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        Self::forget_read_as_other(self, env, index);
    }

    fn hears_too_much(&self, env: &Env<impl Execute>, index: ClientId, user: &User) -> bool {
        Self::hears_too_much(self, env, index, user)
    }
}
