//! Geospatial indexes.

use crate::keys::irregular;
use crate::row::row;
use crate::shape;
use crate::KeySpec;

rows! {
    /// Geospatial indexes.
    GeoCommand, Geo;

    /// Add places to a geospatial index.
    #[args = "\
        key@0 [condition<NX|XX>^6.2.0] [change=CH^6.2.0] longitude_latitude_member(longitude:double latitude:double \
        member)+"]
    #[reply = "int"]
    #[complexity = "O(log(N))"]
    Geoadd = row("GEOADD", -5, "3.2.0").flags("write denyoom").acl("geo").key(1, "RW update");

    /// Tell the distance between two places.
    #[args = "key@0 member1 member2 [unit<M|KM|FT|MI>]"]
    #[reply = "float?"]
    #[complexity = "O(log(N))"]
    Geodist = row("GEODIST", -4, "3.2.0").flags("readonly").acl("geo").key(1, "RO access");

    /// Tell the geohashes of places.
    #[args = "key@0 member+"]
    #[reply = "[bulk?]"]
    #[complexity = "O(log(N))"]
    Geohash = row("GEOHASH", -2, "3.2.0").flags("readonly").acl("geo").key(1, "RO access");

    /// Tell the coordinates of places.
    #[args = "key@0 member+"]
    #[reply = "[(double double)?]"]
    #[complexity = "O(N)"]
    Geopos = row("GEOPOS", -2, "3.2.0").replies(&shape::POSITIONS).flags("readonly").acl("geo").key(1, "RO access");

    /// Find, and perhaps store, the places around a point.
    #[args = "\
        key@0 longitude:double latitude:double radius:double unit<M|KM|FT|MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
        [count(COUNT/count:int [ANY^6.2.0])] [order<ASC|DESC>] [STORE/key@1] [STOREDIST/key@2]"]
    #[reply = "[bulk]; WITHCOORD,WITHDIST,WITHHASH -> [any]; STORE,STOREDIST -> int"]
    #[complexity = "O(N+log(M))"]
    Georadius = row("GEORADIUS", -6, "3.2.0").replies(&shape::PLACES)
        .flags("write denyoom")
        .acl("geo")
        .key(1, "RO access")
        .spec(KeySpec::keyword("STORE", 6, 0, 0, "OW update"))
        .spec(KeySpec::keyword("STOREDIST", 6, 0, 0, "OW update"))
        .found_by(irregular::georadius)
        .deprecated("6.2.0", "GEOSEARCH or GEOSEARCHSTORE with FROMLONLAT and BYRADIUS");

    /// Find the places around a point.
    #[args = "\
        key@0 longitude:double latitude:double radius:double unit<M|KM|FT|MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
        [count(COUNT/count:int [ANY^6.2.0])] [order<ASC|DESC>]"]
    #[reply = "[bulk]; WITHCOORD,WITHDIST,WITHHASH -> [any]"]
    #[complexity = "O(N+log(M))"]
    GeoradiusRo = row("GEORADIUS_RO", -6, "3.2.10").replies(&shape::PLACES)
        .flags("readonly")
        .acl("geo")
        .key(1, "RO access")
        .deprecated("6.2.0", "GEOSEARCH with FROMLONLAT and BYRADIUS");

    /// Find, and perhaps store, the places around a place.
    #[args = "\
        key@0 member radius:double unit<M|KM|FT|MI> [WITHCOORD] [WITHDIST] [WITHHASH] [count(COUNT/count:int [ANY])] \
        [order<ASC|DESC>] [STORE/key@1] [STOREDIST/key@2]"]
    #[reply = "[bulk]; WITHCOORD,WITHDIST,WITHHASH -> [any]; STORE,STOREDIST -> int"]
    #[complexity = "O(N+log(M))"]
    Georadiusbymember = row("GEORADIUSBYMEMBER", -5, "3.2.0").replies(&shape::PLACES)
        .flags("write denyoom")
        .acl("geo")
        .key(1, "RO access")
        .spec(KeySpec::keyword("STORE", 5, 0, 0, "OW update"))
        .spec(KeySpec::keyword("STOREDIST", 5, 0, 0, "OW update"))
        .found_by(irregular::georadiusbymember)
        .deprecated("6.2.0", "GEOSEARCH or GEOSEARCHSTORE with FROMMEMBER and BYRADIUS");

    /// Find the places around a place.
    #[args = "\
        key@0 member radius:double unit<M|KM|FT|MI> [WITHCOORD] [WITHDIST] [WITHHASH] [count(COUNT/count:int [ANY])] \
        [order<ASC|DESC>]"]
    #[reply = "[bulk]; WITHCOORD,WITHDIST,WITHHASH -> [any]"]
    #[complexity = "O(N+log(M))"]
    GeoradiusbymemberRo = row("GEORADIUSBYMEMBER_RO", -5, "3.2.10").replies(&shape::PLACES)
        .flags("readonly")
        .acl("geo")
        .key(1, "RO access")
        .deprecated("6.2.0", "GEOSEARCH with FROMMEMBER and BYRADIUS");

    /// Find the places within a circle or box.
    #[args = "\
        key@0 from<FROMMEMBER/member|FROMLONLAT/longitude_latitude(longitude:double latitude:double)> \
        by<circle(BYRADIUS/radius:double unit<M|KM|FT|MI>)|box(BYBOX/width:double height:double unit<M|KM|FT|MI>)> \
        [order<ASC|DESC>] [count(COUNT/count:int [ANY])] [WITHCOORD] [WITHDIST] [WITHHASH]"]
    #[reply = "[bulk]; WITHCOORD,WITHDIST,WITHHASH -> [any]"]
    #[complexity = "O(N+log(M))"]
    Geosearch = row("GEOSEARCH", -7, "6.2.0").replies(&shape::PLACES).flags("readonly").acl("geo").key(1, "RO access");

    /// Store the places within a circle or box.
    #[args = "\
        destination@0 source@1 from<FROMMEMBER/member|FROMLONLAT/longitude_latitude(longitude:double \
        latitude:double)> by<circle(BYRADIUS/radius:double unit<M|KM|FT|MI>)|box(BYBOX/width:double height:double \
        unit<M|KM|FT|MI>)> [order<ASC|DESC>] [count(COUNT/count:int [ANY])] [STOREDIST]"]
    #[reply = "int"]
    #[complexity = "O(N+log(M))"]
    Geosearchstore = row("GEOSEARCHSTORE", -8, "6.2.0")
        .flags("write denyoom")
        .acl("geo")
        .key(1, "OW update")
        .key(2, "RO access");
}
