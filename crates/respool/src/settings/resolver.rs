//! Reads single settings: a statement becomes a value of its row, and what is wrong is reported where it was said.

use std::fmt::Display;
use std::io;
use std::path::Path;

use super::diagnostic::{self, Fault};
use super::raw::{Origin, RawPool, RawSettings, Statement};
use super::row::{Row, Secret, Value};
use super::table::Setting;
use super::values::Values;

/// Reads a file with a secret.
pub type ReadSecret<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

pub(super) struct Resolver<'a> {
    pub(super) said: &'a RawSettings,
    pub(super) read_secret: ReadSecret<'a>,
    pub(super) faults: Vec<Fault>,
    pub(super) warnings: Vec<String>,
}

impl Resolver<'_> {
    /// Reads every setting of one pool.
    pub(super) fn values(&mut self, pool: Option<&RawPool>) -> Vec<Value> {
        Setting::ALL.iter().map(|setting| self.value(*setting, pool)).collect()
    }

    fn value(&mut self, setting: Setting, pool: Option<&RawPool>) -> Value {
        match self.said.about(setting, pool) {
            Some(statement) => self.value_of(statement),
            None => default_of(setting.row()),
        }
    }

    /// The value that a statement says; the default if it says none.
    pub(super) fn value_of(&mut self, statement: &Statement) -> Value {
        let row = statement.setting.row();
        let texts: Vec<&str> = statement.texts.iter().map(|text| text.text.as_str()).collect();
        match row.parse(&texts) {
            Ok(value) => value,
            Err(refusal) => {
                let text = statement.texts.get(refusal.text);
                let origin = text.map_or(&statement.origin, |text| &text.origin).clone();
                let said = match text {
                    _ if row.is_secret() => "what was said".to_owned(),
                    Some(text) => format!("{:.200?}", text.text),
                    None => "nothing".to_owned(),
                };
                self.fault(Fault::new(origin, format!("{} cannot be {said}", row.name)).hint(refusal.reason));
                default_of(row)
            }
        }
    }

    /// A secret that is said itself, or by the file that holds it.
    pub(super) fn secret(
        &mut self,
        of: &Values<'_>,
        [itself, file]: [Setting; 2],
        pool: Option<&RawPool>,
    ) -> Option<Secret> {
        match (of.secret(itself), of.text(file)) {
            (Some(_), Some(_)) => {
                let hint = format!("say one of {} and {}", itself.row().name, file.row().name);
                self.blame(file, pool, "the password is said twice", hint);
                None
            }
            (Some(password), None) => Some(password),
            (None, Some(path)) => {
                let origin = self.said.about(file, pool).map_or(Origin::Default, |said| said.origin.clone());
                self.secret_at(path, &origin)
            }
            (None, None) => None,
        }
    }

    /// The first line of a file.
    pub(super) fn secret_at(&mut self, path: &str, origin: &Origin) -> Option<Secret> {
        let first_line = |text: String| text.lines().next().filter(|line| !line.is_empty()).map(str::to_owned);
        let (what, hint) = match (self.read_secret)(Path::new(path)).map(first_line) {
            Ok(Some(line)) => return Some(Secret::new(line)),
            Ok(None) => ("is empty", "the first line is the password".to_owned()),
            Err(error) => ("cannot be read", error.to_string()),
        };
        self.fault(Fault::new(origin.clone(), format!("{path} {what}")).hint(hint));
        None
    }

    /// Adds a fault at the place where a setting was said.
    pub(super) fn blame(&mut self, setting: Setting, pool: Option<&RawPool>, message: &str, hint: impl Display) {
        let origin = self.said.about(setting, pool).map_or(Origin::Default, |statement| statement.origin.clone());
        self.fault(Fault::new(origin, message.to_owned()).hint(hint.to_string()));
    }

    /// Adds a fault, unless it is there: one of a value that holds for all pools is found once per pool.
    pub(super) fn fault(&mut self, fault: Fault) {
        if !self.faults.contains(&fault) {
            diagnostic::add(&mut self.faults, || fault);
        }
    }
}

pub(super) fn default_of(row: &Row) -> Value {
    if row.default.is_empty() {
        return if row.is_list() { row.parse(&[]).unwrap_or(Value::Absent) } else { Value::Absent };
    }
    row.parse(&[row.default]).expect("a test reads every default in the table")
}
