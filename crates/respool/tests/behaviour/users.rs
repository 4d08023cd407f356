//! Users: authentication, permissions, and that passwords are never shown.

use std::io;
use std::time::Duration;

use respool_testkit::{Client, PATIENCE, RedisServer, Respool, TempDir, request, wait_until};

use super::{bulk, proxy};

/// Settings files need a place that outlives the process.
fn with_file(text: &str, server: &RedisServer, arguments: &[&str]) -> io::Result<(Respool, TempDir)> {
    let directory = TempDir::new()?;
    let path = directory.join("respool.toml");
    std::fs::write(&path, text)?;
    let shown = path.display().to_string();
    let mut all = vec!["--config", shown.as_str()];
    all.extend(arguments);
    Ok((proxy(&[server.tcp()], &all)?, directory))
}

/// Sends the same to both and asserts the same answer.
fn same(one: &mut Client, other: &mut Client, arguments: &[&str]) -> io::Result<String> {
    let (ours, theirs) = (one.command(arguments)?, other.command(arguments)?);
    let shown = |reply: &[u8]| String::from_utf8_lossy(reply).into_owned();
    assert_eq!(shown(&ours), shown(&theirs), "{arguments:?}");
    Ok(shown(&ours))
}

#[test]
fn a_password_is_asked_for_with_the_texts_of_redis() -> io::Result<()> {
    let node = RedisServer::start()?;
    let model = RedisServer::start_with(&["--requirepass", "secret"])?;
    let proxy = proxy(&[node.tcp()], &["--requirepass", "secret"])?;
    let (mut ours, mut theirs) = (proxy.client()?, model.client()?);
    for request in [
        &["GET", "k"][..],
        &["PING"],
        &["FOO"],
        &["GET"],
        &["HELLO", "3"],
        &["HELLO", "4"],
        &["HELLO", "x"],
        &["HELLO", "3", "SETNAME", "me"],
        &["HELLO", "3", "AUTH", "default", "wrong"],
        &["AUTH", "wrong"],
        &["AUTH", "default", "wrong"],
        &["AUTH", "missing", "secret"],
        &["AUTH", "a", "b", "c"],
        &["AUTH"],
        &["RESET"],
        &["GET", "k"],
        &["AUTH", "secret"],
        &["SET", "k", "v"],
        &["GET", "k"],
        &["ACL", "WHOAMI"],
        // A failed attempt leaves the client who it was.
        &["AUTH", "wrong"],
        &["ACL", "WHOAMI"],
        &["GET", "k"],
        &["RESET"],
        &["GET", "k"],
        &["AUTH", "default", "secret"],
        &["GET", "k"],
    ] {
        same(&mut ours, &mut theirs, request)?;
    }
    assert_eq!(ours.ask("HELLO 3 AUTH default secret SETNAME me")?.as_bytes()[0], b'%');
    assert_eq!(ours.ask("QUIT")?, "+OK\r\n");
    Ok(())
}

#[test]
fn everything_behind_an_auth_runs_as_the_new_user() -> io::Result<()> {
    let node = RedisServer::start()?;
    let proxy = proxy(&[node.tcp()], &["--requirepass", "secret"])?;
    let mut client = proxy.client()?;
    let mut bytes = respool_testkit::request(&["AUTH", "secret"]);
    let large = "x".repeat(40_000);
    bytes.extend(respool_testkit::request(&["SET", "large", &large]));
    for number in 0..100 {
        bytes.extend(respool_testkit::request(&["SET", &format!("k{number}"), "v"]));
    }
    client.send(&bytes)?;
    assert!(client.replies(102)?.iter().all(|reply| reply == b"+OK\r\n"));
    Ok(())
}

