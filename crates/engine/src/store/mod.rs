//! Where bytes lie: the pool of records and the structures over it. Nothing here knows a command or a key's type.

mod chunks;
pub(crate) mod heap;
pub(crate) mod int_set;
pub(crate) mod lazy_free;
pub(crate) mod listpack;
mod liveness;
pub(crate) mod partial_sort;
pub(crate) mod pool;
pub(crate) mod quick_list;
pub(crate) mod random;
pub(crate) mod record;
pub(crate) mod slab;
pub(crate) mod sorted_index;
pub(crate) mod table;
pub(crate) mod weighed;
pub(crate) mod xxh3;
