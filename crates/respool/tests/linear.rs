//! Real redis-servers under faults: what clients were told of registers, counters, lists and transactions fits one order of all
//! their requests. The servers keep an append-only file, so a kill loses nothing that was answered.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use respool_testkit::linear::{Action, Answer, Operation, Verdict, check, talk};
use respool_testkit::{Address, Client, PATIENCE, RedisServer, Respool, Rng, TempDir, request};
use rustix::process::{Pid, Signal, kill_process};

const CLIENTS: u32 = 8;
/// How long clients ask, and until enough has been answered. All keys are new ones after so many requests, so that what is
/// unknown does not pile up.
const LENGTH: Duration = Duration::from_secs(6);
const REQUESTS_PER_EPOCH: u32 = 120;
/// Keys of an epoch: registers, counters and lists, which one tag keeps on one node.
const KEYS: u32 = 6;
const STEPS_MAX: usize = 500_000;
/// Requests that have to be answered, or the run was too cruel.
const ANSWERED_MIN: usize = 2_000;
/// One value of so many is written with so many digits, most of them zeros: as a large request, which is passed on as it comes, or collected where
/// it is part of a transaction.
const LARGE_ONE_IN: u64 = 6;
const LARGE_DIGITS: usize = 60_000;
/// A server keeps what it was told over its death.
const KEEPS: [&str; 6] = ["--appendonly", "yes", "--appendfsync", "no", "--enable-debug-command", "yes"];

/// What all clients share.
struct World {
    address: Address,
    begin: Instant,
    is_over: AtomicBool,
    asked: AtomicU32,
    answered: AtomicUsize,
    values: AtomicU64,
}

impl World {
    fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    fn value(&self) -> u64 {
        self.values.fetch_add(1, Ordering::SeqCst)
    }
}

fn name(key: u32) -> String {
    format!("{{{}}}:{}", key / KEYS, key % KEYS)
}

/// How a request ended.
enum End {
    Answered(Vec<Answer>),
    Unknown,
    /// It was not done.
    Refused,
}

/// What an error says.
fn end_of(error: &str) -> io::Result<End> {
    let is_known = [
        "-ERR node ",
        "-ERR the connection on which",
        "-EXECABORT",
        "-LOADING",
        "-ERR the node's answer",
        "-CROSSSLOT",
    ]
    .iter()
    .any(|beginning| error.starts_with(beginning));
    match is_known {
        true if error.contains("may or may not") || error.contains("does not fit") => Ok(End::Unknown),
        true => Ok(End::Refused),
        false => Err(io::Error::other(format!("an error that no fault explains: {error}"))),
    }
}

/// One client until the time is over: its requests, one after the other.
fn client(world: &World, number: u32) -> io::Result<Vec<Operation>> {
    let mut rng = Rng::part(7, u64::from(number));
    let mut history = Vec::new();
    let mut client = Client::connect(&world.address)?;
    while !world.is_over.load(Ordering::SeqCst) {
        let epoch = world.asked.fetch_add(1, Ordering::SeqCst) / REQUESTS_PER_EPOCH;
        let key = |kind: u32, rng: &mut Rng| epoch * KEYS + kind * 2 + rng.below(2) as u32;
        let (register, counter, list) = (key(0, &mut rng), key(1, &mut rng), key(2, &mut rng));
        let value = world.value();
        match rng.below(10) {
            0 | 1 => ask(world, &mut client, number, vec![Action::Get { key: register }], false, &mut history)?,
            2 => ask(world, &mut client, number, vec![Action::Set { key: register, value }], false, &mut history)?,
            3 => ask(world, &mut client, number, vec![Action::Swap { key: register, value }], false, &mut history)?,
            4 => ask(world, &mut client, number, vec![Action::Increment { key: counter }], false, &mut history)?,
            5 => ask(world, &mut client, number, vec![Action::Push { key: list, value }], false, &mut history)?,
            6 => ask(world, &mut client, number, vec![Action::Pop { key: list }], false, &mut history)?,
            7 => {
                let actions = vec![
                    Action::Swap { key: register, value },
                    Action::Increment { key: counter },
                    Action::Push { key: list, value },
                ];
                ask(world, &mut client, number, actions, true, &mut history)?;
            }
            _ => {
                let watched = client.command(&["WATCH", &name(register)])?;
                let is_watched = watched == b"+OK\r\n";
                if !is_watched {
                    end_of(&String::from_utf8_lossy(&watched))?;
                }
                ask(world, &mut client, number, vec![Action::Get { key: register }], false, &mut history)?;
                let read = history.last().and_then(|last| last.ended.as_ref()).map(|(_, answers)| answers[0].clone());
                match read {
                    Some(Answer::Value(expected)) if is_watched => {
                        let action = Action::CompareAndSet { key: register, expected, value };
                        ask(world, &mut client, number, vec![action], true, &mut history)?;
                    }
                    _ => drop(client.command(&["UNWATCH"])?),
                }
            }
        }
    }
    Ok(history)
}

