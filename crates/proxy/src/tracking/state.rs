//! What one client tracks, what it has asked for, and what workers tell each other of it.

use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{ClientHandle, ClientId, ClientNumber};
use crate::integer::integer;
use crate::limits::{
    SCRIPT_CHANGES_BYTES_MAX, TRACKED_TRANSACTION_KEYS_MAX, TRACKING_PREFIX_BYTES_MAX, TRACKING_PREFIXES_MAX,
    WAITING_READ_BYTES_MAX, WAITING_READ_KEYS_MAX,
};
use crate::push::subscriber::Subscriber;
use crate::session::marks::SessionSubscriber;
use crate::session::table::Clients;
use crate::tracking::noloop_lanes::NoLoopLanes;
use respool_command::{KeyPositions, Row, text as texts};
use respool_connection::push::id_map::IdTable;
use respool_connection::{Downstream, Seq, WorkerId};
use respool_wire::Args;
use std::collections::VecDeque;

/// Keys that have changed; `None`: all.
pub(super) type ChangedKeys = Option<Vec<Box<[u8]>>>;

/// What a script under way has changed. Its client hears of it behind the reply: what it has read is known only then.
#[derive(Debug, Default)]
pub(super) struct ScriptChanges {
    keys: Vec<Box<[u8]>>,
    bytes: usize,
    /// All keys, or more than are kept.
    is_everything: bool,
}

impl ScriptChanges {
    /// More has changed; `None`: everything.
    pub(super) fn add(&mut self, keys: Option<&[Box<[u8]>]>) {
        let bytes = self.bytes + keys.map_or(0, |keys| keys.iter().map(|key| key.len()).sum());
        let fits = |keys: &&[Box<[u8]>]| {
            self.keys.len() + keys.len() <= TRACKED_TRANSACTION_KEYS_MAX && bytes <= SCRIPT_CHANGES_BYTES_MAX
        };
        match keys.filter(fits).filter(|_| !self.is_everything) {
            Some(keys) => {
                self.keys.extend_from_slice(keys);
                self.bytes = bytes;
            }
            None => *self = Self { is_everything: true, ..Self::default() },
        }
    }

    /// The keys; `None`: everything.
    pub(super) fn take(&mut self) -> Option<Vec<Box<[u8]>>> {
        let Self { keys, is_everything, .. } = std::mem::take(self);
        (!is_everything).then_some(keys)
    }
}

/// A request that waits at a node and may have read by now: its reply may be on the way.
#[derive(Debug)]
pub(super) struct WaitingRead {
    place: Seq,
    /// What it reads, and what its client has not been told of meanwhile; `None`: more than is kept.
    keys: Option<Vec<Box<[u8]>>>,
}

impl WaitingRead {
    /// A request that will have this place.
    pub(super) fn new(place: Seq, row: &Row, args: Args<'_>) -> Self {
        let mut positions = KeyPositions::new();
        let _ = row.keys.positions(args, &mut positions);
        let keys = || positions.iter().filter_map(|position| args.get(position.index as usize));
        let bytes: usize = keys().map(<[u8]>::len).sum();
        let fits = positions.len() <= WAITING_READ_KEYS_MAX && bytes <= WAITING_READ_BYTES_MAX;
        Self { place, keys: fits.then(|| keys().map(Box::from).collect()) }
    }

    /// Takes what has changed of what it reads. `None`: perhaps everything.
    fn take(&mut self, changed: Option<&[Box<[u8]>]>) -> Option<Vec<Box<[u8]>>> {
        let (changed, keys) = (changed?, self.keys.as_mut()?);
        Some(keys.extract_if(.., |key| changed.contains(key)).collect())
    }
}

/// What a client has asked to be told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Keys that it has read.
    #[default]
    Read,
    /// Keys that it has read after CLIENT CACHING YES.
    OptIn,
    /// Keys that it has read, unless after CLIENT CACHING NO.
    OptOut,
    /// All keys that begin in some way.
    Broadcast,
}

