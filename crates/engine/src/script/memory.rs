//! How the binding allocates on behalf of scripts.
//!
//! Lua ends a C function that gets no memory by a long jump, which must not cross frames of Rust. Where memory has a limit the
//! binding therefore makes every value within a protected call, which itself takes two closures. What the engine makes of a short
//! reply or document is known to fit before it is made: meanwhile there is no limit, and no protected call.

use mlua::Lua;

use crate::limits::SCRIPT_MEMORY_BYTES_MAX;

/// Bytes of Lua's memory that one byte of a reply or document may become: a table of a hundred bytes for `{}` or `*0\r\n`, and its
/// place in the table around it, which doubles.
const BYTES_PER_BYTE: usize = 128;
/// The same for a text without a byte.
const BYTES_AT_LEAST: usize = 16 * 1024;

/// While this lives, Lua's memory has no limit, or a higher one. No code of a script may run meanwhile.
pub(super) struct Unlimited<'l> {
    lua: Option<&'l Lua>,
}

impl<'l> Unlimited<'l> {
    /// Lifts the limit if what is made of so many bytes stays within it in any case.
    pub(super) fn for_bytes(lua: &'l Lua, bytes: usize) -> Self {
        let most = bytes.saturating_mul(BYTES_PER_BYTE).saturating_add(BYTES_AT_LEAST);
        let fits = lua.used_memory().saturating_add(most) <= SCRIPT_MEMORY_BYTES_MAX;
        if fits { Self::in_any_case(lua) } else { Self { lua: None } }
    }

    /// Lifts the limit for what is known to fit.
    pub(super) fn in_any_case(lua: &'l Lua) -> Self {
        Self::with_limit(lua, 0)
    }

    /// Raises the limit by bytes that will be given back in the place of what is made.
    pub(super) fn with_spare(lua: &'l Lua, bytes: usize) -> Self {
        Self::with_limit(lua, SCRIPT_MEMORY_BYTES_MAX.saturating_add(bytes))
    }

    fn with_limit(lua: &'l Lua, bytes: usize) -> Self {
        let is_set = lua.set_memory_limit(bytes).is_ok();
        Self { lua: is_set.then_some(lua) }
    }
}

impl Drop for Unlimited<'_> {
    fn drop(&mut self) {
        if let Some(lua) = self.lua {
            // The interpreter's memory is the binding's own, so it takes limits.
            let _: mlua::Result<usize> = lua.set_memory_limit(SCRIPT_MEMORY_BYTES_MAX);
        }
    }
}