/// A request in words.
fn words(action: &Action) -> Vec<String> {
    let mut words = talk::words(action, &name(action.key()), "0.05");
    let value = match action {
        Action::Set { value, .. } | Action::Swap { value, .. } | Action::Push { value, .. } => Some(*value),
        Action::CompareAndSet { value, .. } => Some(*value),
        _ => None,
    };
    if let Some(value) = value.filter(|value| value % LARGE_ONE_IN == 0) {
        words[2] = format!("{value:0>LARGE_DIGITS$}");
    }
    words
}

/// Sends one request, or a transaction, and notes what became of it.
fn ask(
    world: &World,
    client: &mut Client,
    number: u32,
    actions: Vec<Action>,
    is_block: bool,
    history: &mut Vec<Operation>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    let block = |word: &str| if is_block { request(&[word]) } else { Vec::new() };
    bytes.extend(block("MULTI"));
    actions.iter().for_each(|action| bytes.extend(request(&words(action))));
    bytes.extend(block("EXEC"));
    let called = world.now();
    // A large one is on its way while something happens to its node.
    for piece in bytes.chunks(LARGE_DIGITS / 4) {
        client.send(piece)?;
        if bytes.len() > LARGE_DIGITS {
            thread::sleep(Duration::from_millis(2));
        }
    }
    if is_block {
        client.replies(1 + actions.len())?;
    }
    let reply = String::from_utf8_lossy(&client.reply()?).into_owned();
    let ended = world.now();
    let end = match &actions[..] {
        _ if reply.starts_with('-') => end_of(&reply)?,
        [Action::CompareAndSet { .. }] if reply == "*-1\r\n" => End::Answered(vec![Answer::Swapped(false)]),
        // The time of a pop may be over before the node was asked.
        [Action::Pop { .. }] if reply == "*-1\r\n" => End::Refused,
        _ => {
            let told = if is_block { reply.clone() } else { format!("*1\r\n{reply}") };
            let answers = talk::answers(&actions, name, &told);
            End::Answered(answers.ok_or_else(|| io::Error::other(format!("{actions:?} got {reply:?}")))?)
        }
    };
    let operation = |actions, ended| Operation { client: number, called, ended, actions };
    match end {
        End::Refused => {}
        End::Answered(answers) => {
            world.answered.fetch_add(1, Ordering::SeqCst);
            history.push(operation(actions, Some((ended, answers))));
        }
        End::Unknown => match actions[..] {
            // What was popped for a request that failed may have been put back.
            [Action::Pop { key }] => {
                let ticket = world.value();
                history.push(operation(vec![Action::Take { key, ticket }], None));
                history.push(operation(vec![Action::PutBack { key, ticket }], None));
            }
            _ => history.push(operation(actions, None)),
        },
    }
    Ok(())
}

