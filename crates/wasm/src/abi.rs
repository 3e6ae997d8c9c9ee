//! How requests and answers cross: through the memory of the module. `lab/src/engine/wasm.ts` is the other side.
//!
//! The page asks for room for a request ([`fullpipe_request`]), writes the request there, has it answered ([`fullpipe_call`]),
//! and reads the answer before the next request. All buffers belong to the engine. After a panic, which ends as a trap, the page
//! may still ask what it said ([`fullpipe_panic`]), and then makes a new module: nothing of this one means anything any more.
//!
//! No function takes an address, so that there is no unsafe code but the promise that the names are unique.

use std::cell::RefCell;
use std::ptr;
use std::sync::{Mutex, Once, PoisonError};

use crate::answer::Answer;
use crate::engine::Engine;

/// Where an answer is. Its fields are read as 32-bit words.
#[repr(C)]
#[derive(Debug)]
pub struct Parts {
    json: *const u8,
    json_bytes: usize,
    columns: *const f64,
    columns_values: usize,
    text: *const u8,
    text_bytes: usize,
}

struct State {
    engine: Engine,
    request: Vec<u8>,
    answer: Answer,
    parts: Parts,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::new(State {
        engine: Engine::default(),
        request: Vec::new(),
        answer: Answer::default(),
        parts: Parts::of(&Answer::default()),
    });
}

/// What the panic said.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Makes room for a request of so many bytes, and returns where.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_request(bytes: usize) -> *mut u8 {
    hook();
    STATE.with_borrow_mut(|state| {
        // The answer before is not needed any more, and may be large.
        state.answer = Answer::default();
        state.request = vec![0; bytes];
        state.request.as_mut_ptr()
    })
}

/// Answers the request, and returns where the answer is.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_call() -> *const Parts {
    hook();
    STATE.with_borrow_mut(|state| {
        let request = std::mem::take(&mut state.request);
        state.answer = state.engine.answer(&request);
        state.parts = Parts::of(&state.answer);
        ptr::from_ref(&state.parts)
    })
}

/// Forgets the answer, which may be large.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_forget() {
    STATE.with_borrow_mut(|state| state.answer = Answer::default());
}

/// What the panic said: where, and how many bytes in the first word behind it.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_panic() -> *const Parts {
    let message = PANIC.try_lock().map(|message| message.clone()).unwrap_or_default();
    let answer = Answer { json: message, ..Answer::default() };
    // Once only: the module is of no use afterwards.
    let answer: &'static Answer = Box::leak(Box::new(answer));
    Box::leak(Box::new(Parts::of(answer)))
}

/// Keeps what a panic says.
fn hook() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        if cfg!(target_family = "wasm") {
            std::panic::set_hook(Box::new(|info| {
                *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = info.to_string();
            }));
        }
    });
}

impl Parts {
    fn of(answer: &Answer) -> Parts {
        Parts {
            json: answer.json.as_ptr(),
            json_bytes: answer.json.len(),
            columns: answer.columns.as_ptr(),
            columns_values: answer.columns.len(),
            text: answer.text.as_ptr(),
            text_bytes: answer.text.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the page does.
    fn ask(request: &str) -> (String, Vec<f64>) {
        let room = fullpipe_request(request.len());
        // SAFETY: there is room for so many bytes, and nobody else uses it before the call.
        unsafe { ptr::copy_nonoverlapping(request.as_ptr(), room, request.len()) };
        // SAFETY: the answer stays as it is until the next request.
        unsafe {
            let parts = &*fullpipe_call();
            let json = std::slice::from_raw_parts(parts.json, parts.json_bytes);
            let columns = std::slice::from_raw_parts(parts.columns, parts.columns_values);
            (String::from_utf8(json.to_vec()).expect("JSON"), columns.to_vec())
        }
    }

    #[test]
    fn request_and_answer_cross_abi() {
        let document = r#"{"text": "[path]\nrate=\"1 Mbit/s\"\nrtt=\"90 ms\"\n[[flows]]\ncontroller=\"reno\"", "format": "toml"}"#;
        let (json, columns) = ask(&format!(r#"{{"method": "run", "document": {document}, "seed": 1}}"#));
        assert!(json.starts_with(r#"{"ok":{"summary":""#), "{json}");
        // 20 seconds, a sample each 10 ms, of 14 columns for the flow and 6 for the queue, but for its start.
        assert!((39_000..=40_020).contains(&columns.len()), "{}", columns.len());
        let (json, columns) = ask("boom");
        assert!(json.starts_with(r#"{"failure":""#) && columns.is_empty());
        fullpipe_forget();
        assert!(ask(r#"{"method": "catalogue"}"#).0.starts_with(r#"{"ok":{"version":""#));
    }
}
