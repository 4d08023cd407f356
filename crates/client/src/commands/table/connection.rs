//! Commands of the group connection.

// Written by `cargo xtask codegen` from the command table. Not to be edited.
#![allow(unused_imports, reason = "each group needs some of them")]
#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "replies and requests are what they are")]

use super::*;
use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};
use crate::{Reply, ToArgs, cmd};
use bytes::Bytes;
use std::collections::HashMap;

/// Tell the name given to this connection.
///
/// ```text
/// CLIENT GETNAME
/// ```
///
/// Since 2.6.9. Takes O(1). ACL: @slow @connection.
/// See [Redis](https://redis.io/docs/latest/commands/client-getname/) and [Valkey](https://valkey.io/commands/client-getname/).
pub fn client_getname() -> Typed<Option<Bytes>> {
    let request = cmd("CLIENT GETNAME");
    Typed::new(request)
}

/// Tell which connection receives this one's invalidations.
///
/// ```text
/// CLIENT GETREDIR
/// ```
///
/// Since 6.0.0. Takes O(1). ACL: @slow @connection.
/// See [Redis](https://redis.io/docs/latest/commands/client-getredir/) and [Valkey](https://valkey.io/commands/client-getredir/).
pub fn client_getredir() -> Typed<i64> {
    let request = cmd("CLIENT GETREDIR");
    Typed::new(request)
}

/// Tell the number of this connection.
///
/// ```text
/// CLIENT ID
/// ```
///
/// Since 5.0.0. Takes O(1). ACL: @slow @connection.
/// See [Redis](https://redis.io/docs/latest/commands/client-id/) and [Valkey](https://valkey.io/commands/client-id/).
pub fn client_id() -> Typed<i64> {
    let request = cmd("CLIENT ID");
    Typed::new(request)
}

/// Describe this connection.
///
/// ```text
/// CLIENT INFO
/// ```
///
/// Since 6.2.0. Takes O(1). ACL: @slow @connection.
/// See [Redis](https://redis.io/docs/latest/commands/client-info/) and [Valkey](https://valkey.io/commands/client-info/).
pub fn client_info() -> Typed<String> {
    let request = cmd("CLIENT INFO");
    Typed::new(request)
}

/// Close connections by address, number, user or kind.
///
/// ```text
/// CLIENT KILL <ip:port | <[ID client-id] | [TYPE NORMAL | MASTER | SLAVE | REPLICA | PUBSUB] | [USER username] | [ADDR ip:port] | [LADDR ip:port] | [SKIPME yes/no]> [<[ID client-id] | [TYPE NORMAL | MASTER | SLAVE | REPLICA | PUBSUB] | [USER username] | [ADDR ip:port] | [LADDR ip:port] | [SKIPME yes/no]> ...]>
/// ```
///
/// Since 2.4.0. Takes O(N). ACL: @admin @slow @dangerous @connection.
/// See [Redis](https://redis.io/docs/latest/commands/client-kill/) and [Valkey](https://valkey.io/commands/client-kill/).
pub fn client_kill() -> ClientKill {
    let request = cmd("CLIENT KILL");
    let place = request.place();
    ClientKill::new(request, place)
}

builder! {
    /// A request of [`client_kill()`] and its options.
    ClientKill, i64
}

impl<T, S> ClientKill<T, S> {
    /// `ID client-id`, since 2.8.12.
    pub fn id(self, client_id: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"ID");
            client_id.write_args(request);
        })
    }
    /// `TYPE NORMAL | MASTER | SLAVE | REPLICA | PUBSUB`, since 2.8.12.
    pub fn type_(self, normal_master_slave_pubsub: NormalMasterSlavePubsub) -> Self {
        self.with(|request| {
            request.push(b"TYPE");
            normal_master_slave_pubsub.write_args(request);
        })
    }
    /// `USER username`.
    pub fn user(self, username: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"USER");
            username.write_args(request);
        })
    }
    /// `ADDR ip:port`.
    pub fn addr(self, ip_port: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"ADDR");
            ip_port.write_args(request);
        })
    }
    /// `LADDR ip:port`, since 6.2.0.
    pub fn laddr(self, ip_port: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"LADDR");
            ip_port.write_args(request);
        })
    }
    /// `SKIPME yes/no`.
    pub fn skipme(self, yes_no: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"SKIPME");
            yes_no.write_args(request);
        })
    }
}

impl<S> ClientKill<i64, S> {
    /// `ip:port`.
    pub fn ip_port(self, ip_port: impl ToArg) -> ClientKill<(), S> {
        self.with(|request| {
            ip_port.write_args(request);
        })
        .retyped()
    }
}

