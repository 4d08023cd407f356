//! The pool: where records live.
//!
//! A record is a run of bytes (a key with its value, a field of a hash, a member of a set) that is named by a
//! four-byte [`Handle`] instead of a pointer, so that an index entry costs four bytes and a record costs no allocator
//! header. Small records lie in pages of equal slots, eight bytes apart; large ones own a vector each. The pool knows
//! nothing about what a record means and never moves one behind its owner's back.

use std::num::NonZeroU32;

use super::liveness::Liveness;
use super::slab::Slab;
use crate::limits::records_like;

/// Bytes of one page of slots.
const PAGE_BYTES: usize = 64 * 1024;
/// Slots lie on multiples of this many bytes.
const UNIT_BYTES: usize = 8;
/// Units in one page.
pub(super) const PAGE_UNITS: u32 = (PAGE_BYTES / UNIT_BYTES) as u32;
/// Records longer than this own a vector.
pub(crate) const SMALL_BYTES_MAX: usize = 512;
/// How many slot sizes there are; see [`class_of`].
const CLASSES: usize = 32;
/// The bit that tells a large record's handle.
const LARGE: u32 = 1 << 31;
/// Pages that small handles can name; past them every record is a large one.
const PAGES_MAX: usize = (LARGE / PAGE_UNITS) as usize;
/// The end of a list of free slots.
const NO_UNIT: u16 = u16::MAX;
/// What an allocator keeps beside the contents of a large record.
const LARGE_OVERHEAD_BYTES: usize = 16;

/// The name of one record, valid until the record is freed or resized.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub(crate) struct Handle(NonZeroU32);

impl Handle {
    /// The handle as a plain number, never zero.
    #[inline]
    pub(crate) fn to_u32(self) -> u32 {
        self.0.get()
    }

    /// The handle that [`Handle::to_u32`] gave; `None` for zero.
    #[inline]
    pub(crate) fn from_u32(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    #[inline]
    fn from_known(number: u32) -> Self {
        Self(NonZeroU32::new(number).expect("page zero is never used and a large handle has its top bit set"))
    }
}

/// One page of equal slots.
struct Page {
    bytes: Box<[u8]>,
    /// Where this page stands in its class's list of pages with room, if it does.
    roomy_at: u32,
    slot_units: u16,
    /// Slots in use.
    used: u16,
    /// First of the slots that were freed; each holds the unit of the next in its first two bytes.
    free: u16,
    /// First unit that was never used.
    fresh: u16,
    liveness: Liveness,
}

impl Page {
    fn capacity(&self) -> u32 {
        PAGE_UNITS / u32::from(self.slot_units)
    }
}

/// All records of one engine.
#[derive(Default)]
pub(crate) struct Pool {
    pages: Vec<Page>,
    /// Numbers of pages that hold nothing and belong to no class.
    spare_pages: Vec<u32>,
    /// The bytes of the last page that became empty: a record that comes and goes must not cost a page each time.
    spare_bytes: Box<[u8]>,
    /// Per class, the pages that still have room.
    roomy: [Vec<u32>; CLASSES],
    large: Slab<Vec<u8>>,
    large_bytes: usize,
    live_pages: usize,
    /// Units of all slots in use.
    live_units: usize,
}

/// The class whose slots are the smallest that hold `len` bytes: steps of 8 bytes up to 128, 16 up to 256, 32 up to 512.
#[inline]
fn class_of(len: usize) -> usize {
    let units = len.div_ceil(UNIT_BYTES).max(1);
    match units {
        0..=16 => units - 1,
        17..=32 => 16 + (units - 17) / 2,
        _ => 24 + (units - 33) / 4,
    }
}

/// How many units a slot of `class` has.
#[inline]
fn class_units(class: usize) -> usize {
    match class {
        0..=15 => class + 1,
        16..=23 => 18 + (class - 16) * 2,
        _ => 36 + (class - 24) * 4,
    }
}

impl Pool {
    /// Makes room for a record of `len` bytes. The contents are whatever was there before.
    #[inline]
    pub(crate) fn alloc(&mut self, len: usize) -> Handle {
        if len > SMALL_BYTES_MAX {
            return self.alloc_large(vec![0; len]);
        }
        let class = class_of(len);
        let Some(&number) = self.roomy[class].last() else { return self.alloc_on_new_page(class, len) };
        self.take_slot(class, number)
    }

