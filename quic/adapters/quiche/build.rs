//! All that quiche and BoringSSL draw comes from `__wrap_RAND_bytes` in `src/main.rs`.

fn main() {
    println!("cargo::rustc-link-arg=-Wl,--wrap=RAND_bytes");
}
