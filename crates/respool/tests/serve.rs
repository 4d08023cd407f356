//! `respool serve` as a process: its banner, its signals, its HTTP side, and other programs' command lines.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use respool::settings::Setting;
use respool::settings::row::Kind;
use respool_testkit::{Address, Client, TempDir, wait_until};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use support::{LIMIT, Running, respool};

fn serve(args: &[&str]) -> Running {
    Running::start(respool(&["serve", "--listen", "127.0.0.1:0"]).args(args))
}

fn http(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the HTTP side listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a timeout can be set");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").expect("the request goes out");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("the whole response comes");
    response
}

#[test]
fn a_server_starts_serves_and_ends_leaving_nothing_behind() {
    let directory = TempDir::new().expect("a directory");
    let socket = directory.join("s");
    let server = serve(&["--listen", socket.to_str().expect("UTF-8"), "--unix-mode", "0660"]);
    assert_eq!(server.client(0).ask("SET k v").expect("a reply"), "+OK\r\n");
    let mut by_socket = Client::connect(&Address::Unix(socket.clone())).expect("it accepts");
    assert_eq!(by_socket.ask("GET k").expect("a reply"), "$1\r\nv\r\n");
    drop(by_socket);
    server.end();
    assert!(!socket.exists(), "the socket's file is gone");
}

#[test]
fn sigterm_lets_replies_out_that_are_owed() {
    let server = serve(&["--nodes", "embedded:,embedded:"]);
    let mut client = server.client(0);
    let requests = "PING\r\n".repeat(1000);
    client.send(requests.as_bytes()).expect("requests go out");
    assert_eq!(client.reply().expect("a reply"), b"+PONG\r\n");
    server.end();
    // Whatever was read before the signal is answered, and then comes an end and no reset.
    let rest = client.read_to_close().expect("a clean end");
    assert!(rest.len().is_multiple_of(7) && rest.chunks(7).all(|reply| reply == b"+PONG\r\n"), "{} bytes", rest.len());
}

#[test]
fn sighup_takes_what_it_can_and_keeps_the_rest() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.join("r.toml");
    let write = |text: &str| fs::write(&file, format!("listen = \"127.0.0.1:0\"\n{text}")).expect("a file");
    write("max_clients = 50\n");
    let server = Running::start(respool(&["serve", "--config"]).arg(&file));
    let mut client = server.client(0);
    let mut maxclients = || client.ask("INFO clients").expect("a reply").contains("maxclients:60\r\n");
    assert!(!maxclients());

    write("max_clients = 60\nbacklog = 7\n");
    server.process.signal(Signal::HUP).expect("it is there");
    server.says("max_clients is now 60");
    server.says("backlog of pool main was changed to 7, which needs a restart");
    wait_until("the worker has the new settings", LIMIT, || Ok(maxclients())).expect("it takes them");

    write("max_clients = 60\nbulk_bytes_max = \"1mb\"\nkeepalive = \"7s\"\ntcp_user_timeout = \"off\"\n");
    server.process.signal(Signal::HUP).expect("it is there");
    for now in [
        "bulk_bytes_max of pool main is now 1mb",
        "keepalive of pool main is now 7s",
        "tcp_user_timeout of pool main is now off",
    ] {
        server.says(now);
    }
    let mut refuses = || {
        let mut client = server.client(0);
        client.send(b"*2\r\n$4\r\nECHO\r\n$1048577\r\n").expect("it is taken");
        Ok(client.ask("PING").expect("a reply or the value") == "-ERR Protocol error: invalid bulk length\r\n")
    };
    wait_until("the worker has the new limit", LIMIT, &mut refuses).expect("it takes it");

    write("max_clients = 0\n");
    server.process.signal(Signal::HUP).expect("it is there");
    server.says("the settings were not taken, everything stays as it was");
    server.says("allowed are 1 to 10000000");
    assert!(maxclients());
    server.end();
}

#[test]
fn sighup_brings_back_what_config_set_changed() {
    let server = Running::start(&mut respool(&["serve", "--listen", "127.0.0.1:0", "--admin-commands", "allow"]));
    let mut client = server.client(0);
    let mut shown = |name: &str| client.ask(&format!("CONFIG GET {name}")).expect("a reply");
    let (timeout, samples) = (shown("timeout"), shown("maxmemory-samples"));
    let set = "CONFIG SET timeout 9 maxmemory-samples 9 maxclients 60";
    assert_eq!(server.client(0).ask(set).expect("a reply"), "+OK\r\n");
    assert_ne!((shown("timeout"), shown("maxmemory-samples")), (timeout.clone(), samples.clone()));
    server.process.signal(Signal::HUP).expect("it is there");
    wait_until("the settings hold again", LIMIT, || Ok(shown("timeout") == timeout)).expect("it reads them");
    assert!(!shown("maxclients").contains("60"), "they are of one reload");
    assert_ne!(shown("maxmemory-samples"), samples, "it is no live setting");
    server.end();
}

