//! What was counted, and what of it must not be.

use std::collections::BTreeMap;
use std::fmt;

use super::states::State;

/// Wrong replies that are described in full.
const DESCRIBED_MAX: usize = 10;
/// From so many requests on some client has to be left to a successor.
const HANDED_OVER_REQUESTS_MIN: u64 = 500_000;
/// Different error texts that are counted apart.
const ERRORS_MAX: usize = 30;

/// Counts of one client, or of all.
#[derive(Default)]
pub(super) struct Tally {
    /// Replies that came and were checked.
    pub(super) replies: u64,
    /// Replies that cannot be the answer to their request.
    pub(super) wrong: u64,
    /// Errors that say that something took too long, and nothing says why it did: each is a reply to its own request.
    pub(super) late: u64,
    descriptions: Vec<String>,
    /// Error replies, by text.
    errors: BTreeMap<String, u64>,
    /// Requests that a client did not wait for when it vanished.
    pub(super) abandoned: u64,
    pub(super) vanished: u64,
    /// Clients that had closed their side and got what they were owed, and no more.
    pub(super) half_closed: u64,
    /// Connections that ended between two replies because the process was succeeded or ended in the end.
    pub(super) succeeded: u64,
    /// The same in the midst of the run: the client goes on with the successor.
    pub(super) handed_over: u64,
    /// Connections that were accepted when the process had been told to end, and were told so.
    pub(super) turned_away: u64,
    /// Connections of clients that were in pool mode `session` all the time.
    pub(super) owned: u64,
    /// Connections that Respool closed although the client did nothing wrong.
    pub(super) cut_off: u64,
    /// Connections that Respool closed in the midst of a large reply whose node had died.
    pub(super) broken_off: u64,
    /// Replies that never came.
    pub(super) silent: u64,
    /// Requests that failed although no node was in trouble.
    pub(super) needless: u64,
    /// How often each state was entered.
    states: BTreeMap<&'static str, u64>,
}

impl Tally {
    pub(super) fn entered(&mut self, state: State) {
        *self.states.entry(state.name()).or_default() += 1;
    }

    /// What should have happened in a run with trouble and did not.
    pub(super) fn missing(&self, listed: &[State], requests: u64) -> Vec<String> {
        let never = |state: &&State| !self.states.contains_key(state.name());
        let states = listed.iter().filter(never).map(|state| format!("no {}", state.name()));
        let timeouts = self.errors.keys().any(|text| text.contains("did not answer within"));
        let vanished = self.vanished > 0;
        let others = [
            (timeouts, "request ran out of time"),
            (vanished, "client vanished"),
            (self.half_closed > 0, "client closed its side"),
            (self.owned > 0, "client in pool mode session"),
            // Most connections end by themselves before.
            (self.handed_over > 0 || requests < HANDED_OVER_REQUESTS_MIN, "client left to a successor"),
        ];
        states.chain(others.into_iter().filter(|(is, _)| !is).map(|(_, what)| format!("no {what}"))).collect()
    }

    pub(super) fn wrong(&mut self, description: String) {
        self.wrong += 1;
        if self.descriptions.len() < DESCRIBED_MAX {
            self.descriptions.push(description);
        }
    }

    pub(super) fn late(&mut self, description: String) {
        self.late += 1;
        self.describe(description);
    }

    pub(super) fn describe(&mut self, description: String) {
        if self.descriptions.len() < DESCRIBED_MAX {
            self.descriptions.push(description);
        }
    }

    pub(super) fn error(&mut self, text: &[u8]) {
        // Numbers differ from one occurrence to the next: addresses, times.
        let text: String = String::from_utf8_lossy(text)
            .trim_end()
            .chars()
            .map(|character| if character.is_ascii_digit() { '0' } else { character })
            .collect();
        let text =
            if self.errors.len() < ERRORS_MAX || self.errors.contains_key(&text) { text } else { "others".into() };
        *self.errors.entry(text).or_default() += 1;
    }

    /// How many replies were errors that a fault explains.
    fn errors(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The same but for those that say that a server loads its data: that takes the longer the longer the run, whatever the proxy does.
    pub(super) fn avoidable_errors(&self) -> u64 {
        self.errors.iter().filter(|(text, _)| !text.contains("(LOADING ")).map(|(_, count)| count).sum()
    }

    pub(super) fn add(&mut self, other: Tally) {
        self.replies += other.replies;
        self.wrong += other.wrong;
        self.late += other.late;
        other.descriptions.into_iter().for_each(|description| self.describe(description));
        for (text, count) in other.errors {
            *self.errors.entry(text).or_default() += count;
        }
        self.abandoned += other.abandoned;
        self.vanished += other.vanished;
        self.half_closed += other.half_closed;
        self.succeeded += other.succeeded;
        self.handed_over += other.handed_over;
        self.turned_away += other.turned_away;
        self.owned += other.owned;
        self.cut_off += other.cut_off;
        self.broken_off += other.broken_off;
        self.silent += other.silent;
        self.needless += other.needless;
        for (state, count) in other.states {
            *self.states.entry(state).or_default() += count;
        }
    }

    /// Why the run failed, if it did.
    pub(super) fn complaints(&self) -> Vec<String> {
        [
            (self.wrong, "replies to the wrong request"),
            (self.late, "requests late although neither their nodes nor the machine were"),
            (self.cut_off, "connections of well-behaved clients closed"),
            (self.silent, "requests never answered"),
            (self.needless, "requests failed while all nodes were well"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = self.errors();
        writeln!(
            f,
            "{} replies checked: {} wrong, {} late for no reason, {errors} errors",
            self.replies, self.wrong, self.late
        )?;
        for (text, count) in &self.errors {
            writeln!(f, "  {count:>8} {text}")?;
        }
        let states: Vec<String> = self.states.iter().map(|(state, count)| format!("{count} {state}")).collect();
        writeln!(f, "{}", states.join(", "))?;
        writeln!(f, "{} connections in pool mode session", self.owned)?;
        writeln!(
            f,
            "{} closed their side, {} went on with a successor, {} connections ended with the process, {} were turned away",
            self.half_closed, self.handed_over, self.succeeded, self.turned_away
        )?;
        writeln!(f, "{} clients vanished with {} requests under way (outcome unknown)", self.vanished, self.abandoned)?;
        write!(
            f,
            "{} cut off in the midst of a large reply, {} otherwise, {} never answered",
            self.broken_off, self.cut_off, self.silent
        )?;
        self.descriptions.iter().try_for_each(|description| write!(f, "\n  {description}"))
    }
}
