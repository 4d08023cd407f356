//! The HTTP server of the admin side: `/metrics`, `/healthz`, `/readyz`, and the dashboard. One thread, few connections, short
//! lives.

use std::future::Future;
use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::extract::connect_info::Connected;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::serve::IncomingStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Sleep;
use tracing::error;

use super::dashboard::{self, Dashboard, Peer};
use super::end::{End, Token};
use super::metrics::{Metrics, OPENMETRICS};
use super::readiness::about_nodes;
use super::{InstanceWorkers, Running};
use crate::control::{Control, Phase};
use crate::settings::Address;

/// Most connections at a time. Scrapers and probes are few; one more takes the place of one that says nothing.
const CONNECTIONS_MAX: usize = 64;

/// Longest life of a connection: it serves one request, and a scrape takes milliseconds.
const CONNECTION_LIFE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
struct Admin {
    control: Arc<Control>,
    metrics: Metrics,
}

/// Opens the listener, or goes on with one that listens already, and serves on a thread of its own until everything stops or
/// another process has taken over.
///
/// # Errors
/// What the system says when it refuses the listener or the thread.
pub fn start(
    address: &Address,
    adopted: Option<OwnedFd>,
    control: Arc<Control>,
    metrics: Metrics,
    instances: Vec<InstanceWorkers>,
) -> io::Result<Running> {
    let listener = adopted.map_or_else(|| bind(address), |socket| Ok(TcpListener::from(socket)))?;
    let socket = listener.try_clone()?.into();
    let local = listener.local_addr()?;
    let address = match address {
        Address::Any { .. } => Address::Any { port: local.port() },
        _ => Address::Tcp { host: local.ip().to_string(), port: local.port() },
    };
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let over = Arc::new(Notify::new());
    let (notify, weak) = (Arc::clone(&over), Arc::downgrade(&control));
    control.on_change(Box::new(move || {
        let phase = weak.upgrade().map(|control| control.phase());
        if matches!(phase, Some(Phase::Retiring | Phase::Stopping)) {
            notify.notify_one();
        }
    }));
    let (open, end) = End::new();
    let serve = move || {
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let listener = Limited { listener, places: places(), held: Vec::new(), _open: open };
            let dashboard = dashboard::router(Dashboard::new(Arc::clone(&control), instances));
            let router = router(Admin { control, metrics }).merge(dashboard);
            let router = router.layer(axum::middleware::map_response(close));
            let server = axum::serve(listener, router.into_make_service_with_connect_info::<Peer>());
            server.with_graceful_shutdown(async move { over.notified().await }).await
        });
        if let Err(error) = served {
            error!("the metrics server has ended: {error}");
        }
    };
    thread::Builder::new().name("admin".to_owned()).spawn(serve)?;
    Ok(Running { address, socket, end })
}

fn bind(address: &Address) -> io::Result<TcpListener> {
    match address {
        // Where IPv6 is there, its unspecified address takes IPv4 as well.
        Address::Any { port } => TcpListener::bind(("::", *port)).or_else(|_| TcpListener::bind(("0.0.0.0", *port))),
        Address::Tcp { host, port } => {
            let addresses: Vec<_> = (host.as_str(), *port).to_socket_addrs()?.collect();
            TcpListener::bind(&addresses[..])
        }
        Address::Unix { .. } => Err(io::Error::new(io::ErrorKind::InvalidInput, "HTTP is served over TCP only")),
    }
}

fn router(admin: Admin) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        // Unknown paths are no business of the dashboard, whose guard would answer them.
        .fallback(async || StatusCode::NOT_FOUND)
        .with_state(admin)
}

async fn metrics(State(admin): State<Admin>) -> axum::response::Response {
    match admin.metrics.openmetrics() {
        Ok(text) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "a metric cannot be written\n").into_response(),
    }
}

async fn readyz(State(admin): State<Admin>) -> impl IntoResponse {
    match admin.control.phase() {
        Phase::Starting => (StatusCode::SERVICE_UNAVAILABLE, "starting\n".to_owned()),
        Phase::Serving => {
            let (is_ready, words) = about_nodes(&admin.metrics.sums(), admin.control.settings().admin.ready_percent);
            (if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, words)
        }
        Phase::Leaving | Phase::Retiring | Phase::Draining | Phase::Stopping => {
            (StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned())
        }
    }
}

/// One request per connection, so that none needs to be kept.
async fn close(mut response: axum::response::Response) -> axum::response::Response {
    response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    response
}

fn places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(CONNECTIONS_MAX))
}

/// A listener that gives places to connections, and makes room for a further one when there is none.
struct Limited {
    listener: tokio::net::TcpListener,
    places: Arc<Semaphore>,
    /// The connections that have a place, the oldest first.
    held: Vec<Held>,
    /// Tells by going that this has gone.
    _open: Token,
}

/// A place that is taken.
struct Held {
    /// Has its connection end.
    dismiss: oneshot::Sender<()>,
    is_answered: Arc<AtomicBool>,
}

/// A connection that holds its place and ends in time, or when the place is needed.
struct Connection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    dismissed: oneshot::Receiver<()>,
    /// It has been given some of a response.
    is_answered: Arc<AtomicBool>,
    _place: OwnedSemaphorePermit,
}

