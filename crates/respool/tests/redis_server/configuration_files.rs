//! The configuration file: read, included, from standard input, and written by CONFIG REWRITE.

use super::*;

#[test]
fn a_rewritten_file_starts_the_same_server() {
    let conf = "# mine\nmaxmemory 100mb\nlua-time-limit 77\nuser ann on >pw ~a:* +get\nsave 10 20\nrequirepass first\n";
    let server = Server::start(Some(conf), &["--slowlog-max-len", "7"]);
    let mut client = server.client();
    assert_eq!(ask(&mut client, &["AUTH", "first"]), "+OK\r\n");
    let set = [
        "CONFIG",
        "SET",
        "maxmemory",
        "1gb",
        "requirepass",
        "second",
        "timeout",
        "100",
        "notify-keyspace-events",
        "KEA",
    ];
    assert_eq!(ask(&mut client, &set), "+OK\r\n");
    // Words of the file are split with quotes, which a line of an ACL file is not.
    let odd =
        ["ACL", "SETUSER", "odd", "on", "nopass", "~'a", "%W~\"b", "+@all", "-@dangerous", "+info", "(+get \"~c)\")"];
    assert_eq!(ask(&mut client, &odd), "+OK\r\n");
    assert_eq!(ask(&mut client, &["CONFIG", "REWRITE"]), "+OK\r\n");
    let before = pairs(&mut client, &["*"]);
    let text = fs::read_to_string(server.file("redis.conf")).expect("it is there");
    assert!(text.starts_with("# mine\nmaxmemory 1gb\nbusy-reply-threshold 77\nuser ann on "), "{text}");
    assert!(!text.contains("first") && !text.contains("second"), "passwords are kept by their hashes: {text}");
    let again = server.restarted();
    let mut client = again.client();
    assert_eq!(ask(&mut client, &["AUTH", "second"]), "+OK\r\n");
    assert_eq!(pairs(&mut client, &["*"]), before);
    assert_eq!(ask(&mut client, &["AUTH", "ann", "pw"]), "+OK\r\n");
    assert_eq!(ask(&mut client, &["AUTH", "odd", "any"]), "+OK\r\n");
    let may = |client: &mut Client, words: &[&str]| !ask(client, words).starts_with("-NOPERM");
    for (words, is_permitted) in [
        (&["GET", "'a"][..], true),
        (&["SET", "\"b", "v"], true),
        (&["GET", "\"b"], false),
        (&["GET", "c)"], true),
        (&["SET", "c)", "v"], false),
        (&["INFO"], true),
        (&["KEYS", "'a"], false),
    ] {
        assert_eq!(may(&mut client, words), is_permitted, "{words:?}");
    }
}

/// All parameters stand in the file then, and each of its lines is one that a server takes.
#[test]
fn a_server_starts_from_a_rewrite_with_all_defaults() {
    let server = Server::start(Some("# mine\nmaxmemory 1gb\nenable-debug-command yes\n"), &[]);
    let mut client = server.client();
    assert_eq!(ask(&mut client, &["CONFIG", "REWRITE"]), "+OK\r\n");
    let short = fs::read_to_string(server.file("redis.conf")).expect("it is there");
    assert_eq!(ask(&mut client, &["DEBUG", "CONFIG-REWRITE-FORCE-ALL"]), "+OK\r\n");
    let text = fs::read_to_string(server.file("redis.conf")).expect("it is there");
    assert!(text.starts_with("# mine\nmaxmemory 1gb\n"), "{text}");
    let has_line = |text: &str| text.lines().any(|line| line == "hz 10");
    assert!(has_line(&text) && !has_line(&short), "{text}");
    let before = pairs(&mut client, &["*"]);
    let again = server.restarted();
    assert_eq!(pairs(&mut again.client(), &["*"]), before);
}

#[test]
fn a_rewrite_follows_no_link_and_shows_no_password() {
    let server = Server::start(Some("requirepass first\n"), &[]);
    let other = server.file("other");
    fs::write(&other, "mine").expect("it can be written");
    let conf = server.file("redis.conf");
    fs::set_permissions(&conf, Permissions::from_mode(0o640)).expect("it is ours");
    let beside = format!("redis.conf.tmp-{}", server.process.pid());
    symlink(&other, server.file(&beside)).expect("there is room");
    let mut client = server.client();
    assert_eq!(ask(&mut client, &["AUTH", "first"]), "+OK\r\n");
    assert_eq!(ask(&mut client, &["CONFIG", "REWRITE"]), "+OK\r\n");
    assert_eq!(fs::read_to_string(&other).expect("it is there"), "mine");
    let about = fs::symlink_metadata(&conf).expect("it is there");
    assert!(about.is_file() && about.permissions().mode() & 0o777 == 0o640);
    // A file of another's that cannot be moved away keeps the former text.
    fs::create_dir(server.file(&beside)).expect("there is room");
    let before = fs::read(&conf).expect("it is there");
    assert!(ask(&mut client, &["CONFIG", "REWRITE"]).starts_with("-ERR Rewriting config file: "));
    assert_eq!(fs::read(&conf).expect("it is there"), before);
}

