//! Commands of the group server.

// Written by `cargo xtask codegen` from the command table. Not to be edited.
#![allow(unused_imports, reason = "each group needs some of them")]
#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "replies and requests are what they are")]

use super::*;
use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};
use crate::{Reply, ToArgs, cmd};
use bytes::Bytes;
use std::collections::HashMap;

/// List the command categories, or the commands of one.
///
/// ```text
/// ACL CAT [categoryname]
/// ```
///
/// Since 6.0.0. Takes O(1). ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/acl-cat/) and [Valkey](https://valkey.io/commands/acl-cat/).
pub fn acl_cat() -> AclCat {
    let request = cmd("ACL CAT");
    let place = request.place();
    AclCat::new(request, place)
}

builder! {
    /// A request of [`acl_cat()`] and its options.
    AclCat, Vec<Bytes>
}

impl<T, S> AclCat<T, S> {
    /// `categoryname`.
    pub fn categoryname(self, categoryname: impl ToArg) -> Self {
        self.with(|request| {
            categoryname.write_args(request);
        })
    }
}

/// Remove users and close their connections.
///
/// ```text
/// ACL DELUSER username [username ...]
/// ```
///
/// Since 6.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/acl-deluser/) and [Valkey](https://valkey.io/commands/acl-deluser/).
pub fn acl_deluser(usernames: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("ACL DELUSER");
    usernames.write_args(&mut request);
    Typed::new(request)
}

/// Tell whether a user may run a command, without running it.
///
/// ```text
/// ACL DRYRUN username command [arg [arg ...]]
/// ```
///
/// Since 7.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/acl-dryrun/) and [Valkey](https://valkey.io/commands/acl-dryrun/).
pub fn acl_dryrun(username: impl ToArg, command: impl ToArg) -> AclDryrun {
    let mut request = cmd("ACL DRYRUN");
    username.write_args(&mut request);
    command.write_args(&mut request);
    let place = request.place();
    AclDryrun::new(request, place)
}

builder! {
    /// A request of [`acl_dryrun()`] and its options.
    AclDryrun, Reply
}

impl<T, S> AclDryrun<T, S> {
    /// `arg [arg ...]`.
    pub fn arg(self, args: impl ToArgs) -> Self {
        self.with(|request| {
            args.write_args(request);
        })
    }
}

/// Make a random password.
///
/// ```text
/// ACL GENPASS [bits]
/// ```
///
/// Since 6.0.0. Takes O(1). ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/acl-genpass/) and [Valkey](https://valkey.io/commands/acl-genpass/).
pub fn acl_genpass() -> AclGenpass {
    let request = cmd("ACL GENPASS");
    let place = request.place();
    AclGenpass::new(request, place)
}

builder! {
    /// A request of [`acl_genpass()`] and its options.
    AclGenpass, Bytes
}

impl<T, S> AclGenpass<T, S> {
    /// `bits`.
    pub fn bits(self, bits: impl ToInteger) -> Self {
        self.with(|request| {
            bits.write_args(request);
        })
    }
}

/// Show the rules of a user.
///
/// ```text
/// ACL GETUSER username
/// ```
///
/// Since 6.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/acl-getuser/) and [Valkey](https://valkey.io/commands/acl-getuser/).
pub fn acl_getuser(username: impl ToArg) -> Typed<Option<HashMap<Bytes, Reply>>> {
    let mut request = cmd("ACL GETUSER");
    username.write_args(&mut request);
    Typed::new(request)
}

/// Show every user as a line of the ACL file.
///
/// ```text
/// ACL LIST
/// ```
///
/// Since 6.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/acl-list/) and [Valkey](https://valkey.io/commands/acl-list/).
pub fn acl_list() -> Typed<Vec<Bytes>> {
    let request = cmd("ACL LIST");
    Typed::new(request)
}

/// Read the users again from the ACL file.
///
/// ```text
/// ACL LOAD
/// ```
///
/// Since 6.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/acl-load/) and [Valkey](https://valkey.io/commands/acl-load/).
pub fn acl_load() -> Typed<()> {
    let request = cmd("ACL LOAD");
    Typed::new(request)
}

/// Show or clear the latest refusals.
///
/// ```text
/// ACL LOG [count | RESET]
/// ```
///
/// Since 6.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/acl-log/) and [Valkey](https://valkey.io/commands/acl-log/).
pub fn acl_log() -> AclLog {
    let request = cmd("ACL LOG");
    let place = request.place();
    AclLog::new(request, place)
}

builder! {
    /// A request of [`acl_log()`] and its options.
    AclLog, Vec<HashMap<Bytes, Reply>>
}

impl<T, S> AclLog<T, S> {
    /// `count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            count.write_args(request);
        })
    }
}

impl<S> AclLog<Vec<HashMap<Bytes, Reply>>, S> {
    /// `RESET`.
    pub fn reset(self) -> AclLog<(), S> {
        self.with(|request| {
            request.push(b"RESET");
        })
        .retyped()
    }
}

impl<S> AclLog<(), S> {
    /// `RESET`.
    pub fn reset(self) -> Self {
        self.with(|request| {
            request.push(b"RESET");
        })
    }
}

/// Write the users to the ACL file.
///
/// ```text
/// ACL SAVE
/// ```
///
/// Since 6.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/acl-save/) and [Valkey](https://valkey.io/commands/acl-save/).
pub fn acl_save() -> Typed<()> {
    let request = cmd("ACL SAVE");
    Typed::new(request)
}

/// Make a user or change its rules.
///
/// ```text
/// ACL SETUSER username [rule [rule ...]]
/// ```
///
/// Since 6.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/acl-setuser/) and [Valkey](https://valkey.io/commands/acl-setuser/).
pub fn acl_setuser(username: impl ToArg) -> AclSetuser {
    let mut request = cmd("ACL SETUSER");
    username.write_args(&mut request);
    let place = request.place();
    AclSetuser::new(request, place)
}

