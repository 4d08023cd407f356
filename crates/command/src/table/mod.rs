//! The rows, a file per group.
//!
//! A group's file is one `rows!` list. The macro makes the group's enum and its rows from it, so a command exists in
//! exactly one place, and a match over the enum is asked for an arm as soon as a row is added. The comment above a row
//! is its documentation everywhere: in the enum, in `COMMAND DOCS` and in the generated page. Between the two stand the
//! columns that are told and not looked at while requests run, of which each may be missing: `#[args = ..]` (the notation is
//! that of [`Arguments`](crate::Arguments)), `#[reply = ..]` (that of [`Returns`](crate::Returns)), `#[complexity = ..]` and
//! `#[changes = "connection"]`.
//! They are kept apart from the rows, in a list that the number of the command leads to.

use crate::{Group, Row, Usage};

/// Makes a group's enum and its rows.
macro_rules! rows {
    (
        $(#[$about:meta])*
        $commands:ident, $group:ident;
        $(
            $(#[doc = $doc:literal])+
            $(#[args = $args:literal])?
            $(#[reply = $reply:literal])?
            $(#[complexity = $complexity:literal])?
            $(#[changes = $changes:literal])?
            $command:ident = $row:expr
            $( => {
                $(
                    $(#[doc = $sub_doc:literal])+
                    $(#[args = $sub_args:literal])?
                    $(#[reply = $sub_reply:literal])?
                    $(#[complexity = $sub_complexity:literal])?
                    $(#[changes = $sub_changes:literal])?
                    $sub:ident = $sub_row:expr;
                )+
            } )?;
        )+
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $commands {
            $(
                $(#[doc = $doc])+
                $command,
                $( $( $(#[doc = $sub_doc])+ $sub, )+ )?
            )+
        }

        /// How many rows the group has, subcommands included.
        pub(super) const COUNT: usize =
            [$( stringify!($command), $( $( stringify!($sub), )+ )? )+].len();

        /// What is told of each, in the order of the enum.
        pub(super) static USAGES: [crate::Usage; COUNT] = [
            $(
                crate::Usage {
                    args: concat!($($args)?),
                    reply: concat!($($reply)?),
                    complexity: concat!($($complexity)?),
                    changes: concat!($($changes)?),
                },
                $( $(
                    crate::Usage {
                        args: concat!($($sub_args)?),
                        reply: concat!($($sub_reply)?),
                        complexity: concat!($($sub_complexity)?),
                        changes: concat!($($sub_changes)?),
                    },
                )+ )?
            )+
        ];

        /// The group's rows.
        pub(super) static ROWS: &[crate::Row] = &[
            $(
                $row.finish(
                    super::Command::$group($commands::$command),
                    crate::Group::$group,
                    concat!($($doc),+),
                    concat!($($reply)?),
                    const { &[
                        $( $(
                            $sub_row.finish(
                                super::Command::$group($commands::$sub),
                                crate::Group::$group,
                                concat!($($sub_doc),+),
                                concat!($($sub_reply)?),
                                &[],
                            ),
                        )+ )?
                    ] },
                ),
            )+
        ];
    };
}

/// Makes the modules, the enum over all groups and the list of their rows.
macro_rules! groups {
    ($( $(#[$doc:meta])* $module:ident $group:ident $commands:ident; )+) => {
        $( mod $module; pub use $module::$commands; )+

        /// Which command, by group. A match over a group's enum is exhaustive.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Command {
            $( $(#[$doc])* $group($commands), )+
            /// One that the table does not know and a node does: see [`learn`](crate::learn()).
            Learnt,
        }

        impl Command {
            /// How many commands there are, subcommands included.
            pub const COUNT: usize = 0 $( + $module::COUNT )+;

            /// A number below [`Command::COUNT`] that no other command has, for sets of commands; [`Command::COUNT`] itself
            /// for all that were learnt. It holds for this build alone.
            pub const fn ordinal(self) -> usize {
                let before = 0;
                $(
                    if let Self::$group(command) = self {
                        return before + command as usize;
                    }
                    let before = before + $module::COUNT;
                )+
                before
            }
        }

        /// What is told of a command: arguments, reply and complexity.
        pub(crate) fn usage(command: Command) -> &'static Usage {
            match command {
                $( Command::$group(command) => &$module::USAGES[command as usize], )+
                Command::Learnt => &Usage::NONE,
            }
        }

        /// The rows of every group; subcommands are within their containers.
        pub(crate) const GROUPS: &[&[Row]] = &[ $( $module::ROWS ),+ ];

        /// Every group, in the order of their names.
        pub const GROUP_ORDER: &[Group] = &[ $( Group::$group ),+ ];
    };
}

groups! {
    /// Bit operations on strings.
    bitmap Bitmap BitmapCommand;
    /// Redis Cluster.
    cluster Cluster ClusterCommand;
    /// The connection and its state.
    connection Connection ConnectionCommand;
    /// Keys of any type.
    generic Generic GenericCommand;
    /// Geospatial indexes.
    geo Geo GeoCommand;
    /// Hashes.
    hash Hash HashCommand;
    /// HyperLogLogs.
    hyperloglog Hyperloglog HyperloglogCommand;
    /// Lists.
    list List ListCommand;
    /// The console of the proxy.
    proxy Proxy ProxyCommand;
    /// Publish and subscribe.
    pubsub Pubsub PubsubCommand;
    /// Scripts and functions.
    scripting Scripting ScriptingCommand;
    /// The server itself.
    server Server ServerCommand;
    /// Sets.
    set Set SetCommand;
    /// Sorted sets.
    sorted_set SortedSet SortedSetCommand;
    /// Streams.
    stream Stream StreamCommand;
    /// Strings.
    string String StringCommand;
    /// Transactions.
    transactions Transactions TransactionsCommand;
}

/// Every row, containers first and their subcommands behind them, group by group.
pub fn all() -> impl Iterator<Item = &'static Row> {
    top_level().flat_map(|row| std::iter::once(row).chain(row.subcommands))
}

/// The rows of [`top_level`] that Redis has too: those that clients are told of when they ask for all.
pub fn listed() -> impl Iterator<Item = &'static Row> {
    top_level().filter(|row| !row.is_ours())
}

/// Every row that is no subcommand, group by group.
pub fn top_level() -> impl Iterator<Item = &'static Row> {
    GROUPS.iter().flat_map(|rows| rows.iter())
}
