//! A node whose replies are shifted: where some request's reply cannot be one to it, the connection ends before the next
//! reply reaches another client.

use crate::bench::{Bench, requests};
use crate::support::config;
use respool_connection::Machine;

/// Two clients of one node: `first` asks for `words`, and behind that `second` for a key. Then the node sends `replies`, one
/// of which has no owner. What both are answered.
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
fn shifted_answers_of_a_transaction_reach_no_other_client() {
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

#[test]
fn what_a_node_tells_of_changes_during_a_handshake_is_no_answer() {
    let change = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n";
    // Before the answer to PING, and behind it: whole, and the beginning of one that the next bytes end.
    for behind in [0, 9, change.len()] {
        let mut bench = Bench::proxy(config(1, 1));
        let client = bench.accept();
        bench.ask(client, &["HELLO", "3"]);
        bench.heard(client);
        bench.ask(client, &["CLIENT", "TRACKING", "ON", "BCAST", "NOLOOP"]);
        let lane = bench.dialling.pop().expect("the client gets a connection of its own");
        bench.nodes.push(lane);
        bench.turn(|worker| worker.handle_connected(lane));
        assert_eq!(requests(&bench.heard(lane)), ["HELLO 3"]);
        bench.send(lane, b"%0\r\n");
        assert_eq!(requests(&bench.heard(lane)), ["CLIENT TRACKING ON NOLOOP BCAST"]);
        bench.send(lane, format!("+OK\r\n{change}").as_bytes());
        assert_eq!(requests(&bench.heard(lane)), ["PING"]);
        bench.send(lane, change.as_bytes());
        bench.send(lane, format!("{change}+PONG\r\n{}", &change[..behind]).as_bytes());
        assert_eq!(requests(&bench.heard(lane)), ["CLIENT ID"], "the connection is used, {behind}");
        bench.send(lane, &change.as_bytes()[behind..]);
        bench.send(lane, b":5\r\n");
        assert!(bench.heard(client).starts_with("+OK\r\n"), "{behind}");
        bench.ask(client, &["GET", "k"]);
        assert_eq!(requests(&bench.heard(lane)), ["GET k"]);
        bench.send(lane, format!("{change}$1\r\nv\r\n").as_bytes());
        assert!(bench.heard(client).ends_with(&format!("{change}$1\r\nv\r\n")), "what is told from then on is heard");
    }
}

#[test]
fn a_reply_behind_a_handshake_is_no_clients() {
    for stray in ["+OK\r\n", "+O", "$5\r\nva"] {
        let mut bench = Bench::proxy(config(1, 1));
        let client = bench.accept();
        bench.ask(client, &["GET", "key"]);
        let lane = bench.dialling.pop().expect("a node is asked");
        bench.nodes.push(lane);
        bench.turn(|worker| worker.handle_connected(lane));
        bench.send(lane, format!("+PONG\r\n{stray}").as_bytes());
        let answer = bench.heard(client);
        assert!(answer.starts_with("-ERR node "), "{stray:?}: {answer:?}");
    }
}