/// The tracking of one client.
#[derive(Debug, Default)]
pub(crate) struct Tracking {
    pub(crate) mode: Mode,
    pub(crate) is_noloop: bool,
    pub(crate) redirect: Option<Redirect>,
    pub(crate) is_redirect_broken: bool,
    pub(crate) prefixes: Vec<Box<[u8]>>,
    /// CLIENT CACHING was said for the next request.
    pub(super) is_marked: bool,
    /// It was said for the transaction that is being executed.
    pub(super) is_exec_marked: bool,
    /// The number of the request that it was said for, among all of the worker's: it may be put back and read again.
    pub(super) spent_by: u64,
    /// Nodes have been told so on connections of the client's own.
    pub(crate) has_passed_mark: bool,
    /// The number by which it is known to have read them, if it has read any.
    pub(super) reader: Option<u32>,
    /// Keys that it has read.
    pub(crate) keys: IdTable<()>,
    /// A request whose script is run by the engine in this process, and has not ended, with the keys that it names: what it reads is
    /// tracked.
    pub(super) script_keys: Option<Vec<Box<[u8]>>>,
    /// What that script has changed, of which others have been told already, since it is late.
    pub(super) script_changes: ScriptChanges,
    /// Keys of its transaction, which will be read at EXEC, in the order in which they will be.
    pub(crate) queued_keys: VecDeque<Box<[u8]>>,
    /// The key list is incomplete (limit reached, or routes changed): everything is invalidated after EXEC.
    pub(crate) is_transaction_in_doubt: bool,
    /// The place of the last request with keys: no invalidation may overtake that reply. Of one that waits it is the place before, since it is not known
    /// for how long it waits.
    pub(crate) after: Option<Seq>,
    /// The last one, if it is one that waits and reads.
    pub(super) waiting_read: Option<WaitingRead>,
}

impl Clients {
    /// How a client tracks, if it does.
    pub(super) fn tracking(&self, index: ClientId) -> Option<&Tracking> {
        Tracking::of(&self.sessions.at(index)?.subscriber)
    }
}

/// What a subscriber has of tracking.
#[derive(Debug, Default)]
pub(crate) struct TrackingClient {
    /// What it wants to hear of changed keys, if anything.
    pub(super) tracking: Option<Box<Tracking>>,
    /// The connections that it has to itself so that it does not hear of its own changes.
    pub(super) noloop: Option<Box<NoLoopLanes>>,
}

impl TrackingClient {
    pub(super) fn of(subscriber: &Subscriber) -> Option<&Self> {
        subscriber.tracking.as_ref()?.downcast_ref()
    }

    pub(super) fn of_mut(subscriber: &mut Subscriber) -> Option<&mut Self> {
        subscriber.tracking.as_mut()?.downcast_mut()
    }

    /// The same, made if there is nothing yet.
    pub(super) fn begun(subscriber: &mut Subscriber) -> Option<&mut Self> {
        subscriber.tracking.get_or_insert_with(|| Box::new(Self::default())).downcast_mut()
    }
}

impl Tracking {
    /// How a session tracks, from the place where it keeps what it subscribes to.
    pub(super) fn of(subscriber: &Option<Box<dyn SessionSubscriber>>) -> Option<&Self> {
        TrackingClient::of(Subscriber::of(subscriber)?)?.tracking.as_deref()
    }

    /// The same, to be changed.
    pub(super) fn of_mut(subscriber: &mut Option<Box<dyn SessionSubscriber>>) -> Option<&mut Self> {
        Self::of_subscriber_mut(Subscriber::of_mut(subscriber)?)
    }

    /// The same, to be changed.
    pub(super) fn of_subscriber_mut(subscriber: &mut Subscriber) -> Option<&mut Self> {
        TrackingClient::of_mut(subscriber)?.tracking.as_deref_mut()
    }

    /// Whether what it may have read since it tracks is remembered.
    pub(super) fn has_read(&self) -> bool {
        self.after.is_some() && self.mode != Mode::Broadcast
    }

    /// A client is told of a change now. What it has to be told once more, behind the reply that it waits for: that may have been read before
    /// the change. With it, the place of that reply; `None` for keys: everything.
    pub(super) fn told_again(
        &mut self,
        down: &Downstream,
        changed: Option<&[Box<[u8]>]>,
    ) -> Option<(Seq, ChangedKeys)> {
        let read = self.waiting_read.as_mut().filter(|read| down.is_outstanding(read.place))?;
        let (place, again) = (read.place, read.take(changed));
        match &again {
            None => self.waiting_read = None,
            Some(keys) if keys.is_empty() => return None,
            Some(_) => {}
        }
        Some((place, again))
    }

    /// Whether what is read now is remembered. `is_marked`: CLIENT CACHING was said for it.
    pub(super) fn wants(&self, is_marked: bool) -> bool {
        match self.mode {
            Mode::Broadcast => false,
            Mode::Read => true,
            Mode::OptIn => is_marked,
            Mode::OptOut => !is_marked,
        }
    }

    /// Its transaction has ended.
    pub(super) fn forget_queued(&mut self) {
        if !self.queued_keys.is_empty() {
            self.queued_keys = VecDeque::new();
        }
        self.is_transaction_in_doubt = false;
    }
}

