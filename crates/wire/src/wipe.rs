//! Overwriting what was secret.
//!
//! With the speed of memory: what is wiped may be as large as a request. Writing byte by byte past the compiler, as it is
//! done for keys, would take a microsecond for each kilobyte. So the bytes are filled as usual, and the barrier behind it
//! keeps the compiler from leaving that out.

use zeroize::optimization_barrier;

/// Overwrites bytes.
pub fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    optimization_barrier(bytes);
}

/// Overwrites all memory of a buffer, which is empty then and as large as before.
pub fn wipe_all(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.capacity(), 0);
    wipe(bytes);
    bytes.clear();
}
