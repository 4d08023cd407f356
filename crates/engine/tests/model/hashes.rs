//! Hashes of the naive model: a map of fields, each with a value and perhaps a deadline.

use std::collections::BTreeMap;

use respool_wire::{Encoder, Protocol};

use super::store::Said;

/// A value and its deadline.
type Field = (String, Option<u64>);

/// Fields by their names.
#[derive(Clone, Default)]
pub(crate) struct Hash(pub(crate) BTreeMap<String, Field>);

impl Hash {
    /// Removes the fields whose deadlines have passed.
    pub(crate) fn expire(&mut self, now: u64) {
        self.0.retain(|_, (_, deadline)| deadline.is_none_or(|deadline| now <= deadline));
    }

    fn set(&mut self, field: &str, value: &str, deadline: Option<u64>) -> bool {
        self.0.insert(field.to_owned(), (value.to_owned(), deadline)).is_none()
    }

    /// The reply to the request `w`.
    pub(crate) fn execute(&mut self, w: &[&str], now: u64) -> Said {
        let number = |index: usize| w[index].parse::<i64>().expect("the script writes numbers");
        let after_fields = w.iter().position(|word| *word == "FIELDS").map_or(&[][..], |at| &w[at + 2..]);
        match w[0] {
            "HSET" => Said::Integer(w[2..].chunks(2).filter(|pair| self.set(pair[0], pair[1], None)).count() as i64),
            "HSETNX" => {
                let is_new = !self.0.contains_key(w[2]);
                Said::Integer((is_new && self.set(w[2], w[3], None)).into())
            }
            "HINCRBY" => {
                let (old, deadline) = self.0.get(w[2]).cloned().unwrap_or(("0".to_owned(), None));
                let Ok(old) = old.parse::<i64>() else { return Said::Error("ERR hash value is not an integer") };
                self.set(w[2], &(old + number(3)).to_string(), deadline);
                Said::Integer(old + number(3))
            }
            "HGET" => self.0.get(w[2]).map_or(Said::Null, |(value, _)| Said::Bulk(value.clone().into())),
            "HLEN" => Said::Integer(self.0.len() as i64),
            "HDEL" => Said::Integer(w[2..].iter().filter(|field| self.0.remove(**field).is_some()).count() as i64),
            "HGETALL" => {
                Said::Bag(self.0.iter().flat_map(|(field, (value, _))| [field.clone(), value.clone()]).collect())
            }
            "HRANDFIELD" => Said::List(Vec::new()),
            "HPEXPIRE" => {
                let (deadline, condition) = (now + number(2) as u64, w[3]);
                integers(after_fields.iter().map(|field| self.set_deadline(field, deadline, condition, now)))
            }
            "HPTTL" => integers(after_fields.iter().map(|field| match self.0.get(*field) {
                None => -2,
                Some((_, None)) => -1,
                Some((_, Some(deadline))) => (deadline - now) as i64,
            })),
            "HPERSIST" => integers(after_fields.iter().map(|field| match self.0.get_mut(*field) {
                None => -2,
                Some((_, deadline)) => deadline.take().map_or(-1, |_| 1),
            })),
            "HGETDEL" => values(after_fields.iter().map(|field| self.0.remove(*field).map(|(value, _)| value))),
            "HGETEX" => values(after_fields.iter().map(|field| {
                let value = self.0.get(*field).map(|(value, _)| value.clone())?;
                match w[2] {
                    "PX" => _ = self.set_deadline(field, now + number(3) as u64, "", now),
                    "PERSIST" => self.0.get_mut(*field).into_iter().for_each(|(_, deadline)| *deadline = None),
                    _ => {}
                }
                Some(value)
            })),
            "HSETEX" => self.set_with(w, after_fields, now),
            other => panic!("the model does not know {other}"),
        }
    }

    fn set_deadline(&mut self, field: &str, new: u64, condition: &str, now: u64) -> i64 {
        let Some((_, old)) = self.0.get_mut(field) else { return -2 };
        let is_allowed = match condition {
            "NX" => old.is_none(),
            "XX" => old.is_some(),
            "GT" => old.is_some_and(|old| new > old),
            "LT" => old.is_none_or(|old| new < old),
            _ => true,
        };
        if !is_allowed {
            return 0;
        }
        *old = Some(new);
        if new <= now {
            self.0.remove(field);
            return 2;
        }
        1
    }

    fn set_with(&mut self, w: &[&str], pairs: &[&str], now: u64) -> Said {
        let has = |word: &str| w[2..].iter().take_while(|other| **other != "FIELDS").any(|other| *other == word);
        let is_known = |pair: &[&str]| self.0.contains_key(pair[0]);
        if has("FNX") && pairs.chunks(2).any(is_known) || has("FXX") && !pairs.chunks(2).all(is_known) {
            return Said::Integer(0);
        }
        let px = w.iter().position(|word| *word == "PX");
        let deadline = px.map(|at| now + w[at + 1].parse::<u64>().expect("the script writes numbers"));
        for pair in pairs.chunks(2) {
            if deadline.is_some_and(|deadline| deadline <= now) {
                self.0.remove(pair[0]);
                continue;
            }
            let kept = if has("KEEPTTL") { self.0.get(pair[0]).and_then(|(_, deadline)| *deadline) } else { None };
            self.set(pair[0], pair[1], deadline.or(kept));
        }
        Said::Integer(1)
    }
}

fn integers(numbers: impl Iterator<Item = i64>) -> Said {
    let numbers: Vec<i64> = numbers.collect();
    let mut reply = Vec::new();
    let mut encoder = Encoder::new(&mut reply, Protocol::Resp2);
    encoder.array(numbers.len());
    numbers.into_iter().for_each(|number| encoder.integer(number));
    Said::Raw(reply)
}

fn values(values: impl Iterator<Item = Option<String>>) -> Said {
    let values: Vec<Option<String>> = values.collect();
    let mut reply = Vec::new();
    let mut encoder = Encoder::new(&mut reply, Protocol::Resp2);
    encoder.array(values.len());
    for value in values {
        match value {
            Some(value) => encoder.bulk(value.as_bytes()),
            None => encoder.null(),
        }
    }
    Said::Raw(reply)
}
