//! The program as its user meets it: what it prints where, and what it ends with.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use respool::settings::table::ROWS;

/// What a run printed and how it ended.
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the program prints UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

fn respool() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_respool"));
    // Nothing of the machine's own settings, and help that does not depend on a terminal.
    command.env_clear().stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Run {
    respool().args(args).output().expect("the program starts").into()
}

/// A file of this test's own with this text.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).expect("the folder for tests can be written");
    path
}

fn check(name: &str, text: &str) -> Run {
    run(&["check", file(name, text).to_str().expect("a path in UTF-8")])
}

#[test]
fn an_unknown_flag_names_the_nearest_one() {
    for (args, nearest) in [
        (&["serve", "--conect-timeout", "1s"][..], "'--connect-timeout'"),
        (&["serve", "--placement", "kematam"], "'ketama'"),
        (&["serv"], "'serve'"),
    ] {
        let run = run(args);
        assert_eq!(run.code, Some(2), "{args:?}");
        assert!(run.stderr.contains(nearest) && run.stdout.is_empty(), "{args:?}\n{}", run.stderr);
    }
}

#[test]
fn a_bad_value_names_setting_bounds_and_what_was_said() {
    for (args, parts) in [
        (["--connect-timeout", "5"], ["connect_timeout cannot be \"5\"", "1ms to 5m", "--connect-timeout 5"]),
        (["--backlog", "0"], ["backlog cannot be \"0\"", "1 to 65535", "--backlog 0"]),
        (["--bulk-bytes-max", "64m"], ["bulk_bytes_max cannot be \"64m\"", "1mb to 2gb", "did you mean 64mb?"]),
        (["--node", "a"], ["nodes cannot be \"a\"", "embedded:", "--nodes a"]),
    ] {
        let run = run(&["serve", args[0], args[1]]);
        assert_eq!(run.code, Some(2), "{args:?}");
        assert!(parts.iter().all(|part| run.stderr.contains(part)), "{parts:?}\n{}", run.stderr);
    }
}

#[test]
fn the_load_generator_says_what_is_wrong_and_whose_fault() {
    for (args, code, part) in [
        (&["bench", "-t", "gte"][..], 2, "there is no test \"gte\""),
        (&["bench", "-s", "/nonexistent/socket", "-t", "get"], 1, "could not connect to unix:/nonexistent/socket"),
        (&["bench", "pubsub", "both"], 2, "REDIS_HOST_ADDRESS"),
        (&["pubsub", "publish", "--address", "/nonexistent/socket"], 1, "could not connect to unix:"),
    ] {
        let run = run(args);
        assert_eq!(run.code, Some(code), "{args:?}\n{}", run.stderr);
        assert!(run.stderr.contains(part), "{part}\n{}", run.stderr);
    }
}

#[test]
fn the_environment_is_heard_and_blamed() {
    let run = Run::from(respool().arg("serve").env("RESPOOL_BACKLOG", "many").output().expect("the program starts"));
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("environment variable RESPOOL_BACKLOG"), "{}", run.stderr);
}

#[test]
fn a_flag_overrules_the_environment_which_overrules_the_file() {
    let path = file("layers.toml", "backlog = 0\n");
    // All three are wrong, so that the one that counts is the one that is complained about.
    let serve = |args: &[&str], env: &str| {
        let mut command = respool();
        command.arg("serve").args(args).env("RESPOOL_CONFIG", &path);
        if !env.is_empty() {
            command.env("RESPOOL_BACKLOG", env);
        }
        Run::from(command.output().expect("the program starts")).stderr
    };
    assert!(serve(&[], "").contains("layers.toml:1:11"));
    assert!(serve(&[], "x").contains("environment variable RESPOOL_BACKLOG"));
    assert!(serve(&["--backlog", "y"], "x").contains("--backlog y"));
}

