//! The last replies of nodes to INFO, for when a node does not answer in time.

use crate::limits::{INFO_KEPT_BYTES_MAX, INFO_KEPT_MAX};
use crate::workers::budget::ProcessBudget;
use respool_connection::Endpoint;
use respool_wire::Value;
use std::collections::VecDeque;
use std::sync::Arc;

/// The last replies of nodes to INFO, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct InfoCache {
    pub(crate) said: VecDeque<Said>,
    /// Accounts for their bytes.
    pub(crate) ledger: Arc<ProcessBudget>,
}

/// The key of a remembered reply: node and sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InfoKey {
    pub(crate) node: String,
    pub(crate) endpoint: Arc<Endpoint>,
    /// The sections as requested, in lower case.
    pub(crate) sections: Arc<[u8]>,
}

/// The text of a reply, and when the request was sent.
pub(crate) type CachedReply = (Arc<[u8]>, u64);

#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) asked: InfoKey,
    pub(crate) text: Arc<[u8]>,
    pub(crate) at_us: u64,
}

impl Said {
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.asked.node.len() + self.asked.sections.len() + self.text.len()
    }
}

impl InfoCache {
    /// Remembers nothing yet.
    pub(crate) fn new(ledger: Arc<ProcessBudget>) -> Self {
        Self { said: VecDeque::new(), ledger }
    }

    /// Remembers the reply to a request that was sent at `at_us`.
    pub(crate) fn note(&mut self, asked: &InfoKey, reply: &[u8], at_us: u64) {
        let (Ok(Value::Bulk(text)) | Ok(Value::Verbatim { text, .. })) = Value::parse(reply) else { return };
        // The reply to unknown sections is empty.
        let is_fit = !text.is_empty() && text.len() <= INFO_KEPT_BYTES_MAX;
        if !is_fit || self.said.iter().any(|said| said.asked == *asked && said.at_us > at_us) {
            return;
        }
        let before = self.said.iter().position(|said| said.asked == *asked);
        let place = before.or_else(|| (self.said.len() >= INFO_KEPT_MAX).then_some(0));
        let left = place.and_then(|place| self.said.remove(place)).map_or(0, |said| said.held_bytes());
        let said = Said { asked: asked.clone(), text: Arc::from(&text[..]), at_us };
        self.ledger.account(left, said.held_bytes());
        self.said.push_back(said);
    }

    /// Forgets all replies.
    pub(crate) fn forget(&mut self) {
        self.ledger.account(self.held_bytes(), 0);
        self.said.clear();
    }

    /// What is accounted for them.
    pub(crate) fn held_bytes(&self) -> usize {
        self.said.iter().map(Said::held_bytes).sum()
    }

    /// The last reply to such a request.
    pub(crate) fn find(&self, asked: &InfoKey) -> Option<CachedReply> {
        self.said.iter().find(|said| said.asked == *asked).map(|said| (Arc::clone(&said.text), said.at_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(node: &str) -> InfoKey {
        let endpoint = Arc::new(Endpoint::Unix { path: node.to_owned() });
        InfoKey { node: node.to_owned(), endpoint, sections: Arc::from(&b"all"[..]) }
    }

    #[test]
    fn the_newest_words_are_kept_and_errors_are_not() {
        let mut words = InfoCache::default();
        words.note(&asked("a"), b"$3\r\nold\r\n", 5);
        words.note(&asked("a"), b"=7\r\ntxt:new\r\n", 7);
        words.note(&asked("a"), b"$4\r\nlate\r\n", 6);
        words.note(&asked("a"), b"-ERR no\r\n", 9);
        assert_eq!(words.find(&asked("a")), Some((Arc::from(&b"new"[..]), 7)));
        assert_eq!(words.find(&asked("b")), None);
    }

    #[test]
    fn there_is_an_end_to_what_is_remembered() {
        let mut words = InfoCache::default();
        for number in 0..2 * INFO_KEPT_MAX {
            words.note(&asked(&number.to_string()), b"$1\r\nx\r\n", number as u64);
        }
        let large = format!("${}\r\n{}\r\n", INFO_KEPT_BYTES_MAX + 1, "x".repeat(INFO_KEPT_BYTES_MAX + 1));
        words.note(&asked("large"), large.as_bytes(), 1);
        assert_eq!(words.said.len(), INFO_KEPT_MAX);
        assert!(words.find(&asked("large")).is_none() && words.find(&asked("0")).is_none());
        assert_eq!(words.ledger.held_bytes(), words.held_bytes());
        words.note(&asked("none"), b"$0\r\n\r\n", 1);
        assert!(words.find(&asked("none")).is_none());
        words.forget();
        assert_eq!(words.ledger.held_bytes(), 0);
    }
}
