//! The commands that a script calls: which it may run, and what they answer.

use respool_command::{
    Command, ConnectionCommand, Flags, PubsubCommand, Renames, Row, ServerCommand, SessionView, text as texts,
};
use respool_wire::{Args, Encoder};

use super::super::exchange::BUFFER_BYTES_KEPT;
use super::super::state::{Desk, Running};
use super::super::text;
use crate::commands::{self, Call, Fault, refuse};
use crate::keyspace::{At, Keyspace};
use crate::limits::{SCRIPT_SLICE_COMMANDS, SCRIPT_SLOW_COMMAND};
use crate::number::integer;

/// Runs the command that a script has put into the exchange.
pub(super) fn run_command(desk: &mut Desk<'_>) {
    let Desk { keyspace, scripts, memory_bytes_max, .. } = desk;
    let (Some(running), Some(host)) = (&mut scripts.running, &scripts.host) else { return };
    let exchange = &host.exchange;
    // What the script holds may be what there is too much of.
    keyspace.script_memory.vm_bytes = exchange.vm_bytes.get();
    let request = exchange.request.borrow();
    let mut buffer = exchange.reply.borrow_mut();
    buffer.clear();
    if buffer.capacity() > BUFFER_BYTES_KEPT {
        *buffer = Vec::new();
    }
    let mut reply = Encoder::new(&mut buffer, exchange.protocol.get());
    let args = request.as_args();
    let permitted = permitted(args, &scripts.renames, running, keyspace, *memory_bytes_max)
        .and_then(|row| scripts.ownership.check(row, args).map(|()| row));
    let row = permitted.as_ref().ok().copied();
    exchange.is_refused.set(row.is_none());
    running.cost += if row.is_some_and(|row| !row.is_quick) { SCRIPT_SLOW_COMMAND } else { 1 };
    if let Some(row) = row {
        scripts.watched.note(row, running.database, args);
    }
    let answer = permitted.and_then(|row| {
        refuse_to_wait(row, args)?;
        scripts.reads.note(row, args);
        answer(row, args, running, keyspace, &mut reply)
    });
    match answer {
        Ok(()) => {}
        // What may be asked at all waits for nothing here, as if its time were over.
        Err(Fault::Waits | Fault::WaitsFor(_)) => {
            reply.truncate(0);
            reply.null_array();
        }
        Err(Fault::Host) => {
            running.asked = row;
            scripts.calls.note(row, true, &[]);
            // Unless the host answers.
            return refuse(row.map_or(Fault::Host, commands::unsupported), 0, &mut reply);
        }
        // Functions stay as they are while one runs.
        Err(Fault::Reload) => refuse(text::NOT_FROM_SCRIPT.into(), 0, &mut reply),
        Err(fault) => refuse(fault, 0, &mut reply),
    }
    if buffer.len().max(request.capacity()) > BUFFER_BYTES_KEPT {
        running.cost += SCRIPT_SLICE_COMMANDS;
    }
    scripts.calls.note(row.or_else(|| scripts.renames.resolve(args).ok()), row.is_some(), &buffer);
}

/// The row of a command that a script may run.
fn permitted(
    args: Args<'_>,
    renames: &Renames,
    running: &Running,
    keyspace: &Keyspace,
    memory_bytes_max: Option<u64>,
) -> Result<&'static Row, Fault> {
    let row = renames.resolve(args).map_err(|_| Fault::Text(text::UNKNOWN_COMMAND))?;
    if !row.accepts(args.len()) {
        return Err(text::WRONG_ARITY.into());
    }
    let is_debug = row.command == Command::Server(ServerCommand::Debug);
    if row.flags.has(Flags::NOSCRIPT) && !(is_debug && keyspace.debugging.is_open_to_scripts) {
        return Err(text::NOT_FROM_SCRIPT.into());
    }
    if let Some(rights) = &running.rights
        && let Some(refusal) = rights.refusal(row, args)
    {
        rights.note_refusal(row, args);
        return Err(refusal.into());
    }
    let is_write = row.flags.has(Flags::WRITE);
    // As in Redis, messages are no business of scripts that only read.
    if (is_write || is_message(row)) && !running.may_write {
        return Err(text::READ_ONLY.into());
    }
    let ends_beyond = running.may_exceed_memory || running.has_written && running.may_end_beyond;
    let is_full = || {
        let is_full_by_now = |max| keyspace.is_full_amid_script(max, running.vm_bytes, running.began_beyond);
        running.began_full || memory_bytes_max.is_some_and(is_full_by_now)
    };
    if row.flags.has(Flags::DENYOOM) && !ends_beyond && is_full() {
        return Err(texts::OOM.into());
    }
    Ok(row)
}

