//! Settings that take one word of a closed set: the words, and what each means.

use std::borrow::Cow;
use std::sync::LazyLock;

use respool_engine::EvictionPolicy;
use respool_proxy::{PublishReceivers, SlowSubscribers};
use respool_route::{DeadNode, PoolMode};

/// One word of a closed set, with what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The word as written.
    pub name: Cow<'static, str>,
    /// What it means, in half a line.
    pub doc: &'static str,
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal: $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $(#[doc = $text] $variant,)+ }

        impl $name {
            /// The words a user writes, in the order of the variants.
            #[must_use]
            pub fn choices() -> &'static [Choice] {
                const { &[$(Choice { name: Cow::Borrowed($word), doc: $text },)+] }
            }

            /// The variants, in the order of [`choices`](Self::choices).
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word a user writes.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The variant of a word.
            #[must_use]
            pub fn named(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

words! {
    /// How much is logged.
    LogLevel {
        Off = "off": "nothing",
        Error = "error": "what needs an operator",
        Warn = "warn": "and what may become an error",
        Info = "info": "and what happens once: start, stop, nodes that come and go",
        Debug = "debug": "and every connection",
        Trace = "trace": "and every step",
    }
}

words! {
    /// How a line of the log looks.
    LogFormat {
        Text = "text": "for people",
        Json = "json": "one JSON object per line",
    }
}

words! {
    /// Whether clients of TLS listeners show a certificate.
    TlsAuthClients {
        Off = "off": "no client is asked for one",
        Optional = "optional": "a client may show one",
        Required = "required": "clients without one are refused",
    }
}

words! {
    /// Yes or no.
    Switch {
        Yes = "yes": "it is so",
        No = "no": "it is not",
    }
}

words! {
    /// Which name of a client's certificate says which user it is.
    TlsIdentity {
        Off = "off": "none",
        Cn = "cn": "the subject's common name",
        Dns = "dns": "the first host name among the alternative names",
        Uri = "uri": "the first URI among the alternative names",
        Email = "email": "the first mail address among the alternative names",
    }
}

words! {
    /// Whether nodes' certificates are checked.
    NodeTlsVerify {
        On = "on": "the authority and the name must be right",
        Off = "off": "anything is taken, so a machine in the middle can read and change everything",
    }
}

words! {
    /// Who may read the dashboard and its JSON API.
    DashboardReaders {
        Off = "off": "no client: there is none",
        Local = "local": "this machine; others with the token of dashboard_token_file",
        Any = "any": "every client that reaches the address",
    }
}

words! {
    /// What becomes of a request whose keys are on several nodes, if it can be split.
    CrossSlot {
        Split = "split": "a part goes to each node and the replies are joined: each part is atomic by itself",
        Refuse = "refuse": "it is refused with CROSSSLOT, as those that cannot be split: a request is done by one node or by none",
    }
}

words! {
    /// What becomes of commands that steer the nodes themselves.
    AdminCommands {
        Refuse = "refuse": "refused, but for those that only look at something harmless",
        Allow = "allow": "sent to the nodes like any other",
    }
}

words! {
    /// When requests are written to shared connections.
    FlushMode {
        Immediate = "immediate": "at once, or with the next replies where those are due",
        Adaptive = "adaptive": "while the node is busy, together with requests that are likely to arrive",
    }
}

words! {
    /// Which channels a new user may use unless a rule says otherwise.
    ChannelsByDefault {
        None = "resetchannels": "none",
        All = "allchannels": "all",
    }
}

macro_rules! choices_of {
    ($($(#[$meta:meta])* $function:ident: $type:ident { $($text:literal,)+ })+) => {
        $(
            $(#[$meta])*
            #[must_use]
            pub fn $function() -> &'static [Choice] {
                static CHOICES: LazyLock<Vec<Choice>> = LazyLock::new(|| {
                    let docs = [$($text,)+];
                    assert_eq!(docs.len(), $type::ALL.len(), "each word has its text");
                    let choice = |((_, word), doc): (&($type, &'static str), _)| Choice { name: Cow::Borrowed(*word), doc };
                    $type::ALL.iter().zip(docs).map(choice).collect()
                });
                &CHOICES
            }
        )+
    };
}

// Sets that other crates define with their words; the texts are in the order of `ALL`.
choices_of! {
    /// For how long a client has a connection to itself.
    pool_modes: PoolMode {
        "never: all share, which is the fastest",
        "for each transaction",
        "for as long as it stays",
    }
    /// What becomes of a client that does not keep up with the messages it has subscribed to.
    slow_subscribers: SlowSubscribers {
        "it is disconnected, as by Redis",
        "it loses the messages that have waited longest",
    }
    /// What the number that PUBLISH answers counts.
    publish_receivers: PublishReceivers {
        "clients of this process; of others at the same nodes, connections",
        "connections of the node, of which each worker is one",
    }
    /// Which keys of an embedded server go when there is no room.
    eviction_policies: EvictionPolicy {
        "none: commands that add something are refused",
        "those not used for the longest time",
        "of those with a deadline, those not used for the longest time",
        "those used the least often",
        "of those with a deadline, those used the least often",
        "any",
        "any with a deadline",
        "those whose deadline is the nearest",
    }
    /// What becomes of requests to a dead node.
    dead_nodes: DeadNode {
        "they are answered with an error",
        "the next node that is up takes them; for caches only",
        "a replica answers what only reads",
    }
}
