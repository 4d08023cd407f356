//! Error texts that clients match on, each provoked on a real server.

use respool_command::{Row, lookup, resolve, text};

use crate::{redis, reference_server, request, shared_rows, shown, words};

#[test]
fn a_wrong_number_of_arguments_is_refused_in_the_same_words() {
    let Some(server) = redis() else { return };
    let mut client = server.client().expect("the server accepts");
    let mut compared = 0;
    for row in shared_rows() {
        let mut asked: Vec<Vec<u8>> = words(row).collect();
        let counts = [asked.len(), row.arity.unsigned_abs() as usize - 1, row.arity.unsigned_abs() as usize + 1];
        for count in counts {
            asked.truncate(2);
            asked.resize(count.max(asked.len()), b"x".to_vec());
            // A container that is given an argument is asked for a subcommand.
            if row.accepts(asked.len()) || (row.is_container() && asked.len() > 1) {
                continue;
            }
            let mut expected = b"-".to_vec();
            text::wrong_arity(row, &mut expected);
            expected.extend_from_slice(b"\r\n");
            let reply = client.command(&asked).expect("the server answers");
            assert_eq!(shown(&reply), shown(&expected), "{row:?} with {} arguments", asked.len());
            compared += 1;
        }
    }
    assert!(compared > 400, "only {compared} requests were compared");
}

#[test]
fn unknown_commands_are_refused_in_the_same_words() {
    let Some(server) = redis() else { return };
    let mut client = server.client().expect("the server accepts");
    let long = [b"x".repeat(300), b"y".repeat(100), b"z".repeat(100), b"w".to_vec()];
    let [x, y, z, w] = long.each_ref().map(Vec::as_slice);
    for asked in [
        &[&b"foo"[..]][..],
        &[b"FoO", b"a", b"b"],
        &[b"foo", b"it's", b"a\r\nb", b"\xff\x01"],
        &[b"fo\r\no"],
        &[b"fo\0o", b"a\0b", b"", b"c"],
        &[b"", b"a"],
        &[b"GEORADIUSBYMEMBER_RO_AND_MORE"],
        &[x, y, z, w],
        &[b"foo", y, &z[..27], w],
        &[b"foo", y, &z[..24], w, w],
        &[b"foo", x, y],
        &[b"client", b"foo"],
        &[b"Client", b"foo", b"bar"],
        &[b"command", b"nope"],
        &[b"OBJECT", x],
        &[b"config", b"a\0b"],
        &[b"xgroup", b"", b"x"],
        &[b"script", b"a\rb\n"],
    ] {
        let sent = request(asked);
        let mut expected = Vec::new();
        resolve(sent.as_args()).expect_err("it is unknown").write_text(sent.as_args(), &mut expected);
        let mut encoded = Vec::new();
        respool_wire::Encoder::new(&mut encoded, respool_wire::Protocol::Resp2).error(&expected);
        let reply = client.command(asked).expect("the server answers");
        assert_eq!(shown(&reply), shown(&encoded));
    }
}