#[test]
fn unauthenticated_clients_send_and_leave_unread_little() -> io::Result<()> {
    let node = RedisServer::start()?;
    let proxy = proxy(&[node.tcp()], &["--requirepass", "secret", "--auth-timeout", "1s"])?;
    for (bytes, expected) in [
        (&b"*100\r\n"[..], "-ERR Protocol error: unauthenticated multibulk length\r\n"),
        (b"*1\r\n$20000\r\n", "-ERR Protocol error: unauthenticated bulk length\r\n"),
    ] {
        let mut client = proxy.client()?;
        client.send(bytes)?;
        assert_eq!(String::from_utf8_lossy(&client.read_to_close()?), expected);
    }
    let mut flood = proxy.client()?;
    let pings = b"PING\r\n".repeat(1_000);
    let is_cut_off = (0..10_000).any(|_| flood.send(&pings).is_err());
    assert!(is_cut_off, "it reads nothing and is answered all the same");
    let mut idle = proxy.client()?;
    let mut known = proxy.client()?;
    assert_eq!(known.ask("AUTH secret")?, "+OK\r\n");
    assert_eq!(idle.read_to_close()?, b"", "it never says who it is");
    assert_eq!(known.ask("PING")?, "+PONG\r\n");
    Ok(())
}

#[test]
fn users_may_do_what_their_rules_say_in_the_words_of_redis() -> io::Result<()> {
    let node = RedisServer::start()?;
    let model = RedisServer::start()?;
    let proxy = proxy(&[node.tcp()], &[])?;
    let (mut ours, mut theirs) = (proxy.client()?, model.client()?);
    for request in [
        &[
            "ACL",
            "SETUSER",
            "app",
            "on",
            ">one",
            ">two",
            "~app:*",
            "%R~read:*",
            "&news:*",
            "+@read",
            "+@write",
            "+publish",
            "+acl|whoami",
            "+acl|log",
            "-getset",
            "(+mget ~b*)",
        ][..],
        &["ACL", "SETUSER", "app", "+nothing"],
        &["ACL", "SETUSER", "a b"],
        &["ACL", "SETUSER", "x", "(", "~a"],
        &["ACL", "DELUSER", "default"],
        &["ACL", "DELUSER", "missing"],
        &["ACL", "GETUSER", "missing"],
        &["ACL", "USERS"],
        &["ACL", "DRYRUN", "app", "GET", "x"],
        &["ACL", "LOAD"],
        &["ACL", "SAVE"],
        &["ACL", "GENPASS", "0"],
        &["ACL", "CAT", "nothing"],
        &["CLIENT", "KILL", "USER", "missing"],
        &["AUTH", "app", "wrong"],
        &["AUTH", "app", "two"],
        &["ACL", "WHOAMI"],
        &["SET", "app:1", "v"],
        &["GET", "app:1"],
        &["GET", "other"],
        &["GET", "read:1"],
        &["SET", "read:1", "v"],
        &["MGET", "app:1", "other"],
        &["MGET", "b", "b2"],
        &["GETSET", "app:1", "x"],
        &["PUBLISH", "news:1", "m"],
        &["PUBLISH", "other", "m"],
        &["FLUSHALL"],
        &["CONFIG", "GET", "maxmemory"],
        &["ACL", "LIST"],
        &["ACL", "NOTHING"],
        &["COPY", "app:1", "app:2"],
        &["COPY", "app:1", "other"],
        &["EVAL", "return 1", "0"],
        &["HELLO", "2", "AUTH", "app", "bad"],
        &["ACL", "WHOAMI"],
        &["RESET"],
        &["ACL", "WHOAMI"],
    ] {
        same(&mut ours, &mut theirs, request)?;
    }
    assert!(ours.ask("ACL LIST")?.contains("user app on #"));
    assert!(ours.ask("CLIENT LIST")?.contains("user=default"));
    assert_eq!(ours.ask("ACL GENPASS")?.len(), 64 + 7);
    assert_ne!(ours.ask("ACL GENPASS")?, ours.ask("ACL GENPASS")?);
    Ok(())
}

#[test]
fn an_exec_that_a_user_may_not_run_ends_its_transaction() -> io::Result<()> {
    let (node, model) = (RedisServer::start()?, RedisServer::start()?);
    let (behind, own) = (proxy(&[node.tcp()], &[])?, proxy(&[], &[])?);
    for server in [&behind, &own] {
        let (mut ours, mut theirs) = (server.client()?, model.client()?);
        for request in [
            &["ACL", "SETUSER", "app", "on", ">one", "+multi", "+set", "~*"][..],
            &["AUTH", "app", "one"],
            &["MULTI"],
            &["SET", "k", "1"],
            &["EXEC"],
            &["SET", "k", "2"],
            &["EXEC"],
        ] {
            same(&mut ours, &mut theirs, request)?;
        }
    }
    Ok(())
}

