//! The object files, and how a name, options and parameters get into one before the kernel sees it.
//!
//! An object has two places that are found by a text: the name of the congestion control, and the options, which end with the
//! image of the controller's `Params`. Rust does not promise where a field of such a structure is, so that the table lists it for
//! the compiler of the object, and [`layout`] finds it for the compiler of this program.

use std::mem::discriminant;

use fullpipe_cc::parameter::Kind;
use fullpipe_cc::{CATALOGUE, Decimal, Params};

include!("table.rs");

/// A controller that can be loaded into a kernel.
#[derive(Debug)]
pub struct Object {
    /// As a scenario chooses it, without parameters.
    pub controller: &'static str,
    /// Of the file.
    pub sha256: &'static str,
    bytes: &'static [u8],
    /// The image of the default parameters.
    defaults: &'static [u8],
    fields: &'static [Field],
}

/// Name of a parameter, its offset in the image, and its length in bytes.
pub type Field = (&'static str, usize, usize);

/// What an object is loaded with.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The kernel's `CONFIG_HZ`.
    pub hz: u32,
    /// Every call is written to the ring buffer.
    pub recording: bool,
    /// The time of each ACK is counted.
    pub timing: bool,
}

/// The longest name of a congestion control (Linux: `TCP_CA_NAME_MAX`, with its NUL).
pub const MOST_NAME_BYTES: usize = 15;
const NAME: &[u8; 16] = b"fullpipe-cc-nam\0";
const OPTIONS: &[u8; 16] = b"fullpipe-options";
/// Bytes between the text and the parameters: four numbers.
const NUMBERS: usize = 16;

impl Object {
    /// All of them.
    pub const ALL: &'static [Object] = OBJECTS;

    /// The object of a controller, whatever its parameters: the profile `repaired` of `bbr3` is one of the draft's.
    pub fn of(params: &Params) -> Option<&'static Object> {
        let has = |object: &&Object| {
            controller(object.controller).is_some_and(|other| discriminant(&other) == discriminant(params))
        };
        Object::ALL.iter().find(has)
    }

    /// The file to load under `name`.
    ///
    /// # Panics
    /// When the name is longer than [`MOST_NAME_BYTES`], or the parameters are another controller's.
    pub fn file(&self, name: &str, params: &Params, options: Options) -> Vec<u8> {
        self.file_of(self.bytes, name, params, options)
    }

    /// The same with the bytes of another object of the same controller, as a test has.
    pub fn file_of(&self, bytes: &[u8], name: &str, params: &Params, options: Options) -> Vec<u8> {
        with(bytes, name, options, params.needs_pacing(), &self.image_of(params))
    }

    /// An object of a controller of the user's own, which `build.py --crate` made. It is paced at the controller's rate.
    /// `None` if the bytes are something else.
    pub fn own(bytes: &[u8], name: &str, options: Options) -> Option<Vec<u8>> {
        let is_object = bytes.starts_with(b"\x7fELF") && once(bytes, NAME).is_some();
        let room = once(bytes, OPTIONS).is_some_and(|at| bytes.len() - at >= OPTIONS.len() + NUMBERS);
        (is_object && room).then(|| with(bytes, name, options, true, &[]))
    }

    /// The image of `params` as the object's compiler has it.
    fn image_of(&self, params: &Params) -> Vec<u8> {
        let own = image(params).expect("a controller with an object");
        let mut made = self.defaults.to_vec();
        for (name, at, bytes) in layout(params) {
            let (_, there, length) = self
                .fields
                .iter()
                .find(|field| field.0 == name)
                .unwrap_or_else(|| panic!("the object knows {name}"));
            assert_eq!(bytes, *length, "{name}");
            made[*there..there + length].copy_from_slice(&own[at..at + bytes]);
        }
        made
    }
}

/// An object with its name, options and parameters.
///
/// # Panics
/// When it has no such places.
fn with(object: &[u8], name: &str, options: Options, paced: bool, params: &[u8]) -> Vec<u8> {
    assert!(name.len() <= MOST_NAME_BYTES && name.is_ascii(), "{name:?} is no name of a congestion control");
    let mut made = object.to_vec();
    let at = only(&made, NAME);
    made[at..at + NAME.len()].fill(0);
    made[at..at + name.len()].copy_from_slice(name.as_bytes());
    let at = only(&made, OPTIONS) + OPTIONS.len();
    let numbers = [options.hz, paced as u32, options.recording as u32, options.timing as u32];
    for (place, number) in numbers.into_iter().enumerate() {
        made[at + 4 * place..at + 4 * place + 4].copy_from_slice(&number.to_le_bytes());
    }
    made[at + NUMBERS..at + NUMBERS + params.len()].copy_from_slice(params);
    made
}

/// Where a text is, if it occurs once.
fn once(object: &[u8], text: &[u8]) -> Option<usize> {
    let mut places = object.windows(text.len()).enumerate().filter(|(_, window)| *window == text);
    let (place, _) = places.next()?;
    places.next().is_none().then_some(place)
}

/// The same where it has to be.
fn only(object: &[u8], text: &[u8]) -> usize {
    let message = || panic!("{} is not exactly once in the object", String::from_utf8_lossy(text));
    once(object, text).unwrap_or_else(message)
}

