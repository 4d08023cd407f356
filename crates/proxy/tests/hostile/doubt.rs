//! A node whose replies are shifted: where some request's reply cannot be one to it, the connection ends before the next
//! reply reaches somebody else.

use crate::bench::{Bench, requests};
use crate::support::config;

/// Two clients of one node: `first` asks for `words`, and behind that `second` for a key. Then the node sends `replies`, one
/// of which is nobody's. What both are answered.
fn after(words: &[&[&str]], replies: &[u8]) -> (String, String) {
    let mut bench = Bench::proxy(config(1, 1));
    let (first, second) = (bench.accept(), bench.accept());
    bench.ask(first, &["GET", "before"]);
    let node = bench.connect()[0];
    bench.heard(node);
    bench.send(node, b"$-1\r\n");
    // The node has been seen to take MULTI.
    [&["MULTI"][..], &["GET", "before"], &["EXEC"]].iter().for_each(|words| bench.ask(first, words));
    assert!(bench.take_multi(node));
    bench.send(node, b"+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n");
    for words in words {
        bench.ask(first, words);
    }
    bench.ask(second, &["GET", "key"]);
    assert_eq!(
        requests(&bench.heard(node)).last().map(String::as_str),
        Some("GET key"),
        "all is asked on one connection"
    );
    bench.heard(first);
    bench.heard(second);
    bench.send(node, replies);
    (bench.heard(first), bench.heard(second))
}

#[test]
fn a_transaction_whose_answers_are_shifted_is_not_followed_by_somebody_elses() {
    let transaction: &[&[&str]] = &[&["MULTI"], &["GET", "secret"], &["EXEC"]];
    for replies in [
        // One too many before it, within it, or instead of its end; one too few.
        &b":1\r\n+OK\r\n+QUEUED\r\n*1\r\n$6\r\nsecret\r\n"[..],
        b"+OK\r\n:1\r\n+QUEUED\r\n*1\r\n$6\r\nsecret\r\n",
        b"+OK\r\n+QUEUED\r\n:1\r\n*1\r\n$6\r\nsecret\r\n",
        b"+OK\r\n*1\r\n$6\r\nsecret\r\n$5\r\nvalue\r\n",
        b"+OK\r\n+QUEUED\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*1\r\n$6\r\nsecret\r\n",
    ] {
        let (first, second) = after(transaction, replies);
        assert!(first.contains("does not fit the transaction"), "{first:?}");
        assert!(second.starts_with("-ERR node "), "{second:?}");
    }
    let (first, second) = after(transaction, b"+OK\r\n+QUEUED\r\n*1\r\n$6\r\nsecret\r\n$5\r\nvalue\r\n");
    assert_eq!((first.as_str(), second.as_str()), ("*1\r\n$6\r\nsecret\r\n", "$5\r\nvalue\r\n"));
    let refused = b"+OK\r\n-OOM no\r\n-EXECABORT Transaction discarded because of: OOM no\r\n$5\r\nvalue\r\n";
    let (_, second) = after(transaction, refused);
    assert_eq!(second, "$5\r\nvalue\r\n", "an error is an answer");
}

#[test]
fn types_of_resp3_are_no_replies_in_resp2() {
    let transaction: &[&[&str]] = &[&["MULTI"], &["GET", "secret"], &["EXEC"]];
    let attribute = "|1\r\n$3\r\nttl\r\n:3\r\n$2\r\nq1\r\n";
    let large = format!("*2\r\n${}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20));
    for reply in [attribute, "%1\r\n:1\r\n:2\r\n", "~1\r\n:1\r\n", "_\r\n", "#t\r\n", ",1\r\n", "=5\r\ntxt:x\r\n"] {
        let (first, second) = after(&[&["GET", "plain"]], format!("{reply}$5\r\nvalue\r\n").as_bytes());
        assert!(first.starts_with("-ERR node ") && first.contains("malformed"), "{reply:?}: {first:?}");
        assert!(second.starts_with("-ERR node "), "{reply:?}: {second:?}");
        let (first, second) = after(transaction, format!("+OK\r\n+QUEUED\r\n*1\r\n{reply}$5\r\nvalue\r\n").as_bytes());
        assert!(first.contains("-ERR node ") && !first.contains(reply), "{reply:?}: {first:?}");
        assert!(second.starts_with("-ERR node "), "{reply:?}: {second:?}");
        // What has been passed on of a large reply cannot be taken back: its client is cut off, and the other is not confused.
        let (first, second) = after(&[&["GET", "large"]], format!("{large}{reply}$5\r\nvalue\r\n").as_bytes());
        assert!(!first.contains(reply), "{reply:?}");
        assert!(second.starts_with("-ERR node "), "{reply:?}: {second:?}");
    }
    let (first, second) = after(&[&["GET", "plain"]], b">2\r\n+message\r\n+x\r\n$1\r\na\r\n$5\r\nvalue\r\n");
    assert!(first.starts_with("-ERR node ") && second.starts_with("-ERR node "), "{first:?} {second:?}");
}
