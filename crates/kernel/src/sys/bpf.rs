//! Wrappers around bpf(2), for what is simpler without a library, and the memory of a BPF ring buffer.

use std::ffi::CStr;
use std::io;
use std::mem;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_STRUCT_OPS: u32 = 44;

/// Issues a bpf(2) command.
///
/// # Safety
/// `T` must be the beginning of the kernel's `union bpf_attr` for `command`, and pointers in it must be valid.
unsafe fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_int> {
    let attributes = ptr::from_mut(attributes);
    // SAFETY: the caller vouches for the attributes; their size is told.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, mem::size_of::<T>()) };
    super::check(result as libc::c_int)
}

/// Commands on a path in bpffs: gives a descriptor a name there, or opens what has one.
#[repr(C)]
struct AtPath {
    path: u64,
    descriptor: u32,
    flags: u32,
}

/// Gives a program, map or link a name in bpffs, so that it lives as long as the name.
pub(crate) fn pin(descriptor: RawFd, path: &CStr) -> io::Result<()> {
    const BPF_OBJ_PIN: libc::c_int = 6;
    let mut attributes = AtPath { path: path.as_ptr() as u64, descriptor: descriptor as u32, flags: 0 };
    // SAFETY: these are the members of the command; the path is NUL-terminated.
    unsafe { bpf(BPF_OBJ_PIN, &mut attributes).map(drop) }
}

/// Opens what has that name in bpffs.
pub(crate) fn pinned(path: &CStr) -> io::Result<OwnedFd> {
    const BPF_OBJ_GET: libc::c_int = 7;
    let mut attributes = AtPath { path: path.as_ptr() as u64, descriptor: 0, flags: 0 };
    // SAFETY: as above; the descriptor is new and nobody else's.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(BPF_OBJ_GET, &mut attributes)?)) }
}

/// A link of an iterator over the elements of `map`: whoever reads its file runs the program.
pub(crate) fn iterate(program: RawFd, map: RawFd) -> io::Result<OwnedFd> {
    const BPF_TRACE_ITER: u32 = 28;
    #[repr(C)]
    struct Attributes {
        program: u32,
        target: u32,
        attach_type: u32,
        flags: u32,
        about: u64,
        about_bytes: u32,
    }
    let map = map as u32; // `union bpf_iter_link_info`
    let mut attributes = Attributes {
        program: program as u32,
        target: 0,
        attach_type: BPF_TRACE_ITER,
        flags: 0,
        about: ptr::from_ref(&map) as u64,
        about_bytes: mem::size_of_val(&map) as u32,
    };
    // SAFETY: these are the members of `link_create` for an iterator. The descriptor is new and nobody else's.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(BPF_LINK_CREATE, &mut attributes)?)) }
}

/// Registers a struct_ops map for as long as the descriptor that is returned is open.
pub(crate) fn link_struct_ops(map: RawFd) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Attributes {
        map: u32,
        target: u32,
        attach_type: u32,
        flags: u32,
    }
    let mut attributes = Attributes { map: map as u32, target: 0, attach_type: BPF_STRUCT_OPS, flags: 0 };
    // SAFETY: these are the members of `link_create`, without pointers. The descriptor is new and nobody else's.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(BPF_LINK_CREATE, &mut attributes)?)) }
}

/// Ends a link at once. Without it, the kernel ends one a moment after its last descriptor and name are gone.
pub(crate) fn detach(link: RawFd) -> io::Result<()> {
    const BPF_LINK_DETACH: libc::c_int = 34;
    let mut attributes = link as u32;
    // SAFETY: this is the member of `link_detach`.
    unsafe { bpf(BPF_LINK_DETACH, &mut attributes).map(drop) }
}

/// What the kernel knows of a program.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    /// At most 15 letters of its name.
    pub(crate) name: String,
    /// Instructions that the verifier looked at (since 5.16).
    pub(crate) verified: u32,
    /// How often the kernel skipped it because it was running already, as far as the kernel counts that (since 5.12).
    pub(crate) misses: u64,
}

/// Reads them.
pub(crate) fn figures(program: RawFd) -> io::Result<Figures> {
    const BPF_OBJ_GET_INFO_BY_FD: libc::c_int = 15;
    /// `struct bpf_prog_info` up to `verified_insns`, in words of eight bytes.
    const WORDS: usize = 28;
    #[repr(C)]
    struct Attributes {
        program: u32,
        bytes: u32,
        info: u64,
    }
    // Zeros everywhere: no lists are asked for.
    let mut info = [0u64; WORDS];
    let mut attributes = Attributes {
        program: program as u32,
        bytes: mem::size_of_val(&info) as u32,
        info: info.as_mut_ptr() as u64,
    };
    // SAFETY: these are the members of `info`; the kernel writes no more bytes than it is told, none through pointers.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attributes)? };
    let name = [info[8].to_ne_bytes(), info[9].to_ne_bytes()].concat();
    Ok(Figures {
        name: String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned(),
        misses: info[26],
        verified: info[27] as u32,
    })
}

