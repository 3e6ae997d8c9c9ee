//! Downloads a megabyte with BBRv3 over real QUIC: server and client in one process, on 127.0.0.1.
use fullpipe_noq::{Factory, Params};
use noq::{ClientConfig, Endpoint, ServerConfig};
use rustls::{RootCertStore, pki_types::PrivatePkcs8KeyDer};
use std::{error::Error, sync::Arc};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    const FILE: &[u8] = &[42; 1_000_000];
    let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(["localhost".into()])?;
    let key = PrivatePkcs8KeyDer::from(signing_key);

    let bbr3 = Factory::new(Params::by_name("bbr3").ok_or("no BBRv3")?);
    let watch = bbr3.watch();
    let mut config = ServerConfig::with_single_cert(vec![cert.der().clone()], key.into())?;
    Arc::get_mut(&mut config.transport).unwrap().congestion_controller_factory(Arc::new(bbr3));
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;

    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone())?;
    let config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let connecting = client.connect_with(config, server.local_addr()?, "localhost")?;
    let connection = server.accept().await.ok_or("the server is closed")?.await?;
    let mut stream = connection.open_uni().await?;
    tokio::spawn(async move { stream.write_all(FILE).await }); // Dropped, the stream is finished.
    let received = connecting.await?.accept_uni().await?.read_to_end(FILE.len()).await?;
    assert!(received == FILE && watch.view().is_some_and(|bbr3| bbr3.counts.sent > 1_000_000));
    Ok(())
}
