//! What clients are shown of the settings and modules of servers, in the replies to `CONFIG GET` and `MODULE LIST`.

use respool_wire::elements;

use crate::{is_open_setting, is_secret_setting};

/// What stands in the place of a value that is not shown. It is no hash and no password.
const HIDDEN: &[u8] = b"(hidden)";
/// The reply in the place of one whose form is not known, which may hold secrets anywhere.
const NOT_SHOWN: &[u8] = b"-ERR what the node has answered is not shown: its form is not known\r\n";

/// What may be shown.
#[derive(Clone, Copy, Debug)]
pub struct VisibleSettings {
    /// Whether clients need a password of the proxy; `None`: it is a node's own that is asked for.
    pub has_password: Option<bool>,
    /// The client may steer nodes.
    pub is_admin: bool,
    /// Modules are shown, no settings.
    pub are_modules: bool,
}

impl VisibleSettings {
    /// A reply without secrets. What is no list as it should be is not shown at all.
    pub fn redact(self, reply: &[u8]) -> Vec<u8> {
        let is_nothing = matches!(reply.first(), Some(b'-' | b'_')) || reply == b"*-1\r\n" || reply == b"$-1\r\n";
        if is_nothing {
            return reply.to_vec();
        }
        let mut out = Vec::new();
        let shown = match self.are_modules {
            true => show_modules(reply, self, &mut out),
            false => show_pairs(reply, self, &mut out),
        };
        shown.map_or_else(|| NOT_SHOWN.to_vec(), |()| out)
    }
}

/// The content of a bulk string.
fn content(bulk: &[u8]) -> Option<&[u8]> {
    let head = bulk.strip_prefix(b"$")?.iter().position(|byte| *byte == b'\n')? + 2;
    bulk.get(head..)?.strip_suffix(b"\r\n")
}

/// The line with which an aggregate begins. `None`: an attribute stands before it, which no server says here; what belongs to
/// it and what to the aggregate cannot be told by the first line.
fn head(reply: &[u8]) -> Option<&[u8]> {
    let end = reply.iter().position(|byte| *byte == b'\n')? + 1;
    reply.get(..end).filter(|line| !line.starts_with(b"|"))
}

fn show_modules(reply: &[u8], terms: VisibleSettings, out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(head(reply)?);
    for module in elements(reply)? {
        out.extend_from_slice(head(module)?);
        let mut fields = elements(module)?;
        while let Some(name) = fields.next() {
            let value = fields.next()?;
            let is_open =
                terms.is_admin || content(name).is_some_and(|name| matches!(name, b"name" | b"ver" | b"path"));
            out.extend_from_slice(name);
            out.extend_from_slice(if is_open { value } else { b"*0\r\n" });
        }
    }
    Some(())
}