impl<S> ClientKill<(), S> {
    /// `ip:port`.
    pub fn ip_port(self, ip_port: impl ToArg) -> Self {
        self.with(|request| {
            ip_port.write_args(request);
        })
    }
}

/// Describe the open connections.
///
/// ```text
/// CLIENT LIST [TYPE NORMAL | MASTER | REPLICA | PUBSUB] [ID client-id [client-id ...]]
/// ```
///
/// Since 2.4.0. Takes O(N). ACL: @admin @slow @dangerous @connection.
/// See [Redis](https://redis.io/docs/latest/commands/client-list/) and [Valkey](https://valkey.io/commands/client-list/).
pub fn client_list() -> ClientList {
    let request = cmd("CLIENT LIST");
    let place = request.place();
    ClientList::new(request, place)
}

builder! {
    /// A request of [`client_list()`] and its options.
    ClientList, String
}

impl<T, S> ClientList<T, S> {
    /// `TYPE NORMAL | MASTER | REPLICA | PUBSUB`, since 5.0.0.
    pub fn type_(self, normal_master_replica_pubsub: NormalMasterReplicaPubsub) -> Self {
        self.with(|request| {
            request.push(b"TYPE");
            normal_master_replica_pubsub.write_args(request);
        })
    }
    /// `ID client-id [client-id ...]`, since 6.2.0.
    pub fn id(self, client_ids: impl ToArgs) -> Self {
        self.with(|request| {
            request.push(b"ID");
            client_ids.write_args(request);
        })
    }
}

/// Hold back the commands of all clients for a while.
///
/// ```text
/// CLIENT PAUSE timeout [WRITE | ALL]
/// ```
///
/// Since 2.9.50. Takes O(1). ACL: @admin @slow @dangerous @connection.
/// See [Redis](https://redis.io/docs/latest/commands/client-pause/) and [Valkey](https://valkey.io/commands/client-pause/).
pub fn client_pause(timeout: impl ToInteger) -> ClientPause {
    let mut request = cmd("CLIENT PAUSE");
    timeout.write_args(&mut request);
    let place = request.place();
    ClientPause::new(request, place)
}

builder! {
    /// A request of [`client_pause()`] and its options.
    ClientPause, ()
}

impl<T, S> ClientPause<T, S> {
    /// `WRITE`.
    pub fn write(self) -> Self {
        self.with(|request| {
            request.push(b"WRITE");
        })
    }
    /// `ALL`.
    pub fn all(self) -> Self {
        self.with(|request| {
            request.push(b"ALL");
        })
    }
}

/// Show how this connection tracks keys.
///
/// ```text
/// CLIENT TRACKINGINFO
/// ```
///
/// Since 6.2.0. Takes O(1). ACL: @slow @connection.
/// See [Redis](https://redis.io/docs/latest/commands/client-trackinginfo/) and [Valkey](https://valkey.io/commands/client-trackinginfo/).
pub fn client_trackinginfo() -> Typed<HashMap<Bytes, Reply>> {
    let request = cmd("CLIENT TRACKINGINFO");
    Typed::new(request)
}

/// Wake a connection that waits in a blocking command.
///
/// ```text
/// CLIENT UNBLOCK client-id [TIMEOUT | ERROR]
/// ```
///
/// Since 5.0.0. Takes O(log N). ACL: @admin @slow @dangerous @connection.
/// See [Redis](https://redis.io/docs/latest/commands/client-unblock/) and [Valkey](https://valkey.io/commands/client-unblock/).
pub fn client_unblock(client_id: impl ToInteger) -> ClientUnblock {
    let mut request = cmd("CLIENT UNBLOCK");
    client_id.write_args(&mut request);
    let place = request.place();
    ClientUnblock::new(request, place)
}

builder! {
    /// A request of [`client_unblock()`] and its options.
    ClientUnblock, bool
}

impl<T, S> ClientUnblock<T, S> {
    /// `TIMEOUT`.
    pub fn timeout(self) -> Self {
        self.with(|request| {
            request.push(b"TIMEOUT");
        })
    }
    /// `ERROR`.
    pub fn error(self) -> Self {
        self.with(|request| {
            request.push(b"ERROR");
        })
    }
}

/// End a pause of all clients.
///
/// ```text
/// CLIENT UNPAUSE
/// ```
///
/// Since 6.2.0. Takes O(N). ACL: @admin @slow @dangerous @connection.
/// See [Redis](https://redis.io/docs/latest/commands/client-unpause/) and [Valkey](https://valkey.io/commands/client-unpause/).
pub fn client_unpause() -> Typed<()> {
    let request = cmd("CLIENT UNPAUSE");
    Typed::new(request)
}

