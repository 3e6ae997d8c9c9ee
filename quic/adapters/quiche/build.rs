//! What quiche and BoringSSL draw by `RAND_bytes` comes from `src/main.rs`. BoringSSL's FIPS module draws within itself, for example
//! salts of signatures; they have constant lengths.

fn main() {
    println!("cargo::rustc-link-arg=-Wl,--wrap=RAND_bytes");
}
