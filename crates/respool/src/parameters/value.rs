//! How the values of parameters are read, with redis-server's words about those that are wrong, and how they are shown.

use super::output_limits::{CLASSES, limits_of};
use super::row::{Kind, Parameter};

/// What is wrong with a value.
pub(super) type Refusal = String;

/// Addresses that `bind` takes, as in redis-server.
const ADDRESSES_MAX: usize = 16;
/// Pairs that `save` takes. Redis has no bound.
const SAVE_POINTS_MAX: usize = 64;
/// Percentages that are taken. Redis has no bound.
const PERCENTILES_MAX: usize = 64;
/// Bytes of one value. A line of a file may be as long.
pub(super) const VALUE_BYTES_MAX: usize = 64 * 1024;

/// The value as `CONFIG GET` shows it, made from the words of a directive. `before` is what held so far.
pub(super) fn read(row: &Parameter, words: &[Vec<u8>], before: &str) -> Result<String, Refusal> {
    if words.iter().map(Vec::len).sum::<usize>() > VALUE_BYTES_MAX {
        return Err("argument is too long".to_owned());
    }
    let words: Vec<&str> = words
        .iter()
        .map(|word| std::str::from_utf8(word))
        .collect::<Result<_, _>>()
        .map_err(|_| "argument must be text in UTF-8".to_owned())?;
    let one = || match &words[..] {
        [word] => Ok(*word),
        _ => Err("wrong number of arguments".to_owned()),
    };
    match &row.kind {
        Kind::Switch => switch(one()?),
        Kind::Word(all) => word(one()?, all),
        Kind::Words(all) => several(&words, all),
        Kind::Number { min, max } => number(one()?, *min, *max),
        Kind::Octal => octal(one()?),
        Kind::Memory { min, max } => memory(one()?, *min, *max),
        Kind::MemoryOrPercent => memory_or_percent(one()?),
        Kind::Text => text(one()?),
        Kind::Directory => text(one()?),
        Kind::FileName { may_be_empty } => file_name(row.name, one()?, *may_be_empty),
        Kind::Save => save(&words),
        Kind::OutputLimits => output_limits(&words, before),
        Kind::Events => events(one()?),
        Kind::Bind => bind(&words),
        Kind::Percentiles => percentiles(&words),
        Kind::OomValues => oom_values(&words),
        Kind::ReplicaOf => replica_of(&words),
    }
}

fn switch(word: &str) -> Result<String, Refusal> {
    let known = ["yes", "no"].into_iter().find(|known| word.eq_ignore_ascii_case(known));
    known.map(str::to_owned).ok_or_else(|| "argument must be 'yes' or 'no'".to_owned())
}

fn word(word: &str, all: &[&str]) -> Result<String, Refusal> {
    let known = all.iter().find(|known| word.eq_ignore_ascii_case(known));
    known.map(|known| (*known).to_owned()).ok_or_else(|| one_of(all))
}

fn several(words: &[&str], all: &[&str]) -> Result<String, Refusal> {
    if words.is_empty() {
        return Err(one_of(all));
    }
    let mut said = Vec::new();
    for name in words {
        let known = all.iter().position(|known| name.eq_ignore_ascii_case(known)).ok_or_else(|| one_of(all))?;
        said.push(known);
    }
    // The first word of the set stands for none of the others.
    let is_said = |place: &usize| *place > 0 && said.contains(place);
    let names: Vec<&str> = (0..all.len()).filter(is_said).map(|place| all[place]).collect();
    if names.contains(&"save") && names.contains(&"nosave") {
        return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".to_owned());
    }
    Ok(if names.is_empty() { all.first().copied().unwrap_or_default().to_owned() } else { names.join(" ") })
}

fn one_of(all: &[&str]) -> Refusal {
    format!("argument(s) must be one of the following: {}", all.join(", "))
}

fn number(word: &str, min: i64, max: i64) -> Result<String, Refusal> {
    // As the protocol writes numbers: no sign but a minus, no leading zeros.
    let value: Option<i64> = word.parse().ok().filter(|value: &i64| value.to_string() == word);
    let value = value.ok_or("argument couldn't be parsed into an integer")?;
    match (min..=max).contains(&value) {
        true => Ok(value.to_string()),
        false => Err(format!("argument must be between {min} and {max} inclusive")),
    }
}

fn octal(word: &str) -> Result<String, Refusal> {
    let mode = u32::from_str_radix(word, 8).map_err(|_| "argument couldn't be parsed as an octal number")?;
    match mode <= 0o777 && !word.starts_with('+') {
        true => Ok(format!("{mode:o}")),
        false => Err("argument must be between 0 and 777 inclusive".to_owned()),
    }
}

/// Bytes with one of redis-server's units.
pub(super) fn bytes(word: &str) -> Option<u64> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let unit: u64 = match word[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    // As in Redis, no digits are a zero.
    let count = if digits == 0 { 0 } else { word[..digits].parse::<u64>().ok()? };
    count.checked_mul(unit)
}

fn memory(word: &str, min: u64, max: u64) -> Result<String, Refusal> {
    let value = bytes(word).ok_or("argument must be a memory value")?;
    match (min..=max).contains(&value) {
        true => Ok(value.to_string()),
        false => Err(format!("argument must be between {min} and {max} inclusive")),
    }
}

