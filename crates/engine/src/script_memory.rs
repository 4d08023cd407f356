//! What scripts hold: a part of what `maxmemory` bounds, shown by `INFO memory` in Redis's lines.
//!
//! The interpreter is not always there, and asked about nowhere but where it runs: it leaves here what it holds.

use std::fmt::Write;

use respool_command::human_bytes;

/// Bytes and counts of scripts and functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScriptMemory {
    /// The interpreter with all that scripts have made in it.
    pub(crate) vm_bytes: usize,
    /// The texts of cached scripts, and how many there are.
    pub(crate) cached_bytes: usize,
    pub(crate) cached: usize,
    /// The texts of libraries, and how many there are.
    pub(crate) library_bytes: usize,
    pub(crate) libraries: usize,
    pub(crate) functions: usize,
}

impl ScriptMemory {
    /// All that scripts hold.
    pub(crate) fn bytes(&self) -> usize {
        self.vm_bytes + self.cached_bytes + self.library_bytes
    }

    /// The lines of `INFO memory`. Scripts and functions share one interpreter here, which is shown as that of scripts.
    pub(crate) fn write_lines(&self, out: &mut String) {
        let Self { vm_bytes, cached_bytes, cached, library_bytes, libraries, functions } = *self;
        let scripts = cached_bytes + library_bytes;
        // A String takes all that is written into it.
        let _: std::fmt::Result = write!(
            out,
            "used_memory_lua:{vm_bytes}\r\nused_memory_vm_eval:{vm_bytes}\r\nused_memory_lua_human:{vm}\r\n\
             used_memory_scripts_eval:{cached_bytes}\r\nnumber_of_cached_scripts:{cached}\r\n\
             number_of_functions:{functions}\r\nnumber_of_libraries:{libraries}\r\nused_memory_vm_functions:0\r\n\
             used_memory_vm_total:{vm_bytes}\r\nused_memory_vm_total_human:{vm}\r\n\
             used_memory_functions:{library_bytes}\r\nused_memory_scripts:{scripts}\r\n\
             used_memory_scripts_human:{scripts_human}\r\n",
            vm = human_bytes(vm_bytes as u64),
            scripts_human = human_bytes(scripts as u64),
        );
    }
}
