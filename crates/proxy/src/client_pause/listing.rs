//! The functions of a node, as FUNCTION LIST shows them.

use crate::ids::NodeId;
use crate::limits::FUNCTIONS_READ_BYTES_MAX;
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskLoss, TaskReply};
use crate::session::table::Clients;
use respool_wire::{Elements, Value, elements};
use std::collections::BTreeSet;

/// Names of functions in small letters: nodes do not tell capitals from others.
pub(crate) type Names = BTreeSet<Vec<u8>>;

/// A node is being asked for its functions.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) node: NodeId,
    pub(crate) epoch: u64,
    pub(crate) readonly: Names,
}

impl InternalTask for Listing {
    fn handle_reply(&mut self, reply: TaskReply<'_>, _: &mut Clients) -> Progress {
        if reply.bytes.len() <= FUNCTIONS_READ_BYTES_MAX {
            self.readonly = readonly_functions(reply.bytes).unwrap_or_default();
        }
        Progress::Through
    }

    fn handle_loss(&mut self, _: TaskLoss<'_>, _: &mut Clients) -> Progress {
        Progress::Through
    }

    // Several clients may wait for it.
    fn reply_bytes_max(&self) -> Option<usize> {
        Some(FUNCTIONS_READ_BYTES_MAX)
    }
}

/// The functions of FUNCTION LIST that change nothing. `None`: it is no such list.
pub(crate) fn readonly_functions(reply: &[u8]) -> Option<Names> {
    let mut names = Names::new();
    for library in elements(reply)? {
        let Some(functions) = field(elements(library)?, b"functions") else { continue };
        for function in elements(functions)? {
            let name = field(elements(function)?, b"name").and_then(text);
            let flags = field(elements(function)?, b"flags").and_then(elements);
            let is_readonly = flags?.filter_map(text).any(|flag| flag == b"no-writes");
            names.extend(name.filter(|_| is_readonly).map(|name| name.to_ascii_lowercase()));
        }
    }
    Some(names)
}

/// The value of a field, in a map or in an array of names and values.
fn field<'a>(mut fields: Elements<'a>, name: &[u8]) -> Option<&'a [u8]> {
    while let Some(found) = fields.next() {
        let value = fields.next()?;
        if text(found).is_some_and(|found| found == name) {
            return Some(value);
        }
    }
    None
}

pub(crate) fn text(reply: &[u8]) -> Option<Vec<u8>> {
    match Value::parse(reply) {
        Ok(Value::Bulk(text) | Value::Simple(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::readonly_functions;

    #[test]
    fn functions_that_change_nothing_are_known_by_their_flags() {
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        for (map, set) in [("*6", "*"), ("%3", "~")] {
            let function = |name: &str, flags: &[&str]| {
                let flags: String = flags.iter().map(|flag| format!("+{flag}\r\n")).collect();
                let count = flags.matches('+').count();
                let (name, description) = (bulk("name") + &bulk(name), bulk("description") + "$-1\r\n");
                format!("{map}\r\n{name}{description}{}{set}{count}\r\n{flags}", bulk("flags"))
            };
            let functions = function("Reads", &["allow-oom", "no-writes"]) + &function("writes", &["allow-stale"]);
            let fields = bulk("library_name") + &bulk("own") + &bulk("engine") + &bulk("LUA") + &bulk("functions");
            let reply = format!("*1\r\n{map}\r\n{fields}*2\r\n{functions}");
            let names = readonly_functions(reply.as_bytes()).expect("it is a list");
            assert_eq!(names.into_iter().collect::<Vec<_>>(), [b"reads".to_vec()]);
        }
        for odd in ["-ERR no\r\n", "*1\r\n+x\r\n", "*0\r\n", "$-1\r\n", "*1\r\n*1\r\n$9\r\nfunctions\r\n"] {
            assert!(readonly_functions(odd.as_bytes()).is_none_or(|names| names.is_empty()), "{odd}");
        }
    }
}