#[test]
fn sighup_changes_only_users_that_the_settings_changed() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.join("r.toml");
    let user = |name: &str, rules: &str, more: &str| format!("[users.{name}]\nrules = \"on nopass {rules}\"\n{more}");
    let write = |users: &[String]| {
        fs::write(&file, format!("listen = \"127.0.0.1:0\"\n{}", users.concat())).expect("a file");
    };
    let (ann, bob) = (user("ann", "~a:* +@all", ""), user("bob", "~b:* +@all", ""));
    write(&[ann.clone(), bob.clone(), user("eve", "~e:* +@all", "")]);
    let server = Running::start(respool(&["serve", "--config"]).arg(&file));
    let mut admin = server.client(0);
    let mut of_bob = server.client(0);
    assert_eq!(of_bob.ask("AUTH bob x").expect("a reply"), "+OK\r\n");
    for words in ["SETUSER ann ~more:*", "SETUSER bob ~more:*", "SETUSER new on nopass ~n:* +get", "DELUSER eve"] {
        assert!(admin.ask(&format!("ACL {words}")).expect("a reply").starts_with(['+', ':']), "{words}");
    }
    let keys_of = |admin: &mut Client, name: &str| {
        let lines = admin.ask("ACL LIST").expect("a reply");
        let line = lines.lines().find(|line| line.starts_with(&format!("user {name} ")))?.to_owned();
        Some(line.split(' ').filter(|rule| rule.starts_with('~')).collect::<Vec<_>>().join(" "))
    };

    // A limit alone changes no rules.
    write(&[user("ann", "~a:* +@all", "requests_per_second = 1000\n"), bob.clone(), user("eve", "~e:* +@all", "")]);
    server.process.signal(Signal::HUP).expect("it is there");
    server.says("the tables of users were taken over");
    assert_eq!(keys_of(&mut admin, "ann").as_deref(), Some("~a:* ~more:*"));

    // Of ann something else is said, of bob nothing; eve has no table any more, and zoe has one.
    write(&[user("ann", "~A:* +@all", ""), bob, user("zoe", "~z:* +@all", "")]);
    server.process.signal(Signal::HUP).expect("it is there");
    server.says("changed are the users ann, zoe, eve");
    server.says("what ACL SETUSER made of ann is forgotten");
    for (name, keys) in [
        ("ann", Some("~A:*")),
        ("bob", Some("~b:* ~more:*")),
        ("zoe", Some("~z:*")),
        ("new", Some("~n:*")),
        ("eve", None),
    ] {
        // The worker takes them in its own time.
        wait_until(name, LIMIT, || Ok(keys_of(&mut admin, name).as_deref() == keys)).expect("it is so");
    }
    assert_eq!(of_bob.ask("GET more:k").expect("a reply"), "$-1\r\n");
    server.end();
}

#[test]
fn metrics_count_what_clients_do() {
    let server = serve(&["--nodes", "embedded:,embedded:", "--metrics", "127.0.0.1:0", "--workers", "2"]);
    let line = server.process.wait_for_line("metrics at", LIMIT).expect("the banner says where");
    let address = line.trim().trim_start_matches("metrics at http://").trim_end_matches("/metrics").to_owned();
    let mut clients: Vec<Client> = (0..4).map(|_| server.client(0)).collect();
    for client in &mut clients {
        for key in ["a", "b", "c"] {
            client.ask(&format!("SET {key} v")).expect("a reply");
        }
    }
    wait_until("it is ready", LIMIT, || Ok(http(&address, "/readyz").ends_with("ready\n"))).expect("it becomes so");
    assert!(http(&address, "/healthz").ends_with("ok\n"));
    let is_counted = |line: &str| http(&address, "/metrics").lines().any(|counted| counted == line);
    for line in ["respool_requests_total 12", "respool_clients 4", "respool_clients_accepted_total 4"] {
        wait_until(line, LIMIT, || Ok(is_counted(line))).expect("it is counted");
    }
    server.end();
}

#[test]
fn an_address_in_use_is_an_error_that_names_it() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it has an address").to_string();
    for args in [["--listen", &address], ["--metrics", &address]] {
        let output = respool(&["serve", "--listen", "127.0.0.1:0"]).args(args).output().expect("the program starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(&address), "{stderr}");
    }
}

