//! The dashboard and its JSON API: what they show, who may ask, what orders do, and what hostile names become in a browser.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use respool_testkit::{RedisServer, TempDir, wait_until};
use serde_json::Value;
use support::{LIMIT, Running, serve};

const TOKEN: &str = "0123456789abcdef0123";

/// What markup that is taken for markup would do.
const HOSTILE: &str = "<img/src=x/onerror=document.title='owned'>";

/// A proxy with two nodes and a dashboard, and its HTTP address.
struct Served {
    nodes: [RedisServer; 2],
    proxy: Running,
    address: String,
    _directory: TempDir,
}

impl Served {
    fn start(more: &[&str]) -> Self {
        let directory = TempDir::new().expect("a directory");
        let file = directory.join("token");
        fs::write(&file, format!("{TOKEN}\n")).expect("a file");
        let nodes = [RedisServer::start().expect("a redis-server"), RedisServer::start().expect("another")];
        let [a, b] = [("a", &nodes[0]), ("b", &nodes[1])].map(|(name, node)| format!("{} name={name}", node.tcp()));
        let mut args =
            vec!["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--workers", "2", "--sample-every", "1"];
        if !more.contains(&"--dashboard") {
            args.extend(["--dashboard", "local"]);
        }
        args.extend(["--slow-log-threshold", "1us", "--node", &a, "--node", &b]);
        if !more.contains(&"--without-token") {
            args.extend(["--dashboard-token-file", file.to_str().expect("UTF-8")]);
        }
        args.extend(more.iter().filter(|word| **word != "--without-token"));
        let proxy = serve(&args);
        let address = proxy.says("metrics at");
        let address = address.trim().trim_start_matches("metrics at http://").trim_end_matches("/metrics").to_owned();
        Self { nodes, proxy, address, _directory: directory }
    }

    /// The status, head and body of the answer to a request, given as its first line and its further headers.
    fn ask(&self, line: &str, headers: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit");
        let host = if headers.contains("Host: ") { String::new() } else { format!("Host: {}\r\n", self.address) };
        let length = body.len();
        write!(stream, "{line} HTTP/1.1\r\n{host}{headers}Content-Length: {length}\r\n\r\n{body}").expect("it is sent");
        let mut response = Vec::new();
        // A server that refuses a large body does not read it, so the connection may end with a reset behind the answer.
        let _ = stream.read_to_end(&mut response);
        let response = String::from_utf8(response).expect("UTF-8");
        let (head, body) = response.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, head.to_ascii_lowercase(), body.to_owned())
    }

    fn json(&self, path: &str) -> Value {
        let (status, head, body) = self.ask(&format!("GET {path}"), "", "");
        assert_eq!(status, 200, "{head}\n{body}");
        assert!(head.contains("content-type: application/json") && head.contains("cache-control: no-store"), "{head}");
        serde_json::from_str(&body).expect("JSON")
    }

    /// The status and the code of the refusal, or `ok`.
    fn verdict(&self, line: &str, headers: &str, body: &str) -> (u16, String) {
        let (status, head, body) = self.ask(line, headers, body);
        let answer: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {head}\n{body}"));
        (status, answer["error"]["code"].as_str().unwrap_or("ok").to_owned())
    }

    fn order(&self, order: &str, body: &str) -> (u16, String) {
        self.verdict(&format!("POST /api/v1/{order}"), &format!("Authorization: Bearer {TOKEN}\r\n"), body)
    }

    fn state_of(&self, node: &str) -> String {
        let table = self.json("/api/v1/tables/nodes");
        let rows = table["rows"].as_array().expect("rows").clone();
        let row = rows.iter().find(|row| row["node"] == node).unwrap_or_else(|| panic!("{rows:?}"));
        row["state"].as_str().expect("a word").to_owned()
    }
}

