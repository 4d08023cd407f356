//! The JSON API, version 1. docs/operations.md describes it.
//!
//! Fields may be added within a version; none changes its meaning or goes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use respool_proxy::{Inquiry, NodeOrder, Report, ReportCell, ReportTable};
use serde_json::{Map, Value, json};

use super::ask::{self, Ordered};
use super::{
    ANSWER_BYTES_MAX, ANSWER_TIME, Dashboard, ORDER_BYTES_MAX, Peer, ROWS, ROWS_MAX, Refusal, TABLE_BYTES,
    TEXT_CHARS_MAX,
};
use crate::admin::InstanceWorkers;
use crate::control::Phase;

pub(super) fn router(dashboard: Arc<Dashboard>) -> Router {
    let order = |what: NodeOrder| {
        post(
            move |State(dashboard): State<Arc<Dashboard>>,
                  ConnectInfo(peer): ConnectInfo<Peer>,
                  body: Result<Bytes, BytesRejection>| async move {
                order(&dashboard, what, peer.0.ip().to_canonical(), body).await
            },
        )
    };
    Router::new()
        .route("/api/v1/status", get(status))
        .route("/api/v1/tables/{name}", get(table))
        .route("/api/v1/pause", order(NodeOrder::Pause))
        .route("/api/v1/resume", order(NodeOrder::Resume))
        .route("/api/v1/drain", order(NodeOrder::Drain))
        .route("/api", any(nothing_here))
        .route("/api/{*rest}", any(nothing_here))
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(ORDER_BYTES_MAX))
        .with_state(dashboard)
}

async fn nothing_here() -> Refusal {
    Refusal::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "there is /api/v1/status, /api/v1/tables/NAME, and for orders /api/v1/pause, resume and drain",
    )
}

async fn wrong_method() -> Refusal {
    Refusal::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "wrong_method",
        "tables are asked for with GET, orders are given with POST",
    )
}

/// The process, its counters, and the tables that are asked for.
async fn status(State(dashboard): State<Arc<Dashboard>>, uri: Uri) -> Result<Response, Refusal> {
    let wanted = Wanted::of(uri.query().unwrap_or_default())?;
    let (mut tables, missing) = dashboard.tables(&wanted).await?;
    let mut answer = dashboard.facts();
    answer.insert("workers_missing".to_owned(), missing.into());
    cut(&mut tables, ANSWER_BYTES_MAX.saturating_sub(Value::Object(answer.clone()).to_string().len()));
    answer.insert("tables".to_owned(), Value::Object(tables));
    Ok(answered(&Value::Object(answer)))
}

/// One table.
async fn table(
    State(dashboard): State<Arc<Dashboard>>,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let mut wanted = Wanted::of(uri.query().unwrap_or_default())?;
    if !wanted.tables.is_empty() {
        return Err(Refusal::bad_request("tables= is for /api/v1/status"));
    }
    wanted.tables = vec![name];
    let (mut tables, missing) = dashboard.tables(&wanted).await?;
    cut(&mut tables, ANSWER_BYTES_MAX);
    let mut answer = tables.remove(&wanted.tables[0]).unwrap_or_default();
    answer["workers_missing"] = missing.into();
    Ok(answered(&answer))
}

/// What is wanted of tables.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    tables: Vec<String>,
    rows_max: usize,
}

impl Wanted {
    /// `tables=nodes,pools&rows=50`.
    fn of(query: &str) -> Result<Self, Refusal> {
        let mut wanted = Self { tables: Vec::new(), rows_max: ROWS };
        for word in query.split('&').filter(|word| !word.is_empty()) {
            match word.split_once('=') {
                Some(("tables", names)) => {
                    let names = names.split(',').filter(|name| !name.is_empty()).map(str::to_owned);
                    wanted.tables.extend(names);
                    wanted.tables.sort();
                    wanted.tables.dedup();
                }
                Some(("rows", count)) => match count.parse() {
                    Ok(count) if (1..=ROWS_MAX).contains(&count) => wanted.rows_max = count,
                    _ => return Err(Refusal::bad_request(format!("rows is a number from 1 to {ROWS_MAX}"))),
                },
                _ => return Err(Refusal::bad_request("there are the parameters tables=NAME,NAME and rows=NUMBER")),
            }
        }
        Ok(wanted)
    }
}

