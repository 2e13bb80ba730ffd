//! Where the program's code asked for a wait, in words for the first sentence of a finding.

use super::{Waits, say};
use holdup_attribution::attribution::{chosen_frame, is_applications};
use holdup_evidence::{Cause, Frame, Language};
use holdup_knowledge::interpreters;
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::AttributedWait;
use holdup_model::title::Title;

/// What stands before a place in the program.
const IN: &str = " in ";

/// Where these threads wait: ` in Shop.pay (Shop.java:41)`. Empty where the program's code is not known, or they wait in several places.
pub(super) fn place(waits: &Waits<'_>) -> String {
    let main = waits.main();
    let of = |wait: &AttributedWait| -> Option<Frame> { asking(&wait.asker.stack).cloned() };
    // The poll of a scheduler is for its tasks: where one that polled for the same thing was seen with its task's code, that is it.
    let same = |wait: &&AttributedWait| {
        wait.asker.name.pid == main.asker.name.pid
            && wait.call == main.call
            && !wait.resource.name.is_empty()
            && wait.resource == main.resource
    };
    let by_task = || waits.iter().filter(same).find_map(of);
    let Some(place) = of(main).or_else(|| by_task().filter(|_| polls(main))) else {
        return String::new();
    };
    let place = &place;
    // Of a wait that was not seen in the program's code it is not known that it was elsewhere.
    let elsewhere = |wait: &AttributedWait| asking(&wait.asker.stack).is_some_and(|other| other != place);
    if waits.iter().any(elsewhere) {
        return String::new();
    }
    format!("{IN}{}", say::place(place))
}

/// Where one wait was asked for in the program's code: ` in Shop.pay (Shop.java:41)`.
pub(super) fn place_of(wait: &AttributedWait) -> Option<String> {
    asking(&wait.asker.stack).map(|place| format!("{IN}{}", say::place(place)))
}

/// Whether a thread waits with epoll, as runtimes do for all their tasks.
fn polls(wait: &AttributedWait) -> bool {
    system_calls::is_named(wait.call.as_deref(), Kind::WaitsForEpoll)
}

/// A title, with where these waits were asked for, if they all were there and it does not say so itself: the first sentence is what is read, and
/// the place in the program is where whoever reads it goes on.
pub(super) fn with_place(title: Title, waits: &Waits<'_>) -> Title {
    match place(waits).strip_prefix(IN) {
        Some(place) if is_asked_for(waits.cause()) && !title.contains(place) => {
            title.with(format!("; asked in {place}"))
        }
        _ => title,
    }
}

/// Whether a thread waits so because of a call that it makes: whoever lacks a CPU or memory, or is stopped, may be anywhere.
fn is_asked_for(cause: Cause) -> bool {
    match cause {
        Cause::DiskRead
        | Cause::DiskWrite
        | Cause::DiskSync
        | Cause::DiskWriteback
        | Cause::DiskDiscard
        | Cause::DiskJournal
        | Cause::FsFuse
        | Cause::FsNetwork
        | Cause::FsFrozen
        | Cause::LockFutex
        | Cause::LockMonitor
        | Cause::LockFile
        | Cause::LockKernel
        | Cause::LockSysv
        | Cause::IpcPipe
        | Cause::IpcUnix
        | Cause::IpcQueue
        | Cause::IpcTty
        | Cause::IpcSignal
        | Cause::NetConnect
        | Cause::NetReceive
        | Cause::NetSend
        | Cause::NetDns
        | Cause::NetTls
        | Cause::TimerSleep
        | Cause::ProcessChild
        | Cause::RandomUnseeded
        | Cause::RandomDevice
        | Cause::IoAsync
        | Cause::DeviceWait
        | Cause::SecurityDecision => true,
        Cause::CpuUser
        | Cause::CpuKernel
        | Cause::CpuInterrupt
        | Cause::SchedRunqueue
        | Cause::SchedThrottled
        | Cause::SchedSteal
        | Cause::MemPagefault
        | Cause::MemSwapin
        | Cause::MemReclaim
        | Cause::MemLimit
        | Cause::MemMmaplock
        | Cause::MemUserfault
        | Cause::NetAccept
        | Cause::PollWait
        | Cause::ProcessExec
        | Cause::ProcessExit
        | Cause::ProcessStopped
        | Cause::ProcessFrozen
        | Cause::RuntimeSafepoint
        | Cause::RuntimeGc
        | Cause::RuntimeInterpreter
        | Cause::GpuWait
        | Cause::KernelWork
        | Cause::Idle
        | Cause::Unknown => false,
    }
}

/// The frame of the application that asked. Where what it called is a function of a library in machine code, that is the next one outward.
fn asking(stack: &[Frame]) -> Option<&Frame> {
    let chosen = chosen_frame(stack)?;
    let of_library = chosen.language == Language::Native && !is_applications(chosen);
    let callers = || stack.iter().skip_while(|frame| *frame != chosen).skip(1);
    known(Some(chosen)).or_else(|| {
        let mut callers = callers().take_while(|frame| frame.language == Language::Native);
        callers
            .find_map(|frame| known(Some(frame)))
            .filter(|_| of_library)
    })
}

/// A frame of the application with its line: a function of a library, or of the interpreter that runs the program, says little of it.
pub(super) fn known(frame: Option<&Frame>) -> Option<&Frame> {
    let own = |frame: &&Frame| is_applications(frame) && !interpreters::is_own_code(frame);
    frame.filter(|frame| frame.symbol.is_some() && frame.line.is_some() && own(frame))
}

#[cfg(test)]
mod tests {
    use super::asking;
    use holdup_evidence::Frame;

    fn frame(symbol: &str, module: &str, line: Option<u32>) -> Frame {
        Frame {
            symbol: (!symbol.is_empty()).then(|| symbol.to_owned()),
            module: Some(module.to_owned()),
            file: line.map(|_| "/src/prices.c".to_owned()),
            line,
            ..Frame::default()
        }
    }

    /// The function of the program that is named, of such a stack.
    fn named(inner: &[Frame]) -> Option<String> {
        let outer = [
            frame("main", "prices", Some(90)),
            frame("__libc_start_call_main", "libc.so.6", None),
        ];
        let stack = [inner, &outer].concat();
        asking(&stack).and_then(|frame| frame.symbol.clone())
    }

    #[test]
    fn who_called_a_library_is_named_with_its_line() {
        let receives = frame("recv", "libc.so.6", None);
        let load = frame("load_prices", "prices", Some(12));
        let inside = frame("", "libpq.so.5.15", None);
        let queries = frame("PQexec", "libpq.so.5.15", None);
        let own = [receives.clone(), load.clone()];
        assert_eq!(named(&own).as_deref(), Some("load_prices"));
        let by_library = [receives.clone(), inside.clone(), queries.clone(), load.clone()];
        assert_eq!(named(&by_library).as_deref(), Some("load_prices"));
        // Two libraries, one above the other.
        let ssl = frame("SSL_read", "libssl.so.3", None);
        let by_two = [receives, ssl, inside, queries, load];
        assert_eq!(named(&by_two).as_deref(), Some("load_prices"));
    }

    #[test]
    fn without_a_line_nobody_is_named() {
        let queries = frame("PQexec", "libpq.so.5.15", None);
        let load = frame("load_prices", "prices", None);
        assert_eq!(asking(&[queries.clone(), load]), None);
        assert_eq!(asking(&[queries]), None);
        assert_eq!(asking(&[]), None);
    }
}
