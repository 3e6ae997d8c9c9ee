//! Drives a congestion controller of fullpipe-cc by what a QUIC stack reports of its packets.
