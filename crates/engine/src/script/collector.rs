//! When Lua collects garbage.
//!
//! Lua 5.1 begins a collection where twice as much is in use as the last one left, goes on with it a little with each allocation however
//! large that is, and where memory has a limit it refuses what is beyond without having collected. With much in use that point lies
//! beyond the limit. So from a quarter of the limit on collections begin earlier and go faster, as far as is known what is in use; and
//! what is known is looked at anew where more is held than should be behind a collection, or much less.

use std::cell::Cell;

use mlua::state::{GcIncParams, GcMode};
use mlua::{Lua, Result};

use crate::limits::{SCRIPT_MEMORY_BYTES_MAX, SCRIPT_MEMORY_SPARE_BYTES};

/// Lua's own: a collection begins at so many hundredths of what the last one left.
const PAUSE: i32 = 200;
/// And goes on by so many hundredths of a kilobyte for each kilobyte that is allocated, or for each allocation above that.
const STEP: i32 = 200;
/// While memory is scarce it goes on by 200 KB, some tenths of a millisecond.
const STEP_IF_SCARCE: i32 = 20_000;

/// Up to so much in use Lua's own rule leaves as much again, which is half of the limit.
const AMPLE_BYTES: usize = SCRIPT_MEMORY_BYTES_MAX / 4;

/// See the module documentation.
pub(super) struct Collector {
    /// Bytes in use below which much is no longer needed that was behind the last look.
    low: Cell<usize>,
    /// So many above these collections do not keep up, or more is needed.
    span: Cell<usize>,
    /// What Lua has been told last.
    pause: Cell<i32>,
}

impl Default for Collector {
    fn default() -> Self {
        Self { low: Cell::new(0), span: Cell::new(SCRIPT_MEMORY_BYTES_MAX / 2), pause: Cell::new(PAUSE) }
    }
}

impl Collector {
    /// Collects garbage and looks at what is left, if so many bytes in use say that it should be known.
    #[inline]
    pub(super) fn mind(&self, lua: &Lua, used: usize) {
        if used.wrapping_sub(self.low.get()) > self.span.get() {
            self.look(lua);
        }
    }

    #[cold]
    fn look(&self, lua: &Lua) {
        // A collection that fails leaves what it has not collected.
        let _: Result<usize> = self.collect(lua);
    }

    /// Collects all garbage. Result: the bytes that are left, by which the next collections go.
    pub(super) fn collect(&self, lua: &Lua) -> Result<usize> {
        lua.gc_collect()?;
        let needed = lua.used_memory();
        let rest = SCRIPT_MEMORY_BYTES_MAX.saturating_sub(needed);
        let (low, high, pause, step) = if needed < AMPLE_BYTES {
            (0, SCRIPT_MEMORY_BYTES_MAX / 2, PAUSE, STEP)
        } else {
            // Nearly all may be needed: then each collection would be for next to nothing, and an error is the better end.
            let begin = (rest / 2).max(SCRIPT_MEMORY_SPARE_BYTES);
            let pause = (100 + i32::try_from(begin * 100 / needed).unwrap_or(PAUSE)).min(PAUSE);
            (needed / 4 * 3, needed + begin + begin / 4, pause, STEP_IF_SCARCE)
        };
        self.low.set(low);
        self.span.set(high - low);
        let before = self.pause.replace(pause);
        if pause != before {
            let params = GcIncParams::default().pause(pause).step_multiplier(step);
            lua.gc_set_mode(GcMode::Incremental(params));
        }
        if pause < before {
            // The collection that has just ended has said where the next begins.
            lua.gc_restart();
        }
        Ok(needed)
    }
}
