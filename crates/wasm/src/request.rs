//! What the page asks. Field for field as in `lab/src/engine/protocol.ts`.

use fullpipe_scenario::Format;
use fullpipe_sim::TextChange;
use serde::Deserialize;

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "method", rename_all = "snake_case")]
pub enum Request {
    /// What the engine knows.
    Catalogue,
    /// What a document asks for.
    Resolve {
        /// The document.
        document: Document,
    },
    /// A whole run.
    Run(RunRequest),
    /// The summaries of many runs.
    Summaries {
        /// One row each.
        documents: Vec<Document>,
        /// One column each.
        seeds: Vec<u64>,
    },
    /// Begins a live run.
    Open(RunRequest),
    /// Advances a live run.
    Advance {
        /// Which.
        run: u32,
        /// Until when.
        until_s: f64,
    },
    /// Changes the path of a live run.
    Change {
        /// Which.
        run: u32,
        /// How.
        change: TextChange,
    },
    /// Ends a live run, and gives its record.
    Finish {
        /// Which.
        run: u32,
    },
    /// Forgets a live run.
    Close {
        /// Which.
        run: u32,
    },
    /// What happened to the packets of a flow.
    Packets {
        /// The run.
        #[serde(flatten)]
        run: RunRequest,
        /// The flow.
        flow: usize,
        /// The most rows of each table.
        most_rows: Option<usize>,
    },
    /// A log of a run.
    Qlog {
        /// The run.
        #[serde(flatten)]
        run: RunRequest,
        /// Which form.
        form: QlogForm,
    },
}

/// A scenario as somebody writes it.
#[derive(Debug, Deserialize)]
pub struct Document {
    /// All of it.
    pub text: String,
    /// How to read it.
    #[serde(with = "FormatName")]
    pub format: Format,
}

/// Its format.
#[derive(Deserialize)]
#[serde(remote = "Format", rename_all = "snake_case")]
enum FormatName {
    Toml,
    Json,
}

/// One run of a document.
#[derive(Debug, Deserialize)]
pub struct RunRequest {
    /// The document.
    pub document: Document,
    /// Which of its alternatives.
    #[serde(default)]
    pub alternative: usize,
    /// The seed.
    pub seed: u64,
}

/// A form of qlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QlogForm {
    /// The current one.
    Current,
    /// The one that qvis reads.
    Qvis,
}
