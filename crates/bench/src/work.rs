//! What is asked: named tests as redis-benchmark has them, commands of the user, and mixes of either.

use crate::keys::Spread;
use crate::limits::OPERATIONS_MAX;
use crate::template::{RANDOM, TAG, Template, VALUE};
use crate::values::{PROOF_BYTES_MIN, Sizes};

/// One named test.
#[derive(Debug)]
pub struct Test {
    /// As results call it.
    pub title: &'static str,
    /// What `-t` has to name for it to run.
    pub names: &'static [&'static str],
    /// Its words; see [`crate::template`].
    pub words: &'static [&'static str],
}

const fn test(title: &'static str, names: &'static [&'static str], words: &'static [&'static str]) -> Test {
    Test { title, names, words }
}

/// All tests, in the order in which they run. Titles, names, requests and order are those of redis-benchmark 7.0.
pub const TESTS: &[Test] = &[
    test("PING_INLINE", &["ping_inline", "ping"], &[]),
    test("PING_MBULK", &["ping_mbulk", "ping"], &["PING"]),
    test("SET", &["set"], &["SET", "key:@", VALUE]),
    test("GET", &["get"], &["GET", "key:@"]),
    test("INCR", &["incr"], &["INCR", "counter:@"]),
    test("LPUSH", &["lpush"], &["LPUSH", "mylist#", VALUE]),
    test("RPUSH", &["rpush"], &["RPUSH", "mylist#", VALUE]),
    test("LPOP", &["lpop"], &["LPOP", "mylist#"]),
    test("RPOP", &["rpop"], &["RPOP", "mylist#"]),
    test("SADD", &["sadd"], &["SADD", "myset#", "element:__rand_int__"]),
    test("HSET", &["hset"], &["HSET", "myhash#", "element:__rand_int__", VALUE]),
    test("SPOP", &["spop"], &["SPOP", "myset#"]),
    test("ZADD", &["zadd"], &["ZADD", "myzset#", "0", "element:__rand_int__"]),
    test("ZPOPMIN", &["zpopmin"], &["ZPOPMIN", "myzset#"]),
    test("LPUSH (needed to benchmark LRANGE)", LRANGES, &["LPUSH", "mylist#", VALUE]),
    test("LRANGE_100 (first 100 elements)", &["lrange", "lrange_100"], &["LRANGE", "mylist#", "0", "99"]),
    test("LRANGE_300 (first 300 elements)", &["lrange", "lrange_300"], &["LRANGE", "mylist#", "0", "299"]),
    test("LRANGE_500 (first 500 elements)", &["lrange", "lrange_500"], &["LRANGE", "mylist#", "0", "499"]),
    test("LRANGE_600 (first 600 elements)", &["lrange", "lrange_600"], &["LRANGE", "mylist#", "0", "599"]),
    test("MSET (10 keys)", &["mset"], &MSET),
];

const LRANGES: &[&str] = &["lrange", "lrange_100", "lrange_300", "lrange_500", "lrange_600"];

const MSET: [&str; 21] = {
    let mut words = ["key:@"; 21];
    words[0] = "MSET";
    let mut at = 2;
    while at < 21 {
        words[at] = VALUE;
        at += 2;
    }
    words
};

/// How requests are made.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Distinct keys; `None`: blanks are words like others, and there is one key.
    pub keys: Option<u64>,
    /// How keys are chosen.
    pub spread: Spread,
    /// How large values are.
    pub sizes: Sizes,
    /// Values prove their keys, and replies are checked.
    pub is_verified: bool,
    /// Keys carry a tag of the node that they go to.
    pub is_tagged: bool,
}

/// One kind of request in a mix.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// As results call it.
    pub title: String,
    /// Its bytes and blanks.
    pub template: Template,
    /// How often it comes, compared with the others of the mix.
    pub weight: u64,
    /// Its reply is a value that has to prove its key.
    pub is_proven: bool,
}

/// What one run asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// As results call it.
    pub title: String,
    /// The kinds of requests.
    pub operations: Vec<Operation>,
    /// How they are made.
    pub shape: Shape,
}