    /// Keeps `bytes` as a large record whatever their length, so that they can grow in place.
    pub(crate) fn alloc_large(&mut self, bytes: Vec<u8>) -> Handle {
        self.large_bytes += bytes.capacity() + LARGE_OVERHEAD_BYTES;
        let index = self.large.insert(bytes).expect("memory ends before 2^31 large records");
        Handle::from_known(LARGE | index)
    }

    #[inline]
    fn take_slot(&mut self, class: usize, number: u32) -> Handle {
        let page = &mut self.pages[number as usize];
        let unit = if page.free != NO_UNIT {
            let unit = page.free;
            let at = usize::from(unit) * UNIT_BYTES;
            page.free = u16::from_le_bytes([page.bytes[at], page.bytes[at + 1]]);
            unit
        } else {
            let unit = page.fresh;
            page.fresh += page.slot_units;
            unit
        };
        page.liveness.take(unit.into());
        page.used += 1;
        self.live_units += usize::from(page.slot_units);
        if u32::from(page.used) == page.capacity() {
            // Only the last page of the list is ever filled.
            self.roomy[class].pop();
            page.roomy_at = u32::MAX;
        }
        Handle::from_known(number * PAGE_UNITS + u32::from(unit))
    }

    #[cold]
    fn alloc_on_new_page(&mut self, class: usize, len: usize) -> Handle {
        let page = |bytes, slot_units| {
            let liveness = Liveness::default();
            Page { bytes, roomy_at: 0, slot_units, used: 0, free: NO_UNIT, fresh: 0, liveness }
        };
        if self.pages.is_empty() {
            // Page 0 is never used, so that zero is no handle; it costs no bytes.
            self.pages.push(page(Box::default(), 1));
        }
        if self.spare_pages.is_empty() && self.pages.len() >= PAGES_MAX {
            return self.alloc_large(vec![0; len]);
        }
        let mut bytes = std::mem::take(&mut self.spare_bytes);
        if bytes.is_empty() {
            bytes = vec![0; PAGE_BYTES].into_boxed_slice();
        }
        let fresh = page(bytes, class_units(class) as u16);
        let number = match self.spare_pages.pop() {
            Some(number) => {
                self.pages[number as usize] = fresh;
                number
            }
            None => {
                self.pages.push(fresh);
                (self.pages.len() - 1) as u32
            }
        };
        self.live_pages += 1;
        self.roomy[class].push(number);
        self.take_slot(class, number)
    }

    /// The bytes of a record: at least as many as were asked for, the rest being slack of its slot.
    #[inline]
    pub(crate) fn get(&self, handle: Handle) -> &[u8] {
        let number = handle.to_u32();
        if number & LARGE != 0 {
            let bytes = self.large.get(number & !LARGE);
            debug_assert!(bytes.is_some(), "a large record is read after it was freed");
            return bytes.map_or(&[], Vec::as_slice);
        }
        let page = &self.pages[(number / PAGE_UNITS) as usize];
        page.liveness.check(number % PAGE_UNITS);
        let at = (number % PAGE_UNITS) as usize * UNIT_BYTES;
        &page.bytes[at..at + usize::from(page.slot_units) * UNIT_BYTES]
    }

    /// As [`Pool::get`], to be written to.
    #[inline]
    pub(crate) fn get_mut(&mut self, handle: Handle) -> &mut [u8] {
        let number = handle.to_u32();
        if number & LARGE != 0 {
            let bytes = self.large.get_mut(number & !LARGE);
            debug_assert!(bytes.is_some(), "a large record is changed after it was freed");
            return bytes.map_or(&mut [], Vec::as_mut_slice);
        }
        let page = &mut self.pages[(number / PAGE_UNITS) as usize];
        page.liveness.check(number % PAGE_UNITS);
        let at = (number % PAGE_UNITS) as usize * UNIT_BYTES;
        &mut page.bytes[at..at + usize::from(page.slot_units) * UNIT_BYTES]
    }

    /// How many bytes the slot of a record of `len` bytes has.
    #[inline]
    pub(crate) fn slot_bytes(len: usize) -> usize {
        if len > SMALL_BYTES_MAX { len } else { class_units(class_of(len)) * UNIT_BYTES }
    }

    /// Whether the record owns a vector.
    #[inline]
    pub(crate) fn is_large(handle: Handle) -> bool {
        handle.to_u32() & LARGE != 0
    }

    /// Changes the vector of a large record.
    pub(crate) fn edit_large<R>(&mut self, handle: Handle, edit: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        debug_assert!(Self::is_large(handle), "only a large record has a vector");
        let bytes = self.large.get_mut(handle.to_u32() & !LARGE).expect("a large record is there until it is freed");
        self.large_bytes -= bytes.capacity();
        let edited = edit(bytes);
        self.large_bytes += bytes.capacity();
        edited
    }

