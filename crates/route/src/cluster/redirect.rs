//! What an error of a cluster's node asks of the client that gets it.
//!
//! All of these errors are given before a command is executed, so the request may be sent again, wherever to. The exception are
//! errors that a script was given and passed on: what the script did before stays done. They name the script.

use memchr::memmem;

use super::address::Address;
use crate::SLOTS;
use crate::limits::REDIRECT_BYTES_MAX;

/// What a node asks for with an error. Its request was not executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// The slot is at another member, from now on.
    Moved {
        /// The slot.
        slot: u16,
        /// Where it is.
        to: Address,
    },
    /// The slot is on its way to another member, which has this key already or will have it. Only this request goes there, behind `ASKING`.
    Ask {
        /// The slot.
        slot: u16,
        /// Where it will be.
        to: Address,
    },
    /// The slot is on its way, and of several keys some are here and some are there.
    TryAgain,
    /// The cluster, or the part of it that the node sees, does not serve the slot.
    ClusterDown,
    /// The node reads its data from disk.
    Loading,
    /// A replica that has lost its primary and does not answer with what it has.
    MasterDown,
    /// A replica was asked to write.
    ReadOnly,
}

impl Redirect {
    /// Reads an error, which is given without its `-` and its line end. `asked` is the node that gave it. `None`: it is another error, or none that
    /// can be followed.
    pub fn parse(error: &[u8], asked: &Address) -> Option<Self> {
        let mut words = error.split(|byte| *byte == b' ');
        let code = words.next()?;
        match code {
            b"MOVED" | b"ASK" if error.len() <= REDIRECT_BYTES_MAX => {
                let (slot, place, None) = (words.next()?, words.next()?, words.next()) else { return None };
                let (slot, to) = (slot_of(slot)?, Address::read(place, asked)?);
                Some(if code == b"MOVED" { Self::Moved { slot, to } } else { Self::Ask { slot, to } })
            }
            b"TRYAGAIN" => Self::TryAgain.unless_of_script(error),
            b"CLUSTERDOWN" => Self::ClusterDown.unless_of_script(error),
            b"LOADING" => Self::Loading.unless_of_script(error),
            b"MASTERDOWN" => Self::MasterDown.unless_of_script(error),
            b"READONLY" => Self::ReadOnly.unless_of_script(error),
            _ => None,
        }
    }

    /// Redis 7 appends to the error of a command in a script which script it was.
    fn unless_of_script(self, error: &[u8]) -> Option<Self> {
        memmem::find(error, b" script: ").is_none().then_some(self)
    }

    /// Whether the members' roles or slots are not those that are known: the map is to be asked for again. A slot on its way (`ASK`, `TRYAGAIN`)
    /// changes nothing in the map.
    pub fn is_news(&self) -> bool {
        !matches!(self, Self::Ask { .. } | Self::TryAgain)
    }
}

fn slot_of(text: &[u8]) -> Option<u16> {
    let is_number = text.iter().all(u8::is_ascii_digit);
    let slot: u16 = is_number.then(|| std::str::from_utf8(text).ok()?.parse().ok())??;
    (slot < SLOTS).then_some(slot)
}

/// What the errors of a transaction ask for: those of `MULTI`, of the requests in it and of `EXEC`, in order, `None` for each that
/// is no error. It is sent again as a whole or not at all.
///
/// `None`: it was executed, or may have been in part, or was refused for a reason that sending it again does not change. If `MULTI` is
/// refused, the requests behind it are executed one by one.
pub fn of_transaction<'e>(errors: impl IntoIterator<Item = Option<&'e [u8]>>, asked: &Address) -> Option<Redirect> {
    let mut errors = errors.into_iter();
    if errors.next()?.is_some() {
        return None;
    }
    let (mut first, mut exec) = (None, None);
    for error in errors {
        first = first.or(exec);
        exec = error;
    }
    // Without an error of EXEC it was executed.
    let exec = exec?;
    // A server looks first where the keys are of what it has queued, and only then whether it has refused a request: if keys have moved since
    // it refused one, EXEC is redirected itself.
    let at_exec = Redirect::parse(exec.strip_prefix(ABORTED_BY).unwrap_or(exec), asked);
    match first {
        None => at_exec,
        Some(first) if at_exec.is_some() || exec.starts_with(b"EXECABORT") => {
            // An error that is no redirect would come again.
            let at_first = Redirect::parse(first, asked)?;
            Some(at_exec.unwrap_or(at_first))
        }
        Some(_) => None,
    }
}

