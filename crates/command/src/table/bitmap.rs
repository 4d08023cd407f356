//! Bit operations on strings.

use crate::keys::irregular;
use crate::row::row;

rows! {
    /// Bit operations on strings.
    BitmapCommand, Bitmap;

    /// Count the bits that are set in a string or a part of it.
    #[args = "key@0 [index(start:int end:int [index_unit<BYTE|BIT>^7.0.0])]"]
    #[reply = "int"]
    #[complexity = "O(N)"]
    Bitcount = row("BITCOUNT", -2, "2.6.0").flags("readonly").acl("bitmap").key(1, "RO access");

    /// Read, set and increment integers of any width within a string.
    #[args = "\
        key@0 [operation<GET/encoding_offset(encoding offset:int)|write([OVERFLOW/wrap_sat_fail<WRAP|SAT|FAIL>] \
        write_operation<SET/encoding_offset_value(encoding offset:int \
        value:int)|INCRBY/encoding_offset_increment(encoding offset:int increment:int)>)>+]"]
    #[reply = "[int?]"]
    #[complexity = "O(1)"]
    Bitfield = row("BITFIELD", -2, "3.2.0")
        .flags("write denyoom")
        .acl("bitmap")
        .key(1, "RW access update variable_flags")
        .used_by(irregular::bitfield);

    /// Read integers of any width within a string.
    #[args = "key@0 [GET/encoding_offset(encoding offset:int)++]"]
    #[reply = "[int]"]
    #[complexity = "O(1)"]
    BitfieldRo = row("BITFIELD_RO", -2, "6.0.0").flags("readonly fast").acl("bitmap").key(1, "RO access");

    /// Combine strings bit by bit and store the result.
    #[args = "operation destkey@0 key@1+"]
    #[reply = "int"]
    #[complexity = "O(N)"]
    Bitop = row("BITOP", -4, "2.6.0")
        .flags("write denyoom")
        .acl("bitmap")
        .key(2, "OW update")
        .key_range(3, -1, 1, "RO access");

    /// Find the first bit that is set, or clear, in a string.
    #[args = "key@0 bit:int [index(start:int [end_index(end:int [index_unit<BYTE|BIT>^7.0.0])])]"]
    #[reply = "int"]
    #[complexity = "O(N)"]
    Bitpos = row("BITPOS", -3, "2.8.7").flags("readonly").acl("bitmap").key(1, "RO access");

    /// Tell one bit of a string.
    #[args = "key@0 offset:int"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Getbit = row("GETBIT", 3, "2.2.0").flags("readonly fast").acl("bitmap").key(1, "RO access");

    /// Set or clear one bit of a string.
    #[args = "key@0 offset:int value:int"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Setbit = row("SETBIT", 4, "2.2.0").flags("write denyoom").acl("bitmap").key(1, "RW access update");
}