#[test]
fn check_says_what_a_file_means() {
    let text = "workers = 2\nprotected_mode = \"no\"\n[[pool]]\nname = \"a\"\nlisten = \":7000\"\nnodes = [\"h:1\", \"h:2\"]\nconnect_timeout = \"9s\"\n";
    let run = check("good.toml", text);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    for line in [
        "good.toml is fine",
        "    workers = 2  (restart)",
        "    protected_mode = no",
        "  pool a: proxy in front of 2 nodes by slots: h:1, h:2",
        "    listens on :7000  (restart)",
        "    connect_timeout = 9s",
        "  a reload (SIGHUP) takes all of this but what is marked (restart)",
        "  note: pool a: every client that reaches :7000 may send commands",
    ] {
        assert!(run.stdout.lines().any(|shown| shown.ends_with(line)), "{line}\n{}", run.stdout);
    }
}

#[test]
fn check_shows_what_is_wrong_and_where() {
    let run = check("bad.toml", "backlog = 1\nconect_timeout = \"1s\"\n");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    let shown: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(shown[0], "error: there is no setting \"conect_timeout\"");
    assert!(shown[1].ends_with("bad.toml:2:1"), "{}", shown[1]);
    assert_eq!(
        shown[3..],
        [" 2 | conect_timeout = \"1s\"", "   | ^^^^^^^^^^^^^^", "   = the nearest is connect_timeout"]
    );
    assert_eq!(
        check("missing/none.toml".rsplit('/').next().unwrap_or_default(), "").code,
        Some(0),
        "nothing said is fine"
    );
    assert_eq!(crate::run(&["check", "/nowhere/none.toml"]).code, Some(2));
}

#[test]
fn whatever_is_wrong_with_a_file_ends_check_with_two() {
    let broken = file("broken.acl", "user app on nonsense\n").display().to_string();
    for (number, text) in [
        "aclfile = \"/nonexistent/users\"".to_owned(),
        format!("aclfile = {broken:?}"),
        "requirepass_file = \"/nonexistent/password\"".to_owned(),
        "listen = \"tls::1 cert=/nonexistent/cert key=/nonexistent/key\"".to_owned(),
        "[users]\napp = \"on nonsense\"\n".to_owned(),
        "keepalive = \"10h\"".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let run = check(&format!("wrong-{number}.toml"), text);
        assert_eq!(run.code, Some(2), "{text}\n{}", run.stderr);
        assert!(run.stderr.starts_with("error: ") && run.stdout.is_empty(), "{text}\n{}", run.stderr);
    }
}

#[test]
fn check_reads_the_file_of_rmux() {
    let json = r#"[{"port": 7000, "tcpConnections": ["h:1", "h:2"]}, {"socket": "/s", "unixConnections": ["/n"]}]"#;
    let run = check("rmux.json", json);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("pool pool-1: proxy in front of 2 nodes by rmux: h:1, h:2"), "{}", run.stdout);
    assert!(run.stdout.contains("pool pool-2: proxy in front of unix:/n"), "{}", run.stdout);
    let run = check("rmux-bad.json", r#"[{"port": 7000, "tcpConections": ["h:1"]}]"#);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("the nearest is tcpConnections"), "{}", run.stderr);
}

#[test]
fn other_programs_flags_are_recognised() {
    for (args, nearest) in [
        (&["rmux", "-tcpConections", "h:1"][..], "the nearest is tcpConnections"),
        (&["-tcpConnections", "h:1", "-prot", "1"], "the nearest is port"),
        (&["redis-sharding", "--nods=h:1"], "the nearest is nodes"),
        (&["--nodes=h:1", "--tmeout=1"], "the nearest is timeout"),
    ] {
        let run = run(args);
        assert_eq!(run.code, Some(2), "{args:?}");
        assert!(run.stderr.contains(nearest), "{args:?}\n{}", run.stderr);
    }
}

