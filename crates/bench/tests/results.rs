//! What `respool bench` prints and saves.

use std::ffi::OsString;
use std::sync::atomic::AtomicBool;

use respool_bench::bench;
use respool_bench::cli::{Options, grammar};
use respool_testkit::{RedisServer, TempDir};

fn print(args: &[&str]) -> Result<String, String> {
    let words = std::iter::once("bench").chain(args.iter().copied()).map(OsString::from);
    let matches = grammar().try_get_matches_from(words).map_err(|error| error.to_string())?;
    let options = Options::of(&matches, |path| std::fs::read(path), || Ok(Vec::new()))?;
    let mut out = Vec::new();
    bench(options, &mut out, &AtomicBool::new(false))?;
    Ok(String::from_utf8(out).expect("results are text"))
}

#[test]
fn every_default_test_runs_and_has_its_row() {
    let server = RedisServer::start().unwrap();
    let port = server.port().to_string();
    let said = print(&["-p", &port, "-n", "60", "-c", "3", "-r", "100", "--csv"]).unwrap();
    let tests: Vec<&str> = said.lines().map(|line| line.split("\",\"").next().unwrap().trim_matches('"')).collect();
    let expected = [
        "test",
        "PING_INLINE",
        "PING_MBULK",
        "SET",
        "GET",
        "INCR",
        "LPUSH",
        "RPUSH",
        "LPOP",
        "RPOP",
        "SADD",
        "HSET",
        "SPOP",
        "ZADD",
        "ZPOPMIN",
        "LPUSH (needed to benchmark LRANGE)",
        "LRANGE_100 (first 100 elements)",
        "LRANGE_300 (first 300 elements)",
        "LRANGE_500 (first 500 elements)",
        "LRANGE_600 (first 600 elements)",
        "MSET (10 keys)",
    ];
    assert_eq!(tests, expected);
    assert!(said.lines().all(|line| line.matches("\",\"").count() == 7), "{said}");
}

#[test]
fn a_page_names_the_servers_configuration() {
    let server = RedisServer::start().unwrap();
    let port = server.port().to_string();
    let said = print(&["-p", &port, "-n", "100", "-t", "get"]).unwrap();
    assert!(said.contains("host configuration \"appendonly\": no\n"), "{said}");
    assert!(said.contains("  100 requests completed in "), "{said}");
}

#[test]
fn targets_in_rounds_give_json_and_a_page() {
    let (one, other) = (RedisServer::start().unwrap(), RedisServer::start().unwrap());
    let folder = TempDir::new().unwrap();
    let (json, html) = (folder.path().join("r.json"), folder.path().join("r.html"));
    let target = |name: &str, server: &RedisServer| format!("{name}=127.0.0.1:{},pid={}", server.port(), server.pid());
    let said = print(&[
        "--target",
        &target("one", &one),
        "--target",
        &target("other", &other),
        "--rounds",
        "3",
        "-n",
        "300",
        "-t",
        "set",
        "-q",
        "--json",
        json.to_str().unwrap(),
        "--html",
        html.to_str().unwrap(),
    ])
    .unwrap();
    assert!(said.contains("SET @ one: ") && said.contains("SET: other / one:  rps "), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(json["results"][1]["target"], "other");
    assert_eq!(json["results"][0]["replies"], 900);
    assert_eq!(json["results"][0]["rounds"].as_array().map(Vec::len), Some(3));
    assert_eq!(json["results"][0]["processes"][0]["pid"], one.pid());
    assert!(json["ratios"][0]["rps"]["median"].as_f64().is_some_and(|ratio| ratio > 0.0));
    assert!(std::fs::read_to_string(html).unwrap().contains("<svg"));
}

#[test]
fn a_command_of_the_user_is_sent_with_random_numbers() {
    let server = RedisServer::start().unwrap();
    let port = server.port().to_string();
    print(&["-p", &port, "-n", "50", "-r", "10", "-q", "lpush", "list", "__rand_int__"]).unwrap();
    let mut client = server.client().unwrap();
    assert_eq!(client.ask("LLEN list").unwrap(), ":50\r\n");
    let error = print(&["-p", &port, "-n", "5", "-q", "nonsense"]).unwrap_err();
    assert!(error.starts_with("Error from server: ERR unknown command 'nonsense'"), "{error}");
}
