//! All that tquic and BoringSSL draw comes from `src/main.rs`.

fn main() {
    println!("cargo::rustc-link-arg=-Wl,--wrap=RAND_bytes,--wrap=syscall");
}