/// Answer with the argument.
///
/// ```text
/// ECHO message
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @fast @connection.
/// See [Redis](https://redis.io/docs/latest/commands/echo/) and [Valkey](https://valkey.io/commands/echo/).
pub fn echo(message: impl ToArg) -> Typed<Bytes> {
    let mut request = cmd("ECHO");
    message.write_args(&mut request);
    Typed::new(request)
}

/// Answer PONG, or the argument.
///
/// ```text
/// PING [message]
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @fast @connection.
/// See [Redis](https://redis.io/docs/latest/commands/ping/) and [Valkey](https://valkey.io/commands/ping/).
pub fn ping() -> Ping {
    let request = cmd("PING");
    let place = request.place();
    Ping::new(request, place)
}

builder! {
    /// A request of [`ping()`] and its options.
    Ping, String
}

impl<S> Ping<String, S> {
    /// `message`.
    pub fn message(self, message: impl ToArg) -> Ping<Bytes, S> {
        self.with(|request| {
            message.write_args(request);
        })
        .retyped()
    }
}

impl<S> Ping<Bytes, S> {
    /// `message`.
    pub fn message(self, message: impl ToArg) -> Self {
        self.with(|request| {
            message.write_args(request);
        })
    }
}

/// Commands of the group connection.
impl crate::Client {
    /// Tell the name given to this connection.
    ///
    /// `CLIENT GETNAME`: see [`client_getname()`].
    pub fn client_getname(&self) -> Typed<Option<Bytes>, &Self> {
        client_getname().on(self)
    }
    /// Tell which connection receives this one's invalidations.
    ///
    /// `CLIENT GETREDIR`: see [`client_getredir()`].
    pub fn client_getredir(&self) -> Typed<i64, &Self> {
        client_getredir().on(self)
    }
    /// Tell the number of this connection.
    ///
    /// `CLIENT ID`: see [`client_id()`].
    pub fn client_id(&self) -> Typed<i64, &Self> {
        client_id().on(self)
    }
    /// Describe this connection.
    ///
    /// `CLIENT INFO`: see [`client_info()`].
    pub fn client_info(&self) -> Typed<String, &Self> {
        client_info().on(self)
    }
    /// Close connections by address, number, user or kind.
    ///
    /// `CLIENT KILL <ip:port | <[ID client-id] | [TYPE NORMAL | MASTER | SLAVE | REPLICA | PUBSUB] | [USER username] | [ADDR ip:port] | [LADDR ip:port] | [SKIPME yes/no]> [<[ID client-id] | [TYPE NORMAL | MASTER | SLAVE | REPLICA | PUBSUB] | [USER username] | [ADDR ip:port] | [LADDR ip:port] | [SKIPME yes/no]> ...]>`: see [`client_kill()`].
    pub fn client_kill(&self) -> ClientKill<i64, &Self> {
        client_kill().on(self)
    }
    /// Describe the open connections.
    ///
    /// `CLIENT LIST [TYPE NORMAL | MASTER | REPLICA | PUBSUB] [ID client-id [client-id ...]]`: see [`client_list()`].
    pub fn client_list(&self) -> ClientList<String, &Self> {
        client_list().on(self)
    }
    /// Hold back the commands of all clients for a while.
    ///
    /// `CLIENT PAUSE timeout [WRITE | ALL]`: see [`client_pause()`].
    pub fn client_pause(&self, timeout: impl ToInteger) -> ClientPause<(), &Self> {
        client_pause(timeout).on(self)
    }
    /// Show how this connection tracks keys.
    ///
    /// `CLIENT TRACKINGINFO`: see [`client_trackinginfo()`].
    pub fn client_trackinginfo(&self) -> Typed<HashMap<Bytes, Reply>, &Self> {
        client_trackinginfo().on(self)
    }
    /// Wake a connection that waits in a blocking command.
    ///
    /// `CLIENT UNBLOCK client-id [TIMEOUT | ERROR]`: see [`client_unblock()`].
    pub fn client_unblock(&self, client_id: impl ToInteger) -> ClientUnblock<bool, &Self> {
        client_unblock(client_id).on(self)
    }
    /// End a pause of all clients.
    ///
    /// `CLIENT UNPAUSE`: see [`client_unpause()`].
    pub fn client_unpause(&self) -> Typed<(), &Self> {
        client_unpause().on(self)
    }
    /// Answer with the argument.
    ///
    /// `ECHO message`: see [`echo()`].
    pub fn echo(&self, message: impl ToArg) -> Typed<Bytes, &Self> {
        echo(message).on(self)
    }
    /// Answer PONG, or the argument.
    ///
    /// `PING [message]`: see [`ping()`].
    pub fn ping(&self) -> Ping<String, &Self> {
        ping().on(self)
    }
}