fn show_pairs(reply: &[u8], terms: VisibleSettings, out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(head(reply)?);
    let mut fields = elements(reply)?;
    while let Some(name) = fields.next() {
        let value = fields.next()?;
        let setting = content(name).unwrap_or_default();
        out.extend_from_slice(name);
        let own = terms.has_password.filter(|_| setting.eq_ignore_ascii_case(b"requirepass"));
        let is_shown =
            is_open_setting(setting) || terms.is_admin && content(name).is_some() && !is_secret_setting(setting);
        // A client that may not steer nodes is not told either whether the rest is set.
        let is_set = own.unwrap_or_else(|| !terms.is_admin || content(value).is_none_or(|value| !value.is_empty()));
        if is_shown {
            out.extend_from_slice(value);
        } else {
            respool_wire::request_bulk(out, if is_set { HIDDEN } else { b"" });
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::VisibleSettings;
    use respool_wire::{ReplyLimits, ReplyScanner, Scan};

    fn shown(reply: &str, has_password: bool, is_admin: bool, are_modules: bool) -> String {
        let terms = VisibleSettings { has_password: Some(has_password), is_admin, are_modules };
        String::from_utf8(terms.redact(reply.as_bytes())).expect("it is text")
    }

    fn settings(head: &str, values: [&str; 4]) -> String {
        let names = ["maxclients", "masterauth", "later-setting", "requirepass"];
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        let pairs: String = names.iter().zip(values).map(|(name, value)| bulk(name) + &bulk(value)).collect();
        format!("{head}\r\n{pairs}")
    }

    #[test]
    fn secrets_are_hidden_in_both_dialects_and_nothing_else_is() {
        for head in ["*8", "%4"] {
            let reply = settings(head, ["10", "canary", "later", "canary"]);
            assert_eq!(shown(&reply, false, true, false), settings(head, ["10", "(hidden)", "later", ""]));
            assert_eq!(shown(&reply, true, true, false), settings(head, ["10", "(hidden)", "later", "(hidden)"]));
        }
        assert_eq!(
            shown("*2\r\n$10\r\nmasterauth\r\n$0\r\n\r\n", true, true, false),
            "*2\r\n$10\r\nmasterauth\r\n$0\r\n\r\n"
        );
        for whole in ["*0\r\n", "-ERR no\r\n", "*-1\r\n", "_\r\n"] {
            assert_eq!(shown(whole, true, false, false), whole);
        }
    }

    #[test]
    fn a_client_that_steers_nothing_is_shown_what_is_harmless() {
        for head in ["*8", "%4"] {
            let reply = settings(head, ["10", "", "later", "canary"]);
            assert_eq!(shown(&reply, true, false, false), settings(head, ["10", "(hidden)", "(hidden)", "(hidden)"]));
        }
        // A name, or a whole reply, that is not as it should be shows nothing.
        let odd = shown("*2\r\n+primaryauth\r\n$6\r\ncanary\r\n", true, false, false);
        assert_eq!(odd, "*2\r\n+primaryauth\r\n$8\r\n(hidden)\r\n");
        for odd in ["$6\r\ncanary\r\n", "+canary\r\n", "*1\r\n$6\r\ncanary\r\n", "=10\r\ntxt:canary\r\n"] {
            let reply = shown(odd, true, false, false);
            assert!(reply.starts_with("-ERR ") && !reply.contains("canary"), "{odd}: {reply}");
        }
    }

    #[test]
    fn what_is_shown_is_one_reply_whatever_the_node_says() {
        let attribute = "|1\r\n$3\r\nttl\r\n:3\r\n";
        let module = "*2\r\n$4\r\nname\r\n$2\r\nft\r\n";
        let settings = format!("{attribute}{}", settings("%4", ["10", "a", "b", "c"]));
        let modules = [format!("{attribute}*1\r\n{module}"), format!("*1\r\n{attribute}{module}")];
        for (reply, are_modules) in [(&settings, false), (&modules[0], true), (&modules[1], true)] {
            for is_admin in [false, true] {
                let reply = shown(reply, true, is_admin, are_modules);
                let scanned = ReplyScanner::new().scan(reply.as_bytes(), &ReplyLimits::default());
                let is_one = matches!(scanned, Ok(Scan::Complete { consumed, .. }) if consumed == reply.len());
                assert!(is_one, "{reply:?}");
            }
        }
    }

    #[test]
    fn what_modules_were_loaded_with_is_not_shown() {
        let module = "$4\r\nname\r\n$2\r\nft\r\n$3\r\nver\r\n:1\r\n$4\r\nargs\r\n";
        for (outer, inner) in [("*1", "*6"), ("*1", "%3")] {
            let reply = format!("{outer}\r\n{inner}\r\n{module}*2\r\n$8\r\nPASSWORD\r\n$6\r\ncanary\r\n");
            assert_eq!(shown(&reply, true, false, true), format!("{outer}\r\n{inner}\r\n{module}*0\r\n"));
            assert_eq!(shown(&reply, true, true, true), reply);
        }
        assert_eq!(shown("*0\r\n", true, false, true), "*0\r\n");
        assert!(shown("*1\r\n$6\r\ncanary\r\n", true, false, true).starts_with("-ERR "));
    }
}
