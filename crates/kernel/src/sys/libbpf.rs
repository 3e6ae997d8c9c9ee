//! The few functions of libbpf that a recording needs, found when it begins: the program runs without the library, and
//! only recording asks for it.

use std::ffi::CStr;
use std::io;
use std::mem;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use libc::{c_char, c_int, c_void};

use super::bpf;

/// Version 1 of the library, whatever its minor version.
const LIBRARY: &CStr = c"libbpf.so.1";
/// A struct_ops map with it can be registered through a link, and only so (Linux 6.4).
const BPF_F_LINK: u32 = 1 << 13;

type Pointer = *mut c_void;

/// The library, loaded. It is never unloaded.
#[derive(Clone, Copy)]
pub(crate) struct Library {
    set_print: unsafe extern "C" fn(Printer) -> Pointer,
    open_mem: unsafe extern "C" fn(*const c_void, usize, *const c_void) -> Pointer,
    load: unsafe extern "C" fn(Pointer) -> c_int,
    close: unsafe extern "C" fn(Pointer),
    find_map: unsafe extern "C" fn(Pointer, *const c_char) -> Pointer,
    map_fd: unsafe extern "C" fn(Pointer) -> c_int,
    set_map_flags: unsafe extern "C" fn(Pointer, u32) -> c_int,
    set_max_entries: unsafe extern "C" fn(Pointer, u32) -> c_int,
    attach_struct_ops: unsafe extern "C" fn(Pointer) -> Pointer,
    link_fd: unsafe extern "C" fn(Pointer) -> c_int,
    next_program: unsafe extern "C" fn(Pointer, Pointer) -> Pointer,
    program_fd: unsafe extern "C" fn(Pointer) -> c_int,
}

/// `libbpf_print_fn_t`. A `va_list` as an argument is a pointer, or of its size, on every architecture of Linux.
type Printer = unsafe extern "C" fn(c_int, *const c_char, Pointer) -> c_int;

impl Library {
    /// Loads it. The error is the dynamic linker's sentence.
    pub(crate) fn open() -> Result<Library, String> {
        // SAFETY: the name is NUL-terminated; loading a system library runs its own initialisers only.
        let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(linker_error());
        }
        // SAFETY: the types of the fields are those of libbpf.h, which version 1 keeps.
        unsafe {
            Ok(Library {
                set_print: find(library, c"libbpf_set_print")?,
                open_mem: find(library, c"bpf_object__open_mem")?,
                load: find(library, c"bpf_object__load")?,
                close: find(library, c"bpf_object__close")?,
                find_map: find(library, c"bpf_object__find_map_by_name")?,
                map_fd: find(library, c"bpf_map__fd")?,
                set_map_flags: find(library, c"bpf_map__set_map_flags")?,
                set_max_entries: find(library, c"bpf_map__set_max_entries")?,
                attach_struct_ops: find(library, c"bpf_map__attach_struct_ops")?,
                link_fd: find(library, c"bpf_link__fd")?,
                next_program: find(library, c"bpf_object__next_program")?,
                program_fd: find(library, c"bpf_program__fd")?,
            })
        }
    }
}

/// A function of the library.
///
/// # Safety
/// `F` must be the type of a pointer to that function.
unsafe fn find<F: Copy>(library: Pointer, name: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<Pointer>()) };
    // SAFETY: the library is open, the name NUL-terminated.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    if found.is_null() {
        return Err(linker_error());
    }
    // SAFETY: of the same size, and the caller vouches for the type.
    Ok(unsafe { mem::transmute_copy::<Pointer, F>(&found) })
}

fn linker_error() -> String {
    // SAFETY: dlerror returns null or a NUL-terminated text that is valid until the next call.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
    }
}

/// Messages of the library, for the error that a user reads.
static MESSAGES: Mutex<String> = Mutex::new(String::new());
/// A message may contain the verifier's log, of which the library asks for at most 16 MB.
const MESSAGE_BYTES: usize = 17 << 20;
/// What is kept of a long message: its beginning says what failed, its end at which instruction and why.
const KEPT_BYTES: usize = 2048;