    /// Whether a record of `len` bytes would lie in the very slot that `handle` has.
    #[inline]
    pub(crate) fn fits_exactly(&self, handle: Handle, len: usize) -> bool {
        if Self::is_large(handle) || len > SMALL_BYTES_MAX {
            return Self::is_large(handle) && self.get(handle).len() == len;
        }
        let page = &self.pages[(handle.to_u32() / PAGE_UNITS) as usize];
        class_units(class_of(len)) == usize::from(page.slot_units)
    }

    /// Gives the record's room back. The handle is void from here on.
    #[inline]
    pub(crate) fn free(&mut self, handle: Handle) {
        let number = handle.to_u32();
        if number & LARGE != 0 {
            return self.free_large(number & !LARGE);
        }
        let page_number = number / PAGE_UNITS;
        let page = &mut self.pages[page_number as usize];
        let unit = (number % PAGE_UNITS) as u16;
        page.liveness.give(unit.into());
        let at = usize::from(unit) * UNIT_BYTES;
        page.bytes[at..at + 2].copy_from_slice(&page.free.to_le_bytes());
        page.free = unit;
        let was_full = u32::from(page.used) == page.capacity();
        page.used -= 1;
        self.live_units -= usize::from(page.slot_units);
        if was_full || page.used == 0 {
            self.free_rare(page_number);
        }
    }

    /// A page that was full has room again, or a page has become empty.
    #[cold]
    fn free_rare(&mut self, number: u32) {
        let page = &mut self.pages[number as usize];
        let class = class_of(usize::from(page.slot_units) * UNIT_BYTES);
        let roomy = &mut self.roomy[class];
        if page.roomy_at == u32::MAX {
            page.roomy_at = roomy.len() as u32;
            roomy.push(number);
        }
        if page.used > 0 {
            return;
        }
        let at = page.roomy_at as usize;
        self.spare_bytes = std::mem::take(&mut page.bytes);
        page.roomy_at = u32::MAX;
        roomy.swap_remove(at);
        if let Some(&moved) = roomy.get(at) {
            self.pages[moved as usize].roomy_at = at as u32;
        }
        self.live_pages -= 1;
        self.spare_pages.push(number);
    }

    #[cold]
    fn free_large(&mut self, index: u32) {
        let freed = self.large.take(index);
        debug_assert!(freed.is_some(), "a large record is freed twice");
        self.large_bytes -= freed.map_or(0, |bytes| bytes.capacity() + LARGE_OVERHEAD_BYTES);
    }

    /// Changes the length of a record to `len`, keeping its first bytes up to the shorter of both lengths. The record may
    /// get another handle.
    pub(crate) fn resize(&mut self, handle: Handle, len: usize) -> Handle {
        if self.fits_exactly(handle, len) {
            return handle;
        }
        if Self::is_large(handle) && len > SMALL_BYTES_MAX {
            self.edit_large(handle, |bytes| {
                bytes.resize(len, 0);
                // Much that is not needed any more goes back.
                if bytes.capacity() / 2 > len {
                    bytes.shrink_to_fit();
                }
            });
            return handle;
        }
        let fresh = self.alloc(len);
        let kept = self.get(handle).len().min(self.get(fresh).len()).min(SMALL_BYTES_MAX);
        let mut carried = [0; SMALL_BYTES_MAX];
        carried[..kept].copy_from_slice(&self.get(handle)[..kept]);
        self.get_mut(fresh)[..kept].copy_from_slice(&carried[..kept]);
        self.free(handle);
        fresh
    }

    /// Gives up to about `budget` records back, whatever they hold, once none is read or made any more: whole pages of them. What that
    /// cost, in records, and whether any is left.
    pub(crate) fn drop_part(&mut self, budget: usize) -> (usize, bool) {
        let mut spent = 0;
        while spent < budget {
            if let Some(large) = self.large.pop() {
                let bytes = large.map_or(0, |bytes| bytes.capacity() + LARGE_OVERHEAD_BYTES);
                self.large_bytes -= bytes;
                spent += 1 + records_like(bytes);
            } else if let Some(page) = self.pages.pop() {
                self.live_units -= usize::from(page.used) * usize::from(page.slot_units);
                self.live_pages -= usize::from(page.used > 0);
                spent += 1 + records_like(page.bytes.len());
            } else {
                return (spent, false);
            }
        }
        (spent, true)
    }

    /// Bytes that records take: slots and vectors, without the free slots of pages.
    #[inline]
    pub(crate) fn used_bytes(&self) -> usize {
        self.live_units * UNIT_BYTES + self.large_bytes + self.large.used_bytes()
    }

