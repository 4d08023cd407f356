//! The shape of the proxy's inside, in figures: how much of it is `Worker`, how many of its files have unit tests, how much code there is.
//!
//! Each figure has a bound that is only ever moved towards what is wanted. So a change that gives the worker what a feature should
//! do, or brings a file without a test, is seen when it is made.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::text::{lines_of_code, rust_files};
use crate::command;

const PROXY: &str = "crates/proxy/src";
const NET: &str = "crates/net/src";
/// The folder of what unit tests share.
const SUPPORT: &str = "testing";

/// Lines of all `impl` blocks of the worker, those of its traits among them.
const WORKER_LINES_MAX: usize = 1_000;
/// Its fields: the environment, and one for each feature.
const WORKER_FIELDS_MAX: usize = 16;
/// Lines of the `impl` blocks of the environment, whose methods reach every part of it.
const ENV_LINES_MAX: usize = 8_231;
/// Files with functions that have unit tests, in percent.
const TESTED_PERCENT_MIN: usize = 60;
/// Lines of code of the proxy and the loop: neither blank nor a comment nor of a unit test. Wanted: 25,500. MIGRATE has 560 of them,
/// the clock that a program moves 200, what a second reading found another 600 and the bounds and deadlines that it had left 175, listeners that
/// are closed while clients are served, renamed commands and pauses that engines learn of 100, users that pools share 130,
/// AUTH and HELLO in transactions 75, debuggers of scripts 330, requests at former addresses 15, replies charged to who has asked for them 25, ends of workers 15.
const CODE_LINES_MAX: usize = 34_153;

/// Folders that own the state of a feature. `worker` puts them together, and is alone to name them in the end.
const FEATURES: [&str; 13] = [
    "admin",
    "auth",
    "blocking",
    "client_pause",
    "commands",
    "dedicated",
    "engines",
    "migrate",
    "parameters",
    "pubsub",
    "scripts",
    "tracking",
    "transaction",
];
/// Pairs of a folder, or of a file beside the folders, and a feature that is named in it.
const NAMED_FEATURES_MAX: usize = 0;

/// What is counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shape {
    worker_lines: usize,
    worker_fields: usize,
    env_lines: usize,
    /// Files with functions, and how many of them have unit tests.
    files: usize,
    tested: usize,
    code_lines: usize,
    /// Which folder, or which file beside the folders, names which feature.
    named_features: BTreeSet<(String, &'static str)>,
}

pub(super) fn check() -> Vec<String> {
    complaints_about(&shape())
}

/// What is counted, in words.
pub(super) fn figures() -> String {
    let Shape { worker_lines, worker_fields, env_lines, files, tested, code_lines, named_features } = shape();
    format!(
        "impl Worker {worker_lines} lines, {worker_fields} fields; impl Env {env_lines} lines; \
         {tested} of {files} files with functions have tests ({} %); proxy and net {code_lines} lines of code; \
         features named by other folders {}",
        percent(tested, files),
        named_features.len()
    )
}

fn complaints_about(shape: &Shape) -> Vec<String> {
    let at_most = [
        ("lines of impl Worker", shape.worker_lines, WORKER_LINES_MAX),
        ("fields of Worker", shape.worker_fields, WORKER_FIELDS_MAX),
        ("lines of impl Env", shape.env_lines, ENV_LINES_MAX),
        ("lines of code of proxy and net", shape.code_lines, CODE_LINES_MAX),
        ("features named by other folders", shape.named_features.len(), NAMED_FEATURES_MAX),
    ];
    let too_many = at_most.into_iter().filter(|(_, count, max)| count > max);
    let mut complaints: Vec<String> =
        too_many.map(|(what, count, max)| format!("{count} {what}, more than {max}")).collect();
    let tested = percent(shape.tested, shape.files);
    if tested < TESTED_PERCENT_MIN {
        complaints.push(format!("{tested} % of the proxy's files have tests, less than {TESTED_PERCENT_MIN}"));
    }
    complaints
}

fn percent(part: usize, all: usize) -> usize {
    part * 100 / all.max(1)
}

fn shape() -> Shape {
    let mut shape = Shape::default();
    let files =
        rust_files(&command::root().join(PROXY)).into_iter().filter(|file| !file.iter().any(|part| part == SUPPORT));
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        shape.add(&text, is_tested_beside(&file));
        shape.named_features.extend(named_features(&file, &text));
    }
    for file in rust_files(&command::root().join(NET)) {
        let text = fs::read_to_string(&file).unwrap_or_default();
        shape.code_lines += code_lines(&text);
    }
    shape
}

/// Those who may name all features: they put them together, or show them to other crates.
const ABOVE_FEATURES: [&str; 3] = ["worker", "worker.rs", "lib.rs"];

/// The features that a file names, with its folder, or with its name if it is beside the folders.
fn named_features(file: &Path, text: &str) -> Vec<(String, &'static str)> {
    let inside = file.strip_prefix(command::root().join(PROXY)).unwrap_or(file);
    let folder = inside.iter().next().unwrap_or_default().to_string_lossy();
    let others = FEATURES.into_iter().filter(|feature| *feature != folder && !ABOVE_FEATURES.contains(&&*folder));
    let is_named = |feature: &&str| lines_of_code(text).any(|(_, line)| line.contains(&format!("crate::{feature}::")));
    others.filter(is_named).map(|feature| (folder.to_string(), feature)).collect()
}