/// A command that asks to wait is called, as in Redis, and does not do it.
fn refuse_to_wait(row: &Row, args: Args<'_>) -> Result<(), Fault> {
    if !row.flags.has(Flags::BLOCKING) || !has_block_option(args) {
        return Ok(());
    }
    let name = String::from_utf8_lossy(args.name());
    Err(Fault::Written(format!("ERR {name} command is not allowed with BLOCK option from scripts").into_bytes()))
}

/// Whether a command sends a message.
fn is_message(row: &Row) -> bool {
    matches!(row.command, Command::Pubsub(PubsubCommand::Publish | PubsubCommand::Spublish))
}

/// Whether a command that reads streams asks to wait, and nothing in front of that is wrong, which it says itself.
fn has_block_option(args: Args<'_>) -> bool {
    let is_of_group = args.name().eq_ignore_ascii_case(b"XREADGROUP");
    let mut options = args.from(1).iter();
    while let Some(word) = options.next() {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let is_right = if is("BLOCK") {
            return options.next().is_some();
        } else if is("COUNT") {
            options.next().is_some_and(|count| integer::parse(count).is_some())
        } else if is("GROUP") {
            is_of_group && options.by_ref().take(2).count() == 2
        } else {
            is("NOACK") && is_of_group
        };
        if !is_right {
            return false;
        }
    }
    false
}

fn answer(
    row: &'static Row,
    args: Args<'_>,
    running: &mut Running,
    keyspace: &mut Keyspace,
    reply: &mut Encoder<'_>,
) -> Result<(), Fault> {
    running.has_written |= row.flags.has(Flags::WRITE);
    match row.command {
        Command::Connection(ConnectionCommand::Ping) => match args.len() {
            1 => reply.simple("PONG"),
            2 => reply.bulk(args.at(1)),
            _ => return Err(text::WRONG_ARITY.into()),
        },
        Command::Connection(ConnectionCommand::Echo) => reply.bulk(args.at(1)),
        Command::Connection(ConnectionCommand::Select) => {
            let number = integer::parse(args.at(1)).ok_or(Fault::Text(texts::NOT_AN_INTEGER))?;
            let number = u32::try_from(number).ok().filter(|number| (*number as usize) < keyspace.databases.len());
            running.database = number.ok_or(Fault::Text(texts::DB_OUT_OF_RANGE))?;
            reply.simple("OK");
        }
        Command::Pubsub(_) => return Err(Fault::Host),
        Command::Server(ServerCommand::Time) => {
            reply.array(2);
            reply.bulk((running.now / 1000).to_string().as_bytes());
            reply.bulk((running.now % 1000 * 1000).to_string().as_bytes());
        }
        _ => {
            let mut session = SessionView {
                database: running.database,
                client_id: running.owner,
                now: respool_command::Millis(running.now.unsigned_abs()),
                is_in_script: true,
                ..SessionView::default()
            };
            let at = At { database: running.database as usize, now: running.now };
            keyspace.heap.now = running.now;
            return commands::run(&mut Call { keyspace, row, args, at, session: &mut session, start: 0, reply });
        }
    }
    Ok(())
}
