//! `math.random` as Redis has it: the same numbers on every machine, from the first script on.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Lua, MultiValue, Result, Table, Value};

use super::arguments::Given;
use super::raise;

/// The generator of `lrand48`, in 48 bits.
#[derive(Clone)]
pub(super) struct Random(Rc<Cell<u64>>);

/// Numbers are below this: what Redis calls the maximum.
const RANDOM_MAX: f64 = 2_147_483_647.0;

impl Random {
    pub(super) fn new() -> Self {
        /// What the generator begins with where nothing seeds it.
        const START: u64 = 0x1234_abcd_330e;
        Self(Rc::new(Cell::new(START)))
    }

    /// Begins anew. Scripts share one sequence, as in Redis, until one of them seeds it.
    pub(super) fn seed(&self, seed: u32) {
        self.0.set(u64::from(seed) << 16 | 0x330e);
    }

    fn next(&self) -> u32 {
        let state = (self.0.get().wrapping_mul(0x5_deec_e66d).wrapping_add(0xb)) & 0xffff_ffff_ffff;
        self.0.set(state);
        (state >> 17) as u32
    }

    /// Puts the two functions into a table.
    pub(super) fn register(&self, lua: &Lua, math: &Table) -> Result<()> {
        let random = self.clone();
        math.raw_set(
            "random",
            lua.create_function(move |lua, values: MultiValue| random.draw(&Given::new(lua, &values)))?,
        )?;
        let random = self.clone();
        let seed = lua.create_function(move |lua, values: MultiValue| {
            random.seed(Given::new(lua, &values).integer(1)? as u32);
            Ok(())
        })?;
        math.raw_set("randomseed", seed)
    }

    fn draw(&self, given: &Given<'_>) -> Result<Value> {
        let part = f64::from(self.next() % 2_147_483_647) / RANDOM_MAX;
        let (low, high, place) = match given.len() {
            0 => return Ok(Value::Number(part)),
            1 => (1, given.integer(1)?, 1),
            2 => (given.integer(1)?, given.integer(2)?, 2),
            _ => return Err(raise::fail(given.lua, "wrong number of arguments")),
        };
        // Lua reads these as C's int.
        let (low, high) = (low as i32, high as i32);
        if low > high {
            return Err(raise::bad_argument(given.lua, place, "interval is empty"));
        }
        let width = high.wrapping_sub(low).wrapping_add(1);
        Ok(Value::Number((part * f64::from(width)).floor() + f64::from(low)))
    }
}
