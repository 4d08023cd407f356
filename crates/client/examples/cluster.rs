//! Writes and reads in a cluster: `cargo run -p respool-client --example cluster -- redis+cluster://127.0.0.1:7000`.

use respool_client::{Client, Error, Reads, cmd};

fn main() -> Result<(), Error> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis+cluster://127.0.0.1:7000".to_owned());
    let client = Client::connect_wait(&url)?;
    // The keys are in several slots: the request is split, and the replies come in the order of the keys.
    client.call::<()>(cmd("MSET").arg([("example:a", 1), ("example:b", 2), ("example:c", 3)])).wait()?;
    let all: Vec<u32> = client.call(cmd("MGET").key(["example:a", "example:b", "example:c"])).wait()?;
    println!("{all:?}");
    // What stands in braces decides the slot, and a transaction has one.
    let results = client.transaction([cmd("INCR").key("{example}:n"), cmd("INCR").key("{example}:m")]).wait()?;
    println!("{results:?}");
    client.set_reads(Reads::PreferReplicas);
    for key in client.scan_keys().pattern("example:*") {
        println!("{}", String::from_utf8_lossy(&key?));
    }
    for (shard, size) in client.each_shard(cmd("DBSIZE")).wait()?.into_iter().enumerate() {
        println!("shard {shard}: {size:?}");
    }
    Ok(())
}
