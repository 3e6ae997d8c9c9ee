//! TLS 1.3 for both ends: made once for each process.
//!
//! Every message of the handshake has a constant length, so that a record does not depend on what was drawn: the certificate is
//! signed by Ed25519 (signatures of 64 bytes) and has a fixed serial number and fixed dates, keys are exchanged by X25519
//! (32 bytes), and sessions are neither resumed nor offered for resumption.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rustls::pki_types::{PrivateKeyDer, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// The name in the certificate.
pub(crate) const SERVER: &str = "fullpipe.test";

/// The configurations of both ends.
pub(crate) struct Tls {
    pub(crate) client: ClientConfig,
    pub(crate) server: ServerConfig,
}

/// Those of this process.
pub(crate) static TLS: LazyLock<Tls> = LazyLock::new(Tls::new);

/// Certificates are checked at this time, which no clock tells: 2023-11-14.
#[derive(Debug)]
struct Fixed;

impl TimeProvider for Fixed {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(1_700_000_000)))
    }
}

impl Tls {
    fn new() -> Tls {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("the system has randomness");
        let mut certificate =
            rcgen::CertificateParams::new(vec![SERVER.to_owned()]).expect("a name of a host");
        certificate.serial_number = Some(rcgen::SerialNumber::from(1u64));
        let certificate = certificate.self_signed(&key).expect("a key signs its own certificate");
        let der = certificate.der().clone();
        let mut roots = RootCertStore::empty();
        roots.add(der.clone()).expect("a certificate that was just made");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = &[&rustls::version::TLS13];
        let mut client = ClientConfig::builder_with_details(provider.clone(), Arc::new(Fixed))
            .with_protocol_versions(versions)
            .expect("ring has TLS 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.resumption = rustls::client::Resumption::disabled();
        let mut server = ServerConfig::builder_with_details(provider, Arc::new(Fixed))
            .with_protocol_versions(versions)
            .expect("ring has TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![der], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .expect("the key is the certificate's");
        server.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Tls { client, server }
    }
}