builder! {
    /// A request of [`acl_setuser()`] and its options.
    AclSetuser, ()
}

impl<T, S> AclSetuser<T, S> {
    /// `rule [rule ...]`.
    pub fn rule(self, rules: impl ToArgs) -> Self {
        self.with(|request| {
            rules.write_args(request);
        })
    }
}

/// List the names of users.
///
/// ```text
/// ACL USERS
/// ```
///
/// Since 6.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/acl-users/) and [Valkey](https://valkey.io/commands/acl-users/).
pub fn acl_users() -> Typed<Vec<Bytes>> {
    let request = cmd("ACL USERS");
    Typed::new(request)
}

/// Tell the user of this connection.
///
/// ```text
/// ACL WHOAMI
/// ```
///
/// Since 6.0.0. Takes O(1). ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/acl-whoami/) and [Valkey](https://valkey.io/commands/acl-whoami/).
pub fn acl_whoami() -> Typed<Bytes> {
    let request = cmd("ACL WHOAMI");
    Typed::new(request)
}

/// Rewrite the append-only file in the background.
///
/// ```text
/// BGREWRITEAOF
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/bgrewriteaof/) and [Valkey](https://valkey.io/commands/bgrewriteaof/).
pub fn bgrewriteaof() -> Typed<String> {
    let request = cmd("BGREWRITEAOF");
    Typed::new(request)
}

/// Write a snapshot in the background.
///
/// ```text
/// BGSAVE [SCHEDULE]
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/bgsave/) and [Valkey](https://valkey.io/commands/bgsave/).
pub fn bgsave() -> Bgsave {
    let request = cmd("BGSAVE");
    let place = request.place();
    Bgsave::new(request, place)
}

builder! {
    /// A request of [`bgsave()`] and its options.
    Bgsave, String
}

impl<T, S> Bgsave<T, S> {
    /// `SCHEDULE`, since 3.2.2.
    pub fn schedule(self) -> Self {
        self.with(|request| {
            request.push(b"SCHEDULE");
        })
    }
}

/// Describe every command.
///
/// ```text
/// COMMAND
/// ```
///
/// Since 2.8.13. Takes O(N). ACL: @slow @connection.
/// See [Redis](https://redis.io/docs/latest/commands/command/) and [Valkey](https://valkey.io/commands/command/).
pub fn command() -> Typed<Vec<Reply>> {
    let request = cmd("COMMAND");
    Typed::new(request)
}

/// Count the commands.
///
/// ```text
/// COMMAND COUNT
/// ```
///
/// Since 2.8.13. Takes O(1). ACL: @slow @connection.
/// See [Redis](https://redis.io/docs/latest/commands/command-count/) and [Valkey](https://valkey.io/commands/command-count/).
pub fn command_count() -> Typed<i64> {
    let request = cmd("COMMAND COUNT");
    Typed::new(request)
}

/// Document commands.
///
/// ```text
/// COMMAND DOCS [command-name [command-name ...]]
/// ```
///
/// Since 7.0.0. Takes O(N). ACL: @slow @connection.
/// See [Redis](https://redis.io/docs/latest/commands/command-docs/) and [Valkey](https://valkey.io/commands/command-docs/).
pub fn command_docs() -> CommandDocs {
    let request = cmd("COMMAND DOCS");
    let place = request.place();
    CommandDocs::new(request, place)
}

builder! {
    /// A request of [`command_docs()`] and its options.
    CommandDocs, HashMap<Bytes, Reply>
}

impl<T, S> CommandDocs<T, S> {
    /// `command-name [command-name ...]`.
    pub fn command_name(self, command_names: impl ToArgs) -> Self {
        self.with(|request| {
            command_names.write_args(request);
        })
    }
}

/// Describe the named commands.
///
/// ```text
/// COMMAND INFO [command-name [command-name ...]]
/// ```
///
/// Since 2.8.13. Takes O(N). ACL: @slow @connection.
/// See [Redis](https://redis.io/docs/latest/commands/command-info/) and [Valkey](https://valkey.io/commands/command-info/).
pub fn command_info() -> CommandInfo {
    let request = cmd("COMMAND INFO");
    let place = request.place();
    CommandInfo::new(request, place)
}

builder! {
    /// A request of [`command_info()`] and its options.
    CommandInfo, Vec<Reply>
}

impl<T, S> CommandInfo<T, S> {
    /// `command-name [command-name ...]`.
    pub fn command_name(self, command_names: impl ToArgs) -> Self {
        self.with(|request| {
            command_names.write_args(request);
        })
    }
}

/// List the names of commands.
///
/// ```text
/// COMMAND LIST [FILTERBY MODULE module-name | ACLCAT category | PATTERN pattern]
/// ```
///
/// Since 7.0.0. Takes O(N). ACL: @slow @connection.
/// See [Redis](https://redis.io/docs/latest/commands/command-list/) and [Valkey](https://valkey.io/commands/command-list/).
pub fn command_list() -> CommandList {
    let request = cmd("COMMAND LIST");
    let place = request.place();
    CommandList::new(request, place)
}

builder! {
    /// A request of [`command_list()`] and its options.
    CommandList, Vec<Bytes>
}

impl<T, S> CommandList<T, S> {
    /// `MODULE module-name`.
    pub fn filterby_module(self, module_name: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"FILTERBY");
            request.push(b"MODULE");
            module_name.write_args(request);
        })
    }
    /// `ACLCAT category`.
    pub fn filterby_aclcat(self, category: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"FILTERBY");
            request.push(b"ACLCAT");
            category.write_args(request);
        })
    }
    /// `PATTERN pattern`.
    pub fn filterby_pattern(self, pattern: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"FILTERBY");
            request.push(b"PATTERN");
            pattern.write_args(request);
        })
    }
}

