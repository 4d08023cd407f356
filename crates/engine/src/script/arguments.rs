//! Reading the arguments of the host's functions as Lua's own library reads its.

use mlua::{Lua, LuaString, MultiValue, Result, Table, Value};

use super::raise;

/// The arguments of one call, counted from one.
pub(super) struct Given<'a> {
    pub(super) lua: &'a Lua,
    pub(super) values: &'a MultiValue,
}

impl<'a> Given<'a> {
    pub(super) fn new(lua: &'a Lua, values: &'a MultiValue) -> Self {
        Self { lua, values }
    }

    pub(super) fn get(&self, number: usize) -> Option<&'a Value> {
        self.values.get(number - 1)
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether an argument is missing or nil.
    pub(super) fn is_none(&self, number: usize) -> bool {
        self.get(number).is_none_or(Value::is_nil)
    }

    /// A string, or a number as text.
    pub(super) fn string(&self, number: usize) -> Result<LuaString> {
        let value = self.get(number);
        match value {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other @ (Value::Integer(_) | Value::Number(_))) => {
                self.lua.coerce_string(other.clone())?.ok_or_else(|| raise::bad_type(self.lua, number, "string", value))
            }
            _ => Err(raise::bad_type(self.lua, number, "string", value)),
        }
    }

    /// A number, or a text that spells one.
    pub(super) fn number(&self, number: usize) -> Result<f64> {
        let value = self.get(number);
        let read = match value {
            Some(Value::Integer(integer)) => Some(*integer as f64),
            Some(Value::Number(float)) => Some(*float),
            Some(text @ Value::String(_)) => self.lua.coerce_number(text.clone())?,
            _ => None,
        };
        read.ok_or_else(|| raise::bad_type(self.lua, number, "number", value))
    }

    /// A number without what is behind its point.
    pub(super) fn integer(&self, number: usize) -> Result<i64> {
        self.number(number).map(to_integer)
    }

    pub(super) fn integer_or(&self, number: usize, default: i64) -> Result<i64> {
        if self.is_none(number) { Ok(default) } else { self.integer(number) }
    }

    pub(super) fn table(&self, number: usize) -> Result<Table> {
        match self.get(number) {
            Some(Value::Table(table)) => Ok(table.clone()),
            value => Err(raise::bad_type(self.lua, number, "table", value)),
        }
    }

    pub(super) fn is_true(&self, number: usize) -> bool {
        !matches!(self.get(number), None | Some(Value::Nil | Value::Boolean(false)))
    }
}

/// What a number is; zero for anything else.
pub(super) fn as_number(value: &Value) -> f64 {
    match value {
        Value::Integer(integer) => *integer as f64,
        Value::Number(number) => *number,
        _ => 0.0,
    }
}

/// A double as C makes an integer of it on the processors that Redis runs on: what does not fit is the smallest one.
pub(super) fn to_integer(number: f64) -> i64 {
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number);
    if fits { number as i64 } else { i64::MIN }
}
