//! Which requests may read, and which may give orders.
//!
//! | what is refused | because |
//! |---|---|
//! | a host name that is not known | a page of any site can have its own name lead to this address (DNS rebinding) |
//! | a request that a page of another site makes | a browser reaches addresses that the page's author does not |
//! | reading from another machine without the token | keys, names of clients and slow requests are shown |
//! | orders without the token | |
//!
//! The token stands in the header `Authorization`, which no form and no link can set.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use super::{Dashboard, Peer, Refusal};
use crate::settings::choices::DashboardReaders;
use crate::settings::{Address, DashboardSettings, Secret};

/// What browsers say of where a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Passes on the requests that may be answered.
pub(super) async fn guard(State(dashboard): State<Arc<Dashboard>>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<Peer>>().map(|ConnectInfo(peer)| peer.0.ip().to_canonical());
    let settings = dashboard.control.settings();
    let verdict = Question {
        terms: &settings.admin.dashboard,
        listen: settings.admin.listen.as_ref(),
        headers: request.headers(),
        is_local: peer.is_some_and(|ip| ip.is_loopback()),
        is_page: !request.uri().path().starts_with("/api"),
        is_order: !matches!(*request.method(), Method::GET | Method::HEAD),
    }
    .judge();
    match verdict {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            if refusal.code == WRONG_TOKEN {
                tell_of_wrong_token(peer);
            }
            refusal.into_response()
        }
    }
}

const WRONG_TOKEN: &str = "wrong_token";

/// A line of the log, once a second at most.
fn tell_of_wrong_token(peer: Option<IpAddr>) {
    static TOLD_S: AtomicU64 = AtomicU64::new(0);
    let now_s = respool_net::monotonic_us() / 1_000_000 + 1;
    if TOLD_S.swap(now_s, Ordering::Relaxed) != now_s {
        let peer = peer.map_or_else(String::new, |ip| ip.to_string());
        tracing::warn!(peer, "a request to the dashboard's API from {peer} had a wrong token");
    }
}

/// A request, as far as it matters here.
struct Question<'a> {
    terms: &'a DashboardSettings,
    listen: Option<&'a Address>,
    headers: &'a HeaderMap,
    is_local: bool,
    /// The page itself, which shows nothing.
    is_page: bool,
    is_order: bool,
}

impl Question<'_> {
    fn judge(&self) -> Result<(), Refusal> {
        if self.terms.readers == DashboardReaders::Off {
            return Err(Refusal::new(StatusCode::NOT_FOUND, "off", "the dashboard is off (dashboard = \"off\")"));
        }
        self.host_is_known()?;
        if self.is_page {
            return Ok(());
        }
        self.comes_from_own_page()?;
        let has_token = self.has_token()?;
        if self.is_order {
            return match (&self.terms.token, has_token) {
                (None, _) => Err(Refusal::new(
                    StatusCode::FORBIDDEN,
                    "read_only",
                    "orders are not taken here: no dashboard_token_file is set",
                )),
                (Some(_), true) => Ok(()),
                (Some(_), false) => Err(no_token("orders need")),
            };
        }
        match self.terms.readers {
            DashboardReaders::Any => Ok(()),
            _ if self.is_local || has_token => Ok(()),
            _ if self.terms.token.is_some() => Err(no_token("reading from another machine needs")),
            _ => Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "not_local",
                "only this machine may read here: set dashboard_token_file and send the token, or dashboard = \"any\"",
            )),
        }
    }

    /// Addresses are known by themselves: a page that has a name of its own lead here is asked by that name.
    fn host_is_known(&self) -> Result<(), Refusal> {
        let mut hosts = self.headers.get_all(header::HOST).iter();
        let (host, rest) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next());
        let name = host.filter(|_| rest.is_none()).map(name_of).unwrap_or_default();
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        let listens = matches!(self.listen, Some(Address::Tcp { host, .. }) if is(host));
        let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        if is_address || is("localhost") || listens || self.terms.hosts.iter().any(|host| is(host)) {
            return Ok(());
        }
        let message = format!("the host name {name:?} is not known here: add it to dashboard_hosts, or use an address");
        Err(Refusal::new(StatusCode::FORBIDDEN, "unknown_host", message))
    }

    fn comes_from_own_page(&self) -> Result<(), Refusal> {
        let refusal = || Refusal::new(StatusCode::FORBIDDEN, "other_site", "pages of other sites may not ask here");
        let text = |name: HeaderName| self.headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        if text(FETCH_SITE).is_some_and(|site| !["same-origin", "none"].contains(&site)) {
            return Err(refusal());
        }
        let Some(origin) = text(header::ORIGIN) else { return Ok(()) };
        let host = text(header::HOST).unwrap_or_default();
        let is_own = ["http://", "https://"].iter().filter_map(|scheme| origin.strip_prefix(scheme));
        if is_own.into_iter().any(|origin| origin.eq_ignore_ascii_case(host)) { Ok(()) } else { Err(refusal()) }
    }

    /// Whether the right token is there. A wrong one is refused whatever is asked, so that it is noticed.
    fn has_token(&self) -> Result<bool, Refusal> {
        let Some(said) = self.headers.get(header::AUTHORIZATION) else { return Ok(false) };
        let Some(token) = &self.terms.token else { return Ok(false) };
        let said = said.as_bytes().split_at_checked("bearer ".len());
        let is_right = said.is_some_and(|(scheme, said)| scheme.eq_ignore_ascii_case(b"bearer ") && is(token, said));
        if is_right {
            return Ok(true);
        }
        Err(Refusal::new(StatusCode::UNAUTHORIZED, WRONG_TOKEN, "this is not the token of dashboard_token_file"))
    }
}

