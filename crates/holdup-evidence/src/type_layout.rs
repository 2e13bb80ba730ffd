//! Types of a Rust program as its debug information lays them out.
//!
//! The problem: a task that waits is a value in memory, and only the program's debug information says what is where in it. Who reads debug information
//! reads no memory, and the other way round. So this is what the one hands to the other: types, each with its members, and where tasks begin.

use serde::{Deserialize, Serialize};

/// A part of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its name in the source.
    pub name: String,
    /// Where it begins, bytes from where the value does.
    pub offset: u64,
    /// Its type: an index into [`TypeLayouts::types`].
    pub of: u32,
}

/// What a value is made of if it is this variant of its type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// The number that says so; `None` of the variant that all other numbers mean.
    pub value: Option<u64>,
    /// Its type: an index.
    pub of: u32,
    /// Of a coroutine: the source file, an index into [`TypeLayouts::files`], and the line of the `await` at which it stands.
    pub at: Option<(u32, u32)>,
}

/// The variants of a type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variants {
    /// Where the number is, bytes from where the value begins, and how many bytes it has (1 to 8).
    pub number: Option<(u64, u8)>,
    /// All of them.
    pub all: Vec<Variant>,
}

/// A type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeLayout {
    /// Its path, without what stands in angle brackets: `tokio::sync::mutex::{impl#10}::lock::{async_fn_env#0}`. Of a pointer, empty.
    pub path: String,
    /// Of a coroutine: the function, as a linker's name of it says: `shop::Till::book`. `None` where there is none.
    pub function: Option<String>,
    /// Its size, bytes.
    pub size: u64,
    /// Its parts.
    pub members: Vec<Member>,
    /// Its variants.
    pub variants: Option<Variants>,
    /// What it points to, where it is a pointer: an index.
    pub points_to: Option<u32>,
}

/// Where the runtime keeps what of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskHead {
    /// Where a task has its state, bytes from its beginning.
    pub state: u64,
    /// Where it has the pointer to its table of functions.
    pub table: u64,
    /// Where it has the number of the scheduler whose task it is; zero of a copy that is none yet. `None` of an old library.
    pub owner: Option<u64>,
    /// Where this table has the function that runs the task.
    pub poll: u64,
    /// Tasks begin at multiples of this, bytes; at least 8.
    pub align: u64,
}

/// A kind of task: what it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskKind {
    /// The address of the function that runs it, as the file states it.
    pub poll: u64,
    /// The type of the whole task: an index.
    pub of: u32,
}

/// Code that runs a future, until it is ready, in the thread that calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockingCode {
    /// Its first address, as the file states it.
    pub begin: u64,
    /// The first address behind it.
    pub end: u64,
    /// What it is generic over, which may be the future's type: an index.
    pub of: u32,
}

/// Types of a program that runs tasks of tokio.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeLayouts {
    /// The types.
    pub types: Vec<TypeLayout>,
    /// Source files.
    pub files: Vec<String>,
    /// Where a task has what.
    pub head: Option<TaskHead>,
    /// Kinds of tasks.
    pub tasks: Vec<TaskKind>,
    /// Code that runs futures in the thread that calls it, by its first address.
    #[serde(default)]
    pub blocking: Vec<BlockingCode>,
    /// Tables of functions of trait objects that are futures: the address as the file states it, and the type behind it.
    pub objects: Vec<(u64, u32)>,
    /// Whether there was more than may be kept.
    pub cut: bool,
}
