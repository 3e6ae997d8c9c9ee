//! Why a run could not be done, in a sentence.

use fullpipe_path::ConfigError;
use fullpipe_scenario::ScenarioError;
use fullpipe_scenario::change_text::Mistake;

/// Why a run could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuicError {
    /// It was cancelled.
    Cancelled,
    /// The path cannot be built, or an element cannot change so.
    Path(ConfigError),
    /// This world cannot run such a scenario, or not change it so: a sentence with what can be done.
    Refused(String),
    /// An amount cannot be read, or the scenario is none.
    Scenario(Box<ScenarioError>),
    /// What was asked for does not fit the scenario.
    Mistake(Box<Mistake>),
    /// A connection ended although neither end wanted it to.
    Connection {
        /// The flow's label.
        flow: String,
        /// The stack's reason.
        reason: String,
    },
    /// The program was built so that the stacks' randomness does not come from the run's seed.
    Build,
    /// The run's thread ended: a defect of this world, of a stack or of a controller. The text is the panic's message, behind
    /// its place where that is known.
    Panicked(String),
}

impl std::fmt::Display for QuicError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            QuicError::Cancelled => f.write_str("the run was cancelled"),
            QuicError::Path(error) => error.fmt(f),
            QuicError::Refused(sentence) => f.write_str(sentence),
            QuicError::Scenario(error) => error.fmt(f),
            QuicError::Mistake(mistake) => mistake.fmt(f),
            QuicError::Connection { flow, reason } => write!(f, "the connection of flow {flow} ended: {reason}"),
            QuicError::Build => f.write_str(
                "this program was built without --cfg getrandom_backend=\"custom\", so that equal seeds would give different \
                 runs; copy quic/world/.cargo/config.toml into the folder of your program as .cargo/config.toml and run `cargo \
                 build` there, or run `make quic` for the program without controllers of your own",
            ),
            QuicError::Panicked(message) => write!(f, "the run ended by a panic: {message}"),
        }
    }
}

impl std::error::Error for QuicError {}

impl From<ConfigError> for QuicError {
    fn from(error: ConfigError) -> QuicError {
        QuicError::Path(error)
    }
}