/// What a CLIENT TRACKING ON says.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrackingOptions {
    pub(super) mode: Option<Mode>,
    pub(super) is_noloop: bool,
    pub(crate) redirect: Option<Redirect>,
    pub(crate) prefixes: Vec<Box<[u8]>>,
    /// The client wants to be told that it has it.
    pub(crate) is_reply_wanted: bool,
}

impl TrackingOptions {
    pub(crate) fn mode(&self) -> Mode {
        self.mode.unwrap_or_default()
    }

    /// Reads the options behind ON or OFF. The client to redirect to is only named here.
    pub(super) fn read(options: Args<'_>) -> Result<(Self, Option<ClientNumber>), ErrorReply> {
        let mut wanted = Self::default();
        let (mut redirect, mut is_in, mut is_out, mut is_broadcast) = (None, false, false, false);
        let mut rest = options;
        while let Some(option) = rest.get(0) {
            let mut taken = 1;
            match option.to_ascii_uppercase().as_slice() {
                b"REDIRECT" if rest.len() > 1 => {
                    let id = integer(rest.at(1)).ok_or(texts::NOT_AN_INTEGER)?;
                    if redirect.replace(id).is_some() {
                        return Err(texts::TRACKING_REDIRECT_TWICE.into());
                    }
                    taken = 2;
                }
                b"PREFIX" if rest.len() > 1 => {
                    wanted.prefixes.push(rest.at(1).into());
                    taken = 2;
                }
                b"BCAST" => is_broadcast = true,
                b"OPTIN" => is_in = true,
                b"OPTOUT" => is_out = true,
                b"NOLOOP" => wanted.is_noloop = true,
                _ => return Err(texts::SYNTAX.into()),
            }
            rest = rest.from(taken);
        }
        wanted.mode = match (is_broadcast, is_in, is_out) {
            (false, false, false) if !wanted.prefixes.is_empty() => {
                return Err(texts::TRACKING_PREFIX_WITHOUT_BCAST.into());
            }
            (true, true, _) | (true, _, true) => return Err(texts::TRACKING_OPT_WITH_BCAST.into()),
            (_, true, true) => return Err(texts::TRACKING_BOTH_OPTS.into()),
            (true, ..) => Some(Mode::Broadcast),
            (_, true, _) => Some(Mode::OptIn),
            (.., true) => Some(Mode::OptOut),
            _ => Some(Mode::Read),
        };
        Ok((wanted, redirect.map(|id| ClientNumber::new(id as u64))))
    }

    /// Whether a client that tracks already may ask for this.
    pub(super) fn fits(&self, now: Option<&Tracking>) -> Result<(), ErrorReply> {
        let wanted = self.mode.unwrap_or_default();
        if let Some(now) = now {
            if (now.mode == Mode::Broadcast) != (wanted == Mode::Broadcast) {
                return Err(texts::TRACKING_SWITCHES_BCAST.into());
            }
            let is_opt = |mode| matches!(mode, Mode::OptIn | Mode::OptOut);
            if is_opt(now.mode) && is_opt(wanted) && now.mode != wanted {
                return Err(texts::TRACKING_SWITCHES_OPT.into());
            }
        }
        let known = now.map_or(0, |now| now.prefixes.len());
        if known + self.prefixes.len() > TRACKING_PREFIXES_MAX {
            return Err(error_text::TOO_MANY_PREFIXES.into());
        }
        if self.prefixes.iter().any(|prefix| prefix.len() > TRACKING_PREFIX_BYTES_MAX) {
            return Err(error_text::LONG_PREFIX.into());
        }
        let overlap = |a: &[u8], b: &[u8]| a.starts_with(b) || b.starts_with(a);
        for (place, prefix) in self.prefixes.iter().enumerate() {
            let existing = now.iter().flat_map(|now| &now.prefixes).find(|other| overlap(prefix, other));
            if let Some(other) = existing {
                return Err(texts::overlapping_prefix(prefix, "an existing", other).into());
            }
            if let Some(other) = self.prefixes[place + 1..].iter().find(|other| overlap(prefix, other)) {
                return Err(texts::overlapping_prefix(prefix, "another provided", other).into());
            }
        }
        Ok(())
    }
}

/// The client that is told in a client's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) id: ClientNumber,
    pub(crate) worker: WorkerId,
    pub(crate) session: ClientHandle,
}

/// The client of a number is looked for, to be told in the place of another.
#[derive(Clone, Debug)]
pub(crate) struct RedirectSearch {
    pub(super) id: ClientNumber,
    /// What the other client has asked for.
    pub(super) wanted: TrackingOptions,
}

