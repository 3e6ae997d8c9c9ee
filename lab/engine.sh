#!/usr/bin/env bash
# Compiles the engine: crates/wasm for wasm32-unknown-unknown, into src/engine/engine.wasm.
#
# Rust's library for that target is rustup's, or a distribution's. Where there is only its source, as with Debian's rustc-web,
# cargo-web, rust-web-src and lld-19, it is compiled, too. Ends with 3 where a tool is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=wasm32-unknown-unknown
missing() {
    echo "$1" >&2
    exit 3
}
debian="on Debian: apt install rustc-web cargo-web rust-web-src lld-19"

command -v cargo > /dev/null || missing "cargo is missing: install stable Rust 1.88 or newer (https://rustup.rs; $debian)"
sysroot=$(rustc --print sysroot)
more=()
if [ ! -d "$sysroot/lib/rustlib/$target" ]; then
    if [ -f "$sysroot/lib/rustlib/src/rust/library/std/Cargo.toml" ] && [ ! -x "$(command -v rustup)" ]; then
        # The compiler takes these options only with this variable, unless it is a nightly one.
        export RUSTC_BOOTSTRAP=1
        more=(-Z "build-std=std,panic_abort")
        if [ -z "${CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER:-}" ] && ! command -v rust-lld > /dev/null; then
            linker=$(compgen -c lld | grep -E '^lld(-[0-9]+)?$' | sort -V | tail -n 1 || true)
            [ -n "$linker" ] || missing "LLVM's linker is missing: install lld 14 or newer ($debian)"
            export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$linker
        fi
    else
        command -v rustup > /dev/null ||
            missing "Rust's library for $target is missing: install Rust with https://rustup.rs, or $debian"
        rustup target add "$target" ||
            missing "Rust's library for $target could not be fetched: try rustup target add $target"
    fi
fi
cargo build --locked --package fullpipe-wasm --target "$target" --profile lab "${more[@]}"
cp "${CARGO_TARGET_DIR:-target}/$target/lab/fullpipe_wasm.wasm" lab/src/engine/engine.wasm
