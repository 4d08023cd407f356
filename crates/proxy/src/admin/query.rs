//! A question of the console to every worker, and the joint answer.

use crate::admin::node_control::Order;
use crate::admin::quiesce::Wait;
use crate::admin::show::Show;
use crate::admin::slowlog::{self, SlowlogOrder};
use crate::admin::suspend::Suspension;
use crate::admin::table::Table;
use crate::error_text;
use crate::limits::QUESTION_US_MAX;
use crate::session::id::ClientId;
use crate::session::{Asker, Flow, ReplyMode};
use crate::slab::{Handle, Slab};
use crate::worker::Worker;
use crate::workers::mail::Mail;
use respool_command::Execute;
use respool_connection::{Action, ServiceAction};
use respool_wire::Encoder;

/// What workers write each other about the console.
#[derive(Clone, Debug)]
pub struct AdminMessage(Content);

#[derive(Clone, Debug)]
enum Content {
    /// A worker asks.
    Ask { from: usize, inquiry: Handle, what: What },
    /// A worker answers.
    Tell { inquiry: Handle, told: Told },
}

/// What workers are asked to tell or to do.
#[derive(Clone, Debug)]
pub(super) enum What {
    Show(Show),
    Order(Order),
    Slowlog(SlowlogOrder),
}

/// What a worker tells.
#[derive(Clone, Debug, Default)]
struct Told {
    table: Table,
    count: u64,
}

/// A question that waits for workers.
#[derive(Debug)]
struct Pending {
    /// `None` if no reply is wanted.
    asker: Option<Asker>,
    what: What,
    awaited: usize,
    asked_us: u64,
    told: Told,
}

/// The questions that clients of this worker have asked.
#[derive(Debug, Default)]
pub(crate) struct Inquiries {
    waiting: Slab<Pending>,
    /// Replies to operators that wait for something to settle.
    pub(super) waits: Vec<Wait>,
    /// The suspension of clients that this worker has adopted.
    pub(super) suspension: Option<Suspension>,
}

impl Inquiries {
    /// How many wait for answers.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.waits.len()
    }
}

impl<E: Execute> Worker<E> {
    /// Takes the place of a reply that does not come from one node alone. `None` within: no reply is wanted.
    pub(crate) fn expect_reply(&mut self, index: ClientId) -> Option<Option<Asker>> {
        let session = self.clients.sessions.handle(index)?;
        let this = self.clients.sessions.at_mut(index)?;
        if this.reply_mode == ReplyMode::On {
            return Some(Some(Asker { session, seq: this.down.expect() }));
        }
        this.reply_mode.pass();
        Some(None)
    }

    /// Has every worker tell its part of a table.
    pub(super) fn inquire(&mut self, index: ClientId, show: Show) -> Flow {
        self.put_to_all(index, What::Show(show))
    }

    /// Has every worker carry out an order.
    pub(super) fn order_all(&mut self, index: ClientId, order: Order) -> Flow {
        self.put_to_all(index, What::Order(order))
    }

    pub(super) fn ask_slowlog(&mut self, index: ClientId, order: SlowlogOrder) -> Flow {
        self.put_to_all(index, What::Slowlog(order))
    }

    fn put_to_all(&mut self, index: ClientId, what: What) -> Flow {
        // What is shown is shown one at a time, as with `CLIENT LIST`.
        if !matches!(what, What::Order(_)) && self.settle_before(index).is_none() {
            return Flow::Again;
        }
        let Some(asker) = self.expect_reply(index) else { return Flow::Stop };
        let workers = self.shared.counters.len();
        let (awaited, asked_us) = (workers, self.now.mono_us);
        let pending = Pending { asker, what: what.clone(), awaited, asked_us, told: Told::default() };
        let inquiry = self.inquiries.waiting.insert(pending);
        for worker in (0..workers).filter(|worker| *worker != self.number) {
            let letter = AdminMessage(Content::Ask { from: self.number, inquiry, what: what.clone() });
            self.actions
                .push_back(Action::Service(ServiceAction::Post { worker, mail: Mail::Console(Box::new(letter)) }));
        }
        self.is_busy = true;
        let told = self.answer_letter(&what);
        self.take_told(inquiry, told);
        self.keep_outstanding(index)
    }

    /// Another worker wrote.
    pub(crate) fn take_letter(&mut self, letter: AdminMessage) {
        match letter.0 {
            Content::Ask { from, inquiry, what } => {
                let letter = AdminMessage(Content::Tell { inquiry, told: self.answer_letter(&what) });
                self.actions.push_back(Action::Service(ServiceAction::Post {
                    worker: from,
                    mail: Mail::Console(Box::new(letter)),
                }));
            }
            Content::Tell { inquiry, told } => self.take_told(inquiry, told),
        }
    }

    fn answer_letter(&mut self, what: &What) -> Told {
        match what {
            What::Show(show) => Told { table: self.table_of(*show), count: 0 },
            What::Order(order) => Told { table: Table::default(), count: self.carry_out(order) },
            What::Slowlog(order) => {
                let (table, count) = self.slowlog_of(*order);
                Told { table, count }
            }
        }
    }

    fn take_told(&mut self, inquiry: Handle, told: Told) {
        let Some(pending) = self.inquiries.waiting.get_mut(inquiry) else { return };
        pending.told.count += told.count;
        match &pending.what {
            What::Show(show) if show.is_joined() => pending.told.table.join(told.table),
            _ => pending.told.table.append(told.table),
        }
        pending.awaited -= 1;
        if pending.awaited == 0 {
            self.finish_inquiry(inquiry);
        }
    }

    fn finish_inquiry(&mut self, inquiry: Handle) {
        let Some(pending) = self.inquiries.waiting.remove(inquiry.index) else { return };
        let Some(asker) = pending.asker else { return };
        if let What::Order(order) = &pending.what
            && let Some(until) = order.until
        {
            return match pending.awaited {
                0 => self.begin_settling(asker, order, until),
                _ => self.clients.fail(asker.session, asker.seq, error_text::WORKER_BUSY),
            };
        }
        let Some(session) = self.clients.sessions.get_mut(asker.session) else { return };
        let mut out = Vec::new();
        let mut reply = Encoder::new(&mut out, session.protocol);
        let Told { mut table, count } = pending.told;
        match &pending.what {
            What::Show(show) => {
                show.arrange(&mut table);
                table.write(&mut reply);
            }
            What::Order(order) if order.is_counted() => reply.integer(count as i64),
            What::Slowlog(order @ SlowlogOrder::Get(_)) => {
                slowlog::arrange(*order, &mut table);
                table.write(&mut reply);
            }
            What::Slowlog(SlowlogOrder::Len) => reply.integer(count as i64),
            What::Order(_) | What::Slowlog(SlowlogOrder::Reset) => reply.raw(respool_wire::replies::OK),
        }
        self.clients.feed(asker.session, asker.seq, &out, true);
    }

    /// Questions that a worker has not answered in time are answered with what is known. Returns whether any waits.
    pub(crate) fn expire_inquiries(&mut self) -> bool {
        let now_us = self.now.mono_us;
        let waiting = self.inquiries.waiting.iter();
        let due: Vec<u32> =
            waiting.filter(|(_, p)| now_us.saturating_sub(p.asked_us) > QUESTION_US_MAX).map(|(i, _)| i).collect();
        for index in due {
            if let Some(handle) = self.inquiries.waiting.handle(index) {
                self.finish_inquiry(handle);
            }
        }
        !self.inquiries.waiting.is_empty()
    }
}
