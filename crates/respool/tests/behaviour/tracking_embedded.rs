//! What an embedded server tells clients that track keys.

use std::io;
use std::path::Path;

use respool_testkit::{RedisServer, Respool};

use super::tracking::{IN_RESP3, STORIES};
use super::{proxy, pubsub::tell};

/// What an engine in the same process tells its clients, and what it does not.
const EMBEDDED: &[&[(&str, usize)]] = &[
    &[
        ("CLIENT TRACKING ON NOLOOP", 1),
        ("GET k", 1),
        ("SET k 1", 1),
        ("GET k", 1),
        ("!SETNX k 2", 0),
        ("!DEL other", 0),
        ("!SET k 2", 1),
        ("GET k", 1),
        ("!EXPIRE k 100", 1),
        ("GET k", 1),
        ("!PERSIST k", 1),
        ("GET k", 1),
        ("!APPEND k 3", 1),
        ("GET k", 1),
        ("!INCR k", 1),
        ("LRANGE l 0 -1", 1),
        ("!RPUSH l a b", 1),
        ("LRANGE l 0 -1", 1),
        ("!LPOP l", 1),
        ("HGETALL h", 1),
        ("!HSET h f v", 1),
        ("HGETALL h", 1),
        ("!HDEL h f", 1),
        ("SMEMBERS s", 1),
        ("!SADD s m", 1),
        ("ZRANGE z 0 -1", 1),
        ("!ZADD z 1 m", 1),
        ("GET k", 1),
        ("!RENAME k k2", 1),
        ("MGET k k2", 1),
        ("!MSET k 1 k2 2", 2),
        ("GET k", 1),
        ("MULTI", 1),
        ("SET k 3", 1),
        ("EXEC", 1),
        ("GET k", 1),
        ("!MULTI", 0),
        ("!SET k 4", 0),
        ("!EXEC", 1),
        ("BLPOP l 0", 1),
        ("LRANGE l 0 -1", 1),
        ("BLPOP l 0", 0),
        ("!RPUSH l c", 2),
        ("GET k", 1),
        ("!FLUSHDB", 1),
        ("SET gone 1 PX 1", 1),
        ("CLIENT TRACKING OFF", 1),
        ("GET k", 1),
        ("!SET k 1", 0),
        ("PING", 1),
    ],
    &[
        ("CLIENT TRACKING ON BCAST PREFIX k PREFIX q NOLOOP", 1),
        ("SET k 1", 1),
        ("!SET k 2", 1),
        ("!SET x 1", 0),
        ("!MSET q1 1 q2 2 x 1", 1),
        ("PING", 1),
        ("!FLUSHALL", 1),
    ],
    // Read in the transaction that sets it, in which no time passes.
    &[("CLIENT TRACKING ON", 1), ("MULTI", 1), ("SET soon 1 PX 30", 1), ("GET soon", 1), ("EXEC", 2), ("PING", 1)],
    // What a transaction has changed before is no change of what it reads.
    &[("CLIENT TRACKING ON", 1), ("MULTI", 1), ("SET w 1", 1), ("GET w", 1), ("EXEC", 1), ("!SET w 2", 1), ("PING", 1)],
    &[("CLIENT TRACKING ON", 1), ("MULTI", 1), ("GET w", 1), ("INCR w", 1), ("EXEC", 2), ("!SET w 4", 0), ("PING", 1)],
    &[("CLIENT TRACKING ON", 1), ("MULTI", 1), ("MGET v w", 1), ("SET v 1", 1), ("EXEC", 2), ("!SET w 5", 1)],
    &[("CLIENT TRACKING ON NOLOOP", 1), ("MULTI", 1), ("GET w", 1), ("SET w 3", 1), ("EXEC", 1), ("!SET w 4", 0)],
    // Whether a key is remembered is as the transaction has left it when it is read.
    &[("MULTI", 1), ("CLIENT TRACKING ON", 1), ("GET q", 1), ("EXEC", 1), ("!SET q 1", 1), ("PING", 1)],
    &[
        ("CLIENT TRACKING ON OPTIN", 1),
        ("MULTI", 1),
        ("GET q", 1),
        ("CLIENT CACHING YES", 1),
        ("GET r", 1),
        ("EXEC", 1),
        ("!SET q 2", 0),
        ("!SET r 2", 1),
        ("GET q", 1),
        ("!SET q 3", 0),
        ("PING", 1),
    ],
    &[
        ("CLIENT TRACKING ON", 1),
        ("MULTI", 1),
        ("CLIENT TRACKING OFF", 1),
        ("GET q", 1),
        ("CLIENT TRACKING ON", 1),
        ("GET r", 1),
        ("EXEC", 1),
        ("!SET q 4", 0),
        ("!SET r 4", 1),
        ("PING", 1),
    ],
    &[
        ("CLIENT TRACKING ON OPTOUT", 1),
        ("CLIENT CACHING NO", 1),
        ("MULTI", 1),
        ("GET q", 1),
        ("EXEC", 1),
        ("!SET q 5", 0),
        ("GET q", 1),
        ("!SET q 6", 1),
        ("MULTI", 1),
        ("GET q", 1),
        ("CLIENT CACHING NO", 1),
        ("GET r", 1),
        ("EXEC", 1),
        ("!SET q 7", 1),
        ("!SET r 7", 0),
        ("PING", 1),
    ],
    // A read that is refused when it is executed has read nothing.
    &[
        ("CLIENT TRACKING ON", 1),
        ("MULTI", 1),
        ("ACL SETUSER default -get", 1),
        ("GET q", 1),
        ("ACL SETUSER default +get", 1),
        ("EXEC", 1),
        ("!SET q 8", 0),
        ("PING", 1),
    ],
    // One that was not run has read nothing.
    &[
        ("CLIENT TRACKING ON", 1),
        ("WATCH w", 1),
        ("MULTI", 1),
        ("GET w", 1),
        ("!SET w 7", 0),
        ("EXEC", 1),
        ("MULTI", 1),
        ("GET v", 1),
        ("EXEC", 1),
        ("!MSET w 8 v 8", 1),
    ],
    // A script of a transaction changes what was read before, and what it has read itself.
    &[
        ("CLIENT TRACKING ON", 1),
        ("GET {u}1", 1),
        ("MULTI", 1),
        ("EVAL redis.call(ARGV[1],KEYS[1],1) 1 {u}1 SET", 1),
        ("EVAL redis.call(ARGV[1],KEYS[1])redis.call(ARGV[2],KEYS[1],1) 1 {u}2 GET SET", 1),
        ("GET {u}1", 1),
        ("EXEC", 3),
        ("!SET {u}2 2", 0),
        ("!SET {u}1 2", 1),
        ("PING", 1),
    ],
    // Each prefix has one push for all that a transaction changes.
    &[
        ("CLIENT TRACKING ON BCAST PREFIX {t}a PREFIX {t}b", 1),
        ("MULTI", 1),
        ("SET {t}b2 1", 1),
        ("SET {t}a2 1", 1),
        ("SET {t}c 1", 1),
        ("SET {t}b1 1", 1),
        ("SET {t}a2 2", 1),
        ("SET {t}a1 1", 1),
        ("EXEC", 3),
        ("PING", 1),
        ("EVAL redis.call(ARGV[1],KEYS[2],1)redis.call(ARGV[1],KEYS[1],1) 2 {t}b8 {t}b9 SET", 2),
    ],
];

