//! Which sections a request for INFO asks for. Those who answer have sections of their own, and one reading of the request.

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

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::ArgsBuf;

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
