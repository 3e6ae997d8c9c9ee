//! The keys of a connection: those of TLS, or null ones once the handshake is complete.
//!
//! As `end.rs`, this file is compiled once for each stack.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;

use super::Cid;
use super::proto::crypto::{self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session};
use super::proto::transport_parameters::TransportParameters;
use super::proto::{Side, TransportError};
use crate::endpoint::Setup;
use crate::null::Nonce;
use crate::options::Crypto;
use crate::tls::TLS;

/// What client and server begin their sessions with.
pub(super) fn configs(setup: &Setup) -> (Arc<dyn crypto::ClientConfig>, Arc<dyn crypto::ServerConfig>) {
    let client =
        crypto::rustls::QuicClientConfig::try_from(TLS.client.clone()).expect("TLS 1.3 with AES-128");
    let server =
        crypto::rustls::QuicServerConfig::try_from(TLS.server.clone()).expect("TLS 1.3 with AES-128");
    match setup.crypto {
        Crypto::Real => (Arc::new(client), Arc::new(server)),
        Crypto::Null => (Arc::new(NullClient(Arc::new(client))), Arc::new(NullServer(Arc::new(server)))),
    }
}

/// Begins sessions whose keys are null.
pub(super) struct NullClient(pub(super) Arc<crypto::rustls::QuicClientConfig>);

/// The same at the server.
pub(super) struct NullServer(pub(super) Arc<crypto::rustls::QuicServerConfig>);

/// The keys of a packet space that hide nothing, with the lengths and limits of the real ones. They open what real ones open: see
/// [`null`](crate::null).
pub(super) struct NullPacketKey {
    update: u64,
    pub(super) tag_len: usize,
    pub(super) confidentiality_limit: u64,
    pub(super) integrity_limit: u64,
}

impl NullPacketKey {
    fn like(key: &dyn PacketKey, update: u64) -> Box<dyn PacketKey> {
        Box::new(NullPacketKey {
            update,
            tag_len: key.tag_len(),
            confidentiality_limit: key.confidentiality_limit(),
            integrity_limit: key.integrity_limit(),
        })
    }

    fn like_both(keys: &KeyPair<Box<dyn PacketKey>>, update: u64) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair {
            local: NullPacketKey::like(&*keys.local, update),
            remote: NullPacketKey::like(&*keys.remote, update),
        }
    }

    fn nonce(&self, number: u64) -> Nonce {
        Nonce { number, update: self.update }
    }

    /// Writes the tag of packet `number`.
    pub(super) fn seal(&self, number: u64, packet: &mut [u8]) {
        self.nonce(number).seal(packet, self.tag_len);
    }

    /// Takes it off, and returns whether it is this packet's.
    pub(super) fn open(&self, number: u64, payload: &mut BytesMut) -> bool {
        self.nonce(number).open(payload, self.tag_len)
    }
}

struct NullHeaderKey(usize);

impl HeaderKey for NullHeaderKey {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        self.0
    }
}

/// A session whose keys are null once the handshake is complete.
pub(super) struct NullSession {
    inner: Box<dyn Session>,
    /// Whether the keys of the handshake have been handed out: the next are those of data.
    in_handshake: bool,
    /// How often the keys of data have been updated.
    updates: u64,
}

impl NullSession {
    pub(super) fn over(inner: Box<dyn Session>) -> Box<dyn Session> {
        Box::new(NullSession { inner, in_handshake: false, updates: 0 })
    }
}

impl Session for NullSession {
    fn initial_keys(&self, dst_cid: Cid<'_>, side: Side) -> Keys {
        self.inner.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(buf)?;
        if !std::mem::replace(&mut self.in_handshake, true) {
            return Some(keys);
        }
        let header =
            |key: &dyn HeaderKey| -> Box<dyn HeaderKey> { Box::new(NullHeaderKey(key.sample_size())) };
        Some(Keys {
            header: KeyPair { local: header(&*keys.header.local), remote: header(&*keys.header.remote) },
            packet: NullPacketKey::like_both(&keys.packet, 0),
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        self.updates += 1;
        Some(NullPacketKey::like_both(&keys, self.updates))
    }

    fn is_valid_retry(&self, orig_dst_cid: Cid<'_>, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}
