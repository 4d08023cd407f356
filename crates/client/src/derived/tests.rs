//! Structs and enums of a program as arguments and replies.

use std::collections::BTreeMap;

use ::serde::{Deserialize, Serialize};
use bytes::Bytes;

use crate::commands::{hset, xadd};
use crate::{Command, DecodeError, FromReply, Json, Reply, Structured, ToArgs, cmd};

#[derive(Debug, Default, PartialEq, FromReply, ToArgs)]
#[respool(rename_all = "kebab-case")]
struct Account {
    full_name: String,
    #[respool(rename = "n")]
    logins: u32,
    #[respool(default)]
    plan: Plan,
    mail: Option<String>,
    #[respool(skip)]
    cached: bool,
    r#type: Bytes,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, FromReply, ToArgs)]
#[respool(rename_all = "SCREAMING_SNAKE_CASE")]
enum Plan {
    #[default]
    FreeOfCharge,
    #[respool(rename = "gold")]
    Best,
}

#[derive(Debug, PartialEq, FromReply, ToArgs)]
struct Id(u64);

#[derive(Debug, PartialEq, FromReply, ToArgs)]
struct Maybe(Option<u8>);

#[derive(Debug, PartialEq, FromReply, ToArgs)]
struct Place<T>(f64, f64, T);

#[derive(Debug, PartialEq, ToArgs)]
struct Entry<T>(&'static str, T);

#[derive(Debug, PartialEq, FromReply, ToArgs)]
struct Of<T> {
    value: T,
}

fn text(text: &'static str) -> Reply {
    Reply::Bulk(Bytes::from_static(text.as_bytes()))
}

/// A reply as the server writes it.
fn reply(bytes: &[u8]) -> Reply {
    Reply::copied(bytes).expect("a reply")
}

fn arguments(command: Command) -> Vec<String> {
    let bytes = command.parts().flat_map(|(text, kept)| [text, kept.map_or(&[][..], |kept| kept)].concat());
    let written = String::from_utf8(bytes.collect()).expect("text");
    // Lengths are every other line; no argument here has several.
    written.split("\r\n").skip(1).step_by(2).map(str::to_owned).collect()
}

fn account() -> Account {
    Account {
        full_name: "Ann".into(),
        logins: 3,
        plan: Plan::Best,
        mail: None,
        cached: true,
        r#type: Bytes::from_static(b"x"),
    }
}

#[test]
fn a_struct_is_written_by_names() {
    let written = arguments(hset("account:1", account()).into());
    assert_eq!(written, ["HSET", "account:1", "full-name", "Ann", "n", "3", "plan", "gold", "type", "x"]);
    let mail = Account { mail: Some("a@b".into()), plan: Plan::FreeOfCharge, ..account() };
    let written = arguments(cmd("HSET").arg("k").arg(&mail));
    assert_eq!(written[6..10], ["plan", "FREE_OF_CHARGE", "mail", "a@b"]);
    assert_eq!(arguments(xadd("s", "*", Of { value: 7 }).into()), ["XADD", "s", "*", "value", "7"]);
}

#[test]
fn a_struct_is_read_by_names() {
    let expected = Account { cached: false, ..account() };
    for bytes in [
        &b"*8\r\n$4\r\ntype\r\n$1\r\nx\r\n$1\r\nn\r\n$1\r\n3\r\n$9\r\nfull-name\r\n$3\r\nAnn\r\n$4\r\nplan\r\n$4\r\ngold\r\n"[..],
        b"%5\r\n+type\r\n+x\r\n+n\r\n:3\r\n+full-name\r\n+Ann\r\n+plan\r\n+gold\r\n+other\r\n*1\r\n:1\r\n",
    ] {
        assert_eq!(Account::from_reply(reply(bytes)).as_ref(), Ok(&expected));
    }
    let least = Account::from_reply(reply(b"%3\r\n+type\r\n+x\r\n+n\r\n:3\r\n+full-name\r\n+Ann\r\n")).unwrap();
    assert_eq!((least.plan, least.mail), (Plan::FreeOfCharge, None));
}

#[test]
fn an_error_names_the_field() {
    let missing = Account::from_reply(reply(b"%1\r\n+n\r\n:3\r\n")).unwrap_err();
    assert_eq!(missing.to_string(), "the reply has no field \"full-name\"");
    let wrong = Account::from_reply(reply(b"%1\r\n+n\r\n+many\r\n")).unwrap_err();
    assert_eq!(wrong.to_string(), "field \"n\": the reply is not a number");
    let plan = Account::from_reply(reply(b"%1\r\n+plan\r\n+none\r\n")).unwrap_err();
    assert_eq!(plan.to_string(), "field \"plan\": the reply is not one of FREE_OF_CHARGE, gold");
    let error = Of::<i64>::from_reply(reply(b"%1\r\n+value\r\n-ERR no\r\n")).unwrap_err();
    assert_eq!(error.server().map(|error| error.code()), Some("ERR"));
    let twice = Of::<i64>::from_reply(reply(b"%2\r\n+value\r\n:1\r\n+value\r\n:2\r\n")).unwrap_err();
    assert_eq!(twice.to_string(), "field \"value\": the reply is not a map with each name once");
    assert!(Of::<i64>::from_reply(reply(b":1\r\n")).is_err());
    assert!(Of::<i64>::from_reply(reply(b"*1\r\n+value\r\n")).is_err());
}

#[test]
fn a_key_that_does_not_exist_is_no_record() {
    for none in [&b"*0\r\n"[..], b"%0\r\n", b"$-1\r\n", b"_\r\n"] {
        assert_eq!(Option::<Account>::from_reply(reply(none)), Ok(None));
        assert!(Account::from_reply(reply(none)).is_err());
    }
    assert!(Option::<Account>::from_reply(reply(b"%1\r\n+n\r\n:3\r\n")).is_err(), "a part of one is not none");
}

#[test]
fn a_struct_of_a_name_and_a_value_is_a_pair() {
    let entries = [Entry("a", None), Entry("b", Some(1))];
    assert_eq!(arguments(cmd("MSET").arg(&entries)), ["MSET", "b", "1"]);
    assert_eq!(arguments(cmd("MSET").arg([Entry("a", Maybe(None)), Entry("b", Maybe(Some(1)))])), ["MSET", "b", "1"]);
    // Alone it is a list of arguments.
    assert_eq!(arguments(cmd("SPOP").arg(Entry("key", None::<u32>))), ["SPOP", "key"]);
}

#[test]
fn tuple_structs_go_by_place() {
    assert_eq!(arguments(cmd("DEL").arg([Id(1), Id(2)])), ["DEL", "1", "2"]);
    assert_eq!(Vec::<Id>::from_reply(reply(b"*2\r\n:1\r\n$1\r\n2\r\n")), Ok(vec![Id(1), Id(2)]));
    assert_eq!(arguments(cmd("MSET").arg([("a", Maybe(None)), ("b", Maybe(Some(1)))])), ["MSET", "b", "1"]);
    assert_eq!(Option::<Id>::from_reply(Reply::Null), Ok(None));
    assert_eq!(arguments(cmd("GEOADD").arg("k").arg(Place(1.5, 2.0, "here")))[2..], ["1.5", "2", "here"]);
    let place = Place::<Option<String>>::from_reply(reply(b"*3\r\n,1.5\r\n$1\r\n2\r\n_\r\n"));
    assert_eq!(place, Ok(Place(1.5, 2.0, None)));
    for wrong in [&b"*2\r\n:1\r\n:2\r\n"[..], b"*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n"] {
        assert!(Place::<i64>::from_reply(reply(wrong)).is_err());
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Shape {
    Circle(f64),
    Square { side: u8 },
    Point,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Stored {
    shape: Shape,
    tags: Vec<String>,
    counts: BTreeMap<String, u32>,
    note: Option<String>,
    at: (i64, f32),
    #[serde(default)]
    seen: bool,
}

#[test]
fn serde_reads_replies_of_both_dialects() {
    let expected = Stored {
        shape: Shape::Point,
        tags: vec!["a".into(), "b".into()],
        counts: [("x".to_owned(), 1)].into(),
        note: None,
        at: (-1, 0.5),
        seen: false,
    };
    let resp3 = b"%6\r\n+shape\r\n+point\r\n+tags\r\n~2\r\n+a\r\n+b\r\n+counts\r\n%1\r\n+x\r\n:1\r\n+note\r\n_\r\n+at\r\n*2\r\n:-1\r\n,0.5\r\n+more\r\n+x\r\n";
    let resp2 = b"*10\r\n+shape\r\n+point\r\n+tags\r\n*2\r\n+a\r\n+b\r\n+counts\r\n*2\r\n+x\r\n$1\r\n1\r\n+note\r\n$-1\r\n+at\r\n*2\r\n:-1\r\n$3\r\n0.5\r\n";
    for bytes in [&resp3[..], resp2] {
        assert_eq!(Structured::<Stored>::from_reply(reply(bytes)).map(|read| read.0).as_ref(), Ok(&expected));
    }
    let shape = |bytes| Structured::<Shape>::from_reply(reply(bytes)).map(|read| read.0);
    assert_eq!(shape(b"%1\r\n+circle\r\n,2\r\n"), Ok(Shape::Circle(2.0)));
    assert_eq!(shape(b"%1\r\n+square\r\n*2\r\n+side\r\n:3\r\n"), Ok(Shape::Square { side: 3 }));
    assert!(
        shape(b"+circle\r\n").is_err()
            && shape(b"+other\r\n").is_err()
            && shape(b"%2\r\n+circle\r\n,2\r\n+point\r\n_\r\n").is_err()
    );
    assert!(Structured::<(u8, u8)>::from_reply(reply(b"*3\r\n:1\r\n:2\r\n:3\r\n")).is_err(), "one too many");
    assert!(Structured::<u8>::from_reply(Reply::Integer(256)).is_err());
}

#[test]
fn replies_of_any_depth_are_read_or_refused() {
    for (depth, is_read) in [(100, true), (200, false), (9_000, false)] {
        let bytes = [b"*1\r\n".repeat(depth), b":1\r\n".to_vec()].concat();
        assert_eq!(Structured::<serde_json::Value>::from_reply(reply(&bytes)).is_ok(), is_read, "{depth}");
    }
}

#[test]
fn json_is_a_value() {
    let shape = Json(Shape::Square { side: 3 });
    assert_eq!(arguments(cmd("SET").arg("k").arg(&shape))[2], r#"{"square":{"side":3}}"#);
    assert_eq!(Json::<Shape>::from_reply(text(r#"{"circle":1.5}"#)), Ok(Json(Shape::Circle(1.5))));
    assert_eq!(Option::<Json<Shape>>::from_reply(Reply::Null), Ok(None));
    assert!(matches!(Json::<Shape>::from_reply(text("{")), Err(DecodeError::Message(_))));
}
