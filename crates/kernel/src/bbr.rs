//! Which version of BBR a kernel has: Linux's own is version 1, Google's kernel and kernels with its patch have version 3 under the
//! same name, and some have it as `bbr3` beside version 1.
//!
//! A socket tells: version 1 reports the five numbers of Linux's `struct tcp_bbr_info` ([`crate::tcp_info::BbrInfo`]), and later
//! ones more, among them their version. If it does not, the module's version does (`modinfo tcp_bbr`), which Linux's own module
//! has none of.

use std::io;

use fullpipe_cc::Params;
use fullpipe_emu::EmuError;
use fullpipe_scenario::ControllerChoice;

use crate::KernelError;
use crate::host::sender::set_algorithm;
use crate::sys;

/// Bytes of `struct tcp_bbr_info` of version 1.
const BYTES_OF_V1: usize = 20;
/// Where later versions have theirs.
pub(crate) const VERSION_AT: usize = 39;
/// Google's version that `bbr3:profile=linux` is exact to.
const GOOGLE: u8 = 3;

/// What a machine shows of its congestion controls; tests show another.
pub(crate) trait Shown {
    /// What a socket with this algorithm reports (`TCP_CC_INFO`); fails if there is no such algorithm.
    fn info(&self, algorithm: &str) -> io::Result<Vec<u8>>;
    /// The version of the module that has it, if the module says so.
    fn module_version(&self, algorithm: &str) -> Option<String>;
}

/// This machine, in the calling thread's namespace.
pub(crate) struct Machine;

impl Shown for Machine {
    fn info(&self, algorithm: &str) -> io::Result<Vec<u8>> {
        let socket = sys::socket(libc::SOCK_STREAM)?;
        set_algorithm(&socket, algorithm)?;
        let mut buffer = [0; 256];
        let length = sys::get_option(&socket, libc::IPPROTO_TCP, libc::TCP_CC_INFO, &mut buffer)?;
        Ok(buffer[..length].to_vec())
    }

    fn module_version(&self, algorithm: &str) -> Option<String> {
        std::fs::read_to_string(format!("/sys/module/tcp_{algorithm}/version")).ok()
    }
}

/// The version of the algorithm called `name`; `Ok(None)` if it does not tell.
///
/// # Errors
/// When the kernel has no such algorithm, or does not let a socket have it.
pub(crate) fn version(shown: &impl Shown, name: &str) -> io::Result<Option<u8>> {
    let info = shown.info(name)?;
    if info.len() == BYTES_OF_V1 {
        return Ok(Some(1));
    }
    let reported = info.get(VERSION_AT).copied().filter(|version| *version > 1);
    Ok(reported.or_else(|| shown.module_version(name)?.trim().parse().ok()))
}

/// Whether the choice is Google's BBRv3 as its kernel has it.
fn is_google_s(choice: &ControllerChoice) -> bool {
    matches!(choice.params(), Some(Params::Bbr3Linux(params)) if *params == Default::default())
}

/// Whether some kernel has exactly this controller.
pub(crate) fn is_in_a_kernel(choice: &ControllerChoice) -> bool {
    choice.linux_name().is_some() || is_google_s(choice)
}

/// What this kernel calls the controller. BBR's name alone says nothing about its version.
///
/// # Errors
/// When what the kernel has under the name is another version.
pub(crate) fn name_here(choice: &ControllerChoice, shown: &impl Shown) -> Result<String, KernelError> {
    let has = |name: &str, wanted: u8| matches!(version(shown, name), Ok(Some(found)) if found == wanted);
    if is_google_s(choice) {
        let name = ["bbr3", "bbr"].into_iter().find(|name| has(name, GOOGLE));
        return name.map(str::to_owned).ok_or_else(|| {
            other_version(choice, shown, "run bbr1 here, or bbr3 in the simulator (--world sim)")
        });
    }
    match choice.linux_name() {
        // One that is not there at all is reported as such when a socket asks for it.
        Some("bbr") if has("bbr", 1) || version(shown, "bbr").is_err() => Ok("bbr".to_owned()),
        Some("bbr") if has("bbr1", 1) => Ok("bbr1".to_owned()),
        Some("bbr") => {
            let fix = if has("bbr", GOOGLE) {
                "choose bbr3:profile=linux, which is that one, or run bbr1 in the simulator (--world sim)"
            } else {
                "run bbr1 in the simulator (--world sim)"
            };
            Err(other_version(choice, shown, fix))
        }
        name => Ok(name.unwrap_or_default().to_owned()),
    }
}

fn other_version(choice: &ControllerChoice, shown: &impl Shown, fix: &str) -> KernelError {
    EmuError::Unsupported {
        field: "controller".to_owned(),
        reason: format!("this kernel has no {}: {}", choice.text(), described(shown)),
        fix: fix.to_owned(),
    }
    .into()
}

/// What the kernel's `bbr` is, in words.
pub(crate) fn described(shown: &impl Shown) -> String {
    match version(shown, "bbr") {
        Ok(Some(1)) => "its bbr is Linux's BBR version 1".to_owned(),
        Ok(Some(version)) => format!("its bbr is BBR version {version}, Google's"),
        Ok(None) => "its bbr does not tell its version".to_owned(),
        Err(_) => "it has no bbr".to_owned(),
    }
}

