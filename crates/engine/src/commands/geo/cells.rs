//! Places on the globe as cells of a grid, and the cells that a search visits.
//!
//! A cell is a number whose bits are those of longitude and latitude in turn, the most significant first: cells that share
//! their first bits lie in one larger cell, so the scores of all places of a cell are a range. Constants and the order of every
//! sum are Redis's, because replies contain all digits of scores and distances. This module is independent of keys.

use std::cmp::Ordering;

/// Bits of a coordinate in a score: 52 bits together, which a double holds exactly.
pub(super) const STEP_MAX: u32 = 26;

/// The range of coordinates that a grid divides.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    longitude: (f64, f64),
    latitude: (f64, f64),
}

/// The grid of scores: the range of the square Mercator map.
pub(super) const MAP: Grid = Grid { longitude: (-180.0, 180.0), latitude: (-85.051_128_78, 85.051_128_78) };
/// The grid of the public geohash.
pub(super) const GLOBE: Grid = Grid { longitude: (-180.0, 180.0), latitude: (-90.0, 90.0) };

const EARTH_RADIUS_METERS: f64 = 6_372_797.560_856;
/// Half of the map's edge.
const MAP_METERS: f64 = 20_037_726.37;
const RADIANS: f64 = std::f64::consts::PI / 180.0;

/// A place in degrees.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Place {
    pub(super) longitude: f64,
    pub(super) latitude: f64,
}

impl Place {
    /// Whether the place is within the range of the map.
    pub(super) fn is_on_map(self) -> bool {
        let is_in = |value: f64, (min, max): (f64, f64)| (min..=max).contains(&value);
        is_in(self.longitude, MAP.longitude) && is_in(self.latitude, MAP.latitude)
    }

    /// The place of a score. Every number is a valid score.
    pub(super) fn of_score(score: f64) -> Self {
        let area = MAP.area(Cell { bits: to_bits(score), step: STEP_MAX });
        let middle = |(low, high): (f64, f64), (min, max): (f64, f64)| ((low + high) / 2.0).min(max).max(min);
        Self { longitude: middle(area.longitude, MAP.longitude), latitude: middle(area.latitude, MAP.latitude) }
    }

    /// The score of a place on the map.
    pub(super) fn score(self) -> f64 {
        MAP.cell(self, STEP_MAX).bits as f64
    }

    /// Meters to another place, on a round earth.
    pub(super) fn meters_to(self, other: Self) -> f64 {
        let (latitude, other_latitude) = (self.latitude * RADIANS, other.latitude * RADIANS);
        let (longitude, other_longitude) = (self.longitude * RADIANS, other.longitude * RADIANS);
        let u = ((other_latitude - latitude) / 2.0).sin();
        let v = ((other_longitude - longitude) / 2.0).sin();
        2.0 * EARTH_RADIUS_METERS * (u * u + latitude.cos() * other_latitude.cos() * v * v).sqrt().asin()
    }
}

/// Converts a double to an unsigned integer as x86-64 does.
fn to_bits(score: f64) -> u64 {
    const HALF: f64 = (1_u64 << 63) as f64;
    let truncate = |score: f64| if (-HALF..HALF).contains(&score) { score as i64 } else { i64::MIN };
    if score >= HALF { truncate(score - HALF) as u64 ^ 1 << 63 } else { truncate(score) as u64 }
}

/// A cell of a grid whose edges are divided into two to the power of `step`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cell {
    pub(super) bits: u64,
    pub(super) step: u32,
}

/// The degrees that a cell covers.
struct Area {
    longitude: (f64, f64),
    latitude: (f64, f64),
}

/// Spreads the bits of a word over the even bit positions.
fn spread(word: u32) -> u64 {
    const MASKS: [(u32, u64); 5] = [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ];
    MASKS.into_iter().fold(word.into(), |bits, (shift, mask)| (bits | bits << shift) & mask)
}

/// Gathers the bits at even positions into a word.
fn gather(bits: u64) -> u32 {
    const MASKS: [(u32, u64); 5] = [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0f0f_0f0f_0f0f_0f0f),
        (4, 0x00ff_00ff_00ff_00ff),
        (8, 0x0000_ffff_0000_ffff),
        (16, 0x0000_0000_ffff_ffff),
    ];
    let even = bits & 0x5555_5555_5555_5555;
    MASKS.into_iter().fold(even, |bits, (shift, mask)| (bits | bits >> shift) & mask) as u32
}

