//! Keys of an engine in this process that are moved to another server, and that the engine cannot serialise or does not delete.

use crate::bench::Bench;
use crate::support::config;
use respool_command::{Execute, Millis, Outcome, Row, SessionView};
use respool_connection::Service;
use respool_proxy::hooks::Hooks;
use respool_proxy::{Transfer, TransferOutcome};
use respool_wire::{Args, Encoder};
use std::sync::{Arc, Mutex};

const TOO_LARGE: &str = "ERR the reply exceeds what one reply may have";

const BUSY: &str = "BUSY a script runs";

/// Has keys that it serialises, those named `large`, which it does not, those named `odd`, whose time it does not tell, and those named
/// `stuck`, which it does not delete.
#[derive(Debug, Default)]
struct Keys {
    deleted: Arc<Mutex<Vec<String>>>,
}

impl Execute for Keys {
    fn execute(&mut self, row: &'static Row, args: Args<'_>, _: &mut SessionView, reply: &mut Encoder<'_>) -> Outcome {
        match (row.name, args.at(1)) {
            ("PTTL", b"odd") | ("DUMP", b"large") => reply.error(TOO_LARGE.as_bytes()),
            ("PTTL", b"none") => reply.integer(-2),
            ("PTTL", _) => reply.integer(-1),
            ("DUMP", _) => reply.bulk(b"payload"),
            ("DEL", b"stuck") => reply.error(BUSY.as_bytes()),
            ("DEL", _) => {
                let names = args.from(1).iter().map(|name| String::from_utf8_lossy(name).into_owned());
                self.deleted.lock().expect("no test fails holding it").extend(names);
                reply.integer(1);
            }
            (other, _) => unreachable!("{other} is not asked"),
        }
        Outcome::Done
    }

    fn tick(&mut self, now: Millis) -> Option<Millis> {
        Some(Millis(now.0 + 1))
    }
}

/// A server whose target does all that it is sent at once, and the keys that are deleted.
fn server() -> (Bench<Keys>, Arc<Mutex<Vec<String>>>) {
    let engine = Keys::default();
    let deleted = Arc::clone(&engine.deleted);
    let hooks = Hooks::default().on_transfer(|transfer: Transfer| {
        let acknowledged = transfer.ends.iter().map(|_| true).collect();
        Some(transfer.end(TransferOutcome { acknowledged, ..TransferOutcome::default() }))
    });
    (Bench::server_with(config(1, 1), engine, Arc::default(), hooks), deleted)
}

#[test]
fn a_key_that_stays_is_not_said_to_be_gone() {
    for (keys, deleted_keys, reply) in [
        (&["none"][..], "", "+NOKEY\r\n".to_owned()),
        (&["small"], "small", "+OK\r\n".to_owned()),
        (&["large"], "", format!("-{TOO_LARGE}\r\n")),
        (&["odd"], "", format!("-{TOO_LARGE}\r\n")),
        (&["stuck"], "", format!("-{BUSY}\r\n")),
        (&["none", "large"], "", format!("-{TOO_LARGE}\r\n")),
        (&["large", "small", "none"], "small", format!("-{TOO_LARGE}\r\n")),
    ] {
        let (mut bench, deleted) = server();
        let client = bench.accept();
        let mut words = vec!["MIGRATE", "127.0.0.1", "7", "", "0", "1000", "KEYS"];
        words.extend(keys);
        bench.ask(client, &words);
        for mail in std::mem::take(&mut bench.posted) {
            bench.turn(|worker| worker.handle_mail(mail));
        }
        assert_eq!(bench.heard(client), reply, "{keys:?}");
        assert_eq!(deleted.lock().expect("no test fails holding it").join(" "), deleted_keys, "{keys:?}: others go on");
    }
}
