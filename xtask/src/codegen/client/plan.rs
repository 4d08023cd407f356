//! What a row becomes: the parameters that it must have, and a method for each of its options.

use std::fmt::Write as _;

use respool_command::{Argument, ArgumentKind, Arguments, Repeat, ReplyForm, Row};

use super::types::{Words, snake, words_of};

/// A function and the methods of what it makes.
pub(super) struct Plan {
    pub(super) params: Vec<Param>,
    /// Statements that add arguments; `COMMAND` stands for the command.
    pub(super) steps: Vec<String>,
    /// In front of which step options belong. `None`: behind all.
    pub(super) gap: Option<usize>,
    pub(super) methods: Vec<Method>,
}

/// A parameter.
pub(super) struct Param {
    pub(super) name: String,
    kind: ParamKind,
}

enum ParamKind {
    Arg,
    Args,
    Integer,
    Double,
    Words(Vec<(String, String)>),
    OptionalWords(Vec<(String, String)>),
    OptionalInteger,
    Flag,
}

impl Param {
    /// Its type.
    pub(super) fn rust(&self, words: &Words) -> String {
        match &self.kind {
            ParamKind::Arg => "impl ToArg".into(),
            ParamKind::Args => "impl ToArgs".into(),
            ParamKind::Integer => "impl ToInteger".into(),
            ParamKind::Double => "impl ToDouble".into(),
            ParamKind::Words(of) => words.name(of).to_owned(),
            ParamKind::OptionalWords(of) => format!("Option<{}>", words.name(of)),
            ParamKind::OptionalInteger => "Option<i64>".into(),
            ParamKind::Flag => "bool".into(),
        }
    }
}

/// An option.
pub(super) struct Method {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) params: Vec<Param>,
    pub(super) steps: Vec<String>,
    /// Tokens and names of the arguments that are given by it.
    given: Vec<&'static str>,
}

impl Method {
    pub(super) fn is_named_by(&self, names: Vec<&'static str>) -> bool {
        names.iter().any(|name| self.given.contains(name))
    }
}

impl Plan {
    /// `None`: the row does not say what its arguments are.
    pub(super) fn of(row: &Row) -> Option<Self> {
        let arguments: Vec<Argument> = row.usage().arguments().collect();
        let names = row.name.split(' ').count();
        if arguments.is_empty() && usize::from(row.arity.unsigned_abs()) > names {
            return None;
        }
        let mut plan = Self { params: Vec::new(), steps: Vec::new(), gap: None, methods: Vec::new() };
        let mut at = 0;
        while let Some(argument) = arguments.get(at) {
            at += 1;
            // A count of what follows is not asked for: it is counted.
            if let Some(next) = arguments.get(at).filter(|next| is_count_of(argument, next)) {
                let param = many(next);
                plan.steps.push(counted(&param.name, width(next)));
                plan.params.push(param);
                at += 1;
                continue;
            }
            if argument.is_optional || is_choice(argument) {
                plan.gap.get_or_insert(plan.steps.len());
                methods(argument, &[], "", &mut plan.methods);
                continue;
            }
            required(argument, &mut plan.params, &mut plan.steps, &mut plan.methods);
        }
        if row.usage().returns().is_some_and(|returns| matches!(returns.usual().form, ReplyForm::Double)) {
            // What is added to a double is one, whatever is said of it.
            for param in plan.params.iter_mut().filter(|param| matches!(param.kind, ParamKind::Integer)) {
                param.kind = ParamKind::Double;
            }
        }
        distinguish(&mut plan.params);
        let mut seen: Vec<String> = TAKEN.iter().map(|name| (*name).to_owned()).collect();
        for method in &mut plan.methods {
            distinguish(&mut method.params);
            if seen.contains(&method.name) {
                method.name.push('_');
            }
            seen.push(method.name.clone());
        }
        plan.methods.dedup_by(|second, first| second.name == first.name);
        Some(plan)
    }
}

/// Names that methods of every request have.
const TAKEN: &[&str] = &["cast", "clone", "deadline", "idempotent", "into", "into_future", "on", "wait", "with"];

/// Gives parameters of one name a number each.
fn distinguish(params: &mut [Param]) {
    for at in 0..params.len() {
        let name = params[at].name.clone();
        let same = params[..at].iter().filter(|param| param.name == name).count();
        if same > 0 {
            let _ = write!(params[at].name, "{}", same + 1);
        }
    }
}