#[cfg(unix)]
#[test]
fn a_link_with_another_programs_name_is_that_program() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("links");
    fs::create_dir_all(&folder).expect("the folder for tests can be written");
    for name in ["rmux", "redis-sharding-mlton"] {
        let link = folder.join(name);
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_respool"), &link).expect("a link can be made");
        let run = Run::from(Command::new(&link).arg("-help").output().expect("the link starts"));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stdout.starts_with("Usage: respool r"), "{}", run.stdout);
    }
}

#[test]
fn help_completions_and_manual_know_every_setting() {
    let help = run(&["serve", "--help"]).stdout;
    let manual = run(&["man", "serve"]).stdout.replace('\\', "");
    let scripts = ["bash", "zsh", "fish", "elvish", "powershell"].map(|shell| run(&["completions", shell]).stdout);
    for row in ROWS {
        let flag = format!("--{}", row.flag());
        assert!(help.contains(&flag) && help.contains(&row.env()), "help lacks {flag}");
        assert!(manual.contains(&flag) && manual.contains(&row.env()), "the manual lacks {flag}");
        for script in &scripts {
            assert!(script.contains(&row.flag()), "completions lack {flag}");
        }
    }
}

#[test]
fn every_subcommand_has_help_and_a_manual_page() {
    let manual = run(&["man"]).stdout;
    for name in ["serve", "check", "settings", "version", "completions", "man"] {
        let help = run(&[name, "--help"]);
        assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""), "{name}");
        assert!(manual.contains(&format!("respool\\-{name}(1)")), "{name}");
        assert_eq!(run(&["man", name]).code, Some(0), "{name}");
    }
    assert_eq!(run(&["man", "nonsense"]).code, Some(2));
    assert_eq!(run(&["version"]).stdout, format!("respool {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn no_subcommand_shows_help_and_fails() {
    let run = run(&[]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("Usage: respool"), "{}", run.stderr);
}

#[test]
fn a_reader_who_leaves_is_no_failure() {
    for args in [&["completions", "bash"][..], &["man", "serve"], &["settings"], &["version"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe can be made");
        drop(reader);
        let run = Run::from(respool().args(args).stdout(writer).output().expect("the program starts"));
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_full_disk_is_a_failure() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let run = Run::from(respool().arg("version").stdout(full).output().expect("the program starts"));
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
}

#[test]
fn a_password_is_never_printed() {
    const CANARY: &str = "c4n4ry";
    let secret = file("secret", &format!("{CANARY}\n"));
    let from_file = format!("node_password_file = {:?}\n", secret.to_str().expect("a path in UTF-8"));
    let mut runs = vec![
        check("secret-1.toml", &format!("node_password = \"{CANARY}\"\nnodes = \"h:1\"\n")),
        check("secret-2.toml", &from_file),
        check("secret-3.toml", &format!("node_pasword = \"{CANARY}\"\n")),
        check("secret-4.toml", &format!("node_password = [\"{CANARY}\"]\n")),
        check("secret-5.toml", &format!("node_password = \"{CANARY}\\u0007\"\n")),
        check("secret-6.toml", &format!("node_password = \"{CANARY}\n")),
        check("secret-7.toml", &format!("{from_file}node_password = \"{CANARY}\"\n")),
        run(&["serve", "--node-password", CANARY, "--backlog", "0"]),
        run(&["serve", "--node-password", &format!("{CANARY}\n")]),
        run(&["serve", &format!("--node-pasword={CANARY}")]),
        run(&["serve", "--node-username", "u", "--node-password-file", "/nowhere", "--node-password", CANARY]),
    ];
    let mut wrong = respool();
    wrong.arg("serve").env("RESPOOL_NODE_PASSWORD", format!("{CANARY}\n")).env("RESPOOL_NODE_PASWORD", CANARY);
    runs.push(wrong.output().expect("the program starts").into());
    assert!(runs[0].stdout.contains("node_password = (hidden)"), "{}", runs[0].stdout);
    for (number, run) in runs.iter().enumerate() {
        assert!(!run.stdout.contains(CANARY) && !run.stderr.contains(CANARY), "{number}: {}{}", run.stdout, run.stderr);
    }
}
