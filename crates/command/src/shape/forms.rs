//! The shapes that rows have, by name.

use respool_wire::Args;

use super::Shape;

pub(crate) static PLAIN: Shape = Shape::Plain;
pub(crate) static DOUBLE: Shape = Shape::Double;
/// Numbers, or nulls: `ZMSCORE`.
pub(crate) static DOUBLES: Shape = Shape::Array(&DOUBLE);
pub(crate) static TEXT: Shape = Shape::Text;
pub(crate) static SET: Shape = Shape::Set(&PLAIN);
pub(crate) static MAP: Shape = Shape::Map(&PLAIN);
pub(crate) static MAPS: Shape = Shape::Array(&MAP);
/// A member and its score: `ZPOPMIN key`.
pub(crate) static SCORED: Shape = Shape::Tuple(&[Shape::Plain, Shape::Double]);
/// Members and their scores: `ZRANGE ... WITHSCORES`.
pub(crate) static SCORED_PAIRS: Shape = Shape::Pairs(&DOUBLE);
pub(crate) static PAIRS: Shape = Shape::Pairs(&PLAIN);
/// A key, a member and its score: `BZPOPMIN`.
pub(crate) static KEY_AND_SCORED: Shape = Shape::Tuple(&[Shape::Plain, Shape::Plain, Shape::Double]);
/// A key, and pairs of members and scores: `ZMPOP`.
pub(crate) static KEY_AND_ALL_SCORED: Shape = Shape::Tuple(&[Shape::Plain, Shape::Array(&SCORED)]);
/// Coordinates of members: `GEOPOS`.
pub(crate) static POSITIONS: Shape = Shape::Array(&DOUBLES);
/// Members, each with what was asked for; of that only coordinates are an array: `GEOSEARCH`.
pub(crate) static PLACES: Shape = Shape::Nested(&Shape::Nested(&DOUBLES));
/// Streams and their entries: `XREAD`.
pub(crate) static STREAMS: Shape = Shape::Entries(&PLAIN);
/// `XINFO STREAM`, whose groups are told at length with `FULL` and counted without.
pub(crate) static STREAM: Shape = Shape::Fields(&[("groups", Shape::Array(&STREAM_GROUP))], &PLAIN);
static STREAM_GROUP: Shape = Shape::Fields(&[("consumers", Shape::Array(&MAP))], &PLAIN);
/// Figures, some of them ratios, and a map for each database: `MEMORY STATS`.
pub(crate) static MEMORY: Shape = Shape::Fields(
    &[
        ("dataset.percentage", Shape::Double),
        ("peak.percentage", Shape::Double),
        ("allocator-fragmentation.ratio", Shape::Double),
        ("allocator-rss.ratio", Shape::Double),
        ("rss-overhead.ratio", Shape::Double),
        ("fragmentation", Shape::Double),
    ],
    &MAP,
);
/// Commands, and a histogram of each: `LATENCY HISTOGRAM`.
pub(crate) static HISTOGRAMS: Shape = Shape::Map(&Shape::Map(&MAP));
/// Libraries and their functions: `FUNCTION LIST`.
pub(crate) static LIBRARIES: Shape = Shape::Array(&LIBRARY);
static LIBRARY: Shape = Shape::Fields(&[("functions", Shape::Array(&FUNCTION))], &PLAIN);
static FUNCTION: Shape = Shape::Fields(&[("flags", Shape::Set(&PLAIN))], &PLAIN);
/// What runs, and engines: `FUNCTION STATS`.
pub(crate) static RUNNING: Shape =
    Shape::Fields(&[("running_script", Shape::Map(&PLAIN)), ("engines", Shape::Map(&MAP))], &PLAIN);
