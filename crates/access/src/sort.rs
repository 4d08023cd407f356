//! `SORT` with `BY` or `GET` reads keys that no argument names, so its user needs the right to read every key.

use respool_command::{Command, GenericCommand, KeyPositions, Row};
use respool_wire::Args;

use crate::user::User;

/// An option of `SORT` that reads keys by a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortOption {
    /// `BY`.
    By,
    /// `GET`.
    Get,
}

impl User {
    /// The first option of a `SORT` that it may not use. `None`: it may use all, or this is another request.
    pub fn denied_sort_option(
        &self,
        row: &'static Row,
        args: Args<'_>,
        positions: &mut KeyPositions,
    ) -> Option<SortOption> {
        if !matches!(row.command, Command::Generic(GenericCommand::Sort | GenericCommand::SortRo)) {
            return None;
        }
        let option = option_that_reads(args)?;
        (!self.may_read_every_key(row, args, positions)).then_some(option)
    }
}

/// The first option that reads keys, read as execution reads them.
fn option_that_reads(args: Args<'_>) -> Option<SortOption> {
    let mut at = 2;
    while let Some(word) = args.get(at) {
        let behind = args.len() - at - 1;
        let word = word.split(|byte| *byte == 0).next().unwrap_or_default();
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        if is("BY") && behind >= 1 {
            let pattern = args.get(at + 1).unwrap_or_default();
            if pattern.contains(&b'*') {
                return Some(SortOption::By);
            }
            at += 1;
        } else if is("GET") && behind >= 1 {
            return Some(SortOption::Get);
        } else if is("LIMIT") && behind >= 2 {
            at += 2;
        } else if is("STORE") && behind >= 1 {
            at += 1;
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::ArgsBuf;

    #[test]
    fn options_of_sort_are_read_as_execution_reads_them() {
        let option = |request: &str| {
            let args: ArgsBuf = request.split(' ').collect();
            option_that_reads(args.as_args())
        };
        assert_eq!(option("SORT l BY w_*"), Some(SortOption::By));
        assert_eq!(option("SORT l BY nosort GET #"), Some(SortOption::Get));
        assert_eq!(option("SORT l BY nosort STORE GET"), None);
        assert_eq!(option("SORT l LIMIT 0 BY STORE by"), None);
        assert_eq!(option("SORT l asc get x by y*"), Some(SortOption::Get));
    }
}
