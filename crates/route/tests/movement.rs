//! How many keys move, and whereto, when a list of nodes changes under the rules that promise to move few.

use proptest::prelude::*;
use respool_route::{KeyHash, Node, NodeIndex, Placement, Rule};

fn placement(rule: Rule, nodes: &[Node]) -> Placement {
    Placement::new(rule.into(), nodes).expect("a list that fits")
}

fn keys(salt: u32) -> impl Iterator<Item = String> {
    (0..2_000).map(move |key| format!("key:{salt}:{key}"))
}

/// Names of nodes in no particular order.
fn nodes(count: usize, salt: u32) -> Vec<Node> {
    (0..count).map(|node| Node::new(format!("10.{}.{}.{node}:6379", salt % 251, node * 7 % 250))).collect()
}

/// Each key's node before and behind a change, by name.
fn moved<'n>(rule: Rule, before: &'n [Node], behind: &'n [Node], salt: u32) -> Vec<(&'n str, &'n str)> {
    let (from, to) = (placement(rule, before), placement(rule, behind));
    let name = |nodes: &'n [Node], index: NodeIndex| nodes[index.get()].name.as_str();
    keys(salt)
        .map(|key| (name(before, from.place(key.as_bytes())), name(behind, to.place(key.as_bytes()))))
        .filter(|(from, to)| from != to)
        .collect()
}

const NAMED: [Rule; 2] = [Rule::Rendezvous, Rule::Ketama(KeyHash::Md5)];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Taking a node away moves its keys and no others; so putting it back moves only keys to it. About its share moves.
    #[test]
    fn a_node_by_name_moves_only_its_share(count in 2..24usize, place in any::<prop::sample::Index>(), salt: u32) {
        let all = nodes(count, salt);
        let mut fewer = all.clone();
        let gone = fewer.remove(place.index(count));
        for rule in NAMED {
            let moved = moved(rule, &all, &fewer, salt);
            prop_assert!(moved.iter().all(|(from, _)| *from == gone.name), "{:?}", rule);
            prop_assert!((1..=2 * 2_000 / count).contains(&moved.len()), "{:?}: {} of {count}", rule, moved.len());
        }
    }

    /// A node added at the end takes its share; nothing else moves.
    #[test]
    fn jump_moves_only_to_the_new_end(count in 1..200usize, salt: u32) {
        let all = nodes(count + 1, salt);
        let moved = moved(Rule::Jump, &all[..count], &all, salt);
        prop_assert!(moved.iter().all(|(_, to)| *to == all[count].name));
        prop_assert!(moved.len() <= 2 * 2_000 / (count + 1) + 20, "{} of {}", moved.len(), count + 1);
    }

    /// The order of the list means nothing to rendezvous, and a heavier node only gains.
    #[test]
    fn rendezvous_knows_names_and_weights_alone(
        weights in prop::collection::vec(1..9u32, 2..12), heavier in any::<prop::sample::Index>(), salt: u32,
    ) {
        let before: Vec<_> =
            nodes(weights.len(), salt).into_iter().zip(&weights).map(|(node, weight)| node.with_weight(*weight)).collect();
        let mut behind = before.clone();
        behind.rotate_left(1);
        prop_assert_eq!(moved(Rule::Rendezvous, &before, &behind, salt), vec![]);
        let gainer = &mut behind[heavier.index(weights.len())];
        gainer.weight += 1;
        let gainer = gainer.name.clone();
        let moved = moved(Rule::Rendezvous, &before, &behind, salt);
        prop_assert!(moved.iter().all(|(_, to)| *to == gainer));
    }
}

#[test]
fn weights_are_shares() {
    let list: Vec<_> = ["a", "b", "c", "d"].map(Node::new).into_iter().zip([1, 2, 5, 12]).collect();
    let list: Vec<_> = list.into_iter().map(|(node, weight)| node.with_weight(weight)).collect();
    // A ring of 160 points a node is coarse.
    for (rule, tolerance) in [(Rule::Rendezvous, 0.1), (Rule::Ketama(KeyHash::Md5), 0.3)] {
        let placement = placement(rule, &list);
        let mut counts = [0.0; 4];
        (0..20).flat_map(keys).for_each(|key| counts[placement.place(key.as_bytes()).get()] += 1.0);
        for (node, count) in list.iter().zip(counts) {
            let expected = 40_000.0 * f64::from(node.weight) / 20.0;
            assert!((count / expected - 1.0).abs() < tolerance, "{rule:?}: {} has {count}, not {expected}", node.name);
        }
    }
}

#[test]
fn every_rule_uses_every_node_about_alike() {
    for rule in Rule::ALL {
        for count in [2, 3, 4, 10] {
            let placement = placement(rule, &nodes(count, 1));
            let mut counts = vec![0.0; count];
            (0..10).flat_map(keys).for_each(|key| counts[placement.place(key.as_bytes()).get()] += 1.0);
            let expected = 20_000.0 / count as f64;
            assert!(
                counts.iter().all(|keys| (0.7..1.3).contains(&(keys / expected))),
                "{rule:?} over {count} nodes: {counts:?}"
            );
        }
    }
}
