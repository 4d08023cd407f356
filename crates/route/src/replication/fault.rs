//! What ends a merged stream: each is a reason to close the follower's connection, after which it synchronizes again.

/// Why the streams of several nodes cannot be merged any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A node has sent what is no snapshot of a known kind, or no stream of commands.
    Malformed,
    /// A node's snapshot has data of modules that belongs to no key. There is no way to join that of two nodes.
    ModuleData,
    /// A command that concerns all keys has come from one node and not, or not in the same order, from the others.
    Unmatched,
    /// A command that has to be held until it is complete is longer than that.
    TooLong,
    /// A node has sent nothing in the middle of what the follower waits for.
    Silent,
}

impl Fault {
    /// The reason in the log.
    pub fn words(self) -> &'static str {
        match self {
            Self::Malformed => "it follows all nodes, and one of them sent no replication stream that can be merged",
            Self::ModuleData => "it follows all nodes, and one of them has data of modules beside its keys",
            Self::Unmatched => {
                "it follows all nodes, and a command that concerns all keys came from some of them only (it synchronizes again)"
            }
            Self::TooLong => "it follows all nodes, and a command of one of them is too long to be compared",
            Self::Silent => "it follows all nodes, and one of them was silent in the middle of what it sent",
        }
    }
}
