//! Compiling of scripts, and the memory for what they are compiled to: older ones make room.

use super::cache::Hash;
use super::chunk::NO_MEMORY;
use super::exchange::{Order, Report};
use super::shebang::{self, ScriptFlags};
use super::state::Scripts;
use super::text;
use crate::commands::Fault;
use crate::limits::{SCRIPT_MEMORY_BYTES_MAX, SCRIPT_MEMORY_SPARE_BYTES};

impl Scripts {
    /// Puts a script into the cache and compiles it, if it is not there.
    pub(super) fn load(&mut self, hash: Hash, script: &[u8]) -> Result<ScriptFlags, Fault> {
        self.host()?;
        if let Some(flags) = self.cache.compiled_flags(&hash) {
            return Ok(flags);
        }
        let (flags, start) = shebang::read(script).map_err(Fault::Written)?;
        self.compile(hash, &script[start..])?;
        let compiled_bytes = self.host()?.exchange.compiled_bytes.get();
        let gone = self.cache.insert(hash, script, flags, compiled_bytes);
        self.forget(gone)?;
        Ok(flags)
    }

    /// Has a script compiled. Where there is no memory for it garbage is collected and older ones make room, if that can be enough: it is
    /// compiled twice at most, and one that is too long in any case takes nothing from others.
    fn compile(&mut self, hash: Hash, script: &[u8]) -> Result<(), Fault> {
        let room = SCRIPT_MEMORY_BYTES_MAX.saturating_sub(self.vm_bytes());
        let Err(why) = self.compile_once(hash, script, 0)? else { return Ok(()) };
        if !why.ends_with(NO_MEMORY) {
            return Err(Fault::Written(why));
        }
        let needed = self.host()?.exchange.compiled_bytes.get().max(room);
        self.host()?.resume(Order::Collect);
        let spare = self.cache.compiled_bytes();
        if (SCRIPT_MEMORY_BYTES_MAX + spare).saturating_sub(self.vm_bytes()) <= needed {
            return Err(Fault::Written(why));
        }
        self.compile_once(hash, script, spare)?.map_err(Fault::Written)?;
        self.make_room_behind(hash)?.then_some(()).ok_or(Fault::Written(why))
    }

    /// The same with so much memory beyond the limit. The inner error: the script is not compiled because of this.
    fn compile_once(&mut self, hash: Hash, script: &[u8], spare: usize) -> Result<Result<(), Vec<u8>>, Fault> {
        match self.host()?.resume(Order::Compile { hash, text: script.to_vec(), spare }) {
            Some(Report::Compiled(compiled)) => Ok(compiled),
            _ => {
                self.host = None;
                Err(Fault::Text(text::NO_MEMORY))
            }
        }
    }

    /// Older scripts give back what a script that has just been compiled takes beyond the limit; whether that is enough. If not, it is
    /// forgotten itself.
    fn make_room_behind(&mut self, hash: Hash) -> Result<bool, Fault> {
        for all in [0, usize::MAX] {
            let beyond = self.vm_bytes().saturating_sub(SCRIPT_MEMORY_BYTES_MAX);
            if beyond == 0 {
                return Ok(true);
            }
            // The next one, and what this one makes, should find some room.
            let gone = self.cache.make_room((beyond + SCRIPT_MEMORY_SPARE_BYTES).max(all));
            self.forget(gone)?;
            self.host()?.resume(Order::Collect);
        }
        let fits = self.vm_bytes() <= SCRIPT_MEMORY_BYTES_MAX;
        if !fits {
            self.forget(vec![hash])?;
            self.host()?.resume(Order::Collect);
        }
        Ok(fits)
    }

    /// Bytes that the interpreter holds.
    pub(super) fn vm_bytes(&self) -> usize {
        self.host.as_ref().map_or(0, |host| host.exchange.vm_bytes.get())
    }

    /// The interpreter is to know these scripts no more.
    fn forget(&mut self, gone: Vec<Hash>) -> Result<(), Fault> {
        for hash in gone {
            self.host()?.resume(Order::Forget(hash));
        }
        Ok(())
    }
}