#[test]
fn the_api_shows_what_the_console_shows() {
    let served = Served::start(&[]);
    let mut client = served.proxy.client(0);
    client.ask("CLIENT SETNAME worker-7").expect("a reply");
    for key in ["a", "b", "c", "d"] {
        client.ask(&format!("SET {key} v")).expect("a reply");
        client.ask(&format!("GET {key}")).expect("a reply");
    }
    wait_until("both nodes are up", LIMIT, || Ok(["a", "b"].iter().all(|node| served.state_of(node) == "up")))
        .expect("it is so");
    let names = "bigkeys,clients,hotkeys,latency,mem,nodes,pins,pools,routes,slowlog";
    let status = served.json(&format!("/api/v1/status?tables={names}"));
    assert_eq!(status["phase"], "serving");
    assert_eq!((&status["workers"], &status["workers_missing"]), (&2.into(), &0.into()));
    assert!(status["counters"]["requests"].as_u64().is_some_and(|count| count >= 9), "{status}");
    let tables = status["tables"].as_object().expect("tables");
    assert_eq!(tables.keys().map(String::as_str).collect::<Vec<_>>().join(","), names);
    for name in ["clients", "hotkeys", "latency", "nodes", "pools", "slowlog"] {
        let rows = tables[name]["rows"].as_array().expect("rows");
        assert!(!rows.is_empty() && rows.iter().all(|row| row["instance"] == "main"), "{name}: {rows:?}");
    }
    let client = &tables["clients"]["rows"][0];
    assert_eq!((&client["name"], &client["cmd"]), (&"worker-7".into(), &"get".into()));
    let one = served.json("/api/v1/tables/slowlog?rows=2");
    assert_eq!((one["rows"].as_array().map(Vec::len), &one["is_cut"]), (Some(2), &true.into()));
    assert!(one["left_out"].as_u64().is_some_and(|count| count >= 6), "{one}");
    served.proxy.end();
}

#[test]
fn what_the_api_does_not_know_is_refused_in_json() {
    let served = Served::start(&[]);
    for (line, status, code) in [
        ("GET /api/v1/tables/nosuch", 404, "no_such_table"),
        ("GET /api/v1/status?tables=nodes,nosuch", 404, "no_such_table"),
        ("GET /api/v1/status?rows=501", 400, "bad_request"),
        ("GET /api/v1/tables/nodes?tables=pools", 400, "bad_request"),
        ("GET /api/v2/status", 404, "not_found"),
        ("GET /api", 404, "not_found"),
        ("GET /api/v1/pause", 405, "wrong_method"),
    ] {
        assert_eq!(served.verdict(line, "", ""), (status, code.to_owned()), "{line}");
    }
    let (status, head, body) = served.ask("HEAD /api/v1/status", "", "");
    assert!(status == 200 && body.is_empty() && head.contains("content-type: application/json"), "{head}\n{body}");
    let (_, head, html) = served.ask("GET /", "", "");
    assert!(html.contains("<title>Respool</title>"), "{html}");
    for header in
        ["content-security-policy: default-src 'none'", "x-content-type-options: nosniff", "x-frame-options: deny"]
    {
        assert!(head.contains(header), "{header}\n{head}");
    }
    // Scrapers and probes go by any name, and are as they were.
    assert_eq!(served.ask("GET /healthz", "Host: h\r\n", "").2, "ok\n");
    served.proxy.end();
}