/// List commands of one of the logs.
///
/// ```text
/// COMMANDLOG GET count type
/// ```
///
/// Since 8.1.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/commandlog-get/) and [Valkey](https://valkey.io/commands/commandlog-get/).
pub fn commandlog_get(count: impl ToInteger, type_: impl ToArg) -> Typed<Vec<Reply>> {
    let mut request = cmd("COMMANDLOG GET");
    count.write_args(&mut request);
    type_.write_args(&mut request);
    Typed::new(request)
}

/// Count the entries of one of the logs.
///
/// ```text
/// COMMANDLOG LEN type
/// ```
///
/// Since 8.1.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/commandlog-len/) and [Valkey](https://valkey.io/commands/commandlog-len/).
pub fn commandlog_len(type_: impl ToArg) -> Typed<i64> {
    let mut request = cmd("COMMANDLOG LEN");
    type_.write_args(&mut request);
    Typed::new(request)
}

/// Empty one of the logs.
///
/// ```text
/// COMMANDLOG RESET type
/// ```
///
/// Since 8.1.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/commandlog-reset/) and [Valkey](https://valkey.io/commands/commandlog-reset/).
pub fn commandlog_reset(type_: impl ToArg) -> Typed<()> {
    let mut request = cmd("COMMANDLOG RESET");
    type_.write_args(&mut request);
    Typed::new(request)
}

/// Show the settings whose names match patterns.
///
/// ```text
/// CONFIG GET parameter [parameter ...]
/// ```
///
/// Since 2.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/config-get/) and [Valkey](https://valkey.io/commands/config-get/).
pub fn config_get(parameters: impl ToArgs) -> Typed<HashMap<Bytes, Bytes>> {
    let mut request = cmd("CONFIG GET");
    parameters.write_args(&mut request);
    Typed::new(request)
}

/// Set the counters of INFO back to zero.
///
/// ```text
/// CONFIG RESETSTAT
/// ```
///
/// Since 2.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/config-resetstat/) and [Valkey](https://valkey.io/commands/config-resetstat/).
pub fn config_resetstat() -> Typed<()> {
    let request = cmd("CONFIG RESETSTAT");
    Typed::new(request)
}

/// Write the settings to the configuration file.
///
/// ```text
/// CONFIG REWRITE
/// ```
///
/// Since 2.8.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/config-rewrite/) and [Valkey](https://valkey.io/commands/config-rewrite/).
pub fn config_rewrite() -> Typed<()> {
    let request = cmd("CONFIG REWRITE");
    Typed::new(request)
}

/// Change settings while running.
///
/// ```text
/// CONFIG SET parameter value [parameter value ...]
/// ```
///
/// Since 2.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/config-set/) and [Valkey](https://valkey.io/commands/config-set/).
pub fn config_set(pairs: impl ToArgs) -> Typed<()> {
    let mut request = cmd("CONFIG SET");
    pairs.write_args(&mut request);
    Typed::new(request)
}

/// Count the keys of the database.
///
/// ```text
/// DBSIZE
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @keyspace @read @fast.
/// See [Redis](https://redis.io/docs/latest/commands/dbsize/) and [Valkey](https://valkey.io/commands/dbsize/).
pub fn dbsize() -> Typed<i64> {
    let request = cmd("DBSIZE");
    Typed::new(request)
}

/// Hand over from this primary to one of its replicas.
///
/// ```text
/// FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]
/// ```
///
/// Since 6.2.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/failover/) and [Valkey](https://valkey.io/commands/failover/).
pub fn failover() -> Failover {
    let request = cmd("FAILOVER");
    let place = request.place();
    Failover::new(request, place)
}

builder! {
    /// A request of [`failover()`] and its options.
    Failover, ()
}

impl<T, S> Failover<T, S> {
    /// `TO host port [FORCE]`.
    pub fn to(self, host: impl ToArg, port: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"TO");
            host.write_args(request);
            port.write_args(request);
        })
    }
    /// `FORCE`.
    pub fn force(self) -> Self {
        self.with(|request| {
            request.push(b"FORCE");
        })
    }
    /// `ABORT`.
    pub fn abort(self) -> Self {
        self.with(|request| {
            request.push(b"ABORT");
        })
    }
    /// `TIMEOUT milliseconds`.
    pub fn timeout(self, milliseconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"TIMEOUT");
            milliseconds.write_args(request);
        })
    }
}