impl Test {
    /// The test whose own name this is.
    pub fn named(name: &str) -> Option<&'static Test> {
        TESTS.iter().find(|test| test.names[0].eq_ignore_ascii_case(name) && test.names.len() < LRANGES.len())
    }

    fn operation(&self, shape: &Shape) -> Operation {
        let key = if shape.is_tagged { format!("key:{TAG}:{RANDOM}") } else { format!("key:{RANDOM}") };
        let tag = if shape.is_tagged { format!(":{TAG}") } else { String::new() };
        let words: Vec<String> = self.words.iter().map(|word| self.word(word, &key, &tag)).collect();
        let template = match words.is_empty() {
            true => Template::verbatim(b"PING\r\n"),
            false => Template::new(&words, shape.keys.is_some(), &shape.sizes, shape.is_verified),
        };
        let is_proven = shape.is_verified && self.title == "GET";
        Operation { title: self.title.to_owned(), template, weight: 1, is_proven }
    }

    fn word(&self, word: &str, key: &str, tag: &str) -> String {
        match word.strip_suffix('@') {
            Some("key:") => key.to_owned(),
            Some(start) => key.replacen("key:", start, 1),
            None => word.replace('#', tag),
        }
    }
}

impl Work {
    /// One test alone.
    pub fn of_test(test: &Test, shape: &Shape) -> Self {
        Self { title: test.title.to_owned(), operations: vec![test.operation(shape)], shape: shape.clone() }
    }

    /// The user's command.
    pub fn of_command(title: String, words: &[Vec<u8>], shape: &Shape) -> Self {
        let template = Template::new(words, shape.keys.is_some(), &shape.sizes, shape.is_verified);
        let is_get = words.first().is_some_and(|name| name.eq_ignore_ascii_case(b"get"));
        let is_proven = shape.is_verified && is_get && words.len() == 2;
        let operation = Operation { title: title.clone(), template, weight: 1, is_proven };
        Self { title, operations: vec![operation], shape: shape.clone() }
    }

    /// Whether a verified run of it has values that prove their keys, or replies that are checked.
    pub fn has_proofs(&self) -> bool {
        self.operations.iter().any(|operation| operation.is_proven || operation.template.has_values())
    }

    /// A mix of tests: `get=9,set=1`.
    ///
    /// # Errors
    /// Says which name or weight is wrong.
    pub fn of_mix(text: &str, shape: &Shape) -> Result<Self, String> {
        let mut operations = Vec::new();
        for part in text.split(',') {
            let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
            let weight: u32 = weight
                .trim()
                .parse()
                .map_err(|_| format!("{part:?} has no weight (write a whole number, as in get=9,set=1)"))?;
            let test = Test::named(name.trim()).ok_or_else(|| format!("there is no test {name:?}; {}", names()))?;
            operations.push(Operation { weight: weight.into(), ..test.operation(shape) });
        }
        if operations.len() > OPERATIONS_MAX {
            return Err(format!("a mix has {OPERATIONS_MAX} kinds of requests at most"));
        }
        if operations.iter().all(|operation| operation.weight == 0) {
            return Err("one kind of request needs a weight".to_owned());
        }
        Ok(Self { title: text.to_owned(), operations, shape: shape.clone() })
    }

    /// The tests that a list names, or all, in their order.
    ///
    /// # Errors
    /// Says which name is wrong.
    pub fn of_list(list: Option<&str>, shape: &Shape) -> Result<Vec<Self>, String> {
        let wanted: Option<Vec<String>> =
            list.map(|list| list.split(',').map(|name| name.trim().to_ascii_lowercase()).collect());
        for name in wanted.iter().flatten() {
            if !TESTS.iter().any(|test| test.names.contains(&name.as_str())) {
                return Err(format!("there is no test {name:?}; {}", names()));
            }
        }
        let is_wanted = |test: &&Test| match &wanted {
            Some(wanted) => wanted.iter().any(|name| test.names.contains(&name.as_str())),
            None => true,
        };
        Ok(TESTS.iter().filter(is_wanted).map(|test| Self::of_test(test, shape)).collect())
    }
}

impl Shape {
    /// What keeps values from proving anything, if something does.
    ///
    /// # Errors
    /// Says what is missing.
    pub fn check(&self) -> Result<(), String> {
        if !self.is_verified {
            return Ok(());
        }
        if self.keys.is_none() {
            return Err("values can only be verified with more than one key (-r)".to_owned());
        }
        if self.sizes.smallest() < PROOF_BYTES_MIN {
            return Err(format!("values need {PROOF_BYTES_MIN} bytes at least to be verified (-d)"));
        }
        Ok(())
    }
}

