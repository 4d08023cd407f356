//! When which node was in trouble, and whether an error that a client was told can come from that.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::{Duration, Instant};

use super::excuses::{GRACE, SILENCE, Says};
use super::layout::Nodes;
use super::ledger::Fate;
use super::stops::Stops;
use super::watch::Watch;

/// After an order has been answered, other workers may do as before for so long: it reaches them as a message, and a pause by the
/// clock ends with the timers of each.
const ORDER_GRACE: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Window {
    kind: &'static str,
    nodes: Nodes,
    /// What errors may come of it.
    says: &'static [Says],
    until: Option<Instant>,
}

/// When a process that is succeeded by another has ended, once it has.
#[derive(Debug, Clone, Default)]
pub(super) struct Handover(Arc<OnceLock<Instant>>);

impl Handover {
    /// It has ended now.
    pub(super) fn end(&self) {
        self.0.set(Instant::now()).expect("a process ends once");
    }
}

/// What is known of the process that a client's connection is with.
#[derive(Debug)]
pub(super) struct Whereabouts {
    /// When the connection was opened, or when the request was sent that it was last answered.
    heard: Instant,
    /// So many handovers may end no connection of this client any more: each ends one, and the next is with the successor.
    left: usize,
}

impl Whereabouts {
    /// Of a client that opens its first connection now.
    pub(super) fn new() -> Whereabouts {
        Whereabouts { heard: Instant::now(), left: 0 }
    }

    /// Another connection is opened now.
    pub(super) fn open(&mut self) {
        self.heard = Instant::now();
    }

    /// A request was answered that had been sent then or later.
    pub(super) fn note_answer(&mut self, sent: Instant) {
        self.heard = self.heard.max(sent);
    }

    /// A handover has ended the connection.
    pub(super) fn leave(&mut self, handover: usize) {
        self.left = handover;
    }
}

/// All faults of a run so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    windows: RwLock<Vec<Window>>,
    /// When other settings came to hold or a node was drained, and of which nodes that is felt; `None`: it is about to be so.
    changes: RwLock<Vec<(Nodes, Option<Instant>)>>,
    /// When orders held requests back, until when each; `None`: one still does.
    holds: RwLock<Vec<Option<Instant>>>,
    /// For each process that was succeeded by another: when it had ended.
    handovers: RwLock<Vec<Handover>>,
    names: Vec<String>,
    pub(super) watch: Watch,
    /// When the proxy stood still.
    pub(super) stops: Stops,
    /// How many errors came of each fault, by what they said.
    of_faults: Mutex<BTreeMap<(&'static str, Says), u64>>,
    /// Errors that a fault explains only because the proxy stood still since.
    by_stop: AtomicU64,
    /// Errors that no fault explains, about a server that answered no request at that time.
    by_silence: AtomicU64,
    /// Errors that no fault explains, after the kernel had lost packets.
    by_packet_loss: AtomicU64,
    /// Errors that no fault explains, about answers that came late while the node or the proxy had no processor.
    by_processor: AtomicU64,
}

/// Why an error cannot be the request's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unexplained {
    /// It can: something took too long, and nothing says why. What became of the request then.
    Late(String, Fate),
    Wrong(String),
}

impl Unexplained {
    pub(super) fn why(&self) -> &str {
        let (Unexplained::Late(why, _) | Unexplained::Wrong(why)) = self;
        why
    }
}

impl Faults {
    /// For nodes of these names, in the order of their numbers.
    pub(super) fn new(names: Vec<String>, watch: Watch) -> Faults {
        Faults { names, watch, ..Faults::default() }
    }

    /// A fault of this kind begins, of which such errors may come. It lasts until [`Faults::end`] is called with the number that this returns.
    pub(super) fn begin(&self, kind: &'static str, nodes: Nodes, says: &'static [Says]) -> usize {
        let mut windows = self.windows.write().expect("no client panics");
        windows.push(Window { kind, nodes, says, until: None });
        windows.len() - 1
    }

    pub(super) fn end(&self, number: usize) {
        self.windows.write().expect("no client panics")[number].until = Some(Instant::now());
    }

