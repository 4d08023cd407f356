//! The engine in a program of one's own: the example is what it says.

#[path = "../examples/embed.rs"]
mod embed;

#[test]
fn the_example_runs() {
    embed::main();
}