/// Ranges of slots, and nodes, the last of whose properties is a map: `CLUSTER SLOTS`.
pub(crate) static SLOTS: Shape = Shape::Array(&Shape::Tuple(&[
    Shape::Plain,
    Shape::Plain,
    Shape::Tuple(&[Shape::Plain, Shape::Plain, Shape::Plain, Shape::Map(&PLAIN)]),
]));
/// Shards: `CLUSTER SHARDS`.
pub(crate) static SHARDS: Shape = Shape::Array(&Shape::Fields(&[("nodes", Shape::Array(&MAP))], &PLAIN));
/// `COMMAND` and `COMMAND INFO`.
pub(crate) static COMMANDS: Shape = Shape::Array(&COMMAND);
static COMMAND: Shape = Shape::Tuple(&[
    Shape::Plain,
    Shape::Plain,
    Shape::Set(&PLAIN),
    Shape::Plain,
    Shape::Plain,
    Shape::Plain,
    Shape::Set(&PLAIN),
    Shape::Set(&PLAIN),
    Shape::Set(&KEY_SPEC),
    Shape::Subcommands(&COMMAND),
]);
static KEY_SPEC: Shape = Shape::Fields(
    &[
        ("flags", Shape::Set(&PLAIN)),
        ("begin_search", Shape::Fields(&[("spec", Shape::Map(&PLAIN))], &PLAIN)),
        ("find_keys", Shape::Fields(&[("spec", Shape::Map(&PLAIN))], &PLAIN)),
    ],
    &PLAIN,
);
/// `COMMAND DOCS`.
pub(crate) static COMMAND_DOCS: Shape = Shape::Map(&COMMAND_DOC);
static COMMAND_DOC: Shape = Shape::Fields(
    &[
        ("doc_flags", Shape::Set(&PLAIN)),
        ("history", Shape::Set(&PLAIN)),
        ("arguments", Shape::Array(&ARGUMENT)),
        ("subcommands", Shape::Map(&COMMAND_DOC)),
    ],
    &PLAIN,
);
static ARGUMENT: Shape = Shape::Fields(&[("arguments", Shape::Array(&ARGUMENT))], &PLAIN);
/// `COMMAND GETKEYSANDFLAGS`.
pub(crate) static KEYS_AND_FLAGS: Shape = Shape::Array(&Shape::Tuple(&[Shape::Plain, Shape::Set(&PLAIN)]));

fn has_word(args: Args<'_>, from: usize, word: &str) -> bool {
    args.from(from).iter().any(|argument| argument.eq_ignore_ascii_case(word.as_bytes()))
}

/// `ZRANGE key start stop ... [WITHSCORES]` and its kin.
pub(crate) fn of_range(args: Args<'_>) -> &'static Shape {
    if has_word(args, 4, "WITHSCORES") { &SCORED_PAIRS } else { &PLAIN }
}

/// `ZUNION count key ... [WITHSCORES]` and its kin.
pub(crate) fn of_combination(args: Args<'_>) -> &'static Shape {
    let keys = args.get(1).and_then(|text| std::str::from_utf8(text).ok()).and_then(|text| text.parse::<usize>().ok());
    let behind_keys = keys.unwrap_or(0).saturating_add(2).min(args.len());
    if has_word(args, behind_keys, "WITHSCORES") { &SCORED_PAIRS } else { &PLAIN }
}

/// `ZRANDMEMBER key [count [WITHSCORES]]`.
pub(crate) fn of_random_members(args: Args<'_>) -> &'static Shape {
    if has_word(args, 3, "WITHSCORES") { &SCORED_PAIRS } else { &PLAIN }
}

/// `HRANDFIELD key [count [WITHVALUES]]`.
pub(crate) fn of_random_fields(args: Args<'_>) -> &'static Shape {
    if has_word(args, 3, "WITHVALUES") { &PAIRS } else { &PLAIN }
}

/// `ZPOPMIN key [count]`.
pub(crate) fn of_popped(args: Args<'_>) -> &'static Shape {
    if args.len() > 2 { &SCORED_PAIRS } else { &SCORED }
}

/// `SPOP key [count]`.
pub(crate) fn of_popped_members(args: Args<'_>) -> &'static Shape {
    if args.len() > 2 { &SET } else { &PLAIN }
}

/// `ZADD key [options] score member ...`.
pub(crate) fn of_added(args: Args<'_>) -> &'static Shape {
    const OPTIONS: [&[u8]; 6] = [b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR"];
    let options = args.from(2);
    let mut options = options.iter().take_while(|word| OPTIONS.iter().any(|option| word.eq_ignore_ascii_case(option)));
    if options.any(|word| word.eq_ignore_ascii_case(b"INCR")) { &DOUBLE } else { &PLAIN }
}
