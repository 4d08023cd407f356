//! Classes of lanes without a client: their numbers are given to others when they run out.
//!
//! A worker has so many classes and so many names at nodes. What a client asks for once, be it a database that no node has,
//! must not cost one of them for good: otherwise a client that goes through all databases has all others refused for ever.

use crate::ended::Ended;
use crate::env::Env;
use crate::ids::{LaneId, LaneKeyId, PerKey};
use crate::pool::key_id::{KeyOwner, LaneKey};
use crate::pool::{Lane, LaneUse, Lanes};
use respool_command::Execute;
use respool_connection::Credentials;
use std::sync::Arc;

impl Lanes {
    /// Classes in which something waits.
    fn held_classes(&self) -> impl Iterator<Item = LaneKeyId> {
        self.uses.entries().filter(|(_, held)| Arc::strong_count(held) > 1).map(|(class, _)| class)
    }

    /// The lanes of a class, if all of them can be closed without a client noticing.
    fn spare_lanes(&self, class: LaneKeyId) -> Option<Vec<LaneId>> {
        let is_spare = |place: LaneId, lane: &Lane| {
            let is_free = match lane.purpose {
                LaneUse::Shared | LaneUse::Successor | LaneUse::Leaving | LaneUse::Blocking => true,
                LaneUse::Private => self.warm.contains(&place),
                LaneUse::Own | LaneUse::Push | LaneUse::PushSuccessor | LaneUse::Listen | LaneUse::Dedicated => false,
            };
            is_free && lane.is_settled() && lane.selects.is_empty()
        };
        let lanes = self.all.entries().filter(|(_, lane)| !lane.is_retired && lane.class == class);
        lanes.map(|(place, lane)| is_spare(place, lane).then_some(place)).collect()
    }
}

impl<E: Execute> Env<E> {
    /// The number of the class with this state. `None`: there are as many as there may be, and all are used.
    pub(crate) fn class_of(&mut self, class: LaneKey) -> Option<LaneKeyId> {
        self.lanes.class(class).or_else(|| {
            self.clear_classes();
            self.lanes.class(class)
        })
    }

    /// The number of the node user of this name. `None`: there are as many as there may be, and all do.
    pub(crate) fn node_user(&mut self, credentials: Option<&Arc<Credentials>>) -> Option<u16> {
        self.lanes.node_user(credentials).or_else(|| {
            self.clear_classes();
            self.lanes.node_user(credentials)
        })
    }

    /// For each class, whether some client is in it, or waits for what it has asked there.
    pub(crate) fn used_classes(&self) -> PerKey<bool> {
        let mut is_used = PerKey::default();
        is_used.resize(self.lanes.owners.len());
        // Every client begins in the first.
        is_used[LaneKeyId::PLAIN] = true;
        let of_sessions = self.clients.sessions.iter().map(|(_, session)| self.lanes.base(session.class));
        let of_features = self.lanes.held_classes().chain(self.tasks.classes());
        let of_scripts = self.clients.sessions.iter().map(|(_, session)| self.lanes.sharing(session.class));
        let of_selects = self.ended.iter().filter_map(Ended::class);
        let of_requests = of_features.chain(of_selects);
        of_sessions.chain(of_scripts).chain(of_requests).for_each(|class| is_used[class] = true);
        is_used
    }

    #[cold]
    fn clear_classes(&mut self) {
        for (class, is_used) in self.used_classes().into_entries() {
            if is_used || !matches!(self.lanes.owners[class], KeyOwner::Shared) {
                continue;
            }
            let classes: Vec<LaneKeyId> = self.lanes.script_classes_of(class).chain([class]).collect();
            let spare: Option<Vec<_>> = classes.iter().map(|class| self.lanes.spare_lanes(*class)).collect();
            let Some(lanes) = spare else { continue };
            for lane in lanes.into_iter().flatten() {
                if self.lanes[lane].purpose == LaneUse::Shared {
                    self.lanes.leave(lane);
                }
                self.close_lane(lane);
            }
            self.lanes.script_classes.forget(class);
            classes.into_iter().for_each(|class| self.lanes.owners[class] = KeyOwner::Free);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_held_until_the_last_that_waits_in_it_ends() {
        let config = crate::testing::config();
        let mut lanes = Lanes::new(&config, 1);
        let state = LaneKey { database: 1, ..lanes.state_of(LaneKeyId::PLAIN) };
        let class = lanes.class(state).expect("there are numbers");
        let held = |lanes: &Lanes| lanes.held_classes().collect::<Vec<_>>();
        assert!(held(&lanes).is_empty());
        let waits = lanes.use_class(class);
        let is_put_back = waits.clone();
        drop(waits);
        assert_eq!((held(&lanes), is_put_back.id()), (vec![class], class));
        drop(is_put_back);
        assert!(held(&lanes).is_empty());
    }
}