impl Limited {
    /// Ends one connection: the oldest of those that have not asked for anything yet, or the oldest of all.
    fn make_room(&mut self) {
        let silent = self.held.iter().position(|held| !held.is_answered.load(Ordering::Relaxed));
        if !self.held.is_empty() {
            // It may have ended by itself meanwhile.
            let _ = self.held.remove(silent.unwrap_or(0)).dismiss.send(());
        }
    }
}

impl axum::serve::Listener for Limited {
    type Io = Connection;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (Connection, Self::Addr) {
        let (stream, peer) = axum::serve::Listener::accept(&mut self.listener).await;
        self.held.retain(|held| !held.dismiss.is_closed());
        if self.places.available_permits() == 0 {
            self.make_room();
        }
        let place = Arc::clone(&self.places).acquire_owned().await.expect("the semaphore is never closed");
        let (dismiss, dismissed) = oneshot::channel();
        let is_answered = Arc::new(AtomicBool::new(false));
        self.held.push(Held { dismiss, is_answered: Arc::clone(&is_answered) });
        let end = Box::pin(tokio::time::sleep(CONNECTION_LIFE));
        (Connection { stream, end, dismissed, is_answered, _place: place }, peer)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

impl Connected<IncomingStream<'_, Limited>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Limited>) -> Self {
        Self(*stream.remote_addr())
    }
}

impl Connection {
    /// The stream, while its time has not come.
    fn alive(self: Pin<&mut Self>, cx: &mut Context<'_>) -> io::Result<Pin<&mut TcpStream>> {
        let this = self.get_mut();
        let is_over = this.end.as_mut().poll(cx).is_ready() || Pin::new(&mut this.dismissed).poll(cx).is_ready();
        if is_over { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Pin::new(&mut this.stream)) }
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.alive(cx)?.poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.is_answered.store(true, Ordering::Relaxed);
        self.alive(cx)?.poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.alive(cx)?.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.alive(cx)?.poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::admin::{Family, Reading, Sample};
    use crate::settings::{RawSettings, resolve};

    fn get(address: &Address, path: &str) -> String {
        let Address::Tcp { host, port } = address else { panic!("an address with a host") };
        let mut stream = std::net::TcpStream::connect((host.as_str(), *port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        let mut response = String::new();
        // To the end of the stream: the server must close by itself.
        stream.read_to_string(&mut response).unwrap();
        response
    }

    #[test]
    fn silent_connections_hold_up_no_other() {
        let understood = resolve(&RawSettings::default(), &|_| unreachable!("no secret is asked for")).unwrap();
        let control = Control::new(understood);
        let loopback = Address::Tcp { host: "127.0.0.1".to_owned(), port: 0 };
        let Running { address, .. } = start(&loopback, None, Arc::clone(&control), Metrics::default(), vec![]).unwrap();
        let Address::Tcp { host, port } = &address else { panic!("an address with a host") };
        let began = std::time::Instant::now();
        let mut idle: Vec<_> = (0..2 * CONNECTIONS_MAX + 10)
            .map(|_| std::net::TcpStream::connect((host.as_str(), *port)).unwrap())
            .collect();
        // Half a request is as good as none.
        idle.iter_mut().step_by(2).for_each(|stream| stream.write_all(b"GET /hea").unwrap());
        for _ in 0..CONNECTIONS_MAX {
            assert!(get(&address, "/healthz").starts_with("HTTP/1.1 200"));
        }
        // Before the first of those that say nothing is closed for its age.
        assert!(began.elapsed() < CONNECTION_LIFE, "{:?}", began.elapsed());
        control.enter(Phase::Stopping);
    }

    #[test]
    fn it_answers_with_metrics_health_and_readiness() {
        static LIVES: Family = Family { name: "lives", help: "Lives of a cat" };
        let understood = resolve(&RawSettings::default(), &|_| unreachable!("no secret is asked for")).unwrap();
        let control = Control::new(understood);
        let metrics = Metrics::default();
        let loopback = Address::Tcp { host: "127.0.0.1".to_owned(), port: 0 };
        let Running { address, end, .. } =
            start(&loopback, None, Arc::clone(&control), metrics.clone(), vec![]).unwrap();

        let response = get(&address, "/readyz");
        assert!(response.starts_with("HTTP/1.1 503") && response.ends_with("starting\n"), "{response}");
        control.enter(Phase::Serving);
        assert!(get(&address, "/readyz").ends_with("ready\n"));
        control.enter(Phase::Draining);
        assert!(get(&address, "/readyz").ends_with("draining\n"));

        metrics.observe(|| vec![Sample { family: &LIVES, labels: vec![], reading: Reading::Counter(9) }]);
        let response = get(&address, "/metrics");
        assert!(response.contains("content-type: application/openmetrics-text"), "{response}");
        assert!(response.contains("respool_lives_total 9\n") && response.ends_with("# EOF\n"), "{response}");

        assert!(get(&address, "/healthz").starts_with("HTTP/1.1 200"));
        assert!(get(&address, "/nothing").starts_with("HTTP/1.1 404"));

        control.enter(Phase::Stopping);
        end.wait();
    }
}
