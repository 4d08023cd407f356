//! The keyspace: databases of keys, what each holds, and when it goes.
//!
//! All access to keys is here: a look-up that finds an expired key removes it and finds nothing; every insertion,
//! removal and change of a deadline keeps the table, the record and the list of deadlines in step. Time is an argument.

mod blocked;
mod database;
mod digest;
mod edited;
pub(crate) mod events;
mod eviction;
mod expiry;
mod fields;
mod footprint;
mod journal;
pub(crate) mod key;
mod notify;
mod removal;
mod room;
mod watch;

use respool_command::Wanted;

use crate::debugging::Debugging;
use crate::limits::{RANDOM_DRAWS_MAX, RANDOM_LOOKS_MAX};
use crate::script_memory::ScriptMemory;
use crate::store::heap::Heap;
use crate::store::lazy_free::LazyFree;
use crate::store::listpack::Element;
use crate::store::pool::Handle;
use crate::store::table::Place;
use crate::store::weighed::{Footprint, Weighed};
use crate::values::{Held, Object, Remains};

pub(crate) use blocked::Blocked;
use blocked::BlockedRequests;
pub(crate) use database::{Database, begin_of};
use database::{Deadlines, Expiring, second_of};
use edited::Changed;
pub(crate) use edited::Edited;
use events::Event;
use eviction::Eviction;
pub use eviction::EvictionPolicy;
pub(crate) use eviction::FrequencyTerms;
use journal::Journal;
use key::{Deadline, INLINE_BYTES_MAX, KeyDraft, KeyRecord, Located, clock_of, text_of};
pub(crate) use key::{EMBEDDED_BYTES_MAX, Expiry, Kind, Value};
use watch::Watches;

/// What has happened to keys so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Look-ups that found a key.
    pub keyspace_hits: u64,
    /// Look-ups that found none.
    pub keyspace_misses: u64,
    /// Keys removed because their time had come.
    pub expired_keys: u64,
    /// Fields of hashes removed because their time had come.
    pub expired_fields: u64,
    /// Keys removed to make room.
    pub evicted_keys: u64,
    /// Large values that were queued to be freed in parts.
    pub freed_slowly: u64,
    /// Changes by requests: each key counts once for each request that changes it. CONFIG RESETSTAT leaves them.
    pub changes: u64,
}

/// Which database, and what time it is: what every access to a key needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) database: usize,
    /// Milliseconds since the Unix epoch.
    pub(crate) now: i64,
}

/// How a string is to be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// As an integer if it is one: what `SET` does.
    Smallest,
    /// As text, whatever it spells: what `INCRBYFLOAT` does.
    Text,
}

/// A key holds something else than a string.
pub(crate) struct NotAString;

/// A key that is there.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    place: Place,
    record: Handle,
}

/// All databases and what they hold.
pub(crate) struct Keyspace {
    pub(crate) heap: Heap,
    pub(crate) databases: Vec<Database>,
    /// Bytes that the tables and lists of all databases hold from the allocator.
    table_bytes: usize,
    objects: Weighed<Object>,
    /// What is forgotten and still to be freed; see [`Keyspace::reap`].
    lazy_free: LazyFree<Remains>,
    pub(crate) counters: Counters,
    /// The most bytes that were in use when the time went on.
    pub(crate) peak_bytes: usize,
    /// When the time went on first, or was first asked for.
    began: Option<i64>,
    /// What has changed, if it is kept.
    journal: Journal,
    watches: Watches,
    pub(crate) blocked: BlockedRequests,
    eviction: Eviction,
    /// The earliest second of a deadline that was set since the time went on last.
    soonest_second: u32,
    /// No key goes that no request removes: neither to make room nor because its time has come.
    pub(crate) keeps_keys: bool,
    /// Changes are noted: the journal is kept, or a key is watched.
    is_noted: bool,
    /// What scripts hold, as they have left it.
    pub(crate) script_memory: ScriptMemory,
    pub(crate) debugging: Debugging,
}

