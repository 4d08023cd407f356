//! All that the databases held before a FLUSHALL, which is freed a part at a time without a look at its records: they go with their pages.

use super::{Object, Remains};
use crate::limits::records_like;
use crate::store::graves::Graves;
use crate::store::pool::Pool;
use crate::store::weighed::{Footprint, Weighed};

/// See the module documentation.
pub(crate) struct Everything {
    pool: Pool,
    objects: Weighed<Object>,
    /// The values among them that are large, and those that were on their way to be freed.
    graves: Graves<Remains>,
}

impl Everything {
    pub(crate) fn new(pool: Pool, objects: Weighed<Object>, graves: Graves<Remains>) -> Self {
        Self { pool, objects, graves }
    }

    /// Frees about `budget` parts; how many, and whether anything is left.
    pub(super) fn drain(&mut self, budget: usize) -> (usize, bool) {
        let (mut spent, mut records) = (0, Vec::new());
        while spent < budget {
            let (cost, is_left) = self.pool.drop_part(budget - spent);
            spent += cost;
            if is_left {
                continue;
            }
            if let Some(object) = self.objects.pop() {
                spent += 1 + object.map_or(0, |object| self.drop_object(object));
                continue;
            }
            let Some(part) = self.graves.take_part(budget - spent, &mut records) else { return (spent, false) };
            records.clear();
            spent += part.count;
        }
        (spent, true)
    }

    /// Frees a small value, and puts a large one among those that are freed in parts; how many parts were freed.
    fn drop_object(&mut self, object: Object) -> usize {
        let cost = object.free_effort() + records_like(object.memory_bytes());
        match object.into_remains() {
            Some(remains) => {
                self.graves.push(remains);
                0
            }
            None => cost,
        }
    }
}

impl Footprint for Everything {
    fn memory_bytes(&self) -> usize {
        self.pool.used_bytes() + self.objects.used_bytes() + self.graves.memory_bytes()
    }
}
