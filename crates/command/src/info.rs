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

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::ArgsBuf;

    #[test]
    fn a_section_is_asked_for_by_name_or_with_all_others() {
        for (request, is_asked) in [
            (&["INFO"][..], true),
            (&["INFO", "keyspace"], true),
            (&["INFO", "stats", "KEYSPACE"], true),
            (&["INFO", "All"], true),
            (&["INFO", "stats"], false),
            (&["INFO", ""], false),
        ] {
            let request: ArgsBuf = request.iter().collect();
            assert_eq!(asks_for_section(request.as_args(), "Keyspace"), is_asked, "{request:?}");
        }
    }
}
