//! How many bytes the keyspace takes: a sum that is kept up to date where memory is taken, grows and is freed.
//!
//! The pool counts the slots and vectors of records; what values hold beside them is counted where they are kept by number, and where
//! they wait to be freed; the keyspace counts the tables of its databases. Tests compare the sum with a walk over every record.

use super::Keyspace;

impl Keyspace {
    /// Bytes that keys and values take, those on their way to be freed included. What the allocator holds beyond, such as free slots
    /// of pages, is not in it: the next values get that.
    #[inline]
    pub(crate) fn used_bytes(&self) -> usize {
        self.heap.pool.used_bytes() + self.objects.used_bytes() + self.table_bytes + self.lazy_free.memory_bytes()
    }

    /// How many structures wait to be freed.
    pub(crate) fn waiting_to_be_freed(&self) -> usize {
        self.lazy_free.len()
    }

    /// What it takes without any key.
    #[inline]
    pub(crate) fn own_bytes(&self) -> usize {
        size_of::<Self>() + self.databases.len() * size_of::<super::Database>()
    }

    /// What `maxmemory` bounds: [`Keyspace::used_bytes`], what scripts hold, and what there is without either.
    #[inline]
    pub(crate) fn bounded_bytes(&self) -> usize {
        self.own_bytes() + self.used_bytes() + self.script_memory.bytes()
    }

    /// Bytes held from the allocator, those of scripts included.
    pub(crate) fn memory_bytes(&self) -> usize {
        let values = self.heap.pool.memory_bytes() + self.objects.memory_bytes();
        values + self.table_bytes + self.lazy_free.memory_bytes() + self.script_memory.bytes()
    }

    /// Counts the tables of a database, one of which has grown or shrunk.
    #[inline(never)]
    pub(super) fn count_tables(&mut self, database: usize) {
        let database = &mut self.databases[database];
        let bytes = database.memory_bytes();
        let before = std::mem::replace(&mut database.counted_bytes, bytes);
        self.table_bytes = self.table_bytes + bytes - before;
    }

    /// As [`Keyspace::used_bytes`], by a walk over everything.
    #[cfg(debug_assertions)]
    pub(crate) fn walked_bytes(&self) -> usize {
        let mut records = 0;
        let lazy_free = self.lazy_free.walk(&mut |record, is_key| {
            records += if is_key { self.walk_key(record) } else { self.heap.pool.record_bytes(record) };
        });
        for database in &self.databases {
            records += database.table.iter().map(|record| self.walk_key(record)).sum::<usize>();
        }
        records + lazy_free + self.databases.iter().map(super::Database::memory_bytes).sum::<usize>()
    }

    /// Bytes of a key and what it holds.
    #[cfg(debug_assertions)]
    fn walk_key(&self, record: super::Handle) -> usize {
        let pool = &self.heap.pool;
        let value = match super::KeyRecord::new(pool.get(record)).value() {
            super::Value::Long(handle) => pool.record_bytes(handle),
            super::Value::Object(_, number) => self.objects.get(number).map_or(0, |object| {
                let mut records = 0;
                let own = object.walk(&mut |record| records += pool.record_bytes(record));
                records + own + crate::store::weighed::Weighed::<crate::values::Object>::PLACE_BYTES
            }),
            _ => 0,
        };
        pool.record_bytes(record) + value
    }
}

#[cfg(test)]
mod tests {
    use crate::transcript::Script;
    use crate::{Engine, EngineConfig};

    /// A list of 100 KB, in pieces that one chunk each has.
    fn grow(script: &mut Script) -> String {
        let piece = "x".repeat(10_000);
        script.say(&format!("RPUSH large{}", format!(" {piece}").repeat(10)))
    }

    #[test]
    fn one_large_value_among_small_ones_is_counted() {
        let mut script = Script::new();
        for number in 0..1_000 {
            script.say(&format!("RPUSH small{number} a"));
        }
        let before = script.engine.used_bytes();
        for _ in 0..100 {
            grow(&mut script);
        }
        let grown = script.engine.used_bytes() - before;
        assert!((10_000_000..12_000_000).contains(&grown), "{grown}");
        script.say("DEL large");
        assert_eq!(script.engine.used_bytes(), before);
    }

    #[test]
    fn one_large_value_is_refused_what_there_is_no_room_for() {
        let mut script = Script::new();
        let config = EngineConfig { memory_bytes_max: Some(2_000_000), ..EngineConfig::default() };
        script.engine = Engine::new(config, [1, 2]);
        for number in 0..1_000 {
            script.say(&format!("RPUSH small{number} a"));
        }
        let taken = (0..100).take_while(|_| grow(&mut script).starts_with(':')).count();
        assert!((15..20).contains(&taken), "{taken}");
    }

    #[test]
    fn a_small_value_among_large_ones_does_not_count_as_large() {
        let mut script = Script::new();
        for _ in 0..20 {
            grow(&mut script);
        }
        let before = script.engine.used_bytes();
        for number in 0..1_000 {
            script.say(&format!("SADD small{number} 1"));
        }
        let grown = script.engine.used_bytes() - before;
        assert!(grown < 150_000, "{grown}");
    }
}
