//! A difference between our controller and the kernel's, and the sentence for it.

use core::fmt;

use super::Hook;
use super::plausible;

/// Where our controller and the kernel's diverge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Position of the call in the recording.
    pub call: u64,
    /// The flow.
    pub flow: u32,
    /// What the kernel called.
    pub hook: Hook,
    /// When the field differs.
    pub moment: Moment,
    /// A field of the private state, or of the socket, under the kernel's name.
    pub field: &'static str,
    /// Our controller's value; if the record itself is wrong, the value that it should have.
    pub ours: u64,
    /// The kernel's value.
    pub kernel: u64,
}

/// When a field was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// At the call's entry, and it shows that calls before it are missing from the record: no verdict on our controller.
    Gap,
    /// At the call's entry: what the core did since the call before differs.
    Before,
    /// After the call: our controller did something else.
    After,
    /// No kernel makes such a call.
    Record,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { call, flow, field, ours, kernel, .. } = self;
        let hook = self.hook.name();
        match self.moment {
            Moment::Gap => {
                return write!(
                    f,
                    "calls are missing before call {call} ({hook}, flow {flow}): {field} is {kernel}, expected {ours}"
                );
            }
            Moment::Before => write!(f, "call {call} ({hook}, flow {flow}): before it "),
            Moment::After => write!(f, "call {call} ({hook}, flow {flow}): after it "),
            Moment::Record => {
                write!(
                    f,
                    "call {call} ({hook}, flow {flow}) cannot have happened: {field} is {kernel}, expected {ours}"
                )?;
                let other = if *field == plausible::OUTSIDE { plausible::SUPPORTED } else { "" };
                return f.write_str(other);
            }
        }?;
        write!(f, "{field} is {ours} here and {kernel} in the kernel")
    }
}
