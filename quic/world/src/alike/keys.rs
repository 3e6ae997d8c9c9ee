//! The keys of a connection: those of TLS, or null ones once the handshake is complete; those of a logged run tell what they see.
//!
//! As `end.rs`, this file is compiled once for each stack.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use fullpipe_export::quic::Space;

use super::Cid;
use super::proto::crypto::{self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session};
use super::proto::transport_parameters::TransportParameters;
use super::proto::{Side, TransportError};
use crate::endpoint::Setup;
use crate::null::Nonce;
use crate::options::Crypto;
use crate::tap::EndTap;
use crate::tls::TLS;

/// What client and server begin their sessions with.
pub(super) fn configs(setup: &Setup) -> (Arc<dyn crypto::ClientConfig>, Arc<dyn crypto::ServerConfig>) {
    let client =
        crypto::rustls::QuicClientConfig::try_from(TLS.client.clone()).expect("TLS 1.3 with AES-128");
    let server =
        crypto::rustls::QuicServerConfig::try_from(TLS.server.clone()).expect("TLS 1.3 with AES-128");
    let null = setup.crypto == Crypto::Null;
    if !null && setup.tap.is_none() {
        return (Arc::new(client), Arc::new(server));
    }
    let tap = |of_sender| setup.tap.as_ref().map(|tap| tap.end(of_sender));
    (
        Arc::new(Sessions { config: Arc::new(client), null, tap: tap(true) }),
        Arc::new(Sessions { config: Arc::new(server), null, tap: tap(false) }),
    )
}

/// Begins sessions whose keys are null, or are told to a log, or both.
pub(super) struct Sessions<C> {
    pub(super) config: Arc<C>,
    null: bool,
    tap: Option<EndTap>,
}

impl<C> Sessions<C> {
    /// The session over one of TLS.
    pub(super) fn over(&self, inner: Box<dyn Session>) -> Box<dyn Session> {
        let (null, tap) = (self.null, self.tap.clone());
        Box::new(OurSession { inner, null, tap, in_handshake: false, updates: 0 })
    }

    /// The keys of the first packet, which arrives before there is a session.
    pub(super) fn initial(&self, keys: Keys) -> Keys {
        tapped(keys, Space::Initial, self.tap.as_ref())
    }
}

/// Keys that tell a log what they protect and what they open.
pub(super) struct TappedKey {
    pub(super) inner: Box<dyn PacketKey>,
    pub(super) space: Space,
    pub(super) tap: EndTap,
}

fn tapped(keys: Keys, space: Space, tap: Option<&EndTap>) -> Keys {
    Keys { packet: tapped_pair(keys.packet, space, tap), ..keys }
}

fn tapped_pair(
    keys: KeyPair<Box<dyn PacketKey>>,
    space: Space,
    tap: Option<&EndTap>,
) -> KeyPair<Box<dyn PacketKey>> {
    let Some(tap) = tap else { return keys };
    let one = |inner| -> Box<dyn PacketKey> { Box::new(TappedKey { inner, space, tap: tap.clone() }) };
    KeyPair { local: one(keys.local), remote: one(keys.remote) }
}

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

/// A session whose keys may be null once the handshake is complete, and may be told to a log.
struct OurSession {
    inner: Box<dyn Session>,
    null: bool,
    tap: Option<EndTap>,
    /// Whether the keys of the handshake have been handed out: the next are those of data.
    in_handshake: bool,
    /// How often the keys of data have been updated.
    updates: u64,
}

impl Session for OurSession {
    fn initial_keys(&self, dst_cid: Cid<'_>, side: Side) -> Keys {
        tapped(self.inner.initial_keys(dst_cid, side), Space::Initial, self.tap.as_ref())
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
            return Some(tapped(keys, Space::Handshake, self.tap.as_ref()));
        }
        let header =
            |key: &dyn HeaderKey| -> Box<dyn HeaderKey> { Box::new(NullHeaderKey(key.sample_size())) };
        let keys = if self.null {
            Keys {
                header: KeyPair { local: header(&*keys.header.local), remote: header(&*keys.header.remote) },
                packet: NullPacketKey::like_both(&keys.packet, 0),
            }
        } else {
            keys
        };
        Some(tapped(keys, Space::Data, self.tap.as_ref()))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        self.updates += 1;
        let keys = if self.null { NullPacketKey::like_both(&keys, self.updates) } else { keys };
        Some(tapped_pair(keys, Space::Data, self.tap.as_ref()))
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
