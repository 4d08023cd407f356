//! What the settings say about placement, and the words for it.
//!
//! A scheme is written `RULE`, or `RULE:HASH` for ketama, or either with `+TAG`: `slots`, `ketama:md5+cluster`,
//! `crc32+first-brace`. What is left out takes the default of the program that the rule comes from.

use std::fmt;
use std::str::FromStr;

use super::KeyHash;
use crate::hash_tag::TagRule;

/// Which algorithm places keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// rmux since 2014.
    Rmux,
    /// The first rmux.
    Rmux2013,
    /// redis-sharding.
    Crc32,
    /// Redis Cluster's slots over a fixed list.
    Slots,
    /// The ring of twemproxy and libketama.
    Ketama(KeyHash),
    /// Rendezvous hashing.
    Rendezvous,
    /// Jump consistent hashing.
    Jump,
}

impl Rule {
    /// All rules, ketama with its default hash.
    pub const ALL: [Self; 7] = [
        Self::Rmux,
        Self::Rmux2013,
        Self::Crc32,
        Self::Slots,
        Self::Ketama(KeyHash::Fnv1aWith64),
        Self::Rendezvous,
        Self::Jump,
    ];

    /// The name in settings, without options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rmux => "rmux",
            Self::Rmux2013 => "rmux-2013",
            Self::Crc32 => "crc32",
            Self::Slots => "slots",
            Self::Ketama(_) => "ketama",
            Self::Rendezvous => "rendezvous",
            Self::Jump => "jump",
        }
    }

    /// Whether nodes may have different weights.
    pub const fn knows_weights(self) -> bool {
        matches!(self, Self::Ketama(_) | Self::Rendezvous)
    }

    /// Whether the names of the nodes decide where keys are, so that renaming a node moves its keys.
    pub const fn hashes_names(self) -> bool {
        self.knows_weights()
    }

    /// The tag rule that the program behind this rule applies when it is told nothing.
    pub const fn default_tag(self) -> TagRule {
        match self {
            Self::Rmux | Self::Rmux2013 | Self::Ketama(_) => TagRule::None,
            Self::Crc32 => TagRule::LastBrace,
            Self::Slots | Self::Rendezvous | Self::Jump => TagRule::Cluster,
        }
    }
}

/// A rule and the part of a key that it hashes. The default is `slots`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scheme {
    /// The algorithm.
    pub rule: Rule,
    /// Which part of a key it is given.
    pub tag: TagRule,
}

impl Default for Scheme {
    fn default() -> Self {
        Rule::Slots.into()
    }
}

impl From<Rule> for Scheme {
    fn from(rule: Rule) -> Self {
        Self { rule, tag: rule.default_tag() }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule.name())?;
        if let Rule::Ketama(hash) = self.rule {
            write!(f, ":{hash}")?;
        }
        if self.tag != self.rule.default_tag() {
            write!(f, "+{}", self.tag)?;
        }
        Ok(())
    }
}

/// The text is not a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownScheme {
    /// No rule has this name.
    Rule,
    /// The part behind `:` is no key hash, or the rule has no choice of hashes.
    KeyHash,
    /// The part behind `+` is no tag rule.
    Tag,
}

impl fmt::Display for UnknownScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, names): (_, Vec<_>) = match self {
            Self::Rule => ("the placements are", Rule::ALL.map(Rule::name).into()),
            Self::KeyHash => ("only ketama takes a hash, and the hashes are", KeyHash::ALL.map(KeyHash::name).into()),
            Self::Tag => ("the tag rules are", TagRule::ALL.map(TagRule::name).into()),
        };
        write!(f, "{what} {}", names.join(", "))
    }
}

impl std::error::Error for UnknownScheme {}

impl FromStr for Scheme {
    type Err = UnknownScheme;

    fn from_str(text: &str) -> Result<Self, UnknownScheme> {
        let (text, tag) = match text.split_once('+') {
            Some((text, tag)) => (text, Some(tag)),
            None => (text, None),
        };
        let (name, hash) = match text.split_once(':') {
            Some((name, hash)) => (name, Some(hash)),
            None => (text, None),
        };
        let rule = Rule::ALL.into_iter().find(|rule| rule.name() == name).ok_or(UnknownScheme::Rule)?;
        let rule = match (rule, hash) {
            (rule, None) => rule,
            (Rule::Ketama(_), Some(hash)) => Rule::Ketama(hash.parse().map_err(|_| UnknownScheme::KeyHash)?),
            (_, Some(_)) => return Err(UnknownScheme::KeyHash),
        };
        let tag = match tag {
            Some(tag) => tag.parse().map_err(|_| UnknownScheme::Tag)?,
            None => rule.default_tag(),
        };
        Ok(Self { rule, tag })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_is_read_as_it_is_written() {
        let rules = Rule::ALL.into_iter().chain(KeyHash::ALL.map(Rule::Ketama));
        for (rule, tag) in rules.flat_map(|rule| TagRule::ALL.map(|tag| (rule, tag))) {
            let scheme = Scheme { rule, tag };
            assert_eq!(scheme.to_string().parse(), Ok(scheme), "{scheme}");
        }
    }

    #[test]
    fn short_forms_take_defaults_and_mistakes_are_named() {
        let scheme = |rule, tag| Ok(Scheme { rule, tag });
        assert_eq!("crc32".parse::<Scheme>(), scheme(Rule::Crc32, TagRule::LastBrace));
        assert_eq!("crc32+first-brace".parse::<Scheme>(), scheme(Rule::Crc32, TagRule::FirstBrace));
        assert_eq!("ketama".parse::<Scheme>(), scheme(Rule::Ketama(KeyHash::Fnv1aWith64), TagRule::None));
        assert_eq!("ketama:md5+cluster".parse::<Scheme>(), scheme(Rule::Ketama(KeyHash::Md5), TagRule::Cluster));
        assert_eq!("".parse::<Scheme>(), Err(UnknownScheme::Rule));
        assert_eq!("slots:md5".parse::<Scheme>(), Err(UnknownScheme::KeyHash));
        assert_eq!("jump+".parse::<Scheme>(), Err(UnknownScheme::Tag));
        assert_eq!(UnknownScheme::Tag.to_string(), "the tag rules are none, cluster, last-brace, first-brace");
    }
}