#[test]
fn a_change_of_a_user_holds_at_once_on_every_worker() -> io::Result<()> {
    let node = RedisServer::start()?;
    let proxy =
        Respool::start(std::path::Path::new(env!("CARGO_BIN_EXE_respool")), &[node.tcp()], &["--workers", "2"])?;
    let mut admin = proxy.client()?;
    assert_eq!(admin.ask("ACL SETUSER app on >one ~* &* +@all")?, "+OK\r\n");
    let mut apps: Vec<Client> = (0..8).map(|_| proxy.client()).collect::<io::Result<_>>()?;
    for app in &mut apps {
        assert_eq!(app.ask("AUTH app one")?, "+OK\r\n");
        assert_eq!(app.ask("SET k v")?, "+OK\r\n");
    }
    assert_eq!(admin.ask("ACL SETUSER app -set")?, "+OK\r\n");
    for app in &mut apps {
        assert_eq!(app.ask("SET k v")?, "-NOPERM this user has no permissions to run the 'set' command\r\n");
        assert_eq!(app.ask("GET k")?, "$1\r\nv\r\n");
    }
    assert_eq!(admin.ask("ACL SETUSER app off")?, "+OK\r\n");
    assert_eq!(apps[0].ask("GET k")?, "$1\r\nv\r\n", "who is in stays in");
    assert!(apps[0].ask("AUTH app one")?.starts_with("-WRONGPASS"));
    assert_eq!(admin.ask("ACL DELUSER app")?, ":1\r\n");
    for app in &mut apps {
        assert_eq!(app.read_to_close()?, b"", "who is gone is gone");
    }
    assert_eq!(admin.ask("ACL SETUSER me on nopass ~* &* +@all")?, "+OK\r\n");
    assert_eq!(admin.ask("AUTH me x")?, "+OK\r\n");
    assert_eq!(admin.ask("ACL DELUSER me")?, ":1\r\n", "the one that asks is told before it is closed");
    assert_eq!(admin.read_to_close()?, b"");
    Ok(())
}

#[test]
fn denials_are_logged_and_counted() -> io::Result<()> {
    let node = RedisServer::start()?;
    let proxy = proxy(&[node.tcp()], &[])?;
    let (mut admin, mut app) = (proxy.client()?, proxy.client()?);
    admin.ask("ACL SETUSER app on >one ~a* resetchannels +get +publish")?;
    app.ask("AUTH app wrong")?;
    app.ask("AUTH app one")?;
    for request in ["GET b", "GET b", "SET a 1", "PUBLISH c m"] {
        assert!(app.ask(request)?.starts_with("-NOPERM"), "{request}");
    }
    let log = admin.ask("ACL LOG")?;
    assert!(log.starts_with("*4\r\n"), "{log}");
    let places: Vec<usize> = ["channel", "command", "key", "auth"]
        .iter()
        .map(|reason| {
            log.find(&format!("reason\r\n${}\r\n{reason}\r\n", reason.len())).unwrap_or_else(|| panic!("{log}"))
        })
        .collect();
    assert!(places.is_sorted(), "the newest first: {log}");
    assert!(log.contains("count\r\n:2\r\n") && log.contains("username\r\n$3\r\napp\r\n") && log.contains("user=app"));
    assert!(admin.ask("ACL LOG 1")?.starts_with("*1\r\n"));
    assert_eq!(admin.ask("ACL LOG RESET")?, "+OK\r\n");
    assert_eq!(admin.ask("ACL LOG")?, "*0\r\n");
    let info = admin.ask("INFO proxy")?;
    for line in ["auth_failures:1", "denied_keys:2", "denied_commands:1", "denied_channels:1"] {
        assert!(info.contains(line), "{line} in {info}");
    }
    Ok(())
}

