//! What is done for a debugger counts as work of its script: others are served in between. Slices are counted, and no time.

use respool_command::Outcome;
use respool_engine::EngineConfig;

use super::{Debuggee, shown};

/// Each variable in scope is work at each line: others are served more often.
#[test]
fn many_variables_at_a_line_are_counted() {
    let slices = |variables: usize| {
        let locals: String = (0..variables).map(|number| format!("local v{number} = {number}\n")).collect();
        let script = format!("{locals}for i = 1, 1000 do\n KEYS[1] = i\nend\nreturn 7");
        let mut debuggee = Debuggee::with(EngineConfig::default());
        debuggee.must_stop(&script, &["0"]);
        let (slices, outcome, reply) = debuggee.slices(&["c"]);
        assert!(outcome == Outcome::Done && reply.ends_with(b":7\r\n"), "{}", shown(&reply));
        slices
    };
    let (few, many) = (slices(1), slices(150));
    assert!(few <= 3 && many >= 20, "{few} {many}");
}

/// A script that has called a function so often within itself, with this code in front of the call and behind it, and stops there.
fn stopped_deep(depth: usize, code: &str, code_behind: &str) -> Debuggee {
    let script = format!(
        "local function f(d)\n if d == 0 then\n  redis.breakpoint()\n  return 0\n end\n local q = 1\n {code}\n local v = f(d - 1)\n \
        {code_behind}\n return v\nend\nlocal r = f({depth})\nreturn r"
    );
    let mut debuggee = Debuggee::with(EngineConfig::default());
    debuggee.must_stop(&script, &["0"]);
    loop {
        let (outcome, reply) = debuggee.say(&["c"]);
        assert_eq!(outcome, Outcome::Stopped, "{}", shown(&reply));
        if shown(&reply).contains("redis.breakpoint() called") {
            return debuggee;
        }
    }
}

/// Lua finds the name of a function in the code of the one around it, which may be long: others are served between two functions, and may
/// end the script.
#[test]
fn a_trace_is_interrupted_as_often_as_its_functions_are_long() {
    let slices = |code: &str| {
        let (slices, outcome, reply) = stopped_deep(1000, code, "").slices(&["t"]);
        assert!(outcome == Outcome::Stopped && reply.starts_with(b"*2000\r\n"), "{}", shown(&reply[..20]));
        slices
    };
    let long = format!("q={}", ["q"; 20_000].join("+"));
    let (few, many) = (slices(""), slices(&long));
    assert!(few <= 1 && many >= 10, "{few} {many}");
    stopped_deep(1000, &long, "").must_be_killed_amid(&["t"]);
}

/// A variable is looked for in each function under way, among all that the function ever has.
#[test]
fn a_variable_is_looked_for_with_interruptions() {
    let stopped = |variables: usize| stopped_deep(1000, "", &"do local a end ".repeat(variables));
    let slices = |variables: usize| {
        let (slices, outcome, reply) = stopped(variables).slices(&["p", "nosuch"]);
        assert!(outcome == Outcome::Stopped && reply.ends_with(b"+No such variable.\r\n"), "{}", shown(&reply));
        slices
    };
    let (few, many) = (slices(1), slices(20_000));
    assert!(few <= 2 && many >= 10, "{few} {many}");
    // Names as long as the one that is looked for are compared with it.
    let long = "n".repeat(4000);
    let names: Vec<String> = (0..50).map(|number| format!("{long}{number:02}")).collect();
    let slices = |name: &str| stopped_deep(1000, &format!("local {}", names.join(",")), "").slices(&["p", name]).0;
    let (few, many) = (slices(&long), slices(&format!("{long}xx")));
    assert!(many >= few + 20, "{few} {many}");
    stopped(20_000).must_be_killed_amid(&["p", "nosuch"]);
}

/// What is looked at of a function at each line and in each error has a bound: a script may give its code names as long as it likes.
#[test]
fn names_of_code_are_bounded() {
    let mut debuggee = Debuggee::with(EngineConfig::default());
    let long = "string.rep('n', 1000000)";
    for (name, shown_name) in [
        (format!("'@' .. {long} .. 'end'"), "nnnend:1: x"),
        (format!("'=begin' .. {long}"), "beginnnn"),
        (long.into(), "[string \\\"nnnn"),
    ] {
        for script in [
            "return loadstring(\"error('x')\", NAME)()",
            "local text = \"error('x')\"\nreturn load(function() local said = text text = nil return said end, NAME)()",
        ] {
            let script = script.replace("NAME", &name);
            let told = debuggee.ask(&["EVAL", &script, "0"]);
            assert!(
                told.len() < 5_000 && told.contains(shown_name),
                "{script}: {} {}",
                told.len(),
                &told[..told.len().min(200)]
            );
        }
    }
}

/// Showing a table goes through all its places, free ones too: it counts as all the memory that there is.
#[test]
fn tables_that_a_script_shows_are_counted() {
    let slices = |value: &str| {
        let script = format!(
            "local s = string.rep('x', 2e7)\nlocal t = {{}}\nfor i = 1, 100 do\n redis.debug({value})\nend\nreturn 7"
        );
        let mut debuggee = Debuggee::with(EngineConfig::default());
        debuggee.must_stop(&script, &["0"]);
        let (slices, outcome, reply) = debuggee.slices(&["c"]);
        assert!(outcome == Outcome::Done && reply.ends_with(b":7\r\n"), "{}", shown(&reply));
        slices
    };
    let (few, many) = (slices("'t', 1, true"), slices("t"));
    assert!(few <= 10 && many >= 100, "{few} {many}");
}
