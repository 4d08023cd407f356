//! Pool modes: for how long a client has connections to itself, by setting, by user and by route.

use std::io;

use respool_testkit::{Client, PATIENCE, RedisServer, Respool, TempDir, wait_until};

use super::{bulk, proxy};

fn with_file(text: &str, server: &RedisServer) -> io::Result<(Respool, TempDir)> {
    let directory = TempDir::new()?;
    let path = directory.join("respool.toml");
    std::fs::write(&path, text)?;
    let shown = path.display().to_string();
    Ok((proxy(&[server.tcp()], &["--config", &shown])?, directory))
}

/// Sees on which connections a node is asked.
struct Watcher {
    monitor: Client,
    asked: usize,
}

impl Watcher {
    fn of(node: &RedisServer) -> io::Result<Self> {
        let mut monitor = node.client()?;
        assert_eq!(monitor.ask("MONITOR")?, "+OK\r\n");
        Ok(Self { monitor, asked: 0 })
    }

    /// The connection to the node that a client's requests go by.
    fn connection_of(&mut self, client: &mut Client, prefix: &str) -> io::Result<String> {
        self.asked += 1;
        let key = format!("{prefix}probe-{}", self.asked);
        client.ask(&format!("EXISTS {key}"))?;
        loop {
            // 1.0 [0 127.0.0.1:1] "EXISTS" "probe-1"
            let line = String::from_utf8_lossy(&self.monitor.reply()?).into_owned();
            if line.contains(&key) {
                let place = line.split(['[', ']']).nth(1).and_then(|place| place.split(' ').nth(1));
                return place.map(str::to_owned).ok_or_else(|| io::Error::other(line));
            }
        }
    }
}

/// The lines of PROXY SHOW PINS with this word.
fn pins(proxy: &Respool, word: &str) -> io::Result<usize> {
    Ok(proxy.client()?.ask("PROXY SHOW PINS")?.matches(&format!("\r\n{word}\r\n")).count())
}

#[test]
fn sessions_have_connections_to_themselves_and_leave_them_clean() -> io::Result<()> {
    let node = RedisServer::start()?;
    let proxy = proxy(&[node.tcp()], &["--pool-mode", "session"])?;
    let mut watcher = Watcher::of(&node)?;
    let (mut ann, mut bob) = (proxy.client()?, proxy.client()?);
    let of_ann = watcher.connection_of(&mut ann, "")?;
    assert_ne!(of_ann, watcher.connection_of(&mut bob, "")?);
    assert_eq!(ann.ask("SET k 1")?, "+OK\r\n");
    // Watched there, with its own write in between, as on a connection to the node itself.
    assert_eq!(ann.ask("WATCH k")?, "+OK\r\n");
    assert_eq!(ann.ask("SET k 2")?, "+OK\r\n");
    assert_eq!(ann.ask("MULTI")?, "+OK\r\n");
    assert_eq!(ann.ask("GET k")?, "+QUEUED\r\n");
    assert_eq!(ann.ask("EXEC")?, "*-1\r\n");
    assert_eq!(ann.ask("WATCH k")?, "+OK\r\n");
    assert_eq!(watcher.connection_of(&mut ann, "")?, of_ann);
    assert!(pins(&proxy, "session")? >= 2 && pins(&proxy, "watch")? == 1);
    assert!(ann.ask("PROXY EXPLAIN GET k")?.contains("$4\r\nmode\r\n$7\r\nsession\r\n"));
    // She leaves in the middle of watching: the next client of that connection watches nothing.
    drop(ann);
    bob.ask("SET k 3")?;
    wait_until("her connection is cleaned", PATIENCE, || Ok(pins(&proxy, "watch")? == 0))?;
    let mut eve = proxy.client()?;
    for _ in 0..2 {
        assert_eq!(eve.ask("MULTI")?, "+OK\r\n");
        assert_eq!(eve.ask("GET k")?, "+QUEUED\r\n");
        assert_eq!(eve.ask("EXEC")?, "*1\r\n$1\r\n3\r\n");
    }
    Ok(())
}