    /// Settings are changed from now on, or nodes are drained, until [`Faults::end_change`] is called with the number that this returns:
    /// clients may be told of it before the order is answered, however long that takes.
    pub(super) fn begin_change(&self, nodes: Nodes) -> usize {
        let mut changes = self.changes.write().expect("no client panics");
        changes.push((nodes, None));
        changes.len() - 1
    }

    pub(super) fn end_change(&self, number: usize) {
        self.changes.write().expect("no client panics")[number].1 = Some(Instant::now());
    }

    /// Whether that was so for one of the nodes at some time since then: what was watched there before counts as touched, and what is
    /// watched later does not.
    pub(super) fn were_changed(&self, nodes: Nodes, since: Instant) -> bool {
        let changes = self.changes.read().expect("no client panics");
        let felt = self.stops.ran_since(since, ORDER_GRACE);
        let is_felt = |until: Instant| felt.is_none_or(|felt| until >= felt);
        changes.iter().any(|(changed, until)| changed.meets(nodes) && until.is_none_or(is_felt))
    }

    /// When something was changed there last, and which faults there were before.
    pub(super) fn last_change(&self, nodes: Nodes) -> String {
        let changes = self.changes.read().expect("no client panics");
        let last = changes.iter().rev().find(|(changed, _)| changed.meets(nodes));
        let windows = self.windows.read().expect("no client panics");
        let told = |window: &Window| match window.until {
            None => format!("{} of {:b}", window.kind, window.nodes.0),
            Some(until) => format!("{} of {:b} {} ms before", window.kind, window.nodes.0, until.elapsed().as_millis()),
        };
        let faults: Vec<String> = windows.iter().rev().take(4).map(told).collect();
        let changed = match last {
            None => "never".to_owned(),
            Some((_, None)) => "now".to_owned(),
            Some((_, Some(until))) => format!("{} ms before", until.elapsed().as_millis()),
        };
        format!("changed {changed}; {}", faults.join(", "))
    }

    /// Requests are held back from now on.
    pub(super) fn begin_hold(&self) {
        self.holds.write().expect("no client panics").push(None);
    }

    /// They are until then.
    pub(super) fn end_hold(&self, at: Instant) {
        let mut holds = self.holds.write().expect("no client panics");
        holds.iter_mut().filter(|until| until.is_none()).for_each(|until| *until = Some(at));
    }

    /// Whether requests were held back at some time since then: one whose client has closed its side is not done, as in Redis.
    pub(super) fn were_held(&self, since: Instant) -> bool {
        let holds = self.holds.read().expect("no client panics");
        let felt = self.stops.ran_since(since, ORDER_GRACE);
        holds.iter().any(|until| until.is_none_or(|until| felt.is_none_or(|felt| until >= felt)))
    }

    /// Another process takes the place of the one that clients are connected to, which is told when that has ended.
    pub(super) fn begin_handover(&self) -> Handover {
        let handover = Handover::default();
        self.handovers.write().expect("no client panics").push(handover.clone());
        handover
    }

    /// The first handover that may end a connection, between two replies, because it may be with a process that has ended or will. One
    /// that was opened or has answered a request after that end is with the successor.
    pub(super) fn may_be_left(&self, connection: &Whereabouts) -> Option<usize> {
        let handovers = self.handovers.read().expect("no client panics");
        let may_end = |handover: &Handover| handover.0.get().is_none_or(|ended| connection.heard <= *ended);
        (1..).zip(&*handovers).skip(connection.left).find(|(_, handover)| may_end(handover)).map(|(number, _)| number)
    }

    /// Whether one of the nodes was in trouble at some time since then.
    pub(super) fn were_in_trouble(&self, nodes: Nodes, since: Instant) -> bool {
        self.were_in_trouble_after(nodes, self.stops.ran_since(since, GRACE))
    }

    /// Whether one of the nodes was in trouble then or later.
    fn were_in_trouble_after(&self, nodes: Nodes, felt: Option<Instant>) -> bool {
        self.fault_after(nodes, felt, |_| true).is_some()
    }

