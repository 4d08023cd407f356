//! Geospatial indexes.

use crate::keys::irregular;
use crate::row::row;
use crate::shape;
use crate::KeySpec;

rows! {
    /// Geospatial indexes.
    GeoCommand, Geo;

    /// Add places to a geospatial index.
    Geoadd = row("GEOADD", -5, "3.2.0").flags("write denyoom").acl("geo").key(1, "RW update");

    /// Tell the distance between two places.
    Geodist = row("GEODIST", -4, "3.2.0").flags("readonly").acl("geo").key(1, "RO access");

    /// Tell the geohashes of places.
    Geohash = row("GEOHASH", -2, "3.2.0").flags("readonly").acl("geo").key(1, "RO access");

    /// Tell the coordinates of places.
    Geopos = row("GEOPOS", -2, "3.2.0").replies(&shape::POSITIONS).flags("readonly").acl("geo").key(1, "RO access");

    /// Find, and perhaps store, the places around a point.
    Georadius = row("GEORADIUS", -6, "3.2.0").replies(&shape::PLACES)
        .flags("write denyoom")
        .acl("geo")
        .key(1, "RO access")
        .spec(KeySpec::keyword("STORE", 6, 0, 0, "OW update"))
        .spec(KeySpec::keyword("STOREDIST", 6, 0, 0, "OW update"))
        .found_by(irregular::georadius)
        .deprecated("6.2.0", "GEOSEARCH or GEOSEARCHSTORE with FROMLONLAT and BYRADIUS");

    /// Find the places around a point.
    GeoradiusRo = row("GEORADIUS_RO", -6, "3.2.10").replies(&shape::PLACES)
        .flags("readonly")
        .acl("geo")
        .key(1, "RO access")
        .deprecated("6.2.0", "GEOSEARCH with FROMLONLAT and BYRADIUS");

    /// Find, and perhaps store, the places around a place.
    Georadiusbymember = row("GEORADIUSBYMEMBER", -5, "3.2.0").replies(&shape::PLACES)
        .flags("write denyoom")
        .acl("geo")
        .key(1, "RO access")
        .spec(KeySpec::keyword("STORE", 5, 0, 0, "OW update"))
        .spec(KeySpec::keyword("STOREDIST", 5, 0, 0, "OW update"))
        .found_by(irregular::georadiusbymember)
        .deprecated("6.2.0", "GEOSEARCH or GEOSEARCHSTORE with FROMMEMBER and BYRADIUS");

    /// Find the places around a place.
    GeoradiusbymemberRo = row("GEORADIUSBYMEMBER_RO", -5, "3.2.10").replies(&shape::PLACES)
        .flags("readonly")
        .acl("geo")
        .key(1, "RO access")
        .deprecated("6.2.0", "GEOSEARCH with FROMMEMBER and BYRADIUS");

    /// Find the places within a circle or box.
    Geosearch = row("GEOSEARCH", -7, "6.2.0").replies(&shape::PLACES).flags("readonly").acl("geo").key(1, "RO access");

    /// Store the places within a circle or box.
    Geosearchstore = row("GEOSEARCHSTORE", -8, "6.2.0")
        .flags("write denyoom")
        .acl("geo")
        .key(1, "OW update")
        .key(2, "RO access");
}
