//! Programs that are verified when they are first needed, and not before CMD may begin.
//!
//! The problem: a sixth of what the kernel verifies are programs that look over all tasks or files for threads that ran already and for what they
//! wait for. A command that is short never needs them. The choice: they are prepared with all others, adapted to the kernel and tied to their
//! maps, and handed to the kernel by the first who needs them. No event is missed by that: nothing is attached, the kernel runs them when they
//! are read. But it takes milliseconds, in which records stand in the ring and threads go on: whoever takes an instant, or looks at memory, has
//! them loaded before that. Whoever observes again and again from one set of programs loads all at once. In: a prepared program. Out: a
//! descriptor of it.

use crate::capability::KernelTypes;
use crate::optional::{self, Group, not_run};
use crate::skeleton::{OpenTraceSkel, TraceSkel};
use holdup_evidence::NotMeasured;
use libbpf_rs::skel::{OpenSkel, Skel};
use libbpf_rs::{AsRawLibbpf, Error, ProgramMut, libbpf_sys};
use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// One that the kernel runs over all tasks, or all files of all tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Later {
    /// Adopts the threads of processes that are wanted.
    AdoptTask,
    /// Tells of waits that go on.
    PeekTask,
    /// Adopts connections.
    LookAtFile,
    /// Tells of requests that are open.
    LookAtSocket,
    /// Tells of threads that live on as observation ends.
    EachTask,
}

/// That of the programs (`bpf/trace.bpf.c`), without which the kernel lets them call little.
const LICENSE: &CStr = c"Dual BSD/GPL";

const ALL: [Later; 5] = [
    Later::AdoptTask,
    Later::PeekTask,
    Later::LookAtFile,
    Later::LookAtSocket,
    Later::EachTask,
];

/// What a kernel needs to be told of a program of this kind, beside the program.
#[derive(Debug, Default)]
pub(crate) struct Iterators {
    /// Numbers of the functions that stand for them in the kernel's types: of tasks, of files.
    tasks: u32,
    files: u32,
    /// Those that are prepared.
    prepared: Vec<Later>,
    /// Those of them that are loaded.
    loaded: Vec<(Later, OwnedFd)>,
    /// Those of them that were to be loaded before they were run: a kernel that refuses is asked no more often for that.
    tried: Vec<Later>,
}

impl Later {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Later::AdoptTask => "adopt_task",
            Later::PeekTask => "peek_task",
            Later::LookAtFile => "look_at_file",
            Later::LookAtSocket => "look_at_socket",
            Later::EachTask => "each_task",
        }
    }

    /// What is not seen without it, once the kernel has not run it; `None`: nothing can be done without it.
    pub(crate) fn not_measured(self, error: &Error) -> Option<NotMeasured> {
        let unseen = match self {
            Later::AdoptTask => None,
            Later::PeekTask => Some("waits that go on, and who is in their way"),
            Later::LookAtFile | Later::LookAtSocket | Later::EachTask => {
                optional::of(self.name()).map(Group::unseen)
            }
        };
        unseen.map(|unseen| not_run(self.name(), unseen, error))
    }

    /// Number of the function that stands for what it is run over.
    fn kind(self, of: &Iterators) -> u32 {
        match self {
            Later::AdoptTask | Later::PeekTask | Later::EachTask => of.tasks,
            Later::LookAtFile | Later::LookAtSocket => of.files,
        }
    }

    fn program<'a>(self, skeleton: &'a TraceSkel<'static>) -> &'a ProgramMut<'static> {
        match self {
            Later::AdoptTask => &skeleton.progs.adopt_task,
            Later::PeekTask => &skeleton.progs.peek_task,
            Later::LookAtFile => &skeleton.progs.look_at_file,
            Later::LookAtSocket => &skeleton.progs.look_at_socket,
            Later::EachTask => &skeleton.progs.each_task,
        }
    }
}

impl Iterators {
    /// All are loaded with the others.
    pub(crate) fn at_once() -> Iterators {
        Iterators::default()
    }

    /// Prepares what was opened, and takes these programs out of what is loaded then.
    pub(crate) fn defer(
        opened: &mut OpenTraceSkel<'static>,
        types: &KernelTypes,
    ) -> libbpf_rs::Result<Iterators> {
        let (tasks, files) = (
            types.function("bpf_iter_task"),
            types.function("bpf_iter_task_file"),
        );
        if tasks == 0 || files == 0 {
            return Ok(Iterators::at_once());
        }
        let object = opened.open_object_mut().as_libbpf_object().as_ptr();
        // SAFETY: it is open, and not loaded.
        check(unsafe { libbpf_sys::bpf_object__prepare(object) })?;
        let mut prepared = Vec::new();
        for mut program in opened.open_object_mut().progs_mut() {
            let later = ALL.into_iter().find(|later| program.name() == later.name());
            // One that is left out already is not prepared.
            if let Some(later) = later.filter(|_| program.autoload()) {
                program.set_autoload(false);
                prepared.push(later);
            }
        }
        Ok(Iterators {
            tasks,
            files,
            prepared,
            ..Iterators::default()
        })
    }

