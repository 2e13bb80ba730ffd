//! A program with the modules of tokio in which tasks are described, as the compiler of this machine describes them.

use super::of_file;
use crate::elf::Elf;
use holdup_evidence::{TaskKind, TypeLayouts};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::{self, File};
use std::io::Write;
use std::process::Command;
use tempfile::TempDir;

/// It is compiled as a crate of that name. `await` is in line 25.
const SOURCE: &str = r#"mod runtime { pub mod task {
    pub mod raw {
        pub struct Vtable { pub size: usize, pub poll: fn(*mut ()) }
        pub fn poll<T: std::future::Future, S>(at: *mut ()) {
            let cell = at as *mut super::core::Cell<T, S>;
            let future = unsafe { std::pin::Pin::new_unchecked(&mut (*cell).core.stage) };
            let _ = future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        }
        pub const fn table<T: std::future::Future, S>() -> Vtable { Vtable { size: 0, poll: poll::<T, S> } }
    }
    pub mod core {
        pub struct Header { pub state: usize, pub vtable: super::raw::Vtable, pub owner_id: u64 }
        #[repr(C)]
        pub struct Cell<T, S> { pub header: Header, pub core: Core<T, S> }
        pub struct Core<T, S> { pub scheduler: S, pub task_id: u64, pub stage: T }
    }
} }
use runtime::task::{core::{Cell, Core, Header}, raw::table};
struct Till { sum: u64 }
impl Till {
    async fn pay(&mut self, by: u64) {
        let guard = String::from("a lock");
        self.sum += by;
        // The next line is where it stands.
        std::future::pending::<()>().await;
        drop(guard);
    }
}
async fn serve(mut till: Till) { till.pay(7).await }
fn start<T: std::future::Future>(stage: T) {
    let header = Header { state: 0, vtable: table::<T, u32>(), owner_id: 1 };
    let mut cell = Cell { header, core: Core { scheduler: 3_u32, task_id: 9, stage } };
    (cell.header.vtable.poll)(&raw mut cell as *mut ());
}
fn block_on<F: std::future::Future>(future: F) { start(future) }
fn main() { start(serve(Till { sum: 0 })); block_on(async { 3 }) }
"#;

fn program(debug: &str) -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    let (source, program) = (folder.path().join("till.rs"), folder.path().join("till"));
    fs::write(&source, SOURCE).unwrap();
    let built = Command::new("rustc")
        .args([
            "--edition",
            "2024",
            "--crate-name",
            "tokio",
            "-C",
            debug,
            "-A",
            "warnings",
        ])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status();
    assert!(built.expect("rustc is installed where this is built").success());
    fs::read(program).unwrap()
}

fn read(bytes: &[u8]) -> Option<TypeLayouts> {
    let mut file = File::from(memfd_create("layouts", MFdFlags::MFD_CLOEXEC).unwrap());
    file.write_all(bytes).unwrap();
    of_file(&Elf::read(file).ok()?)
}

#[test]
fn a_task_leads_to_the_asynchronous_functions_that_it_runs_and_their_lines() {
    let found = read(&program("debuginfo=2")).unwrap();
    let head = found.head.unwrap();
    assert!(head.owner.is_some() && head.state != head.table && head.align == 8);
    let of_serve = |one: &&TaskKind| {
        let named = |of: u32| found.types[of as usize].function.as_deref();
        let stage = |of: u32, name: &str| {
            let mut parts = found.types[of as usize].members.iter();
            parts.find(|part| part.name == name).unwrap().of
        };
        named(stage(stage(one.of, "core"), "stage")) == Some("tokio::serve")
    };
    let task = found.tasks.iter().find(of_serve).unwrap();
    assert_eq!(found.tasks.len(), 2);
    let cell = &found.types[task.of as usize];
    let names = |of: u32| {
        let members = found.types[of as usize].members.iter();
        members.map(|member| member.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(names(task.of), ["header", "core"]);
    let core = cell.members.iter().find(|member| member.name == "core").unwrap();
    assert!(names(core.of).contains(&"stage"));
    let function = |name: &str| {
        let mut all = found.types.iter();
        all.find(|one| one.function.as_deref() == Some(name)).unwrap()
    };
    let variants = function("tokio::Till::pay").variants.as_ref().unwrap();
    let stands = variants.all.iter().find(|one| one.value == Some(3)).unwrap();
    let (file, line) = stands.at.unwrap();
    assert!(found.files[file as usize].ends_with("/till.rs"));
    assert_eq!(line, 25);
    assert!(names(stands.of).contains(&"guard") && names(stands.of).contains(&"__awaitee"));
    assert!(function("tokio::serve").path.ends_with("{async_fn_env#0}"));
}

#[test]
fn code_that_blocks_on_a_future_has_its_type() {
    let found = read(&program("debuginfo=2")).unwrap();
    assert!(!found.blocking.is_empty());
    for code in &found.blocking {
        let path = &found.types[code.of as usize].path;
        assert!(
            code.begin < code.end && path == "tokio::main::{async_block_env#0}",
            "{path}"
        );
    }
}

#[test]
fn lines_alone_describe_no_tasks() {
    assert_eq!(read(&program("debuginfo=line-tables-only")), None);
}

#[test]
fn damaged_debug_information_comes_to_an_end() {
    let whole = program("debuginfo=2");
    let elf = {
        let mut file = File::from(memfd_create("whole", MFdFlags::MFD_CLOEXEC).unwrap());
        file.write_all(&whole).unwrap();
        Elf::read(file).unwrap()
    };
    for name in [".debug_info", ".debug_abbrev", ".debug_str", ".debug_line"] {
        let section = elf.section(name).unwrap();
        let (start, size) = (section.offset as usize, section.size as usize);
        for part in 0..5 {
            let at = start + size * part / 5;
            for byte in [0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at..(at + 3).min(start + size)].fill(byte);
                read(&damaged);
            }
        }
    }
}