    /// What one record adds to [`Pool::used_bytes`].
    #[cfg(debug_assertions)]
    pub(crate) fn record_bytes(&self, handle: Handle) -> usize {
        let number = handle.to_u32();
        if number & LARGE == 0 {
            return usize::from(self.pages[(number / PAGE_UNITS) as usize].slot_units) * UNIT_BYTES;
        }
        let bytes = self.large.get(number & !LARGE).map_or(0, Vec::capacity);
        bytes + LARGE_OVERHEAD_BYTES + Slab::<Vec<u8>>::PLACE_BYTES
    }

    /// Bytes that the pool holds from the allocator, its own bookkeeping included.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.live_pages * PAGE_BYTES
            + self.spare_bytes.len()
            + self.large_bytes
            + self.pages.capacity() * size_of::<Page>()
            + self.large.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_gets_a_slot_that_holds_it() {
        for len in 0..=SMALL_BYTES_MAX {
            let bytes = class_units(class_of(len)) * UNIT_BYTES;
            assert!(bytes >= len && bytes < len + 40, "{len} bytes in a slot of {bytes}");
        }
        assert_eq!(class_of(SMALL_BYTES_MAX), CLASSES - 1);
    }

    #[test]
    #[should_panic = "freed twice"]
    #[cfg(debug_assertions)]
    fn a_record_is_freed_once() {
        let mut pool = Pool::default();
        let (handle, _) = (pool.alloc(9), pool.alloc(9));
        pool.free(handle);
        pool.free(handle);
    }

    #[test]
    #[should_panic = "used after it was freed"]
    #[cfg(debug_assertions)]
    fn a_record_is_read_while_it_is_there() {
        let mut pool = Pool::default();
        let (handle, _) = (pool.alloc(9), pool.alloc(9));
        pool.free(handle);
        pool.get(handle);
    }

    #[test]
    fn a_record_that_becomes_short_gives_memory_back() {
        let mut pool = Pool::default();
        let handle = pool.alloc(1 << 20);
        for len in [600_000, 600, 700, 601] {
            assert_eq!(pool.resize(handle, len), handle);
            assert!(pool.memory_bytes() < 2 * len + 4096, "{} bytes for {len}", pool.memory_bytes());
        }
    }

    #[test]
    fn a_pool_goes_a_part_at_a_time() {
        let mut pool = Pool::default();
        let handles: Vec<Handle> = (0..20_000).map(|number| pool.alloc(number % 700)).collect();
        handles.iter().step_by(3).for_each(|handle| pool.free(*handle));
        let (mut used, mut parts) = (pool.used_bytes(), 0);
        while pool.drop_part(100).1 {
            assert!(pool.used_bytes() < used, "{used} bytes before");
            (used, parts) = (pool.used_bytes(), parts + 1);
        }
        assert!(parts > 20, "{parts}");
        assert_eq!((pool.used_bytes(), pool.live_pages), (0, 0));
    }

    #[test]
    fn records_keep_their_bytes_until_freed() {
        let mut pool = Pool::default();
        let mut live: Vec<(Handle, Vec<u8>)> = Vec::new();
        let mut state = 7_u64;
        for round in 0..60_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round | 1);
            let dice = (state >> 33) as usize;
            if dice % 5 < 3 || live.is_empty() {
                let len = dice / 8 % 700;
                let handle = pool.alloc(len);
                let fill = vec![round as u8; len];
                pool.get_mut(handle)[..len].copy_from_slice(&fill);
                live.push((handle, fill));
            } else if dice % 5 == 3 {
                let (handle, fill) = live.swap_remove(dice / 8 % live.len());
                assert_eq!(&pool.get(handle)[..fill.len()], fill);
                pool.free(handle);
            } else {
                let at = dice / 8 % live.len();
                let (handle, fill) = &mut live[at];
                let len = dice / 64 % 700;
                *handle = pool.resize(*handle, len);
                let kept = len.min(fill.len());
                assert_eq!(&pool.get(*handle)[..kept], &fill[..kept]);
                fill.resize(len, 9);
                pool.get_mut(*handle)[..len].copy_from_slice(fill);
            }
        }
        let full = pool.memory_bytes();
        for (handle, fill) in live.drain(..) {
            assert_eq!(&pool.get(handle)[..fill.len()], fill);
            pool.free(handle);
        }
        assert!(pool.memory_bytes() < full / 4, "{} of {full} bytes kept", pool.memory_bytes());
    }
}