    /// The last fault of one of the nodes then or later of which such an error may come.
    fn fault_after(&self, nodes: Nodes, felt: Option<Instant>, may: impl Fn(&Window) -> bool) -> Option<&'static str> {
        let windows = self.windows.read().expect("no client panics");
        let is_felt = |window: &&Window| window.until.is_none_or(|until| felt.is_none_or(|felt| until >= felt));
        let mut of_nodes = windows.iter().rev().filter(|window| window.nodes.meets(nodes)).filter(is_felt);
        of_nodes.find(|window| may(window)).map(|window| window.kind)
    }

    /// How many errors came of which fault.
    pub(super) fn told_of(&self) -> String {
        let of_faults = self.of_faults.lock().expect("no client panics");
        let each = of_faults.iter().map(|((kind, says), count)| format!("{count} {says:?} of {kind}"));
        each.collect::<Vec<_>>().join(", ")
    }

    /// What is known of the nodes at the time of a request that was sent then.
    fn circumstances(&self, nodes: Nodes, since: Instant) -> String {
        let windows = self.windows.read().expect("no client panics");
        let last = windows.iter().rev().find(|window| window.nodes.meets(nodes));
        let before = match last.and_then(|window| Some((window, window.until?))) {
            Some((window, until)) => {
                format!("sent {} ms after {}", since.saturating_duration_since(until).as_millis(), window.kind)
            }
            None => "no fault before".to_owned(),
        };
        let later = since.elapsed().as_millis();
        format!("{before}, answered {later} ms later; silent meanwhile: {}", self.watch.told(nodes, since))
    }

    /// How many errors a fault explains only because the proxy stood still since.
    pub(super) fn by_stop(&self) -> u64 {
        self.by_stop.load(Ordering::Relaxed)
    }

    /// How many errors no fault explains but a server that answered no request.
    pub(super) fn by_silence(&self) -> u64 {
        self.by_silence.load(Ordering::Relaxed)
    }

    /// How many errors no fault explains but packets that the kernel has lost.
    pub(super) fn by_packet_loss(&self) -> u64 {
        self.by_packet_loss.load(Ordering::Relaxed)
    }

    /// How many errors no fault explains but a processor that was busy.
    pub(super) fn by_processor(&self) -> u64 {
        self.by_processor.load(Ordering::Relaxed)
    }

    /// What an error says about a request for these nodes that was sent then: how the request ended, or why the error cannot be
    /// its own.
    pub(super) fn judge(&self, error: &[u8], nodes: Nodes, since: Instant) -> Result<Fate, Unexplained> {
        let wrong = |why: &str| Err(Unexplained::Wrong(why.to_owned()));
        let text = String::from_utf8_lossy(error);
        let known = KNOWN.iter().find(|(beginning, _)| text.starts_with(beginning));
        let about = match text.strip_prefix("-ERR node ").and_then(|rest| rest.split(' ').next()) {
            Some(name) => match self.names.iter().position(|known| known == name) {
                Some(node) if Nodes::one(node).meets(nodes) => Nodes::one(node),
                _ => return wrong("an error about a node that it was not sent to"),
            },
            None if known.is_some() => nodes,
            None => return wrong("an error that trouble with nodes does not explain"),
        };
        let is_not_done = text.contains("was not sent") || text.contains("was not executed");
        let fate = if is_not_done { Fate::NotDone } else { known.map_or(Fate::Unknown, |(_, fate)| *fate) };
        let says = Says::of(&text);
        let grace = says.map_or(GRACE, Says::grace);
        let felt_fault = self.stops.ran_since(since, grace);
        let felt = self.stops.ran_since(since, GRACE);
        let may = |window: &Window| says.is_some_and(|says| window.says.contains(&says));
        if let Some((kind, says)) = self.fault_after(about, felt_fault, may).zip(says) {
            let is_by_stop = self.fault_after(about, since.checked_sub(grace), may).is_none();
            self.by_stop.fetch_add(u64::from(is_by_stop), Ordering::Relaxed);
            *self.of_faults.lock().expect("no client panics").entry((kind, says)).or_default() += 1;
        } else if says.is_some_and(|says| SILENCE.contains(&says))
            && felt.is_some_and(|felt| self.watch.were_paused(about, felt))
        {
            self.by_silence.fetch_add(1, Ordering::Relaxed);
        } else if is_late(&text) && felt.is_some_and(|felt| self.watch.packet_loss.has_been(felt)) {
            self.by_packet_loss.fetch_add(1, Ordering::Relaxed);
        } else if is_late(&text) && self.watch.had_no_processor(about, since) {
            self.by_processor.fetch_add(1, Ordering::Relaxed);
        } else {
            let why = format!("an error although nothing was done to the node ({})", self.circumstances(about, since));
            return Err(if is_late(&text) { Unexplained::Late(why, fate) } else { Unexplained::Wrong(why) });
        }
        Ok(fate)
    }
}

