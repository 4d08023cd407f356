//! Places: sorted sets whose scores are cells of a grid on the globe.

mod cells;
mod search;

use respool_command::{GeoCommand, text};
use respool_wire::Protocol;

use super::sorted_set::add_scored;
use super::{Answer, Call, Fault};
use crate::number::double;
use crate::number::long_double::LongDouble;
use crate::values::SortedSet;
use cells::{GLOBE, Place, STEP_MAX};

const UNSUPPORTED_UNIT: &str = "ERR unsupported unit provided. please use M, KM, FT, MI";

/// The alphabet of a geohash: one digit for five bits.
const GEOHASH_DIGITS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
/// Digits that the bits of a score determine; Redis appends one constant digit.
const GEOHASH_LEN: u32 = 10;

/// Runs one command of the group.
pub(super) fn run(command: GeoCommand, call: &mut Call<'_, '_>) -> Answer {
    use search::Form;
    match command {
        GeoCommand::Geoadd => geoadd(call),
        GeoCommand::Geodist => geodist(call),
        GeoCommand::Geohash => geohash(call),
        GeoCommand::Geopos => geopos(call),
        GeoCommand::Georadius => search::run(call, Form::AroundPlace { may_store: true }),
        GeoCommand::GeoradiusRo => search::run(call, Form::AroundPlace { may_store: false }),
        GeoCommand::Georadiusbymember => search::run(call, Form::AroundMember { may_store: true }),
        GeoCommand::GeoradiusbymemberRo => search::run(call, Form::AroundMember { may_store: false }),
        GeoCommand::Geosearch => search::run(call, Form::Search),
        GeoCommand::Geosearchstore => search::run(call, Form::SearchStore),
    }
}

impl Call<'_, '_> {
    /// Parses the longitude at `index` and the latitude at `index + 1`.
    fn place(&self, index: usize) -> Result<Place, Fault> {
        let degrees = |index| double::parse(self.arg(index)).ok_or(text::NOT_A_FLOAT);
        let place = Place { longitude: degrees(index)?, latitude: degrees(index + 1)? };
        if place.is_on_map() {
            return Ok(place);
        }
        let Place { longitude, latitude } = place;
        let text = format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}");
        Err(Fault::Written(text.into_bytes()))
    }

    /// The meters of the unit at `index`.
    fn unit(&self, index: usize) -> Result<f64, Fault> {
        match () {
            () if self.is_word(index, "M") => Ok(1.0),
            () if self.is_word(index, "KM") => Ok(1000.0),
            () if self.is_word(index, "FT") => Ok(0.3048),
            () if self.is_word(index, "MI") => Ok(1609.34),
            () => Err(UNSUPPORTED_UNIT.into()),
        }
    }

    /// Replies a distance, to four digits.
    fn reply_distance(&mut self, distance: f64) {
        let text = if distance.is_nan() { "-nan".to_owned() } else { format!("{distance:.4}") };
        self.reply.bulk(text.as_bytes());
    }

    /// Replies a place as longitude and latitude.
    fn reply_place(&mut self, place: Place) {
        self.reply.array(2);
        for degrees in [place.longitude, place.latitude] {
            let text = LongDouble::from_f64(degrees).to_text();
            if self.reply.protocol() == Protocol::Resp3 {
                self.reply.raw(b",");
                self.reply.raw(&text);
                self.reply.raw(b"\r\n");
            } else {
                self.reply.bulk(&text);
            }
        }
    }
}

fn geoadd(call: &mut Call<'_, '_>) -> Answer {
    let (mut only_new, mut only_old, mut counts_changes) = (false, false, false);
    let mut first = 2;
    while first < call.args.len() {
        match () {
            () if call.is_word(first, "NX") => only_new = true,
            () if call.is_word(first, "XX") => only_old = true,
            () if call.is_word(first, "CH") => counts_changes = true,
            () => break,
        }
        first += 1;
    }
    let triples = call.args.from(first);
    if !triples.len().is_multiple_of(3) || (only_new && only_old) {
        return Err(text::SYNTAX.into());
    }
    let places = (first..call.args.len()).step_by(3).map(|index| call.place(index).map(Place::score));
    let scores: Vec<f64> = places.collect::<Result<_, _>>()?;
    if scores.is_empty() {
        return Err(text::SYNTAX.into());
    }
    let options = [only_new, only_old, counts_changes];
    let args = call.args;
    let members = (first + 2..args.len()).step_by(3).map(|index| args.get(index).unwrap_or_default());
    add_scored(call, call.arg(1), options, &scores, members)
}

