//! A controller chosen by name, with parameters overridden by name: `bbr1:probe_gain=1.5,cwnd_gain=2`.
//!
//! Names and parameters are those of [`fullpipe_cc::CATALOGUE`]; Linux's own names are understood too.
//!
//! `mine.py:MyController` names a controller of the user's own, a class in a Python file, and `own:MyController` one that is
//! in no Python file. This crate only recognises them: whoever runs the scenario has to bring them.
//!
//! `noq:bbr3` names a controller inside a QUIC stack: see [`crate::stack`].

use std::fmt;
use std::str::FromStr;

use fullpipe_cc::{CATALOGUE, ControllerInfo, ParamError, ParameterInfo, Params, parameter};
use serde::{Deserialize, Serialize};

use crate::decimal::Decimal;
use crate::error::{ScenarioError, one_of};
use crate::key::shortened;
use crate::stack;

/// A controller and its parameters. Serialises as the text that chooses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ControllerChoice {
    is: Is,
    text: String,
}

/// Whose controller it is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Is {
    /// One of ours, with its parameters.
    Ours(Params),
    /// One inside a QUIC stack: the stack, and its name there.
    Stack { stack: String, name: String },
    /// The user's own.
    Own,
    /// None that anybody knows: the flow is a program.
    Program,
    /// None: the flow is media.
    Media,
}

impl ControllerChoice {
    /// Reads `name` or `name:parameter=value,...`. Errors have the field `controller`.
    ///
    /// # Errors
    /// When there is no such controller or parameter, or a value is not one that the parameter takes.
    pub fn parse(text: &str) -> Result<ControllerChoice, ScenarioError> {
        Self::parse_field("controller", text)
    }

    /// The same; errors name `field`.
    pub(crate) fn parse_field(field: &str, text: &str) -> Result<ControllerChoice, ScenarioError> {
        let (name, overrides) = match text.split_once(':') {
            None => (text, None),
            Some((name, overrides)) => (name, Some(overrides)),
        };
        if name.trim() == IN_NO_FILE || name.trim().ends_with(FILE_ENDING) {
            return own(field, text);
        }
        if let Some((stack, name)) = stack::read(field, text)? {
            let text = format!("{stack}:{name}");
            return Ok(ControllerChoice { is: Is::Stack { stack, name }, text });
        }
        let name = name.trim().to_ascii_lowercase();
        let mut params = Params::by_name(&name).ok_or_else(|| unknown_controller(field, &name))?;
        let mut canonical = params.name().to_string();
        let mut seen: Vec<&str> = Vec::new();
        let assignments = overrides.into_iter().flat_map(|overrides| overrides.split(','));
        let mut assignments: Vec<(&str, &str)> = assignments
            .map(|assignment| split_assignment(field, text, assignment))
            .collect::<Result<_, _>>()?;
        // A profile first: it decides which parameters there are.
        assignments.sort_by_key(|(parameter, _)| !is_choice(params.info(), parameter));
        for (parameter, value) in assignments {
            let (name, number) = set(field, &mut params, parameter, value)?;
            if seen.contains(&name) {
                return Err(ScenarioError::new(field, text, format!("sets {name} twice"))
                    .expected("each parameter once")
                    .fix("remove one of the two"));
            }
            let separator = if seen.is_empty() { ':' } else { ',' };
            canonical.push_str(&format!("{separator}{name}={number}"));
            seen.push(name);
        }
        Ok(ControllerChoice { is: Is::Ours(params), text: canonical })
    }

    /// What stands here for a flow that is a program, whose controller nobody knows.
    pub(crate) fn program() -> ControllerChoice {
        ControllerChoice { is: Is::Program, text: PROGRAM.to_owned() }
    }

    /// Whether the flow is a program.
    pub fn is_program(&self) -> bool {
        matches!(self.is, Is::Program)
    }