#[test]
fn a_directory_whose_name_is_no_text_is_not_written() {
    let directory = TempDir::new().expect("there is room");
    let name = OsStr::from_bytes(b"\xff");
    fs::create_dir(directory.path().join(name)).expect("there is room");
    fs::write(directory.path().join("redis.conf"), "port 0\nunixsocket s.sock\n").expect("it can be written");
    let mut command = command(directory.path());
    command.current_dir(directory.path().join(name)).arg(directory.path().join("redis.conf"));
    let process = Process::spawn("respool server", &mut command).expect("the program starts");
    process.wait_for_line(READY, PATIENCE).expect("it becomes ready");
    let mut client = Client::connect(&Address::Unix(directory.path().join(name).join("s.sock"))).expect("it accepts");
    let shown = client.command(&["CONFIG", "GET", "dir"]).expect("it answers");
    assert!(shown.ends_with(b"/\xff\r\n"), "{}", shown.escape_ascii());
    let told = ask(&mut client, &["CONFIG", "REWRITE"]);
    assert_eq!(told, "-ERR Rewriting config file: the name of the working directory is not text in UTF-8\r\n");
}

#[test]
fn a_directory_is_entered_only_with_all_that_is_set_beside() {
    let server = Server::start(None, &["--enable-protected-configs", "yes", "--busy-reply-threshold", "1"]);
    fs::create_dir(server.file("sub")).expect("there is room");
    fs::write(server.file("file"), "").expect("there is room");
    let mut client = server.client();
    let before = pairs(&mut client, &["dir", "maxmemory"]);
    for (directory, why) in [("none", "No such file or directory"), ("file", "Not a directory")] {
        let told = ask(&mut client, &["CONFIG", "SET", "maxmemory", "1gb", "dir", directory]);
        assert!(told.starts_with("-ERR CONFIG SET failed") && told.contains(why), "{told}");
        assert_eq!(pairs(&mut client, &["dir", "maxmemory"]), before);
    }
    let mut script = server.client();
    script.send_command(&["EVAL", "while true do end", "0"]).expect("it is sent");
    wait_until("the script is told of", PATIENCE, || Ok(ask(&mut client, &["GET", "key"]).starts_with("-BUSY")))
        .expect("it runs");
    let told = ask(&mut client, &["CONFIG", "SET", "maxmemory", "1gb", "dir", "sub"]);
    assert!(told.starts_with("-BUSY"), "{told}");
    assert_eq!(ask(&mut client, &["SCRIPT", "KILL"]), "+OK\r\n");
    assert_eq!(pairs(&mut client, &["dir", "maxmemory"]), before);
    assert_eq!(ask(&mut client, &["CONFIG", "SET", "maxmemory", "1gb", "dir", "sub"]), "+OK\r\n");
    let after = pairs(&mut client, &["dir", "maxmemory"]);
    assert!(after[0].1.ends_with("/sub") && after[1].1 == "1073741824", "{after:?}");
}

#[test]
fn a_server_without_a_file_rewrites_none() {
    let server = Server::start(None, &[]);
    let told = ask(&mut server.client(), &["CONFIG", "REWRITE"]);
    assert_eq!(told, "-ERR The server is running without a config file\r\n");
}

#[test]
fn files_are_included_and_the_last_directive_wins() {
    let directory = TempDir::new().expect("there is room");
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).expect("it can be written");
    fs::create_dir(directory.path().join("conf.d")).expect("there is room");
    write("conf.d/b.conf", "hz 30\ntimeout 2\n");
    write("conf.d/a.conf", "hz 20\nTIMEOUT 1\nloglevel \"ver\\x62ose\"\n");
    write("conf.d/.c.conf", "hz 40\n");
    let conf = "hz 10\ninclude conf.d/*.conf\ninclude none/*.conf\nslowlog-max-len 1\n";
    let server = Server::start_in(directory, Some(conf), &["--slowlog-max-len", "2"]);
    let mut client = server.client();
    for (name, value) in [("hz", "30"), ("timeout", "2"), ("loglevel", "verbose"), ("slowlog-max-len", "2")] {
        assert_eq!(pairs(&mut client, &[name]), [(name.to_owned(), value.to_owned())]);
    }
}

#[test]
fn standard_input_is_a_file_too() {
    let directory = TempDir::new().expect("there is room");
    let mut command = command(directory.path());
    let mut child = command.arg("-").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("it was asked for");
    input.write_all(b"port 0\nunixsocket s.sock\nmaxmemory 3mb\n").expect("it reads");
    drop(input);
    let address = Address::Unix(directory.path().join("s.sock"));
    wait_until("it serves", PATIENCE, || Ok(Client::connect(&address).is_ok())).expect("it becomes ready");
    let mut client = Client::connect(&address).expect("it accepts");
    assert_eq!(pairs(&mut client, &["maxmemory"]), [("maxmemory".to_owned(), "3145728".to_owned())]);
    client.send(b"SHUTDOWN NOSAVE\r\n").expect("it is open");
    assert_eq!(client.read_to_close().expect("it is closed"), b"", "the end is all that is answered");
    assert!(child.wait().expect("it ends").success());
}
