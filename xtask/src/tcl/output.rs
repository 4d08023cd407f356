//! What the suite prints about its tests, read back.

/// How the tests of one unit, or of all, ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Names of tests that passed.
    pub(super) ok: Vec<String>,
    pub(super) failed: Vec<Failure>,
    /// Tests, or whole blocks of them, that do not suit this mode.
    pub(super) ignored: usize,
    /// Those of them that are a test and need something: its name, and the tag that says so.
    pub(super) needy: Vec<(String, String)>,
}

/// A test that failed, and what was printed about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) test: String,
    pub(super) ending: Ending,
    pub(super) details: String,
}

/// In which way something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// A test did.
    Failed,
    /// An error that no test caught.
    Outside,
    /// A test made no progress any more.
    Hung,
    /// The unit, the suite or Respool ended early.
    Broken,
}

/// A run of the suite that was read to its end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) tally: Tally,
    /// The test that made no progress any more, which ended the run.
    pub(super) hung: Option<String>,
    /// What ended the run early, other than that.
    pub(super) broken: Option<String>,
}

/// How a failure is named that happened between tests.
pub(super) const OUTSIDE: &str = "(outside of a test)";

impl Tally {
    pub(super) fn add(&mut self, other: Tally) {
        self.ok.extend(other.ok);
        self.failed.extend(other.failed);
        self.ignored += other.ignored;
        self.needy.extend(other.needy);
    }
}

/// Reads what the suite printed while it ran `unit`.
pub(super) fn read(text: &str, unit: &str) -> Run {
    let mut run = Run::default();
    let mut is_detail = false;
    let mut has_ended = false;
    for line in text.lines() {
        has_ended |= line.trim() == "The End";
        if has_ended {
            break;
        }
        let Some((status, rest)) = status(line) else {
            if let (true, Some(failure)) = (is_detail, run.tally.failed.last_mut()) {
                failure.details.push_str(line);
                failure.details.push('\n');
            } else if let Some((_, test)) = line.split_once("(IN PROGRESS) ") {
                run.hung = Some(test.to_owned());
            }
            continue;
        };
        is_detail = false;
        match status {
            "ok" => run.tally.ok.push(without_time(rest).to_owned()),
            "ignore" => {
                run.tally.ignored += 1;
                run.tally.needy.extend(needy(rest));
            }
            "err" => {
                is_detail = true;
                run.tally.failed.push(failure(rest, unit));
            }
            "exception" => run.broken = Some(rest.to_owned()),
            // It follows which test it was; between tests the output does not say.
            "TIMEOUT" => run.hung = Some(OUTSIDE.to_owned()),
            _ => {}
        }
    }
    if !has_ended && run.hung.is_none() && run.broken.is_none() {
        run.broken = Some("the suite ended before its end".into());
    }
    run
}

/// `[status]: rest`; a line of a failure's details may begin with a bracket too.
fn status(line: &str) -> Option<(&str, &str)> {
    let (status, rest) = line.strip_prefix('[')?.split_once("]: ")?;
    let is_known = matches!(status, "ok" | "err" | "ignore" | "skip" | "exception" | "TIMEOUT" | "ready" | "testing")
        || status.ends_with(" done");
    is_known.then_some((status, rest))
}

/// `name (12 ms)`.
fn without_time(rest: &str) -> &str {
    rest.rsplit_once(" (").map_or(rest, |(name, _)| name)
}

/// `name: Tag: needs:x denied`; a block has no name.
fn needy(rest: &str) -> Option<(String, String)> {
    let (name, tag) = rest.strip_suffix(" denied")?.rsplit_once(": Tag: ")?;
    tag.starts_with("needs:").then(|| (name.to_owned(), tag.to_owned()))
}

/// `name in tests/unit/x.tcl`, or the bare text of an error that no test caught.
fn failure(rest: &str, unit: &str) -> Failure {
    match rest.strip_suffix(&format!(" in tests/{unit}.tcl")) {
        Some(test) => Failure { test: test.to_owned(), ending: Ending::Failed, details: String::new() },
        None => Failure { test: OUTSIDE.to_owned(), ending: Ending::Outside, details: format!("{rest}\n") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, ok: &[&str], failed: &[(&str, &str)], ignored: usize) -> Run {
        let run = read(text, "unit/x");
        let failures: Vec<_> = run.tally.failed.iter().map(|f| (f.test.as_str(), f.details.as_str())).collect();
        assert_eq!(run.tally.ok, ok);
        assert_eq!(failures, failed);
        assert_eq!(run.tally.ignored, ignored);
        run
    }

    #[test]
    fn each_status_is_counted_once() {
        let text = "[ready]: 77\nTesting unit/x\n[ok]: plain (12 ms)\n[ok]: with (brackets) (0 ms)\n[ignore]: Tag: slow denied\n\
            [skip]: left out\n[err]: bad one in tests/unit/x.tcl\nExpected 'a'\n[odd] line\n[1/1 done]: unit/x (2 seconds)\n\n   The End\n\n\
            *** [err]: bad one in tests/unit/x.tcl\n";
        let run = check(text, &["plain", "with (brackets)"], &[("bad one", "Expected 'a'\n[odd] line\n")], 1);
        assert_eq!((run.hung, run.broken), (None, None));
    }

    #[test]
    fn tests_that_need_something_are_named() {
        let text = "[ignore]: a: b: Tag: needs:repl denied\n[ignore]: Tag: needs:debug denied\n[ignore]: c: Tag: slow denied\n";
        let run = check(text, &[], &[], 3);
        assert_eq!(run.tally.needy, [("a: b".to_owned(), "needs:repl".to_owned())]);
    }

    #[test]
    fn an_error_between_tests_has_no_name() {
        check(
            "[err]: unknown command\nwhile executing\n\n   The End\n",
            &[],
            &[(OUTSIDE, "unknown command\nwhile executing\n\n")],
            0,
        );
    }

    #[test]
    fn a_hung_test_is_named() {
        let text =
            "[ok]: one (1 ms)\n[TIMEOUT]: clients state report follows.\nsock55 => (IN PROGRESS) two\n\n   The End\n";
        assert_eq!(check(text, &["one"], &[], 0).hung.as_deref(), Some("two"));
        let text = "[ok]: one (1 ms)\n[TIMEOUT]: clients state report follows.\nsock55 => (OK) one\n";
        assert_eq!(check(text, &["one"], &[], 0).hung.as_deref(), Some(OUTSIDE));
    }

    #[test]
    fn an_early_end_is_noticed() {
        assert!(check("[ok]: one (1 ms)\n", &["one"], &[], 0).broken.is_some());
        assert!(check("[exception]: Executing test client: oops\n", &[], &[], 0).broken.is_some());
    }
}
