//! Lists.

use crate::row::row;
use crate::Lane;

rows! {
    /// Lists.
    ListCommand, List;

    /// Move an element from one end of a list to an end of another, waiting for one.
    Blmove = row("BLMOVE", 6, "6.2.0")
        .flags("write denyoom noscript blocking")
        .acl("list")
        .key(1, "RW access delete")
        .key(2, "RW insert")
        .lane(Lane::Blocking);

    /// Take elements from the first list that has any, waiting for one.
    Blmpop = row("BLMPOP", -5, "7.0.0")
        .names_keys()
        .flags("write blocking")
        .acl("list")
        .counted_keys(2, "RW access delete")
        .lane(Lane::Blocking);

    /// Take the first element of the first list that has any, waiting for one.
    Blpop = row("BLPOP", -3, "2.0.0")
        .names_keys()
        .flags("write noscript blocking")
        .acl("list")
        .key_range(1, -2, 1, "RW access delete")
        .lane(Lane::Blocking);

    /// Take the last element of the first list that has any, waiting for one.
    Brpop = row("BRPOP", -3, "2.0.0")
        .names_keys()
        .flags("write noscript blocking")
        .acl("list")
        .key_range(1, -2, 1, "RW access delete")
        .lane(Lane::Blocking);

    /// Move the last element of a list to the head of another, waiting for one.
    Brpoplpush = row("BRPOPLPUSH", 4, "2.2.0")
        .flags("write denyoom noscript blocking")
        .acl("list")
        .key(1, "RW access delete")
        .key(2, "RW insert")
        .lane(Lane::Blocking)
        .deprecated("6.2.0", "BLMOVE with RIGHT and LEFT");

    /// Tell the element at an index of a list.
    Lindex = row("LINDEX", 3, "1.0.0").flags("readonly").acl("list").key(1, "RO access");

    /// Put an element before or after another one in a list.
    Linsert = row("LINSERT", 5, "2.2.0").flags("write denyoom").acl("list").key(1, "RW insert");

    /// Count the elements of a list.
    Llen = row("LLEN", 2, "1.0.0").flags("readonly fast").acl("list").key(1, "RO");

    /// Move an element from one end of a list to an end of another.
    Lmove = row("LMOVE", 5, "6.2.0")
        .flags("write denyoom")
        .acl("list")
        .key(1, "RW access delete")
        .key(2, "RW insert");

    /// Take elements from the first list that has any.
    Lmpop = row("LMPOP", -4, "7.0.0")
        .names_keys().flags("write").acl("list").counted_keys(1, "RW access delete");

    /// Take elements from the head of a list.
    Lpop = row("LPOP", -2, "1.0.0").flags("write fast").acl("list").key(1, "RW access delete");

    /// Find elements of a list.
    Lpos = row("LPOS", -3, "6.0.6").flags("readonly").acl("list").key(1, "RO access");

    /// Put elements at the head of a list.
    Lpush = row("LPUSH", -3, "1.0.0").flags("write denyoom fast").acl("list").key(1, "RW insert");

    /// Put elements at the head of a list that exists.
    Lpushx = row("LPUSHX", -3, "2.2.0").flags("write denyoom fast").acl("list").key(1, "RW insert");

    /// List elements between two indexes.
    Lrange = row("LRANGE", 4, "1.0.0").flags("readonly").acl("list").key(1, "RO access");

    /// Remove elements that equal a value from a list.
    Lrem = row("LREM", 4, "1.0.0").flags("write").acl("list").key(1, "RW delete");

    /// Replace the element at an index of a list.
    Lset = row("LSET", 4, "1.0.0").flags("write denyoom").acl("list").key(1, "RW update");

    /// Keep only the elements between two indexes.
    Ltrim = row("LTRIM", 4, "1.0.0").flags("write").acl("list").key(1, "RW delete");

    /// Take elements from the tail of a list.
    Rpop = row("RPOP", -2, "1.0.0").flags("write fast").acl("list").key(1, "RW access delete");

    /// Move the last element of a list to the head of another.
    Rpoplpush = row("RPOPLPUSH", 3, "1.2.0")
        .flags("write denyoom")
        .acl("list")
        .key(1, "RW access delete")
        .key(2, "RW insert")
        .deprecated("6.2.0", "LMOVE with RIGHT and LEFT");

    /// Put elements at the tail of a list.
    Rpush = row("RPUSH", -3, "1.0.0").flags("write denyoom fast").acl("list").key(1, "RW insert");

    /// Put elements at the tail of a list that exists.
    Rpushx = row("RPUSHX", -3, "2.2.0").flags("write denyoom fast").acl("list").key(1, "RW insert");
}
