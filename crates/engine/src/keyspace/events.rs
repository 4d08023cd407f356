//! The names of keyspace events, each with its class. Commands tell of them by `Keyspace::notify`.
//!
//! An event has a name that clients see; that a key has changed is noted apart from it ([`super::journal`]), since neither follows
//! from the other: `XREADGROUP` makes a consumer and leaves the stream as it was, `PFCOUNT` changes what it caches and tells of nothing.

use respool_command::EventClasses;

/// One kind of event.
#[derive(Debug)]
pub(crate) struct KeyEvent {
    pub(super) class: EventClasses,
    /// As clients see it.
    pub(super) name: &'static str,
}

/// The kind of an event that has happened.
pub(crate) type Event = &'static KeyEvent;

macro_rules! events {
    ($($class:ident: $($constant:ident $name:literal)+;)+) => {
        $($(pub(crate) const $constant: Event = &KeyEvent { class: EventClasses::$class, name: $name };)+)+
    };
}

events! {
    GENERIC:
        DEL "del" EXPIRE "expire" PERSIST "persist" RENAME_FROM "rename_from" RENAME_TO "rename_to"
        MOVE_FROM "move_from" MOVE_TO "move_to" COPY_TO "copy_to" RESTORE "restore";
    STRING:
        SET "set" SETRANGE "setrange" APPEND "append" INCRBY "incrby" INCRBYFLOAT "incrbyfloat" SETBIT "setbit"
        PFADD "pfadd";
    LIST:
        LPUSH "lpush" RPUSH "rpush" LPOP "lpop" RPOP "rpop" LINSERT "linsert" LSET "lset" LREM "lrem" LTRIM "ltrim"
        SORTSTORE "sortstore";
    SET:
        SADD "sadd" SREM "srem" SPOP "spop" SINTERSTORE "sinterstore" SUNIONSTORE "sunionstore"
        SDIFFSTORE "sdiffstore";
    HASH:
        HSET "hset" HINCRBY "hincrby" HINCRBYFLOAT "hincrbyfloat" HDEL "hdel" HEXPIRE "hexpire" HPERSIST "hpersist"
        HEXPIRED "hexpired";
    SORTED_SET:
        ZADD "zadd" ZINCR "zincr" ZREM "zrem" ZREMRANGEBYSCORE "zremrangebyscore" ZREMRANGEBYRANK "zremrangebyrank"
        ZREMRANGEBYLEX "zremrangebylex" ZPOPMIN "zpopmin" ZPOPMAX "zpopmax" ZRANGESTORE "zrangestore"
        ZUNIONSTORE "zunionstore" ZINTERSTORE "zinterstore" ZDIFFSTORE "zdiffstore" GEORADIUSSTORE "georadiusstore"
        GEOSEARCHSTORE "geosearchstore";
    STREAM:
        XADD "xadd" XTRIM "xtrim" XDEL "xdel" XSETID "xsetid" XGROUP_CREATE "xgroup-create"
        XGROUP_CREATECONSUMER "xgroup-createconsumer" XGROUP_DELCONSUMER "xgroup-delconsumer"
        XGROUP_DESTROY "xgroup-destroy" XGROUP_SETID "xgroup-setid";
    EXPIRED: EXPIRED "expired";
    EVICTED: EVICTED "evicted";
    KEY_MISS: KEYMISS "keymiss";
    NEW: NEW "new";
}