/// Commands on an element of a map.
#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Reads an element into `value`, which has the size of the map's values; the key of an array is an index, that of the sockets'
/// storage the descriptor of a socket.
pub(crate) fn element(map: RawFd, key: u32, value: &mut [u8]) -> io::Result<()> {
    let (key, value) = (ptr::from_ref(&key) as u64, value.as_mut_ptr() as u64);
    let mut attributes = Element { map: map as u32, padding: 0, key, value, flags: 0 };
    // SAFETY: these are the members for an element; the caller vouches for the size of the value, the key has four bytes.
    unsafe { bpf(BPF_MAP_LOOKUP_ELEM, &mut attributes).map(drop) }
}

/// An element of an array map whose values are 64-bit numbers.
pub(crate) fn array_element(map: RawFd, index: u32) -> io::Result<u64> {
    let mut value = [0; 8];
    element(map, index, &mut value)?;
    Ok(u64::from_ne_bytes(value))
}

/// Writes an element of an array map.
pub(crate) fn set_element(map: RawFd, index: u32, value: &[u8]) -> io::Result<()> {
    const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
    let (key, value) = (ptr::from_ref(&index) as u64, value.as_ptr() as u64);
    let mut attributes = Element { map: map as u32, padding: 0, key, value, flags: 0 };
    // SAFETY: as in `element`.
    unsafe { bpf(BPF_MAP_UPDATE_ELEM, &mut attributes).map(drop) }
}

/// The reading end of a BPF ring buffer (Linux `kernel/bpf/ringbuf.c`).
///
/// The kernel maps one page with the reader's position, one with the writer's, and the data twice in a row, so that a
/// record is never split. Positions count up for ever.
#[derive(Debug)]
pub(crate) struct Ring {
    reader: Mapping,
    writer: Mapping,
    page: usize,
    data_bytes: usize,
}

/// The length of a record in its header: not yet written, or to be skipped.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER_BYTES: usize = 8;

impl Ring {
    /// Maps the ring buffer; `data_bytes` is what it was made with, a power of two.
    pub(crate) fn map(ring: RawFd, data_bytes: usize) -> io::Result<Ring> {
        // SAFETY: no pointers; the page size is always known.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let reader = Mapping::new(ring, 0, page, libc::PROT_READ | libc::PROT_WRITE)?;
        let writer = Mapping::new(ring, page, page + 2 * data_bytes, libc::PROT_READ)?;
        Ok(Ring { reader, writer, page, data_bytes })
    }

    /// Hands every finished record to `take`, in order, and frees its room.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        // SAFETY: both pages begin with a 64-bit position that is only ever accessed atomically.
        let (read, written) = unsafe {
            (&*self.reader.start.cast::<AtomicU64>(), &*self.writer.start.cast::<AtomicU64>().cast_const())
        };
        let mut position = read.load(Ordering::Relaxed);
        while position < written.load(Ordering::Acquire) {
            let at = self.page + (position as usize & (self.data_bytes - 1));
            // SAFETY: records are 8-byte aligned and lie within the data, which is mapped twice.
            let header = unsafe { &*self.writer.start.add(at).cast::<AtomicU32>().cast_const() };
            let header = header.load(Ordering::Acquire);
            if header & BUSY != 0 {
                return;
            }
            let length = (header & !DISCARDED) as usize;
            if header & DISCARDED == 0 {
                // SAFETY: the record is complete, and the kernel does not touch it before the position has passed.
                take(unsafe { std::slice::from_raw_parts(self.writer.start.add(at + HEADER_BYTES), length) });
            }
            position += (HEADER_BYTES + length).next_multiple_of(HEADER_BYTES) as u64;
            read.store(position, Ordering::Release);
        }
    }
}

/// Memory shared with the kernel.
#[derive(Debug)]
struct Mapping {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the memory belongs to the process, not to a thread, and is unmapped once.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(fd: RawFd, offset: usize, bytes: usize, protection: libc::c_int) -> io::Result<Mapping> {
        // SAFETY: a new mapping of a descriptor, at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_SHARED, fd, offset as libc::off_t)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { start: start.cast(), bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}