fn is_count_of(count: &Argument, of: &Argument) -> bool {
    let is_count = count.name.starts_with("num") && matches!(count.kind, ArgumentKind::Integer) && !count.is_optional;
    is_count && of.repeat == Repeat::Many && of.token.is_none()
}

/// How many words one repetition of an argument is.
fn width(argument: &Argument) -> usize {
    match argument.kind {
        ArgumentKind::Block(parts) => parts.count(),
        _ => 1,
    }
}

fn counted(name: &str, width: usize) -> String {
    format!("CMD.push_counted({width}, |request| {name}.write_args(request));")
}

/// Of several ways that need different arguments one has to be chosen: by a method each.
fn is_choice(argument: &Argument) -> bool {
    let ArgumentKind::OneOf(parts) = argument.kind else { return false };
    words_of(argument).is_none() && !is_text_or_word(parts)
}

/// A text or words that are written as such a text.
fn is_text_or_word(parts: Arguments) -> bool {
    parts.into_iter().all(|part| match part.kind {
        ArgumentKind::OneOf(_) | ArgumentKind::Block(_) => false,
        ArgumentKind::Token => true,
        _ => part.token.is_none(),
    })
}

fn many(argument: &Argument) -> Param {
    let name = match argument.kind {
        ArgumentKind::Block(parts) => match parts.count() {
            1 => plural(argument.name),
            2 => "pairs".to_owned(),
            3 => "triples".to_owned(),
            _ => "groups".to_owned(),
        },
        _ => plural(argument.name),
    };
    Param { name, kind: ParamKind::Args }
}

fn plural(name: &str) -> String {
    let name = snake(name);
    if name.ends_with('s') || name.ends_with('_') { name } else { name + "s" }
}

fn push_token(token: Option<&str>, steps: &mut Vec<String>) {
    if let Some(token) = token {
        steps.push(format!("CMD.push(b\"{token}\");"));
    }
}

/// What must be given.
fn required(argument: &Argument, params: &mut Vec<Param>, steps: &mut Vec<String>, after: &mut Vec<Method>) {
    push_token(argument.token, steps);
    if argument.repeat == Repeat::Many {
        let param = many(argument);
        steps.push(format!("{}.write_args(COMMAND);", param.name));
        params.push(param);
        return;
    }
    let name = snake(argument.name);
    let kind = match argument.kind {
        ArgumentKind::Token => return,
        ArgumentKind::Block(parts) => return block(parts, params, steps, after),
        ArgumentKind::OneOf(_) => words_of(argument).map_or(ParamKind::Arg, ParamKind::Words),
        ArgumentKind::Integer | ArgumentKind::UnixTime => ParamKind::Integer,
        ArgumentKind::Double => ParamKind::Double,
        _ => ParamKind::Arg,
    };
    steps.push(format!("{name}.write_args(COMMAND);"));
    params.push(Param { name, kind });
}

/// The parts of a block. Those at its end that may be left out are options; others are parameters that may be nothing.
fn block(parts: Arguments, params: &mut Vec<Param>, steps: &mut Vec<String>, after: &mut Vec<Method>) {
    let parts: Vec<Argument> = parts.collect();
    let end = parts.iter().rposition(|part| !part.is_optional).map_or(0, |last| last + 1);
    let mut at = 0;
    while at < end {
        let part = &parts[at];
        at += 1;
        if let Some(next) = parts.get(at).filter(|next| is_count_of(part, next)) {
            let param = many(next);
            steps.push(counted(&param.name, width(next)));
            params.push(param);
            at += 1;
            continue;
        }
        if !part.is_optional {
            required(part, params, steps, after);
            continue;
        }
        let name = snake(part.name);
        let (kind, is_token) = match (words_of(part), part.kind) {
            (Some(words), _) => (ParamKind::OptionalWords(words), false),
            (None, ArgumentKind::Token) => (ParamKind::Flag, true),
            (None, _) => (ParamKind::OptionalInteger, false),
        };
        let token = part.token.map(|token| format!("CMD.push(b\"{token}\");")).unwrap_or_default();
        steps.push(match (is_token, token.is_empty()) {
            (true, _) => format!("if {name} {{ {token} }}"),
            (false, true) => format!("{name}.write_args(COMMAND);"),
            (false, false) => format!("if let Some({name}) = {name} {{ {token} {name}.write_args(COMMAND); }}"),
        });
        params.push(Param { name, kind });
    }
    for part in &parts[end..] {
        methods(part, &[], "", after);
    }
}