#[test]
fn a_port_belongs_to_one_process_however_many_workers_share_it() {
    let proxy = |listen: &str, workers: &str| {
        respool(&["serve", "--listen", listen, "--node", "127.0.0.1:1", "--workers", workers])
    };
    let first = Running::start(&mut proxy("127.0.0.1:0", "2"));
    let address = first.addresses()[0].to_string();
    let output = proxy(&address, "2").output().expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(&format!("cannot listen on {address}: Address already in use")), "{stderr}");
}

#[test]
fn a_process_that_is_out_of_files_says_so_and_goes_on() {
    let server = serve(&[]);
    // The limit is lowered after the shares were computed: the same happens when the whole system runs out of files.
    let pid = Pid::from_raw(server.process.pid().cast_signed()).expect("a process");
    let few = Rlimit { current: Some(30), maximum: Some(30) };
    rustix::process::prlimit(Some(pid), Resource::Nofile, few).expect("its limit is lowered");
    let mut clients: Vec<Client> = (0..50).map(|_| server.client(0)).collect();
    server.says("cannot accept");
    let began = Instant::now();
    wait_until("it has tried a few times", LIMIT, || Ok(began.elapsed() > Duration::from_millis(500))).expect("it has");
    // Those that wait are served as others leave: all of those that are left have room now.
    let mut last = clients.pop().expect("there are fifty");
    clients.drain(..45);
    assert_eq!(last.ask("PING").expect("a reply"), "+PONG\r\n");
    let complaints = server.end().iter().filter(|line| line.contains("cannot accept")).count();
    assert_eq!(complaints, 1);
}

#[test]
fn the_longest_times_that_are_allowed_are_taken() {
    for setting in [Setting::Keepalive, Setting::TcpUserTimeout] {
        let Kind::Duration { max, .. } = &setting.row().kind else { panic!("{setting:?} is a time") };
        let longest = format!("{}ms", max.as_millis());
        serve(&[&format!("--{}", setting.row().flag()), &longest]).end();
    }
}

#[test]
fn it_serves_under_the_command_line_of_rmux() {
    let nodes = [serve(&[]), serve(&[])];
    let addresses: Vec<String> = nodes.iter().map(|node| node.addresses()[0].to_string()).collect();
    let flags = ["-host=127.0.0.1", "-port", "0", "-poolSize=20", "-tcpConnections", &addresses.join(" ")];
    let proxy = Running::start(&mut respool(&flags));
    proxy.says("-poolSize=20: no effect");
    let mut client = proxy.client(0);
    for key in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(client.ask(&format!("SET {key} {key}")).expect("a reply"), "+OK\r\n");
    }
    let sizes: Vec<String> = nodes.iter().map(|node| node.client(0).ask("DBSIZE").expect("a reply")).collect();
    // 33 * 0 + 'a' and so on: single letters are spread by their parity.
    assert_eq!(sizes, [":3\r\n", ":3\r\n"]);
    proxy.end();
}

#[test]
fn the_file_of_rmux_makes_several_pools_in_one_process() {
    let nodes = [serve(&[]), serve(&[])];
    let directory = TempDir::new().expect("a directory");
    let file = directory.join("rmux.json");
    let pool = |node: &Running| {
        format!(r#"{{"host": "127.0.0.1", "port": 0, "tcpConnections": ["{}"]}}"#, node.addresses()[0])
    };
    fs::write(&file, format!("[{}, {}]", pool(&nodes[0]), pool(&nodes[1]))).expect("a file");
    let proxy = Running::start(respool(&["rmux", "-config"]).arg(&file));
    for (listener, node) in nodes.iter().enumerate() {
        assert_eq!(proxy.client(listener).ask(&format!("SET mine {listener}")).expect("a reply"), "+OK\r\n");
        assert_eq!(node.client(0).ask("GET mine").expect("a reply"), format!("$1\r\n{listener}\r\n"));
    }
    proxy.end();
}

#[test]
fn a_client_of_one_pool_changes_nothing_for_the_others() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.join("respool.toml");
    let pool = |name: &str| format!("[[pool]]\nname = \"{name}\"\nlisten = \"127.0.0.1:0\"\n");
    fs::write(&file, pool("first") + &pool("second")).expect("a file");
    let server = Running::start(respool(&["serve", "--admin-commands", "allow", "--config"]).arg(&file));
    let mut client = server.client(0);
    for shared in
        ["maxclients 1", "protected-mode no", "loglevel warning", "shutdown-timeout 0", "timeout 9 maxclients 1"]
    {
        let told = client.ask(&format!("CONFIG SET {shared}")).expect("a reply");
        assert!(told.contains("can't set config of the process: several pools share it"), "{shared}: {told}");
    }
    let told = client.ask("SHUTDOWN NOSAVE").expect("a reply");
    assert!(told.contains("several pools share this process"), "{told}");
    assert_eq!(client.ask("CONFIG SET timeout 9").expect("a reply"), "+OK\r\n");
    assert_eq!(client.ask("CONFIG GET timeout").expect("a reply"), "*2\r\n$7\r\ntimeout\r\n$1\r\n9\r\n");
    let mut other = server.client(1);
    assert_eq!(other.ask("CONFIG GET timeout").expect("a reply"), "*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n");
    server.end();
}

