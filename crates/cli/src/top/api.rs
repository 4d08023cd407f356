//! A look by way of the JSON API that the dashboard is fed by: one GET, whose answer has all tables and counters.
//!
//! HTTP of this one kind alone: a connection for each look, a whole body of bounded size. What is on the other side may be anything.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use serde_json::Value;
use zeroize::Zeroizing;

use super::figures::{Figures, Table};
use super::{ROWS, TABLES};
use crate::limits::{API_BYTES_MAX, API_HEADERS_MAX};
use crate::session::Failure;

/// Where the API is, and what opens it.
pub(super) struct Api {
    /// `host:port`.
    place: String,
    token: Option<Zeroizing<String>>,
}

impl Api {
    /// `http://host:port`, with nothing but a slash behind it.
    pub(super) fn at(url: &str, token: Option<Zeroizing<String>>) -> Result<Self, String> {
        let Some(rest) = url.strip_prefix("http://") else {
            return Err(format!(
                "--url: {url:?} does not begin with http://; for TLS use a tunnel, or the console (-h, --tls)"
            ));
        };
        let place = rest.strip_suffix('/').unwrap_or(rest);
        let port = place.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
        let is_plain = place.chars().all(|letter| letter.is_ascii_graphic() && !"/?#@".contains(letter));
        if !matches!(port, Some(Ok(_))) || !is_plain {
            return Err(format!("--url: {url:?} is not http://HOST:PORT, the address of metrics"));
        }
        let is_token = |token: &Zeroizing<String>| token.chars().all(|letter| letter.is_ascii_graphic());
        if token.as_ref().is_some_and(|token| token.is_empty() || !is_token(token)) {
            return Err("--token-file: the first line is no token".to_owned());
        }
        Ok(Self { place: place.to_owned(), token })
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Takes one look, which is to be there after so long.
    pub(super) fn look(&self, limit: Duration) -> Result<Figures, Failure> {
        let until = Instant::now() + limit;
        let answer = self.ask(until).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Failure::Late,
            _ => Failure::Dial(format!("Could not ask http://{}: {error}", self.place)),
        })?;
        figures_of(&answer).map_err(Failure::Lost)
    }

    fn ask(&self, until: Instant) -> io::Result<Vec<u8>> {
        let mut stream = self.connect(until)?;
        let names: Vec<&str> = TABLES.iter().map(|(.., name)| *name).collect();
        let mut request = Zeroizing::new(format!(
            "GET /api/v1/status?tables={}&rows={ROWS} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n",
            names.join(","),
            self.place
        ));
        if let Some(token) = &self.token {
            request.push_str("Authorization: Bearer ");
            request.push_str(token);
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        stream.set_write_timeout(Some(left(until)?))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        let mut buffer = vec![0; crate::limits::READ_BYTES];
        loop {
            stream.set_read_timeout(Some(left(until)?))?;
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(answer),
                Ok(count) => answer.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if answer.len() > API_BYTES_MAX {
                return Err(io::Error::other("the answer is too long"));
            }
        }
    }

    fn connect(&self, until: Instant) -> io::Result<TcpStream> {
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
        for address in self.place.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, left(until)?) {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

/// The time that is left, of which there is some.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// What an answer says, or why it is none.
fn figures_of(answer: &[u8]) -> Result<Figures, String> {
    const STRANGE: &str = "what answers there is no Respool's metrics address";
    let mut headers = [httparse::EMPTY_HEADER; API_HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let Ok(httparse::Status::Complete(start)) = head.parse(answer) else { return Err(STRANGE.to_owned()) };
    let length = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.parse::<usize>().ok());
    let body = &answer[start..];
    if length.is_some_and(|length| body.len() < length) {
        return Err("the answer was cut off".to_owned());
    }
    let Ok(said) = serde_json::from_slice::<Value>(body) else { return Err(STRANGE.to_owned()) };
    if let Some(why) = said["error"]["message"].as_str() {
        return Err(super::figures::plain(why));
    }
    if head.code != Some(200) || !said["counters"].is_object() {
        return Err(STRANGE.to_owned());
    }
    let mut figures = Figures::default();
    for (_, panel, name) in TABLES {
        figures.tables.push((panel, Table::of_json(&said["tables"][name])));
    }
    let counters = said["counters"].as_object().into_iter().flatten();
    figures.add_numbers(counters.filter_map(|(name, value)| Some((name.clone(), value.as_u64()?))));
    figures.missing = said["workers_missing"].as_u64().unwrap_or(0);
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::view::Panel;

    fn answer(status: u16, body: &str) -> Vec<u8> {
        format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    #[test]
    fn tables_and_counters_of_an_answer_are_read() {
        let body = r#"{"counters":{"requests":18,"clients":2},"workers_missing":1,"tables":{"nodes":
            {"rows":[{"node":"a\u001b[2J","state":"up","round_trip_us":123}],"is_cut":false},"new":7}}"#;
        let figures = figures_of(&answer(200, body)).unwrap();
        assert_eq!((figures.number("requests"), figures.number("nosuch"), figures.missing), (Some(18), None, 1));
        let nodes = figures.table(Panel::Nodes).unwrap();
        let rows: Vec<_> = nodes.columns(&["node", "round_trip_us", "x"]).collect();
        assert_eq!(rows, [["a[2J", "123", ""]], "a name cannot command the terminal");
    }

    #[test]
    fn what_is_no_answer_of_the_api_is_told() {
        let of = |answer: &[u8]| figures_of(answer).err().unwrap_or_default();
        assert_eq!(of(&answer(403, r#"{"error":{"code":"x","message":"set dashboard"}}"#)), "set dashboard");
        let whole = answer(200, r#"{"counters":{}}"#);
        assert_eq!(of(&whole), "");
        for end in 0..whole.len() {
            assert_ne!(of(&whole[..end]), "", "{end}");
        }
        for other in [answer(404, "{}"), answer(200, "[]"), answer(200, "<html>"), b"-ERR x\r\n".to_vec()] {
            assert!(of(&other).contains("no Respool"), "{}", other.escape_ascii());
        }
    }

    #[test]
    fn only_plain_addresses_are_taken() {
        for good in ["http://127.0.0.1:9100", "http://[::1]:9100/", "http://proxy.example:1"] {
            assert!(Api::at(good, None).is_ok(), "{good}");
        }
        for bad in [
            "127.0.0.1:9100",
            "https://h:1",
            "http://h",
            "http://h:x",
            "http://:1",
            "http://h:1/api",
            "http://h:1\r\nX:1",
        ] {
            assert!(Api::at(bad, None).is_err(), "{bad}");
        }
        for bad in ["", "a b", "a\r\nX: y"] {
            assert!(Api::at("http://h:1", Some(bad.to_owned().into())).is_err(), "{bad:?}");
        }
    }
}