#[test]
fn the_texts_are_those_of_redis() {
    let Some(server) = redis() else { return };
    let made = |write: fn(&Row, &mut Vec<u8>), name: &str| {
        let mut out = Vec::new();
        write(lookup(name.as_bytes()).expect("the test names what exists"), &mut out);
        String::from_utf8(out).expect("made of names")
    };
    let set_text = made(text::invalid_expire_time, "SET");
    let zunion_text = made(text::no_input_key, "ZUNIONSTORE");
    let mut client = server.client().expect("the server accepts");
    for setting in ["SET string x", "RPUSH list a", "HSET hash f x", "ZADD zset inf m", "SET great 9223372036854775807"]
    {
        let reply = client.ask(setting).expect("the server answers");
        assert!(!reply.starts_with('-'), "{setting}: {reply}");
    }
    for (asked, expected) in [
        ("LPUSH string x", text::WRONGTYPE),
        ("SET string x NOPE", text::SYNTAX),
        ("INCR string", text::NOT_AN_INTEGER),
        ("INCRBYFLOAT string 1", text::NOT_A_FLOAT),
        ("LPOP list -1", text::NOT_POSITIVE),
        ("RENAME nokey x", text::NO_SUCH_KEY),
        ("LSET list 9 x", text::INDEX_OUT_OF_RANGE),
        ("SETRANGE string -1 x", text::OFFSET_OUT_OF_RANGE),
        ("SETRANGE string 4294967296 x", text::STRING_TOO_LONG),
        ("INCR great", text::OVERFLOW),
        ("DECRBY great -9223372036854775808", text::DECREMENT_OVERFLOW),
        ("INCRBYFLOAT nokey inf", text::INCREMENT_NOT_FINITE),
        ("HINCRBY hash f 1", text::HASH_VALUE_NOT_AN_INTEGER),
        ("HINCRBYFLOAT hash f 1", text::HASH_VALUE_NOT_A_FLOAT),
        ("ZINCRBY zset -inf m", text::SCORE_NOT_A_NUMBER),
        ("ZRANGEBYSCORE zset a b", text::MIN_OR_MAX_NOT_A_FLOAT),
        ("ZRANGEBYLEX zset a b", text::MIN_OR_MAX_NOT_A_RANGE_ITEM),
        ("SCAN x", text::INVALID_CURSOR),
        ("COPY string string", text::SAME_OBJECT),
        ("SELECT 99", text::DB_OUT_OF_RANGE),
        ("BLPOP nokey x", text::TIMEOUT_NOT_A_FLOAT),
        ("BLPOP nokey -1", text::TIMEOUT_NEGATIVE),
        ("SETBIT string x 1", text::BIT_OFFSET),
        ("SETBIT string 0 2", text::BIT_VALUE),
        ("CLIENT SETNAME a\u{1}b", text::INVALID_CLIENT_NAME),
        ("CLIENT KILL 1.2.3.4:5", text::NO_SUCH_CLIENT),
        ("AUTH x y", text::WRONGPASS),
        ("AUTH x", text::NO_PASSWORD_CONFIGURED),
        ("HELLO 4", text::NOPROTO),
        ("HELLO x", text::PROTOCOL_NOT_AN_INTEGER),
        ("EXEC", text::EXEC_WITHOUT_MULTI),
        ("DISCARD", text::DISCARD_WITHOUT_MULTI),
        ("EVALSHA x 0", text::NOSCRIPT),
        ("RESTORE new 0 x", text::BAD_DUMP),
        ("RESTORE string 0 x", text::BUSYKEY),
        ("COMMAND GETKEYS nope x", text::INVALID_COMMAND),
        ("COMMAND GETKEYS PING x", text::NO_KEY_ARGUMENTS),
        ("COMMAND GETKEYS GET x y", text::INVALID_ARGUMENT_COUNT),
        ("COMMAND GETKEYS ZUNION 0 x", text::INVALID_ARGUMENTS),
        ("SET string x EX 0", &set_text),
        ("ZUNIONSTORE new 0 x", &zunion_text),
    ] {
        assert_eq!(client.ask(asked).expect("the server answers"), format!("-{expected}\r\n"), "{asked}");
    }
    for (asked, expected) in [
        ("MULTI", "+OK"),
        ("MULTI", &format!("-{}", text::NESTED_MULTI)),
        ("WATCH x", &format!("-{}", text::WATCH_INSIDE_MULTI)),
        ("GET", "-ERR wrong number of arguments for 'get' command"),
        ("EXEC", &format!("-{}", text::EXECABORT)),
        ("CONFIG SET requirepass secret", "+OK"),
        ("CONFIG SET maxmemory 1", "+OK"),
        ("SET string x", &format!("-{}", text::OOM)),
        ("CONFIG SET maxmemory 0", "+OK"),
        ("REPLICAOF 127.0.0.1 1", "+OK"),
        ("SET string x", &format!("-{}", text::READONLY)),
    ] {
        assert_eq!(client.ask(asked).expect("the server answers"), format!("{expected}\r\n"), "{asked}");
    }
    let mut unauthenticated = server.client().expect("the server accepts");
    for (asked, expected) in [("GET x", text::NOAUTH), ("HELLO 3", text::NOAUTH_HELLO)] {
        assert_eq!(unauthenticated.ask(asked).expect("the server answers"), format!("-{expected}\r\n"), "{asked}");
    }
}

#[test]
fn the_texts_of_a_cluster_are_those_of_redis() {
    let Some(server) = reference_server(&["--cluster-enabled", "yes"]) else { return };
    let mut client = server.client().expect("the server accepts");
    for (asked, expected) in [
        ("GET a", &*format!("-{}", text::CLUSTERDOWN)),
        ("CLUSTER ADDSLOTSRANGE 0 16383", "+OK"),
        ("MGET a b", &format!("-{}", text::CROSSSLOT)),
    ] {
        assert_eq!(client.ask(asked).expect("the server answers"), format!("{expected}\r\n"), "{asked}");
    }
}

#[test]
fn the_text_of_a_server_that_loads_is_that_of_redis() {
    let settings = [
        "--enable-debug-command",
        "yes",
        "--key-load-delay",
        "2000",
        "--loading-process-events-interval-bytes",
        "1024",
    ];
    let Some(server) = reference_server(&settings) else { return };
    let mut busy = server.client().expect("the server accepts");
    busy.ask("DEBUG POPULATE 500 key 100").expect("the server answers");
    busy.send_command(&["DEBUG", "RELOAD"]).expect("the server reads");
    let mut client = server.client().expect("the server accepts");
    let expected = format!("-{}\r\n", text::LOADING);
    // One connection waits for a second while the data is loaded; the other one asks until it is told so.
    let told =
        (0..100_000).map(|_| client.ask("GET key:1").expect("the server answers")).find(|reply| reply.starts_with('-'));
    assert_eq!(told.as_deref(), Some(&*expected));
    assert_eq!(busy.reply().expect("the server answers"), b"+OK\r\n");
}
