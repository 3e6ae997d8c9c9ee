//! The congestion controllers of fullpipe-cc for s2n-quic.