/// Keeps warnings; drops the rest.
unsafe extern "C" fn keep_warnings(level: c_int, format: *const c_char, arguments: Pointer) -> c_int {
    const WARNING: c_int = 0;
    // The crate libc does not declare it.
    unsafe extern "C" {
        fn vsnprintf(buffer: *mut c_char, size: usize, format: *const c_char, arguments: Pointer) -> c_int;
    }
    if level == WARNING {
        // Zeroed memory takes room only where it is written.
        let mut buffer = vec![0u8; MESSAGE_BYTES];
        // SAFETY: the buffer has that size; format and arguments belong together, as the library promises.
        unsafe { vsnprintf(buffer.as_mut_ptr().cast(), MESSAGE_BYTES, format, arguments) };
        let text = CStr::from_bytes_until_nul(&buffer).unwrap_or_default().to_bytes();
        MESSAGES.lock().unwrap_or_else(PoisonError::into_inner).push_str(&shortened(text));
    }
    0
}

/// A message without its middle, if it is long.
fn shortened(text: &[u8]) -> String {
    let Some(left_out) = text.len().checked_sub(2 * KEPT_BYTES).filter(|bytes| *bytes > 0) else {
        return String::from_utf8_lossy(text).into_owned();
    };
    let (begin, end) = (&text[..KEPT_BYTES], &text[text.len() - KEPT_BYTES..]);
    format!(
        "{}\n... ({left_out} bytes left out)\n{}",
        String::from_utf8_lossy(begin),
        String::from_utf8_lossy(end)
    )
}

/// Why an object could not be loaded or attached.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The kernel's error.
    pub(crate) error: io::Error,
    /// The library's messages, in lines.
    pub(crate) messages: String,
}

impl Refused {
    fn now() -> Refused {
        let error = io::Error::last_os_error();
        let messages = mem::take(&mut *MESSAGES.lock().unwrap_or_else(PoisonError::into_inner));
        Refused { error, messages }
    }

    /// The first message.
    pub(crate) fn first_line(&self) -> Option<&str> {
        self.messages.lines().map(|line| line.trim_start_matches("libbpf: ")).find(|line| !line.is_empty())
    }

    /// What the verifier objects to, if it does: the last line of its log that is no count.
    pub(crate) fn verifier_reason(&self) -> Option<&str> {
        let (log, _) = self.messages.split_once("-- END PROG LOAD LOG --")?;
        let counts = ["processed ", "verification time", "stack depth", "libbpf:"];
        let lines = log.lines().rev().map(str::trim);
        lines
            .take_while(|line| !line.contains("-- BEGIN PROG LOAD LOG --"))
            .find(|line| !line.is_empty() && !counts.iter().any(|count| line.starts_with(count)))
    }

    fn code(code: c_int) -> Refused {
        Refused { error: io::Error::from_raw_os_error(-code), ..Refused::now() }
    }
}

/// Programs and maps in the kernel. They go when this does, and with the process.
pub(crate) struct Object {
    library: Library,
    object: Pointer,
}

impl Object {
    /// Loads a compiled file with the congestion control `operations`, which is not registered yet.
    pub(crate) fn load(library: Library, compiled: &[u8], operations: &CStr) -> Result<Object, Refused> {
        Object::load_with(library, compiled, operations, None)
    }

    /// The same; a map of that name gets as many entries, or bytes if it is a ring buffer.
    pub(crate) fn load_with(
        library: Library,
        compiled: &[u8],
        operations: &CStr,
        resized: Option<(&CStr, u32)>,
    ) -> Result<Object, Refused> {
        // SAFETY: the printer has the type that the library expects.
        unsafe { (library.set_print)(keep_warnings) };
        // SAFETY: pointer and length describe `compiled`, which outlives the loading; no options.
        let object = unsafe { (library.open_mem)(compiled.as_ptr().cast(), compiled.len(), ptr::null()) };
        if object.is_null() {
            return Err(Refused::now());
        }
        let object = Object { library, object };
        let map = object.map(operations)?;
        if let Some((name, entries)) = resized {
            // SAFETY: the map belongs to the object, which is open and not yet loaded.
            let code = unsafe { (library.set_max_entries)(object.map(name)?, entries) };
            if code < 0 {
                return Err(Refused::code(code));
            }
        }
        // SAFETY: the map belongs to the object, which is open.
        let loaded = unsafe {
            // A registration without a link would outlive the process.
            match (library.set_map_flags)(map, BPF_F_LINK) {
                0 => (library.load)(object.object),
                error => error,
            }
        };
        if loaded < 0 { Err(Refused::code(loaded)) } else { Ok(object) }
    }