    /// What stands here for a flow of media, which has no controller.
    pub(crate) fn media() -> ControllerChoice {
        ControllerChoice { is: Is::Media, text: MEDIA.to_owned() }
    }

    /// Whether the flow is media.
    pub fn is_media(&self) -> bool {
        matches!(self.is, Is::Media)
    }

    /// Whether it is the user's own, so that whoever runs the scenario has to bring it.
    pub fn is_own(&self) -> bool {
        matches!(self.is, Is::Own)
    }

    /// What the controller runs with; `None` for a user's own, for one inside a QUIC stack, for a program and for media.
    pub fn params(&self) -> Option<&Params> {
        match &self.is {
            Is::Ours(params) => Some(params),
            Is::Stack { .. } | Is::Own | Is::Program | Is::Media => None,
        }
    }

    /// The QUIC stack that it is inside, and its name there: `("noq", "bbr3")` of `noq:bbr3`. `None` for all others.
    pub fn stack(&self) -> Option<(&str, &str)> {
        match &self.is {
            Is::Stack { stack, name } => Some((stack, name)),
            Is::Ours(_) | Is::Own | Is::Program | Is::Media => None,
        }
    }

    /// The text that chooses it, in its canonical form: lower case, our name, no spaces.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What Linux calls this very algorithm; `None` if Linux has none, or has it with other parameters.
    pub fn linux_name(&self) -> Option<&'static str> {
        let params = *self.params()?;
        let unchanged = Params::by_name(params.name()) == Some(params);
        params.info().linux_name.filter(|_| unchanged)
    }
}

/// The text of [`ControllerChoice::program`]. A scenario cannot say it: it says the program.
const PROGRAM: &str = "program";
/// The text of [`ControllerChoice::media`]. A scenario says the media instead.
const MEDIA: &str = "media";
/// Begins the text of a controller of the user's own that is in no Python file: one of a notebook, or in Rust.
const IN_NO_FILE: &str = "own";
/// Ends the file of one that is in a file.
const FILE_ENDING: &str = ".py";

/// Reads `mine.py:MyController` or `mine.py:MyController:gain=2`. The parameters are the class's business.
fn own(field: &str, text: &str) -> Result<ControllerChoice, ScenarioError> {
    let parts: Vec<&str> = text.splitn(3, ':').map(str::trim).collect();
    let is_name = |name: &str| {
        name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
            && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    if !parts.get(1).is_some_and(|class| is_name(class)) || parts.get(2).is_some_and(|rest| rest.is_empty()) {
        return Err(ScenarioError::new(field, text, "names no class")
            .expected("FILE.py:CLASS or FILE.py:CLASS:parameter=value,parameter=value")
            .fix("write for example \"mine.py:MyController\""));
    }
    Ok(ControllerChoice { is: Is::Own, text: parts.join(":") })
}

impl fmt::Display for ControllerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for ControllerChoice {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<ControllerChoice, ScenarioError> {
        ControllerChoice::parse(text)
    }
}

impl TryFrom<String> for ControllerChoice {
    type Error = ScenarioError;

    fn try_from(text: String) -> Result<ControllerChoice, ScenarioError> {
        match text.as_str() {
            PROGRAM => Ok(ControllerChoice::program()),
            MEDIA => Ok(ControllerChoice::media()),
            _ => ControllerChoice::parse(&text),
        }
    }
}

impl From<ControllerChoice> for String {
    fn from(choice: ControllerChoice) -> String {
        choice.text
    }
}

/// The names of all controllers, in the order in which they should be listed.
pub fn controller_names() -> Vec<&'static str> {
    CATALOGUE.iter().map(|info| info.name).collect()
}

