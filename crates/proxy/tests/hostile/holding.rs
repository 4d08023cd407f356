//! Memory that a request makes the proxy hold until it is answered is in a budget, however small the request is.

use crate::bench::{Bench, request};
use crate::support::config;

#[test]
fn a_script_that_is_run_by_its_hash_is_not_copied_and_what_is_kept_of_the_request_is_counted() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    let script = format!("return 1 --{}", "x".repeat(900_000));
    bench.ask(client, &["EVAL", &script, "0"]);
    let node = bench.connect()[0];
    bench.send(node, b":1\r\n");
    // The hash of the script, as a client would have computed it.
    let hash = sha1_of(script.as_bytes());
    let held = bench.shared.ledger.held_bytes();
    bench.send(client, &request(&["EVALSHA", &hash, "0", "argument"]).repeat(200));
    let kept = bench.shared.ledger.held_bytes() - held;
    assert!((200 * 40..200 * 1_000).contains(&kept), "{kept} bytes for 200 requests");
    bench.send(node, b":1\r\n".repeat(200).as_slice());
    assert_eq!(bench.heard(client), ":1\r\n".repeat(201));
    assert_eq!(bench.shared.ledger.held_bytes(), held);
}

fn sha1_of(script: &[u8]) -> String {
    use sha1::{Digest, Sha1};
    Sha1::digest(script).iter().map(|byte| format!("{byte:02x}")).collect()
}