/// Whether the recorder knows the kernel's `bbr`.
///
/// # Errors
/// When it is another version than Linux's own.
pub(crate) fn check_recordable(shown: &impl Shown) -> Result<(), KernelError> {
    match version(shown, "bbr") {
        Ok(Some(1)) | Err(_) => Ok(()),
        Ok(_) => Err(KernelError::NoRecorder {
            reason: format!(
                "{}; only Linux's BBR version 1 and CUBIC can be recorded and replayed",
                described(shown)
            ),
            fix: "record cubic, or record on a kernel whose bbr is Linux's own".to_owned(),
        }),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A machine with these algorithms: name, what a socket reports, the module's version.
    pub(crate) struct Pretended(pub(crate) &'static [(&'static str, &'static [u8], Option<&'static str>)]);

    impl Shown for Pretended {
        fn info(&self, algorithm: &str) -> io::Result<Vec<u8>> {
            let found = self.0.iter().find(|(name, ..)| *name == algorithm);
            found.map(|(_, info, _)| info.to_vec()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
        }

        fn module_version(&self, algorithm: &str) -> Option<String> {
            self.0.iter().find(|(name, ..)| *name == algorithm)?.2.map(str::to_owned)
        }
    }

    /// What a socket of Google's reports, with this version.
    const fn google(version: u8) -> [u8; 52] {
        let mut info = [0; 52];
        info[VERSION_AT] = version;
        info
    }

    const LINUX: Pretended = Pretended(&[("bbr", &[0; BYTES_OF_V1], None)]);
    const GOOGLE_S: Pretended = Pretended(&[("bbr", &google(3), Some("3\n"))]);
    const BOTH: Pretended = Pretended(&[("bbr", &[0; BYTES_OF_V1], None), ("bbr3", &google(3), None)]);
    const PATCHED: Pretended = Pretended(&[("bbr", &google(3), None), ("bbr1", &[0; BYTES_OF_V1], None)]);
    const SECOND: Pretended = Pretended(&[("bbr", &google(2), None)]);
    const MUTE: Pretended = Pretended(&[("bbr", &[], None)]);
    const MODULE_ONLY: Pretended = Pretended(&[("bbr", &[], Some("3\n"))]);
    const NONE: Pretended = Pretended(&[("cubic", &[], None)]);

    fn named(text: &str, shown: &Pretended) -> Result<String, String> {
        let choice = ControllerChoice::parse(text).unwrap();
        name_here(&choice, shown).map_err(|error| format!("{error}; {}", error.fix()))
    }

    #[test]
    fn socket_or_module_reports_version() {
        let of = |shown: &Pretended| version(shown, "bbr").unwrap();
        assert_eq!([&LINUX, &GOOGLE_S, &BOTH, &SECOND].map(of), [Some(1), Some(3), Some(1), Some(2)]);
        assert_eq!([of(&MUTE), of(&MODULE_ONLY)], [None, Some(3)]);
        assert_eq!(version(&BOTH, "bbr3").unwrap(), Some(3));
        assert!(version(&NONE, "bbr").is_err());
    }

    #[test]
    fn bbr1_is_never_another_version() {
        assert_eq!(named("bbr1", &LINUX), Ok("bbr".to_owned()));
        assert_eq!(named("bbr1", &BOTH), Ok("bbr".to_owned()));
        assert_eq!(named("bbr", &PATCHED), Ok("bbr1".to_owned()));
        assert_eq!(named("bbr1", &NONE), Ok("bbr".to_owned()), "the socket will say that it is missing");
        let error = named("bbr1", &GOOGLE_S).unwrap_err();
        assert!(error.contains("this kernel has no bbr1: its bbr is BBR version 3, Google's"), "{error}");
        assert!(error.contains("choose bbr3:profile=linux, which is that one"), "{error}");
        assert!(named("bbr1", &MODULE_ONLY).unwrap_err().contains("version 3"));
        let error = named("bbr1", &SECOND).unwrap_err();
        assert!(error.contains("its bbr is BBR version 2") && !error.contains("profile=linux"), "{error}");
        assert!(named("bbr1", &MUTE).unwrap_err().contains("its bbr does not tell its version"));
    }

    #[test]
    fn google_bbr3_matches_any_kernel_name() {
        let google = "bbr3:profile=linux";
        assert_eq!(named(google, &GOOGLE_S), Ok("bbr".to_owned()));
        assert_eq!(named(google, &BOTH), Ok("bbr3".to_owned()));
        let error = named(google, &LINUX).unwrap_err();
        assert!(
            error.contains("this kernel has no bbr3:profile=linux: its bbr is Linux's BBR version 1"),
            "{error}"
        );
        assert!(named(google, &NONE).unwrap_err().contains("it has no bbr"));
        assert_eq!(named("cubic", &GOOGLE_S), Ok("cubic".to_owned()));
        let in_a_kernel = |text| is_in_a_kernel(&ControllerChoice::parse(text).unwrap());
        assert!(in_a_kernel(google) && in_a_kernel("bbr1"));
        assert!(!in_a_kernel("bbr3") && !in_a_kernel("bbr3:profile=linux,fast_path=0"));
    }

    #[test]
    fn only_linux_bbr_is_recordable() {
        assert!([&LINUX, &BOTH, &NONE].into_iter().all(|shown| check_recordable(shown).is_ok()));
        for shown in [&GOOGLE_S, &PATCHED, &SECOND, &MUTE] {
            let error = check_recordable(shown).unwrap_err().to_string();
            assert!(
                error.contains("only Linux's BBR version 1 and CUBIC can be recorded and replayed"),
                "{error}"
            );
        }
    }

    #[test]
    fn local_bbr_reports_its_version() {
        if let Ok(version) = version(&Machine, "bbr") {
            assert!(version.is_some_and(|version| (1..=3).contains(&version)), "{version:?}");
        }
    }
}
