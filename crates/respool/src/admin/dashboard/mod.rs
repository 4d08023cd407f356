//! The operators' page and the JSON API beneath it: what the console shows and does, over the HTTP side.
//!
//! ```text
//!   request --> guard: is there a dashboard? Host, Origin, address, token --> page: three files in the program
//!                                                                        '--> api --> ask: an inquiry to all workers
//! ```
//!
//! The page holds nothing but what the API answers. Nothing here is on the way of a client's request: workers answer an
//! inquiry between two turns, as they answer the console.

mod api;
mod ask;
mod guard;
mod page;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::Semaphore;

use super::InstanceWorkers;
use crate::control::Control;
use crate::settings::DashboardSettings;

/// Questions that are put to workers at a time. One takes a millisecond; a page asks once a second.
const QUESTIONS_MAX: usize = 4;

/// Time that a worker has to answer, as on the console. One that is late is counted as missing.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// Bytes of an order.
const ORDER_BYTES_MAX: usize = 16 << 10;

/// Bytes of an answer: as many connections as there may be hold this many at most. Rows beyond them are left out.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Bytes of a table beside its name and rows.
const TABLE_BYTES: usize = 100;

/// Rows of a table, unless fewer are asked for.
const ROWS: usize = 100;

/// Most rows of a table.
const ROWS_MAX: usize = 500;

/// Characters of a text of a table: clients choose names and arguments. The bytes that are kept of a key fit, however they are
/// escaped (four characters each), so that two keys which are counted apart are told apart.
const TEXT_CHARS_MAX: usize = 4 * respool_proxy::limits::RANKED_KEY_BYTES_MAX;

/// Everything that the page and the API stand on.
#[derive(Debug)]
pub(super) struct Dashboard {
    control: Arc<Control>,
    instances: Vec<InstanceWorkers>,
    questions: Semaphore,
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

impl Dashboard {
    pub(super) fn new(control: Arc<Control>, instances: Vec<InstanceWorkers>) -> Arc<Self> {
        Arc::new(Self { control, instances, questions: Semaphore::new(QUESTIONS_MAX) })
    }

    /// What the settings say now.
    fn terms(&self) -> DashboardSettings {
        self.control.settings().admin.dashboard.clone()
    }
}

/// The routes of the page and of the API.
pub(super) fn router(dashboard: Arc<Dashboard>) -> Router {
    let guarded = axum::middleware::from_fn_with_state(Arc::clone(&dashboard), guard::guard);
    Router::new()
        .merge(page::router())
        .merge(api::router(dashboard))
        .layer(guarded)
        .layer(axum::middleware::map_response(protect))
}

/// A page that is made of this program's own files runs and loads nothing else, whatever gets into it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What every response says: it is not kept, not framed, and not taken for anything else.
async fn protect(mut response: Response) -> Response {
    let said = [
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    let headers = response.headers_mut();
    for (name, value) in said {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Why a request is not answered with what it asks for.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    status: StatusCode,
    /// For programs.
    code: &'static str,
    /// For people.
    message: String,
}

impl Refusal {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "code": self.code, "message": self.message } });
        let mut response = api::as_json(self.status, body.to_string());
        let headers = response.headers_mut();
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}
