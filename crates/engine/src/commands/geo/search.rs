//! `GEOSEARCH`, `GEORADIUS` and their kin: the members of a sorted set that lie in a shape on the globe.

use respool_command::text;

use super::super::{Answer, Call, Fault};
use super::cells::{Place, Search, Shape};
use crate::keyspace::{Found, events};
use crate::number::double;
use crate::store::heap::Heap;
use crate::store::partial_sort;
use crate::values::SortedSet;

const NOT_A_MEMBER: &str = "ERR could not decode requested zset member";
const RADIUS_NOT_A_NUMBER: &str = "ERR need numeric radius";
const RADIUS_NEGATIVE: &str = "ERR radius cannot be negative";
const WIDTH_NOT_A_NUMBER: &str = "ERR need numeric width";
const HEIGHT_NOT_A_NUMBER: &str = "ERR need numeric height";
const BOX_NEGATIVE: &str = "ERR height or width cannot be negative";
const COUNT_NOT_POSITIVE: &str = "ERR COUNT must be > 0";
const ANY_WITHOUT_COUNT: &str = "ERR the ANY argument requires COUNT argument";
const SEARCH_STORES_NO_MORE: &str =
    "ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options";
const RADIUS_STORES_NO_MORE: &str =
    "ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options";

/// The positions of a command's arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    AroundPlace { may_store: bool },
    AroundMember { may_store: bool },
    Search,
    SearchStore,
}

impl Form {
    fn is_search(self) -> bool {
        matches!(self, Self::Search | Self::SearchStore)
    }

    fn may_store_by_option(self) -> bool {
        matches!(self, Self::AroundPlace { may_store: true } | Self::AroundMember { may_store: true })
    }