/// Whether an error says that something took too long, as it does when a packet is lost. No connection ends by that.
fn is_late(error: &str) -> bool {
    ["did not answer within", "could not be reached in time", "could not be asked in time"]
        .iter()
        .any(|late| error.contains(late))
}

/// Errors that name no node, and what they say about the request.
const KNOWN: [(&str, Fate); 12] = [
    ("-ERR the connection on which keys were watched is lost;", Fate::NotDone),
    ("-EXECABORT Transaction discarded because of", Fate::NotDone),
    ("-ERR the nodes were changed meanwhile; try again", Fate::NotDone),
    ("-CROSSSLOT Watched keys and the transaction's keys", Fate::NotDone),
    ("-ERR the node's answer does not fit", Fate::Unknown),
    ("-ERR all connections to node", Fate::NotDone),
    ("-LOADING ", Fate::NotDone),
    ("-UNBLOCKED ", Fate::NotDone),
    ("-TRYAGAIN the nodes could not be asked whether they have the command", Fate::NotDone),
    ("-READONLY ", Fate::NotDone),
    // A node that was restarted or replaced has no scripts, and with more requests behind it the script is not sent again.
    ("-NOSCRIPT ", Fate::NotDone),
    ("-MASTERDOWN ", Fate::NotDone),
];

#[cfg(test)]
mod tests {
    use super::super::excuses::{DEATH, DRAIN};
    use super::super::packet_loss::PacketLoss;
    use super::super::processors::Processors;
    use super::*;

    #[test]
    fn a_change_is_felt_at_its_own_nodes_alone() {
        let faults = Faults::new(vec!["node0".into(), "node1".into()], Watch::default());
        let (before, long) = (Instant::now(), ORDER_GRACE + Duration::from_millis(1));
        let change = faults.begin_change(Nodes::one(1));
        assert!(faults.were_changed(Nodes::one(1), before) && faults.were_changed(Nodes::ALL, before));
        assert!(!faults.were_changed(Nodes::one(0), before), "another node");
        assert!(faults.were_changed(Nodes::ALL, before + long), "an order that is answered late is obeyed late");
        faults.end_change(change);
        assert!(faults.were_changed(Nodes::one(1), before) && !faults.were_changed(Nodes::one(0), before));
        let later = Instant::now() + long;
        assert!(!faults.were_changed(Nodes::ALL, later), "what is watched later is not touched by it");
    }

    #[test]
    fn requests_are_held_back_until_the_order_ends() {
        let faults = Faults::new(vec!["node0".into()], Watch::default());
        let before = Instant::now();
        assert!(!faults.were_held(before));
        faults.begin_hold();
        assert!(faults.were_held(before) && faults.were_held(Instant::now()));
        let end = Instant::now();
        faults.end_hold(end);
        assert!(faults.were_held(before) && !faults.were_held(end + ORDER_GRACE + Duration::from_millis(1)));
    }