/// Delete every key of every database.
///
/// ```text
/// FLUSHALL [ASYNC | SYNC]
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @keyspace @write @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/flushall/) and [Valkey](https://valkey.io/commands/flushall/).
pub fn flushall() -> Flushall {
    let request = cmd("FLUSHALL");
    let place = request.place();
    Flushall::new(request, place)
}

builder! {
    /// A request of [`flushall()`] and its options.
    Flushall, ()
}

impl<T, S> Flushall<T, S> {
    /// `ASYNC`, since 4.0.0.
    pub fn async_(self) -> Self {
        self.with(|request| {
            request.push(b"ASYNC");
        })
    }
    /// `SYNC`, since 6.2.0.
    pub fn sync(self) -> Self {
        self.with(|request| {
            request.push(b"SYNC");
        })
    }
}

/// Delete every key of the database.
///
/// ```text
/// FLUSHDB [ASYNC | SYNC]
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @keyspace @write @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/flushdb/) and [Valkey](https://valkey.io/commands/flushdb/).
pub fn flushdb() -> Flushdb {
    let request = cmd("FLUSHDB");
    let place = request.place();
    Flushdb::new(request, place)
}

builder! {
    /// A request of [`flushdb()`] and its options.
    Flushdb, ()
}

impl<T, S> Flushdb<T, S> {
    /// `ASYNC`, since 4.0.0.
    pub fn async_(self) -> Self {
        self.with(|request| {
            request.push(b"ASYNC");
        })
    }
    /// `SYNC`, since 6.2.0.
    pub fn sync(self) -> Self {
        self.with(|request| {
            request.push(b"SYNC");
        })
    }
}

/// Describe the server's state.
///
/// ```text
/// INFO [section [section ...]]
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/info/) and [Valkey](https://valkey.io/commands/info/).
pub fn info() -> Info {
    let request = cmd("INFO");
    let place = request.place();
    Info::new(request, place)
}

builder! {
    /// A request of [`info()`] and its options.
    Info, String
}

impl<T, S> Info<T, S> {
    /// `section [section ...]`.
    pub fn section(self, sections: impl ToArgs) -> Self {
        self.with(|request| {
            sections.write_args(request);
        })
    }
}

/// Tell when the last snapshot was finished.
///
/// ```text
/// LASTSAVE
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @admin @fast @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/lastsave/) and [Valkey](https://valkey.io/commands/lastsave/).
pub fn lastsave() -> Typed<i64> {
    let request = cmd("LASTSAVE");
    Typed::new(request)
}

/// Report on latency in prose.
///
/// ```text
/// LATENCY DOCTOR
/// ```
///
/// Since 2.8.13. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/latency-doctor/) and [Valkey](https://valkey.io/commands/latency-doctor/).
pub fn latency_doctor() -> Typed<String> {
    let request = cmd("LATENCY DOCTOR");
    Typed::new(request)
}

/// Draw the latency of an event over time.
///
/// ```text
/// LATENCY GRAPH event
/// ```
///
/// Since 2.8.13. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/latency-graph/) and [Valkey](https://valkey.io/commands/latency-graph/).
pub fn latency_graph(event: impl ToArg) -> Typed<String> {
    let mut request = cmd("LATENCY GRAPH");
    event.write_args(&mut request);
    Typed::new(request)
}

/// Show how long commands took, as histograms.
///
/// ```text
/// LATENCY HISTOGRAM [command [command ...]]
/// ```
///
/// Since 7.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/latency-histogram/) and [Valkey](https://valkey.io/commands/latency-histogram/).
pub fn latency_histogram() -> LatencyHistogram {
    let request = cmd("LATENCY HISTOGRAM");
    let place = request.place();
    LatencyHistogram::new(request, place)
}

builder! {
    /// A request of [`latency_histogram()`] and its options.
    LatencyHistogram, HashMap<Bytes, Reply>
}

impl<T, S> LatencyHistogram<T, S> {
    /// `command [command ...]`.
    pub fn command(self, commands: impl ToArgs) -> Self {
        self.with(|request| {
            commands.write_args(request);
        })
    }
}

/// List the samples of an event.
///
/// ```text
/// LATENCY HISTORY event
/// ```
///
/// Since 2.8.13. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/latency-history/) and [Valkey](https://valkey.io/commands/latency-history/).
pub fn latency_history(event: impl ToArg) -> Typed<Vec<(i64, i64)>> {
    let mut request = cmd("LATENCY HISTORY");
    event.write_args(&mut request);
    Typed::new(request)
}

/// List the latest sample of each event.
///
/// ```text
/// LATENCY LATEST
/// ```
///
/// Since 2.8.13. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/latency-latest/) and [Valkey](https://valkey.io/commands/latency-latest/).
pub fn latency_latest() -> Typed<Vec<(Bytes, i64, i64, i64)>> {
    let request = cmd("LATENCY LATEST");
    Typed::new(request)
}

/// Forget the samples of events.
///
/// ```text
/// LATENCY RESET [event [event ...]]
/// ```
///
/// Since 2.8.13. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/latency-reset/) and [Valkey](https://valkey.io/commands/latency-reset/).
pub fn latency_reset() -> LatencyReset {
    let request = cmd("LATENCY RESET");
    let place = request.place();
    LatencyReset::new(request, place)
}

builder! {
    /// A request of [`latency_reset()`] and its options.
    LatencyReset, i64
}

impl<T, S> LatencyReset<T, S> {
    /// `event [event ...]`.
    pub fn event(self, events: impl ToArgs) -> Self {
        self.with(|request| {
            events.write_args(request);
        })
    }
}

/// Draw a picture and tell the version.
///
/// ```text
/// LOLWUT [VERSION version]
/// ```
///
/// Since 5.0.0. ACL: @read @fast.
/// See [Redis](https://redis.io/docs/latest/commands/lolwut/) and [Valkey](https://valkey.io/commands/lolwut/).
pub fn lolwut() -> Lolwut {
    let request = cmd("LOLWUT");
    let place = request.place();
    Lolwut::new(request, place)
}

builder! {
    /// A request of [`lolwut()`] and its options.
    Lolwut, String
}

impl<T, S> Lolwut<T, S> {
    /// `VERSION version`.
    pub fn version(self, version: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"VERSION");
            version.write_args(request);
        })
    }
}

/// Report on memory in prose.
///
/// ```text
/// MEMORY DOCTOR
/// ```
///
/// Since 4.0.0. Takes O(1). ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/memory-doctor/) and [Valkey](https://valkey.io/commands/memory-doctor/).
pub fn memory_doctor() -> Typed<String> {
    let request = cmd("MEMORY DOCTOR");
    Typed::new(request)
}

/// Show the allocator's own figures.
///
/// ```text
/// MEMORY MALLOC-STATS
/// ```
///
/// Since 4.0.0. ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/memory-malloc-stats/) and [Valkey](https://valkey.io/commands/memory-malloc-stats/).
pub fn memory_malloc_stats() -> Typed<String> {
    let request = cmd("MEMORY MALLOC-STATS");
    Typed::new(request)
}

/// Have the allocator give memory back.
///
/// ```text
/// MEMORY PURGE
/// ```
///
/// Since 4.0.0. ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/memory-purge/) and [Valkey](https://valkey.io/commands/memory-purge/).
pub fn memory_purge() -> Typed<()> {
    let request = cmd("MEMORY PURGE");
    Typed::new(request)
}

/// Show where memory goes.
///
/// ```text
/// MEMORY STATS
/// ```
///
/// Since 4.0.0. Takes O(1). ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/memory-stats/) and [Valkey](https://valkey.io/commands/memory-stats/).
pub fn memory_stats() -> Typed<HashMap<Bytes, Reply>> {
    let request = cmd("MEMORY STATS");
    Typed::new(request)
}

