//! What a server replies that has no replicas, no cluster and no modules: the same as redis-server in that state. It has no files either:
//! what would promise that keys outlive the process is refused.

use respool_command::{Row, text};

use super::super::{Answer, Call, Fault};
use crate::number::integer;

const BAD_PORT: &str = "ERR Invalid master port";
const NO_REPLICATION: &str = "ERR the embedded server is no replica of others";
const NO_FAILOVER: &str = "ERR No failover in progress.";
const NO_REPLICAS: &str = "ERR FAILOVER requires connected replicas.";
const BAD_FAILOVER_TIMEOUT: &str = "ERR FAILOVER timeout must be greater than 0";
const NO_MODULES: &str = "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you can run it \
     from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.";
/// What `LOLWUT` says of a version that draws nothing.
const VERSION_LINE: &[u8] = b"Redis ver. 7.0.15\n";

/// `WAIT replicas timeout`. No replica ever acknowledges a write.
pub(in super::super) fn wait(call: &mut Call<'_, '_>) -> Answer {
    let replicas = call.integer(1)?;
    let timeout = integer::parse(call.arg(2)).ok_or(text::TIMEOUT_NOT_AN_INTEGER)?;
    if timeout < 0 {
        return Err(text::TIMEOUT_NEGATIVE.into());
    }
    if replicas <= 0 || call.session.is_in_transaction {
        return call.reply_integer(0);
    }
    Err(Fault::Waits)
}

/// `REPLICAOF host port` and `SLAVEOF`: only `NO ONE` can be had.
pub(super) fn replicaof(call: &mut Call<'_, '_>) -> Answer {
    if call.is_word(1, "NO") && call.is_word(2, "ONE") {
        return call.reply_ok();
    }
    match integer::parse(call.arg(2)) {
        Some(0..=65_535) => Err(NO_REPLICATION.into()),
        _ => Err(BAD_PORT.into()),
    }
}

/// `ROLE`: a primary without replicas.
pub(super) fn role(call: &mut Call<'_, '_>) -> Answer {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.integer(0);
    call.reply.array(0);
    Ok(())
}

/// `FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]`.
pub(super) fn failover(call: &mut Call<'_, '_>) -> Answer {
    if call.args.len() == 2 && call.is_word(1, "ABORT") {
        return Err(NO_FAILOVER.into());
    }
    let (mut has_timeout, mut has_target, mut is_forced) = (false, false, false);
    let mut index = 1;
    while index < call.args.len() {
        let behind = call.args.len() - index - 1;
        if call.is_word(index, "TIMEOUT") && behind >= 1 && !has_timeout {
            if call.integer(index + 1)? <= 0 {
                return Err(BAD_FAILOVER_TIMEOUT.into());
            }
            has_timeout = true;
            index += 1;
        } else if call.is_word(index, "TO") && behind >= 2 && !has_target {
            call.integer(index + 2)?;
            has_target = true;
            index += 2;
        } else if call.is_word(index, "FORCE") && !is_forced {
            is_forced = true;
        } else {
            return Err(text::SYNTAX.into());
        }
        index += 1;
    }
    Err(NO_REPLICAS.into())
}

/// `SAVE` and `BGREWRITEAOF`: a success would say that keys outlive the process.
#[cold]
pub(super) fn refuse_to_save(row: &Row) -> Answer {
    Err(Fault::Written(
        format!("ERR {} is refused: this server keeps its data in memory alone, nothing would be saved", row.name)
            .into_bytes(),
    ))
}

/// `BGSAVE [SCHEDULE]`.
pub(super) fn bgsave(call: &Call<'_, '_>) -> Answer {
    match call.args.len() {
        1 => refuse_to_save(call.row),
        2 if call.is_word(1, "SCHEDULE") => refuse_to_save(call.row),
        _ => Err(text::SYNTAX.into()),
    }
}

/// `LASTSAVE`: a server counts as saved when it begins, and this one is saved no more.
pub(super) fn lastsave(call: &mut Call<'_, '_>) -> Answer {
    let began = call.keyspace.began_s(call.at.now);
    call.reply_integer(began)
}

/// `LOLWUT [VERSION version]`: the line that redis-server ends with, whatever version is asked for.
pub(super) fn lolwut(call: &mut Call<'_, '_>) -> Answer {
    if call.args.len() > 2 && call.is_word(1, "VERSION") {
        call.integer(2)?;
    }
    call.reply.verbatim("txt", VERSION_LINE);
    Ok(())
}

/// `MODULE LIST`.
pub(super) fn modules(call: &mut Call<'_, '_>) -> Answer {
    call.reply.array(0);
    Ok(())
}

/// `MODULE LOAD` and its kin.
pub(super) fn refuse_module() -> Answer {
    Err(NO_MODULES.into())
}