#[test]
fn orders_need_the_token_and_do_what_they_say() {
    let served = Served::start(&[]);
    let mut client = served.proxy.client(0);
    client.ask("SET k v").expect("a reply");
    wait_until("both nodes are up", LIMIT, || Ok(["a", "b"].iter().all(|node| served.state_of(node) == "up")))
        .expect("it is so");
    let body = r#"{"nodes":["a"]}"#;
    for (headers, code) in [
        (String::new(), "no_token"),
        ("Authorization: Bearer 0123456789abcdef0124\r\n".to_owned(), "wrong_token"),
        (format!("Authorization: Bearer {TOKEN}\r\nOrigin: http://evil.example\r\n"), "other_site"),
        (format!("Authorization: Bearer {TOKEN}\r\nHost: evil.example\r\n"), "unknown_host"),
    ] {
        assert_eq!(served.verdict("POST /api/v1/pause", &headers, body).1, code, "{headers}");
    }
    assert_eq!(served.state_of("a"), "up", "nothing was done");
    assert_eq!(served.order("pause", body), (200, "ok".to_owned()));
    assert_eq!((served.state_of("a"), served.state_of("b")), ("paused".to_owned(), "up".to_owned()));
    assert_eq!(served.order("resume", body), (200, "ok".to_owned()));
    assert_eq!(served.state_of("a"), "up");
    assert_eq!(served.order("drain", body), (200, "ok".to_owned()));
    assert_eq!(served.state_of("a"), "drained");
    assert_eq!(served.order("pause", r#"{"all":true,"instance":"main"}"#), (200, "ok".to_owned()));
    assert_eq!(served.state_of("b"), "paused");
    client.send_command(&["GET", "k"]).expect("it is sent");
    assert_eq!(served.order("resume", r#"{"all":true}"#), (200, "ok".to_owned()));
    assert_eq!(client.reply().expect("what was held back goes on"), b"$1\r\nv\r\n");
    let said = served.proxy.says("an operator ordered: Pause a");
    assert!(said.contains("127.0.0.1 (dashboard)"), "{said}");
    served.proxy.end();
}

#[test]
fn orders_that_are_not_understood_change_nothing() {
    let served = Served::start(&[]);
    for (order, body, status, code) in [
        ("pause", r#"{"nodes":["nosuch"]}"#, 409, "refused"),
        ("pause", r#"{"nodes":["a","nosuch"]}"#, 409, "refused"),
        ("pause", r#"{"nodes":[]}"#, 400, "bad_request"),
        ("pause", r#"{"node":["a"]}"#, 400, "bad_request"),
        ("pause", "", 400, "bad_request"),
        ("pause", r#"{"all":true,"instance":"nosuch"}"#, 400, "bad_request"),
        ("drain", r#"{"all":true}"#, 400, "bad_request"),
        ("pause", &format!("{{\"nodes\":[\"{}\"]}}", "a".repeat(20_000)), 413, "bad_body"),
        ("stop", r#"{"all":true}"#, 404, "not_found"),
    ] {
        let verdict = served.order(order, body);
        assert_eq!(verdict, (status, code.to_owned()), "{order} {body:.100}");
    }
    assert!(["a", "b"].iter().all(|node| !["paused", "drained"].contains(&&*served.state_of(node))));
    served.proxy.end();
}

#[test]
fn without_a_token_the_dashboard_is_read_only() {
    let served = Served::start(&["--without-token"]);
    assert_eq!(served.order("pause", r#"{"nodes":["a"]}"#), (403, "read_only".to_owned()));
    assert_eq!(served.json("/api/v1/status")["takes_orders"], false);
    served.proxy.end();
}

#[test]
fn a_dashboard_that_is_off_is_not_there() {
    let served = Served::start(&["--dashboard", "off"]);
    for line in ["GET /", "GET /dashboard.js", "GET /api/v1/status", "POST /api/v1/pause"] {
        assert_eq!(served.verdict(line, "", ""), (404, "off".to_owned()), "{line}");
    }
    assert_eq!(served.ask("GET /healthz", "", "").2, "ok\n");
    served.proxy.end();
}

#[test]
fn nodes_that_stand_still_hold_no_answer_up() {
    let served = Served::start(&[]);
    served.nodes.iter().for_each(|node| node.pause().expect("it is stopped"));
    let status = served.json("/api/v1/status?tables=nodes");
    assert_eq!(status["workers_missing"], 0);
    assert_eq!(status["tables"]["nodes"]["rows"].as_array().map(Vec::len), Some(2));
    served.nodes.iter().for_each(|node| node.resume().expect("it goes on"));
    served.proxy.end();
}

/// The browser, where there is one.
fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places =
        std::env::split_paths(&path).flat_map(|place| ["chromium", "google-chrome"].map(|name| place.join(name)));
    places.into_iter().find(|program| program.is_file())
}

/// The document that a browser has made of the page after some seconds.
fn rendered(browser: &PathBuf, address: &str) -> String {
    let profile = TempDir::new().expect("a directory");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--virtual-time-budget=4000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", &format!("http://{address}/")])
        .stderr(Stdio::null())
        .output()
        .expect("the browser starts");
    assert!(output.status.success(), "{}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn names_of_clients_and_keys_stay_text_in_a_browser() {
    let Some(browser) = chromium() else {
        eprintln!("skipped: no chromium is installed");
        return;
    };
    let served = Served::start(&[]);
    let mut client = served.proxy.client(0);
    assert_eq!(client.command(&["CLIENT", "SETNAME", HOSTILE]).expect("a reply"), b"+OK\r\n");
    for _ in 0..8 {
        client.command(&["SET", HOSTILE, "</td><script>document.title='owned'</script>"]).expect("a reply");
        client.command(&["GET", HOSTILE]).expect("a reply");
    }
    wait_until("both nodes are up", LIMIT, || Ok(["a", "b"].iter().all(|node| served.state_of(node) == "up")))
        .expect("it is so");
    let is_over = AtomicBool::new(false);
    let page = thread::scope(|scope| {
        // Where the browser takes long, checks of nodes fill the slow log meanwhile.
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                client.command(&["SET", HOSTILE, "v"]).expect("a reply");
                thread::sleep(Duration::from_millis(20));
            }
        });
        let page = rendered(&browser, &served.address);
        is_over.store(true, Ordering::Relaxed);
        page
    });
    // Three tables hold the beginning of the name: clients, keys, slow requests.
    let text = "&lt;img/src=x/onerror=document.title=";
    assert!(page.matches(text).count() >= 3, "{page}");
    assert!(!page.contains("<img") && page.contains("<title>Respool</title>"), "{page}");
    for part in ["Nodes up", "2 of 2", "Read-only until the token is entered", "set &lt;img"] {
        assert!(page.to_ascii_lowercase().contains(&part.to_ascii_lowercase()), "{part}\n{page}");
    }
    served.proxy.end();
}