fn unknown_controller(field: &str, name: &str) -> ScenarioError {
    let ours = controller_names();
    let linux = CATALOGUE.iter().filter_map(|info: &ControllerInfo| info.linux_name);
    let known: Vec<&str> = ours.iter().copied().chain(linux).collect();
    let relatives: Vec<&str> =
        ours.iter().copied().filter(|known| family(name) != name && family(known) == family(name)).collect();
    if !relatives.is_empty() {
        // Another version is not a typing error.
        let error = ScenarioError::new(field, name, "is not available").expected(one_of(&ours));
        return error.fix(format!("use {}", relatives.join(", ")));
    }
    let error = ScenarioError::new(field, name, "is not a controller").expected(one_of(&ours));
    error.nearest(name, &known, "choose one of these (`fullpipe controllers` describes them)")
}

/// The name of a controller without its version: `bbr` of `bbr1`, `bbr3` and `bbr-v2`.
fn family(name: &str) -> &str {
    let unnumbered = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    if unnumbered == name { name } else { unnumbered.trim_end_matches('v').trim_end_matches(['-', '_', ' ']) }
}

fn split_assignment<'a>(
    field: &str,
    text: &str,
    assignment: &'a str,
) -> Result<(&'a str, &'a str), ScenarioError> {
    let (parameter, value) = assignment.split_once('=').ok_or_else(|| {
        ScenarioError::new(
            field,
            text,
            format!("sets a parameter without a value ({:?})", shortened(assignment)),
        )
        .expected("name:parameter=value,parameter=value")
        .fix("write for example \"bbr1:probe_gain=1.5\"")
    })?;
    Ok((parameter.trim(), value.trim()))
}

fn is_choice(info: &ControllerInfo, parameter: &str) -> bool {
    let known = info.parameters.iter().find(|known| known.name.eq_ignore_ascii_case(parameter));
    known.is_some_and(|known| matches!(known.kind, parameter::Kind::Choice(_)))
}

/// Sets one parameter and returns its name and its value as text.
fn set(
    field: &str,
    params: &mut Params,
    parameter: &str,
    value: &str,
) -> Result<(&'static str, String), ScenarioError> {
    let info = params.info();
    let lower = parameter.to_ascii_lowercase();
    let Some(known) = info.parameters.iter().find(|known| known.name == lower) else {
        return Err(unknown_parameter(field, info, parameter));
    };
    let written = format!("{parameter}={value}");
    if let parameter::Kind::Choice(names) = known.kind {
        let lower = value.to_ascii_lowercase();
        params.choose(known.name, &lower).map_err(|_| {
            let error =
                ScenarioError::new(field, &written, "is not one of its choices").expected(one_of(names));
            error.nearest(&lower, names, "choose one of these")
        })?;
        return Ok((known.name, lower));
    }
    let wrong = |problem: String| {
        let error = ScenarioError::new(field, &written, problem).expected(range(known));
        error.fix(format!("write for example {}={}", known.name, known.default))
    };
    let (number, unit) = Decimal::split(value).map_err(&wrong)?;
    if !unit.is_empty() {
        return Err(wrong(format!("has a unit or a stray character ({:?})", shortened(unit))));
    }
    let millionths = number.times_exactly(1_000_000).and_then(|millionths| i64::try_from(millionths).ok());
    let millionths =
        millionths.ok_or_else(|| wrong("is too large or has more than six decimals".to_string()))?;
    params.set(known.name, parameter::Decimal::from_millionths(millionths)).map_err(|error| match error {
        ParamError::NotWhole { .. } => wrong("is not whole".to_string()),
        ParamError::OutOfRange { .. } => wrong("is out of range".to_string()),
        ParamError::Unknown { .. } => unknown_parameter(field, info, parameter),
        ParamError::OtherProfile { needed, chosen, .. } => {
            let problem = format!("is a parameter of profile={needed} only, and profile={chosen} is chosen");
            let fix = format!("write {}:profile={needed},{}=..., or remove it", info.name, known.name);
            ScenarioError::new(field, &written, problem).expected(of_profile(info, chosen)).fix(fix)
        }
        ParamError::NotAChoice { .. } => wrong("is not one of its choices".to_string()),
    })?;
    Ok((known.name, number.to_string()))
}

