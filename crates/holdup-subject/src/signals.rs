//! Signals that holdup gets while CMD runs.
//!
//! In: signals, with who sent them. Out: what to do. What the terminal sends (Ctrl-C, Ctrl-\, a hang-up) goes
//! to the whole foreground group, so CMD has it already and holdup only notes it; only where CMD has made a group of its own
//! (`timeout` does) it is passed on to that. What a process sends goes to
//! holdup alone and is passed on. The second Ctrl-C ends the observation. A process that signals the whole
//! group can't be distinguished from one that signals holdup: CMD gets that one twice, unless CMD itself sent it.
//!
//! While the report is put together a further signal ends the search for names, and after that signals act as they do on any
//! program (see `haste`).
//!
//! Signals are read from a descriptor rather than handled, so that nothing is ever interrupted.

use crate::inherited::Inherited;
use crate::subject::Subject;
use anyhow::Context;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Signals whose default would end or disturb holdup, and which one process sends to another on purpose. Stops
/// and continues are not among them: holdup stops and continues with its group.
const WATCHED: [i32; 10] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGWINCH,
];

/// Those by which holdup is told to end, and which it hears whatever it was started with: a shell has its background jobs ignore
/// interrupts, so that a Ctrl-C at its terminal is not for them. One that a process sends to holdup itself is.
const HEARD: [i32; 2] = [libc::SIGINT, libc::SIGTERM];

/// Those that ask a program to end.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// After how many Ctrl-C the observation ends.
const INTERRUPTS_TO_END: u32 = 2;

/// With what CMD has ended.
static STATUS_OF_CMD: AtomicI32 = AtomicI32::new(0);

/// Ends holdup with CMD's status.
extern "C" fn end_as_cmd(_signal: i32) {
    // SAFETY: ends the process without anything else.
    unsafe { libc::_exit(STATUS_OF_CMD.load(Ordering::Relaxed)) }
}

/// The signals, until this is dropped.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
    interrupts: u32,
    inherited: Inherited,
    /// All that is still to come is to end, too.
    ends_all: bool,
}

/// Whether to go on observing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// The person wants the report now.
    EndObservation,
}

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Received {
    signal: i32,
    /// `None` when the kernel sent it, on behalf of the terminal.
    sender: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Note,
    PassOn,
    PassOnToGroup,
}