#[test]
fn users_are_kept_in_a_file() -> io::Result<()> {
    let node = RedisServer::start()?;
    let directory = TempDir::new()?;
    let path = directory.join("users.acl");
    std::fs::write(&path, "user default on nopass ~* &* +@all\nuser app on >one ~app:* +@read\n")?;
    let shown = path.display().to_string();
    let proxy = proxy(&[node.tcp()], &["--aclfile", &shown])?;
    let (mut admin, mut app) = (proxy.client()?, proxy.client()?);
    assert_eq!(app.ask("AUTH app one")?, "+OK\r\n");
    assert!(app.ask("SET app:1 v")?.starts_with("-NOPERM"));
    assert_eq!(admin.ask("ACL SETUSER app +set")?, "+OK\r\n");
    assert_eq!(admin.ask("ACL SAVE")?, "+OK\r\n");
    let saved = std::fs::read_to_string(&path)?;
    assert!(saved.contains("user app on #") && !saved.contains("one"), "{saved}");
    std::fs::write(&path, "user app on >one ~app:* +@read +nothing\nhello\n")?;
    let error = admin.ask("ACL LOAD")?;
    assert!(error.contains("users.acl:1: Error in applying operation '+nothing'"), "{error}");
    assert!(error.contains("users.acl:2 should start with user keyword"), "{error}");
    assert_eq!(app.ask("SET app:1 v")?, "+OK\r\n", "a file with errors changes nothing");
    std::fs::write(&path, "user default on nopass ~* &* +@all\nuser app on >one ~app:* +get\n")?;
    assert_eq!(admin.ask("ACL LOAD")?, "+OK\r\n");
    assert!(app.ask("SET app:1 v")?.starts_with("-NOPERM"));
    assert_eq!(app.ask("GET app:1")?, "$1\r\nv\r\n");
    std::fs::write(&path, "user default on nopass ~* &* +@all\n")?;
    assert_eq!(admin.ask("ACL LOAD")?, "+OK\r\n");
    assert_eq!(app.read_to_close()?, b"");
    Ok(())
}

#[test]
fn limits_of_a_user_hold() -> io::Result<()> {
    let node = RedisServer::start()?;
    let text = "[users.few]\nrules = \"on nopass ~* &* +@all\"\nconnections = 2\nrequests_per_second = 50\n";
    let (proxy, _directory) = with_file(text, &node, &[])?;
    let mut clients: Vec<Client> = (0..3).map(|_| proxy.client()).collect::<io::Result<_>>()?;
    assert_eq!(clients[0].ask("AUTH few x")?, "+OK\r\n");
    assert_eq!(clients[1].ask("AUTH few x")?, "+OK\r\n");
    assert_eq!(clients[2].ask("AUTH few x")?, "-ERR max number of clients of this user reached\r\n");
    assert!(clients[2].ask("GET k")?.starts_with("-NOAUTH"), "nor does it go on as another user");
    assert_eq!(clients[2].ask("RESET")?, "+RESET\r\n");
    assert_eq!(clients[2].ask("ACL WHOAMI")?, "$7\r\ndefault\r\n");
    clients[1].ask("RESET")?;
    assert_eq!(clients[2].ask("AUTH few x")?, "+OK\r\n", "a place that is left is free");
    let started = std::time::Instant::now();
    let mut bytes = Vec::new();
    for number in 0..200 {
        bytes.extend(respool_testkit::request(&["SET", &format!("k{number}"), "v"]));
    }
    clients[0].send(&bytes)?;
    let mut plain = proxy.client()?;
    plain.ask("PING")?;
    let expected = b"+OK\r\n".repeat(200);
    let mut answers = clients[0].take_arrived()?;
    assert!(answers.len() < expected.len(), "no other client waits");
    wait_until("all is answered", PATIENCE, || {
        answers.extend(clients[0].take_arrived()?);
        Ok(answers.len() >= expected.len())
    })?;
    assert!(answers == expected, "nothing is refused, only later");
    let took = started.elapsed();
    assert!(
        took > Duration::from_millis(2_500),
        "200 requests at 50 in a second, one second's worth at once: {took:?}"
    );
    Ok(())
}