/// The controller that a text such as `bbr3:profile=linux` chooses, without other parameters.
pub fn controller(text: &str) -> Option<Params> {
    let (name, profile) =
        text.split_once(":profile=").map_or((text, None), |(name, profile)| (name, Some(profile)));
    let mut params = Params::by_name(name)?;
    match profile {
        Some(profile) => params.choose("profile", profile).is_ok().then_some(params),
        None => Some(params),
    }
}

/// The bytes of a controller's own parameters; `None` for one that has no object.
pub fn image(params: &Params) -> Option<Vec<u8>> {
    match params {
        Params::Bbr3(params) => Some(bytes_of(params)),
        Params::Bbr3Linux(params) => Some(bytes_of(params)),
        Params::Bbr1(params) => Some(bytes_of(params)),
        _ => None,
    }
}

fn bytes_of<T: Copy>(value: &T) -> Vec<u8> {
    let start = std::ptr::from_ref(value).cast::<u8>();
    // SAFETY: within the value. What padding holds is read as it is in memory: nobody uses it.
    (0..size_of::<T>()).map(|at| unsafe { start.add(at).read_volatile() }).collect()
}

/// Where this program's compiler puts each parameter: where the image differs between the least and the greatest value.
///
/// # Panics
/// When a parameter is not where it can be found.
pub fn layout(params: &Params) -> Vec<Field> {
    let profile = params.profile().map(|(_, name)| name);
    let info = CATALOGUE.iter().find(|info| info.name == params.name()).expect("in the catalogue");
    let own = info
        .parameters
        .iter()
        .filter(|one| one.name != "profile" && profile.is_none_or(|chosen| one.is_in(chosen)));
    own.map(|parameter| {
        let with = |value: Decimal| {
            let mut changed = *params;
            changed.set(parameter.name, value).expect("within its range");
            image(&changed).expect("a controller with an object")
        };
        let (least, greatest) = (with(parameter.min), with(parameter.max));
        let at =
            (0..least.len()).find(|at| least[*at] != greatest[*at]).expect("another value changes the image");
        // A switch is a byte, everything else four.
        if parameter.kind == Kind::Switch { (parameter.name, at, 1) } else { (parameter.name, at / 4 * 4, 4) }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options = Options { hz: 250, recording: false, timing: false };

    #[test]
    fn an_object_knows_every_parameter_of_its_controller() {
        for object in Object::ALL {
            let params = controller(object.controller).unwrap();
            assert_eq!(Object::of(&params).unwrap().controller, object.controller);
            let names = |fields: &[Field]| fields.iter().map(|field| field.0).collect::<Vec<_>>();
            assert_eq!(
                names(&layout(&params)),
                names(object.fields),
                "{}: `make bpf-objects`",
                object.controller
            );
        }
    }

    #[test]
    fn a_changed_parameter_changes_its_bytes_alone() {
        let plain = Params::by_name("bbr1").unwrap();
        let mut changed = plain;
        changed.set("probe_gain", Decimal::from_ratio(3, 2)).unwrap();
        let object = Object::of(&plain).unwrap();
        let files = [plain, changed].map(|params| object.file("fp_bbr1", &params, OPTIONS));
        let differ: Vec<usize> = (0..files[0].len()).filter(|at| files[0][*at] != files[1][*at]).collect();
        let (_, at, _) = object.fields.iter().find(|field| field.0 == "probe_gain").unwrap();
        let image = only(object.bytes, super::OPTIONS) + super::OPTIONS.len() + NUMBERS;
        assert!(
            !differ.is_empty() && differ.iter().all(|place| (image + at..image + at + 4).contains(place))
        );
    }

    #[test]
    fn a_name_takes_the_place_of_the_marker() {
        let object = &Object::ALL[0];
        let file = object.file("bbr_1_1", &controller(object.controller).unwrap(), OPTIONS);
        assert!(file.windows(16).any(|window| window == b"bbr_1_1\0\0\0\0\0\0\0\0\0"));
        assert!(!file.windows(16).any(|window| window == NAME));
        assert_eq!(file.len(), object.bytes.len());
    }

    #[test]
    fn repaired_profile_loads_with_its_own_parameters() {
        let [draft, repaired] = ["bbr3", "bbr3:profile=repaired"].map(|text| controller(text).unwrap());
        let object = Object::of(&repaired).unwrap();
        assert_eq!(object.controller, "bbr3");
        assert_ne!(object.file("fp", &draft, OPTIONS), object.file("fp", &repaired, OPTIONS));
    }

    #[test]
    fn an_own_object_is_one_that_the_shim_is_in() {
        let object = Object::ALL[0].bytes;
        let made = Object::own(object, "mine", OPTIONS).unwrap();
        assert!(made.windows(16).any(|window| window == b"mine\0\0\0\0\0\0\0\0\0\0\0\0"));
        let (twice, end) = ([object, object].concat(), only(object, super::OPTIONS) + super::OPTIONS.len());
        for other in [&[][..], b"text", &object[1..], &object[..object.len() / 100], &twice, &object[..end]] {
            assert_eq!(Object::own(other, "mine", OPTIONS), None);
        }
    }

    #[test]
    fn objects_are_under_both_licences() {
        for object in Object::ALL {
            assert!(
                object.bytes.windows(13).any(|window| window == b"Dual MIT/GPL\0"),
                "{}",
                object.controller
            );
        }
    }
}
