//! Requests for [`Subset::Table`](crate::Subset): every family of the command table, beyond what means the same on any
//! number of nodes.

/// Written as the templates of the script itself; `#k` is a serialised string, `#l` a library of functions, `#h` the hash
/// of a script that some template runs, `~` a space within an argument. Scans ask for more than there is, so that one step
/// is all of it.
pub(crate) const TABLE_TEMPLATES: &str = "
    EVAL return~1 0 | EVAL return~redis.call('set',KEYS[1],ARGV[1]) 1 @s #v | EVAL return~{1,2,{3,'a'},false} 0 |
    EVAL return~redis.call('get',KEYS[1]) 1 @s | EVAL return~redis.call('get',KEYS[1]) 1 @l | EVAL return~{err='MY~error'} 0 |
    EVAL return~{ok='fine'} 0 | EVAL return~nonsense( 0 | EVAL return~KEYS 2 @s @l #v | EVAL return~ARGV 0 #w #w |
    EVAL redis.setresp(3);return~{double=1.5} 0 | EVAL redis.setresp(3);return~{map={a=1}} 0 | EVAL redis.setresp(3);return~true 0 |
    EVAL return~1 #n | EVAL return~1 | EVAL return~redis.call('select',0) 0 | EVAL return~redis.call('nosuch') 0 |
    EVAL return~redis.pcall('incr',KEYS[1]) 1 @s | EVAL_RO return~redis.call('get',KEYS[1]) 1 @s |
    EVAL_RO return~redis.call('set',KEYS[1],1) 1 @s | EVAL #!lua~flags=no-writes\nreturn~1 0 |
    EVALSHA #h 0 | EVALSHA #h 1 @s | EVALSHA #h 1 @s #v | EVALSHA_RO #h 1 @s | EVALSHA 0123456789012345678901234567890123456789 0 |
    EVALSHA short 0 | SCRIPT LOAD return~1 | SCRIPT LOAD return~redis.call('get',KEYS[1]) | SCRIPT LOAD nonsense( |
    SCRIPT EXISTS #h #h | SCRIPT EXISTS #h nonsense | SCRIPT FLUSH | SCRIPT FLUSH ASYNC | SCRIPT FLUSH SYNC | SCRIPT FLUSH #w |
    SCRIPT KILL | SCRIPT HELP | SCRIPT NOSUCH | FUNCTION LOAD #l | FUNCTION LOAD REPLACE #l | FUNCTION LOAD #w |
    FUNCTION LOAD REPLACE #l | FCALL put 1 @s #v | FCALL take 1 @s | FCALL nosuch 0 | FCALL_RO take 1 @s | FCALL_RO put 1 @s #v |
    FCALL put #n @s | FUNCTION LIST | FUNCTION LIST WITHCODE | FUNCTION LIST LIBRARYNAME own* | FUNCTION LIST NOSUCH |
    FUNCTION DELETE own | FUNCTION DELETE nosuch | FUNCTION FLUSH | FUNCTION FLUSH ASYNC | FUNCTION DUMP | FUNCTION RESTORE #v |
    FUNCTION RESTORE #k FLUSH | FUNCTION STATS | FUNCTION KILL | FUNCTION HELP |
    XADD @a #d field #v | XADD @a NOMKSTREAM #d field #v | XADD @a MAXLEN 10 #d f #v | XGROUP CREATE @a g1 0 MKSTREAM |
    XGROUP CREATE @a g1 #d | XGROUP CREATE @a g2 $ MKSTREAM | XGROUP SETID @a g1 #d | XGROUP DESTROY @a g2 |
    XGROUP CREATECONSUMER @a g1 #w | XGROUP DELCONSUMER @a g1 #w | XGROUP HELP | XREADGROUP GROUP g1 #w STREAMS @a > |
    XREADGROUP GROUP g1 #w COUNT #i NOACK STREAMS @a @a > > | XREADGROUP GROUP g1 #w STREAMS @a 0 |
    XREADGROUP GROUP g1 #w STREAMS @a @a > | XREAD COUNT 3 STREAMS @a @a 0 0 | XREAD STREAMS @a @a #d $ | XREAD STREAMS @s 0 |
    XACK @a g1 #d #d | XPENDING @a g1 | XPENDING @a g1 - + 10 | XPENDING @a g1 - + 10 #w | XCLAIM @a g1 #w 0 #d #d |
    XCLAIM @a g1 #w 0 #d JUSTID | XAUTOCLAIM @a g1 #w 0 0 COUNT 2 | XAUTOCLAIM @a g1 #w 0 #d JUSTID | XINFO STREAM @a |
    XINFO STREAM @a FULL | XINFO STREAM @a FULL COUNT 1 | XINFO GROUPS @a | XINFO CONSUMERS @a g1 | XINFO HELP | XINFO STREAM @s |
    XTRIM @a MINID #d | XDEL @a #d #d | XSETID @a #d ENTRIESADDED 100 MAXDELETEDID 0-1 |
    SORT @l BY nosort | SORT @l ALPHA BY s* GET # GET s* | SORT @l BY h*->x GET h*->x ALPHA | SORT @t ALPHA LIMIT 0 #i |
    SORT @z BY nosort DESC | SORT @l ALPHA GET s* STORE @l | SORT_RO @l ALPHA BY s* GET h*->alpha | SORT @s |
    GEOADD @g 2.35 48.85 #m 13.4 52.5 #m 12.5 41.9 #m | GEORADIUS @g 15 37 2000 km WITHCOORD WITHDIST WITHHASH ASC |
    GEORADIUS_RO @g 15 37 2000 km WITHDIST COUNT 2 ASC | GEORADIUSBYMEMBER @g #m 1000 km ASC | GEORADIUSBYMEMBER_RO @g #m 500 km ASC |
    GEORADIUS @g 15 37 2000 km STORE @z | GEORADIUS @g 15 37 2000 km ASC STOREDIST @z | GEOSEARCH @g FROMMEMBER #m BYBOX 1000 1000 km DESC |
    GEOSEARCHSTORE @z @g FROMLONLAT 15 37 BYRADIUS 2000 km STOREDIST | GEOHASH @g #m #m missing |
    SCAN 0 COUNT 100000 | SCAN 0 MATCH #p COUNT 100000 | SCAN 0 TYPE hash COUNT 100000 | SCAN 0 TYPE nonsense COUNT 100000 | SCAN abc |
    SCAN 0 COUNT 0 | SCAN 0 NOSUCH 1 | SCAN 18446744073709551616 COUNT 100000 | SCAN +0 COUNT 100000 | HSCAN @h 0 COUNT 100000 | HSCAN @h 0 MATCH *a* COUNT 100000 |
    SSCAN @t 0 COUNT 100000 | ZSCAN @z 0 COUNT 100000 | ZSCAN @z abc | HSCAN @s 0 | SSCAN @t 0 COUNT abc |
    RANDOMKEY | SRANDMEMBER @t | SRANDMEMBER @t 1000 | HRANDFIELD @h | HRANDFIELD @h 1000 WITHVALUES | ZRANDMEMBER @z 3 |
    ZRANDMEMBER @z 3 WITHSCORES | SPOP @t 1000 | EXPIRE @s 100000 | EXPIRE @s 100000 NX | PEXPIRE @h 100000000 | SETEX @s 100000 #v |
    PSETEX @s 100000000 #v | SETEX @s 0 #v | SET @s #v EX 100000 | GETEX @s EX 100000 | TTL @s | PTTL @s | TTL @l |
    OBJECT IDLETIME @s | OBJECT FREQ @s | MEMORY USAGE @s | MEMORY USAGE @s SAMPLES 0 | MEMORY USAGE nosuch | MEMORY PURGE | MEMORY STATS |
    MEMORY DOCTOR | MEMORY MALLOC-STATS | MEMORY HELP | RESTORE @s 0 #k | RESTORE @s 0 #k REPLACE | RESTORE @s 0 #v REPLACE |
    RESTORE @s -1 #k | DUMP @s | DUMP nosuch | MIGRATE 127.0.0.1 1 @s 0 100 | MIGRATE 127.0.0.1 1 nosuch 0 100 |
    SWAPDB 0 1 | SWAPDB 0 99 | SWAPDB a b | FLUSHDB | FLUSHDB ASYNC | FLUSHALL SYNC | FLUSHALL #w | DBSIZE | COPY @s @h | MOVE @h 1 |
    CONFIG GET maxmemory* | CONFIG GET hash-max-listpack-entries list-max-listpack-size | CONFIG GET nosuch* | CONFIG SET hash-max-listpack-entries 512 |
    CONFIG SET hash-max-listpack-entries 512 zset-max-listpack-entries 128 | CONFIG SET nosuch 1 | CONFIG SET maxmemory-policy nonsense | CONFIG RESETSTAT |
    CONFIG REWRITE | CONFIG HELP | CONFIG NOSUCH | INFO | INFO server | INFO nosuch | INFO everything | INFO server clients |
    SLOWLOG GET | SLOWLOG GET 2 | SLOWLOG GET -1 | SLOWLOG GET -2 | SLOWLOG LEN | SLOWLOG RESET | SLOWLOG HELP |
    LATENCY LATEST | LATENCY HISTORY command | LATENCY RESET | LATENCY RESET command fork | LATENCY DOCTOR | LATENCY GRAPH command |
    LATENCY HISTOGRAM nosuch | LATENCY HELP | LASTSAVE | SAVE | ROLE | TIME | LOLWUT | LOLWUT VERSION 5 1 1 1 |
    REPLICAOF NO ONE | SLAVEOF NO ONE | REPLICAOF a b c | FAILOVER | FAILOVER ABORT | MODULE LIST | MODULE LOAD nosuch.so | MODULE UNLOAD nosuch | MODULE HELP |
    ACL WHOAMI | ACL CAT | ACL CAT string | ACL CAT nosuch | ACL USERS | ACL LIST | ACL GETUSER default | ACL GETUSER nosuch | ACL GENPASS | ACL GENPASS 5 |
    ACL GENPASS x | ACL LOG | ACL LOG RESET | ACL DRYRUN default GET x | ACL DRYRUN nosuch GET x | ACL HELP | ACL SAVE | ACL LOAD | ACL DELUSER nosuch |
    AUTH nonsense | AUTH default x | AUTH nosuch x | AUTH a b c |
    COMMAND COUNT | COMMAND | COMMAND INFO get set nosuch | COMMAND INFO config|get | COMMAND DOCS get | COMMAND DOCS nosuch | COMMAND LIST |
    COMMAND LIST FILTERBY ACLCAT string | COMMAND LIST FILTERBY PATTERN x* | COMMAND LIST FILTERBY MODULE m | COMMAND LIST FILTERBY NOSUCH m |
    COMMAND GETKEYS mset a 1 b 2 | COMMAND GETKEYS get | COMMAND GETKEYS nosuch a | COMMAND GETKEYS ping | COMMAND GETKEYSANDFLAGS sort l store d |
    COMMAND GETKEYSANDFLAGS eval s 2 a b | COMMAND HELP | COMMAND NOSUCH |
    CLIENT ID | CLIENT INFO | CLIENT LIST | CLIENT LIST TYPE normal | CLIENT LIST TYPE nosuch | CLIENT LIST ID 999999 | CLIENT LIST ID x | CLIENT SETNAME #w |
    CLIENT SETNAME a~b | CLIENT GETNAME | CLIENT KILL ID 999999 | CLIENT KILL 127.0.0.1:1 | CLIENT KILL TYPE nosuch | CLIENT KILL ID 0 | CLIENT KILL NOSUCH x |
    CLIENT KILL ADDR 1.2.3.4:5 | CLIENT KILL USER nosuch | CLIENT KILL SKIPME nosuch | CLIENT NO-EVICT ON | CLIENT NO-EVICT OFF | CLIENT NO-EVICT #w |
    CLIENT UNPAUSE | CLIENT UNBLOCK 999999 | CLIENT UNBLOCK x | CLIENT UNBLOCK 1 NOSUCH | CLIENT GETREDIR | CLIENT TRACKINGINFO | CLIENT HELP | CLIENT NOSUCH |
    CLIENT TRACKING OFF | CLIENT TRACKING NOSUCH | CLIENT CACHING YES | CLIENT CACHING NOSUCH |
    CLUSTER INFO | CLUSTER NODES | CLUSTER SLOTS | CLUSTER SHARDS | CLUSTER KEYSLOT a | CLUSTER MYID | CLUSTER HELP | CLUSTER NOSUCH | CLUSTER COUNTKEYSINSLOT 1 |
    ASKING | READONLY | READWRITE | RESET | HELLO | HELLO 2 | HELLO 3 | HELLO 3 | HELLO 4 | HELLO x | HELLO 3 SETNAME #m | HELLO 3 NOSUCH | HELLO 3 AUTH default x |
    PUBLISH #w #v | SPUBLISH #w #v | PUBSUB CHANNELS | PUBSUB CHANNELS #p | PUBSUB NUMSUB | PUBSUB NUMSUB a b | PUBSUB NUMPAT | PUBSUB SHARDCHANNELS |
    PUBSUB SHARDNUMSUB a | PUBSUB HELP | UNWATCH | EXEC | DISCARD | WATCH @s | ECHO #v | PING #v | PING a b |
    XADD @a 5-1 c | RENAME nosuch @s | BITFIELD_RO @b SET u8 0 1 | SINTERCARD 0 a | LMPOP 0 a LEFT | ZADD @z NX XX 1 a | OBJECT | CONFIG | DEBUG
";

/// The scripts of the templates whose hashes `#h` stands for, and one that nothing loads.
pub(crate) const SCRIPT_HASHES: &[&str] = &[
    // return 1
    "e0e1f9fabfc9d4800c877a703b823ac0578ff8db",
    // return redis.call('get',KEYS[1])
    "fd758d1589d044dd850a6f05d52f2eefd27f033f",
    // return redis.call('set',KEYS[1],ARGV[1])
    "c686f316aaf1eb01d5a4de1b0b63cd233010e63d",
    "ffffffffffffffffffffffffffffffffffffffff",
];

/// A library with a function that writes and one that only reads.
pub(crate) const LIBRARY: &str = "#!lua name=own\n\
    redis.register_function('put', function(keys, args) return redis.call('set', keys[1], args[1]) end)\n\
    redis.register_function{function_name='take', callback=function(keys) return redis.call('get', keys[1]) end, \
    flags={'no-writes'}}\n";

/// What `DUMP` of a string with the integer 10 gives since Redis 7.0.
pub(crate) const SERIALISED: &[u8] = b"\x00\xc0\n\n\x00n\x9fWE\x0e\xaec\xbb";