    #[test]
    fn errors_need_a_fault_of_their_own_node() {
        let faults = Faults::new(vec!["node0".into(), "node1".into()], Watch::default());
        let before = Instant::now();
        let down = b"-ERR node node1 is not available: refused; the command was not sent\r\n";
        let late = b"-ERR node node1 did not answer within 250 ms; the command may or may not have been executed\r\n";
        let both = Nodes::one(0).and(Nodes::one(1));
        assert!(faults.judge(down, both, before).is_err(), "nothing has happened");
        let number = faults.begin("kills of nodes", Nodes::one(1), DEATH);
        assert_eq!(faults.judge(down, both, before), Ok(Fate::NotDone));
        assert_eq!(faults.judge(late, both, before), Ok(Fate::Unknown));
        assert!(faults.judge(down, Nodes::one(0), before).is_err(), "another node");
        assert!(faults.judge(b"-WRONGTYPE x\r\n", both, before).is_err(), "no trouble sounds like this");
        assert!(faults.judge(b"-EXECABORT Transaction discarded because of x\r\n", both, before).is_ok());
        faults.end(number);
        let later = Instant::now() + GRACE + Duration::from_millis(1);
        assert!(faults.judge(late, both, later).is_err(), "it was over long before");
    }

    #[test]
    fn a_fault_excuses_what_can_come_of_it_and_nothing_else() {
        let faults = Faults::new(vec!["node0".into()], Watch::default());
        let before = Instant::now();
        let number = faults.begin("drains of a node", Nodes::one(0), DRAIN);
        let drained = b"-ERR node node0 is not available: it was drained by an operator; the command was not sent\r\n";
        let refused = b"-ERR node node0 is not available: could not be reached (refused); the command was not sent\r\n";
        assert_eq!(faults.judge(drained, Nodes::one(0), before), Ok(Fate::NotDone));
        assert!(faults.judge(refused, Nodes::one(0), before).is_err(), "a drained node is there");
        faults.end(number);
        faults.begin("kills of nodes", Nodes::one(0), DEATH);
        assert_eq!(faults.judge(refused, Nodes::one(0), before), Ok(Fate::NotDone));
        assert_eq!(faults.told_of(), "1 Drained of drains of a node, 1 Refused of kills of nodes");
    }

    #[test]
    fn what_the_proxy_had_no_time_to_tell_is_told_later() {
        let gone = b"-ERR node node1 closed the connection; the command may or may not have been executed\r\n";
        let mut faults = Faults::new(vec!["node0".into(), "node1".into()], Watch::default());
        let begin = Instant::now();
        let end = begin + Duration::from_millis(2_400);
        faults.stops = Stops::of(begin, end, 0);
        assert!(faults.judge(gone, Nodes::ALL, begin).is_err(), "a stop is no fault of a node");
        assert!(faults.judge(gone, Nodes::ALL, end).is_err(), "a stop is no fault of a node");
        let number = faults.begin("kills of nodes", Nodes::one(1), DEATH);
        faults.end(number);
        let grace = Says::Closed.grace();
        for (at, is_explained) in [(end, true), (end + grace / 2, true), (end + grace + grace / 2, false)] {
            assert_eq!(faults.judge(gone, Nodes::ALL, at).is_ok(), is_explained);
        }
        for (at, is_felt) in [(end, true), (end + GRACE / 2, true), (end + GRACE + GRACE / 2, false)] {
            assert_eq!(faults.were_in_trouble(Nodes::one(1), at), is_felt);
        }
        assert_eq!(faults.by_stop(), 2);
        assert!(faults.judge(gone, Nodes::one(0), end).is_err(), "another node");
    }

    #[test]
    fn a_server_that_answers_nothing_explains_an_error_about_it() {
        let late = b"-ERR node node1 did not answer within 250 ms; the command may or may not have been executed\r\n";
        let begin = Instant::now();
        let names = || vec!["node0".into(), "node1".into()];
        for (node, silence_ms, is_explained) in [(1, 207, true), (1, 84, false), (0, 207, false)] {
            let end = begin + Duration::from_millis(silence_ms);
            let faults = Faults::new(names(), Watch::of_silence(Nodes::one(node), begin, end));
            assert_eq!(faults.judge(late, Nodes::ALL, begin).is_ok(), is_explained, "{node} {silence_ms}");
            assert_eq!(faults.by_silence(), u64::from(is_explained));
            let later = end + GRACE + Duration::from_millis(1);
            assert!(faults.judge(late, Nodes::ALL, later).is_err(), "it was over long before");
        }
    }

