//! What tquic and BoringSSL draw by `RAND_bytes` or `syscall` comes from `src/main.rs`. BoringSSL's FIPS module draws within itself
//! from the processor (RDRAND), for example salts of signatures; they have constant lengths. Rust's hash maps have the kernel's keys.

fn main() {
    println!("cargo::rustc-link-arg=-Wl,--wrap=RAND_bytes,--wrap=syscall");
}