/// Two nodes of a pool.
const NODES: &str = "nodes = [\"embedded:\", \"embedded:\"]\n";

/// Two pools of one process, each with two workers if it has nodes; its users are those of an ACL file if `acl` is its text.
fn two_pools(directory: &TempDir, nodes: &str, acl: Option<&str>) -> Running {
    let pool = |name: &str| format!("[[pool]]\nname = \"{name}\"\nlisten = \"127.0.0.1:0\"\n{nodes}");
    let file = directory.join("respool.toml");
    let users = acl.map_or_else(String::new, |text| {
        let path = directory.join("users.acl");
        fs::write(&path, text).expect("a file");
        format!("aclfile = {path:?}\n")
    });
    fs::write(&file, format!("workers = 2\n{users}{}{}", pool("first"), pool("second"))).expect("a file");
    Running::start(respool(&["serve", "--admin-commands", "allow", "--config"]).arg(&file))
}

/// Clients of a pool, enough for both of its workers to have some.
fn clients_of(server: &Running, pool: usize, first: &str) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..8).map(|_| server.client(pool)).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.ask(first).expect("a reply"), "+OK\r\n"));
    clients
}

/// What a client is answered, or that it has been disconnected.
fn answer_of(client: &mut Client, request: &str) -> String {
    client.ask(request).unwrap_or_else(|_| "gone".to_owned())
}

#[test]
fn users_change_for_all_pools_before_the_reply() {
    let directory = TempDir::new().expect("a directory");
    let server = two_pools(&directory, NODES, None);
    let mut admin = server.client(0);
    let mut change = |request: &str, reply: &str| assert_eq!(admin.ask(request).expect("a reply"), reply, "{request}");
    for round in 0..20 {
        change("ACL SETUSER bob reset on >old ~* &* +@all", "+OK\r\n");
        let mut there = clients_of(&server, 1, "AUTH bob old");
        change("ACL SETUSER bob resetpass >new -@all +ping", "+OK\r\n");
        for client in &mut there {
            assert!(answer_of(client, "SET k v").starts_with("-NOPERM"), "{round}");
            assert_eq!(answer_of(client, "PING"), "+PONG\r\n", "it goes on under the new rules");
        }
        assert!(answer_of(&mut server.client(1), "AUTH bob old").starts_with("-WRONGPASS"), "{round}");
        let mut others = clients_of(&server, 1, "AUTH bob new");
        change("ACL DELUSER bob", ":1\r\n");
        for client in there.iter_mut().chain(&mut others) {
            assert_eq!(answer_of(client, "PING"), "gone", "{round}");
        }
        assert!(answer_of(&mut server.client(1), "AUTH bob new").starts_with("-WRONGPASS"), "{round}");
    }
    change("CONFIG SET requirepass secret", "+OK\r\n");
    assert!(answer_of(&mut server.client(1), "PING").starts_with("-NOAUTH"));
    change("ACL SETUSER default resetpass >other", "+OK\r\n");
    assert!(answer_of(&mut server.client(1), "AUTH secret").starts_with("-WRONGPASS"));
    assert_eq!(answer_of(&mut server.client(1), "AUTH other"), "+OK\r\n");
    server.end();
}

#[test]
fn an_acl_file_is_loaded_for_all_pools_before_the_reply() {
    const OPEN: &str = "user default on nopass ~* &* +@all\n";
    let directory = TempDir::new().expect("a directory");
    let server = two_pools(&directory, NODES, Some(&format!("{OPEN}user bob on >old ~* &* +@all\n")));
    let mut there = clients_of(&server, 1, "AUTH bob old");
    fs::write(directory.join("users.acl"), format!("{OPEN}user bob on >old ~* &* -@all\nuser carl on >pw +@all\n"))
        .expect("a file");
    assert_eq!(server.client(0).ask("ACL LOAD").expect("a reply"), "+OK\r\n");
    there.iter_mut().for_each(|client| assert!(answer_of(client, "SET k v").starts_with("-NOPERM")));
    clients_of(&server, 1, "AUTH carl pw");
    server.end();
}

