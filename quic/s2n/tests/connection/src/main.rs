//! Downloads a file over real QUIC, by s2n-quic with a controller of fullpipe-cc.
//!
//!     fullpipe-s2n-connection                  server and client in this process, on 127.0.0.1
//!     fullpipe-s2n-connection serve ADDRESS    the server alone
//!     fullpipe-s2n-connection fetch ADDRESS    the client alone
//!
//! CONTROLLER names the server's controller, bbr3 by default.

use fullpipe_s2n_quic::{Factory, Params, Watch};
use s2n_quic::client::Connect;
use s2n_quic::{Client, Connection, Server};
use std::error::Error;
use std::net::SocketAddr;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => {
            let (server, watch) = server("127.0.0.1:0".parse()?)?;
            let address = server.local_addr()?;
            tokio::spawn(serve(server));
            // As long as the connection is open, its controller can be looked at.
            let _open = fetch(address).await?;
            let view = watch.view().ok_or("no controller ran")?;
            let counts = view.counts;
            let gone = counts.delivered + counts.lost + counts.discarded;
            assert_eq!(counts.sent, gone + view.in_flight as u64, "every byte is accounted for");
            assert!(counts.delivered >= SIZE as u64, "{view:?}");
            println!("{view:?}");
            Ok(())
        }
        ["serve", address] => serve(server(address.parse()?)?.0).await,
        ["fetch", address] => fetch(address.parse()?).await.map(drop),
        _ => Err("usage: fullpipe-s2n-connection [serve ADDRESS | fetch ADDRESS]".into()),
    }
}

fn server(address: SocketAddr) -> Result<(Server, Watch)> {
    let name = std::env::var("CONTROLLER").unwrap_or_else(|_| "bbr3".into());
    let factory =
        Factory::new(Params::by_name(&name).ok_or_else(|| format!("no controller is called {name}"))?);
    let watch = factory.watch();
    let (certificate, key) = identity()?;
    let server = Server::builder()
        .with_tls((certificate.as_str(), key.as_str()))?
        .with_io(address)?
        .with_congestion_controller(factory)?
        .start()?;
    Ok((server, watch))
}

async fn serve(mut server: Server) -> Result<()> {
    while let Some(mut connection) = server.accept().await {
        tokio::spawn(async move {
            while let Some(mut stream) = connection.accept_bidirectional_stream().await? {
                stream.send(file().into()).await?;
                stream.finish()?;
            }
            Result::Ok(())
        });
    }
    Ok(())
}

/// Returns the connection, still open, and its endpoint.
async fn fetch(address: SocketAddr) -> Result<(Client, Connection)> {
    let (certificate, _) = identity()?;
    let client = Client::builder().with_tls(certificate.as_str())?.with_io("0.0.0.0:0")?.start()?;
    let mut connection = client.connect(Connect::new(address).with_server_name("localhost")).await?;
    let start = std::time::Instant::now();
    let mut stream = connection.open_bidirectional_stream().await?;
    stream.finish()?;
    let mut received = Vec::with_capacity(SIZE);
    while let Some(chunk) = stream.receive().await? {
        received.extend_from_slice(&chunk);
    }
    let rate = received.len() as f64 * 8e-6 / start.elapsed().as_secs_f64();
    if received != file() {
        return Err("the file differs from what the server has".into());
    }
    println!("{} bytes at {rate:.1} Mbit/s, all as they should be", received.len());
    Ok((client, connection))
}

const SIZE: usize = 16 << 20;

/// The file: bytes that do not repeat after a packet.
fn file() -> Vec<u8> {
    (0..SIZE as u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A certificate for localhost and its key. The key is public, so it proves nothing: do not use it for anything else.
fn identity() -> Result<(String, String)> {
    // PKCS #8 (RFC 8410 section 7): version 0, Ed25519, and 32 bytes of key.
    let key = [&b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20"[..], &[7; 32]].concat();
    let key = rcgen::KeyPair::from_pkcs8_der_and_sign_algo(&key.into(), &rcgen::PKCS_ED25519)?;
    let certificate = rcgen::CertificateParams::new(vec!["localhost".into()])?.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}