/// What is refused is asked for all the same.
#[test]
fn requests_that_are_refused_count_as_any() -> io::Result<()> {
    let node = RedisServer::start()?;
    let text = "[users.few]\nrules = \"on nopass ~* &* +@all -del\"\nrequests_per_second = 20\n";
    let (proxy, _directory) = with_file(text, &node, &[])?;
    for refused in ["NOSUCHCOMMAND", "GET", "DEL k"] {
        let mut client = proxy.client()?;
        assert_eq!(client.ask("AUTH few x")?, "+OK\r\n");
        let started = std::time::Instant::now();
        client.send(format!("{refused}\r\n").repeat(40).as_bytes())?;
        assert!(client.replies(40)?.iter().all(|reply| reply.starts_with(b"-")), "{refused}");
        let took = started.elapsed();
        assert!(took > Duration::from_millis(900), "40 requests at 20 in a second, {refused}: {took:?}");
    }
    Ok(())
}

/// What has to wait for the replies before it is read again, and paid for once.
#[test]
fn a_request_that_is_put_back_is_counted_once() -> io::Result<()> {
    let node = RedisServer::start()?;
    let text = "[users.few]\nrules = \"on nopass ~* &* +@all\"\nrequests_per_second = 40\n";
    let (proxy, _directory) = with_file(text, &node, &[])?;
    let mut client = proxy.client()?;
    assert_eq!(client.ask("AUTH few x")?, "+OK\r\n");
    // As many as it may ask for at once; every other one changes the database, so it waits.
    client.send("GET k\r\nSELECT 1\r\nGET k\r\nSELECT 0\r\n".repeat(9).as_bytes())?;
    assert_eq!(client.replies(36)?.iter().filter(|reply| *reply == b"+OK\r\n").count(), 18);
    let info = proxy.client()?.ask("INFO proxy")?;
    assert!(info.contains("\r\nthrottled:0\r\n"), "{info}");
    Ok(())
}

/// T-LEAK: whatever has a password in it shows it nowhere.
#[test]
fn no_password_is_ever_shown() -> io::Result<()> {
    const CANARY: &str = "canary-7c1f";
    let node = RedisServer::start()?;
    let text = format!(
        "requirepass = \"{CANARY}\"\nlog = \"trace\"\n[users.app]\nrules = \"on >{CANARY} ~* &* +@all\"\nconnections = 9\n"
    );
    let (mut proxy, directory) = with_file(&text, &node, &[])?;
    let (mut admin, mut app) = (proxy.client()?, proxy.client()?);
    let mut seen = String::new();
    for request in [&["AUTH", "missing", CANARY][..], &["HELLO", "3", "AUTH", "missing", CANARY], &["AUTH", CANARY]] {
        seen += &String::from_utf8_lossy(&admin.command(request)?);
    }
    app.command(&["AUTH", "app", CANARY])?;
    seen += &app.ask("CLIENT LIST")?;
    for request in [
        &["ACL", "SETUSER", "more", "on", &format!(">{CANARY}")][..],
        &["MIGRATE", "127.0.0.1", "1", "k", "0", "10", "AUTH", CANARY],
        &["CONFIG", "SET", "requirepass", CANARY],
        &["AUTH", "default", CANARY],
    ] {
        seen += &String::from_utf8_lossy(&app.command(request)?);
    }
    admin.command(&["AUTH", CANARY])?;
    for request in [
        "ACL LIST",
        "ACL GETUSER app",
        "ACL LOG",
        "CLIENT LIST",
        "CLIENT INFO",
        "INFO everything",
        "INFO proxy",
        "SLOWLOG GET 100",
        "PROXY SHOW CLIENTS",
        "PROXY SHOW MEM",
        "PROXY SLOWLOG GET",
    ] {
        seen += &admin.ask(request)?;
    }
    // A file with a mistake is shown with the place of the mistake.
    std::fs::write(directory.join("respool.toml"), text.replace("connections = 9", "connections = [1, 2]"))?;
    proxy.process().signal(rustix::process::Signal::HUP)?;
    wait_until("the reload is refused", PATIENCE, || {
        Ok(proxy.output().iter().any(|line| line.contains("one value is needed here")))
    })?;
    proxy.terminate(PATIENCE)?;
    seen += &proxy.output().join("\n");
    assert!(
        !seen.contains(CANARY),
        "{}",
        seen.lines().filter(|line| line.contains(CANARY)).collect::<Vec<_>>().join("\n")
    );
    assert!(seen.contains("user=app"));
    Ok(())
}

