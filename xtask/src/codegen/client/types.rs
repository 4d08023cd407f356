//! Names and types: of commands, of replies, and of the words that an argument may be.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use respool_command::{Argument, ArgumentKind, Arguments, ReplyForm, ReplyType, all};

/// The name of a function or an argument.
pub(super) fn snake(name: &str) -> String {
    let name: String =
        name.chars().map(|sign| if sign.is_alphanumeric() { sign.to_ascii_lowercase() } else { '_' }).collect();
    const KEYWORDS: &[&str] = &[
        "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
        "else", "enum", "extern", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match",
        "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait",
        "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
    ];
    if KEYWORDS.contains(&&*name) { format!("{name}_") } else { name }
}

/// The name of a type.
pub(super) fn camel(name: &str) -> String {
    let words = name.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_ascii_uppercase() + &word[1..].to_ascii_lowercase()).collect()
}

/// The type that a reply is made into unless the caller says otherwise.
pub(super) fn rust_type(reply: ReplyType) -> String {
    let one = match reply.form {
        ReplyForm::Ok if reply.is_nullable => return "bool".into(),
        ReplyForm::Ok => "()".into(),
        ReplyForm::Simple | ReplyForm::Text => "String".into(),
        ReplyForm::Integer => "i64".into(),
        ReplyForm::Flag => "bool".into(),
        ReplyForm::Double | ReplyForm::Float => "f64".into(),
        ReplyForm::Digits => "u64".into(),
        ReplyForm::Bulk => "Bytes".into(),
        ReplyForm::Any | ReplyForm::Push => return "Reply".into(),
        ReplyForm::Array(of) | ReplyForm::Set(of) => format!("Vec<{}>", rust_type(of.only())),
        ReplyForm::Map(of) | ReplyForm::Entries(of) => format!("HashMap<Bytes, {}>", rust_type(of.only())),
        ReplyForm::Flat(of) | ReplyForm::Pairs(of) => format!("Pairs<Bytes, {}>", rust_type(of.only())),
        ReplyForm::Tuple(of) => {
            let parts: Vec<_> = of.map(rust_type).collect();
            format!("({})", parts.join(", "))
        }
    };
    if reply.is_nullable { format!("Option<{one}>") } else { one }
}

/// Sets of words of which an argument is one, and the name of the type that each becomes.
pub(super) struct Words {
    sets: BTreeMap<Vec<(String, String)>, String>,
}

/// The words that an argument may be, each with its name, if it may be nothing else.
pub(super) fn words_of(argument: &Argument) -> Option<Vec<(String, String)>> {
    let ArgumentKind::OneOf(parts) = argument.kind else { return None };
    let words = parts.into_iter().map(|part| {
        let is_word = matches!(part.kind, ArgumentKind::Token) && !part.is_optional;
        is_word.then(|| (part.told_name(), part.token.unwrap_or_default().to_owned()))
    });
    words.collect()
}

impl Words {
    /// Those of all rows. A set takes the name of its argument, if no other set has that name and it has no other.
    pub(super) fn of_all() -> Self {
        let mut names: BTreeMap<Vec<(String, String)>, BTreeSet<String>> = BTreeMap::new();
        for row in all() {
            collect(row.usage().arguments(), &mut names);
        }
        let sets = names.iter().map(|(words, own)| {
            let only = own.iter().next().filter(|_| own.len() == 1);
            let is_alone = |name: &&String| names.values().filter(|others| others.contains(*name)).count() == 1;
            let joined = || words.iter().map(|(name, _)| camel(name)).collect();
            (words.clone(), only.filter(is_alone).map_or_else(joined, |name| camel(name)))
        });
        Self { sets: sets.collect() }
    }

    /// The type of an argument that is one of these.
    pub(super) fn name(&self, words: &[(String, String)]) -> &str {
        &self.sets[words]
    }

    /// The file that has the types.
    pub(super) fn file(&self) -> String {
        let mut out = format!("//! Words that arguments are one of.\n\n{}\nuse crate::commands::words;\n", super::HEAD);
        for (words, name) in &self.sets {
            let shown: Vec<_> = words.iter().map(|(_, token)| format!("`{token}`")).collect();
            let _ = writeln!(out, "\nwords! {{\n    /// {}.\n    {name} {{", shown.join(" or "));
            for (own, token) in words {
                let _ = writeln!(out, "        /// `{token}`.\n        {} = b\"{token}\",", camel(own));
            }
            out.push_str("    }\n}\n");
        }
        out
    }
}

fn collect(arguments: Arguments, names: &mut BTreeMap<Vec<(String, String)>, BTreeSet<String>>) {
    for argument in arguments {
        if let Some(words) = words_of(&argument) {
            // Names as they are made of several words say nothing that the words themselves do not.
            let name = argument.name.to_owned();
            names.entry(words).or_default().insert(name);
            continue;
        }
        if let ArgumentKind::OneOf(parts) | ArgumentKind::Block(parts) = argument.kind {
            collect(parts, names);
        }
    }
}