/// An invalidation for a client that another one named in its place.
#[derive(Clone, Debug)]
pub(crate) struct Redirected {
    pub(super) to: Redirect,
    pub(super) from_worker: WorkerId,
    pub(super) from: ClientHandle,
    /// `None`: all keys.
    pub(super) keys: Option<Vec<Box<[u8]>>>,
}

/// The client that another named in its place has gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostRedirect {
    pub(super) session: ClientHandle,
    pub(super) id: ClientNumber,
}

/// Clients to be told, each of a key.
pub(crate) type Readers = Vec<(ClientHandle, Box<[u8]>)>;

/// What one request has changed, or time.
#[derive(Debug)]
pub(crate) struct Changed {
    /// Whose request it was.
    pub(crate) by: Option<ClientHandle>,
    /// `None`: all keys.
    pub(crate) keys: Option<Vec<Box<[u8]>>>,
    /// It is part of a transaction: the readers of the keys when they changed. Others, and commands behind it, may have read them since.
    pub(crate) readers: Option<Readers>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::ArgsBuf;

    fn read(options: &str) -> Result<(TrackingOptions, Option<ClientNumber>), String> {
        let args: ArgsBuf = options.split(' ').filter(|word| !word.is_empty()).collect();
        TrackingOptions::read(args.as_args()).map_err(|error| String::from_utf8_lossy(error.words()).into_owned())
    }

    fn tracks(mode: Mode, prefixes: &[&str]) -> Tracking {
        let prefixes = prefixes.iter().map(|prefix| prefix.as_bytes().into()).collect();
        Tracking { mode, prefixes, ..Tracking::default() }
    }

    #[test]
    fn options_of_tracking_are_read_in_any_order_and_case() {
        let (wanted, redirect) = read("noloop Prefix a BCAST redirect 7 prefix b").expect("they fit");
        assert_eq!((wanted.mode(), wanted.is_noloop, redirect), (Mode::Broadcast, true, Some(ClientNumber::new(7))));
        assert_eq!(wanted.prefixes, [Box::from(&b"a"[..]), Box::from(&b"b"[..])]);
        assert_eq!(read("").expect("nothing is said").0.mode(), Mode::Read);
        assert_eq!(read("OPTIN").expect("it fits").0.mode(), Mode::OptIn);
        assert_eq!(read("OPTOUT").expect("it fits").0.mode(), Mode::OptOut);
    }

    #[test]
    fn options_that_exclude_each_other_are_refused() {
        for (options, words) in [
            ("PREFIX a", texts::TRACKING_PREFIX_WITHOUT_BCAST),
            ("BCAST OPTIN", texts::TRACKING_OPT_WITH_BCAST),
            ("OPTOUT BCAST", texts::TRACKING_OPT_WITH_BCAST),
            ("OPTIN OPTOUT", texts::TRACKING_BOTH_OPTS),
            ("REDIRECT 1 REDIRECT 2", texts::TRACKING_REDIRECT_TWICE),
            ("REDIRECT x", texts::NOT_AN_INTEGER),
            ("REDIRECT", texts::SYNTAX),
            ("BCAST PREFIX", texts::SYNTAX),
            ("ALL", texts::SYNTAX),
        ] {
            assert_eq!(read(options).err().as_deref(), Some(words), "{options}");
        }
    }

    #[test]
    fn a_client_that_tracks_may_not_change_how() {
        let fits = |options: &str, now: Tracking| read(options).expect("they fit").0.fits(Some(&now)).is_ok();
        assert!(fits("OPTIN", tracks(Mode::OptIn, &[])) && fits("OPTIN", tracks(Mode::Read, &[])));
        assert!(!fits("OPTOUT", tracks(Mode::OptIn, &[])));
        assert!(!fits("BCAST", tracks(Mode::Read, &[])));
        assert!(!fits("", tracks(Mode::Broadcast, &[])));
    }

    #[test]
    fn prefixes_may_not_overlap_each_other_or_those_there_are() {
        let fits = |options: &str, now: &[&str]| {
            read(options).expect("they fit").0.fits(Some(&tracks(Mode::Broadcast, now))).is_ok()
        };
        assert!(fits("BCAST PREFIX a PREFIX b", &["c"]));
        assert!(!fits("BCAST PREFIX a PREFIX ab", &[]));
        assert!(!fits("BCAST PREFIX user:1", &["user:"]));
        assert!(!fits("BCAST PREFIX u", &["user:"]));
        let very_many: String = (0..=TRACKING_PREFIXES_MAX).map(|n| format!(" PREFIX {n:05}")).collect();
        assert!(!fits(&format!("BCAST{very_many}"), &[]), "there is a bound");
    }
}