impl Signals {
    /// Begins to collect signals instead of acting on them. Call it before any thread is started. Signals that
    /// holdup was told to ignore (nohup, a shell's background job) stay ignored, but for those that tell it to end.
    ///
    /// # Errors
    /// When the system refuses a descriptor.
    pub fn watch() -> anyhow::Result<Signals> {
        let inherited = Inherited::at_start();
        let set = libc_set(
            WATCHED.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()),
            &inherited,
        );
        set.thread_block().context("cannot block signals")?;
        // A report that outgrows the limit on files is an error of writing it, and must not cost CMD's exit status.
        // SAFETY: SIG_IGN is not a handler.
        unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }.context("cannot watch signals")?;
        let descriptor = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            .context("cannot watch signals")?;
        Ok(Signals {
            descriptor,
            interrupts: 0,
            inherited,
            ends_all: false,
        })
    }

    /// Becomes readable when a signal came.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Acts on all signals that came since the last call, and passes on to CMD what is CMD's. Never blocks.
    pub fn serve(&mut self, cmd: &Subject) -> Control {
        while let Some(received) = self.next() {
            if received.signal == libc::SIGINT {
                self.interrupts += 1;
            }
            match action(received, cmd.pid(), || cmd.left_group()) {
                Action::Note => {}
                Action::PassOn => cmd.signal(received.signal),
                Action::PassOnToGroup => cmd.signal_group(received.signal),
            }
        }
        if self.interrupts >= INTERRUPTS_TO_END {
            Control::EndObservation
        } else {
            Control::Continue
        }
    }

    /// The same where nothing was started that signals could be for: any that asks holdup to end ends the observation.
    pub fn interrupted(&mut self) -> Control {
        match self.asked_to_end() || self.ends_all {
            true => Control::EndObservation,
            false => Control::Continue,
        }
    }

    /// Whether a signal came since the last call that asks holdup to end.
    pub fn asked_to_end(&mut self) -> bool {
        let mut asked = false;
        while let Some(received) = self.next() {
            asked |= ENDING.contains(&received.signal);
        }
        asked
    }

    /// The same, and if so it is remembered: no further observation begins.
    pub fn asked_to_end_all(&mut self) -> bool {
        self.ends_all |= self.asked_to_end();
        self.ends_all
    }

    /// Whether a further Ctrl-C came since the last call; all signals are passed on as in [`Signals::serve`].
    pub fn interrupted_again(&mut self, cmd: &Subject) -> bool {
        let before = self.interrupts;
        self.serve(cmd);
        self.interrupts > before
    }

    /// From now on signals that ask holdup to end do that at once; those that it was started to ignore stay ignored. With the `status` of a
    /// CMD that has ended, holdup ends with that; else as any program does.
    pub fn let_through(&mut self, status: Option<u8>) {
        if let Some(status) = status {
            STATUS_OF_CMD.store(status.into(), Ordering::Relaxed);
            let handled = ENDING
                .into_iter()
                .filter(|number| !self.inherited.ignores(*number));
            for number in handled.filter_map(|number| Signal::try_from(number).ok()) {
                // SAFETY: the handler does nothing but end the process, which is allowed at any point.
                unsafe { signal(number, SigHandler::Handler(end_as_cmd)) }.ok();
            }
        }
        let ending: SigSet = ENDING
            .iter()
            .filter_map(|signal| Signal::try_from(*signal).ok())
            .collect();
        // They were blocked by this thread, which unblocks them: that can't fail.
        ending.thread_unblock().ok();
    }

    /// Sleeps until a signal came or the time is up.
    pub fn sleep(&self, timeout: PollTimeout) {
        let mut descriptors = [PollFd::new(self.fd(), PollFlags::POLLIN)];
        // As below.
        poll(&mut descriptors, timeout).ok();
    }

    /// Sleeps until a signal came, CMD ended or the time is up, whichever is first.
    pub fn wait(&self, cmd: &Subject, timeout: PollTimeout) {
        let own = PollFd::new(self.fd(), PollFlags::POLLIN);
        let ends = cmd.pidfd().map(|ends| PollFd::new(ends, PollFlags::POLLIN));
        let timeout = match ends {
            Some(_) => timeout,
            None => soonest(timeout),
        };
        let mut descriptors: Vec<PollFd<'_>> = [own].into_iter().chain(ends).collect();
        // An error here means that it is time to look, which the caller does anyway.
        poll(&mut descriptors, timeout).ok();
    }

    fn next(&mut self) -> Option<Received> {
        loop {
            match self.descriptor.read_signal() {
                Ok(Some(info)) => {
                    let received = Received {
                        signal: info.ssi_signo.cast_signed(),
                        // Codes above zero are the kernel's own.
                        sender: (info.ssi_code <= 0).then_some(info.ssi_pid),
                    };
                    if is_for_us(received, &self.inherited) {
                        return Some(received);
                    }
                }
                Err(Errno::EINTR) => {}
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

/// At most as long as an end of CMD that nothing tells of may go unnoticed.
fn soonest(timeout: PollTimeout) -> PollTimeout {
    const MAX_TRIES: u8 = 10;
    match timeout.as_millis() {
        Some(short) if short < u32::from(MAX_TRIES) => timeout,
        _ => PollTimeout::from(MAX_TRIES),
    }
}

fn action(received: Received, cmd: u32, left_group: impl Fn() -> bool) -> Action {
    let by_keyboard = matches!(received.signal, libc::SIGINT | libc::SIGQUIT);
    match received.sender {
        None if by_keyboard && left_group() => Action::PassOnToGroup,
        // The terminal's: CMD is in the same group.
        None => Action::Note,
        // CMD signals its own group ("kill 0") and knows of it.
        Some(sender) if sender == cmd => Action::Note,
        Some(_) => Action::PassOn,
    }
}

/// Whether a signal counts: of those that holdup was started to ignore only what a process sends, and only if it tells to end. The
/// kernel keeps a blocked signal whether it is ignored or not.
fn is_for_us(received: Received, inherited: &Inherited) -> bool {
    !inherited.ignores(received.signal) || (HEARD.contains(&received.signal) && received.sender.is_some())
}

/// The signals as the kernel wants them, without those that are ignored and not heard all the same. nix knows no realtime signals, so the
/// set is filled by the C library.
fn libc_set(signals: impl Iterator<Item = i32>, inherited: &Inherited) -> SigSet {
    // SAFETY: a signal set is valid when all zero, and filled in by the calls, which refuse what is no signal.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals.filter(|signal| HEARD.contains(signal) || !inherited.ignores(*signal)) {
            libc::sigaddset(&raw mut set, signal);
        }
        SigSet::from_sigset_t_unchecked(set)
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, Control, Received, Signals, action, is_for_us};
    use crate::inherited::Inherited;
    use crate::subject::{Command, Ended, Subject};
    use nix::poll::PollTimeout;

    #[test]
    fn the_terminals_signals_and_cmds_own_are_not_passed_on() {
        let look_up = |signal, sender, left| action(Received { signal, sender }, 7, || left);
        let by = |sender| look_up(libc::SIGINT, sender, false);
        assert_eq!(by(None), Action::Note);
        assert_eq!(by(Some(7)), Action::Note);
        assert_eq!(by(Some(8)), Action::PassOn);
        assert_eq!(by(Some(0)), Action::PassOn, "from another pid namespace");
        // A CMD that leads a group of its own is not reached by the terminal.
        assert_eq!(look_up(libc::SIGINT, None, true), Action::PassOnToGroup);
        assert_eq!(look_up(libc::SIGWINCH, None, true), Action::Note);
        assert_eq!(look_up(libc::SIGINT, Some(7), true), Action::Note);
    }

    #[test]
    fn who_was_started_to_ignore_interrupts_hears_those_that_are_sent_to_it() {
        let background = Inherited::ignoring(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]);
        let counts = |signal, sender| is_for_us(Received { signal, sender }, &background);
        assert!(counts(libc::SIGINT, Some(7)) && counts(libc::SIGTERM, Some(7)));
        assert!(!counts(libc::SIGINT, None), "the terminal's");
        assert!(!counts(libc::SIGHUP, Some(7)), "nohup");
        assert!(counts(libc::SIGQUIT, None));
    }

    /// Signals are sent to this thread alone, because the test harness has others that would act on them.
    fn send(signal: i32) {
        // SAFETY: the numbers are this thread's own.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
    }

    #[test]
    fn a_signal_is_passed_on_and_the_second_interrupt_ends_the_observation() {
        let mut signals = Signals::watch().unwrap();
        let command = Command {
            argv: ["sh", "-c", "trap '' INT; kill -STOP $$; exit 3"]
                .map(Into::into)
                .to_vec(),
            user: None,
        };
        let mut cmd = Subject::prepare(&command).unwrap();
        cmd.go();
        // The shell ignores the interrupts only after its trap: wait for its stop.
        let id = nix::sys::wait::Id::Pid(nix::unistd::Pid::from_raw(cmd.pid().cast_signed()));
        nix::sys::wait::waitid(id, nix::sys::wait::WaitPidFlag::WSTOPPED).unwrap();
        assert_eq!(signals.serve(&cmd), Control::Continue);
        send(libc::SIGINT);
        assert_eq!(signals.serve(&cmd), Control::Continue);
        send(libc::SIGINT);
        assert_eq!(signals.serve(&cmd), Control::EndObservation);
        send(libc::SIGTERM);
        signals.serve(&cmd);
        cmd.signal(libc::SIGCONT);
        signals.wait(&cmd, PollTimeout::NONE);
        assert_eq!(cmd.wait().unwrap(), Ended::Killed(libc::SIGTERM));
    }
}