fn memory_or_percent(word: &str) -> Result<String, Refusal> {
    let Some(share) = word.strip_suffix('%') else {
        let value = bytes(word).ok_or("argument must be a memory or percent value")?;
        return Ok(value.to_string());
    };
    let share: u32 = share.parse().map_err(|_| "argument must be a memory or percent value")?;
    if share > 100 {
        return Err("percentage argument must be less or equal to 100".to_owned());
    }
    Ok(format!("{share}%"))
}

fn text(word: &str) -> Result<String, Refusal> {
    match word.contains('\0') {
        true => Err("argument must not contain a zero byte".to_owned()),
        false => Ok(word.to_owned()),
    }
}

fn file_name(name: &str, word: &str, may_be_empty: bool) -> Result<String, Refusal> {
    let what = if name == "appenddirname" { "dirname" } else { "filename" };
    if word.contains('/') || word.contains('\0') {
        return Err(format!("{name} can't be a path, just a {what}"));
    }
    match word.is_empty() && !may_be_empty {
        true => Err(format!("{name} can't be empty")),
        false => Ok(word.to_owned()),
    }
}

fn save(words: &[&str]) -> Result<String, Refusal> {
    if matches!(words, [""]) {
        return Ok(String::new());
    }
    let wrong = || "Invalid save parameters".to_owned();
    if !words.len().is_multiple_of(2) || words.len() > 2 * SAVE_POINTS_MAX {
        return Err(wrong());
    }
    let mut shown = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let value: i64 = word.parse().map_err(|_| wrong())?;
        if value < i64::from(place % 2 == 0) {
            return Err(wrong());
        }
        shown.push(value.to_string());
    }
    Ok(shown.join(" "))
}

fn output_limits(words: &[&str], before: &str) -> Result<String, Refusal> {
    if !words.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
    }
    let mut limits = limits_of(before);
    limits.resize(CLASSES.len(), [0; 3]);
    for limit in words.chunks_exact(4) {
        let name = if limit[0].eq_ignore_ascii_case("replica") { "slave" } else { limit[0] };
        let class = CLASSES.iter().position(|class| name.eq_ignore_ascii_case(class));
        let class = class.ok_or("Invalid client class specified in buffer limit configuration.")?;
        let values = (bytes(limit[1]), bytes(limit[2]), limit[3].parse::<u32>());
        let (Some(hard), Some(soft), Ok(seconds)) = values else {
            return Err("Error in hard, soft or soft_seconds setting in buffer limit configuration.".to_owned());
        };
        limits[class] = [hard, soft, u64::from(seconds)];
    }
    let show = |(class, [hard, soft, seconds]): (&str, &[u64; 3])| format!("{class} {hard} {soft} {seconds}");
    Ok(CLASSES.into_iter().zip(&limits).map(show).collect::<Vec<_>>().join(" "))
}

/// What `A` stands for.
const EVENTS_OF_A: &str = "g$lshzxetd";

fn events(word: &str) -> Result<String, Refusal> {
    if word.chars().any(|class| !"Ag$lshzxeKEtmdn".contains(class)) {
        return Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned());
    }
    let has = |class: char| word.contains(class) || word.contains('A') && EVENTS_OF_A.contains(class);
    let mut shown = String::new();
    if EVENTS_OF_A.chars().all(has) {
        shown.push('A');
    } else {
        shown.extend(EVENTS_OF_A.chars().chain(['n']).filter(|class| has(*class)));
    }
    shown.extend(['K', 'E', 'm'].into_iter().filter(|class| has(*class)));
    // redis-server forgets to show it behind an `A`, and would lose it with the next rewrite.
    if shown.starts_with('A') && has('n') {
        shown.push('n');
    }
    Ok(shown)
}

fn bind(words: &[&str]) -> Result<String, Refusal> {
    if words.len() > ADDRESSES_MAX {
        return Err("Too many bind addresses specified.".to_owned());
    }
    Ok(if matches!(words, [""]) { String::new() } else { words.join(" ") })
}

fn percentiles(words: &[&str]) -> Result<String, Refusal> {
    if matches!(words, [""]) {
        return Ok(String::new());
    }
    let wrong = || "Invalid latency-tracking-info-percentiles parameters".to_owned();
    if words.len() > PERCENTILES_MAX {
        return Err(wrong());
    }
    let mut shown = Vec::new();
    for word in words {
        let value: f64 = word.parse().map_err(|_| wrong())?;
        if !(0.0..=100.0).contains(&value) {
            return Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".to_owned());
        }
        shown.push(value.to_string());
    }
    Ok(shown.join(" "))
}

fn oom_values(words: &[&str]) -> Result<String, Refusal> {
    if words.len() != 3 {
        return Err("wrong number of arguments".to_owned());
    }
    let wrong = || "Invalid oom-score-adj-values, elements must be between -2000 and 2000.".to_owned();
    let value = |word: &&str| {
        let value: Option<i64> = word.parse().ok().filter(|value| (-2000..=2000).contains(value));
        value.map(|value| value.to_string()).ok_or_else(wrong)
    };
    Ok(words.iter().map(value).collect::<Result<Vec<_>, _>>()?.join(" "))
}

fn replica_of(words: &[&str]) -> Result<String, Refusal> {
    match words {
        [no, one] if no.eq_ignore_ascii_case("no") && one.eq_ignore_ascii_case("one") => Ok(String::new()),
        [host, port] => match port.parse::<u16>() {
            Ok(1..) => Ok(format!("{host} {port}")),
            _ => Err("Invalid master port".to_owned()),
        },
        _ => Err("wrong number of arguments".to_owned()),
    }
}