/// Takes as long whatever the first difference is.
fn is(token: &Secret, said: &[u8]) -> bool {
    token.reveal().as_bytes().ct_eq(said).into()
}

fn no_token(what: &str) -> Refusal {
    let message = format!("{what} the token of dashboard_token_file: Authorization: Bearer TOKEN");
    Refusal::new(StatusCode::UNAUTHORIZED, "no_token", message)
}

/// The name in `name:port`, `[v6]:port` or `name`.
fn name_of(host: &str) -> &str {
    let (name, rest) = match host.rfind(']') {
        Some(end) => host.split_at(end + 1),
        None => host.split_at(host.rfind(':').unwrap_or(host.len())),
    };
    if rest.is_empty() || rest.starts_with(':') { name.trim_end_matches('.') } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn terms(readers: DashboardReaders, token: Option<&str>) -> DashboardSettings {
        let token = token.map(|token| Secret::new(token.to_owned()));
        DashboardSettings { readers, token, hosts: vec!["proxy.example".to_owned()] }
    }

    /// What a request is told: the code of its refusal, or `ok`.
    fn judged(terms: &DashboardSettings, is_local: bool, request: &str) -> &'static str {
        let mut lines = request.lines();
        let (method, path) = lines.next().and_then(|line| line.split_once(' ')).expect("a method and a path");
        let mut headers = HeaderMap::new();
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        let listen = Address::Tcp { host: "inside.example".to_owned(), port: 9100 };
        let (is_page, is_order) = (!path.starts_with("/api"), method == "POST");
        let question = Question { terms, listen: Some(&listen), headers: &headers, is_local, is_page, is_order };
        question.judge().map_or_else(|refusal| refusal.code, |()| "ok")
    }

    #[test]
    fn only_known_hosts_are_answered() {
        let terms = terms(DashboardReaders::Local, None);
        for (host, verdict) in [
            ("127.0.0.1:9100", "ok"),
            ("[::1]:9100", "ok"),
            ("[::1]", "ok"),
            ("[::1].evil.example", "unknown_host"),
            ("10.0.0.1", "ok"),
            ("LOCALHOST:1", "ok"),
            ("localhost.", "ok"),
            ("proxy.example:9100", "ok"),
            ("inside.example", "ok"),
            ("evil.example:9100", "unknown_host"),
            ("127.0.0.1.evil.example", "unknown_host"),
            ("localhost.evil.example", "unknown_host"),
            ("evil.example:127.0.0.1", "unknown_host"),
            ("", "unknown_host"),
            ("127.0.0.1\nHost: evil.example", "unknown_host"),
        ] {
            for path in ["/", "/api/v1/status"] {
                assert_eq!(judged(&terms, true, &format!("GET {path}\nHost: {host}")), verdict, "{path} {host}");
            }
        }
        assert_eq!(judged(&terms, true, "GET /api/v1/status"), "unknown_host");
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let terms = terms(DashboardReaders::Any, Some(TOKEN));
        for (header, verdict) in [
            ("Origin: http://127.0.0.1:9100", "ok"),
            ("Origin: http://127.0.0.1:9101", "other_site"),
            ("Origin: http://evil.example", "other_site"),
            ("Origin: null", "other_site"),
            ("Sec-Fetch-Site: same-origin", "ok"),
            ("Sec-Fetch-Site: none", "ok"),
            ("Sec-Fetch-Site: same-site", "other_site"),
            ("Sec-Fetch-Site: cross-site", "other_site"),
        ] {
            for method in ["GET", "POST"] {
                let request =
                    format!("{method} /api/v1/pause\nHost: 127.0.0.1:9100\nAuthorization: Bearer {TOKEN}\n{header}");
                assert_eq!(judged(&terms, true, &request), verdict, "{method} {header}");
            }
        }
    }

    #[test]
    fn reading_and_orders_need_what_the_settings_say() {
        use DashboardReaders::{Any, Local, Off};
        let right = format!("Authorization: Bearer {TOKEN}");
        let right = right.as_str();
        let long = format!("Authorization: Bearer {TOKEN}0");
        let wrong =
            ["Authorization: Bearer 0123456789abcdeF", long.as_str(), "Authorization: Basic x", "Authorization: "];
        let mut cases = vec![
            (Off, Some(TOKEN), true, "GET", right, "off"),
            (Local, None, true, "GET", "", "ok"),
            (Local, None, false, "GET", "", "not_local"),
            (Local, Some(TOKEN), false, "GET", "", "no_token"),
            (Local, Some(TOKEN), false, "GET", right, "ok"),
            (Any, None, false, "GET", "", "ok"),
            (Any, None, true, "POST", right, "read_only"),
            (Local, Some(TOKEN), true, "POST", "", "no_token"),
            (Local, Some(TOKEN), true, "POST", right, "ok"),
            (Any, Some(TOKEN), false, "POST", right, "ok"),
        ];
        cases.extend(wrong.map(|wrong| (Any, Some(TOKEN), true, "GET", wrong, "wrong_token")));
        for (readers, token, is_local, method, header, verdict) in cases {
            let request = format!("{method} /api/v1/pause\nHost: localhost\n{header}");
            assert_eq!(judged(&terms(readers, token), is_local, &request), verdict, "{readers:?} {is_local} {request}");
        }
    }

    #[test]
    fn the_page_itself_needs_no_token() {
        let terms = terms(DashboardReaders::Local, Some(TOKEN));
        assert_eq!(judged(&terms, false, "GET /\nHost: 10.0.0.1:9100"), "ok");
    }
}