/// The methods that an option becomes: one for each way in which it can be given. `within` are the names of what it is part
/// of, and `prefix` is the word that stands in front.
fn methods(argument: &Argument, within: &[&'static str], prefix: &str, out: &mut Vec<Method>) {
    let token = argument.token;
    let given: Vec<&'static str> = within.iter().copied().chain([token.unwrap_or(argument.name)]).collect();
    let word = token.filter(|token| token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
    let own_name = match (word, argument.kind) {
        (Some(token), _) if !token.is_empty() => snake(token),
        _ => snake(&argument.told_name()),
    };
    let is_words = words_of(argument).is_some();
    match argument.kind {
        ArgumentKind::OneOf(parts)
            if token.is_none() && argument.repeat == Repeat::Once
                || !is_words && matches!(argument.kind, ArgumentKind::OneOf(_)) =>
        {
            let prefix = token.unwrap_or(prefix);
            parts.for_each(|part| methods(&part, &given, prefix, out));
        }
        ArgumentKind::Block(parts) if argument.repeat != Repeat::Many || token.is_some() => {
            let parts_list: Vec<Argument> = parts.collect();
            let required_parts = parts_list.iter().filter(|part| !part.is_optional).count();
            if parts_list.iter().any(|part| !part.is_optional && is_choice(part)) {
                return parts_list.iter().for_each(|part| methods(part, &given, prefix, out));
            }
            let only =
                parts_list.iter().find(|part| !part.is_optional).filter(|_| required_parts == 1 && token.is_none());
            if let Some(only) = only.filter(|_| parts_list.first().is_some_and(|first| !first.is_optional)) {
                methods(only, &given, prefix, out);
                let rest = parts_list.iter().filter(|part| part.is_optional);
                return rest.for_each(|part| methods(part, &given, "", out));
            }
            let is_said = !parts_list.iter().all(|part| matches!(part.kind, ArgumentKind::Token));
            let first = parts_list.first().filter(|part| is_said && token.is_none() && !part.is_optional);
            let name = first.and_then(|part| part.token).map_or(own_name, snake);
            let mut made = Method::new(name, argument, prefix, given.clone());
            let mut after = Vec::new();
            block(parts, &mut made.params, &mut made.steps, &mut after);
            after.iter_mut().for_each(|method| method.given.extend(&given));
            out.push(made);
            out.extend(after);
        }
        _ => {
            let mut made = Method::new(own_name, argument, prefix, given);
            let mut bare = *argument;
            (bare.token, bare.is_optional) = (None, false);
            if bare.repeat == Repeat::ManyWithToken {
                bare.repeat = Repeat::Once;
            }
            required(&bare, &mut made.params, &mut made.steps, &mut Vec::new());
            out.push(made);
        }
    }
}

impl Method {
    fn new(own_name: String, argument: &Argument, prefix: &str, given: Vec<&'static str>) -> Self {
        let mut steps = Vec::new();
        let mut name = own_name;
        if !prefix.is_empty() {
            push_token(Some(prefix), &mut steps);
            name = format!("{}_{name}", snake(prefix));
        }
        push_token(argument.token, &mut steps);
        let mut bare = *argument;
        (bare.is_optional, bare.since, bare.deprecated_since) = (false, None, None);
        let mut about = format!("`{}`", text(&bare));
        if let Some(since) = argument.since {
            let _ = write!(about, ", since {since}");
        }
        Self { name, about: about + ".", params: Vec::new(), steps, given }
    }
}

/// The arguments of a row as people write them.
pub(super) fn shown(row: &Row) -> String {
    row.usage().arguments().map(|argument| format!(" {}", text(&argument))).collect()
}

fn text(argument: &Argument) -> String {
    let parts = |parts: Arguments, sign: &str| parts.map(|part| text(&part)).collect::<Vec<_>>().join(sign);
    let value = match argument.kind {
        ArgumentKind::Token => String::new(),
        ArgumentKind::OneOf(of) if argument.token.is_none() && !argument.is_optional => {
            format!("<{}>", parts(of, " | "))
        }
        ArgumentKind::OneOf(of) => parts(of, " | "),
        ArgumentKind::Block(of) => parts(of, " "),
        _ => argument.name.to_owned(),
    };
    let token = argument.token.map(|token| if token.is_empty() { "\"\"" } else { token });
    let one =
        [token.unwrap_or_default(), &value].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let all = match argument.repeat {
        Repeat::Once => one,
        Repeat::Many => format!("{one} [{value} ...]"),
        Repeat::ManyWithToken => format!("{one} [{one} ...]"),
    };
    if argument.is_optional { format!("[{all}]") } else { all }
}