impl Dashboard {
    /// The tables of all instances by their names, and how many workers have not answered.
    async fn tables(&self, wanted: &Wanted) -> Result<(Map<String, Value>, usize), Refusal> {
        let names: Vec<&str> = wanted.tables.iter().map(String::as_str).collect();
        let busy = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "others are being answered: ask again");
        let turn = tokio::time::timeout(ANSWER_TIME, self.questions.acquire()).await;
        let _turn = turn.map_err(|_| busy())?.map_err(|_| busy())?;
        let Some(reports) = ask::tables(&self.instances, &names, wanted.rows_max).await else {
            let known = Inquiry::tables().collect::<Vec<_>>().join(", ");
            return Err(Refusal::new(StatusCode::NOT_FOUND, "no_such_table", format!("there are the tables {known}")));
        };
        let missing = reports.iter().map(|report| report.missing).sum();
        let mut tables: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), empty_table())).collect();
        for (instance, report) in self.instances.iter().zip(reports) {
            add_report(&mut tables, &names, instance, report);
        }
        Ok((tables, missing))
    }

    /// What the process is, and what it has counted.
    fn facts(&self) -> Map<String, Value> {
        let phase = match self.control.phase() {
            Phase::Starting => "starting",
            Phase::Serving => "serving",
            Phase::Leaving => "leaving",
            Phase::Retiring => "retiring",
            Phase::Draining => "draining",
            Phase::Stopping => "stopping",
        };
        let started_us = self.instances.iter().map(|instance| instance.shared.started_us).min();
        let mut counters: BTreeMap<&str, u64> = BTreeMap::new();
        for worker in self.instances.iter().flat_map(|instance| &instance.shared.counters) {
            for (name, _, _, value) in worker.each() {
                let sum = counters.entry(name).or_default();
                *sum = sum.wrapping_add(value);
            }
        }
        let held = self.instances.first().map_or(0, |instance| instance.shared.ledger.held_bytes());
        let facts = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "phase": phase,
            "uptime_us": respool_net::monotonic_us().saturating_sub(started_us.unwrap_or_default()),
            "takes_orders": self.terms().token.is_some(),
            "instances": self.instances.iter().map(|instance| &instance.name).collect::<Vec<_>>(),
            "workers": self.instances.iter().map(|instance| instance.workers.len()).sum::<usize>(),
            "held_bytes": held,
            "held_bytes_max": self.control.settings().buffer_bytes_max,
            "counters": counters,
        });
        match facts {
            Value::Object(facts) => facts,
            _ => Map::new(),
        }
    }

    /// The instance that an order is for; the only one need not be named.
    fn instance(&self, name: Option<&str>) -> Result<&InstanceWorkers, Refusal> {
        let named = |instance: &&InstanceWorkers| name.is_none_or(|name| instance.name == name);
        let names = || self.instances.iter().map(|instance| instance.name.as_str()).collect::<Vec<_>>().join(", ");
        match self.instances.iter().filter(named).collect::<Vec<_>>()[..] {
            [instance] => Ok(instance),
            [] => Err(Refusal::bad_request(format!("there is no instance of that name; there is {}", names()))),
            _ => Err(Refusal::bad_request(format!("\"instance\" is missing: one of {}", names()))),
        }
    }
}

fn empty_table() -> Value {
    json!({ "rows": [], "is_cut": false, "left_out": 0 })
}

/// Counts rows that are not told.
fn leave_out(table: &mut Value, rows: usize) {
    if rows > 0 {
        table["is_cut"] = true.into();
        table["left_out"] = (table["left_out"].as_u64().unwrap_or(0) + rows as u64).into();
    }
}

