//! Placement rules and hash tags as words of the settings. The rules themselves, and their names, are `route`'s.

use std::borrow::Cow;
use std::sync::LazyLock;

use respool_route::{KeyHash, Rule, Scheme, TagRule};

use super::choices::Choice;

static RULES: LazyLock<Vec<(Rule, Choice)>> = LazyLock::new(|| {
    let plain = Rule::ALL.map(|rule| (rule, Choice { name: Cow::Borrowed(rule.name()), doc: rule_doc(rule) }));
    let ketama = KeyHash::ALL.map(|hash| {
        let name = format!("{}:{hash}", Rule::Ketama(hash).name());
        (Rule::Ketama(hash), Choice { name: Cow::Owned(name), doc: hash_doc(hash) })
    });
    plain.into_iter().chain(ketama).collect()
});

static RULE_CHOICES: LazyLock<Vec<Choice>> = LazyLock::new(|| RULES.iter().map(|(_, choice)| choice.clone()).collect());

static TAG_CHOICES: LazyLock<Vec<Choice>> = LazyLock::new(|| {
    let of_rule =
        Choice { name: Cow::Borrowed("auto"), doc: "what the program does that the placement rule comes from" };
    let tags = TagRule::ALL.map(|tag| Choice { name: Cow::Borrowed(tag.name()), doc: tag_doc(tag) });
    std::iter::once(of_rule).chain(tags).collect()
});

/// The words for placement rules.
pub fn rules() -> &'static [Choice] {
    &RULE_CHOICES
}

/// The words for hash tags.
pub fn tags() -> &'static [Choice] {
    &TAG_CHOICES
}

/// What the words at these positions of [`rules`] and [`tags`] mean together.
#[must_use]
pub fn scheme(rule: usize, tag: usize) -> Scheme {
    let scheme = Scheme::from(RULES[rule].0);
    match tag.checked_sub(1) {
        None => scheme,
        Some(tag) => Scheme { tag: TagRule::ALL[tag], ..scheme },
    }
}

fn rule_doc(rule: Rule) -> &'static str {
    match rule {
        Rule::Rmux => "the table of rmux since 2014; at most 101 nodes",
        Rule::Rmux2013 => "the first rmux: its hash reduced modulo the number of nodes at every step",
        Rule::Crc32 => "CRC-32 modulo the number of nodes, as redis-sharding",
        Rule::Slots => "the 16384 slots of Redis Cluster in equal ranges over the nodes",
        Rule::Ketama(_) => "the ring of twemproxy with its default hash; knows weights",
        Rule::Rendezvous => "highest random weight: the fewest keys move when nodes change; knows weights",
        Rule::Jump => "jump hash: even shares; nodes come and go at the end of the list only",
    }
}

fn hash_doc(hash: KeyHash) -> &'static str {
    match hash {
        KeyHash::Md5 => "the ring of libketama and libmemcached",
        _ => "the same ring with this hash of twemproxy",
    }
}

fn tag_doc(tag: TagRule) -> &'static str {
    match tag {
        TagRule::None => "the whole key",
        TagRule::Cluster => "between the first { and the first } behind it, unless that is empty, as Redis Cluster",
        TagRule::LastBrace => {
            "of a key that ends with }: what follows its last {, as redis-sharding in SML and Haskell"
        }
        TagRule::FirstBrace => "of a key that ends with }: what follows its first {, as redis-sharding in Perl",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_for_a_rule_is_a_scheme_of_that_name() {
        for (at, choice) in rules().iter().enumerate() {
            assert_eq!(choice.name.parse(), Ok(scheme(at, 0)), "{}", choice.name);
        }
    }

    #[test]
    fn a_tag_overrules_that_of_the_rule() {
        let at = |choices: &[Choice], name: &str| choices.iter().position(|choice| choice.name == name).unwrap();
        let crc32 = at(rules(), "crc32");
        assert_eq!(scheme(crc32, at(tags(), "auto")).tag, TagRule::LastBrace);
        for tag in TagRule::ALL {
            assert_eq!(scheme(crc32, at(tags(), tag.name())), Scheme { rule: Rule::Crc32, tag });
        }
    }
}
