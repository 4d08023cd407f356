//! What a worker is told by the program around it, by other workers and by itself.

use crate::config::Config;
use std::any::Any;
use std::sync::Arc;

/// What may be sent to a worker.
#[derive(Clone, Debug)]
pub enum Mail {
    /// Stop accepting, answer what has been asked, then end.
    Drain,
    /// Stop accepting, since another process does; serve connected clients until the drain's time is over, then drain.
    Retire,
    /// End at once.
    Stop,
    /// To oneself: secrets have been read and must be overwritten.
    Wipe,
    /// Other settings hold from now on.
    Reload(Arc<Config>),
    /// A process that ran before has left orders, see [`crate::Shared::go_on_with_orders`].
    Orders,
    /// A message of a feature.
    Feature(FeatureMail),
}

/// A message of a feature: to the same feature of another worker, or from the program around the proxy. Nothing on its way knows
/// what it says; `worker` hands it to the feature by its type.
#[derive(Clone, Debug)]
pub struct FeatureMail(pub(crate) Arc<dyn Any + Send + Sync>);

impl Mail {
    /// A message of a feature.
    pub(crate) fn of_feature(message: impl Any + Send + Sync) -> Self {
        Self::Feature(FeatureMail(Arc::new(message)))
    }
}

#[cfg(test)]
impl FeatureMail {
    /// What it says, if it is a message of this type.
    pub(crate) fn open<T: Any + Send + Sync>(self) -> Option<Arc<T>> {
        self.0.downcast().ok()
    }
}
