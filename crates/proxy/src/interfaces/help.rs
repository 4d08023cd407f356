//! HELP of a command with subcommands, whichever feature has them.

use respool_command::Row;
use respool_wire::Encoder;

/// The subcommands of a container with what they do, as lines.
pub(crate) fn help(row: &'static Row, reply: &mut Encoder<'_>) {
    let container = row.name.split(' ').next().and_then(|name| respool_command::lookup(name.as_bytes())).unwrap_or(row);
    let mut lines = vec![format!("{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", container.name)];
    for subcommand in container.subcommands {
        lines.push(subcommand.word().to_owned());
        lines.push(format!("    {}", subcommand.doc.trim()));
    }
    reply.array(lines.len());
    lines.iter().for_each(|line| reply.simple(line));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;
    use respool_wire::Protocol;

    #[test]
    fn a_subcommand_is_told_with_what_it_does() {
        let mut out = Vec::new();
        request("PUBSUB HELP", |row, _| help(row, &mut Encoder::new(&mut out, Protocol::Resp2)));
        let out = String::from_utf8(out).expect("it is text");
        assert!(out.contains("+PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n"), "{out}");
        assert!(out.contains("\r\n+NUMPAT\r\n+    "), "{out}");
    }
}
