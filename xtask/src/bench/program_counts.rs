//! What the kernel counts of a process's BPF programs: how often each ran, and for how long.
//!
//! In: a process. Out: runs and nanoseconds by program. The kernel counts only while somebody asks for it, and to be timed
//! costs each run some ten nanoseconds.

use anyhow::Context;
use nix::errno::Errno;
use nix::libc;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Commands of bpf(2), and where their answers are in the kernel's `struct bpf_prog_info`, bytes.
const BPF_PROG_GET_FD_BY_ID: libc::c_long = 13;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const BPF_ENABLE_STATS: libc::c_long = 32;
const INFO_BYTES: usize = 208;
const INFO_NAME: std::ops::Range<usize> = 64..80;
const INFO_RUN_TIME: usize = 192;
const INFO_RUNS: usize = 200;

/// Runs, and nanoseconds they took, by program.
pub(super) type Counts = BTreeMap<String, (u64, u64)>;

/// Makes the kernel count, for as long as what this returns is kept.
pub(super) fn count_runs() -> anyhow::Result<OwnedFd> {
    bpf(BPF_ENABLE_STATS, &mut [0; 4]).context("ask the kernel to count runs (root is needed)")
}

/// Programs that are held here: they keep their counts when the process has ended.
#[derive(Debug, Default)]
pub(super) struct Held(BTreeMap<u32, OwnedFd>);

impl Held {
    /// Holds those that a process has by now.
    pub(super) fn look_at(&mut self, pid: u32) {
        for id in program_ids(pid) {
            if let Entry::Vacant(place) = self.0.entry(id)
                && let Ok(program) = bpf(BPF_PROG_GET_FD_BY_ID, &mut [u64::from(id), 0, 0, 0])
            {
                place.insert(program);
            }
        }
    }

    /// Of those that ran.
    pub(super) fn counts(&self) -> anyhow::Result<Counts> {
        let counts = self.0.values().map(count).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(counts.into_iter().filter(|(_, (runs, _))| *runs > 0).collect())
    }
}

/// The programs behind a process's descriptors.
fn program_ids(pid: u32) -> Vec<u32> {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fdinfo")) else {
        return Vec::new();
    };
    let texts = descriptors.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    texts
        .filter(|text| !text.contains("link_id:"))
        .filter_map(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("prog_id:"))?;
            line.trim().parse().ok()
        })
        .collect()
}

/// Name, runs and nanoseconds.
fn count(program: &OwnedFd) -> anyhow::Result<(String, (u64, u64))> {
    let mut info = [0_u8; INFO_BYTES];
    let descriptor = u64::try_from(program.as_raw_fd()).context("a descriptor is not negative")?;
    // The descriptor and the length of the answer are 32 bits each, the address 64.
    let mut attributes = [
        descriptor | (INFO_BYTES as u64) << 32,
        info.as_mut_ptr() as u64,
        0,
        0,
    ];
    let _: Option<OwnedFd> = bpf_call(BPF_OBJ_GET_INFO_BY_FD, &mut attributes)?;
    let word = |at: usize| u64::from_ne_bytes(info[at..at + 8].try_into().expect("eight bytes"));
    let name = &info[INFO_NAME];
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok((
        String::from_utf8_lossy(name).into_owned(),
        (word(INFO_RUNS), word(INFO_RUN_TIME)),
    ))
}

/// A call that returns a descriptor.
fn bpf(command: libc::c_long, attributes: &mut [u64; 4]) -> anyhow::Result<OwnedFd> {
    bpf_call(command, attributes)?.context("bpf(2) returned no descriptor")
}

fn bpf_call(command: libc::c_long, attributes: &mut [u64; 4]) -> anyhow::Result<Option<OwnedFd>> {
    // SAFETY: the kernel reads the attributes, whose size it gets; an address in them is of memory that outlives the
    // call and has the length said there.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            attributes.as_mut_ptr(),
            size_of_val(attributes),
        )
    };
    let returned = Errno::result(returned)?;
    if command == BPF_OBJ_GET_INFO_BY_FD {
        return Ok(None);
    }
    // SAFETY: a fresh descriptor that nobody else owns.
    let file = unsafe { File::from_raw_fd(i32::try_from(returned)?) };
    Ok(Some(file.into()))
}