impl Keyspace {
    /// So many empty databases.
    pub(crate) fn new(heap: Heap, databases: usize) -> Self {
        Self {
            heap,
            databases: (0..databases).map(|_| Database::default()).collect(),
            table_bytes: 0,
            objects: Weighed::default(),
            lazy_free: LazyFree::default(),
            counters: Counters::default(),
            peak_bytes: 0,
            began: None,
            journal: Journal::default(),
            watches: Watches::default(),
            blocked: BlockedRequests::default(),
            eviction: Eviction::default(),
            soonest_second: u32::MAX,
            keeps_keys: false,
            is_noted: false,
            script_memory: ScriptMemory::default(),
            debugging: Debugging::default(),
        }
    }

    /// When it was empty and new, in seconds since the Unix epoch.
    pub(crate) fn began_s(&mut self, now: i64) -> i64 {
        self.began.get_or_insert(now).div_euclid(1000)
    }

    /// A key changes, or has changed.
    #[inline]
    fn note(&mut self, database: usize, found: Found) {
        self.counters.changes += 1;
        self.note_uncounted(database, found);
    }

    /// The same for what no request has changed, and for what has been counted.
    #[inline]
    fn note_uncounted(&mut self, database: usize, found: Found) {
        if self.is_noted {
            let key = KeyRecord::new(self.heap.pool.get(found.record)).key().to_vec();
            self.note_key(database, &key);
        }
    }

    /// The value of a key has been edited. If it has changed, that is this event.
    #[inline]
    fn count_edit(&mut self, database: usize, found: Found, changed: Changed, event: Option<Event>) {
        if changed == Changed::Nothing {
            return;
        }
        self.counters.changes += 1;
        if self.is_noted {
            self.note_edit(database, found, changed, event);
        }
    }

    #[cold]
    fn note_edit(&mut self, database: usize, found: Found, changed: Changed, event: Option<Event>) {
        if changed == Changed::Unwatched {
            let key = KeyRecord::new(self.heap.pool.get(found.record)).key();
            return self.watches.spoil_movers(database, key);
        }
        self.note_uncounted(database, found);
        event.into_iter().for_each(|event| self.notify_of(database, event, found));
    }

    #[cold]
    fn note_key(&mut self, database: usize, key: &[u8]) {
        self.journal.note(key);
        self.watches.spoil(database, key);
    }

    /// A key is evicted or expires, in no request's name.
    #[cold]
    fn note_lost(&mut self, database: usize, key: &[u8], event: Event) {
        self.journal.note_lost(key);
        self.journal.note_event(database, event, key);
        self.watches.spoil(database, key);
    }

    /// A key holds something new that requests may wait for, or no longer holds a stream.
    #[inline]
    pub(crate) fn signal(&mut self, database: usize, key: &[u8], kind: Kind) {
        if !self.blocked.is_empty() {
            self.blocked.signal(database, key, kind);
        }
    }

    /// A key is about to lose what it holds.
    #[inline]
    fn signal_loss(&mut self, database: usize, found: Found) {
        if !self.blocked.is_empty() && self.kind(found) == Kind::Stream {
            let key = self.record(found).key().to_vec();
            self.blocked.signal(database, &key, Kind::Stream);
        }
    }

    /// Keys that are waited for in a database may be gone, or others in their place.
    fn signal_all(&mut self, database: usize) {
        for key in self.blocked.keys_of(database) {
            let kind = self.place_of(database, &key).map(|found| self.kind(found));
            // The end of a stream is one of those that its readers wait for.
            self.blocked.signal(database, &key, Kind::Stream);
            if let Some(kind) = kind {
                self.blocked.signal(database, &key, kind);
            }
        }
    }

    fn settle_noting(&mut self) {
        self.is_noted = self.journal.is_kept() || !self.watches.is_empty();
    }

    /// What the journal has; what is wanted is kept from now on.
    pub(crate) fn take_journal(&mut self, wanted: Wanted) -> Journal {
        let taken = self.journal.replace(wanted);
        self.settle_noting();
        taken
    }

    /// So many events are kept that a script has to wait until they are taken.
    #[cfg(feature = "scripting")]
    pub(crate) fn has_many_events(&self) -> bool {
        self.is_noted && self.journal.is_full()
    }

    /// What was found is still where it was found: nothing was put in or taken out since. Only debug builds look.
    #[inline]
    fn check(&self, database: usize, found: Found) {
        let at = || self.databases[database].table.at(found.place);
        debug_assert_eq!(at(), found.record, "a place is used after the table has changed");
    }