    /// Registers the congestion control for as long as the descriptor is open.
    pub(crate) fn register(&self, operations: &CStr) -> Result<OwnedFd, Refused> {
        let map = self.map(operations)?;
        // SAFETY: the map belongs to the object, which is loaded.
        let link = unsafe { (self.library.attach_struct_ops)(map) };
        if link.is_null() {
            return Err(Refused::now());
        }
        // The library's link is never destroyed, which would end the registration: its descriptor is ours from here.
        // SAFETY: both belong to the object.
        let (link, map) = unsafe { ((self.library.link_fd)(link), (self.library.map_fd)(map)) };
        if link == map {
            // Before 1.2 the library knew no links and has only filled the map.
            return bpf::link_struct_ops(map).map_err(|error| Refused { error, ..Refused::now() });
        }
        // SAFETY: the descriptor is open, and the library's own copy of it is never used again.
        Ok(unsafe { OwnedFd::from_raw_fd(link) })
    }

    /// The descriptor of a map. It is the object's.
    pub(crate) fn map_fd(&self, name: &CStr) -> Result<RawFd, Refused> {
        let map = self.map(name)?;
        // SAFETY: the map belongs to the object.
        Ok(unsafe { (self.library.map_fd)(map) })
    }

    /// The descriptors of all programs. They are the object's.
    pub(crate) fn program_fds(&self) -> Vec<RawFd> {
        let mut programs = Vec::new();
        let mut program = ptr::null_mut();
        loop {
            // SAFETY: the object is open, and the program, if there is one, belongs to it.
            program = unsafe { (self.library.next_program)(self.object, program) };
            if program.is_null() {
                return programs;
            }
            // SAFETY: as above.
            programs.push(unsafe { (self.library.program_fd)(program) });
        }
    }

    fn map(&self, name: &CStr) -> Result<Pointer, Refused> {
        // SAFETY: the object is open, the name NUL-terminated.
        let map = unsafe { (self.library.find_map)(self.object, name.as_ptr()) };
        if map.is_null() { Err(Refused::now()) } else { Ok(map) }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the object is open, and nothing of it is used afterwards.
        unsafe { (self.library.close)(self.object) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(messages: &str) -> Refused {
        Refused { error: io::Error::from_raw_os_error(libc::EACCES), messages: messages.to_owned() }
    }

    #[test]
    fn the_verifier_objects_in_the_last_line_that_is_no_count() {
        let log = "libbpf: prog 'x': BPF program load failed: -EACCES\n\
            libbpf: prog 'x': -- BEGIN PROG LOAD LOG --\n0: R1=ctx() R10=fp0\nR1 unbounded loop\n\
            processed 7 insns (limit 1000000)\n-- END PROG LOAD LOG --\n";
        let one = refused(log);
        assert_eq!(one.verifier_reason(), Some("R1 unbounded loop"));
        assert_eq!(one.first_line(), Some("prog 'x': BPF program load failed: -EACCES"));
        let empty =
            "libbpf: prog 'x': -- BEGIN PROG LOAD LOG --\nprocessed 0 insns\n-- END PROG LOAD LOG --\n";
        for messages in ["libbpf: no such file", empty, ""] {
            assert_eq!(refused(messages).verifier_reason(), None, "{messages}");
        }
    }

    #[test]
    fn a_long_message_keeps_its_end() {
        let log = format!(
            "prog 'init': BPF program load failed{}R1 invalid mem access",
            "0: r0 = 1\n".repeat(1000)
        );
        let kept = shortened(log.as_bytes());
        assert!(kept.starts_with("prog 'init'") && kept.ends_with("R1 invalid mem access"), "{kept}");
        assert!(kept.contains("bytes left out") && kept.len() < 2 * KEPT_BYTES + 40, "{}", kept.len());
        assert_eq!(shortened(&log.as_bytes()[..2 * KEPT_BYTES]).len(), 2 * KEPT_BYTES);
    }
}