/// The parameters that a profile has.
fn of_profile(info: &ControllerInfo, profile: &str) -> String {
    let has = |known: &&ParameterInfo| known.is_in(profile);
    let names: Vec<&str> = info.parameters.iter().filter(has).map(|known| known.name).collect();
    one_of(&names)
}

fn unknown_parameter(field: &str, info: &ControllerInfo, parameter: &str) -> ScenarioError {
    let names: Vec<&str> = info.parameters.iter().map(|known| known.name).collect();
    let error = ScenarioError::new(field, parameter, format!("is not a parameter of {}", info.name));
    // Nobody reads a longer list in a sentence.
    if names.len() > 25 {
        let fix = format!("`fullpipe controllers {}` describes them", info.name);
        return error
            .expected(format!("one of its {} parameters", names.len()))
            .nearest(parameter, &names, &fix);
    }
    error.expected(one_of(&names)).nearest(parameter, &names, "choose one of these, or remove it")
}

fn range(parameter: &ParameterInfo) -> String {
    let whole = match parameter.kind {
        parameter::Kind::Whole => "a whole number ",
        parameter::Kind::Switch => "0 or 1, ",
        parameter::Kind::Fraction { .. } => "a number ",
        parameter::Kind::Choice(names) => return one_of(names),
    };
    let unit = if parameter.unit.is_empty() { String::new() } else { format!(" {}", parameter.unit) };
    format!("{whole}from {} to {}{unit}", parameter.min, parameter.max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(text: &str) -> String {
        ControllerChoice::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn bare_name_means_linux_defaults() {
        let choice = ControllerChoice::parse("bbr1").unwrap();
        assert_eq!((choice.text(), choice.linux_name()), ("bbr1", Some("bbr")));
        assert_eq!(choice.params().copied(), Params::by_name("bbr1"));
    }

    #[test]
    fn user_class_is_recognised_unchanged() {
        for text in ["mine.py:MyController", "../Lib/my.py:Mine:gain=1.5", "own:Mine"] {
            let choice = ControllerChoice::parse(text).unwrap();
            assert_eq!((choice.text(), choice.params(), choice.linux_name()), (text, None, None));
        }
        assert_eq!(ControllerChoice::parse(" a.py : B : c=1 ").unwrap().text(), "a.py:B:c=1");
        for text in ["mine.py", "mine.py:", "mine.py:2", "mine.py:Mine:", "own", "own:a b"] {
            assert!(message(text).contains("names no class; expected FILE.py:CLASS"), "{}", message(text));
        }
    }

    #[test]
    fn linux_names_and_case_are_equivalent() {
        for text in ["bbr", "BBR1", " bbr1 "] {
            assert_eq!(ControllerChoice::parse(text), ControllerChoice::parse("bbr1"), "{text}");
        }
    }

    #[test]
    fn overridden_parameters_are_not_linux() {
        let choice = ControllerChoice::parse("bbr1:probe_gain=1.50, cwnd_gain = 2.25").unwrap();
        assert_eq!(choice.text(), "bbr1:probe_gain=1.5,cwnd_gain=2.25");
        assert_eq!(choice.linux_name(), None);
        assert_eq!(choice.params().unwrap().get("probe_gain").unwrap().to_string(), "1.5");
        let json = serde_json::to_string(&choice).unwrap();
        assert_eq!(serde_json::from_str::<ControllerChoice>(&json).unwrap(), choice);
    }

    #[test]
    fn profile_is_chosen_in_any_position() {
        let linux = ControllerChoice::parse("bbr3:fast_path=0, Profile = LINUX").unwrap();
        assert_eq!(linux.text(), "bbr3:profile=linux,fast_path=0");
        assert_eq!(linux.params().unwrap().profile(), Some((1, "linux")));
        assert_eq!(ControllerChoice::parse(linux.text()), Ok(linux));
        let draft = ControllerChoice::parse("bbr3:profile=draft").unwrap();
        assert_eq!(draft.params(), ControllerChoice::parse("bbr3").unwrap().params());
    }

    #[test]
    fn wrong_profile_or_parameter_is_refused() {
        let error = message("bbr3:profile=linx");
        assert!(
            error.starts_with(
                "controller: \"profile=linx\" is not one of its choices; expected one of draft, linux, repaired"
            ),
            "{error}"
        );
        assert!(error.ends_with("did you mean linux?"), "{error}");
        assert!(message("bbr3:profile=1").contains("is not one of its choices"));
        assert!(message("bbr3:profile=linux,profile=draft").contains("sets profile twice"));
        let error = message("bbr3:fast_path=0");
        assert!(
            error.contains("is a parameter of profile=linux only, and profile=draft is chosen"),
            "{error}"
        );
        assert!(error.ends_with("write bbr3:profile=linux,fast_path=..., or remove it"), "{error}");
        let error = message("bbr3:beta=0.5,profile=linux");
        assert!(
            error.contains("is a parameter of profile=draft only, and profile=linux is chosen"),
            "{error}"
        );
    }

    #[test]
    fn unknown_controller_names_nearest_and_list() {
        let error = message("brr1");
        assert!(
            error.starts_with(
                "controller: \"brr1\" is not a controller; expected one of reno, cubic, newreno"
            ),
            "{error}"
        );
        assert!(error.ends_with("did you mean bbr1?"), "{error}");
        assert!(message("elephant").contains("fullpipe controllers"));
        assert!(message("").contains("is not a controller"));
    }

    #[test]
    fn an_unknown_version_lists_its_family() {
        for name in ["bbr2", "bbr4", "BBRv3", "bbr-v2", "bbr10"] {
            let error = message(name);
            assert!(error.contains("is not available; expected one of reno"), "{error}");
            assert!(error.ends_with("; use bbr1, bbr3"), "{error}");
        }
        assert!(message("cubic2").ends_with("; use cubic, cubic9438"));
        assert!(message("1").contains("is not a controller"));
    }

    #[test]
    fn unknown_parameter_names_nearest_and_list() {
        let error = message("bbr1:prob_gain=1.5");
        assert!(error.contains("\"prob_gain\" is not a parameter of bbr1; expected one of "), "{error}");
        assert!(error.ends_with("did you mean probe_gain?"), "{error}");
    }

    #[test]
    fn long_parameter_list_refers_to_command() {
        let error = message("bbr3:elephant=1");
        assert!(error.contains("\"elephant\" is not a parameter of bbr3; expected one of its "), "{error}");
        assert!(error.ends_with(" parameters; `fullpipe controllers bbr3` describes them"), "{error}");
        assert!(message("bbr3:bta=1").ends_with("did you mean beta?"));
    }

    #[test]
    fn wrong_value_names_expected_range() {
        for (text, problem) in [
            ("bbr1:probe_gain=9", "is out of range; expected a number from 1 to "),
            ("bbr1:probe_gain=-1", "is negative"),
            ("bbr1:probe_gain=nan", "is not a finite number"),
            ("bbr1:probe_gain=", "is empty"),
            ("bbr1:probe_gain=fast", "does not begin with a number"),
            ("bbr1:probe_gain=1.5x", "stray character"),
            ("bbr1:probe_gain=1.12345678", "more than six decimals"),
            ("bbr1:probe_gain=1.5,probe_gain=2", "sets probe_gain twice"),
            ("bbr1:probe_gain", "without a value"),
            ("bbr1:", "without a value"),
        ] {
            assert!(message(text).contains(problem), "{}", message(text));
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in any::<String>(), tail in "[a-z_=,.0-9 -]{0,40}") {
            let _ = ControllerChoice::parse(&text);
            let _ = ControllerChoice::parse(&format!("bbr1:{tail}"));
        }
    }
}
