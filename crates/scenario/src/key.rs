//! Keys and texts as errors show them.

/// A key as it is written in a dotted path: quoted if it contains unusual characters.
pub(crate) fn key(key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if plain && key.len() <= 40 { key.to_string() } else { quoted(key) }
}

/// The text in quotes, with unprintable characters escaped.
pub(crate) fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text))
}

/// The text, cut to a readable length.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