/// Estimate the bytes that a key takes.
///
/// ```text
/// MEMORY USAGE key [SAMPLES count]
/// ```
///
/// Since 4.0.0. Takes O(N). ACL: @read @slow.
/// See [Redis](https://redis.io/docs/latest/commands/memory-usage/) and [Valkey](https://valkey.io/commands/memory-usage/).
pub fn memory_usage(key: impl ToArg) -> MemoryUsage {
    let mut request = cmd("MEMORY USAGE");
    key.write_args(&mut request);
    let place = request.place();
    MemoryUsage::new(request, place)
}

builder! {
    /// A request of [`memory_usage()`] and its options.
    MemoryUsage, Option<i64>
}

impl<T, S> MemoryUsage<T, S> {
    /// `SAMPLES count`.
    pub fn samples(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"SAMPLES");
            count.write_args(request);
        })
    }
}

/// List the loaded modules.
///
/// ```text
/// MODULE LIST
/// ```
///
/// Since 4.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/module-list/) and [Valkey](https://valkey.io/commands/module-list/).
pub fn module_list() -> Typed<Vec<HashMap<Bytes, Reply>>> {
    let request = cmd("MODULE LIST");
    Typed::new(request)
}

/// Load a module.
///
/// ```text
/// MODULE LOAD path [arg [arg ...]]
/// ```
///
/// Since 4.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/module-load/) and [Valkey](https://valkey.io/commands/module-load/).
pub fn module_load(path: impl ToArg) -> ModuleLoad {
    let mut request = cmd("MODULE LOAD");
    path.write_args(&mut request);
    let place = request.place();
    ModuleLoad::new(request, place)
}

builder! {
    /// A request of [`module_load()`] and its options.
    ModuleLoad, ()
}

impl<T, S> ModuleLoad<T, S> {
    /// `arg [arg ...]`.
    pub fn arg(self, args: impl ToArgs) -> Self {
        self.with(|request| {
            args.write_args(request);
        })
    }
}

/// Load a module with settings and arguments.
///
/// ```text
/// MODULE LOADEX path [CONFIG name value [CONFIG name value ...]] [ARGS arg [arg ...]]
/// ```
///
/// Since 7.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/module-loadex/) and [Valkey](https://valkey.io/commands/module-loadex/).
pub fn module_loadex(path: impl ToArg) -> ModuleLoadex {
    let mut request = cmd("MODULE LOADEX");
    path.write_args(&mut request);
    let place = request.place();
    ModuleLoadex::new(request, place)
}

builder! {
    /// A request of [`module_loadex()`] and its options.
    ModuleLoadex, ()
}

impl<T, S> ModuleLoadex<T, S> {
    /// `CONFIG name value [CONFIG name value ...]`.
    pub fn config(self, name: impl ToArg, value: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"CONFIG");
            name.write_args(request);
            value.write_args(request);
        })
    }
    /// `ARGS arg [arg ...]`.
    pub fn args(self, arg: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"ARGS");
            arg.write_args(request);
        })
    }
}

/// Unload a module.
///
/// ```text
/// MODULE UNLOAD name
/// ```
///
/// Since 4.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/module-unload/) and [Valkey](https://valkey.io/commands/module-unload/).
pub fn module_unload(name: impl ToArg) -> Typed<()> {
    let mut request = cmd("MODULE UNLOAD");
    name.write_args(&mut request);
    Typed::new(request)
}

/// Make the server a replica of another, or a primary.
///
/// ```text
/// REPLICAOF <host port | NO ONE>
/// ```
///
/// Since 5.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/replicaof/) and [Valkey](https://valkey.io/commands/replicaof/).
pub fn replicaof() -> Replicaof {
    let request = cmd("REPLICAOF");
    let place = request.place();
    Replicaof::new(request, place)
}

builder! {
    /// A request of [`replicaof()`] and its options.
    Replicaof, String
}

impl<T, S> Replicaof<T, S> {
    /// `host port`.
    pub fn host_port(self, host: impl ToArg, port: impl ToInteger) -> Self {
        self.with(|request| {
            host.write_args(request);
            port.write_args(request);
        })
    }
    /// `NO ONE`.
    pub fn no_one(self) -> Self {
        self.with(|request| {
            request.push(b"NO");
            request.push(b"ONE");
        })
    }
}

/// Tell the server's part in replication.
///
/// ```text
/// ROLE
/// ```
///
/// Since 2.8.12. Takes O(1). ACL: @admin @fast @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/role/) and [Valkey](https://valkey.io/commands/role/).
pub fn role() -> Typed<Vec<Reply>> {
    let request = cmd("ROLE");
    Typed::new(request)
}