    #[test]
    fn only_a_busy_processor_explains_a_late_answer() {
        let late = b"-ERR node node1 did not answer within 250 ms; the command may or may not have been executed\r\n";
        let gone = b"-ERR node node1 is not available: refused; the command was not sent\r\n";
        let (before, ms) = (Instant::now(), Duration::from_millis);
        for (node, server_ms, proxy_ms, is_explained) in
            [(1, 125, 0, true), (1, 70, 60, true), (0, 0, 130, true), (1, 64, 60, false), (0, 200, 60, false)]
        {
            let mut faults = Faults::new(vec!["node0".into(), "node1".into()], Watch::default());
            faults.watch.processors = Processors::of(Nodes::one(node), ms(server_ms), ms(proxy_ms), Instant::now());
            let told = faults.judge(late, Nodes::ALL, before);
            assert_eq!(told.is_ok(), is_explained, "{node} {server_ms} {proxy_ms}");
            assert_eq!(faults.by_processor(), u64::from(is_explained));
            if !is_explained {
                // It is no error of another request, and is told apart.
                assert!(matches!(told, Err(Unexplained::Late(_, Fate::Unknown))), "{told:?}");
            }
            assert!(
                matches!(faults.judge(gone, Nodes::ALL, before), Err(Unexplained::Wrong(_))),
                "no connection ends by it"
            );
            let later = Instant::now() + ms(1);
            assert!(faults.judge(late, Nodes::ALL, later).is_err(), "it was over before the request");
        }
    }

    #[test]
    fn connections_to_a_former_process_are_left_and_no_others() {
        let faults = Faults::default();
        let (idle, mut busy, mut later) = (Whereabouts::new(), Whereabouts::new(), Whereabouts::new());
        assert_eq!(faults.may_be_left(&idle), None);
        let handover = faults.begin_handover();
        later.open();
        assert_eq!([&idle, &later].map(|connection| faults.may_be_left(connection)), [Some(1); 2]);
        busy.note_answer(Instant::now());
        handover.end();
        assert_eq!([&idle, &busy].map(|connection| faults.may_be_left(connection)), [Some(1); 2], "however late");
        std::thread::sleep(Duration::from_millis(1));
        busy.note_answer(Instant::now());
        later.open();
        assert_eq!([&busy, &later].map(|connection| faults.may_be_left(connection)), [None; 2], "the successor's");
        let before = idle.heard;
        busy.note_answer(before);
        assert_eq!(faults.may_be_left(&busy), None, "an older request of the batch says nothing else");
    }

    #[test]
    fn a_handover_ends_one_connection_of_each_client() {
        let (faults, mut connection) = (Faults::default(), Whereabouts::new());
        let first = faults.begin_handover();
        assert_eq!(faults.may_be_left(&connection), Some(1));
        connection.leave(1);
        connection.open();
        assert_eq!(
            faults.may_be_left(&connection),
            None,
            "that is with the successor although the other has not ended"
        );
        first.end();
        assert_eq!(faults.may_be_left(&connection), None);
        let _second = faults.begin_handover();
        assert_eq!(faults.may_be_left(&connection), Some(2));
        assert_eq!(faults.may_be_left(&Whereabouts { heard: connection.heard, left: 0 }), Some(1), "seen late");
    }

    #[test]
    fn a_lost_packet_explains_a_late_node_and_nothing_else() {
        let late = b"-ERR node node1 did not answer within 250 ms; the command may or may not have been executed\r\n";
        let gone = b"-ERR node node1 is not available: refused; the command was not sent\r\n";
        let at = Instant::now();
        let mut faults = Faults::new(vec!["node0".into(), "node1".into()], Watch::default());
        faults.watch.packet_loss = PacketLoss::of(at);
        assert_eq!(faults.judge(late, Nodes::ALL, at + GRACE), Ok(Fate::Unknown));
        assert!(faults.judge(gone, Nodes::ALL, at).is_err(), "no connection ends by it");
        assert_eq!(faults.by_packet_loss(), 1);
        assert!(
            faults.judge(late, Nodes::ALL, at + GRACE + Duration::from_millis(1)).is_err(),
            "it was over long before"
        );
    }
}