/// The docs say why it is kept here until EXEC in this mode, too.
#[test]
fn a_sessions_transaction_is_one_piece_on_its_own_connection() -> io::Result<()> {
    let node = RedisServer::start()?;
    let proxy = proxy(&[node.tcp()], &["--pool-mode", "session"])?;
    let mut watcher = Watcher::of(&node)?;
    let (mut ann, mut bob) = (proxy.client()?, proxy.client()?);
    let of_ann = watcher.connection_of(&mut ann, "")?;
    assert_eq!(ann.ask("MULTI")?, "+OK\r\n");
    assert_eq!(ann.ask("SET k 1")?, "+QUEUED\r\n");
    assert_eq!(bob.ask("SET k 2")?, "+OK\r\n");
    // The node has heard of nothing of it that a client which leaves would leave behind, or a node that restarts forget.
    let clients = node.client()?.ask("CLIENT LIST")?;
    assert!(clients.lines().filter(|line| line.contains("addr=")).all(|line| line.contains(" multi=-1 ")), "{clients}");
    node.client()?.ask("CLIENT KILL TYPE normal SKIPME yes")?;
    let mut watcher = Watcher::of(&node)?;
    assert_eq!(ann.ask("INCR k")?, "+QUEUED\r\n");
    wait_until("the node is there again", PATIENCE, || Ok(bob.ask("EXISTS k")? == ":1\r\n"))?;
    assert_eq!(ann.ask("EXEC")?, "*2\r\n+OK\r\n:2\r\n");
    let mut seen = Vec::new();
    while seen.len() < 6 {
        let line = String::from_utf8_lossy(&watcher.monitor.reply()?).trim_end().to_owned();
        if let Some((_, command)) = line.split_once("] ")
            && ["\"MULTI\"", "\"SET\"", "\"INCR\"", "\"EXEC\""].iter().any(|name| command.starts_with(name))
        {
            seen.push((line.split(['[', ']']).nth(1).unwrap_or_default().to_owned(), command.to_owned()));
        }
    }
    let commands: Vec<&str> = seen.iter().map(|(_, command)| command.as_str()).collect();
    assert_eq!(commands[..2], ["\"MULTI\"", "\"EXEC\""], "whether the node takes it on this connection");
    assert_eq!(commands[2..], ["\"MULTI\"", "\"SET\" \"k\" \"1\"", "\"INCR\" \"k\"", "\"EXEC\""]);
    assert!(seen.iter().all(|(place, _)| *place == seen[0].0), "{seen:?}");
    let own = watcher.connection_of(&mut ann, "")?;
    assert!(seen[0].0.ends_with(&own) && own != of_ann && own != watcher.connection_of(&mut bob, "")?);
    // What the node refuses to queue, EXEC names as the reason.
    node.client()?.ask("CONFIG SET maxmemory 1")?;
    assert_eq!(ann.ask("MULTI")?, "+OK\r\n");
    assert_eq!(ann.ask("SET k 3")?, "+QUEUED\r\n");
    let refusal = ann.ask("EXEC")?;
    assert!(refusal.starts_with("-EXECABORT Transaction discarded because of: OOM "), "{refusal}");
    assert_eq!(ann.ask("GET k")?, "$1\r\n2\r\n");
    Ok(())
}

#[test]
fn sessions_one_after_the_other_cost_one_connection() -> io::Result<()> {
    let node = RedisServer::start()?;
    // A connection with an outstanding health PING is not lent: another one would be dialled.
    let proxy = proxy(&[node.tcp()], &["--pool-mode", "session", "--health-interval", "off"])?;
    let mut watcher = Watcher::of(&node)?;
    let mut of_first = String::new();
    let mut before = 0;
    for round in 0..30 {
        let mut client = proxy.client()?;
        assert_eq!(client.ask("SELECT 3")?, "+OK\r\n");
        assert_eq!(client.ask("SET k v")?, "+OK\r\n");
        assert_eq!(client.ask("WATCH k")?, "+OK\r\n");
        assert_eq!(client.ask("UNWATCH")?, "+OK\r\n");
        let own = watcher.connection_of(&mut client, "")?;
        assert_eq!(client.ask("QUIT")?, "+OK\r\n");
        client.read_to_close()?;
        if round == 0 {
            of_first = own;
            before = node.client()?.figure("stats", "total_connections_received")?;
        } else {
            assert_eq!(own, of_first, "round {round}");
        }
    }
    // Those who asked here came directly.
    assert_eq!(node.client()?.figure("stats", "total_connections_received")?, before + 1);
    Ok(())
}