/// Write a snapshot while all clients wait.
///
/// ```text
/// SAVE
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/save/) and [Valkey](https://valkey.io/commands/save/).
pub fn save() -> Typed<()> {
    let request = cmd("SAVE");
    Typed::new(request)
}

/// Save if need be, and end the server.
///
/// ```text
/// SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/shutdown/) and [Valkey](https://valkey.io/commands/shutdown/).
pub fn shutdown() -> Shutdown {
    let request = cmd("SHUTDOWN");
    let place = request.place();
    Shutdown::new(request, place)
}

builder! {
    /// A request of [`shutdown()`] and its options.
    Shutdown, ()
}

impl<T, S> Shutdown<T, S> {
    /// `NOSAVE`.
    pub fn nosave(self) -> Self {
        self.with(|request| {
            request.push(b"NOSAVE");
        })
    }
    /// `SAVE`.
    pub fn save(self) -> Self {
        self.with(|request| {
            request.push(b"SAVE");
        })
    }
    /// `NOW`, since 7.0.0.
    pub fn now(self) -> Self {
        self.with(|request| {
            request.push(b"NOW");
        })
    }
    /// `FORCE`, since 7.0.0.
    pub fn force(self) -> Self {
        self.with(|request| {
            request.push(b"FORCE");
        })
    }
    /// `ABORT`, since 7.0.0.
    pub fn abort(self) -> Self {
        self.with(|request| {
            request.push(b"ABORT");
        })
    }
}

/// Make the server a replica of another, or a primary.
///
/// ```text
/// SLAVEOF <host port | NO ONE>
/// ```
///
/// Since 1.0.0. Deprecated since 5.0.0: use REPLICAOF. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/slaveof/) and [Valkey](https://valkey.io/commands/slaveof/).
pub fn slaveof() -> Slaveof {
    let request = cmd("SLAVEOF");
    let place = request.place();
    Slaveof::new(request, place)
}

builder! {
    /// A request of [`slaveof()`] and its options.
    Slaveof, String
}

impl<T, S> Slaveof<T, S> {
    /// `host port`.
    pub fn host_port(self, host: impl ToArg, port: impl ToInteger) -> Self {
        self.with(|request| {
            host.write_args(request);
            port.write_args(request);
        })
    }
    /// `NO ONE`.
    pub fn no_one(self) -> Self {
        self.with(|request| {
            request.push(b"NO");
            request.push(b"ONE");
        })
    }
}

/// List slow commands.
///
/// ```text
/// SLOWLOG GET [count]
/// ```
///
/// Since 2.2.12. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/slowlog-get/) and [Valkey](https://valkey.io/commands/slowlog-get/).
pub fn slowlog_get() -> SlowlogGet {
    let request = cmd("SLOWLOG GET");
    let place = request.place();
    SlowlogGet::new(request, place)
}

builder! {
    /// A request of [`slowlog_get()`] and its options.
    SlowlogGet, Vec<Reply>
}

impl<T, S> SlowlogGet<T, S> {
    /// `count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            count.write_args(request);
        })
    }
}

/// Count the entries of the slow log.
///
/// ```text
/// SLOWLOG LEN
/// ```
///
/// Since 2.2.12. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/slowlog-len/) and [Valkey](https://valkey.io/commands/slowlog-len/).
pub fn slowlog_len() -> Typed<i64> {
    let request = cmd("SLOWLOG LEN");
    Typed::new(request)
}

/// Empty the slow log.
///
/// ```text
/// SLOWLOG RESET
/// ```
///
/// Since 2.2.12. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/slowlog-reset/) and [Valkey](https://valkey.io/commands/slowlog-reset/).
pub fn slowlog_reset() -> Typed<()> {
    let request = cmd("SLOWLOG RESET");
    Typed::new(request)
}

/// Swap two databases.
///
/// ```text
/// SWAPDB index1 index2
/// ```
///
/// Since 4.0.0. Takes O(N). ACL: @keyspace @write @fast @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/swapdb/) and [Valkey](https://valkey.io/commands/swapdb/).
pub fn swapdb(index1: impl ToInteger, index2: impl ToInteger) -> Typed<()> {
    let mut request = cmd("SWAPDB");
    index1.write_args(&mut request);
    index2.write_args(&mut request);
    Typed::new(request)
}

/// Tell the server's time.
///
/// ```text
/// TIME
/// ```
///
/// Since 2.6.0. Takes O(1). ACL: @fast.
/// See [Redis](https://redis.io/docs/latest/commands/time/) and [Valkey](https://valkey.io/commands/time/).
pub fn time() -> Typed<(u64, u64)> {
    let request = cmd("TIME");
    Typed::new(request)
}

