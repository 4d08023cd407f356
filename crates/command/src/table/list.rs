//! Lists.

use crate::row::row;
use crate::Lane;

rows! {
    /// Lists.
    ListCommand, List;

    /// Move an element from one end of a list to an end of another, waiting for one.
    #[args = "source@0 destination@1 wherefrom<LEFT|RIGHT> whereto<LEFT|RIGHT> timeout:double"]
    #[reply = "bulk?"]
    #[complexity = "O(1)"]
    Blmove = row("BLMOVE", 6, "6.2.0")
        .flags("write denyoom noscript blocking")
        .acl("list")
        .key(1, "RW access delete")
        .key(2, "RW insert")
        .lane(Lane::Blocking);

    /// Take elements from the first list that has any, waiting for one.
    #[args = "timeout:double numkeys:int key@0+ where<LEFT|RIGHT> [COUNT/count:int]"]
    #[reply = "(bulk [bulk])?"]
    #[complexity = "O(N+M)"]
    Blmpop = row("BLMPOP", -5, "7.0.0")
        .names_keys()
        .flags("write blocking")
        .acl("list")
        .counted_keys(2, "RW access delete")
        .lane(Lane::Blocking);

    /// Take the first element of the first list that has any, waiting for one.
    #[args = "key@0+ timeout:double"]
    #[reply = "(bulk bulk)?"]
    #[complexity = "O(N)"]
    Blpop = row("BLPOP", -3, "2.0.0")
        .names_keys()
        .flags("write noscript blocking")
        .acl("list")
        .key_range(1, -2, 1, "RW access delete")
        .lane(Lane::Blocking);

    /// Take the last element of the first list that has any, waiting for one.
    #[args = "key@0+ timeout:double"]
    #[reply = "(bulk bulk)?"]
    #[complexity = "O(N)"]
    Brpop = row("BRPOP", -3, "2.0.0")
        .names_keys()
        .flags("write noscript blocking")
        .acl("list")
        .key_range(1, -2, 1, "RW access delete")
        .lane(Lane::Blocking);

    /// Move the last element of a list to the head of another, waiting for one.
    #[args = "source@0 destination@1 timeout:double"]
    #[reply = "bulk?"]
    #[complexity = "O(1)"]
    Brpoplpush = row("BRPOPLPUSH", 4, "2.2.0")
        .flags("write denyoom noscript blocking")
        .acl("list")
        .key(1, "RW access delete")
        .key(2, "RW insert")
        .lane(Lane::Blocking)
        .deprecated("6.2.0", "BLMOVE with RIGHT and LEFT");

    /// Tell the element at an index of a list.
    #[args = "key@0 index:int"]
    #[reply = "bulk?"]
    #[complexity = "O(N)"]
    Lindex = row("LINDEX", 3, "1.0.0").flags("readonly").acl("list").key(1, "RO access");

    /// Put an element before or after another one in a list.
    #[args = "key@0 where<BEFORE|AFTER> pivot element"]
    #[reply = "int"]
    #[complexity = "O(N)"]
    Linsert = row("LINSERT", 5, "2.2.0").flags("write denyoom").acl("list").key(1, "RW insert");

    /// Count the elements of a list.
    #[args = "key@0"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Llen = row("LLEN", 2, "1.0.0").flags("readonly fast").acl("list").key(1, "RO");

    /// Move an element from one end of a list to an end of another.
    #[args = "source@0 destination@1 wherefrom<LEFT|RIGHT> whereto<LEFT|RIGHT>"]
    #[reply = "bulk?"]
    #[complexity = "O(1)"]
    Lmove = row("LMOVE", 5, "6.2.0")
        .flags("write denyoom")
        .acl("list")
        .key(1, "RW access delete")
        .key(2, "RW insert");

    /// Take elements from the first list that has any.
    #[args = "numkeys:int key@0+ where<LEFT|RIGHT> [COUNT/count:int]"]
    #[reply = "(bulk [bulk])?"]
    #[complexity = "O(N+M)"]
    Lmpop = row("LMPOP", -4, "7.0.0")
        .names_keys().flags("write").acl("list").counted_keys(1, "RW access delete");

    /// Take elements from the head of a list.
    #[args = "key@0 [count:int^6.2.0]"]
    #[reply = "bulk?; count -> [bulk]?"]
    #[complexity = "O(N)"]
    Lpop = row("LPOP", -2, "1.0.0").flags("write fast").acl("list").key(1, "RW access delete");

    /// Find elements of a list.
    #[args = "key@0 element [RANK/rank:int] [COUNT/num-matches:int] [MAXLEN/len:int]"]
    #[reply = "int?; COUNT -> [int]"]
    #[complexity = "O(N)"]
    Lpos = row("LPOS", -3, "6.0.6").flags("readonly").acl("list").key(1, "RO access");

    /// Put elements at the head of a list.
    #[args = "key@0 element+"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Lpush = row("LPUSH", -3, "1.0.0").flags("write denyoom fast").acl("list").key(1, "RW insert");

    /// Put elements at the head of a list that exists.
    #[args = "key@0 element+"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Lpushx = row("LPUSHX", -3, "2.2.0").flags("write denyoom fast").acl("list").key(1, "RW insert");

    /// List elements between two indexes.
    #[args = "key@0 start:int stop:int"]
    #[reply = "[bulk]"]
    #[complexity = "O(S+N)"]
    Lrange = row("LRANGE", 4, "1.0.0").flags("readonly").acl("list").key(1, "RO access");

    /// Remove elements that equal a value from a list.
    #[args = "key@0 count:int element"]
    #[reply = "int"]
    #[complexity = "O(N+M)"]
    Lrem = row("LREM", 4, "1.0.0").flags("write").acl("list").key(1, "RW delete");

    /// Replace the element at an index of a list.
    #[args = "key@0 index:int element"]
    #[reply = "ok"]
    #[complexity = "O(N)"]
    Lset = row("LSET", 4, "1.0.0").flags("write denyoom").acl("list").key(1, "RW update");

    /// Keep only the elements between two indexes.
    #[args = "key@0 start:int stop:int"]
    #[reply = "ok"]
    #[complexity = "O(N)"]
    Ltrim = row("LTRIM", 4, "1.0.0").flags("write").acl("list").key(1, "RW delete");

    /// Take elements from the tail of a list.
    #[args = "key@0 [count:int^6.2.0]"]
    #[reply = "bulk?; count -> [bulk]?"]
    #[complexity = "O(N)"]
    Rpop = row("RPOP", -2, "1.0.0").flags("write fast").acl("list").key(1, "RW access delete");

    /// Move the last element of a list to the head of another.
    #[args = "source@0 destination@1"]
    #[reply = "bulk?"]
    #[complexity = "O(1)"]
    Rpoplpush = row("RPOPLPUSH", 3, "1.2.0")
        .flags("write denyoom")
        .acl("list")
        .key(1, "RW access delete")
        .key(2, "RW insert")
        .deprecated("6.2.0", "LMOVE with RIGHT and LEFT");

    /// Put elements at the tail of a list.
    #[args = "key@0 element+"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Rpush = row("RPUSH", -3, "1.0.0").flags("write denyoom fast").acl("list").key(1, "RW insert");

    /// Put elements at the tail of a list that exists.
    #[args = "key@0 element+"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Rpushx = row("RPUSHX", -3, "2.2.0").flags("write denyoom fast").acl("list").key(1, "RW insert");
}
