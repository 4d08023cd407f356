//! Which sections a request for INFO asks for, and how they write bytes. What answers has sections of its own, and one reading of the request.

use respool_wire::Args;

/// Words that ask for every section.
const ALL: [&[u8]; 3] = [b"all", b"everything", b"default"];

/// Whether `args`, a request for `INFO`, asks for the section called `name`: it names no section, all of them, or this one.
pub fn asks_for_section(args: Args<'_>, name: &str) -> bool {
    let asked = args.from(1);
    asked.is_empty()
        || asked.iter().any(|word| {
            word.eq_ignore_ascii_case(name.as_bytes()) || ALL.iter().any(|all| word.eq_ignore_ascii_case(all))
        })
}

/// The same for a section that is shown only if it is named or all are: a request that names none does not ask for it.
pub fn names_section(args: Args<'_>, name: &str) -> bool {
    let is_meant = |word: &[u8]| {
        word.eq_ignore_ascii_case(name.as_bytes()) || ALL[..2].iter().any(|all| word.eq_ignore_ascii_case(all))
    };
    args.from(1).iter().any(is_meant)
}

/// Bytes as Redis writes them for readers: with two decimals in the largest unit that they fill.
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [(u64, char); 4] = [(1 << 40, 'T'), (1 << 30, 'G'), (1 << 20, 'M'), (1 << 10, 'K')];
    let unit = UNITS.iter().find(|(size, _)| bytes >= *size);
    unit.map_or_else(|| format!("{bytes}B"), |(size, name)| format!("{:.2}{name}", bytes as f64 / *size as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::ArgsBuf;

    #[test]
    fn bytes_for_readers_change_their_unit_at_1024() {
        for (bytes, shown) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.00K"),
            (1536, "1.50K"),
            (66_560, "65.00K"),
            ((1 << 20) - 1, "1024.00K"),
            (3 << 29, "1.50G"),
            (1 << 41, "2.00T"),
        ] {
            assert_eq!(human_bytes(bytes), shown);
        }
    }

    #[test]
    fn the_default_sections_do_not_name_one() {
        let request: ArgsBuf = ["INFO", "default"].iter().collect();
        assert!(asks_for_section(request.as_args(), "Keyspace"));
        assert!(!names_section(request.as_args(), "Keyspace"));
    }

    #[test]
    fn a_section_is_asked_for_by_name_or_with_all_others() {
        for (request, is_asked) in [
            (&["INFO"][..], true),
            (&["INFO", "keyspace"], true),
            (&["INFO", "stats", "KEYSPACE"], true),
            (&["INFO", "All"], true),
            (&["INFO", "everything"], true),
            (&["INFO", "stats"], false),
            (&["INFO", ""], false),
        ] {
            let request: ArgsBuf = request.iter().collect();
            assert_eq!(asks_for_section(request.as_args(), "Keyspace"), is_asked, "{request:?}");
            let is_named = is_asked && request.as_args().len() > 1;
            assert_eq!(names_section(request.as_args(), "Keyspace"), is_named, "{request:?}");
        }
    }
}
