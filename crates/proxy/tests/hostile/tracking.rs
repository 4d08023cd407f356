//! Clients that are told of changed keys: their replies, and what is remembered for them.

use crate::bench::{Bench, request, requests};
use crate::support::config;

#[test]
fn tracking_begins_without_a_reply_where_none_is_wanted() {
    for silence in ["SKIP", "OFF"] {
        for options in [&[][..], &["REDIRECT", "99"], &["NOLOOP"]] {
            let mut bench = Bench::proxy(config(1, 1));
            let client = bench.accept();
            assert!(bench.answer(client, &["HELLO", "3"]).starts_with('%'));
            assert_eq!(bench.answer(client, &["CLIENT", "REPLY", silence]), "");
            let mut said = request(&[&["CLIENT", "TRACKING", "ON"], options].concat());
            if silence == "OFF" {
                said.extend(request(&["CLIENT", "REPLY", "ON"]));
            }
            said.extend(request(&["ECHO", "next"]));
            bench.send(client, &said);
            for lane in bench.connect() {
                if requests(&bench.heard(lane)) == ["CLIENT TRACKING ON BCAST"] {
                    bench.send(lane, b"+OK\r\n");
                }
            }
            // Where it cannot be had, an error is as little wanted.
            let on = if silence == "OFF" { "+OK\r\n" } else { "" };
            assert_eq!(bench.heard(client), format!("{on}$4\r\nnext\r\n"), "{silence} {options:?}");
        }
    }
}

#[test]
fn a_subscription_that_fails_is_told_of_where_replies_are_wanted() {
    for (is_wanted, error) in [(true, "-ERR node node-0 is not available"), (false, "+OK\r\n")] {
        let mut bench = Bench::proxy(config(1, 1));
        let client = bench.accept();
        if !is_wanted {
            assert_eq!(bench.answer(client, &["CLIENT", "REPLY", "OFF"]), "");
        }
        bench.ask(client, &["SUBSCRIBE", "channel"]);
        bench.refuse_dials();
        bench.turn(|_| ());
        bench.ask(client, &["CLIENT", "REPLY", "ON"]);
        let heard = bench.heard(client);
        assert!(heard.starts_with(error) && heard.ends_with("+OK\r\n"), "{heard}");
    }
}
