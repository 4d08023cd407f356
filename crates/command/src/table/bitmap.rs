//! Bit operations on strings.

use crate::keys::irregular;
use crate::row::row;

rows! {
    /// Bit operations on strings.
    BitmapCommand, Bitmap;

    /// Count the bits that are set in a string or a part of it.
    Bitcount = row("BITCOUNT", -2, "2.6.0").flags("readonly").acl("bitmap").key(1, "RO access");

    /// Read, set and increment integers of any width within a string.
    Bitfield = row("BITFIELD", -2, "3.2.0")
        .flags("write denyoom")
        .acl("bitmap")
        .key(1, "RW access update variable_flags")
        .used_by(irregular::bitfield);

    /// Read integers of any width within a string.
    BitfieldRo = row("BITFIELD_RO", -2, "6.0.0").flags("readonly fast").acl("bitmap").key(1, "RO access");

    /// Combine strings bit by bit and store the result.
    Bitop = row("BITOP", -4, "2.6.0")
        .flags("write denyoom")
        .acl("bitmap")
        .key(2, "OW update")
        .key_range(3, -1, 1, "RO access");

    /// Find the first bit that is set, or clear, in a string.
    Bitpos = row("BITPOS", -3, "2.8.7").flags("readonly").acl("bitmap").key(1, "RO access");

    /// Tell one bit of a string.
    Getbit = row("GETBIT", 3, "2.2.0").flags("readonly fast").acl("bitmap").key(1, "RO access");

    /// Set or clear one bit of a string.
    Setbit = row("SETBIT", 4, "2.2.0").flags("write denyoom").acl("bitmap").key(1, "RW access update");
}
