//! Addresses that name the servers among which keys are spread, taken apart. As with other addresses, no error repeats any of it.

use super::{Layout, Place};
use crate::Error;
use crate::url::{Address, decode, parse_place_or, wrong};
use zeroize::Zeroizing;

/// The port of a server that does not say another.
const PORT: u16 = 6379;

/// What such an address says.
#[derive(Debug)]
pub(crate) struct ShardsAddress {
    pub(crate) layout: Layout,
    /// Everything else, with the first server in the place of the one.
    pub(crate) rest: Address,
}

/// What is said of the servers behind the `?`.
#[derive(Default)]
struct Said<'t> {
    rule: Option<&'t str>,
    names: Option<&'t str>,
    weights: Option<&'t str>,
    /// What is said of the connections.
    others: Vec<&'t str>,
}

impl<'t> Said<'t> {
    fn of(query: &'t str) -> Result<Self, Error> {
        let mut said = Self::default();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let is_new = match part.split_once('=') {
                Some(("rule", rule)) => said.rule.replace(rule).is_none(),
                Some(("names", names)) => said.names.replace(names).is_none(),
                Some(("weights", weights)) => said.weights.replace(weights).is_none(),
                _ => {
                    said.others.push(part);
                    true
                }
            };
            if !is_new {
                return Err(wrong("something is said twice of the shards"));
            }
        }
        Ok(said)
    }
}

/// One for each server.
fn each<T>(text: &str, count: usize, take: impl Fn(&str) -> Result<T, Error>) -> Result<Vec<T>, Error> {
    let all: Vec<T> = text.split(',').map(take).collect::<Result<_, _>>()?;
    if all.len() == count { Ok(all) } else { Err(wrong("there are not as many names or weights as servers")) }
}

impl ShardsAddress {
    /// Takes an address apart if its scheme is one of shards.
    pub(crate) fn parse(text: &str) -> Option<Result<Self, Error>> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "redis+shards" | "valkey+shards" => "redis",
            "rediss+shards" | "valkeys+shards" => "rediss",
            _ => return None,
        };
        Some(Self::parse_rest(scheme, rest))
    }

    fn parse_rest(scheme: &str, rest: &str) -> Result<Self, Error> {
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let said = Said::of(query)?;
        let rule = said.rule.ok_or_else(|| wrong("it lacks the rule: redis+shards://host,host?rule=ketama"))?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, hosts) = authority.rsplit_once('@').map_or((None, authority), |(user, hosts)| (Some(user), hosts));
        let texts: Vec<&str> = hosts.split(',').collect();
        let is_empty = texts.len() > 1 && texts.iter().any(|text| text.is_empty());
        if is_empty {
            return Err(wrong("a server that it names is empty"));
        }
        let places = texts.iter().map(|place| parse_place_or(place, PORT)).collect::<Result<Vec<_>, _>>()?;
        let names = match said.names {
            Some(names) => each(names, places.len(), decode)?,
            None => places.iter().map(|(host, port)| format!("{host}:{port}")).collect(),
        };
        let number = |text: &str| text.parse().map_err(|_| wrong("a weight is no number"));
        let weights = match said.weights {
            Some(weights) => each(weights, places.len(), number)?,
            None => vec![1; places.len()],
        };
        let named = names.into_iter().zip(weights).zip(places);
        let shards = named.map(|((name, weight), (host, port))| (name, weight, Place::At(host, port)));
        // What a rule is not may be a password that stands in the wrong place.
        let layout = Layout::new(&decode(rule)?, shards.collect());
        let layout = layout.map_err(|_| wrong("its rule is not known, or cannot place keys on these servers"))?;
        let plain = format!(
            "{scheme}://{}{}{path}?{}",
            user.map(|user| format!("{user}@")).unwrap_or_default(),
            texts[0],
            said.others.join("&")
        );
        Ok(Self { layout, rest: Address::parse(&Zeroizing::new(plain))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ShardsAddress, Error> {
        ShardsAddress::parse(text).unwrap()
    }

    #[test]
    fn an_address_names_servers_and_a_rule() {
        let text = "redis+shards://ann:word@a:1,[::1],c/3?rule=ketama:md5&names=x,y%2Cz,w&weights=1,2,3&name=web";
        let address = parse(text).unwrap();
        let nodes: Vec<_> = address.layout.topology.nodes().iter().map(|node| (&*node.name, node.weight)).collect();
        assert_eq!(nodes, [("x", 1), ("y,z", 2), ("w", 3)]);
        let places: Vec<_> = address.layout.places.iter().map(|place| format!("{place:?}")).collect();
        assert_eq!(places, [r#"At("a", 1)"#, r#"At("::1", 6379)"#, r#"At("c", 6379)"#]);
        assert_eq!((address.rest.database, address.rest.name.as_deref()), (3, Some("web")));
        assert_eq!(address.rest.credentials.unwrap().username.as_deref(), Some("ann"));
        let plain = parse("rediss+shards://a,b:7?rule=jump%2Bcluster").unwrap();
        assert_eq!(plain.layout.topology.nodes()[1].name, "b:7");
        assert!(ShardsAddress::parse("redis://a").is_none() && ShardsAddress::parse("a:1").is_none());
    }

    #[test]
    fn a_wrong_address_of_shards_is_refused_and_not_repeated() {
        for text in [
            "redis+shards://a,b",
            "redis+shards://a,b?rule=sesame",
            "redis+shards://a,,b?rule=jump",
            "redis+shards://a,b?rule=jump&names=sesame",
            "redis+shards://a,b?rule=jump&weights=1,sesame",
            "redis+shards://a,b?rule=jump&rule=sesame",
            "redis+shards://a,b:sesame?rule=jump",
            "redis+shards://:sesame@a,b?rule=jump&sesame=1",
        ] {
            let error = parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("sesame"), "{text}: {error}");
        }
    }
}
