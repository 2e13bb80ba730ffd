//! Frames of stacks, after symbolisation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kernel stack that the source has seen; its frames came with [`crate::Event::KernelStack`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KernelStackId(pub u32);

/// A user stack that the source has seen; its frames come with [`crate::Finish::user_stacks`], at this index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UserStackId(pub u32);

/// Which kind of code a frame belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Machine code of a program or library.
    #[default]
    Native,
    /// Java, by a dump or the JVM's structures.
    Java,
    /// Python, by the interpreter's structures.
    Python,
    /// JavaScript, by the engine's structures.
    JavaScript,
    /// Ruby, by the interpreter's structures.
    Ruby,
    /// PHP, by the interpreter's structures.
    Php,
    /// Perl, by the interpreter's structures.
    Perl,
    /// Scripts of Bash, by the interpreter's structures.
    Bash,
    /// Machine code of Go, by the table that its linker writes.
    Go,
    /// The kernel.
    Kernel,
}

/// One frame of a stack, innermost first. Names come from the observed program and are hostile until a view
/// has made them printable.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Frame {
    /// The function, demangled; `None` when no symbol covers the address.
    pub symbol: Option<String>,
    /// Base name of the file the code came from (`libc.so.6`); `None` for anonymous code.
    pub module: Option<String>,
    /// Offset in bytes from the symbol, or, without one, from the start of the module's address space.
    pub offset: u64,
    /// Source file, where there is debug information.
    pub file: Option<String>,
    /// Line in `file`.
    pub line: Option<u32>,
    /// Kind of code.
    pub language: Language,
    /// Whether the compiler inlined this function into the next frame.
    pub inlined: bool,
    /// Of interpreted code: the package that an installer put its file there with, where its records say so.
    pub package: Option<String>,
}
