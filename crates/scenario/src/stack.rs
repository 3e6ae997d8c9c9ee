//! Controllers inside stacks, by the stack and their name there: `noq:bbr3` is the BBRv3 that the stack noq ships.
//!
//! Which stacks there are, and which controllers each has, is known to the program that runs them: a developer can add
//! controllers to it, and give it adapters of other stacks. So a scenario with one reads the same on every machine. A name that
//! is close to one of the stacks that are always there counts as a slip.

use fullpipe_cc::Params;

use crate::error::{ScenarioError, nearest, one_of};
use crate::key::shortened;

/// The stacks that the program of the world `quic` always has.
pub const STACKS: [&str; 2] = ["noq", "quinn"];
/// The longest name of a controller in a stack, in characters.
pub const LONGEST_NAME: usize = 32;

/// What a name consists of.
const NAME: &str = "a name of at most 32 lower-case letters, digits, - and _";

/// Reads `stack:name`. `None` if the text is no such choice, and nothing suggests that it was meant to be one.
pub(crate) fn read(field: &str, text: &str) -> Result<Option<(String, String)>, ScenarioError> {
    let mut parts = text.splitn(3, ':').map(|part| part.trim().to_ascii_lowercase());
    let stack = parts.next().unwrap_or_default();
    let name = parts.next();
    let named = name.as_deref().is_some_and(is_name);
    if !STACKS.contains(&stack.as_str()) {
        // What is behind the name of one of our controllers is a parameter, and so is what has a value.
        let other = name.filter(|_| named && is_name(&stack) && Params::by_name(&stack).is_none());
        return match (other, nearest(&stack, &STACKS), parts.next()) {
            (Some(name), Some(_), _) => Err(unknown_stack(field, text, &stack, &name)),
            (Some(name), None, None) => Ok(Some((stack, name))),
            (Some(name), None, Some(_)) => Err(sets_parameters(field, text, &stack, &name)),
            (None, ..) => Ok(None),
        };
    }
    let known = stack;
    let example = format!("write for example \"{known}:cubic\"");
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        let error = ScenarioError::new(field, text, "names a QUIC stack without a controller");
        return Err(error.expected(format!("{known}:NAME")).fix(example));
    };
    if !is_name(&name) {
        let error = ScenarioError::new(field, text, "names no controller of a QUIC stack");
        return Err(error.expected(format!("{known}: and {NAME}")).fix(example));
    }
    if parts.next().is_some() {
        return Err(sets_parameters(field, text, &known, &name));
    }
    Ok(Some((known, name)))
}

fn sets_parameters(field: &str, text: &str, stack: &str, name: &str) -> ScenarioError {
    let alone = format!("{stack}:{name} alone: a controller inside a stack runs as it is there");
    let error = ScenarioError::new(field, text, "sets parameters").expected(alone);
    error.fix(format!("write \"{stack}:{name}\", or set parameters of a controller of Fullpipe's"))
}

fn is_name(text: &str) -> bool {
    let allowed =
        |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || b"-_".contains(&letter);
    (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(allowed)
}

fn unknown_stack(field: &str, text: &str, stack: &str, name: &str) -> ScenarioError {
    let problem = format!("names no QUIC stack ({:?})", shortened(stack));
    let error = ScenarioError::new(field, text, problem).expected(one_of(&STACKS));
    let close = nearest(stack, &STACKS).unwrap_or(STACKS[0]);
    error.fix(format!("did you mean {close}:{name}? (an adapter's stack needs a name that is less like it)"))
}

#[cfg(test)]
mod tests {
    use crate::ControllerChoice;

    fn message(text: &str) -> String {
        ControllerChoice::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn stack_and_name_round_trip() {
        let longest = "a".repeat(super::LONGEST_NAME);
        for (stack, name) in [("noq", "bbr3"), ("quinn", "newreno"), ("noq", "my_own-2"), ("quinn", &longest)]
        {
            let text = format!("{stack}:{name}");
            let choice = ControllerChoice::parse(&text).unwrap();
            assert_eq!((choice.text(), choice.stack()), (text.as_str(), Some((stack, name))));
            assert_eq!((choice.params(), choice.linux_name()), (None, None));
            let json = serde_json::to_string(&choice).unwrap();
            assert_eq!(json, format!("{text:?}"));
            assert_eq!(serde_json::from_str::<ControllerChoice>(&json).unwrap(), choice);
        }
    }

    #[test]
    fn an_adapter_may_bring_any_other_stack() {
        let choice = ControllerChoice::parse(" Quic-Go : Reno ").unwrap();
        assert_eq!((choice.text(), choice.stack()), ("quic-go:reno", Some(("quic-go", "reno"))));
        assert!(message("quiche:cubic:gain=2").contains("sets parameters; expected quiche:cubic alone"));
    }

    #[test]
    fn other_controllers_are_of_no_stack() {
        for text in ["bbr3", "bbr1:probe_gain=1.5", "own:noq", "noq.py:Mine"] {
            assert_eq!(ControllerChoice::parse(text).unwrap().stack(), None, "{text}");
        }
    }

    #[test]
    fn capitals_and_spaces_do_not_matter() {
        assert_eq!(ControllerChoice::parse(" NoQ : BBR3 ").unwrap().text(), "noq:bbr3");
    }

    #[test]
    fn unknown_stack_lists_known_stacks() {
        assert_eq!(
            message("nok:bbr3"),
            "controller: \"nok:bbr3\" names no QUIC stack (\"nok\"); expected one of noq, quinn; did you mean noq:bbr3? (an adapter's stack \
             needs a name that is less like it)"
        );
        // What has a value is a parameter, and its controller's name is what is wrong.
        assert!(message("nok:gain=1").contains("\"nok\" is not a controller"), "{}", message("nok:gain=1"));
        assert!(
            message("bbr1:cubic").contains("sets a parameter without a value"),
            "{}",
            message("bbr1:cubic")
        );
    }

    #[test]
    fn invalid_controller_name_is_refused() {
        for text in ["noq", "quinn:", "NOQ : "] {
            assert!(message(text).contains("names a QUIC stack without a controller"), "{}", message(text));
        }
        let long = format!("noq:{}", "a".repeat(super::LONGEST_NAME + 1));
        for text in ["noq:a b", "quinn:gain=2", "noq:ä", "noq:../x", "noq:a\0", &long] {
            assert!(message(text).contains("names no controller of a QUIC stack"), "{}", message(text));
        }
        for text in ["noq:bbr3:", "noq:bbr3:probe_gain=2", "noq:bbr3:x:y"] {
            assert!(message(text).contains("sets parameters; expected noq:bbr3 alone"), "{}", message(text));
        }
    }
}
