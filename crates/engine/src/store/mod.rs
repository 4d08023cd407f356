//! Where bytes lie: the pool of records, the hash table over them, and chance.

pub(crate) mod int_set;
pub(crate) mod listpack;
pub(crate) mod pool;
pub(crate) mod quick_list;
pub(crate) mod random;
pub(crate) mod sorted_index;
pub(crate) mod table;