    #[inline]
    fn record(&self, found: Found) -> KeyRecord<'_> {
        KeyRecord::new(self.heap.pool.get(found.record))
    }

    #[inline]
    fn place_of(&self, database: usize, key: &[u8]) -> Option<Found> {
        self.place_of_hashed(database, self.heap.hasher.hash(key), key)
    }

    #[inline]
    fn place_of_hashed(&self, database: usize, hash: u64, key: &[u8]) -> Option<Found> {
        let pool = &self.heap.pool;
        let table = &self.databases[database].table;
        let place = table.place(hash, |record| KeyRecord::new(pool.get(record)).is_of(key))?;
        Some(Found { place, record: table.at(place) })
    }

    /// Finds a key without noting that it was used. An expired key is removed and not found.
    #[inline]
    pub(crate) fn peek(&mut self, at: At, key: &[u8]) -> Option<Found> {
        let found = self.place_of(at.database, key)?;
        let record = self.record(found);
        let is_rare =
            record.may_be_due() && (record.is_due(at.now) || self.databases[at.database].may_expire_fields(record));
        (!is_rare || self.settle(at, found)).then_some(found)
    }

    /// Finds a key and changes nothing at all: an expired key is not found and stays.
    pub(crate) fn look(&self, at: At, key: &[u8]) -> Option<Found> {
        let found = self.place_of(at.database, key)?;
        (!self.is_past(self.record(found), at.now)).then_some(found)
    }

    /// Finds a key and notes that it was used.
    #[inline]
    pub(crate) fn find(&mut self, at: At, key: &[u8]) -> Option<Found> {
        let found = self.place_of(at.database, key)?;
        let bytes = self.heap.pool.get_mut(found.record);
        let record = KeyRecord::new(bytes);
        if record.may_be_due() && (record.is_due(at.now) || self.databases[at.database].may_expire_fields(record)) {
            return self.find_settled(at, found);
        }
        if record.clock() != clock_of(at.now) {
            self.note_use(at.now, found);
        }
        Some(found)
    }

    /// As [`Keyspace::find`], and counts the hit or the miss.
    #[inline]
    pub(crate) fn read(&mut self, at: At, key: &[u8]) -> Option<Found> {
        let found = self.find(at, key);
        self.count_read(at, key, found);
        found
    }

    #[inline]
    fn count_read(&mut self, at: At, key: &[u8], found: Option<Found>) {
        match found {
            Some(_) => self.counters.keyspace_hits += 1,
            None => {
                self.counters.keyspace_misses += 1;
                self.notify(at.database, events::KEYMISS, key);
            }
        }
    }

    /// As [`Keyspace::read`], without noting that the key was used.
    pub(crate) fn inspect(&mut self, at: At, key: &[u8]) -> Option<Found> {
        let found = self.peek(at, key);
        self.count_read(at, key, found);
        found
    }

    /// The text of the string at `key`, counted as a read; the hot path of `GET`.
    #[inline]
    pub(crate) fn read_text(&mut self, at: At, key: &[u8]) -> Result<Option<Element<'_>>, NotAString> {
        let Some(found) = self.read(at, key) else { return Ok(None) };
        Ok(Some(match self.record(found).locate() {
            Located::Inline(bytes) => Element::Bytes(bytes),
            Located::Integer(value) => Element::Integer(value),
            Located::Long(handle) => Element::Bytes(self.heap.pool.get(handle)),
            Located::Object => return Err(NotAString),
        }))
    }

    /// What kind of value the key holds.
    #[inline]
    pub(crate) fn kind(&self, found: Found) -> Kind {
        self.record(found).kind()
    }

    /// What the key holds.
    #[inline]
    pub(crate) fn value(&self, found: Found) -> Value<'_> {
        self.record(found).value()
    }

    /// The text of a string; `None` if the key holds something else.
    #[inline]
    pub(crate) fn text(&self, found: Found) -> Option<Element<'_>> {
        text_of(&self.heap.pool, self.record(found).value())
    }

    /// The object that the key holds; `None` if it is a string.
    #[inline]
    pub(crate) fn object(&self, found: Found) -> Option<&Object> {
        match self.value(found) {
            Value::Object(_, number) => self.objects.get(number),
            _ => None,
        }
    }

    /// Changes the object that the key holds, with the help of the heap.
    #[inline]
    pub(crate) fn edit_object<R>(&mut self, found: Found, edit: impl FnOnce(&mut Object, &mut Heap) -> R) -> Option<R> {
        let Value::Object(_, number) = self.value(found) else { return None };
        let heap = &mut self.heap;
        self.objects.edit(number, |object| edit(object, heap))
    }

    /// The value of a certain type that the key holds, and the heap it stands on.
    pub(crate) fn view<T: Held>(&self, found: Found) -> Option<(&T, &Heap)> {
        Some((T::of(self.object(found)?)?, &self.heap))
    }

    /// Has the value changed that the key holds. A value of another type is left alone.
    pub(crate) fn edit<T: Held, R>(
        &mut self,
        database: usize,
        found: Found,
        edit: impl FnOnce(&mut T, &mut Heap) -> Edited<R>,
    ) -> Option<R> {
        self.change(database, found, edit).map(|(said, _)| said)
    }

    /// As [`Keyspace::edit`]. A value that ends up empty is removed with its key.
    pub(crate) fn edit_or_remove<T: Held, R>(
        &mut self,
        database: usize,
        found: Found,
        edit: impl FnOnce(&mut T, &mut Heap) -> Edited<R>,
    ) -> Option<R> {
        let (said, has_elements) = self.change(database, found, edit)?;
        if !has_elements {
            self.delete_uncounted(database, found);
        }
        Some(said)
    }

    /// Has the value changed that the key holds; what the edit says, and whether the value has elements left.
    #[inline]
    fn change<T: Held, R>(
        &mut self,
        database: usize,
        found: Found,
        edit: impl FnOnce(&mut T, &mut Heap) -> Edited<R>,
    ) -> Option<(R, bool)> {
        let Value::Object(_, number) = self.value(found) else { return None };
        let heap = &mut self.heap;
        let (edited, has_deadlines, has_elements) = self.objects.edit_part(number, T::of_mut, |value| {
            let edited = edit(value, heap);
            (edited, value.has_deadlines(), value.has_elements())
        })?;
        let Edited { said, changed, event } = edited;
        if has_deadlines {
            self.list_hash(database, found.record);
        }
        self.count_edit(database, found, changed, event);
        Some((said, has_elements))
    }

    /// As [`Keyspace::view`], to pick something by chance, of which the heap has some: nothing is changed.
    pub(crate) fn pick_from<T: Held>(&mut self, found: Found) -> Option<(&mut T, &mut Heap)> {
        let Value::Object(_, number) = self.value(found) else { return None };
        Some((T::of_mut(self.objects.get_mut_in_place(number)?)?, &mut self.heap))
    }

    /// When the key goes, in milliseconds since the Unix epoch.
    pub(crate) fn deadline(&self, found: Found) -> Option<i64> {
        self.record(found).deadline().map(|deadline| deadline.at)
    }

    /// Gives a key a string. What it held before is forgotten.
    #[inline]
    pub(crate) fn set_text(&mut self, at: At, key: &[u8], text: &[u8], expiry: Expiry, form: Form) {
        let long;
        let value = match form {
            Form::Smallest if text.len() <= 20 => match crate::number::integer::parse(text) {
                Some(value) => Value::Integer(value),
                None => Value::Short(text),
            },
            Form::Smallest | Form::Text if text.len() <= EMBEDDED_BYTES_MAX => Value::Short(text),
            _ if text.len() <= INLINE_BYTES_MAX => Value::Raw(text),
            _ => {
                long = self.heap.pool.alloc_large(text.to_vec());
                Value::Long(long)
            }
        };
        self.put(at, key, value, expiry);
    }

    /// Gives a key a string that is being edited, and which may be so long that it should not be copied. It has no deadline.
    pub(crate) fn set_edited(&mut self, at: At, key: &[u8], text: Vec<u8>) {
        if text.len() > INLINE_BYTES_MAX {
            let long = self.heap.pool.alloc_large(text);
            self.put(at, key, Value::Long(long), Expiry::Never);
        } else {
            self.put(at, key, Value::Raw(&text), Expiry::Never);
        }
    }

    /// Gives a key an integer.
    pub(crate) fn set_integer(&mut self, at: At, key: &[u8], value: i64, expiry: Expiry) {
        self.put(at, key, Value::Integer(value), expiry);
    }

    /// Changes the integer of a key that holds one.
    pub(crate) fn edit_integer(&mut self, database: usize, found: Found, value: i64) {
        self.note(database, found);
        key::set_integer(self.heap.pool.get_mut(found.record), value);
    }

    /// Has the string changed of a key that holds one. The deadline stays.
    pub(crate) fn edit_text<R>(
        &mut self,
        at: At,
        key: &[u8],
        found: Found,
        edit: impl FnOnce(&mut Vec<u8>) -> Edited<R>,
    ) -> R {
        if let Value::Long(handle) = self.value(found) {
            let Edited { said, changed, event } = self.heap.pool.edit_large(handle, edit);
            self.count_edit(at.database, found, changed, event);
            return said;
        }
        let mut text = self.text(found).map(Element::to_vec).unwrap_or_default();
        let Edited { said, changed, event } = edit(&mut text);
        self.count_edit(at.database, found, changed, event);
        // It is kept as text that is being edited, even if it is what it was.
        if text.len() > INLINE_BYTES_MAX {
            let long = self.heap.pool.alloc_large(text);
            self.put_quietly(at, key, Value::Long(long), Expiry::Keep);
        } else {
            self.put_quietly(at, key, Value::Raw(&text), Expiry::Keep);
        }
        said
    }

    /// Gives a key an object. What it held before is forgotten.
    pub(crate) fn set_object(&mut self, at: At, key: &[u8], object: Object, expiry: Expiry) {
        let kind = match object {
            Object::List(_) => Kind::List,
            Object::Hash(_) => Kind::Hash,
            Object::Set(_) => Kind::Set,
            Object::SortedSet(_) => Kind::SortedSet,
            Object::Stream(_) => Kind::Stream,
        };
        let number = self.objects.insert(object);
        self.put(at, key, Value::Object(kind, number), expiry);
    }

    /// Gives a key a value, whatever it held.
    #[inline]
    fn put(&mut self, at: At, key: &[u8], value: Value<'_>, expiry: Expiry) {
        self.counters.changes += 1;
        if self.is_noted {
            self.note_put(at, key);
        }
        self.put_quietly(at, key, value, expiry);
        if self.eviction.counts_uses() {
            self.count_use(at, key);
        }
    }

    /// As [`Keyspace::put`], for a change that has been told of, or is none.
    #[inline]
    fn put_quietly(&mut self, at: At, key: &[u8], value: Value<'_>, expiry: Expiry) {
        let hash = self.heap.hasher.hash(key);
        match self.place_of_hashed(at.database, hash, key) {
            Some(found) => {
                let clock = self.clock_for(at.now, Some(found));
                let is_done =
                    expiry == Expiry::Never && key::overwrite(self.heap.pool.get_mut(found.record), value, clock);
                if !is_done {
                    self.overwrite(at, key, value, expiry, found, clock);
                }
            }
            None => {
                let clock = self.clock_for(at.now, None);
                let draft = KeyDraft { key, value, deadline: None, clock };
                let record = self.heap.pool.alloc(draft.bytes());
                draft.write(self.heap.pool.get_mut(record));
                let Heap { pool, hasher, .. } = &mut self.heap;
                let table = &mut self.databases[at.database].table;
                let shape = table.shape();
                table.insert(hash, record, |moved| hasher.hash(KeyRecord::new(pool.get(moved)).key()));
                if table.shape() != shape {
                    self.count_tables(at.database);
                }
                match value {
                    Value::Object(Kind::Hash, _) => self.list_hash(at.database, record),
                    Value::Object(kind, _) => self.signal(at.database, key, kind),
                    _ => {}
                }
                if let Expiry::At(deadline) = expiry {
                    self.set_deadline(at, key, deadline);
                }
            }
        }
    }

    fn overwrite(&mut self, at: At, key: &[u8], value: Value<'_>, expiry: Expiry, found: Found, clock: u32) {
        self.signal_loss(at.database, found);
        if let Value::Object(kind, _) = value {
            self.signal(at.database, key, kind);
        }
        self.unlist_hash(at.database, found.record);
        self.forget_value(found);
        let old = self.record(found).deadline();
        let is_due = self.record(found).is_due(at.now);
        self.counters.expired_keys += u64::from(is_due);
        let deadline = match (expiry, old) {
            // A key that is gone already takes its deadline with it.
            (Expiry::Keep, _) if is_due => None,
            (Expiry::Keep, old) => old,
            (Expiry::Never, _) | (Expiry::At(_), None) => None,
            (Expiry::At(moment), Some(old)) => Some(Deadline { at: moment, ..old }),
        };
        if let Some(old) = old
            && deadline.is_none()
        {
            self.unlist(at.database, old.listed);
        }
        let draft = KeyDraft { key, value, deadline, clock };
        let record = self.rewrite(at.database, found, draft);
        self.list_hash(at.database, record);
        if let Some(deadline) = deadline {
            let expiring = &mut self.databases[at.database].keys.entries[deadline.listed as usize];
            *expiring = Expiring { record, second: second_of(deadline.at) };
            self.note_deadline(second_of(deadline.at));
        } else if let Expiry::At(moment) = expiry {
            self.set_deadline(at, key, moment);
        }
    }

    /// Writes a record anew, in its old slot if that is the right one.
    #[inline]
    fn rewrite(&mut self, database: usize, found: Found, draft: KeyDraft<'_>) -> Handle {
        self.check(database, found);
        let bytes = draft.bytes();
        if self.heap.pool.fits_exactly(found.record, bytes) {
            draft.write(self.heap.pool.get_mut(found.record));
            return found.record;
        }
        let fresh = self.heap.pool.alloc(bytes);
        draft.write(self.heap.pool.get_mut(fresh));
        self.heap.pool.free(found.record);
        self.databases[database].table.replace(found.place, fresh);
        if let Value::Object(Kind::Hash, _) = draft.value {
            self.list_hash(database, fresh);
        }
        fresh
    }

    /// Moves a key, its value and its deadline to another name or database, where no key of that name may be.
    pub(crate) fn rename(&mut self, at: At, found: Found, to: At, key: &[u8]) {
        self.note_uncounted(at.database, found);
        let deadline = self.deadline(found);
        let old = self.heap.pool.get(found.record).to_vec();
        let old = KeyRecord::new(&old);
        self.unlist_hash(at.database, found.record);
        self.forget_key(at.database, found);
        let expiry = deadline.map_or(Expiry::Never, Expiry::At);
        self.put(to, key, old.value(), expiry);
        if self.eviction.counts_uses() {
            self.set_use(to.database, key, old.clock());
        }
        if old.kind() == Kind::Stream {
            self.signal(at.database, old.key(), Kind::Stream);
        }
    }

    /// Copies a key, its value and its deadline, over whatever is there.
    pub(crate) fn copy(&mut self, found: Found, to: At, key: &[u8]) {
        let expiry = self.deadline(found).map_or(Expiry::Never, Expiry::At);
        let old = self.heap.pool.get(found.record).to_vec();
        match KeyRecord::new(&old).value() {
            Value::Long(handle) => {
                let text = self.heap.pool.get(handle).to_vec();
                let long = self.heap.pool.alloc_large(text);
                self.put(to, key, Value::Long(long), expiry);
            }
            Value::Object(_, number) => {
                let object = self.objects.get(number);
                if let Some(copy) = object.map(|object| object.duplicate(&mut self.heap)) {
                    self.set_object(to, key, copy, expiry);
                }
            }
            value => self.put(to, key, value, expiry),
        }
    }

    /// Whether any database holds a key.
    pub(crate) fn holds_keys(&self) -> bool {
        self.databases.iter().any(|database| database.table.len() > 0)
    }

    /// All keys of a database, of which each will be given its value anew.
    pub(crate) fn keys_to_replace(&mut self, database: usize) -> Vec<Vec<u8>> {
        self.journal.note_everything();
        self.spoil_all(database);
        self.all_keys(database).collect()
    }

    /// The names of all keys of a database.
    pub(crate) fn all_keys(&self, database: usize) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.databases[database].table.iter().map(|record| KeyRecord::new(self.heap.pool.get(record)).key().to_vec())
    }

    /// About how much there is to copy: keys, and the records and nodes of their values.
    #[cfg(feature = "scripting")]
    pub(crate) fn copy_effort(&self) -> usize {
        let of_value = |record| match KeyRecord::new(self.heap.pool.get(record)).value() {
            Value::Object(_, number) => self.objects.get(number).map_or(0, Object::copy_effort),
            _ => 0,
        };
        self.databases.iter().flat_map(|database| database.table.iter()).map(|record| 1 + of_value(record)).sum()
    }

    /// Finds a key whatever its deadline says, and changes nothing.
    pub(crate) fn find_expired_too(&self, database: usize, key: &[u8]) -> Option<Found> {
        self.place_of(database, key)
    }

    /// Shows the keys of one database that have not expired.
    pub(crate) fn each_key(&self, at: At, mut see: impl FnMut(&[u8])) {
        for record in self.databases[at.database].table.iter() {
            let record = KeyRecord::new(self.heap.pool.get(record));
            if !self.is_past(record, at.now) {
                see(record.key());
            }
        }
    }

    /// Shows the keys behind `cursor`, until about `count` were looked at; the next cursor. Expired ones are removed.
    pub(crate) fn scan(&mut self, at: At, mut cursor: u64, count: usize, mut see: impl FnMut(&[u8], Kind)) -> u64 {
        let (mut seen, mut expired) = (0, Vec::new());
        loop {
            cursor = self.databases[at.database].table.scan(cursor, |record| {
                seen += 1;
                let record = KeyRecord::new(self.heap.pool.get(record));
                if self.is_past(record, at.now) {
                    expired.push(record.key().to_vec());
                } else {
                    see(record.key(), record.kind());
                }
            });
            if cursor == 0 || seen >= count {
                break;
            }
        }
        for key in expired {
            self.peek(at, &key);
        }
        cursor
    }

    /// Some key of the database. As in Redis, an expired one that is drawn is removed and another is drawn, until one has
    /// not expired or none is left: each draw leaves less to do. While keys are kept it does not, so that draws are bounded, and
    /// behind the last of them the first key is taken that has not expired. That look is bounded, too: as in Redis it may end with a key
    /// whose time has come.
    pub(crate) fn random_key(&mut self, at: At) -> Option<Vec<u8>> {
        let mut draws = if self.keeps_keys { RANDOM_DRAWS_MAX } else { usize::MAX };
        loop {
            if draws == 0 {
                let record = |record| KeyRecord::new(self.heap.pool.get(record));
                let mut records = self.databases[at.database].table.iter().map(record);
                let found = records.by_ref().take(RANDOM_LOOKS_MAX).find(|record| !self.is_past(*record, at.now));
                return found.or_else(|| records.next()).map(|record| record.key().to_vec());
            }
            draws -= 1;
            let table = &self.databases[at.database].table;
            let record = table.random(&mut self.heap.random)?;
            let key = KeyRecord::new(self.heap.pool.get(record)).key().to_vec();
            if self.peek(at, &key).is_some() {
                return Some(key);
            }
        }
    }

    /// Exchanges two databases. A key that is watched in one has changed if either has it, and is not past its time.
    pub(crate) fn swap(&mut self, now: i64, a: usize, b: usize) {
        self.journal.note_everything();
        for (of, other) in [(a, b), (b, a)].into_iter().filter(|_| a != b) {
            for key in self.watches.keys_of(of) {
                let mut is_in = |database| self.peek(At { database, now }, &key).is_some();
                if is_in(of) || is_in(other) {
                    self.watches.spoil(of, &key);
                }
            }
        }
        self.databases.swap(a, b);
        self.counters.changes += 1;
        self.signal_all(a);
        self.signal_all(b);
    }

    /// About the bytes that one key takes: its record, its value, and the records of the value's members, of which so many are measured.
    pub(crate) fn usage_bytes(&self, found: Found, samples: usize) -> usize {
        let pool = &self.heap.pool;
        let record = pool.get(found.record).len();
        record
            + match self.value(found) {
                Value::Integer(_) | Value::Short(_) | Value::Raw(_) => 0,
                Value::Long(handle) => pool.get(handle).len(),
                Value::Object(_, number) => self.objects.get(number).map_or(0, |object| {
                    size_of::<Object>() + object.memory_bytes() + object.record_bytes(pool, samples)
                }),
            }
    }
}