/// Kills, stops, slows and drains servers and reads the settings again, until the time is over and enough was answered.
fn trouble(
    world: &World,
    servers: &mut [RedisServer],
    respool: &Respool,
    settings: &std::path::Path,
) -> io::Result<usize> {
    let mut rng = Rng::new(3);
    let begin = Instant::now();
    let mut count = 0;
    let is_enough = || world.answered.load(Ordering::SeqCst) > ANSWERED_MIN;
    while begin.elapsed() < LENGTH || (begin.elapsed() < PATIENCE && !is_enough()) {
        let node = rng.below(servers.len());
        let pause = Duration::from_millis(rng.between(20, 250) as u64);
        match count % 5 {
            0 => {
                servers[node].kill()?;
                thread::sleep(pause);
                servers[node].restart()?;
            }
            1 => {
                servers[node].pause()?;
                thread::sleep(pause);
                servers[node].resume()?;
            }
            2 => drop(servers[node].client()?.ask("DEBUG SLEEP 0.2")?),
            3 => {
                let mode = *rng.pick(&["multiplex", "transaction", "session"]);
                fs::write(settings, format!("pool_mode = \"{mode}\"\n"))?;
                let pid = i32::try_from(respool.pid()).ok().and_then(Pid::from_raw).expect("a child has a process id");
                kill_process(pid, Signal::HUP)?;
            }
            _ => {
                let mut operator = respool.client()?;
                drop(operator.ask(&format!("PROXY DRAIN {}", servers[node].tcp()))?);
                thread::sleep(pause);
                drop(operator.ask(&format!("PROXY RESUME {}", servers[node].tcp()))?);
            }
        }
        count += 1;
        thread::sleep(Duration::from_millis(rng.between(50, 200) as u64));
    }
    Ok(count)
}

#[test]
fn real_servers_under_faults_fit_one_order_of_all_requests() -> io::Result<()> {
    let mut servers = (0..2).map(|_| RedisServer::start_with(&KEEPS)).collect::<io::Result<Vec<_>>>()?;
    let nodes: Vec<Address> = servers.iter().map(RedisServer::tcp).collect();
    let directory = TempDir::new()?;
    let settings = directory.join("respool.toml");
    fs::write(&settings, "pool_mode = \"multiplex\"\n")?;
    let settings_text = settings.display().to_string();
    let arguments =
        ["--config", &settings_text, "--workers", "2", "--admin-commands", "allow", "--request-timeout", "150ms"];
    let further = ["--reconnect-max", "100ms", "--large-request-bytes", "16kb"];
    let respool = Respool::start(&Respool::binary()?, &nodes, &[&arguments[..], &further].concat())?;
    let world = World {
        address: respool.tcp(),
        begin: Instant::now(),
        is_over: AtomicBool::new(false),
        asked: AtomicU32::new(0),
        answered: AtomicUsize::new(0),
        values: AtomicU64::new(1),
    };
    let (histories, faults) = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let world = &world;
                scope.spawn(move || client(world, number))
            })
            .collect();
        let faults = trouble(&world, &mut servers, &respool, &settings);
        world.is_over.store(true, Ordering::SeqCst);
        let histories: Vec<_> =
            clients.into_iter().map(|client| client.join().expect("a client does not panic")).collect();
        (histories, faults)
    });
    let history = histories.into_iter().collect::<io::Result<Vec<_>>>()?.concat();
    let answered = history.iter().filter(|operation| operation.ended.is_some()).count();
    let unknown = history.len() - answered;
    // Epochs by themselves: a search that gives up says of which it does not know.
    let mut epochs: HashMap<u32, Vec<Operation>> = HashMap::new();
    for operation in history {
        epochs.entry(operation.actions[0].key() / KEYS).or_default().push(operation);
    }
    let verdicts: Vec<Verdict> = epochs.values().map(|history| check(history, STEPS_MAX)).collect();
    if let Some(Verdict::Violation(told)) = verdicts.iter().find(|verdict| matches!(verdict, Verdict::Violation(_))) {
        panic!("no order fits what clients were told:\n{told}");
    }
    let undecided = verdicts.iter().filter(|verdict| **verdict == Verdict::Undecided).count();
    let told = format!("{answered} answered, {unknown} unknown, {} histories, {undecided} undecided", verdicts.len());
    let large = respool.client()?.ask("INFO proxy")?;
    let large = large.lines().find_map(|line| line.strip_prefix("requests_in_pieces:")?.parse().ok()).unwrap_or(0_u64);
    println!("{told}, {} faults, {large} requests in pieces", faults?);
    assert!(large > 100, "{large} large requests were passed on as they came");
    assert!(answered > ANSWERED_MIN && unknown > 0 && undecided * 20 <= verdicts.len(), "{told}");
    Ok(())
}
