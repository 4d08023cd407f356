//! The program's allocator, where it is not the system's: memory that is not used any more goes back to the system.
//!
//! Small pieces go back within seconds, by threads of jemalloc's own, since a worker that rests asks its allocator for nothing
//! and would never give anything back. Large ones go back at once: outgrown buffers of clients that read slowly would otherwise
//! double what those clients cost. Where memory is short all of it goes back at once, when the proxy says so.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tikv_jemalloc_ctl::{Access, AsName, Mib, arenas, background_thread, version};

/// Enough to be large (`oversize_threshold` in `.cargo/config.toml`, or jemalloc's own where that has not been read).
const LARGE_BYTES: usize = 16 << 20;

static IS_SET_UP: AtomicBool = AtomicBool::new(false);

/// What it is called, with its version; `None` in a program that has another.
#[must_use]
pub fn name() -> Option<String> {
    let text = version::read().ok().filter(|_| IS_SET_UP.load(Ordering::Relaxed))?;
    Some(format!("jemalloc-{}", text.split('-').next().unwrap_or(text)))
}

/// To be called before anything else is done.
pub fn set_up() {
    IS_SET_UP.store(true, Ordering::Relaxed);
    // Large pieces have an arena, made for the first of them. It leaves nothing to the threads if there are none by then. The
    // piece is not touched, so it costs no memory.
    drop(black_box(Vec::<u8>::with_capacity(black_box(LARGE_BYTES))));
    // Without them memory is given back by threads that free some more.
    let _ = background_thread::write(true);
}

/// Gives what is free back to the system, or leaves that to the thread that is about to.
pub fn give_back() {
    static GIVING: Mutex<()> = Mutex::new(());
    let Ok(_giving) = GIVING.try_lock() else { return };
    let Ok(mut decay) = b"arena.0.dirty_decay_ms\0".name().mib::<[usize; 3]>() else { return };
    for arena in 0..arenas::narenas::read().unwrap_or_default() {
        decay[1] = arena as usize;
        give_back_of(decay);
    }
}

/// Has an arena keep nothing for a moment, which is how it is emptied. One that no thread has used yet is none.
fn give_back_of(decay: Mib<[usize; 3]>) {
    let none: isize = 0;
    if let Ok(usual) = decay.update(none)
        && usual != none
    {
        let _ = decay.write(usual);
    }
}
