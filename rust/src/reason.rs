//! Why a job failed.

use std::borrow::Cow;
use std::fmt;

/// Why one job failed. Who has to tell kinds of failures apart matches these, never the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// What is stored, or is to be stored, is not what it has to be, or cannot be read.
    Unfit(Cow<'static, str>),
    NoMemory(usize),
    /// An array that belongs to the caller was changed by others while it was in use.
    Changed,
    /// A mistake in the kernel.
    Panicked,
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Unfit(text) => formatter.write_str(text),
            Reason::NoMemory(nbytes) => write!(formatter, "no memory for {nbytes} bytes"),
            Reason::Changed => formatter.write_str("an argument was changed while it was in use"),
            Reason::Panicked => formatter.write_str("the kernel panicked"),
        }
    }
}

impl From<&'static str> for Reason {
    fn from(text: &'static str) -> Self {
        Reason::Unfit(text.into())
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Reason::Unfit(text.into())
    }
}
