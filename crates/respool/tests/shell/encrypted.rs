//! TLS, and Respool itself as the server.

use crate::support::{Running, serve};
use crate::{redis_cli, respool_cli, run};
use respool_testkit::Authority;

fn encrypted_server() -> (Authority, Running) {
    let authority = Authority::new();
    authority.write("server", &authority.issue("127.0.0.1", "server"));
    let listener = authority.listener("server", "");
    let server = serve(&["--listen", &listener, "--tls-handshake-timeout", "60s"]);
    (authority, server)
}

#[test]
fn servers_are_talked_to_over_tls() {
    let (authority, server) = encrypted_server();
    let port = server.addresses()[0].port().to_string();
    let ca = authority.path("ca.crt").display().to_string();
    let tls = ["-p", &port, "--tls", "--cacert", &ca];
    let value = "v".repeat(3_000_000);
    let set = run(respool_cli(&tls).args(["-x", "set", "large"]), Some(value.as_bytes()));
    assert_eq!((set.code, set.stdout.as_str()), (Some(0), "OK\n"), "{}", set.stderr);
    let got = run(respool_cli(&tls).args(["get", "large"]), None);
    assert!(got.stdout.trim_end() == value, "{} bytes, {}", got.stdout.len(), got.stderr);
    let address = format!("rediss://127.0.0.1:{port}");
    let by_address = run(&mut respool_cli(&["-u", &address, "--cacert", &ca, "strlen", "large"]), None);
    assert_eq!(by_address.stdout, "3000000\n", "{}", by_address.stderr);
    let requests = "SET number 1\r\n".repeat(20_000);
    let inserted = run(respool_cli(&tls).arg("--pipe"), Some(requests.as_bytes()));
    assert!(inserted.stdout.ends_with("errors: 0, replies: 20000\n"), "{inserted:?}");
    server.end();
}

#[test]
fn a_certificate_of_no_known_authority_is_refused() {
    let (_authority, server) = encrypted_server();
    let other = Authority::new();
    let port = server.addresses()[0].port().to_string();
    let ca = other.path("ca.crt").display().to_string();
    let refused = run(&mut respool_cli(&["-p", &port, "--tls", "--cacert", &ca, "ping"]), None);
    assert!(refused.code == Some(1) && refused.stderr.contains("certificate"), "{refused:?}");
    let unchecked = run(&mut respool_cli(&["-p", &port, "--tls", "--insecure", "ping"]), None);
    assert_eq!(unchecked.stdout, "PONG\n", "{}", unchecked.stderr);
    server.end();
}

#[test]
fn respool_is_talked_to_as_by_redis_cli() {
    let server = serve(&["--listen", "127.0.0.1:0", "--nodes", "embedded:,embedded:"]);
    let port = server.addresses()[0].port().to_string();
    for (args, input) in [
        (&["mset", "a", "1", "b", "2", "c", "3"][..], None),
        (&["--no-raw", "mget", "a", "b", "c", "d"], None),
        (&["-3", "--json", "mget", "a", "b"], None),
        (&["--no-raw", "proxy", "show", "pools"], None),
        (&["--no-raw", "-3", "proxy", "show", "pools"], None),
        (&["-n", "2", "set", "x", "1"], None),
        (&[], Some(&b"multi\nset {t}a 1\nset {t}b 2\nexec\nwatch {t}a\nunwatch\n"[..])),
        (&["--pipe"], Some(b"SET a 1\r\nGET a\r\nNOSUCH\r\n")),
    ] {
        let args = [&["-p", &port], args].concat();
        let theirs = run(&mut redis_cli(&args), input);
        assert_eq!(run(&mut respool_cli(&args), input), theirs, "{args:?}");
    }
    server.end();
}
