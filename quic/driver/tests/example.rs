//! The example that adapters are copied from works.

#[path = "../examples/adapter.rs"]
mod adapter;

#[test]
fn the_adapter_of_the_example_finds_the_bottleneck() {
    adapter::main();
}
