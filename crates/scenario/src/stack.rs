//! Controllers of QUIC stacks, as those ship them: `noq:bbr3` is the BBRv3 of the stack noq.
//!
//! This crate knows their names only, so that a scenario with one reads the same on every machine. The stacks themselves are in
//! the world that runs them.

use fullpipe_cc::Params;

use crate::error::{ScenarioError, nearest, one_of, shortened};

/// A stack whose own controllers a scenario can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackInfo {
    /// Before the colon.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its controllers.
    pub controllers: &'static [StackController],
}

/// A controller that a stack ships.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackController {
    /// Behind the colon.
    pub name: &'static str,
    /// Both, as a scenario names it.
    pub text: &'static str,
    /// What it is, in a sentence.
    pub summary: &'static str,
}

const fn controller(name: &'static str, text: &'static str, summary: &'static str) -> StackController {
    StackController { name, text, summary }
}

/// All stacks.
pub const STACKS: &[StackInfo] = &[
    StackInfo {
        name: "noq",
        summary: "noq, a QUIC stack in Rust with multipath, derived from Quinn",
        source: "crate noq-proto",
        controllers: &[
            controller("bbr3", "noq:bbr3", "noq's own BBRv3"),
            controller("cubic", "noq:cubic", "noq's own CUBIC"),
            controller("newreno", "noq:newreno", "noq's own NewReno"),
        ],
    },
    StackInfo {
        name: "quinn",
        summary: "Quinn, a QUIC stack in Rust",
        source: "crate quinn-proto",
        controllers: &[
            controller("bbr", "quinn:bbr", "Quinn's own BBR, which it calls experimental"),
            controller("cubic", "quinn:cubic", "Quinn's own CUBIC"),
            controller("newreno", "quinn:newreno", "Quinn's own NewReno"),
        ],
    },
];

/// A controller of a stack: the stack's name, and what the stack calls it.
pub(crate) type Chosen = (&'static StackInfo, &'static StackController);

/// Reads `stack:controller`. `None` if the text before the colon is no stack, and nothing suggests that it was meant to be one.
pub(crate) fn read(field: &str, text: &str) -> Result<Option<Chosen>, ScenarioError> {
    let mut parts = text.splitn(3, ':').map(|part| part.trim().to_ascii_lowercase());
    let name = parts.next().unwrap_or_default();
    let controller = parts.next();
    let Some(stack) = STACKS.iter().find(|stack| stack.name == name) else {
        return match controller {
            // What is behind the name of one of our controllers is a parameter.
            Some(controller)
                if Params::by_name(&name).is_none() && of_stacks(&controller).next().is_some() =>
            {
                Err(unknown_stack(field, text, &name, &controller))
            }
            _ => Ok(None),
        };
    };
    let texts: Vec<&str> = stack.controllers.iter().map(|one| one.text).collect();
    let Some(controller) = controller.filter(|controller| !controller.is_empty()) else {
        return Err(ScenarioError::new(field, text, "names a QUIC stack without a controller")
            .expected(one_of(&texts))
            .fix(format!("write for example {:?}", texts[0])));
    };
    let Some(known) = stack.controllers.iter().find(|one| one.name == controller) else {
        let names: Vec<&str> = stack.controllers.iter().map(|one| one.name).collect();
        let error = ScenarioError::new(field, text, format!("is not a controller of the QUIC stack {name}"))
            .expected(one_of(&texts));
        return Err(match nearest(&controller, &names) {
            Some(close) => error.fix(format!("did you mean {name}:{close}?")),
            None => error.fix("choose one of these (`fullpipe controllers` describes them)"),
        });
    };
    if parts.next().is_some() {
        return Err(ScenarioError::new(field, text, "sets parameters")
            .expected(format!("{} alone: a stack's own controller runs as the stack ships it", known.text))
            .fix(format!("write {:?}, or set parameters of a controller of Fullpipe's", known.text)));
    }
    Ok(Some((stack, known)))
}

/// The controllers of this name, of all stacks.
fn of_stacks(name: &str) -> impl Iterator<Item = &'static StackController> {
    STACKS.iter().flat_map(|stack| stack.controllers).filter(move |one| one.name == name)
}

fn unknown_stack(field: &str, text: &str, name: &str, controller: &str) -> ScenarioError {
    let names: Vec<&str> = STACKS.iter().map(|stack| stack.name).collect();
    let error = ScenarioError::new(field, text, format!("names no QUIC stack ({:?})", shortened(name)))
        .expected(one_of(&names));
    match (nearest(name, &names), of_stacks(controller).next()) {
        (Some(close), _) => error.fix(format!("did you mean {close}:{controller}?")),
        (None, Some(one)) => error.fix(format!("write for example {:?}", one.text)),
        (None, None) => error.fix("choose one of these"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ControllerChoice;

    fn message(text: &str) -> String {
        ControllerChoice::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn every_controller_of_a_stack_is_read_and_written_again() {
        let every = STACKS.iter().flat_map(|stack| stack.controllers.iter().map(move |one| (stack, one)));
        let mut texts = Vec::new();
        for (stack, one) in every {
            assert_eq!(one.text, format!("{}:{}", stack.name, one.name));
            let choice = ControllerChoice::parse(one.text).unwrap();
            assert_eq!((choice.text(), choice.stack()), (one.text, Some((stack.name, one.name))));
            assert_eq!((choice.params(), choice.linux_name()), (None, None));
            let json = serde_json::to_string(&choice).unwrap();
            assert_eq!(json, format!("{:?}", one.text));
            assert_eq!(serde_json::from_str::<ControllerChoice>(&json).unwrap(), choice);
            texts.push(one.text);
        }
        assert_eq!(texts.join(" "), "noq:bbr3 noq:cubic noq:newreno quinn:bbr quinn:cubic quinn:newreno");
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
    fn an_unknown_stack_or_controller_names_those_there_are() {
        assert_eq!(
            message("nok:bbr3"),
            "controller: \"nok:bbr3\" names no QUIC stack (\"nok\"); expected one of noq, quinn; did you mean noq:bbr3?"
        );
        assert!(
            message("msquic:cubic").ends_with("write for example \"noq:cubic\""),
            "{}",
            message("msquic:cubic")
        );
        assert_eq!(
            message("noq:bbr"),
            "controller: \"noq:bbr\" is not a controller of the QUIC stack noq; expected one of noq:bbr3, noq:cubic, \
             noq:newreno; did you mean noq:bbr3?"
        );
        assert!(
            message("quinn:copa").ends_with("choose one of these (`fullpipe controllers` describes them)")
        );
        for text in ["noq", "quinn:", "NOQ : "] {
            assert!(message(text).contains("names a QUIC stack without a controller"), "{}", message(text));
        }
        for text in ["noq:bbr3:", "noq:bbr3:probe_gain=2", "noq:bbr3:x:y"] {
            assert!(message(text).contains("sets parameters; expected noq:bbr3 alone"), "{}", message(text));
        }
        // What has a value is a parameter, and its controller's name is what is wrong.
        assert!(message("nok:bbr3=1").contains("is not a controller"), "{}", message("nok:bbr3=1"));
        assert!(
            message("bbr1:cubic").contains("sets a parameter without a value"),
            "{}",
            message("bbr1:cubic")
        );
        assert!(message("nobody").contains("is not a controller"));
    }
}