impl Grid {
    /// The cell of a place that lies in the grid.
    pub(super) fn cell(self, place: Place, step: u32) -> Cell {
        let column = |value: f64, (min, max): (f64, f64)| ((value - min) / (max - min) * (1_u64 << step) as f64) as u32;
        let (longitude, latitude) = (column(place.longitude, self.longitude), column(place.latitude, self.latitude));
        Cell { bits: spread(latitude) | spread(longitude) << 1, step }
    }

    fn area(self, cell: Cell) -> Area {
        let columns = (1_u64 << cell.step) as f64;
        let edges = |column: u32, (min, max): (f64, f64)| {
            let edge = |column: u32| min + (f64::from(column) / columns) * (max - min);
            (edge(column), edge(column.wrapping_add(1)))
        };
        Area {
            longitude: edges(gather(cell.bits >> 1), self.longitude),
            latitude: edges(gather(cell.bits), self.latitude),
        }
    }
}

/// The offset of a neighbour, in cells to the east and to the north.
type Direction = (i32, i32);
const NORTH: Direction = (0, 1);
const SOUTH: Direction = (0, -1);
const EAST: Direction = (1, 0);
const WEST: Direction = (-1, 0);
/// All neighbours in the order in which Redis searches them after the cell itself.
const AROUND: [Direction; 8] = [NORTH, SOUTH, EAST, WEST, (1, 1), (-1, 1), (1, -1), (-1, -1)];

impl Cell {
    /// The neighbour in a direction; the grid wraps around at its edges.
    fn neighbour(self, (east, north): Direction) -> Self {
        let mask = u32::MAX >> (32 - self.step);
        // The last degree of the map is a column of its own; only a step to the east or west leaves it.
        let moved = |column: u32, by: i32| if by == 0 { column } else { column.wrapping_add_signed(by) & mask };
        let (longitude, latitude) = (moved(gather(self.bits >> 1), east), moved(gather(self.bits), north));
        Self { bits: spread(latitude) | spread(longitude) << 1, ..self }
    }

    /// The half-open range of the scores in this cell.
    pub(super) fn scores(self) -> (f64, f64) {
        let shift = 2 * (STEP_MAX - self.step);
        ((self.bits << shift) as f64, ((self.bits + 1) << shift) as f64)
    }
}

/// The shape to search around a place; sizes are in meters.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Circle { radius: f64 },
    Box { width: f64, height: f64 },
}

/// A search: a shape around a place, in units of some meters each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    pub(super) center: Place,
    /// Sizes in the unit.
    pub(super) shape: Shape,
    /// Meters of a unit.
    pub(super) unit: f64,
}

impl Search {
    /// The distance in meters of a place within the shape.
    pub(super) fn distance(&self, place: Place) -> Option<f64> {
        match self.shape {
            Shape::Circle { radius } => {
                let distance = self.center.meters_to(place);
                // NaN does not exceed the radius.
                let is_too_far = distance.partial_cmp(&(radius * self.unit)) == Some(Ordering::Greater);
                (!is_too_far).then_some(distance)
            }
            Shape::Box { width, height } => {
                let beside = Place { latitude: place.latitude, ..self.center };
                let above = Place { longitude: place.longitude, ..self.center };
                let is_outside = place.meters_to(beside) > width * self.unit / 2.0
                    || place.meters_to(above) > height * self.unit / 2.0;
                (!is_outside).then(|| self.center.meters_to(place))
            }
        }
    }

    /// The approximate bounding box of the shape, in degrees.
    fn bounds(&self) -> Area {
        let (width, height) = match self.shape {
            Shape::Circle { radius } => (self.unit * radius, self.unit * radius),
            Shape::Box { width, height } => (self.unit * (width / 2.0), self.unit * (height / 2.0)),
        };
        let Place { longitude, latitude } = self.center;
        let up = height / EARTH_RADIUS_METERS / RADIANS;
        // A degree of longitude is shortest at the edge that is nearest to a pole.
        let edge = if latitude < 0.0 { latitude - up } else { latitude + up };
        let aside = width / EARTH_RADIUS_METERS / (edge * RADIANS).cos() / RADIANS;
        Area { longitude: (longitude - aside, longitude + aside), latitude: (latitude - up, latitude + up) }
    }

