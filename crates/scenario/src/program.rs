//! A flow that is a program: two command lines, one on either host, instead of a controller of ours.
//!
//! Such a flow is measured from outside, by its packets. Only the kernel world runs commands, and only with the consent of
//! whoever runs the scenario: a scenario may come from a stranger.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ScenarioError;

/// In a command line: the address of the host that the server runs on.
const SERVER: &str = "{server}";
/// In a command line: a port that is the flow's own.
const PORT: &str = "{port}";
/// The longest command line, bytes.
const MAX_BYTES: usize = 4096;
/// What the fix of an error shows.
const EXAMPLE: &str = "client = \"iperf3 -c {server} -t 20\" and server = \"iperf3 -s -1\"";

/// The two command lines of a flow, for `/bin/sh`. `{server}` in them is the server's address, `{port}` a port of the flow's
/// own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Runs from the flow's start. The flow ends when this command ends.
    pub client: String,
    /// Runs before the client and until the end.
    pub server: String,
    /// Which of them sends the data: it runs at the near end of the path, where the forward direction begins.
    pub sender: Side,
}

/// One of the two commands of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The one that connects.
    #[default]
    Client,
    /// The one that waits for it.
    Server,
}

impl Side {
    /// As a scenario says it.
    pub fn name(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Server => "server",
        }
    }

    /// The other one.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

impl Program {
    /// Reads the keys of a document; `None` if none of them is given. Errors name keys inside `field`.
    pub(crate) fn read(
        field: &str,
        client: Option<&String>,
        server: Option<&String>,
        sender: Option<Side>,
    ) -> Result<Option<Program>, ScenarioError> {
        let at = |key: &str| format!("{field}.{key}");
        let missing = |key: &str, expected: &str| {
            ScenarioError::missing(&at(key)).expected(expected).fix(format!("write {EXAMPLE}"))
        };
        match (client, server) {
            (None, None) if sender.is_none() => Ok(None),
            (Some(client), Some(server)) => {
                let program = Program {
                    client: client.clone(),
                    server: server.clone(),
                    sender: sender.unwrap_or_default(),
                };
                program.check().map_err(|error| error.inside(field))?;
                Ok(Some(program))
            }
            (Some(_), None) => Err(missing("server", "the command that the client connects to")),
            (None, _) => Err(missing("client", "the command that connects to the server")),
        }
    }

    /// Checks that both are command lines.
    ///
    /// # Errors
    /// The first that is none, by its field.
    pub(crate) fn check(&self) -> Result<(), ScenarioError> {
        for (field, text) in [("client", &self.client), ("server", &self.server)] {
            let problem = if text.trim().is_empty() {
                "is empty".to_owned()
            } else if text.len() > MAX_BYTES {
                format!("is longer than {MAX_BYTES} bytes")
            } else if text.chars().any(|one| one.is_control() && one != '\t' && one != '\n') {
                "contains control characters".to_owned()
            } else {
                continue;
            };
            let expected = "a command line for /bin/sh";
            return Err(ScenarioError::new(field, text, problem)
                .expected(expected)
                .fix(format!("write for example {EXAMPLE}")));
        }
        Ok(())
    }

    /// A short name for people: the first word of the client's command line, without its folder.
    pub fn name(&self) -> &str {
        // Variables may stand before the command.
        let words = || self.client.split_whitespace();
        let word = words().find(|word| !word.contains('=')).or_else(|| words().next()).unwrap_or("program");
        let word = word.rsplit('/').find(|part| !part.is_empty()).unwrap_or(word);
        match word.char_indices().nth(40) {
            Some((end, _)) => &word[..end],
            None => word,
        }
    }