    fn key_index(self) -> usize {
        if self == Self::SearchStore { 2 } else { 1 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    AsFound,
    Ascending,
    Descending,
}

/// The parsed options of a search.
struct Wanted<'c> {
    center: Option<Place>,
    /// The center is a member, which cannot be found because the key does not exist.
    has_center: bool,
    shape: Option<(Shape, f64)>,
    order: Order,
    count: Option<usize>,
    /// `ANY`: the search ends once it has found enough members.
    takes_any: bool,
    with_distance: bool,
    with_score: bool,
    with_place: bool,
    store: Option<&'c [u8]>,
    stores_distance: bool,
}

/// A member in the shape.
struct Hit {
    member: Vec<u8>,
    place: Place,
    score: f64,
    meters: f64,
}

pub(super) fn run(call: &mut Call<'_, '_>, form: Form) -> Answer {
    let found = call.read::<SortedSet>(call.arg(form.key_index()))?;
    let wanted = wanted(call, form, found)?;
    let (Some(found), Some(center), Some((shape, unit))) = (found, wanted.center, wanted.shape) else {
        match wanted.store {
            Some(key) => {
                call.keyspace.clear(call.at.database, key);
                return call.reply_integer(0);
            }
            None => call.reply.array(0),
        }
        return Ok(());
    };
    let search = Search { center, shape, unit };
    let first = wanted.count.filter(|_| wanted.takes_any);
    let mut hits = call
        .keyspace
        .view::<SortedSet>(found)
        .map_or_else(Vec::new, |(sorted, heap)| hits(sorted, heap, &search, first.unwrap_or(usize::MAX)));
    let ascending = |a: &Hit, b: &Hit| a.meters.total_cmp(&b.meters);
    let count = wanted.count.unwrap_or(usize::MAX);
    match wanted.order {
        // Without ANY, a limited reply contains the nearest members.
        Order::AsFound if wanted.count.is_none() || wanted.takes_any => {}
        Order::AsFound | Order::Ascending => partial_sort::sort(&mut hits, 0..count, ascending),
        Order::Descending => partial_sort::sort(&mut hits, 0..count, |a, b| ascending(b, a)),
    }
    hits.truncate(count);
    match wanted.store {
        Some(key) => {
            let event = if form.is_search() { events::GEOSEARCHSTORE } else { events::GEORADIUSSTORE };
            let sorted = stored(call, &wanted, &hits, unit);
            call.store(key, sorted, event);
            call.reply_count(hits.len())
        }
        None => reply(call, &wanted, &hits, unit),
    }
}

/// The members in the shape, cell by cell, until there are `max`.
fn hits(sorted: &SortedSet, heap: &Heap, search: &Search, max: usize) -> Vec<Hit> {
    let mut hits = Vec::new();
    for cell in search.cells() {
        if hits.len() >= max {
            break;
        }
        let (from, below) = cell.scores();
        let rank = sorted.rank_by_score(|score| score < from);
        if rank == sorted.len() {
            continue;
        }
        sorted.each_from(heap, rank, false, |member, score| {
            if score >= below {
                return false;
            }
            let place = Place::of_score(score);
            if let Some(meters) = search.distance(place) {
                hits.push(Hit { member: member.to_vec(), place, score, meters });
            }
            hits.len() < max
        });
    }
    hits
}

fn reply(call: &mut Call<'_, '_>, wanted: &Wanted<'_>, hits: &[Hit], unit: f64) -> Answer {
    let options = [wanted.with_distance, wanted.with_score, wanted.with_place];
    let more = options.into_iter().filter(|is_wanted| *is_wanted).count();
    call.reply.array(hits.len());
    for hit in hits {
        if more > 0 {
            call.reply.array(more + 1);
        }
        call.reply.bulk(&hit.member);
        if wanted.with_distance {
            call.reply_distance(hit.meters / unit);
        }
        if wanted.with_score {
            call.reply.integer(hit.score as i64);
        }
        if wanted.with_place {
            call.reply_place(hit.place);
        }
    }
    Ok(())
}

/// The members with their scores, or their distances, as a value of its own.
fn stored(call: &mut Call<'_, '_>, wanted: &Wanted<'_>, hits: &[Hit], unit: f64) -> SortedSet {
    let heap = &mut call.keyspace.heap;
    let mut sorted = SortedSet::new_indexed();
    for hit in hits {
        sorted.insert(heap, if wanted.stores_distance { hit.meters / unit } else { hit.score }, &hit.member);
    }
    sorted.repack(heap);
    sorted
}

impl Call<'_, '_> {
    fn place_of_member(&self, found: Found, index: usize) -> Result<Place, Fault> {
        let sorted = self.keyspace.view::<SortedSet>(found);
        let score = sorted.and_then(|(sorted, heap)| sorted.score(heap, self.arg(index)));
        score.map(Place::of_score).ok_or_else(|| NOT_A_MEMBER.into())
    }

    fn circle(&self, index: usize) -> Result<(Shape, f64), Fault> {
        let radius = double::parse(self.arg(index)).ok_or(RADIUS_NOT_A_NUMBER)?;
        if radius < 0.0 {
            return Err(RADIUS_NEGATIVE.into());
        }
        Ok((Shape::Circle { radius }, self.unit(index + 1)?))
    }

