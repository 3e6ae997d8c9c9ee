//! The congestion controllers of fullpipe-cc for quinn.
