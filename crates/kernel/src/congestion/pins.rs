//! Congestion controls that stay: their descriptors have names in the BPF file system, so that no process has to.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use fullpipe_bpf::objects::{MOST_NAME_BYTES, Object as File, Options};
use fullpipe_emu::EmuError;
use fullpipe_scenario::ControllerChoice;
use serde_json::{Value, json};

use super::place::{ABOUT_BYTES, BPFFS, default, loaded, path, root};
use super::{How, Loaded, not_loaded, status};
use crate::KernelError;
use crate::missing::{self, Missing};
use crate::sys::{self, bpf};

const BPF_FS_MAGIC: i64 = 0xcafe_4a11;
/// The machine's default, in its first network namespace.
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// Loads a controller under `name`, to stay until [`unload`] or the next boot; `as_default`: as the machine's default, too.
/// Returns a sentence's parts as JSON: name, controller, sha256, and the default before.
///
/// # Errors
/// When the name is taken or none, when something is missing (root, the kernel's types, libbpf, the BPF file system), and when the
/// kernel refuses.
pub fn load(choice: &ControllerChoice, name: &str, as_default: bool) -> Result<String, KernelError> {
    check_name(name)?;
    let Some((params, file)) = choice.params().and_then(|params| Some((params, File::of(params)?))) else {
        return Err(not_loaded(vec![Missing::other(
            format!("{} has no object for the kernel", choice.text()),
            format!("choose one of {}", super::loadable().join(", ")),
        )]));
    };
    stay(&Loaded::new(params, name, How::default())?, name, choice.text(), file.sha256, as_default)
}

/// The same for a controller of the user's own: the bytes of its object, which `crates/bpf/build.py --crate` made, the name of
/// that file, and its digest.
///
/// # Errors
/// As [`load`]; and when the bytes are no such object.
pub fn load_own(
    object: &[u8],
    file_name: &str,
    sha256: &str,
    name: &str,
    as_default: bool,
) -> Result<String, KernelError> {
    check_name(name)?;
    let options = Options { hz: sys::ticks_per_second(), recording: false, timing: false };
    let Some(file) = File::own(object, name, options) else {
        return Err(not_loaded(vec![Missing::other(
            format!("{file_name} is no object of a controller"),
            "make it with `python crates/bpf/build.py --crate` (examples/kernel-controller)",
        )]));
    };
    stay(&Loaded::from_file(&file, name, How::default())?, name, file_name, sha256, as_default)
}

/// Lets what is loaded stay.
fn stay(
    loaded: &Loaded,
    name: &str,
    controller: &str,
    sha256: &str,
    as_default: bool,
) -> Result<String, KernelError> {
    mount()?;
    let before = as_default.then(default).flatten();
    let about = json!({
        "name": name,
        "controller": controller,
        "sha256": sha256,
        "kernel": sys::host_and_kernel().1,
        "default_before": before,
    });
    let folder = root().join(name);
    pin_all(loaded, &folder, &about).inspect_err(|_| {
        let _ = fs::remove_dir_all(&folder);
    })?;
    if as_default {
        // A crash of this process from here on leaves what `unload` can undo.
        fs::write(DEFAULT, name).map_err(|error| {
            let _ = unload(name);
            KernelError::system(format!("make {name} the default"), error)
        })?;
    }
    Ok(about.to_string())
}

fn pin_all(loaded: &Loaded, folder: &Path, about: &Value) -> Result<(), KernelError> {
    let failed = |attempted: &str| {
        let attempted = format!("{attempted} in {}", folder.display());
        move |error: io::Error| KernelError::system(attempted, error)
    };
    fs::create_dir_all(folder).map_err(failed("create a folder"))?;
    let mut text = about.to_string().into_bytes();
    text.resize(ABOUT_BYTES, 0);
    bpf::set_element(loaded.map(c"about")?, 0, &text).map_err(failed("note what it is"))?;
    let list = loaded.list()?;
    let pins: [(&str, RawFd); 5] = [
        ("about", loaded.map(c"about")?),
        ("counters", loaded.map(c"counters")?),
        ("flows", loaded.map(c"flows")?),
        ("list", list.as_raw_fd()),
        // Last: what it names can be looked at from the beginning.
        ("link", loaded.link()),
    ];
    for (name, descriptor) in pins {
        bpf::pin(descriptor, &path(&folder.join(name))).map_err(failed("pin"))?;
    }
    Ok(())
}

