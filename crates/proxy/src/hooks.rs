//! What the proxy tells whoever it is part of, and what it asks of it. A pure crate can neither log nor end a process.

use std::fmt;

/// Something that happens rarely and that people want to read of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A worker cannot use a node any more.
    NodeOut {
        /// The node's name.
        node: String,
        /// The worker's number.
        worker: usize,
        /// What went wrong.
        why: String,
    },
    /// A worker can use a node again.
    NodeBack {
        /// The node's name.
        node: String,
        /// The worker's number.
        worker: usize,
    },
    /// An operator gave an order on the console.
    Ordered {
        /// The order as it was given.
        order: String,
        /// Who gave it.
        client: String,
    },
}

/// What an operator wants of the process as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Read the settings again.
    Reload,
    /// End once what is owed has been answered.
    Drain,
}

type OnEvent = Box<dyn Fn(&Event) + Send + Sync>;
type OnDemand = Box<dyn Fn(Demand) + Send + Sync>;

/// Where both go. Called from workers, so they must not wait.
#[derive(Default)]
pub struct Hooks {
    on_event: Option<OnEvent>,
    on_demand: Option<OnDemand>,
}

impl Hooks {
    /// Has `on_event` told of events.
    #[must_use]
    pub fn on_event(self, on_event: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self { on_event: Some(Box::new(on_event)), ..self }
    }

    /// Has `on_demand` asked for what operators demand.
    #[must_use]
    pub fn on_demand(self, on_demand: impl Fn(Demand) + Send + Sync + 'static) -> Self {
        Self { on_demand: Some(Box::new(on_demand)), ..self }
    }

    pub(crate) fn tell(&self, event: &Event) {
        if let Some(on_event) = &self.on_event {
            on_event(event);
        }
    }

    /// `false`: nobody does such things here.
    pub(crate) fn demand(&self, demand: Demand) -> bool {
        self.on_demand.as_ref().map(|on_demand| on_demand(demand)).is_some()
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}