/// How the error of an EXEC begins that is refused for its own sake: the state of the node has changed since the requests were queued.
const ABORTED_BY: &[u8] = b"EXECABORT Transaction discarded because of: ";

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Address {
        Address::new("10.0.0.9", 7009).unwrap()
    }

    fn parse(error: &str) -> Option<Redirect> {
        Redirect::parse(error.as_bytes(), &asked())
    }

    #[test]
    fn each_error_is_read_in_the_words_of_redis() {
        let to = |host: &str, port| Address::new(host, port).unwrap();
        for (error, redirect) in [
            ("MOVED 1234 10.0.0.1:6379", Redirect::Moved { slot: 1234, to: to("10.0.0.1", 6379) }),
            ("MOVED 16383 :6379", Redirect::Moved { slot: 16383, to: to("10.0.0.9", 6379) }),
            ("MOVED 0 ?:6379", Redirect::Moved { slot: 0, to: to("10.0.0.9", 6379) }),
            ("MOVED 1 2001:db8::1:6379", Redirect::Moved { slot: 1, to: to("2001:db8::1", 6379) }),
            ("ASK 5 node-1.example:7000", Redirect::Ask { slot: 5, to: to("node-1.example", 7000) }),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Redirect::TryAgain),
            ("CLUSTERDOWN Hash slot not served", Redirect::ClusterDown),
            ("CLUSTERDOWN The cluster is down", Redirect::ClusterDown),
            ("LOADING Redis is loading the dataset in memory", Redirect::Loading),
            ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", Redirect::MasterDown),
            ("READONLY You can't write against a read only replica.", Redirect::ReadOnly),
        ] {
            assert_eq!(parse(error), Some(redirect), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_followed_is_an_ordinary_error() {
        for error in [
            "",
            "ERR x",
            "MOVED",
            "MOVED 1",
            "MOVED 16384 a:1",
            "MOVED -1 a:1",
            "MOVED +1 a:1",
            "MOVED 1 a",
            "MOVED 1 a:0",
            "MOVED 1 a:1 b",
            "MOVED  1 a:1",
            "MOVED 65537 a:1",
            "MOVEDX 1 a:1",
            "moved 1 a:1",
            "ASK 1 \0:1",
            "CROSSSLOT Keys in request don't hash to the same slot",
        ] {
            assert_eq!(parse(error), None, "{error:?}");
        }
        assert_eq!(parse(&format!("MOVED 1 {}:1", "a".repeat(REDIRECT_BYTES_MAX))), None);
    }

    #[test]
    fn the_error_of_a_script_is_not_sent_again() {
        let sha = "d0e7c6c4a8f2b3c1";
        for code in ["READONLY You can't write", "CLUSTERDOWN x", "LOADING x", "MASTERDOWN x", "TRYAGAIN x"] {
            assert_eq!(parse(&format!("{code} script: {sha}, on @user_script:1.")), None, "{code}");
        }
    }

    #[test]
    fn a_transaction_is_redirected_whole_or_not_at_all() {
        let moved = "MOVED 7 a:1";
        let abort = "EXECABORT Transaction discarded because of previous errors.";
        let of = |errors: &[&str]| {
            of_transaction(errors.iter().map(|text| (!text.is_empty()).then_some(text.as_bytes())), &asked())
        };
        let expected = Some(Redirect::Moved { slot: 7, to: Address::new("a", 1).unwrap() });
        assert_eq!(of(&["", moved, "", abort]), expected);
        assert_eq!(of(&["", "", moved, abort]), expected);
        assert_eq!(of(&["", "", "", moved]), expected, "EXEC itself was redirected");
        assert_eq!(of(&["", "LOADING x", "LOADING x", abort]), Some(Redirect::Loading));
        assert_eq!(of(&["", "ERR wrong", moved, abort]), None, "the first error stays");
        assert_eq!(of(&["", moved, "", "NOPERM x"]), None, "EXEC was refused");
        let ask = "ASK 7 b:1";
        let asking = Some(Redirect::Ask { slot: 7, to: Address::new("b", 1).unwrap() });
        assert_eq!(of(&["", "", moved, ask]), asking, "what was queued has moved since the other was refused");
        assert_eq!(of(&["", "ERR wrong", "", ask]), None, "it would be wrong there as well");
        let late = "EXECABORT Transaction discarded because of: ";
        assert_eq!(of(&["", "", "", &format!("{late}READONLY x")]), Some(Redirect::ReadOnly));
        assert_eq!(of(&["", "", "", &format!("{late}OOM x")]), None);
        assert_eq!(of(&["", "", "", ""]), None, "it was executed");
        assert_eq!(of(&["", moved, "", ""]), None, "it was executed");
        assert_eq!(of(&["NOPERM x", moved, moved, "ERR EXEC without MULTI"]), None, "MULTI was refused");
        assert_eq!(of(&[]), None);
    }
}