#[test]
fn keys_that_sort_does_not_name_need_a_right_too() -> io::Result<()> {
    let node = RedisServer::start()?;
    let model = RedisServer::start()?;
    let proxy = proxy(&[node.tcp()], &[])?;
    let (mut ours, mut theirs) = (proxy.client()?, model.client()?);
    for request in [
        &["ACL", "SETUSER", "a", "on", "nopass", "~list", "~dst", "+@all"][..],
        &["RPUSH", "list", "1", "2"],
        &["AUTH", "a", "x"],
        &["SORT", "list"],
        &["SORT", "list", "BY", "nosort"],
        &["SORT", "list", "BY", "w_*"],
        &["SORT", "list", "GET", "#"],
        &["SORT", "list", "STORE", "dst"],
        &["SORT", "list", "STORE", "other"],
    ] {
        same(&mut ours, &mut theirs, request)?;
    }
    assert_eq!(ours.command(&["EVAL", "return redis.call('GET', 'other')", "0"])?[..7], *b"-NOPERM");
    Ok(())
}

#[test]
fn users_follow_the_settings_file() -> io::Result<()> {
    let node = RedisServer::start()?;
    let text = "[users.app]\nrules = \"on nopass ~* &* +@all\"\n[users.old]\nrules = \"on nopass ~* &* +@all\"\n";
    let (mut proxy, directory) = with_file(text, &node, &[])?;
    let (mut app, mut old, mut admin) = (proxy.client()?, proxy.client()?, proxy.client()?);
    assert_eq!(app.ask("AUTH app x")?, "+OK\r\n");
    assert_eq!(old.ask("AUTH old x")?, "+OK\r\n");
    std::fs::write(directory.join("respool.toml"), "[users.app]\nrules = \"on nopass ~* &* +@all -get\"\n")?;
    proxy.process().signal(rustix::process::Signal::HUP)?;
    wait_until("the new rules hold", PATIENCE, || Ok(app.ask("GET k")?.starts_with("-NOPERM")))?;
    assert_eq!(old.read_to_close()?, b"");
    assert_eq!(admin.command(&["SET", "k", "v"])?, b"+OK\r\n");
    assert_eq!(admin.command(&["GET", "k"])?, bulk("v"), "a user that is not changed stays");
    Ok(())
}

#[test]
fn subscribers_and_transactions_follow_their_users_rules() -> io::Result<()> {
    let node = RedisServer::start()?;
    let proxy = proxy(&[node.tcp()], &["--admin-commands", "allow"])?;
    let (mut admin, mut one, mut two, mut three) = (proxy.client()?, proxy.client()?, proxy.client()?, proxy.client()?);
    admin.ask("ACL SETUSER app on nopass ~* +@all &news:* &other &p*")?;
    for client in [&mut one, &mut two, &mut three] {
        assert_eq!(client.ask("AUTH app x")?, "+OK\r\n");
    }
    assert_eq!(
        one.ask("SUBSCRIBE secret")?,
        "-NOPERM this user has no permissions to access one of the channels used as arguments\r\n"
    );
    assert!(one.ask("SUBSCRIBE other")?.contains("subscribe"));
    assert!(two.ask("SUBSCRIBE news:1")?.contains("subscribe"));
    assert!(two.ask("PSUBSCRIBE p*")?.contains("psubscribe"));
    assert_eq!(three.ask("MULTI")?, "+OK\r\n");
    assert!(three.ask("SUBSCRIBE secret")?.starts_with("-NOPERM"));
    assert!(three.ask("EXEC")?.starts_with("-EXECABORT"));
    assert_eq!(three.ask("MULTI")?, "+OK\r\n");
    assert_eq!(three.ask("SET k v")?, "+QUEUED\r\n");
    assert_eq!(admin.ask("ACL SETUSER app resetchannels &news:* &p* -set")?, "+OK\r\n");
    assert_eq!(one.read_to_close()?, b"", "it listened to what it may not hear any more");
    assert_eq!(admin.ask("PUBLISH news:1 m")?, ":1\r\n");
    assert!(String::from_utf8_lossy(&two.reply()?).contains("news:1"), "it may still hear what it hears");
    assert!(three.ask("EXEC")?.starts_with("-EXECABORT"), "what was queued was allowed under other rules");
    assert_eq!(admin.ask("EXISTS k")?, ":0\r\n");
    // The password that CONFIG SET sets is the proxy's, not the node's.
    assert_eq!(admin.ask("CONFIG SET requirepass secret")?, "+OK\r\n");
    assert!(proxy.client()?.ask("GET k")?.starts_with("-NOAUTH"));
    assert_eq!(node.client()?.ask("GET k")?, "$-1\r\n");
    assert_eq!(admin.ask("CONFIG SET requirepass ")?.as_bytes()[0], b'-');
    assert_eq!(admin.command(&["CONFIG", "SET", "requirepass", ""])?, b"+OK\r\n");
    assert_eq!(proxy.client()?.ask("GET k")?, "$-1\r\n");
    Ok(())
}

