// What the examples of the documentation run on, which include this file: a server in their own process, on a port of its own.

/// Runs an example with the address of a new server, in the task of a runtime of one thread.
pub fn a_server(example: impl AsyncFnOnce(String) -> Result<(), respool_client::Error>) {
    let server = respool::Builder::new().listen("127.0.0.1:0").start().unwrap_or_else(|why| panic!("no server: {why}"));
    let url = format!("redis://{}", server.addresses()[0]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(example(url)).expect("the example");
}
