//! What the host's functions do for a script, counted as work of the script.
//!
//! Lua counts instructions, and a call of a function is one of them however long it takes. So what the host does for a call is counted
//! here, over all calls, and the script asks in between whether it may go on.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Function, Result};

use super::exchange::Exchange;
use crate::limits::SCRIPT_SLICE_STEPS;

/// Bytes that are copied, compared or hashed while one step is made.
const COPIED_PER_STEP: usize = 32;
/// Bytes that are looked at one by one meanwhile.
const READ_PER_STEP: usize = 8;

/// The steps since the last look.
pub(super) struct Effort {
    /// Asks whether the script may go on.
    pause: Function,
    exchange: Rc<Exchange>,
    steps: Cell<usize>,
}

impl Effort {
    pub(super) fn new(pause: Function, exchange: Rc<Exchange>) -> Self {
        Self { pause, exchange, steps: Cell::new(0) }
    }

    /// One step. An error: the script is to end.
    #[inline]
    pub(super) fn step(&self) -> Result<()> {
        self.steps.set(self.steps.get() + 1);
        self.look_if_due()
    }

    /// So many steps have been made: the next one counts them.
    #[inline]
    pub(super) fn note_steps(&self, steps: usize) {
        self.steps.set(self.steps.get().saturating_add(steps));
    }

    /// Bytes have been looked at one by one: the next step counts them.
    #[inline]
    pub(super) fn note_read(&self, bytes: usize) {
        self.note_steps(bytes / READ_PER_STEP);
    }

    /// Bytes have been copied or compared: the next step counts them.
    #[inline]
    pub(super) fn note_copied(&self, bytes: usize) {
        self.note_steps(bytes / COPIED_PER_STEP);
    }

    /// A call begins that looks at so many bytes one by one.
    pub(super) fn read(&self, bytes: usize) -> Result<()> {
        self.note_read(bytes);
        self.step()
    }

    /// A call begins that copies so many bytes.
    pub(super) fn copy(&self, bytes: usize) -> Result<()> {
        self.note_copied(bytes);
        self.step()
    }

    #[inline]
    fn look_if_due(&self) -> Result<()> {
        if self.steps.get() < SCRIPT_SLICE_STEPS { Ok(()) } else { self.look() }
    }

    #[cold]
    fn look(&self) -> Result<()> {
        // Calls may be nested too deep for one more: the next step asks again then, or what catches the error.
        self.pause.call::<()>(()).inspect_err(|_| self.exchange.is_look_due.set(true))?;
        self.steps.set(0);
        Ok(())
    }
}
