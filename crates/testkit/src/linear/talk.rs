//! Actions as requests, and replies as answers.

use super::{Action, Answer};

/// The words of a request. `BLPOP` waits for `seconds`.
pub fn words(action: &Action, name: &str, seconds: &str) -> Vec<String> {
    let words: Vec<String> = match action {
        Action::Get { .. } => vec!["GET".into(), name.into()],
        Action::Set { value, .. } | Action::CompareAndSet { value, .. } => {
            vec!["SET".into(), name.into(), value.to_string()]
        }
        Action::Swap { value, .. } => vec!["SET".into(), name.into(), value.to_string(), "GET".into()],
        Action::Increment { .. } => vec!["INCR".into(), name.into()],
        Action::Push { value, .. } => vec!["RPUSH".into(), name.into(), value.to_string()],
        Action::Pop { .. } | Action::Take { .. } => vec!["BLPOP".into(), name.into(), seconds.into()],
        Action::PutBack { .. } => Vec::new(),
    };
    words
}

/// What the first of these replies says of an action on a key of this name, and what is behind it. `None`: it cannot be the reply.
pub fn answer<'r>(action: &Action, name: &str, replies: &'r str) -> Option<(Answer, &'r str)> {
    match action {
        Action::Set { .. } => Some((Answer::Done, replies.strip_prefix("+OK\r\n")?)),
        Action::CompareAndSet { .. } => Some((Answer::Swapped(true), replies.strip_prefix("+OK\r\n")?)),
        Action::Get { .. } | Action::Swap { .. } => value(replies).map(|(value, rest)| (Answer::Value(value), rest)),
        Action::Increment { .. } | Action::Push { .. } => {
            let (count, rest) = replies.strip_prefix(':')?.split_once("\r\n")?;
            Some((Answer::Count(count.parse().ok()?), rest))
        }
        Action::Take { .. } | Action::PutBack { .. } => None,
        Action::Pop { .. } => {
            if let Some(rest) = replies.strip_prefix("*-1\r\n") {
                return Some((Answer::Value(None), rest));
            }
            let rest = replies.strip_prefix(&format!("*2\r\n${}\r\n{name}\r\n", name.len()))?;
            value(rest).filter(|(value, _)| value.is_some()).map(|(value, rest)| (Answer::Value(value), rest))
        }
    }
}

/// The same for all actions of a transaction whose result this is.
pub fn answers(actions: &[Action], name: impl Fn(u32) -> String, reply: &str) -> Option<Vec<Answer>> {
    let mut rest = reply.strip_prefix(&format!("*{}\r\n", actions.len()))?;
    let mut answers = Vec::new();
    for action in actions {
        let (answer, behind) = answer(action, &name(action.key()), rest)?;
        answers.push(answer);
        rest = behind;
    }
    rest.is_empty().then_some(answers)
}

fn value(replies: &str) -> Option<(Option<u64>, &str)> {
    if let Some(rest) = replies.strip_prefix("$-1\r\n") {
        return Some((None, rest));
    }
    let (_, rest) = replies.strip_prefix('$')?.split_once("\r\n")?;
    let (value, rest) = rest.split_once("\r\n")?;
    Some((Some(value.parse().ok()?), rest))
}