    fn rectangle(&self, index: usize) -> Result<(Shape, f64), Fault> {
        let width = double::parse(self.arg(index)).ok_or(WIDTH_NOT_A_NUMBER)?;
        let height = double::parse(self.arg(index + 1)).ok_or(HEIGHT_NOT_A_NUMBER)?;
        if width < 0.0 || height < 0.0 {
            return Err(BOX_NEGATIVE.into());
        }
        Ok((Shape::Box { width, height }, self.unit(index + 2)?))
    }
}

fn wanted<'c>(call: &Call<'c, '_>, form: Form, found: Option<Found>) -> Result<Wanted<'c>, Fault> {
    let mut wanted = Wanted {
        center: None,
        has_center: false,
        shape: None,
        order: Order::AsFound,
        count: None,
        takes_any: false,
        with_distance: false,
        with_score: false,
        with_place: false,
        store: None,
        stores_distance: false,
    };
    let mut index = match form {
        Form::AroundPlace { .. } => {
            wanted.center = Some(call.place(2)?);
            wanted.shape = Some(call.circle(4)?);
            6
        }
        Form::AroundMember { .. } => {
            // Without a key the type cannot be checked yet.
            if let Some(found) = found {
                wanted.center = Some(call.place_of_member(found, 2)?);
                wanted.shape = Some(call.circle(3)?);
            }
            5
        }
        Form::Search => 2,
        Form::SearchStore => {
            wanted.store = Some(call.arg(1));
            3
        }
    };
    let (mut is_around_place, mut is_circle, mut is_box) = (false, false, false);
    while index < call.args.len() {
        let left = call.args.len() - 1 - index;
        match () {
            () if call.is_word(index, "WITHDIST") => wanted.with_distance = true,
            () if call.is_word(index, "WITHHASH") => wanted.with_score = true,
            () if call.is_word(index, "WITHCOORD") => wanted.with_place = true,
            () if call.is_word(index, "ANY") => wanted.takes_any = true,
            () if call.is_word(index, "ASC") => wanted.order = Order::Ascending,
            () if call.is_word(index, "DESC") => wanted.order = Order::Descending,
            () if call.is_word(index, "COUNT") && left >= 1 => {
                let count = call.integer(index + 1)?;
                if count <= 0 {
                    return Err(COUNT_NOT_POSITIVE.into());
                }
                wanted.count = Some(usize::try_from(count).unwrap_or(usize::MAX));
                index += 1;
            }
            () if form.may_store_by_option() && call.is_word(index, "STORE") && left >= 1 => {
                (wanted.store, wanted.stores_distance) = (Some(call.arg(index + 1)), false);
                index += 1;
            }
            () if form.may_store_by_option() && call.is_word(index, "STOREDIST") && left >= 1 => {
                (wanted.store, wanted.stores_distance) = (Some(call.arg(index + 1)), true);
                index += 1;
            }
            () if form.is_search() && call.is_word(index, "FROMMEMBER") && left >= 1 && !is_around_place => {
                if let Some(found) = found {
                    wanted.center = Some(call.place_of_member(found, index + 1)?);
                }
                wanted.has_center = true;
                index += 1;
            }
            () if form.is_search() && call.is_word(index, "FROMLONLAT") && left >= 2 && !wanted.has_center => {
                wanted.center = Some(call.place(index + 1)?);
                is_around_place = true;
                index += 2;
            }
            () if form.is_search() && call.is_word(index, "BYRADIUS") && left >= 2 && !is_box => {
                wanted.shape = Some(call.circle(index + 1)?);
                is_circle = true;
                index += 2;
            }
            () if form.is_search() && call.is_word(index, "BYBOX") && left >= 3 && !is_circle => {
                wanted.shape = Some(call.rectangle(index + 1)?);
                is_box = true;
                index += 3;
            }
            () if form == Form::SearchStore && call.is_word(index, "STOREDIST") => wanted.stores_distance = true,
            () => return Err(text::SYNTAX.into()),
        }
        index += 1;
    }
    if wanted.store.is_some() && (wanted.with_distance || wanted.with_score || wanted.with_place) {
        return Err(if form.is_search() { SEARCH_STORES_NO_MORE } else { RADIUS_STORES_NO_MORE }.into());
    }
    if form.is_search() && !(wanted.has_center || is_around_place) {
        return Err(lacks(call, "exactly one of FROMMEMBER or FROMLONLAT can be specified for "));
    }
    if form.is_search() && !(is_circle || is_box) {
        return Err(lacks(call, "exactly one of BYRADIUS and BYBOX can be specified for "));
    }
    if wanted.takes_any && wanted.count.is_none() {
        return Err(ANY_WITHOUT_COUNT.into());
    }
    Ok(wanted)
}

/// A text that ends with the command's name as the client wrote it.
fn lacks(call: &Call<'_, '_>, what: &str) -> Fault {
    Fault::Written([b"ERR ", what.as_bytes(), call.arg(0)].concat())
}