    /// The largest step whose cells are so large that nine of them cover the shape, in most places.
    fn estimated_step(&self) -> u32 {
        let mut meters = match self.shape {
            Shape::Circle { radius } => radius,
            Shape::Box { width, height } => ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt(),
        } * self.unit;
        if meters == 0.0 {
            return STEP_MAX;
        }
        let mut step = 1_i32;
        while meters < MAP_METERS {
            meters *= 2.0;
            step += 1;
        }
        // Cells are narrower towards the poles.
        let latitude = self.center.latitude.abs();
        let narrowing = i32::from(latitude > 66.0) + i32::from(latitude > 80.0);
        (step - 2 - narrowing).clamp(1, STEP_MAX as i32) as u32
    }

    /// The cells that cover the shape, in search order and without duplicates.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let bounds = self.bounds();
        let mut step = self.estimated_step();
        let mut cell = MAP.cell(self.center, step);
        let of = |direction: Direction| MAP.area(cell.neighbour(direction));
        let is_too_small = of(NORTH).latitude.1 < bounds.latitude.1
            || of(SOUTH).latitude.0 > bounds.latitude.0
            || of(EAST).longitude.1 < bounds.longitude.1
            || of(WEST).longitude.0 > bounds.longitude.0;
        if step > 1 && is_too_small {
            step -= 1;
            cell = MAP.cell(self.center, step);
        }
        let area = MAP.area(cell);
        let is_useless = |(east, north): Direction| {
            (north < 0 && area.latitude.0 < bounds.latitude.0)
                || (north > 0 && area.latitude.1 > bounds.latitude.1)
                || (east < 0 && area.longitude.0 < bounds.longitude.0)
                || (east > 0 && area.longitude.1 > bounds.longitude.1)
        };
        let mut cells = vec![cell];
        for direction in AROUND {
            let neighbour = cell.neighbour(direction);
            if (step < 2 || !is_useless(direction)) && !cells.contains(&neighbour) {
                cells.push(neighbour);
            }
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::random::Random;

    fn degrees(random: &mut Random, max: f64) -> f64 {
        (random.below(2_000_001) as f64 / 1_000_000.0 - 1.0) * max
    }

    #[test]
    fn a_place_is_found_again() {
        let mut random = Random::new(9);
        for _ in 0..10_000 {
            let place = Place { longitude: degrees(&mut random, 180.0), latitude: degrees(&mut random, 85.05) };
            let again = Place::of_score(place.score());
            assert!(place.meters_to(again) < 0.6, "{place:?} {again:?}");
            assert_eq!(again.score(), place.score(), "{place:?}");
        }
        for score in [-1.0, 1e300, -1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0] {
            assert!(Place::of_score(score).is_on_map(), "{score}");
        }
    }

    #[test]
    fn cells_cover_what_is_searched() {
        let mut random = Random::new(10);
        let mut inside = 0;
        for _ in 0..3_000 {
            let center = Place { longitude: degrees(&mut random, 170.0), latitude: degrees(&mut random, 60.0) };
            let magnitude = random.below(20);
            let size = 1.0 + random.below(1 << magnitude) as f64;
            let shape = match random.below(2) {
                0 => Shape::Circle { radius: size },
                _ => Shape::Box { width: size, height: size * 1.5 },
            };
            let search = Search { center, shape, unit: 1.0 };
            let cells = search.cells();
            for _ in 0..20 {
                let reach = size / 90_000.0;
                let place = Place {
                    longitude: center.longitude + degrees(&mut random, reach),
                    latitude: center.latitude + degrees(&mut random, reach),
                };
                let is_wanted = place.is_on_map() && search.distance(Place::of_score(place.score())).is_some();
                let is_covered = || {
                    cells.iter().any(|cell| {
                        let (min, max) = cell.scores();
                        (min..max).contains(&place.score())
                    })
                };
                assert!(!is_wanted || is_covered(), "{search:?} {place:?}");
                inside += u32::from(is_wanted);
            }
        }
        assert!(inside > 10_000, "{inside} places were looked for");
    }
}