#[test]
fn the_clients_of_a_user_are_killed_in_all_pools() {
    let directory = TempDir::new().expect("a directory");
    let server = two_pools(&directory, NODES, None);
    let mut admin = server.client(0);
    assert_eq!(admin.ask("ACL SETUSER bob on >pw ~* &* +@all").expect("a reply"), "+OK\r\n");
    let mut clients = clients_of(&server, 0, "AUTH bob pw");
    clients.extend(clients_of(&server, 1, "AUTH bob pw"));
    let mut other_user = server.client(1);
    assert_eq!(other_user.ask("PING").expect("a reply"), "+PONG\r\n");
    assert_eq!(admin.ask("CLIENT KILL USER bob").expect("a reply"), ":16\r\n");
    clients.iter_mut().for_each(|client| assert_eq!(answer_of(client, "PING"), "gone"));
    assert_eq!(other_user.ask("PING").expect("a reply"), "+PONG\r\n", "another user");
    server.end();
}

/// Entries of the log of denials after so many failed logins.
fn denials(server: &Running, pool: usize, logins: usize) -> String {
    for number in 0..logins {
        let reply = server.client(0).ask(&format!("AUTH user{number} wrong")).expect("a reply");
        assert!(reply.starts_with("-WRONGPASS"), "{reply}");
    }
    let reply = server.client(pool).ask("ACL LOG").expect("a reply");
    reply.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn the_length_of_the_acl_log_holds_until_settings_are_read() {
    let directory = TempDir::new().expect("a directory");
    let server = two_pools(&directory, "", None);
    let (mut first, mut second) = (server.client(0), server.client(1));
    assert_eq!(first.ask("CONFIG SET acllog-max-len 3").expect("a reply"), "+OK\r\n");
    assert_eq!(denials(&server, 0, 5), "*3");
    for (client, other) in [(&mut first, "CONFIG SET timeout 500"), (&mut second, "CONFIG SET slowlog-max-len 9")] {
        assert_eq!(client.ask(other).expect("a reply"), "+OK\r\n");
        let shown = client.ask("CONFIG GET acllog-max-len").expect("a reply");
        assert_eq!(shown, "*2\r\n$14\r\nacllog-max-len\r\n$1\r\n3\r\n", "in every pool");
        assert_eq!(denials(&server, 1, 8), "*3", "after {other}");
    }
    assert_eq!(second.ask("CONFIG SET acllog-max-len 0").expect("a reply"), "+OK\r\n");
    assert_eq!(first.ask("CONFIG SET timeout 501").expect("a reply"), "+OK\r\n");
    assert_eq!(denials(&server, 0, 2), "*0");
    server.process.signal(Signal::HUP).expect("it is there");
    let is_as_settings_say = || Ok(server.client(0).ask("CONFIG GET acllog-max-len")?.contains("128"));
    wait_until("the settings hold again", LIMIT, is_as_settings_say).expect("they do");
    assert_eq!(denials(&server, 0, 8), "*8", "what is shown is what holds");
    server.end();
}

#[test]
fn it_serves_under_redis_shardings_flags_and_the_environment() {
    let node = serve(&[]);
    let nodes = format!("--nodes={}", node.addresses()[0]);
    let mut command = respool(&["redis-sharding", &nodes, "--port=1", "--N=1"]);
    let proxy = Running::start(command.env("RESPOOL_LISTEN", "127.0.0.1:0"));
    assert_eq!(proxy.client(0).ask("SET k v").expect("a reply"), "+OK\r\n");
    proxy.end();
}

#[test]
fn a_password_for_nodes_is_sent_to_them_and_shown_nowhere() {
    const CANARY: &str = "c4n4ry";
    // A server without passwords refuses it, which the proxy has reason to talk about.
    let node = serve(&[]);
    let address = node.addresses()[0].to_string();
    let mut command = respool(&["serve", "--listen", "127.0.0.1:0", "--node", &address, "--log", "trace"]);
    let proxy = Running::start(command.env("RESPOOL_NODE_PASSWORD", CANARY));
    let mut client = proxy.client(0);
    let replies = ["GET k", "INFO everything", "CLIENT LIST", "CONFIG GET *", "COMMAND COUNT"]
        .map(|request| client.ask(request).expect("a reply"));
    assert!(replies.iter().all(|reply| !reply.contains(CANARY)), "{replies:?}");
    assert!(proxy.end().iter().all(|line| !line.contains(CANARY)));
}
