//! A set of commands: a bit per row, and one for the commands that are not known yet.

use std::sync::LazyLock;

use respool_command::{Categories, Command, Row, all};

/// Bits: one per row, and the last for commands to come.
const BITS: usize = Command::COUNT + 1;
const WORDS: usize = BITS.div_ceil(64);

/// Which commands and subcommands are in it. Containers have a bit of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommandSet([u64; WORDS]);

impl CommandSet {
    /// None.
    pub(crate) const NONE: Self = Self([0; WORDS]);
    /// All, those to come included.
    pub(crate) const ALL: Self = Self([u64::MAX; WORDS]);

    /// Whether a command is in it.
    pub(crate) fn has(&self, row: &Row) -> bool {
        self.has_bit(bit(row))
    }

    /// Whether commands that have no row are.
    pub(crate) fn has_future(&self) -> bool {
        self.has_bit(BITS - 1)
    }

    fn has_bit(&self, bit: usize) -> bool {
        self.0[bit / 64] & (1 << (bit % 64)) != 0
    }

    fn set(&mut self, row: &Row, is_in: bool) {
        let bit = bit(row);
        let mask = 1 << (bit % 64);
        if is_in {
            self.0[bit / 64] |= mask;
        } else {
            self.0[bit / 64] &= !mask;
        }
    }

    /// Puts a command in or takes it out, and with a container its subcommands.
    pub(crate) fn change(&mut self, row: &Row, is_in: bool) {
        self.set(row, is_in);
        row.subcommands.iter().for_each(|row| self.set(row, is_in));
    }

    /// Changes every command of a category.
    pub(crate) fn change_category(&mut self, category: Categories, is_in: bool) {
        of_category(category).for_each(|row| self.change(row, is_in));
    }

    /// How many commands of a category, by its place among all, are in it, and how many are not. Those that Redis 7.0 does
    /// not have do not count, so that the rules that describe a set are the ones that it gives.
    pub(crate) fn count(&self, category: usize) -> (u32, u32) {
        let Some(counted) = COUNTED.get(category) else { return (0, 0) };
        let ones = |words: &mut dyn Iterator<Item = u64>| words.map(u64::count_ones).sum::<u32>();
        let inside = ones(&mut self.0.iter().zip(counted.0).map(|(word, mask)| word & mask));
        (inside, ones(&mut counted.0.into_iter()) - inside)
    }
}

/// The commands of each category that count, in the order of [`Categories::ALL`].
static COUNTED: LazyLock<Vec<CommandSet>> = LazyLock::new(|| {
    let members = |(category, _): &(Categories, &str)| {
        let mut set = CommandSet::NONE;
        of_category(*category).filter(|row| is_of_redis(row)).for_each(|row| set.set(row, true));
        set
    };
    Categories::ALL.iter().map(members).collect()
});

/// A command without a row of its own shares the bit of those to come.
fn bit(row: &Row) -> usize {
    row.command.ordinal().min(BITS - 1)
}

/// The rows of a category, containers before their subcommands.
pub(crate) fn of_category(category: Categories) -> impl Iterator<Item = &'static Row> {
    all().filter(move |row| row.categories.has(category))
}

/// Whether Redis 7.0 has the command.
fn is_of_redis(row: &Row) -> bool {
    let mut numbers = row.since.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let since = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    since <= (7, 0) && !row.is_ours()
}
