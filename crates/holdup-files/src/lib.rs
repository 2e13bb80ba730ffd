//! Files that holdup writes, often as root and into folders of other users.
//!
//! In: a path that the caller named. Out: a descriptor to write to. The folder is opened once, step by step, and everything after that
//! goes through its descriptor ([`reach`]). A file is written without its name and gets it when it is complete ([`NewFile`]). What is
//! no regular file is written to only if it is the caller's own FIFO, a terminal, `/dev/null` or a descriptor by number
//! ([`Destination`]). Names can be given by a process of its own, so that the one that writes needs no rights for that ([`finish_apart`]).

mod destination;
mod finisher;
mod new_file;
mod reach;
mod refused;
mod trust;

pub use destination::Destination;
pub use finisher::finish_apart;
pub use new_file::{Last, NewFile};
pub use reach::{Folder, Guard, Missing, folder};
pub use refused::Refused;
