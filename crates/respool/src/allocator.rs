//! The program's allocator, where it is not the system's: memory that is not used any more goes back to the system.
//!
//! Small pieces go back within seconds, by threads of jemalloc's own, since a worker that rests asks its allocator for nothing
//! and would never give anything back. Large ones go back at once: outgrown buffers of clients that read slowly would otherwise
//! double what those clients cost.

use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Enough to be large (`oversize_threshold` in `.cargo/config.toml`, or jemalloc's own where that has not been read).
const LARGE_BYTES: usize = 16 << 20;

/// To be called before anything else is done.
pub(crate) fn set_up() {
    // Large pieces have an arena, made for the first of them. It leaves nothing to the threads if there are none by then. The
    // piece is not touched, so it costs no memory.
    drop(black_box(Vec::<u8>::with_capacity(black_box(LARGE_BYTES))));
    // Without them memory is given back by who frees some more.
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
}
