//! The store's part of transactions: which session watches what, and whether its transaction may run.
//!
//! The commands of a transaction are queued and run one after the other elsewhere; here `EXEC` comes before the first of
//! them. It is answered only if they must not run.

use respool_command::TransactionsCommand;

use super::{Answer, Call, unsupported};

/// Runs one command of the group.
pub(super) fn run(command: TransactionsCommand, call: &mut Call<'_, '_>) -> Answer {
    let session = call.session.client_id;
    match command {
        TransactionsCommand::Watch => {
            for key in call.args.from(1).iter() {
                call.keyspace.watch(call.at, session, key);
            }
            call.session.watched_bytes = call.keyspace.watched_bytes(session);
            call.reply_ok()
        }
        TransactionsCommand::Unwatch | TransactionsCommand::Discard => {
            call.keyspace.forget_watches(session);
            call.reply_ok()
        }
        TransactionsCommand::Exec => {
            if call.keyspace.unwatch(call.at.now, session) {
                call.reply.null_array();
            }
            Ok(())
        }
        TransactionsCommand::Multi => Err(unsupported(call.row)),
    }
}

#[cfg(test)]
mod tests {
    use crate::transcript::Script;

    /// Whether the transaction of a session that watches `k` may not run after others have said `lines`.
    fn is_stopped(script: &mut Script, lines: &[&str]) -> bool {
        script.session.client_id = 1;
        assert_eq!(script.say("WATCH k k"), "+OK");
        script.session.client_id = 2;
        for line in lines {
            match line.strip_prefix('@') {
                Some(millis) => script.session.now.0 += millis.parse::<u64>().expect("milliseconds"),
                None => _ = script.say(line),
            }
        }
        script.session.client_id = 1;
        let reply = script.say("EXEC");
        assert_eq!(script.say("EXEC"), "", "the first has ended the watching");
        reply == "*-1"
    }

    #[test]
    fn only_a_change_stops_a_transaction() {
        let mut script = Script::new();
        for (lines, expected) in [
            (&["GET k", "DEL k", "EXPIRE k 1", "APPEND other x"][..], false),
            (&["SET k 1"], true),
            (&["SETNX k 2", "GETEX k", "PERSIST k", "INCRBY k x"], false),
            (&["GETEX k PX 100"], true),
            (&["GET k"], false),
            // The key's time comes: first it is still stored, then it was gone before.
            (&["@101"], true),
            (&["GET k", "@1"], false),
            (&["SET k 1", "DEL k"], true),
            (&["SWAPDB 0 1", "FLUSHALL", "FLUSHDB"], false),
        ] {
            assert_eq!(is_stopped(&mut script, lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn an_expired_key_that_is_removed_has_not_changed() {
        let mut script = Script::new();
        script.say("SET k 1 PX 5");
        script.session.now.0 += 6;
        assert!(!is_stopped(&mut script, &["GET k", "DEL k"]));
        script.say("SET k 1 PX 5");
        assert!(is_stopped(&mut script, &["@6", "GET k"]));
    }

    #[test]
    fn databases_that_are_emptied_or_exchanged_change_what_they_hold() {
        let mut script = Script::new();
        assert!(!is_stopped(&mut script, &["SWAPDB 0 1", "SWAPDB 2 3", "FLUSHALL"]));
        script.say("SET k 1");
        assert!(!is_stopped(&mut script, &["SWAPDB 2 3", "SWAPDB 0 0"]));
        assert!(is_stopped(&mut script, &["SWAPDB 1 0"]));
        assert!(is_stopped(&mut script, &["SWAPDB 0 1"]));
        assert!(is_stopped(&mut script, &["FLUSHDB"]));
        assert!(!is_stopped(&mut script, &["FLUSHDB", "FLUSHALL"]));
    }

    #[test]
    fn what_is_forgotten_stops_nothing() {
        for forget in ["UNWATCH", "DISCARD"] {
            let mut script = Script::new();
            assert_eq!(script.say("WATCH k"), "+OK");
            assert!(script.session.watched_bytes > 0);
            assert_eq!(script.say(forget), "+OK");
            script.say("SET k 1");
            assert_eq!(script.say("EXEC"), "");
        }
    }
}
