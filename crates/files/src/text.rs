//! Text in the encodings that programs and shells write: UTF-8, and UTF-16 as Windows PowerShell's `>` writes it.

use crate::FileError;

/// The text of these bytes, without a byte order mark.
///
/// UTF-16 needs no mark if its first two characters are ASCII, of which each has a zero byte.
///
/// # Errors
/// They are neither UTF-8 nor UTF-16.
pub(crate) fn decode(bytes: Vec<u8>) -> Result<String, FileError> {
    match bytes.as_slice() {
        [0xff, 0xfe, units @ ..] => utf_16(units, u16::from_le_bytes),
        [0xfe, 0xff, units @ ..] => utf_16(units, u16::from_be_bytes),
        units @ [1..=255, 0, 1..=255, 0, ..] => utf_16(units, u16::from_le_bytes),
        units @ [0, 1..=255, 0, 1..=255, ..] => utf_16(units, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => {
            std::str::from_utf8(rest).map(str::to_owned).map_err(|_| FileError::NotText)
        }
        _ => String::from_utf8(bytes).map_err(|_| FileError::NotText),
    }
}

/// The text that begins with these bytes, which may end within a character; `None` if they are no text.
pub(crate) fn decode_beginning(bytes: &[u8]) -> Option<String> {
    // A character has at most four bytes, in UTF-8 and in UTF-16.
    (0..4).find_map(|cut| decode(bytes.get(..bytes.len().checked_sub(cut)?)?.to_vec()).ok())
}

fn utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, FileError> {
    let (pairs, []) = bytes.as_chunks::<2>() else { return Err(FileError::NotText) };
    char::decode_utf16(pairs.iter().map(|&pair| unit(pair)))
        .collect::<Result<_, _>>()
        .map_err(|_| FileError::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "rate = \"1 Mbit/s\" # \u{b5}\u{1f600}\n";

    fn utf_16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn each_encoding_gives_the_same_text() {
        let marked = format!("\u{feff}{TEXT}");
        for bytes in [
            TEXT.as_bytes().to_vec(),
            marked.as_bytes().to_vec(),
            utf_16(&marked, u16::to_le_bytes),
            utf_16(&marked, u16::to_be_bytes),
            utf_16(TEXT, u16::to_le_bytes),
            utf_16(TEXT, u16::to_be_bytes),
        ] {
            assert_eq!(decode(bytes.clone()).unwrap(), TEXT, "{bytes:?}");
        }
        assert_eq!(decode(Vec::new()).unwrap(), "");
    }

    #[test]
    fn prefix_may_end_within_character() {
        for bytes in [TEXT.as_bytes().to_vec(), utf_16(TEXT, u16::to_le_bytes)] {
            for end in 4..bytes.len() {
                let text = decode_beginning(&bytes[..end]).unwrap();
                assert!(TEXT.starts_with(&text) && !text.is_empty(), "{end}: {text:?}");
            }
        }
        assert_eq!(decode_beginning(b"\xff\xff\xff\xff\xff"), None);
    }

    #[test]
    fn half_a_character_is_no_text() {
        for bytes in [&b"\xff\xfe1"[..], b"\xff\xfe\x00\xd8", b"1\x002\x003", b"\xef\xbb\xbf\xff", b"\xff"] {
            assert!(matches!(decode(bytes.to_vec()), Err(FileError::NotText)), "{bytes:?}");
        }
    }
}
