//! The example that adapters are copied from works.

#[path = "../examples/adapter.rs"]
mod adapter;

#[test]
fn example_adapter_finds_bottleneck() {
    adapter::main();
}
