//! ECN codepoints.

/// The ECN codepoint of a packet: the two lowest bits of the traffic class (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codepoint(pub u8);

impl Codepoint {
    /// Its name in qlog.
    pub fn name(self) -> &'static str {
        ["Not-ECT", "ECT(1)", "ECT(0)", "CE"][(self.0 & 3) as usize]
    }
}
