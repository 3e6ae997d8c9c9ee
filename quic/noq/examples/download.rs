//! Downloads a file with BBRv3 over real QUIC.
//!
//!     download                 server and client in this process, on 127.0.0.1
//!     download serve ADDRESS   the server alone, such as 0.0.0.0:4433
//!     download fetch ADDRESS   the client alone

use fullpipe_noq::{Factory, Params};
use noq::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::{error::Error, net::SocketAddr, sync::Arc, time::Instant};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => {
            let server = server("127.0.0.1:0".parse()?)?;
            let address = server.local_addr()?;
            tokio::spawn(serve(server));
            fetch(address).await
        }
        ["serve", address] => serve(server(address.parse()?)?).await,
        ["fetch", address] => fetch(address.parse()?).await,
        _ => {
            Err("usage: download [serve ADDRESS | fetch ADDRESS], with an ADDRESS such as 127.0.0.1:4433"
                .into())
        }
    }
}

/// A server whose connections run BBRv3. This is all that differs from noq's own examples.
pub(crate) fn server(address: SocketAddr) -> Result<Endpoint> {
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(Arc::new(Factory::new(Params::by_name("bbr3").ok_or("no BBRv3")?)));
    let (certificate, key) = identity()?;
    let mut config = ServerConfig::with_single_cert(vec![certificate], key.into())?;
    config.transport_config(Arc::new(transport));
    Ok(Endpoint::server(config, address)?)
}

/// Answers every stream with the file.
pub(crate) async fn serve(server: Endpoint) -> Result<()> {
    while let Some(incoming) = server.accept().await {
        tokio::spawn(async move {
            let connection = incoming.await?;
            while let Ok((mut send, _)) = connection.accept_bi().await {
                send.write_all(&file()).await?;
                send.finish()?;
            }
            Result::Ok(())
        });
    }
    Ok(())
}

/// Downloads the file, checks it, and prints its size and rate.
pub(crate) async fn fetch(server: SocketAddr) -> Result<()> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity()?.0)?;
    let client = Endpoint::client(if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }.parse()?)?;
    client.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
    let connection = client.connect(server, "localhost")?.await?;
    #[allow(clippy::disallowed_methods, reason = "a download in wall time")]
    let start = Instant::now();
    let (mut send, mut receive) = connection.open_bi().await?;
    send.finish()?;
    // A server learns of a stream by its first frame.
    let received = receive.read_to_end(2 * SIZE).await?;
    let rate = received.len() as f64 * 8e-6 / start.elapsed().as_secs_f64();
    if received != file() {
        return Err("the file differs from what the server has".into());
    }
    println!("{} bytes at {rate:.1} Mbit/s, all as they should be", received.len());
    connection.close(0_u8.into(), b"done");
    client.wait_idle().await;
    Ok(())
}

const SIZE: usize = 16 << 20;

/// The file: bytes that do not repeat after a packet.
fn file() -> Vec<u8> {
    (0..SIZE as u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A certificate for localhost. Its key is public, so it proves nothing: do not use it for anything else.
fn identity() -> Result<(CertificateDer<'static>, PrivatePkcs8KeyDer<'static>)> {
    // PKCS #8 (RFC 8410 section 7): version 0, Ed25519, and 32 bytes of key.
    let key = [&b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20"[..], &[7; 32]].concat();
    let key = PrivatePkcs8KeyDer::from(key);
    let pair = rcgen::KeyPair::from_pkcs8_der_and_sign_algo(&key, &rcgen::PKCS_ED25519)?;
    let certificate = rcgen::CertificateParams::new(vec!["localhost".into()])?.self_signed(&pair)?;
    Ok((certificate.into(), key))
}