/// A script of the embedded server has read what its commands have read, named or not. Redis 7.0 takes the keys that the request names
/// if any command has read.
const SCRIPTS: &[(&str, usize)] = &[
    ("CLIENT TRACKING ON", 1),
    ("EVAL redis.call(ARGV[1],ARGV[2],1) 2 {s}1 {s}2 SET {s}3", 1),
    ("!SET {s}1 1", 0),
    ("EVAL redis.call(ARGV[1],ARGV[2]) 2 {s}1 {s}2 GET {s}3", 1),
    ("!SET {s}1 2", 0),
    ("!SET {s}3 2", 1),
    ("EVAL_RO return(redis.call(ARGV[1])) 1 {s}2 PING", 1),
    ("!SET {s}2 2", 0),
    ("MULTI", 1),
    ("EVAL redis.call(ARGV[1],ARGV[2]) 1 {s}1 GET {s}2", 1),
    ("EXEC", 1),
    ("!SET {s}1 3", 0),
    ("!SET {s}2 3", 1),
    ("PING", 1),
];

/// An embedded server tells of changes like Redis, and of keys whose time has come.
#[test]
fn an_embedded_server_tells_of_changes() -> io::Result<()> {
    let server = RedisServer::start()?;
    let own = proxy(&[], &[])?;
    for (version, stories) in [("2", STORIES), ("3", STORIES), ("3", IN_RESP3), ("3", EMBEDDED)] {
        for story in stories {
            let wanted = tell(&server.tcp(), version, story)?;
            let told = tell(&own.tcp(), version, story)?;
            for (told, wanted) in told.iter().zip(&wanted) {
                assert_eq!(told, wanted, "RESP{version}");
            }
        }
    }
    // Through a proxy with the engine behind it, it is a node like others.
    let binary = Path::new(env!("CARGO_BIN_EXE_respool"));
    let behind = Respool::start(binary, &[own.tcp()], &["--workers", "2"])?;
    for story in IN_RESP3 {
        assert_eq!(tell(&behind.tcp(), "3", story)?, tell(&server.tcp(), "3", story)?);
    }
    Ok(())
}

#[test]
fn an_embedded_servers_script_tracks_what_its_commands_read() -> io::Result<()> {
    let own = proxy(&[], &[])?;
    let told = tell(&own.tcp(), "3", SCRIPTS)?;
    let pushes: Vec<&str> =
        told.iter().filter(|line| line.contains("invalidate")).filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(pushes, ["!SET {s}3 2", "!SET {s}2 3"], "{told:?}");
    assert!(told.last().is_some_and(|line| line.ends_with("+PONG\\r\\n")), "{told:?}");
    Ok(())
}
