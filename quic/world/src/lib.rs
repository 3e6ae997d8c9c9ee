//! The world quic: real QUIC endpoints in virtual time over the simulator's path.