fn geodist(call: &mut Call<'_, '_>) -> Answer {
    let unit = match call.args.len() {
        4 => 1.0,
        5 => call.unit(4)?,
        _ => return Err(text::SYNTAX.into()),
    };
    let found = call.read::<SortedSet>(call.arg(1))?;
    let sorted = found.and_then(|found| call.keyspace.view::<SortedSet>(found));
    let place = |index| sorted.and_then(|(sorted, heap)| sorted.score(heap, call.arg(index))).map(Place::of_score);
    match place(2).zip(place(3)) {
        Some((a, b)) => call.reply_distance(a.meters_to(b) / unit),
        None => call.reply.null(),
    }
    Ok(())
}

/// The scores of the members that follow the key, in the order of the arguments.
fn scores(call: &mut Call<'_, '_>) -> Result<Vec<Option<f64>>, Fault> {
    let found = call.read::<SortedSet>(call.arg(1))?;
    let sorted = found.and_then(|found| call.keyspace.view::<SortedSet>(found));
    let score = |member| sorted.and_then(|(sorted, heap)| sorted.score(heap, member));
    Ok(call.args.from(2).iter().map(score).collect())
}

fn geohash(call: &mut Call<'_, '_>) -> Answer {
    let scores = scores(call)?;
    call.reply.array(scores.len());
    for score in scores {
        let Some(place) = score.map(Place::of_score) else {
            call.reply.null();
            continue;
        };
        // The standard geohash uses another range of latitudes than scores do.
        let bits = GLOBE.cell(place, STEP_MAX).bits;
        let digit = |number: u32| GEOHASH_DIGITS[(bits >> (2 * STEP_MAX - 5 * number)) as usize & 31];
        let mut text: Vec<u8> = (1..=GEOHASH_LEN).map(digit).collect();
        text.push(GEOHASH_DIGITS[0]);
        call.reply.bulk(&text);
    }
    Ok(())
}

fn geopos(call: &mut Call<'_, '_>) -> Answer {
    let scores = scores(call)?;
    call.reply.array(scores.len());
    for score in scores {
        match score {
            Some(score) => call.reply_place(Place::of_score(score)),
            None => call.reply.null_array(),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::transcript::play;

    #[test]
    fn places_are_added_and_told() {
        play(
            "GEOADD s 13.361389 38.115556 Palermo 15.087269 37.502669 Catania -> :2
             GEOADD s CH 13.361389 38.115556 Palermo 15.087269 37.6 Catania -> :1
             GEOADD s XX 15.087269 37.502669 Catania -> :0
             GEODIST s Palermo Catania -> $11 166274.1516
             GEODIST s Palermo Catania km -> $8 166.2742
             GEODIST s Palermo none -> $-1
             GEODIST s Palermo Catania parsec -> -ERR unsupported unit provided. please use M, KM, FT, MI
             GEOHASH s Palermo none Catania -> *3 $11 sqc8b49rny0 $-1 $11 sqdtr74hyu0
             GEOPOS s Palermo none -> *2 *2 $20 13.36138933897018433 $20 38.11555639549629859 *-1
             GEOADD s 181 5 x -> -ERR invalid longitude,latitude pair 181.000000,5.000000
             GEOADD s x 5 x -> -ERR value is not a valid float
             GEOADD s NX XX 1 5 x -> -ERR syntax error
             #3
             GEOPOS s Palermo -> *1 *2 ,13.36138933897018433 ,38.11555639549629859",
        );
    }

    #[test]
    fn places_are_searched() {
        play(
            "GEOADD s 13.361389 38.115556 Palermo 15.087269 37.502669 Catania -> :2
             GEORADIUS s 15 37 200 km WITHDIST ASC -> *2 *2 $7 Catania $7 56.4413 *2 $7 Palermo $8 190.4424
             GEORADIUSBYMEMBER s Palermo 100 km -> *1 $7 Palermo
             GEORADIUSBYMEMBER s none 100 km -> -ERR could not decode requested zset member
             GEOSEARCH s FROMLONLAT 15 37 BYBOX 400 400 km ASC COUNT 1 WITHHASH -> *1 *2 $7 Catania :3479447370796909
             GEOSEARCH s FROMMEMBER Palermo BYRADIUS 300 km DESC -> *2 $7 Catania $7 Palermo
             GEOSEARCH s BYRADIUS 300 km ASC WITHCOORD -> -ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GEOSEARCH
             GEOSEARCHSTORE d s FROMLONLAT 15 37 BYRADIUS 200 km STOREDIST -> :2
             ZRANGE d 0 -1 -> *2 $7 Catania $7 Palermo
             GEORADIUS s 15 37 1 km STORE d -> :0
             EXISTS d -> :0",
        );
    }
}