#[test]
fn a_user_may_have_a_name_of_its_own_at_the_nodes() -> io::Result<()> {
    let node = RedisServer::start()?;
    let mut direct = node.client()?;
    assert_eq!(direct.ask("ACL SETUSER tenant on >canary ~tenant:* &* +@all")?, "+OK\r\n");
    let text = "[users.tenant]\nrules = \"on nopass ~* &* +@all -acl\"\nnode_username = \"tenant\"\n\
                node_password = \"canary\"\n";
    let (proxy, _directory) = with_file(text, &node, &[])?;
    let (mut tenant, mut plain) = (proxy.client()?, proxy.client()?);
    assert_eq!(tenant.ask("SET other 1")?, "+OK\r\n", "it is the default user still");
    assert_eq!(tenant.ask("AUTH tenant x")?, "+OK\r\n");
    assert_eq!(tenant.ask("SET tenant:1 v")?, "+OK\r\n");
    assert!(tenant.ask("GET other")?.starts_with("-NOPERM"), "the node refuses it");
    assert!(tenant.command(&["EVAL", "return redis.call('GET', 'other')", "0"])?.starts_with(b"-"), "scripts as well");
    assert_eq!(tenant.command(&["EVAL", "return redis.call('GET', 'tenant:1')", "0"])?, bulk("v"));
    assert_eq!(plain.ask("GET other")?, "$1\r\n1\r\n");
    assert_eq!(tenant.ask("SELECT 3")?, "+OK\r\n");
    assert!(tenant.ask("GET other")?.starts_with("-NOPERM"), "in every database");
    assert!(tenant.ask("HELLO 3")?.starts_with('%'));
    assert!(tenant.ask("GET other")?.starts_with("-NOPERM"), "in every protocol");
    assert_eq!(tenant.ask("RESET")?, "+RESET\r\n");
    assert_eq!(tenant.ask("GET other")?, "$1\r\n1\r\n");
    assert!(direct.ask("CLIENT LIST")?.contains("user=tenant"));
    Ok(())
}

/// T-AUTH: one reply for each request, whatever becomes of AUTH.
#[test]
fn every_attempt_to_authenticate_has_one_reply() -> io::Result<()> {
    let node = RedisServer::start()?;
    let model = RedisServer::start_with(&["--requirepass", "secret"])?;
    let proxy = proxy(&[node.tcp()], &["--requirepass", "secret"])?;
    for requests in [
        &["PING", "AUTH bad", "PING"][..],
        &["AUTH secret", "HELLO 3 AUTH default bad", "PING"],
        &["AUTH secret", "MULTI", "AUTH bad", "EXEC", "PING"],
        &["AUTH secret", "MULTI", "SET k v", "AUTH secret", "EXEC", "GET k"],
        &["AUTH secret", "GET k", "AUTH default bad", "GET k", "RESET", "GET k", "AUTH secret", "GET k"],
    ] {
        let (mut ours, mut theirs) = (proxy.client()?, model.client()?);
        let mut bytes = Vec::new();
        for request in requests {
            bytes.extend(respool_testkit::request(&request.split(' ').collect::<Vec<_>>()));
        }
        ours.send(&bytes)?;
        theirs.send(&bytes)?;
        let shown = |replies: Vec<Vec<u8>>| replies.iter().map(|r| r.escape_ascii().to_string()).collect::<Vec<_>>();
        assert_eq!(shown(ours.replies(requests.len())?), shown(theirs.replies(requests.len())?), "{requests:?}");
    }
    Ok(())
}

