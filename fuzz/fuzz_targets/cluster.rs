//! What nodes say about their cluster: any reply in place of a report, and any error in place of a redirect. The map that comes out
//! can be asked for every slot.
#![no_main]

use libfuzzer_sys::fuzz_target;
use respool_route::SLOTS;
use respool_route::cluster::{Address, Ports, Redirect, Refresh, RefreshStep, RefreshTerms, Report, Trigger};
use respool_wire::Value;

fuzz_target!(|data: &[u8]| {
    let seed = Address::new("seed", 1).expect("a host");
    let mut refresh = Refresh::new(RefreshTerms::default(), [seed.clone()]);
    let mut now_us = 0;
    // Several answers, one behind the other.
    for (number, piece) in data.split(|byte| *byte == 0xff).take(8).enumerate() {
        now_us += 20_000_000;
        if let Some(Redirect::Moved { slot, to }) = Redirect::parse(piece, &seed) {
            assert!(slot < SLOTS && to.port() != 0 && !to.host().is_empty());
            refresh.on_moved(slot, &to, now_us, number as u64);
        }
        let reply = Value::parse(piece).unwrap_or(Value::Bulk(piece.to_vec()));
        refresh.on_trigger(Trigger::Stuck, now_us, number as u64);
        while let RefreshStep::Ask { number, address } = refresh.poll(now_us, number as u64).step {
            let report = Report::from_slots(&reply, &address)
                .or_else(|_| Report::from_shards(&reply, &address, Ports::Tls))
                .or_else(|_| Report::from_nodes(&reply, &address, Ports::Plain));
            refresh.on_answer(number, report.ok());
        }
        let Some(map) = refresh.map() else { continue };
        assert_eq!((0..SLOTS).filter(|slot| map.shard_of(*slot).is_some()).count(), map.covered());
        assert!(map.covered() > 0);
    }
});
