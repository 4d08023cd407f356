//! Whether a node takes MULTI on a connection: tried once, with nothing between MULTI and EXEC, before anything depends on it.
//!
//! ```text
//!               MULTI, EXEC            +OK, and over
//!   [unknown] --------------> [tried] ----------------> [taken]: blocks go in one piece from now on, in one round trip
//!       ^                        |                         | one is refused nevertheless
//!       |                        '-- refused --> [refused] |
//!       '---- another connection; a refusal afterwards ----'
//! ```
//!
//! A block is sent in one piece, MULTI, requests and EXEC. If the node refuses MULTI (its user may not, the command is renamed,
//! another proxy stands there), it does the requests one by one: not as a transaction, and one that waits holds up all
//! on the connection. So the first block on a connection waits for a round trip. WATCH tries in its own round trip.

use crate::env::Env;
use crate::error_text;
use crate::ids::{ClientId, LaneId};
use crate::nodes::multi::Multi;
use crate::reply::progress::LostReply;
use crate::reply::task::Tasks;
use crate::transaction::exec_request::Exec;
use crate::transaction::say;
use crate::transaction::trial::{BEGIN, END, Trial};
use respool_command::Execute;

impl<E: Execute> Env<E> {
    /// Tries MULTI on a lane that takes requests, before `exec` is sent there if that is given. Nothing may be watched on it: EXEC would end that.
    pub(crate) fn try_multi(&mut self, lane: LaneId, exec: Option<Box<Exec>>) {
        let trial = Trial {
            lane: self.lanes.handle(lane),
            exec,
            has_begun: false,
            is_over: false,
            refusal: None,
            is_late: false,
        };
        let multi = &mut self.lanes[lane].multi;
        // While it is tried again what is known stays known.
        if !multi.is_taken() {
            *multi = Multi::Tried;
        }
        self.counters.multi_trials.add(1);
        let task = self.tasks.begin(trial);
        let Self { lanes, clients, now, .. } = self;
        lanes.push(lane, Tasks::owner(task, BEGIN), *now, &mut clients.pool, say(&[b"MULTI"]));
        lanes.push(lane, Tasks::owner(task, END), *now, &mut clients.pool, say(&[b"EXEC"]));
        self.is_busy = true;
    }

    /// The trial is over, or will never be. Returns what [`Self::conclude_exec`] does.
    #[must_use]
    pub(crate) fn conclude_trial(&mut self, trial: Trial) -> Option<ClientId> {
        let multi = trial.verdict();
        let Trial { lane, exec, refusal, .. } = trial;
        if let Some(place) = self.lanes.find(lane).filter(|_| multi == Multi::Unknown) {
            self.lanes[place].multi = Multi::Unknown;
        }
        let mut exec = exec?;
        if exec.is_answered() {
            return self.conclude_exec(*exec);
        }
        if exec.is_overtaken() {
            exec.fail(LostReply::Unsent, &error_text::NODES_CHANGED.into(), &mut self.clients);
            return self.conclude_exec(*exec);
        }
        match multi {
            Multi::Taken => {
                self.shared.ledger.account(exec.held_bytes(), 0);
                self.send_exec(*exec);
                return None;
            }
            Multi::Refused(words) => exec.refuse(&words, &mut self.clients),
            Multi::Unknown | Multi::Tried => match refusal {
                Some(words) => exec.refuse(&words, &mut self.clients),
                None => {
                    exec.fail(LostReply::Unknown, &error_text::MULTI_IN_DOUBT.into(), &mut self.clients);
                }
            },
        }
        self.conclude_exec(*exec)
    }
}