/// Commands of the group server.
impl crate::Client {
    /// List the command categories, or the commands of one.
    ///
    /// `ACL CAT [categoryname]`: see [`acl_cat()`].
    pub fn acl_cat(&self) -> AclCat<Vec<Bytes>, &Self> {
        acl_cat().on(self)
    }
    /// Remove users and close their connections.
    ///
    /// `ACL DELUSER username [username ...]`: see [`acl_deluser()`].
    pub fn acl_deluser(&self, usernames: impl ToArgs) -> Typed<i64, &Self> {
        acl_deluser(usernames).on(self)
    }
    /// Tell whether a user may run a command, without running it.
    ///
    /// `ACL DRYRUN username command [arg [arg ...]]`: see [`acl_dryrun()`].
    pub fn acl_dryrun(&self, username: impl ToArg, command: impl ToArg) -> AclDryrun<Reply, &Self> {
        acl_dryrun(username, command).on(self)
    }
    /// Make a random password.
    ///
    /// `ACL GENPASS [bits]`: see [`acl_genpass()`].
    pub fn acl_genpass(&self) -> AclGenpass<Bytes, &Self> {
        acl_genpass().on(self)
    }
    /// Show the rules of a user.
    ///
    /// `ACL GETUSER username`: see [`acl_getuser()`].
    pub fn acl_getuser(&self, username: impl ToArg) -> Typed<Option<HashMap<Bytes, Reply>>, &Self> {
        acl_getuser(username).on(self)
    }
    /// Show every user as a line of the ACL file.
    ///
    /// `ACL LIST`: see [`acl_list()`].
    pub fn acl_list(&self) -> Typed<Vec<Bytes>, &Self> {
        acl_list().on(self)
    }
    /// Read the users again from the ACL file.
    ///
    /// `ACL LOAD`: see [`acl_load()`].
    pub fn acl_load(&self) -> Typed<(), &Self> {
        acl_load().on(self)
    }
    /// Show or clear the latest refusals.
    ///
    /// `ACL LOG [count | RESET]`: see [`acl_log()`].
    pub fn acl_log(&self) -> AclLog<Vec<HashMap<Bytes, Reply>>, &Self> {
        acl_log().on(self)
    }
    /// Write the users to the ACL file.
    ///
    /// `ACL SAVE`: see [`acl_save()`].
    pub fn acl_save(&self) -> Typed<(), &Self> {
        acl_save().on(self)
    }
    /// Make a user or change its rules.
    ///
    /// `ACL SETUSER username [rule [rule ...]]`: see [`acl_setuser()`].
    pub fn acl_setuser(&self, username: impl ToArg) -> AclSetuser<(), &Self> {
        acl_setuser(username).on(self)
    }
    /// List the names of users.
    ///
    /// `ACL USERS`: see [`acl_users()`].
    pub fn acl_users(&self) -> Typed<Vec<Bytes>, &Self> {
        acl_users().on(self)
    }
    /// Tell the user of this connection.
    ///
    /// `ACL WHOAMI`: see [`acl_whoami()`].
    pub fn acl_whoami(&self) -> Typed<Bytes, &Self> {
        acl_whoami().on(self)
    }
    /// Rewrite the append-only file in the background.
    ///
    /// `BGREWRITEAOF`: see [`bgrewriteaof()`].
    pub fn bgrewriteaof(&self) -> Typed<String, &Self> {
        bgrewriteaof().on(self)
    }
    /// Write a snapshot in the background.
    ///
    /// `BGSAVE [SCHEDULE]`: see [`bgsave()`].
    pub fn bgsave(&self) -> Bgsave<String, &Self> {
        bgsave().on(self)
    }
    /// Describe every command.
    ///
    /// `COMMAND`: see [`command()`].
    pub fn command(&self) -> Typed<Vec<Reply>, &Self> {
        command().on(self)
    }
    /// Count the commands.
    ///
    /// `COMMAND COUNT`: see [`command_count()`].
    pub fn command_count(&self) -> Typed<i64, &Self> {
        command_count().on(self)
    }
    /// Document commands.
    ///
    /// `COMMAND DOCS [command-name [command-name ...]]`: see [`command_docs()`].
    pub fn command_docs(&self) -> CommandDocs<HashMap<Bytes, Reply>, &Self> {
        command_docs().on(self)
    }
    /// Describe the named commands.
    ///
    /// `COMMAND INFO [command-name [command-name ...]]`: see [`command_info()`].
    pub fn command_info(&self) -> CommandInfo<Vec<Reply>, &Self> {
        command_info().on(self)
    }
    /// List the names of commands.
    ///
    /// `COMMAND LIST [FILTERBY MODULE module-name | ACLCAT category | PATTERN pattern]`: see [`command_list()`].
    pub fn command_list(&self) -> CommandList<Vec<Bytes>, &Self> {
        command_list().on(self)
    }
    /// List commands of one of the logs.
    ///
    /// `COMMANDLOG GET count type`: see [`commandlog_get()`].
    pub fn commandlog_get(&self, count: impl ToInteger, type_: impl ToArg) -> Typed<Vec<Reply>, &Self> {
        commandlog_get(count, type_).on(self)
    }
    /// Count the entries of one of the logs.
    ///
    /// `COMMANDLOG LEN type`: see [`commandlog_len()`].
    pub fn commandlog_len(&self, type_: impl ToArg) -> Typed<i64, &Self> {
        commandlog_len(type_).on(self)
    }
    /// Empty one of the logs.
    ///
    /// `COMMANDLOG RESET type`: see [`commandlog_reset()`].
    pub fn commandlog_reset(&self, type_: impl ToArg) -> Typed<(), &Self> {
        commandlog_reset(type_).on(self)
    }
    /// Show the settings whose names match patterns.
    ///
    /// `CONFIG GET parameter [parameter ...]`: see [`config_get()`].
    pub fn config_get(&self, parameters: impl ToArgs) -> Typed<HashMap<Bytes, Bytes>, &Self> {
        config_get(parameters).on(self)
    }
    /// Set the counters of INFO back to zero.
    ///
    /// `CONFIG RESETSTAT`: see [`config_resetstat()`].
    pub fn config_resetstat(&self) -> Typed<(), &Self> {
        config_resetstat().on(self)
    }
    /// Write the settings to the configuration file.
    ///
    /// `CONFIG REWRITE`: see [`config_rewrite()`].
    pub fn config_rewrite(&self) -> Typed<(), &Self> {
        config_rewrite().on(self)
    }
    /// Change settings while running.
    ///
    /// `CONFIG SET parameter value [parameter value ...]`: see [`config_set()`].
    pub fn config_set(&self, pairs: impl ToArgs) -> Typed<(), &Self> {
        config_set(pairs).on(self)
    }
    /// Count the keys of the database.
    ///
    /// `DBSIZE`: see [`dbsize()`].
    pub fn dbsize(&self) -> Typed<i64, &Self> {
        dbsize().on(self)
    }
    /// Hand over from this primary to one of its replicas.
    ///
    /// `FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]`: see [`failover()`].
    pub fn failover(&self) -> Failover<(), &Self> {
        failover().on(self)
    }
    /// Delete every key of every database.
    ///
    /// `FLUSHALL [ASYNC | SYNC]`: see [`flushall()`].
    pub fn flushall(&self) -> Flushall<(), &Self> {
        flushall().on(self)
    }
    /// Delete every key of the database.
    ///
    /// `FLUSHDB [ASYNC | SYNC]`: see [`flushdb()`].
    pub fn flushdb(&self) -> Flushdb<(), &Self> {
        flushdb().on(self)
    }
    /// Describe the server's state.
    ///
    /// `INFO [section [section ...]]`: see [`info()`].
    pub fn info(&self) -> Info<String, &Self> {
        info().on(self)
    }
    /// Tell when the last snapshot was finished.
    ///
    /// `LASTSAVE`: see [`lastsave()`].
    pub fn lastsave(&self) -> Typed<i64, &Self> {
        lastsave().on(self)
    }
    /// Report on latency in prose.
    ///
    /// `LATENCY DOCTOR`: see [`latency_doctor()`].
    pub fn latency_doctor(&self) -> Typed<String, &Self> {
        latency_doctor().on(self)
    }
    /// Draw the latency of an event over time.
    ///
    /// `LATENCY GRAPH event`: see [`latency_graph()`].
    pub fn latency_graph(&self, event: impl ToArg) -> Typed<String, &Self> {
        latency_graph(event).on(self)
    }
    /// Show how long commands took, as histograms.
    ///
    /// `LATENCY HISTOGRAM [command [command ...]]`: see [`latency_histogram()`].
    pub fn latency_histogram(&self) -> LatencyHistogram<HashMap<Bytes, Reply>, &Self> {
        latency_histogram().on(self)
    }
    /// List the samples of an event.
    ///
    /// `LATENCY HISTORY event`: see [`latency_history()`].
    pub fn latency_history(&self, event: impl ToArg) -> Typed<Vec<(i64, i64)>, &Self> {
        latency_history(event).on(self)
    }
    /// List the latest sample of each event.
    ///
    /// `LATENCY LATEST`: see [`latency_latest()`].
    pub fn latency_latest(&self) -> Typed<Vec<(Bytes, i64, i64, i64)>, &Self> {
        latency_latest().on(self)
    }
    /// Forget the samples of events.
    ///
    /// `LATENCY RESET [event [event ...]]`: see [`latency_reset()`].
    pub fn latency_reset(&self) -> LatencyReset<i64, &Self> {
        latency_reset().on(self)
    }
    /// Draw a picture and tell the version.
    ///
    /// `LOLWUT [VERSION version]`: see [`lolwut()`].
    pub fn lolwut(&self) -> Lolwut<String, &Self> {
        lolwut().on(self)
    }
    /// Report on memory in prose.
    ///
    /// `MEMORY DOCTOR`: see [`memory_doctor()`].
    pub fn memory_doctor(&self) -> Typed<String, &Self> {
        memory_doctor().on(self)
    }
    /// Show the allocator's own figures.
    ///
    /// `MEMORY MALLOC-STATS`: see [`memory_malloc_stats()`].
    pub fn memory_malloc_stats(&self) -> Typed<String, &Self> {
        memory_malloc_stats().on(self)
    }
    /// Have the allocator give memory back.
    ///
    /// `MEMORY PURGE`: see [`memory_purge()`].
    pub fn memory_purge(&self) -> Typed<(), &Self> {
        memory_purge().on(self)
    }
    /// Show where memory goes.
    ///
    /// `MEMORY STATS`: see [`memory_stats()`].
    pub fn memory_stats(&self) -> Typed<HashMap<Bytes, Reply>, &Self> {
        memory_stats().on(self)
    }
    /// Estimate the bytes that a key takes.
    ///
    /// `MEMORY USAGE key [SAMPLES count]`: see [`memory_usage()`].
    pub fn memory_usage(&self, key: impl ToArg) -> MemoryUsage<Option<i64>, &Self> {
        memory_usage(key).on(self)
    }
    /// List the loaded modules.
    ///
    /// `MODULE LIST`: see [`module_list()`].
    pub fn module_list(&self) -> Typed<Vec<HashMap<Bytes, Reply>>, &Self> {
        module_list().on(self)
    }
    /// Load a module.
    ///
    /// `MODULE LOAD path [arg [arg ...]]`: see [`module_load()`].
    pub fn module_load(&self, path: impl ToArg) -> ModuleLoad<(), &Self> {
        module_load(path).on(self)
    }
    /// Load a module with settings and arguments.
    ///
    /// `MODULE LOADEX path [CONFIG name value [CONFIG name value ...]] [ARGS arg [arg ...]]`: see [`module_loadex()`].
    pub fn module_loadex(&self, path: impl ToArg) -> ModuleLoadex<(), &Self> {
        module_loadex(path).on(self)
    }
    /// Unload a module.
    ///
    /// `MODULE UNLOAD name`: see [`module_unload()`].
    pub fn module_unload(&self, name: impl ToArg) -> Typed<(), &Self> {
        module_unload(name).on(self)
    }
    /// Make the server a replica of another, or a primary.
    ///
    /// `REPLICAOF <host port | NO ONE>`: see [`replicaof()`].
    pub fn replicaof(&self) -> Replicaof<String, &Self> {
        replicaof().on(self)
    }
    /// Tell the server's part in replication.
    ///
    /// `ROLE`: see [`role()`].
    pub fn role(&self) -> Typed<Vec<Reply>, &Self> {
        role().on(self)
    }
    /// Write a snapshot while all clients wait.
    ///
    /// `SAVE`: see [`save()`].
    pub fn save(&self) -> Typed<(), &Self> {
        save().on(self)
    }
    /// Save if need be, and end the server.
    ///
    /// `SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]`: see [`shutdown()`].
    pub fn shutdown(&self) -> Shutdown<(), &Self> {
        shutdown().on(self)
    }
    /// Make the server a replica of another, or a primary.
    ///
    /// `SLAVEOF <host port | NO ONE>`: see [`slaveof()`].
    pub fn slaveof(&self) -> Slaveof<String, &Self> {
        slaveof().on(self)
    }
    /// List slow commands.
    ///
    /// `SLOWLOG GET [count]`: see [`slowlog_get()`].
    pub fn slowlog_get(&self) -> SlowlogGet<Vec<Reply>, &Self> {
        slowlog_get().on(self)
    }
    /// Count the entries of the slow log.
    ///
    /// `SLOWLOG LEN`: see [`slowlog_len()`].
    pub fn slowlog_len(&self) -> Typed<i64, &Self> {
        slowlog_len().on(self)
    }
    /// Empty the slow log.
    ///
    /// `SLOWLOG RESET`: see [`slowlog_reset()`].
    pub fn slowlog_reset(&self) -> Typed<(), &Self> {
        slowlog_reset().on(self)
    }
    /// Swap two databases.
    ///
    /// `SWAPDB index1 index2`: see [`swapdb()`].
    pub fn swapdb(&self, index1: impl ToInteger, index2: impl ToInteger) -> Typed<(), &Self> {
        swapdb(index1, index2).on(self)
    }
    /// Tell the server's time.
    ///
    /// `TIME`: see [`time()`].
    pub fn time(&self) -> Typed<(u64, u64), &Self> {
        time().on(self)
    }
}