#[test]
fn a_user_may_be_in_another_mode_and_have_so_many_connections() -> io::Result<()> {
    let node = RedisServer::start()?;
    let (proxy, _directory) = with_file(
        "[users.ann]\nrules = \"on nopass ~* &* +@all\"\npool_mode = \"session\"\nprivate_connections = 1\n",
        &node,
    )?;
    let (mut first, mut second, mut other) = (proxy.client()?, proxy.client()?, proxy.client()?);
    let mut watcher = Watcher::of(&node)?;
    let shared = watcher.connection_of(&mut other, "")?;
    assert_eq!(watcher.connection_of(&mut first, "")?, shared);
    assert_eq!(first.ask("AUTH ann x")?, "+OK\r\n");
    assert_ne!(watcher.connection_of(&mut first, "")?, shared);
    assert!(first.ask("PROXY EXPLAIN GET k")?.contains("\r\nsession\r\n"));
    assert_eq!(second.ask("AUTH ann x")?, "+OK\r\n");
    let refusal = "-ERR this user has as many connections to itself as it may (private_connections); the command was not sent\r\n";
    assert_eq!(second.ask("GET k")?, refusal);
    // Answered here. PING is asked of the node if nothing was heard of it lately.
    assert_eq!(second.ask("ECHO x")?, "$1\r\nx\r\n");
    assert!(other.ask("PROXY EXPLAIN GET k")?.contains("\r\nmultiplex\r\n"));
    // As another user it shares again, and the other may have it.
    assert_eq!(first.ask("RESET")?, "+RESET\r\n");
    assert_eq!(watcher.connection_of(&mut first, "")?, shared);
    assert_eq!(second.ask("GET k")?, "$-1\r\n");
    // A watched key needs a connection, too.
    let mut third = proxy.client()?;
    assert_eq!(third.ask("AUTH ann x")?, "+OK\r\n");
    assert_eq!(third.ask("WATCH k")?, refusal);
    Ok(())
}

#[test]
fn a_route_may_be_in_another_mode() -> io::Result<()> {
    let (node, jobs) = (RedisServer::start()?, RedisServer::start()?);
    let (proxy, _directory) = with_file(
        &format!(
            "[pools.jobs]\nnodes = [\"{}\"]\n[[routes]]\nprefix = \"job:\"\nto = \"jobs\"\npool_mode = \"session\"\n",
            jobs.tcp()
        ),
        &node,
    )?;
    let (mut ann, mut bob) = (proxy.client()?, proxy.client()?);
    let (mut main, mut apart) = (Watcher::of(&node)?, Watcher::of(&jobs)?);
    let shared = main.connection_of(&mut ann, "")?;
    assert_eq!(main.connection_of(&mut bob, "")?, shared);
    let own = apart.connection_of(&mut ann, "job:")?;
    assert_ne!(apart.connection_of(&mut bob, "job:")?, own);
    assert_eq!(apart.connection_of(&mut ann, "job:")?, own);
    assert_eq!(main.connection_of(&mut ann, "")?, shared);
    assert!(ann.ask("PROXY EXPLAIN GET job:1")?.contains("\r\nsession\r\n"));
    assert!(ann.ask("PROXY EXPLAIN GET k")?.contains("\r\nmultiplex\r\n"));
    // A pipeline over both keeps its order.
    let mut wanted = Vec::new();
    for number in 0..200 {
        let key = if number % 3 == 0 { format!("job:{number}") } else { format!("k:{number}") };
        ann.send_command(&["SET", &key, &number.to_string()])?;
        ann.send_command(&["GET", &key])?;
        wanted.extend([b"+OK\r\n".to_vec(), bulk(&number.to_string())]);
    }
    assert_eq!(ann.replies(400)?, wanted);
    assert_eq!(ann.ask("MULTI")?, "+OK\r\n");
    assert_eq!(ann.ask("GET job:0")?, "+QUEUED\r\n");
    assert_eq!(ann.ask("EXEC")?, "*1\r\n$1\r\n0\r\n");
    Ok(())
}

#[test]
fn beyond_the_cap_requests_are_refused_and_the_client_goes_on() -> io::Result<()> {
    let node = RedisServer::start()?;
    let proxy = proxy(&[node.tcp()], &["--pool-mode", "session", "--session-connections-max", "1"])?;
    let (mut first, mut second) = (proxy.client()?, proxy.client()?);
    assert_eq!(first.ask("SET k v")?, "+OK\r\n");
    let refusal = second.ask("GET k")?;
    assert!(refusal.starts_with("-ERR node ") && refusal.contains("is overloaded: too many clients have connections"));
    drop(first);
    wait_until("the other's connection is free", PATIENCE, || Ok(second.ask("GET k")? == "$1\r\nv\r\n"))
}