/// Leaves out rows that do not fit into so many bytes. A table with little in it is told as a whole, whatever the others hold: each
/// may take an equal share, and what one does not need goes to those that need more.
fn cut(tables: &mut Map<String, Value>, bytes_max: usize) {
    let bytes_of = |value: &Value| value.to_string().len() + 1;
    let row_bytes =
        |table: &Value| -> Vec<usize> { table["rows"].as_array().into_iter().flatten().map(bytes_of).collect() };
    let mut sizes: Vec<(String, Vec<usize>)> =
        tables.iter().map(|(name, table)| (name.clone(), row_bytes(table))).collect();
    sizes.sort_by_key(|(_, rows)| rows.iter().sum::<usize>());
    let mut left = bytes_max.saturating_sub(sizes.iter().map(|(name, _)| name.len() + TABLE_BYTES).sum());
    for (place, (name, rows)) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - place);
        let mut used = 0;
        let fitting = rows.iter().take_while(|bytes| {
            used += **bytes;
            used <= share
        });
        let kept = fitting.count();
        left -= rows[..kept].iter().sum::<usize>();
        let Some(table) = tables.get_mut(name) else { continue };
        leave_out(table, rows.len() - kept);
        if let Some(all) = table["rows"].as_array_mut() {
            all.truncate(kept);
        }
    }
}

/// Adds the rows that one instance has told, with its name.
fn add_report(tables: &mut Map<String, Value>, names: &[&str], instance: &InstanceWorkers, report: Report) {
    for (name, ReportTable { rows, left_out }) in names.iter().zip(report.tables) {
        let Some(table) = tables.get_mut(*name) else { continue };
        leave_out(table, left_out);
        let Some(all) = table["rows"].as_array_mut() else { continue };
        all.extend(rows.into_iter().map(|row| {
            let cells = row.into_iter().map(|(name, cell)| (name.to_owned(), value_of(cell)));
            let cells: Map<String, Value> =
                cells.chain([("instance".to_owned(), instance.name.clone().into())]).collect();
            Value::Object(cells)
        }));
    }
}

fn value_of(cell: ReportCell) -> Value {
    match cell {
        ReportCell::Number(number) => number.into(),
        ReportCell::Text(text) => match text.char_indices().nth(TEXT_CHARS_MAX) {
            Some((end, _)) => format!("{}...", &text[..end]).into(),
            None => text.into(),
        },
    }
}

/// An order: `{"nodes": ["a", "b"]}` or `{"all": true}`, with `"instance"` where there are several.
#[derive(Debug, PartialEq, Eq)]
struct OrderBody {
    nodes: Vec<String>,
    instance: Option<String>,
}

impl OrderBody {
    /// What it says, to the letter: an order that is misspelt must not become one for all nodes.
    fn of(body: &[u8], what: NodeOrder) -> Result<Self, Refusal> {
        const FORM: &str = "the body is a JSON object: {\"nodes\": [\"NAME\", ...]} or {\"all\": true}, with \"instance\" if \
                            there are several";
        let form = || Refusal::bad_request(FORM);
        let Ok(Value::Object(said)) = serde_json::from_slice(body) else { return Err(form()) };
        let (mut order, mut is_for_all) = (Self { nodes: Vec::new(), instance: None }, false);
        for (name, value) in said {
            match (name.as_str(), value) {
                ("all", Value::Bool(said)) => is_for_all = said,
                ("instance", Value::String(name)) => order.instance = Some(name),
                ("nodes", Value::Array(names)) => {
                    let name = |name: &Value| name.as_str().map(str::to_owned);
                    order.nodes = names.iter().map(name).collect::<Option<_>>().ok_or_else(form)?;
                }
                _ => return Err(form()),
            }
        }
        if is_for_all && what == NodeOrder::Drain {
            return Err(Refusal::bad_request("a drain needs nodes; SIGTERM and PROXY DRAIN end the process"));
        }
        if is_for_all != order.nodes.is_empty() { Err(form()) } else { Ok(order) }
    }
}

async fn order(
    dashboard: &Dashboard,
    what: NodeOrder,
    peer: IpAddr,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let body = body.map_err(|rejection| Refusal::new(rejection.status(), "bad_body", rejection.body_text()))?;
    let OrderBody { nodes, instance } = OrderBody::of(&body, what)?;
    let instance = dashboard.instance(instance.as_deref())?;
    match ask::order(instance, what, nodes, format!("{peer} (dashboard)")).await {
        Ordered::Holds { nodes, missing } => {
            Ok(answered(&json!({ "instance": instance.name, "nodes": nodes, "workers_missing": missing })))
        }
        Ordered::Refused(why) => {
            let why = why.strip_prefix("ERR ").unwrap_or(&why);
            Err(Refusal::new(StatusCode::CONFLICT, "refused", why))
        }
        Ordered::Unknown => Err(Refusal::new(
            StatusCode::GATEWAY_TIMEOUT,
            "unknown",
            "the worker has not answered in time, and may still carry the order out",
        )),
    }
}