fn names() -> String {
    let mut names: Vec<&str> = TESTS.iter().flat_map(|test| test.names).copied().collect();
    names.sort_unstable();
    names.dedup();
    format!("there are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;

    fn shape(keys: Option<u64>) -> Shape {
        let sizes = Sizes::one(3);
        Shape { keys, spread: Spread::Sequence, sizes, is_verified: false, is_tagged: false }
    }

    fn first(work: &Work) -> String {
        let mut out = Vec::new();
        let mut keys = Keys::new(Spread::Sequence, 10, 1, 0, 1);
        work.operations[0].template.write(&mut out, &mut keys, 0, &[*b"{abc}"]);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_test_sends_a_command_that_exists() {
        for test in TESTS.iter().filter(|test| !test.words.is_empty()) {
            assert!(respool_command::lookup(test.words[0].as_bytes()).is_some(), "{}", test.title);
        }
    }

    #[test]
    fn a_list_chooses_tests_as_redis_benchmark_does() {
        let titles = |list: Option<&str>| {
            let works = Work::of_list(list, &shape(None)).unwrap();
            works.into_iter().map(|work| work.title).collect::<Vec<_>>()
        };
        assert_eq!(titles(Some("ping,get")), ["PING_INLINE", "PING_MBULK", "GET"]);
        assert_eq!(
            titles(Some("LRANGE_300")),
            ["LPUSH (needed to benchmark LRANGE)", "LRANGE_300 (first 300 elements)"]
        );
        assert_eq!(titles(None).len(), TESTS.len());
        let error = Work::of_list(Some("get,gte"), &shape(None)).unwrap_err();
        assert!(error.contains("\"gte\"") && error.contains("lrange_100"), "{error}");
    }

    #[test]
    fn requests_are_those_of_redis_benchmark() {
        let test = |name, keys| first(&Work::of_test(Test::named(name).unwrap(), &shape(keys)));
        assert_eq!(test("ping_inline", None), "PING\r\n");
        assert_eq!(test("set", Some(10)), "*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000000\r\n$3\r\nxxx\r\n");
        assert_eq!(test("get", None), "*2\r\n$3\r\nGET\r\n$16\r\nkey:__rand_int__\r\n");
        assert_eq!(test("incr", Some(10)), "*2\r\n$4\r\nINCR\r\n$20\r\ncounter:000000000000\r\n");
        assert!(test("mset", Some(20)).starts_with("*21\r\n$4\r\nMSET\r\n$16\r\nkey:000000000000\r\n$3\r\nxxx\r\n"));
        let tagged = Shape { is_tagged: true, ..shape(Some(10)) };
        assert_eq!(
            first(&Work::of_test(Test::named("get").unwrap(), &tagged)),
            "*2\r\n$3\r\nGET\r\n$22\r\nkey:{abc}:000000000000\r\n"
        );
        assert!(first(&Work::of_test(Test::named("lpop").unwrap(), &tagged)).contains("$12\r\nmylist:{abc}\r\n"));
    }

    #[test]
    fn a_mix_needs_known_names_and_a_weight() {
        let mix = Work::of_mix("get=9,set=1", &shape(Some(10))).unwrap();
        assert_eq!(mix.operations.iter().map(|operation| operation.weight).collect::<Vec<_>>(), [9, 1]);
        for text in ["", "gte=1", "get=x", "get=0", "get=9,", "get=-1"] {
            assert!(Work::of_mix(text, &shape(None)).is_err(), "{text}");
        }
    }

    #[test]
    fn values_are_verified_only_where_they_prove_something() {
        let good = Shape { is_verified: true, sizes: Sizes::one(64), ..shape(Some(10)) };
        assert_eq!(good.check(), Ok(()));
        assert!(Shape { keys: None, ..good.clone() }.check().is_err());
        assert!(Shape { sizes: Sizes::one(3), ..good.clone() }.check().is_err());
        assert!(Work::of_test(Test::named("get").unwrap(), &good).operations[0].is_proven);
        assert!(!Work::of_test(Test::named("set").unwrap(), &good).operations[0].is_proven);
    }
}
