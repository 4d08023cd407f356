//! What a worker answers to an inquiry, or does for the order that it brings: see [`crate::admin::inquiry`].

use crate::admin::inquiry::{Asks, Inquiry};
use crate::admin::query::{AdminAnswer, AdminQuery, Order};
use crate::workers::ask::{AnswerQueries, ask_workers_for};
use std::sync::Arc;

/// Answers what is asked from outside, or gives the order that it brings. `answer`: the worker's part of a query.
pub(crate) fn answer_inquiry<W: AnswerQueries<Query: From<AdminQuery>>>(
    by: &mut W,
    inquiry: &Arc<Inquiry>,
    answer: impl Fn(&mut W, &AdminQuery) -> AdminAnswer,
) {
    match inquiry.asks() {
        // The deadline has passed. A worker that stood still gives its time to clients.
        Asks::All(_) if inquiry.is_over() => {}
        Asks::All(queries) => {
            inquiry.answer(queries.iter().map(|query| answer(by, query)).collect());
        }
        Asks::Order(_) if inquiry.is_decided() => inquiry.answer_order(),
        Asks::Order(wanted) => {
            let order = by.env().decide(wanted);
            if let Ok(order) = &order {
                ask_workers_for(by, None, None, AdminQuery::Order(order.clone()).into());
            }
            inquiry.note_decided(order.map(Order::into_nodes));
            // What others are told is posted when the turn ends; the asker is answered behind that.
            let env = by.env();
            env.post(env.number, Arc::clone(inquiry));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::inquiry::NodeOrder;
    use crate::mail::Mail;
    use crate::testing::silent_worker::{posted, silent_worker};
    use respool_connection::WorkerId;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn an_order_from_outside_is_given_before_its_asker_is_answered() {
        let mut alone = silent_worker(1);
        let ends = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&ends);
        let inquiry = Inquiry::order(NodeOrder::Pause, vec!["n".to_owned()], "test".to_owned(), {
            Box::new(move || _ = count.fetch_add(1, Ordering::Relaxed))
        });
        answer_inquiry(&mut alone, &inquiry, |_, _| AdminAnswer::default());
        assert_eq!((alone.asked, ends.load(Ordering::Relaxed)), (1, 0), "workers are told first");
        assert!(alone.env.shared.standing().paused.contains("n"));
        let letters = posted(&mut alone);
        let [(WorkerId::FIRST, Mail::Feature(letter))] = &letters[..] else { panic!("{letters:?}") };
        assert!(
            letter.clone().open::<Arc<Inquiry>>().is_some(),
            "it goes to the worker itself, behind what others are told"
        );
        answer_inquiry(&mut alone, &inquiry, |_, _| AdminAnswer::default());
        assert_eq!((alone.asked, ends.load(Ordering::Relaxed)), (1, 1));
    }
}
