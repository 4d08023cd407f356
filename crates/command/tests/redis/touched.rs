//! The keys that requests really touch, as the server's notifications tell them, compared with the keys that were found:
//! nothing may be touched that was not found, or changed that was not found to be changed.
//!
//! The server notifies about every change of a key and about every read of a key that is missing. Each request runs within
//! a transaction, where nothing blocks, on freshly made data.

use std::collections::{BTreeSet, HashMap};

use respool_command::{KeyPositions, Row, resolve};
use respool_testkit::{Client, Rng};
use respool_wire::{ArgsBuf, Value};

use crate::differences::Differences;
use crate::{ask_all, reference_server, request, requests, scale, shared_rows, shown};

const ROUNDS: usize = 150;
const NEAR_ROUNDS: usize = 400;
/// Requests whose notifications are read together.
const PART: usize = 100;

/// A value of each type under the names that generated requests use.
const DATA: &[&str] = &[
    "FLUSHALL",
    "MSET k1 1 k2 2 string text",
    "RPUSH list 3 1 2",
    "SADD set 3 1 2",
    "HSET hash f 1 g 2",
    "ZADD zset 1 a 2 b",
    "GEOADD geo 1 1 m 2 2 n",
    "XADD stream 1-1 f v",
    "XGROUP CREATE stream g 0",
    "XGROUP CREATE stream STREAMS 0",
    "XGROUP CREATE stream COUNT 0",
];

/// Makes [`DATA`] and nothing else.
pub(crate) fn fill(client: &mut Client) {
    for setting in DATA {
        let reply = client.ask(setting).expect("the server answers");
        assert!(!reply.starts_with('-'), "{setting}: {reply}");
    }
}

/// A script that makes [`DATA`].
fn filling_script() -> String {
    let call = |setting: &&str| {
        let words: Vec<String> = setting.split(' ').map(|word| format!("'{word}'")).collect();
        format!("redis.call({})", words.join(","))
    };
    DATA.iter().map(call).collect::<Vec<_>>().join("; ")
}

/// What a subscriber was told: a mark, or that an event happened to a key.
enum Told {
    Mark(usize),
    Event { name: String, key: Vec<u8> },
}

fn told(message: &[u8]) -> Told {
    let Ok(Value::Array(fields)) = Value::parse(message) else { panic!("{} is no message", shown(message)) };
    let text = |at: usize| match &fields[at] {
        Value::Bulk(bytes) => bytes.clone(),
        other => panic!("{other:?} is no text"),
    };
    match fields.len() {
        3 => Told::Mark(String::from_utf8_lossy(&text(2)).parse().expect("marks are numbers")),
        _ => {
            let channel = String::from_utf8_lossy(&text(2)).into_owned();
            let name = channel.split_once("__:").expect("the pattern says so").1.to_owned();
            Told::Event { name, key: text(3) }
        }
    }
}

/// What the requests are expected to touch.
fn found(request: &ArgsBuf) -> (HashMap<Vec<u8>, bool>, bool) {
    let args = request.as_args();
    let mut keys = HashMap::new();
    let mut positions = KeyPositions::new();
    let row = resolve(args).expect("the requests are made from rows");
    // A request that does not say where its keys are must not touch any.
    let _ = row.keys.positions(args, &mut positions);
    for position in positions.iter() {
        let key = args.get(position.index as usize).expect("positions are within the request");
        *keys.entry(key.to_vec()).or_default() |= position.access.needs_write();
    }
    (keys, positions.has_unnamed())
}

fn has_keys(row: &&Row) -> bool {
    // WATCH is refused within a transaction and touches nothing.
    row.name != "WATCH" && row.keys.specs().iter().any(|spec| spec.access.is_key())
}

#[test]
fn nothing_is_touched_that_was_not_found() {
    let Some(server) = reference_server(&["--notify-keyspace-events", "EAm"]) else { return };
    let mut client = server.client().expect("the server accepts");
    let mut watcher = server.client().expect("the server accepts");
    watcher.command(&["PSUBSCRIBE", "__keyevent@*__:*"]).expect("the server answers");
    watcher.command(&["SUBSCRIBE", "mark"]).expect("the server answers");
    let mut rng = Rng::new(3);
    let mut made: Vec<ArgsBuf> = Vec::new();
    for row in shared_rows().filter(has_keys) {
        made.extend((0..ROUNDS * scale()).map(|_| requests::any(row, &mut rng)));
    }
    for shape in 0..requests::shapes() {
        made.extend((0..NEAR_ROUNDS * scale()).map(|_| requests::near(shape, &mut rng)));
    }
    let script = filling_script();
    let differences = Differences::of("written");
    let mut touching = BTreeSet::new();
    for part in made.chunks(PART) {
        let mut asked = Vec::new();
        for (number, inner) in part.iter().enumerate() {
            asked.push(request(["EVAL", &script, "0"]));
            asked.push(request(["PUBLISH", "mark", &number.to_string()]));
            asked.extend([request(["MULTI"]), inner.clone(), request(["EXEC"])]);
            asked.push(request(["PUBLISH", "mark", &part.len().to_string()]));
        }
        let replies = ask_all(&mut client, &asked);
        assert!(replies.chunks(6).all(|replies| replies[0] == b"$-1\r\n"), "the data could not be made");
        let mut marks_left = 2 * part.len();
        let mut running = None;
        while marks_left > 0 {
            match told(&watcher.reply().expect("the server notifies")) {
                Told::Mark(number) => {
                    marks_left -= 1;
                    running = part.get(number).map(|inner| (inner, found(inner)));
                }
                Told::Event { name, key } => {
                    let Some((inner, (keys, has_unnamed))) = &running else { continue };
                    let is_read = name == "keymiss";
                    let row = resolve(inner.as_args()).expect("it is made from a row");
                    let is_as_found = match keys.get(&key) {
                        Some(is_written) => is_read || *is_written || differences.has(row.name),
                        None => is_read && *has_unnamed,
                    };
                    assert!(is_as_found, "{name} of {} by {:?}, found {keys:?}", shown(&key), inner.as_args());
                    touching.insert(row.name);
                }
            }
        }
    }
    differences.assert_all_needed();
    // The rest are commands that random words do not make valid, or that read what exists, which is not notified.
    let silent: Vec<_> =
        shared_rows().filter(has_keys).map(|row| row.name).filter(|name| !touching.contains(name)).collect();
    eprintln!("{} commands touched keys; these did not: {silent:?}", touching.len());
    assert!(touching.len() >= 135, "only {} commands touched keys", touching.len());
}
