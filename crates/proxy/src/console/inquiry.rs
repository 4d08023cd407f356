//! A question of the console to every worker, and the joint answer.

use crate::console::show::Show;
use crate::console::table::Table;
use crate::limits::QUESTION_US_MAX;
use crate::mail::Mail;
use crate::session::{Asker, Flow, ReplyMode};
use crate::slab::{Handle, Slab};
use crate::worker::Worker;
use respool_command::Execute;
use respool_connection::Action;
use respool_wire::Encoder;

/// What workers write each other about the console.
#[derive(Clone, Debug)]
pub struct Letter(Content);

#[derive(Clone, Debug)]
enum Content {
    /// A worker asks.
    Ask { from: usize, inquiry: Handle, show: Show },
    /// A worker answers.
    Tell { inquiry: Handle, table: Table },
}

/// A question that waits for workers.
#[derive(Debug)]
struct Pending {
    /// `None` if no reply is wanted.
    asker: Option<Asker>,
    show: Show,
    awaited: usize,
    asked_us: u64,
    table: Table,
}

/// The questions that clients of this worker have asked.
#[derive(Debug, Default)]
pub(crate) struct Inquiries {
    waiting: Slab<Pending>,
}

impl<E: Execute> Worker<E> {
    /// Takes the place of a reply that other workers have a share in. `None` within: no reply is wanted.
    pub(crate) fn expect_reply(&mut self, index: u32) -> Option<Option<Asker>> {
        let session = self.clients.sessions.handle(index)?;
        let this = self.clients.sessions.at_mut(index)?;
        if this.reply_mode == ReplyMode::On {
            return Some(Some(Asker { session, seq: this.down.expect() }));
        }
        this.reply_mode.pass();
        Some(None)
    }

    /// Has every worker tell its part of a table.
    pub(super) fn inquire(&mut self, index: u32, show: Show) -> Flow {
        let Some(asker) = self.expect_reply(index) else { return Flow::Stop };
        let workers = self.shared.counters.len();
        let (awaited, asked_us) = (workers, self.now.mono_us);
        let pending = Pending { asker, show, awaited, asked_us, table: Table::default() };
        let inquiry = self.inquiries.waiting.insert(pending);
        for worker in (0..workers).filter(|worker| *worker != self.number) {
            let letter = Letter(Content::Ask { from: self.number, inquiry, show });
            self.actions.push_back(Action::Post { worker, mail: Mail::Console(Box::new(letter)) });
        }
        self.is_busy = true;
        let table = self.table_of(show);
        self.take_table(inquiry, table);
        Flow::Next
    }

    /// Another worker wrote.
    pub(crate) fn take_letter(&mut self, letter: Letter) {
        match letter.0 {
            Content::Ask { from, inquiry, show } => {
                let letter = Letter(Content::Tell { inquiry, table: self.table_of(show) });
                self.actions.push_back(Action::Post { worker: from, mail: Mail::Console(Box::new(letter)) });
            }
            Content::Tell { inquiry, table } => self.take_table(inquiry, table),
        }
    }

    fn take_table(&mut self, inquiry: Handle, table: Table) {
        let Some(pending) = self.inquiries.waiting.get_mut(inquiry) else { return };
        if pending.show.is_joined() {
            pending.table.join(table);
        } else {
            pending.table.append(table);
        }
        pending.awaited -= 1;
        if pending.awaited == 0 {
            self.finish_inquiry(inquiry);
        }
    }

    fn finish_inquiry(&mut self, inquiry: Handle) {
        let Some(mut pending) = self.inquiries.waiting.remove(inquiry.index) else { return };
        let Some(asker) = pending.asker else { return };
        let Some(session) = self.clients.sessions.get_mut(asker.session) else { return };
        let protocol = session.protocol;
        pending.show.arrange(&mut pending.table);
        let mut out = Vec::new();
        pending.table.write(&mut Encoder::new(&mut out, protocol));
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
