//! The frames of the program's protocol: a length of 8 bytes, most significant first, and so many bytes.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

/// No request is longer.
const MOST_BYTES: u64 = 256 << 20;

/// Whether the last answer is being written: whoever has it may close the input, and that is no reason to end.
static ENDING: AtomicBool = AtomicBool::new(false);

/// What was read, or why nothing could be.
pub(crate) type Frame = Result<Vec<u8>, Wrong>;

/// Something that is no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong(pub(crate) String);

/// Reads frames on a thread of its own. When the input ends, so does the program.
pub(crate) fn frames() -> Receiver<Frame> {
    let (found, frames) = channel();
    std::thread::spawn(move || {
        loop {
            match read_frame(&mut io::stdin()) {
                Ok(Some(frame)) => {
                    let _ = found.send(Ok(frame));
                }
                Ok(None) if ENDING.load(Ordering::SeqCst) => return,
                Ok(None) => std::process::exit(3),
                Err(wrong) => {
                    // Nothing that follows can be read: there is no telling where the next frame begins.
                    let _ = found.send(Err(wrong));
                    return;
                }
            }
        }
    });
    frames
}

/// The next frame; `None` at the end of the input.
pub(crate) fn read_frame(input: &mut impl Read) -> Result<Option<Vec<u8>>, Wrong> {
    let mut length = [0; 8];
    let mut have = 0;
    while have < length.len() {
        match input.read(&mut length[have..]) {
            Ok(0) if have == 0 => return Ok(None),
            Ok(0) => return Err(Wrong("the input ends within the length of a frame".to_owned())),
            Ok(more) => have += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Wrong(format!("the input cannot be read: {error}"))),
        }
    }
    let length = u64::from_be_bytes(length);
    if length > MOST_BYTES {
        return Err(Wrong(format!("a frame of {length} bytes; expected at most {MOST_BYTES}")));
    }
    let mut frame = Vec::new();
    match input.take(length).read_to_end(&mut frame) {
        Ok(read) if read as u64 == length => Ok(Some(frame)),
        Ok(read) => Err(Wrong(format!("the input ends after {read} of a frame's {length} bytes"))),
        Err(error) => Err(Wrong(format!("the input cannot be read: {error}"))),
    }
}

pub(crate) fn write_frame(output: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    output.write_all(&(frame.len() as u64).to_be_bytes())?;
    output.write_all(frame)?;
    output.flush()
}

pub(crate) fn write_json(output: &mut impl Write, value: &Value) -> io::Result<()> {
    write_frame(output, value.to_string().as_bytes())
}

/// Writes an answer behind which there is none.
pub(crate) fn write_last(output: &mut impl Write, value: &Value) -> io::Result<()> {
    ENDING.store(true, Ordering::SeqCst);
    write_json(output, value)
}

/// These frames, one behind the other.
#[cfg(test)]
pub(crate) fn framed(frames: &[&[u8]]) -> Vec<u8> {
    let mut all = Vec::new();
    frames.iter().for_each(|frame| write_frame(&mut all, frame).unwrap());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_until_input_ends() {
        let mut input = io::Cursor::new(framed(&[b"one", b""]));
        assert_eq!(read_frame(&mut input), Ok(Some(b"one".to_vec())));
        assert_eq!(read_frame(&mut input), Ok(Some(Vec::new())));
        assert_eq!(read_frame(&mut input), Ok(None));
    }

    #[test]
    fn invalid_frame_is_an_error() {
        let wrong = |bytes: &[u8]| read_frame(&mut &*bytes).unwrap_err().0;
        assert_eq!(wrong(&[0; 7]), "the input ends within the length of a frame");
        assert_eq!(wrong(&[0, 0, 0, 0, 0, 0, 0, 9, 1]), "the input ends after 1 of a frame's 9 bytes");
        assert!(wrong(&[255; 9]).starts_with("a frame of 18446744073709551615 bytes; expected at most"));
    }
}
