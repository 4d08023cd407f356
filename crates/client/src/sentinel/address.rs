//! Addresses that name sentinels, taken apart. As with other addresses, no error repeats any of it.

use super::Role;
use crate::Error;
use crate::url::{Address, decode, parse_place_or};
use respool_connection::{Credentials, Endpoint};
use zeroize::Zeroizing;

/// The port of a sentinel that does not say another.
const PORT: u16 = 26379;

/// What an address of sentinels says.
#[derive(Debug)]
pub(crate) struct SentinelAddress {
    pub(crate) name: String,
    pub(crate) sentinels: Vec<(String, u16)>,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) role: Role,
    /// Everything else, with the first sentinel in the place of the server.
    pub(crate) rest: Address,
}

fn wrong(why: &str) -> Error {
    Error::config(format!("the address cannot be used: {why}"))
}

impl SentinelAddress {
    /// Takes an address apart if its scheme is one of sentinels.
    pub(crate) fn parse(text: &str) -> Option<Result<Self, Error>> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "redis+sentinel" | "valkey+sentinel" | "redis-sentinel" => "redis",
            "rediss+sentinel" | "valkeys+sentinel" | "rediss-sentinel" => "rediss",
            _ => return None,
        };
        Some(Self::parse_rest(scheme, rest))
    }

    fn parse_rest(scheme: &str, rest: &str) -> Result<Self, Error> {
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let lacks = "it lacks the name of the master: redis+sentinel://host:26379,host:26379/NAME";
        let (authority, path) = rest.split_once('/').ok_or_else(|| wrong(lacks))?;
        let (name, database) = path.split_once('/').map_or((path, None), |(name, database)| (name, Some(database)));
        if name.is_empty() {
            return Err(wrong(lacks));
        }
        let (user, places) =
            authority.rsplit_once('@').map_or((None, authority), |(user, places)| (Some(user), places));
        let sentinels = places.split(',').map(|place| parse_place_or(place, PORT)).collect::<Result<Vec<_>, _>>()?;
        let (mut username, mut password, mut role) = (None, None, None);
        let mut others = Vec::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let is_new = match part.split_once('=') {
                Some(("sentinel_user", value)) => username.replace(decode(value)?).is_none(),
                Some(("sentinel_password", value)) => password.replace(Zeroizing::new(decode(value)?)).is_none(),
                Some(("role", "master")) => role.replace(Role::Master).is_none(),
                Some(("role", "replica")) => role.replace(Role::Replica).is_none(),
                Some(("role", _)) => return Err(wrong("the role is neither master nor replica")),
                _ => {
                    others.push(part);
                    true
                }
            };
            if !is_new {
                return Err(wrong("something is said twice of the sentinels"));
            }
        }
        let credentials = match (username, password) {
            (username, Some(password)) => Some(Credentials { username, password }),
            (None, None) => None,
            (Some(_), None) => return Err(wrong("it names a user of the sentinels and no password")),
        };
        let first = places.split(',').next().unwrap_or_default();
        let plain = format!(
            "{scheme}://{}{first}/{}?{}",
            user.map(|user| format!("{user}@")).unwrap_or_default(),
            database.unwrap_or_default(),
            others.join("&")
        );
        let rest = Address::parse(&Zeroizing::new(plain))?;
        Ok(Self { name: decode(name)?, sentinels, credentials, role: role.unwrap_or_default(), rest })
    }

    /// The endpoint of a server at this place, in the way in which all are reached.
    pub(crate) fn at(template: &Endpoint, host: &str, port: u16) -> Endpoint {
        match template {
            Endpoint::Tls { profile, .. } => {
                Endpoint::Tls { host: host.to_owned(), port, server_name: host.to_owned(), profile: profile.clone() }
            }
            _ => Endpoint::Tcp { host: host.to_owned(), port },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SentinelAddress, Error> {
        SentinelAddress::parse(text).unwrap()
    }

    #[test]
    fn an_address_names_sentinels_and_a_master() {
        let address =
            parse("redis+sentinel://ann:word@a:1,[::1],c/mymaster/3?sentinel_password=x%40y&role=replica&name=web");
        let address = address.unwrap();
        let places = [("a".to_owned(), 1), ("::1".to_owned(), PORT), ("c".to_owned(), PORT)];
        assert_eq!((&*address.name, &address.sentinels[..], address.role), ("mymaster", &places[..], Role::Replica));
        assert_eq!(&**address.credentials.unwrap().password, "x@y");
        assert_eq!((address.rest.database, address.rest.name.as_deref()), (3, Some("web")));
        assert_eq!(address.rest.credentials.unwrap().username.as_deref(), Some("ann"));
        assert!(matches!(parse("rediss+sentinel://a/m").unwrap().rest.endpoint, Endpoint::Tls { .. }));
        assert!(SentinelAddress::parse("redis://a").is_none() && SentinelAddress::parse("a:1").is_none());
    }

    #[test]
    fn a_wrong_address_of_sentinels_is_refused_and_not_repeated() {
        for text in [
            "redis+sentinel://sesame",
            "redis+sentinel://a/",
            "redis+sentinel://a,b:sesame/m",
            "redis+sentinel://a/m/sesame",
            "redis+sentinel://a/m?role=sesame",
            "redis+sentinel://a/m?sentinel_user=sesame",
            "redis+sentinel://a/m?sentinel_password=sesame&sentinel_password=b",
            "redis+sentinel://:sesame@a/m?sesame=1",
        ] {
            let error = parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("sesame"), "{text}: {error}");
        }
    }
}
