//! Puts inquiries to workers and waits for their answers, for so long and no longer.

use std::sync::Arc;

use respool_proxy::{Inquiry, NodeOrder, Report};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::ANSWER_TIME;
use crate::admin::InstanceWorkers;

/// An inquiry that is under way.
struct Pending {
    inquiry: Arc<Inquiry>,
    ended: Arc<Notify>,
}

impl Pending {
    /// `make` is given what the last answer calls.
    fn new(make: impl FnOnce(Box<dyn Fn() + Send + Sync>) -> Option<Arc<Inquiry>>) -> Option<Self> {
        let ended = Arc::new(Notify::new());
        let notify = Arc::clone(&ended);
        let inquiry = make(Box::new(move || notify.notify_one()))?;
        Some(Self { inquiry, ended })
    }

    async fn report(self, until: Instant) -> Report {
        // Late or not: the report says what is known.
        let _ = timeout_at(until, self.ended.notified()).await;
        self.inquiry.end()
    }
}

/// The tables of every instance, in the order of the instances. `None`: there is no table of such a name.
pub(super) async fn tables(instances: &[InstanceWorkers], names: &[&str], rows_max: usize) -> Option<Vec<Report>> {
    let until = Instant::now() + ANSWER_TIME;
    let ask = |instance: &InstanceWorkers| {
        let pending = Pending::new(|on_end| Inquiry::show(names, rows_max, instance.workers.len(), on_end))?;
        for worker in &instance.workers {
            if !worker.post(Arc::clone(&pending.inquiry).into()) {
                pending.inquiry.miss();
            }
        }
        Some(pending)
    };
    let asked = instances.iter().map(ask).collect::<Option<Vec<_>>>()?;
    let mut reports = Vec::new();
    for pending in asked {
        reports.push(pending.report(until).await);
    }
    Some(reports)
}

/// What became of an order.
pub(super) enum Ordered {
    /// It holds for these nodes (none: all), and so many workers have not yet said that they know.
    Holds { nodes: Vec<String>, missing: usize },
    /// The reason why it does not.
    Refused(String),
    /// The worker that was to give it has not said. It may still do so.
    Unknown,
}

/// Has an order given.
pub(super) async fn order(instance: &InstanceWorkers, what: NodeOrder, names: Vec<String>, by: String) -> Ordered {
    let Some(pending) = Pending::new(|on_end| Some(Inquiry::order(what, names, by, on_end))) else {
        return Ordered::Unknown;
    };
    if !instance.workers.iter().any(|worker| worker.post(Arc::clone(&pending.inquiry).into())) {
        return Ordered::Refused("its workers have ended".to_owned());
    }
    match pending.report(Instant::now() + ANSWER_TIME).await.decided {
        None => Ordered::Unknown,
        Some(Err(why)) => Ordered::Refused(why),
        // What is asked now is answered after the order has been carried out.
        Some(Ok(nodes)) => {
            let reports = tables(std::slice::from_ref(instance), &[], 0).await.unwrap_or_default();
            Ordered::Holds { nodes, missing: reports.iter().map(|report| report.missing).sum() }
        }
    }
}
