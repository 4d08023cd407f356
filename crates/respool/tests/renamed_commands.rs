//! `rename-command` of redis.conf, beside redis-server.

use std::process::{Command, Stdio};
use std::{fs, path::Path};

use respool_testkit::{Address, Client, PATIENCE, Process, RedisServer, TempDir};
use rustix::process::Signal;

const CONF: &str = "rename-command GET fetch\nrename-command SET \"\"\nrename-command CONFIG conf\nrename-command EVAL GET\n\
                    rename-command FLUSHALL \"a b\"\nrename-command ACL rights\nrename-command BLPOP wait-for\n";
const READY: &str = "The server is now ready to accept connections at";

fn start(directory: &Path) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_respool"));
    command.arg("server").env_clear().current_dir(directory).stdin(Stdio::null()).arg("redis.conf");
    let process = Process::spawn("respool server", &mut command).expect("the program starts");
    process.wait_for_line(READY, PATIENCE).expect("it becomes ready");
    process
}

fn ask(client: &mut Client, words: &[&str]) -> String {
    String::from_utf8_lossy(&client.command(words).expect("it answers")).into_owned()
}

#[test]
fn commands_are_called_by_the_names_that_the_file_gives() {
    let directory = TempDir::new().expect("there is room");
    let own = "port 0\nunixsocket s.sock\nsave \"\"\n";
    fs::write(directory.path().join("redis.conf"), format!("{own}{CONF}")).expect("it can be written");
    let process = start(directory.path());
    let pairs: Vec<&str> = CONF.lines().flat_map(|line| line.splitn(3, ' ').collect::<Vec<_>>()).collect();
    let flags: Vec<String> = pairs.chunks(3).map(|words| format!("--{} {} {}", words[0], words[1], words[2])).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let redis = RedisServer::start_with(&flags).expect("a redis-server starts");
    let client = || Client::connect(&Address::Unix(directory.path().join("s.sock"))).expect("it accepts");
    let (mut ours, mut theirs) = (client(), redis.client().expect("it accepts"));
    let script = |command: &str| format!("return redis.call('{command}','k')");
    let [fetch, get, set] = ["fetch", "get", "set"].map(script);
    for words in [
        &["MSET", "k", "v", "l", "w"][..],
        &["fetch", "k"],
        &["FETCH"],
        &["get", "k"],
        &["set", "k", "v"],
        &["a b", "SYNC"],
        &["flushall"],
        &["mset", "k", "v"],
        &["conf", "get", "maxmemory"],
        &["conf", "set", "maxmemory", "1gb"],
        &["conf", "nothing"],
        &["conf"],
        &["config", "get", "maxmemory"],
        &["GET", &fetch, "0"],
        &["GET", &get, "0"],
        &["GET", &set, "0"],
        &["GET", "return redis.acl_check_cmd('fetch','k')", "0"],
        &["GET", "return redis.acl_check_cmd('set','k','v')", "0"],
        &["eval", "return 1", "0"],
        &["COMMAND", "INFO", "fetch", "set", "SET"],
        &["COMMAND", "INFO", "conf|get", "config|get"],
        &["COMMAND", "LIST", "FILTERBY", "PATTERN", "*etch*"],
        &["COMMAND", "LIST", "FILTERBY", "PATTERN", "ge?"],
        &["COMMAND", "LIST", "FILTERBY", "PATTERN", "set"],
        &["COMMAND", "GETKEYS", "fetch", "k"],
        &["COMMAND", "GETKEYS", "set", "k", "v"],
        &["COMMAND", "DOCS", "set"],
        &["MULTI"],
        &["fetch", "k"],
        &["EXEC"],
        &["MULTI"],
        &["set", "k", "x"],
        &["fetch", "k"],
        &["EXEC"],
        &["wait-for", "list", "0.01"],
        &["blpop", "list", "0.01"],
        &["rights", "SETUSER", "u", "on", "nopass", "~*", "+get", "+config|get"],
        &["rights", "SETUSER", "u", "+fetch"],
        &["rights", "SETUSER", "u", "+conf|get"],
        &["rights", "DRYRUN", "u", "fetch", "k"],
        &["rights", "DRYRUN", "u", "set", "k", "v"],
        &["rights", "DRYRUN", "u", "mset", "k", "v"],
        &["acl", "list"],
        &["AUTH", "u", "x"],
        &["fetch", "k"],
        &["conf", "get", "maxmemory"],
        &["conf", "set", "maxmemory", "0"],
        &["mset", "k", "v"],
        &["set", "k", "v"],
        &["AUTH", "default", "x"],
    ] {
        assert_eq!(ask(&mut ours, words), ask(&mut theirs, words), "{words:?}");
    }
    // In which order Redis names the rules of a user is a matter of chance.
    let users = ask(&mut ours, &["rights", "LIST"]);
    assert!(users.contains(" +get") && users.contains(" +config|get") && !users.contains("fetch"), "{users}");
    let count = respool_command::listed().count() - 1;
    assert_eq!(ask(&mut ours, &["COMMAND", "COUNT"]), format!(":{count}\r\n"), "one has no name");
    let stats = ask(&mut ours, &["INFO", "commandstats"]);
    assert!(stats.contains("cmdstat_get:") && stats.contains("cmdstat_config|get:"), "{stats}");
    assert!(!stats.contains("fetch") && !stats.contains("conf|"), "{stats}");
    assert_eq!(ask(&mut ours, &["conf", "REWRITE"]), "+OK\r\n");
    let written = fs::read_to_string(directory.path().join("redis.conf")).expect("it is there");
    assert!(CONF.lines().all(|line| written.lines().any(|kept| kept == line)), "{written}");
    drop(ours);
    process.signal(Signal::TERM).expect("it runs");
    drop(process);
    let _again = start(directory.path());
    let mut ours = client();
    assert!(ask(&mut ours, &["set", "k", "v"]).starts_with("-ERR unknown command"));
    assert_eq!(ask(&mut ours, &["fetch", "k"]), "$-1\r\n");
}

#[test]
fn a_name_that_is_taken_from_another_command_is_free() {
    let directory = TempDir::new().expect("there is room");
    let conf = "port 0\nunixsocket s.sock\nsave \"\"\nrename-command DEL \"\"\nrename-command UNLINK del\n";
    fs::write(directory.path().join("redis.conf"), conf).expect("it can be written");
    let _process = start(directory.path());
    let mut client = Client::connect(&Address::Unix(directory.path().join("s.sock"))).expect("it accepts");
    ask(&mut client, &["SET", "k", "v"]);
    assert_eq!(ask(&mut client, &["DEL", "k"]), ":1\r\n");
    assert!(ask(&mut client, &["INFO", "commandstats"]).contains("cmdstat_unlink:calls=1"));
    assert!(ask(&mut client, &["UNLINK", "k"]).starts_with("-ERR unknown command 'UNLINK'"));
}