/// Whether the folder of a file has a `tests.rs`, which tests its machine as a whole.
fn is_tested_beside(file: &Path) -> bool {
    file.with_file_name("tests.rs").exists()
}

impl Shape {
    /// Adds a file of the proxy.
    fn add(&mut self, text: &str, is_tested_beside: bool) {
        if is_of_tests(text) {
            return;
        }
        self.worker_lines += lines_of_impls(text, "Worker<");
        self.env_lines += lines_of_impls(text, "Env<");
        self.worker_fields += fields_of(text, "pub struct Worker<");
        self.code_lines += code_lines(text);
        if lines_of_code(text).any(|(_, line)| line.split_whitespace().any(|word| word == "fn")) {
            self.files += 1;
            self.tested += usize::from(is_tested_beside || text.contains("#[cfg(test)]"));
        }
    }
}

/// A file of tests alone imports what it tests as a whole.
fn is_of_tests(text: &str) -> bool {
    text.lines().any(|line| line == "#[test]")
}

fn code_lines(text: &str) -> usize {
    lines_of_code(text).filter(|(_, line)| !line.trim().is_empty()).count()
}

/// Lines from `impl` to the closing brace of all blocks for a type, whether or not they are of a trait.
fn lines_of_impls(text: &str, of: &str) -> usize {
    let mut lines = 0;
    let mut is_inside = false;
    for line in text.lines() {
        let named = || line.trim_end().trim_end_matches(['{', ' ']).rsplit(' ').next().unwrap_or_default();
        is_inside |= line.starts_with("impl") && named().starts_with(of);
        lines += usize::from(is_inside);
        is_inside &= line != "}";
    }
    lines
}

/// Fields of the struct that begins with these words.
fn fields_of(text: &str, beginning: &str) -> usize {
    let body = text.lines().skip_while(|line| !line.starts_with(beginning)).skip(1);
    let body = body.take_while(|line| *line != "}").map(str::trim_start);
    body.filter(|line| !line.starts_with("//") && line.contains(": ")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_keeps_its_shape() {
        assert_eq!(check(), Vec::<String>::new());
    }

    #[test]
    fn blocks_of_the_worker_are_counted_with_those_of_traits() {
        let text = "//! A worker.\n\
            pub struct Worker<E> {\n    /// It is: not a field.\n    pub(crate) env: Env<E>,\n    own: usize,\n}\n\
            impl<E: Execute> Worker<E> {\n    fn run(&self) {\n    }\n}\n\
            impl<E: Execute> Machine for Worker<E> {\n}\n\
            impl<E> Env<E> {\n}\n\
            impl Holds<Worker<()>> for Other {\n}\n";
        let mut shape = Shape::default();
        shape.add(text, false);
        let expected = Shape {
            worker_lines: 6,
            worker_fields: 2,
            env_lines: 2,
            files: 1,
            tested: 0,
            code_lines: 14,
            ..Shape::default()
        };
        assert_eq!(shape, expected);
    }

    #[test]
    fn a_folder_that_names_a_feature_is_counted() {
        let named = |file: &str, text| named_features(Path::new(file), text);
        let text =
            "use crate::auth::users::Access;\nuse crate::ids::NodeId;\n#[cfg(test)]\nuse crate::pubsub::Subscriber;\n";
        assert_eq!(named("pool/mod.rs", text), [("pool".to_owned(), "auth")]);
        assert_eq!(named("auth/deeper/users.rs", text), [], "it is its own");
        assert_eq!(named("mail.rs", text), [("mail.rs".to_owned(), "auth")], "beside the folders as well");
        ["worker/reload.rs", "worker.rs", "lib.rs"].into_iter().for_each(|file| assert_eq!(named(file, text), []));
    }

    #[test]
    fn files_without_functions_need_no_test() {
        let mut shape = Shape::default();
        shape.add("//! Ends.\npub(crate) enum Ended {\n}\n", false);
        assert_eq!((shape.files, shape.tested), (0, 0));
        shape.add("fn f() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn f() {}\n}\n", false);
        shape.add("fn f() {}\n", true);
        shape.add("fn f() {}\n", false);
        assert_eq!((shape.files, shape.tested), (3, 2));
        shape.add("use super::*;\n#[test]\nfn f() {}\n", false);
        assert_eq!(shape.files, 3, "it is a test itself");
    }

    #[test]
    fn every_bound_is_minded() {
        let good = Shape { files: 100, tested: TESTED_PERCENT_MIN, ..Shape::default() };
        assert_eq!(complaints_about(&good), Vec::<String>::new());
        let large = usize::MAX;
        let bad = Shape {
            worker_lines: large,
            worker_fields: large,
            env_lines: large,
            files: 100,
            tested: TESTED_PERCENT_MIN - 1,
            code_lines: large,
            named_features: (0..=NAMED_FEATURES_MAX).map(|folder| (folder.to_string(), FEATURES[0])).collect(),
        };
        assert_eq!(complaints_about(&bad).len(), 6);
    }
}