    /// The command line of a side, with address and port in it.
    pub fn command(&self, side: Side, server: IpAddr, port: u16) -> String {
        let line = match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        };
        line.replace(SERVER, &server.to_string()).replace(PORT, &port.to_string())
    }

    /// Whether both command lines use the flow's own port, so that several can run beside each other.
    pub fn has_own_port(&self) -> bool {
        self.client.contains(PORT) && self.server.contains(PORT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, Spec, resolve, resolve_all};

    const PATH: &str = "path = { rate = \"10 Mbit/s\", rtt = \"20 ms\" }\n";

    fn program(client: &str, server: &str) -> Program {
        Program { client: client.to_owned(), server: server.to_owned(), sender: Side::Client }
    }

    fn refused(flow: &str) -> String {
        resolve(&format!("{PATH}[[flows]]\n{flow}"), Format::Toml, None).unwrap_err().to_string()
    }

    #[test]
    fn a_flow_may_be_a_program() {
        let flow = "[[flows]]\nclient = \"curl http://{server}:{port}/\"\nserver = \"web -p {port}\"\nsender = \"server\"";
        let spec = resolve(&format!("{PATH}{flow}"), Format::Toml, None).unwrap();
        let written = spec.flows[0].program.as_ref().unwrap();
        assert_eq!((written.sender, written.has_own_port()), (Side::Server, true));
        assert_eq!(spec.flows[0].label, "curl");
        let address = IpAddr::from([100, 64, 0, 2]);
        assert_eq!(written.command(Side::Client, address, 7), "curl http://100.64.0.2:7/");
        assert_eq!(written.command(Side::Server, address, 7), "web -p 7");
        // Through JSON and back, which checks it.
        assert_eq!(Spec::from_json(&spec.to_json()).unwrap(), spec);
        assert_eq!(spec.program_flow(), Some(0));
    }

    #[test]
    fn other_specs_do_not_mention_programs() {
        let spec = resolve(&format!("{PATH}[[flows]]\ncontroller = \"reno\""), Format::Toml, None).unwrap();
        assert!(!spec.to_json().contains("program"), "{}", spec.to_json());
        assert_eq!(spec.program_flow(), None);
        assert!(spec.check_no_program("the simulator").is_ok());
    }

    #[test]
    fn program_in_simulator_names_field() {
        let flow = "[[flows]]\ncontroller = \"reno\"\n[[flows]]\nclient = \"true\"\nserver = \"true\"";
        let spec = resolve(&format!("{PATH}{flow}"), Format::Toml, None).unwrap();
        let error = spec.check_no_program("the simulator").unwrap_err().to_string();
        assert_eq!(
            error,
            "flows[1].client: \"true\" is a program, which the simulator does not run; expected a controller; run it in the \
             kernel world (--world kernel)"
        );
    }

    #[test]
    fn programs_are_compared_as_controllers_are() {
        let text = "compare = [\"cubic\", { client = \"a {server}\", server = \"b\" }, { client = \"a {server}\", server = \"c\", \
                    label = \"other\", sender = \"server\" }]\n";
        let all = resolve_all(&format!("{text}{PATH}"), Format::Toml, None).unwrap();
        let labels: Vec<&str> = all.iter().map(|(label, _)| label.as_str()).collect();
        assert_eq!(labels, ["cubic", "a", "other"]);
        assert_eq!(all[2].1.flows[0].program.as_ref().unwrap().server, "c");
        assert_eq!(all[2].1.flows[0].label, "other");
        assert!(all[0].1.flows[0].program.is_none());
    }

    #[test]
    fn equal_names_under_compare_are_refused() {
        let text = "compare = [{ client = \"a 1\", server = \"b\" }, { client = \"a 2\", server = \"b\" }]\n";
        let error = resolve_all(&format!("{text}{PATH}"), Format::Toml, None).unwrap_err().to_string();
        assert!(error.starts_with("compare[1]: \"a\" is listed twice"), "{error}");
        assert!(error.contains("label"), "{error}");
        let text = "compare = [{ client = \"a 1\" }]\n";
        let error = resolve_all(&format!("{text}{PATH}"), Format::Toml, None).unwrap_err().to_string();
        assert!(error.starts_with("compare[0].server: nothing is given"), "{error}");
        let text = "compare = [7]\n";
        let error = resolve_all(&format!("{text}{PATH}"), Format::Toml, None).unwrap_err().to_string();
        assert!(error.contains("compare[0]") && error.contains("a controller or a program"), "{error}");
        let text = "compare = [{ client = \"a\", servre = \"b\" }]\n";
        let error = resolve_all(&format!("{text}{PATH}"), Format::Toml, None).unwrap_err().to_string();
        assert!(error.contains("compare[0].servre") && error.contains("did you mean server?"), "{error}");
    }

    #[test]
    fn mistakes_name_their_key() {
        for (flow, start) in [
            ("client = \"a\"", "flows[0].server: nothing is given"),
            ("server = \"a\"", "flows[0].client: nothing is given"),
            ("sender = \"server\"", "flows[0].client: nothing is given"),
            ("client = \" \"\nserver = \"a\"", "flows[0].client: \" \" is empty"),
            ("client = \"a\"\nserver = \"a\\u0000\"", "flows[0].server: \"a\\0\" contains control"),
            ("client = \"a\"\nserver = \"a\"\nsender = \"both\"", "flows[0].sender: \"both\" is not known"),
            (
                "client = \"a\"\nserver = \"a\"\ncontroller = \"reno\"",
                "flows[0].controller: \"reno\" is given together",
            ),
            (
                "client = \"a\"\nserver = \"a\"\nsize = \"1 MB\"",
                "flows[0].size: \"size\" is given together with client",
            ),
            (
                "client = \"a\"\nserver = \"a\"\nmax_cwnd = \"1 bdp\"",
                "flows[0].max_cwnd: \"max_cwnd\" is given together",
            ),
            ("controller = \"program\"", "flows[0].controller: \"program\" is not a"),
        ] {
            let error = refused(flow);
            assert!(error.starts_with(start), "{flow}: {error}");
        }
        let long = format!("client = \"{}\"\nserver = \"a\"", "x".repeat(5000));
        assert!(refused(&long).contains("is longer than 4096 bytes"));
    }

    #[test]
    fn program_controller_mismatch_is_refused() {
        let flow = "[[flows]]\nclient = \"true\"\nserver = \"true\"";
        let json = resolve(&format!("{PATH}{flow}"), Format::Toml, None).unwrap().to_json();
        let other = json.replace("\"controller\":\"program\"", "\"controller\":\"reno\"");
        assert_ne!(other, json);
        assert!(Spec::from_json(&other).unwrap_err().to_string().starts_with("flows[0].controller"));
        let bare = "[[flows]]\ncontroller = \"reno\"";
        let json = resolve(&format!("{PATH}{bare}"), Format::Toml, None).unwrap().to_json();
        let other = json.replace("\"controller\":\"reno\"", "\"controller\":\"program\"");
        assert!(Spec::from_json(&other).unwrap_err().to_string().starts_with("flows[0].controller"));
    }

    #[test]
    fn program_name_omits_directory_and_variables() {
        let name = |client: &str| program(client, "s").name().to_owned();
        assert_eq!(name("iperf3 -c {server}"), "iperf3");
        assert_eq!(name("/usr/bin/gtlsclient -q {server} 4433"), "gtlsclient");
        assert_eq!(name("A=b  B=c ./run it"), "run");
        assert_eq!(name("A=b"), "A=b");
        assert_eq!(name(&"é".repeat(99)).chars().count(), 40);
    }
}