    /// Loads it if that is to be done yet, so that who runs it later does not wait for that.
    ///
    /// # Errors
    /// When the kernel refuses it; the first time only.
    pub(crate) fn load_before(
        &mut self,
        later: Later,
        skeleton: &TraceSkel<'static>,
    ) -> libbpf_rs::Result<()> {
        if self.is_loaded(later) || self.tried.contains(&later) {
            return Ok(());
        }
        self.tried.push(later);
        self.descriptor(later, skeleton).map(drop)
    }

    /// Whether nothing is left to be loaded of it.
    pub(crate) fn is_loaded(&self, later: Later) -> bool {
        !self.prepared.contains(&later) || self.loaded.iter().any(|(one, _)| *one == later)
    }

    /// Runs it over all there is, and gives what it writes.
    ///
    /// # Errors
    /// When the kernel refuses it, or to run it.
    pub(crate) fn run(&mut self, later: Later, skeleton: &TraceSkel<'static>) -> libbpf_rs::Result<Vec<u8>> {
        let program = self.descriptor(later, skeleton)?;
        // SAFETY: a descriptor of a program, and no options.
        let link =
            unsafe { libbpf_sys::bpf_link_create(program, 0, libbpf_sys::BPF_TRACE_ITER, ptr::null()) };
        let link = owned(link)?;
        // SAFETY: a descriptor of a link.
        let reading = owned(unsafe { libbpf_sys::bpf_iter_create(link.as_raw_fd()) })?;
        let mut written = Vec::new();
        // What was read before an error stands.
        File::from(reading).read_to_end(&mut written).ok();
        Ok(written)
    }

    fn descriptor(&mut self, later: Later, skeleton: &TraceSkel<'static>) -> libbpf_rs::Result<i32> {
        if !self.prepared.contains(&later) {
            // Loaded with the others; where it was left out the kernel says of this number that it is no descriptor.
            return Ok(later.program(skeleton).as_fd().as_raw_fd());
        }
        if let Some((_, loaded)) = self.loaded.iter().find(|(one, _)| *one == later) {
            return Ok(loaded.as_raw_fd());
        }
        let loaded = self.load(later, skeleton)?;
        let descriptor = loaded.as_raw_fd();
        self.loaded.push((later, loaded));
        Ok(descriptor)
    }

    /// As libbpf does for the others. Functions of its own are known to the kernel by what is said of them in the object's types.
    fn load(&self, later: Later, skeleton: &TraceSkel<'static>) -> libbpf_rs::Result<OwnedFd> {
        let program = later.program(skeleton).as_libbpf_object().as_ptr();
        let object = skeleton.object().as_libbpf_object().as_ptr();
        // SAFETY: both live as long as the skeleton; what is returned does, too, and is as long as the counts say.
        unsafe {
            let mut how = libbpf_sys::bpf_prog_load_opts {
                sz: size_of::<libbpf_sys::bpf_prog_load_opts>() as libbpf_sys::size_t,
                expected_attach_type: libbpf_sys::BPF_TRACE_ITER,
                attach_btf_id: later.kind(self),
                prog_btf_fd: u32::try_from(libbpf_sys::bpf_object__btf_fd(object)).unwrap_or_default(),
                func_info: libbpf_sys::bpf_program__func_info(program).cast(),
                func_info_cnt: libbpf_sys::bpf_program__func_info_cnt(program),
                func_info_rec_size: size_of::<libbpf_sys::bpf_func_info>() as u32,
                ..Default::default()
            };
            owned(libbpf_sys::bpf_prog_load(
                libbpf_sys::BPF_PROG_TYPE_TRACING,
                libbpf_sys::bpf_program__name(program),
                LICENSE.as_ptr(),
                libbpf_sys::bpf_program__insns(program),
                libbpf_sys::bpf_program__insn_cnt(program),
                &raw mut how,
            ))
        }
    }
}

/// What libbpf returned: a negative one is an error's number.
fn check(returned: i32) -> libbpf_rs::Result<i32> {
    match returned {
        0.. => Ok(returned),
        error => Err(Error::from_raw_os_error(-error)),
    }
}

/// A new descriptor, or an error's number.
fn owned(returned: i32) -> libbpf_rs::Result<OwnedFd> {
    // SAFETY: the kernel has just given it, and nobody else has it.
    check(returned).map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::Later;
    use libbpf_rs::Error;

    #[test]
    fn what_is_said_of_one_that_did_not_run_is_what_the_kernel_said() {
        let said = |later: Later, number| later.not_measured(&Error::from_raw_os_error(number));
        for refused in [libc::EINVAL, libc::E2BIG, libc::EACCES, libc::EPERM] {
            assert!(said(Later::EachTask, refused).is_some_and(|one| one.fix.contains("doctor")));
        }
        for other in [libc::ENOMEM, libc::EMFILE, libc::EINTR] {
            let one = said(Later::LookAtSocket, other).unwrap();
            assert!(!one.fix.contains("doctor"), "it refuses no program: {one:?}");
            assert!(one.why.contains("look_at_socket"));
        }
        let why = said(Later::EachTask, libc::ENOMEM).unwrap().why;
        assert!(why.contains("each_task") && why.contains("memory"), "{why}");
        assert!(
            said(Later::PeekTask, libc::EINVAL).is_some_and(|one| one.what.starts_with("waits that go on"))
        );
        assert_eq!(said(Later::AdoptTask, libc::EINVAL), None);
    }
}