/// What waits when rights are taken is served, and who monitors goes on, as at a server; what is asked afterwards is refused.
#[test]
fn what_was_begun_before_rights_were_taken_goes_on() -> io::Result<()> {
    let (node, model) = (RedisServer::start()?, RedisServer::start()?);
    let proxy = proxy(&[node.tcp()], &["--admin-commands", "allow"])?;
    let told = |operator: &mut Client, mut connect: Box<dyn FnMut() -> io::Result<Client> + '_>| -> io::Result<_> {
        let mut told = vec![operator.ask("ACL SETUSER u on nopass ~app:* +@all")?];
        let mut user = || {
            let mut client = connect()?;
            assert_eq!(client.ask("AUTH u any")?, "+OK\r\n");
            Ok::<_, io::Error>(client)
        };
        let (mut waiting, mut monitor) = (user()?, user()?);
        told.push(monitor.ask("MONITOR")?);
        waiting.send(&request(&["BLPOP", "app:l", "0"]))?;
        wait_until("it waits", PATIENCE, || Ok(operator.ask("INFO clients")?.contains("blocked_clients:1")))?;
        told.push(operator.ask("ACL SETUSER u resetkeys -@all")?);
        told.push(operator.ask("RPUSH app:l element")?);
        told.push(String::from_utf8_lossy(&waiting.reply()?).into_owned());
        told.push(waiting.ask("BLPOP app:l 0")?);
        // What the monitor was told of before, and what it is told of now.
        let mut seen = String::new();
        while !seen.contains("\"RPUSH\" \"app:l\" \"element\"") {
            seen = String::from_utf8_lossy(&monitor.reply()?).into_owned();
        }
        Ok(told)
    };
    let ours = told(&mut proxy.client()?, Box::new(|| proxy.client()))?;
    let theirs = told(&mut model.client()?, Box::new(|| model.client()))?;
    assert_eq!(ours, theirs);
    assert!(ours[4].starts_with("*2\r\n") && ours[5].starts_with("-NOPERM "), "{ours:?}");
    Ok(())
}

/// Errors of a node name a key as the node calls it: that is the tenant's own, and no other name of the node comes with it.
#[test]
fn a_tenant_sees_the_names_of_its_own_keys_at_the_node_alone() -> io::Result<()> {
    let node = RedisServer::start()?;
    let tenants = ["t7", "t8"].map(|name| {
        let user = format!("[users.{name}]\nrules = \"on >{name} ~* &* +@all\"\n");
        format!("{user}[[routes]]\nname = \"{name}\"\nusers = [\"{name}\"]\nto = \"main\"\nadd = \"{name}:\"\n")
    });
    let (proxy, _directory) = with_file(&tenants.concat(), &node, &[])?;
    let tenant = |name: &str| {
        let mut client = proxy.client()?;
        assert_eq!(client.ask(&format!("AUTH {name} {name}"))?, "+OK\r\n");
        Ok::<_, io::Error>(client)
    };
    let (mut one, mut other) = (tenant("t7")?, tenant("t8")?);
    assert_eq!(other.ask("XGROUP CREATE s g $ MKSTREAM")?, "+OK\r\n");
    assert!(other.ask("XADD s * f v")?.starts_with('$'));
    for words in ["XCLAIM s g c 0 1-1", "XAUTOCLAIM s g c 0 0", "XPENDING s g", "XGROUP DELCONSUMER s g c"] {
        let told = one.ask(words)?;
        assert!(told.starts_with('-') && !told.contains("t8"), "{words}: {told:?}");
        assert!(!told.starts_with("-NOGROUP ") || told.contains("'t7:s'"), "{words}: {told:?}");
    }
    assert!(one.ask("XPENDING s g")?.starts_with("-NOGROUP No such key 't7:s' or consumer group 'g'"));
    assert!(one.ask("EVAL return{KEYS[1]} 1 s")?.contains("t7:s"));
    assert_eq!(node.client()?.ask("KEYS *")?, "*1\r\n$4\r\nt8:s\r\n");
    Ok(())
}