fn answered(body: &Value) -> Response {
    as_json(StatusCode::OK, body.to_string())
}

/// A response with this body.
pub(super) fn as_json(status: StatusCode, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_understood_or_refused() {
        let of = |query: &str| Wanted::of(query).ok().map(|wanted| (wanted.tables.join(" "), wanted.rows_max));
        let some = |tables: &str, rows| Some((tables.to_owned(), rows));
        assert_eq!(of(""), some("", ROWS));
        assert_eq!(of("tables=pools,nodes,,pools&rows=7"), some("nodes pools", 7));
        assert_eq!(of("rows=500&tables=nodes"), some("nodes", 500));
        for query in ["rows=0", "rows=501", "rows=-1", "rows=x", "rows", "table=nodes", "tables"] {
            assert_eq!(of(query), None, "{query}");
        }
    }

    #[test]
    fn an_order_says_which_nodes_or_all() {
        let of = |body: &str| OrderBody::of(body.as_bytes(), NodeOrder::Pause).ok();
        let order = |nodes: &[&str], instance: Option<&str>| {
            let nodes = nodes.iter().map(|name| (*name).to_owned()).collect();
            Some(OrderBody { nodes, instance: instance.map(str::to_owned) })
        };
        assert_eq!(of(r#"{"nodes":["a","b"]}"#), order(&["a", "b"], None));
        assert_eq!(of(r#"{"all":true,"instance":"main"}"#), order(&[], Some("main")));
        for body in [
            "",
            "[]",
            "null",
            "{}",
            r#"{"nodes":[]}"#,
            r#"{"node":["a"]}"#,
            r#"{"nodes":["a"],"all":true}"#,
            r#"{"nodes":"a"}"#,
            r#"{"nodes":[1]}"#,
            r#"{"all":false}"#,
            r#"{"all":1}"#,
            r#"{"all":true,"x":1}"#,
        ] {
            assert_eq!(of(body), None, "{body}");
        }
        assert!(OrderBody::of(br#"{"all":true}"#, NodeOrder::Drain).is_err());
        assert!(OrderBody::of(br#"{"nodes":["a"]}"#, NodeOrder::Drain).is_ok());
    }

    #[test]
    fn rows_that_do_not_fit_are_left_out_and_counted() {
        let table = |rows: usize, bytes: usize| {
            let mut table = empty_table();
            table["rows"] = (0..rows).map(|_| json!({ "text": "x".repeat(bytes) })).collect();
            table
        };
        let told = |table: &Value| (table["rows"].as_array().map(Vec::len), table["left_out"].as_u64());
        for bytes_max in [0, 1_000, 5_000, 100_000] {
            let mut tables = Map::new();
            tables.insert("large".to_owned(), table(500, 100));
            tables.insert("small".to_owned(), table(3, 10));
            let before = Value::Object(tables.clone()).to_string().len();
            cut(&mut tables, bytes_max);
            let after = Value::Object(tables.clone()).to_string().len();
            let (kept, left_out) = told(&tables["large"]);
            assert_eq!(kept.unwrap() as u64 + left_out.unwrap(), 500);
            assert_eq!(tables["large"]["is_cut"], (left_out != Some(0)));
            assert!(after <= bytes_max.max(200), "{after} of {bytes_max}");
            if bytes_max >= 1_000 {
                assert_eq!(told(&tables["small"]), (Some(3), Some(0)), "what is small is told as a whole");
                // But for what is kept for the tables' names, and less than a row.
                let unused = tables.len() * TABLE_BYTES + 120;
                assert!(after + unused > bytes_max.min(before), "{after} of {bytes_max}: the room is used");
            }
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = "\u{20ac}".repeat(TEXT_CHARS_MAX + 1);
        let Value::String(cut) = value_of(ReportCell::Text(text)) else { panic!("a text") };
        assert_eq!(cut.chars().count(), TEXT_CHARS_MAX + 3);
    }
}