/// Removes what [`load`] loaded: no new connection gets it, and those that have it keep it until they end. Returns JSON: its name,
/// how many connections still have it, and the default that was put back, or null.
///
/// # Errors
/// When there is none of this name, and without rights.
pub fn unload(name: &str) -> Result<String, KernelError> {
    let folder = root().join(name);
    if name.contains('/') || !folder.is_dir() {
        return Err(KernelError::NothingLoaded { name: name.to_owned(), loaded: loaded() });
    }
    let failed = |error| KernelError::system(format!("remove {}", folder.display()), error);
    let found = status::of(name).ok();
    let holding = found.as_ref().map_or(0, |found| found["connections"].as_array().map_or(0, Vec::len));
    let mut restored = None;
    if default().as_deref() == Some(name) {
        // The kernel keeps what is its default.
        let before = found.and_then(|found| found["default_before"].as_str().map(str::to_owned));
        let other = before.filter(|before| before != name && fs::write(DEFAULT, before).is_ok());
        let other = other.or_else(|| {
            ["cubic", "reno"].into_iter().find(|name| fs::write(DEFAULT, name).is_ok()).map(str::to_owned)
        });
        restored = Some(other.ok_or_else(|| failed(io::Error::last_os_error()))?);
    }
    // The link first: it is the registration. A kernel that cannot detach one (before 6.11) ends it soon after its name is gone.
    if let Ok(link) = bpf::pinned(&path(&folder.join("link"))) {
        let _ = bpf::detach(link.as_raw_fd());
    }
    for pin in ["link", "list", "flows", "counters", "about"] {
        match fs::remove_file(folder.join(pin)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    fs::remove_dir(&folder).map_err(failed)?;
    let _ = fs::remove_dir(root()); // Stays if there are others.
    Ok(json!({"name": name, "connections": holding, "default": restored}).to_string())
}

fn check_name(name: &str) -> Result<(), KernelError> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if !name.is_empty() && name.len() <= MOST_NAME_BYTES && name.chars().all(fits) {
        return Ok(());
    }
    Err(EmuError::Unsupported {
        field: "--as".to_owned(),
        reason: format!("{name:?} is no name of a congestion control"),
        fix: format!("choose 1 to {MOST_NAME_BYTES} letters, digits, _ or -"),
    }
    .into())
}

/// Mounts the BPF file system, if it is not there, as systemd and bpftool do.
fn mount() -> Result<(), KernelError> {
    const KIND: &CStr = c"bpf";
    let place = path(Path::new(BPFFS));
    // SAFETY: `about` is valid for writing; the path is NUL-terminated.
    let (known, about) = unsafe {
        let mut about = std::mem::zeroed::<libc::statfs>();
        (libc::statfs(place.as_ptr(), &mut about), about)
    };
    #[allow(clippy::unnecessary_cast, reason = "its type depends on the architecture")]
    if known == 0 && about.f_type as i64 == BPF_FS_MAGIC {
        return Ok(());
    }
    // SAFETY: all are NUL-terminated; no data.
    if unsafe { libc::mount(KIND.as_ptr(), place.as_ptr(), KIND.as_ptr(), 0, std::ptr::null()) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(not_loaded(vec![Missing::other(
        format!("{BPFFS} is no BPF file system and cannot be mounted: {error}"),
        format!("{}; or `mount -t bpf bpf {BPFFS}`", missing::BECOME_ROOT),
    )]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::sender::set_algorithm;
    use fullpipe_emu::sysctl::sysctl;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;

    #[test]
    fn a_name_is_one_that_a_file_and_a_sysctl_can_have() {
        for name in ["bbr3", "fp_bbr3_linux", "bbr_1_1", "123456789012345"] {
            check_name(name).unwrap();
        }
        for name in ["", "1234567890123456", "a b", "../x", "a.b", "ä"] {
            let error = check_name(name).unwrap_err();
            assert!(error.to_string().starts_with("--as: "), "{error}");
        }
    }

    /// Unloads it however the test ends.
    struct Unloaded<'a>(&'a str);

    impl Drop for Unloaded<'_> {
        fn drop(&mut self) {
            let _ = unload(self.0);
        }
    }

    #[test]
    fn a_connection_keeps_what_is_unloaded_and_no_other_gets_it() {
        let name = format!("fpt{}", std::process::id());
        let available = || sysctl("net.ipv4.tcp_available_congestion_control").unwrap().contains(&name);
        match load(&ControllerChoice::parse("bbr1:probe_gain=1.1").unwrap(), &name, false) {
            Ok(about) => assert!(about.contains("bbr1:probe_gain=1.1")),
            Err(error) => return println!("skipped: {error}"),
        }
        let _unloaded = Unloaded(&name);
        assert!(available());
        let again = load(&ControllerChoice::parse("bbr3").unwrap(), &name, false).unwrap_err();
        assert!(again.to_string().contains("already"), "{again}");
        for place in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(place).unwrap();
            let socket = OwnedFd::from(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
            set_algorithm(&socket, &name).unwrap();
            let mut ours = TcpStream::from(socket);
            let (mut other, _) = listener.accept().unwrap();
            let reading = std::thread::spawn(move || io::copy(&mut other, &mut io::sink()).unwrap());
            ours.write_all(&vec![0; 1 << 23]).unwrap();
            let found = status::of(&name).unwrap();
            let port = ours.local_addr().unwrap().port();
            let flows = found["connections"].as_array().unwrap();
            let flow = flows.iter().find(|flow| flow["port"] == port).unwrap();
            assert!(flow["trusted"] == true && flow["bandwidth_bps"].as_u64() > Some(0), "{found}");
            assert_eq!(found["counters"]["fallen_storage"], 0);
            if place.starts_with('[') {
                assert!(unload(&name).unwrap().contains("\"connections\":"));
                assert!(!available());
                ours.write_all(&vec![0; 1 << 20]).unwrap();
                let late = sys::socket(libc::SOCK_STREAM).unwrap();
                assert_eq!(set_algorithm(&late, &name).unwrap_err().raw_os_error(), Some(libc::ENOENT));
            }
            drop(ours);
            assert!(reading.join().unwrap() >= 1 << 23);
        }
        assert!(matches!(status::status(Some(&name)), Err(KernelError::NothingLoaded { .. })));
    }

    #[test]
    fn what_is_not_loaded_cannot_be_unloaded() {
        for name in ["no_such_name", "../../fs"] {
            let error = unload(name).unwrap_err();
            assert!(matches!(error, KernelError::NothingLoaded { .. }), "{error}");
            assert!(error.fix().contains("fullpipe kernel status"));
        }
    }
}
