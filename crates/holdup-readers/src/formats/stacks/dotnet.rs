//! Threads of a .NET program: `clrstack -all` of `dotnet-dump` and SOS, `dotnet-stack report`, stacks that Visual Studio copies.
//!
//! In: headers of threads and frames, innermost first; or the list of held locks (`syncblk`). Out: a snapshot; a frame is
//! `Type.Method(file:line)` or `Type.Method(module)`. Who holds a lock for which others wait is a statement.

use super::dump::{Dump, owned};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::words;
use crate::statements;
use holdup_evidence::observed::{SeenThread, SnapshotKind, StatementKind};
use memchr::memmem::{find, rfind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("dotnet-stacks", Family::Threads, recognise)
    .about("the threads of a .NET program")
    .openings(&["OS Thread Id: 0x"]);

/// The heading of the list of locks.
const LOCKS: [&[u8]; 3] = [b"Index", b"SyncBlock", b"MonitorHeld"];

/// What stands around stacks.
const IGNORABLE: [&[u8]; 6] = [
    b"Child SP",
    b"Child-SP",
    b"Total ",
    b"CCW ",
    b"RCW ",
    b"[Native Frames]",
];

/// Frames in a row without a header that make a stack.
const MIN_FRAMES: usize = 2;

fn recognise(head: &[u8]) -> Sureness {
    let mut frames = 0;
    let mut header = false;
    for line in head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if is_locks(line) {
            return Sureness::Certain;
        }
        header |= thread(line).is_some();
        frames = match frame(line) {
            Some(_) if header => return Sureness::Certain,
            Some(_) => frames + 1,
            None => 0,
        };
        if frames >= MIN_FRAMES {
            return Sureness::Likely;
        }
    }
    Sureness::No
}

#[derive(Debug)]
struct Reader {
    dump: Dump,
    /// In the list of locks.
    locks: bool,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            dump: Dump::of(SnapshotKind::Dotnet),
            locks: false,
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Understood::Ignorable;
        }
        if is_locks(line) {
            self.locks = true;
            return Understood::Evidence;
        }
        if let Some(thread) = thread(line) {
            self.locks = false;
            self.dump.begin(thread, out);
            return Understood::Evidence;
        }
        if let Some(held) = held(line).filter(|_| self.locks) {
            if held.waiters > 0 {
                out.statement(statements::one(
                    StatementKind::Stalled,
                    None,
                    out.here(),
                    held.sentence(),
                ));
            }
            return Understood::Evidence;
        }
        if let Some(frame) = frame(line) {
            if self.dump.thread().is_none() {
                self.dump.begin(SeenThread::default(), out);
            }
            self.dump.frame(&frame);
            return Understood::Evidence;
        }
        let rule = line.iter().all(|byte| *byte == b'-');
        match rule || IGNORABLE.iter().any(|start| line.starts_with(start)) || is_place(line) {
            true => Understood::Ignorable,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.dump.end(out);
    }
}

/// `OS Thread Id: 0x5a1f (12)`, `Thread (0x5A1F):`.
fn thread(line: &[u8]) -> Option<SeenThread> {
    let (hex, number) = match line.strip_prefix(b"OS Thread Id: 0x") {
        Some(rest) => {
            let mut parts = words(rest);
            let hex = parts.next()?;
            let number = parts.next().and_then(|number| number.strip_prefix(b"("));
            let number = number.and_then(|number| number.strip_suffix(b")"));
            (hex, number.and_then(crate::numbers::whole))
        }
        None => (line.strip_prefix(b"Thread (0x")?.strip_suffix(b"):")?, None),
    };
    let tid = u32::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?;
    Some(SeenThread {
        tid: Some(tid),
        number,
        ..SeenThread::default()
    })
}

fn is_locks(line: &[u8]) -> bool {
    LOCKS.iter().copied().eq(words(line).take(LOCKS.len()))
}

/// A lock that a thread holds.
struct Held<'a> {
    waiters: u64,
    tid: &'a [u8],
    number: &'a [u8],
    class: &'a [u8],
}

impl Held<'_> {
    fn sentence(&self) -> String {
        let (wait, them) = match self.waiters {
            1 => ("1 thread waits", "it"),
            _ => ("threads wait", "them"),
        };
        let count = match self.waiters {
            1 => String::new(),
            count => format!("{count} "),
        };
        format!(
            "{count}{wait} for the lock of a {}, which thread {} (0x{}) holds; its stack shows what keeps {them} waiting",
            owned(self.class),
            owned(self.number),
            owned(self.tid),
        )
    }
}

/// `  12 000001F6 3 1 000001E5 5a1f 12 0000021B System.Object`: one more than twice as many wait as the third number says.
fn held(line: &[u8]) -> Option<Held<'_>> {
    let mut cells = words(line);
    crate::numbers::whole(cells.next()?)?;
    cells.next()?;
    let monitors = crate::numbers::whole(cells.next()?)?;
    let (_, _, tid, number) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
    cells.next()?;
    let class = cells.next()?;
    Some(Held {
        waiters: monitors.saturating_sub(1) / 2,
        tid,
        number,
        class,
    })
}

/// Digits of the stack pointer and the address in front of a frame, of 64 bits and of 32.
const ADDRESS: usize = 16;
const SHORT_ADDRESS: usize = 8;

/// A frame as it is kept.
fn frame(line: &[u8]) -> Option<Vec<u8>> {
    let hex =
        |word: &[u8]| matches!(word.len(), ADDRESS | SHORT_ADDRESS) && word.iter().all(u8::is_ascii_hexdigit);
    let mut rest = line;
    let mut addresses = 0;
    while let Some(word) = words(rest).next().filter(|word| hex(word)) {
        rest = rest.get(word.len()..)?.trim_ascii_start();
        addresses += 1;
    }
    // One word of eight digits may be anything.
    if addresses == 1 && words(line).next().is_some_and(|word| word.len() == SHORT_ADDRESS) {
        return None;
    }
    // `[HelperMethodFrame_1OBJ: 00007fa561cb5990] System.Threading.Monitor.ReliableEnter(…)`.
    let mut of_runtime = false;
    if addresses > 0
        && rest.starts_with(b"[")
        && let Some(end) = find(rest, b"] ")
    {
        of_runtime = true;
        rest = rest.get(end + 2..)?;
    }
    let (module, call) = match find(rest, b"!") {
        Some(at) if is_module(rest.get(..at)?) => (rest.get(..at)?, rest.get(at + 1..)?),
        _ => (&b""[..], rest),
    };
    // Without an address and a module a line may be anything.
    if addresses == 0 && module.is_empty() {
        return None;
    }
    let open = call.iter().position(|byte| *byte == b'(').unwrap_or(call.len());
    let name = words(call.get(..open)?).next()?;
    let named = name.contains(&b'.') || find(name, b"::").is_some() || open < call.len() || of_runtime;
    if !named {
        return None;
    }
    let place = place(call).unwrap_or_else(|| owned(module.strip_suffix(b".dll").unwrap_or(module)));
    let mut kept = name.to_vec();
    kept.push(b'(');
    kept.extend_from_slice(place.as_bytes());
    kept.push(b')');
    Some(kept)
}

fn is_module(name: &[u8]) -> bool {
    !name.is_empty()
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// `[/src/Listener.cs @ 35]`, ` Line 156`.
fn place(call: &[u8]) -> Option<String> {
    if let Some(at) = rfind(call, b" [") {
        let inner = call.get(at + 2..)?.strip_suffix(b"]")?;
        let split = rfind(inner, b" @ ")?;
        let (file, line) = (inner.get(..split)?, inner.get(split + 3..)?);
        let file = file.rsplit(|byte| matches!(byte, b'/' | b'\\')).next()?;
        return Some(format!("{}:{}", owned(file), owned(line)));
    }
    None
}

/// A source file alone: what SOS prints below a frame.
fn is_place(line: &[u8]) -> bool {
    line.starts_with(b"[") && line.ends_with(b"]") && find(line, b" @ ").is_some()
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn frames(text: &str) -> Vec<Vec<String>> {
        let observed = read_text("t", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "dotnet-stacks", "{text}");
        let [dump] = &observed.snapshots[..] else {
            panic!("{:?}", observed.snapshots)
        };
        let stacks = dump.threads.iter().filter_map(|thread| thread.stack);
        stacks
            .map(|stack| observed.stacks.frames(stack).map(str::to_owned).collect())
            .collect()
    }

    #[test]
    fn stacks_of_a_debugger_with_addresses() {
        let text = "OS Thread Id: 0x1b2 (7)\n        Child SP               IP Call Site\n\
            00007F00AA000010                  [HelperMethodFrame_1OBJ: 00007f00aa000010] System.Threading.Monitor.ReliableEnter(System.Object, Boolean ByRef)\n\
            00007F00AA000120 00007F0011223344 Shop.dll!Shop.Cart.Add(Int32) + 33 [/src/Cart.cs @ 12]\n\
            00007F00AA000220 00007F0011223355 libcoreclr.so!AwareLock::Enter() + 222\n";
        assert_eq!(
            frames(text),
            [[
                "System.Threading.Monitor.ReliableEnter()",
                "Shop.Cart.Add(Cart.cs:12)",
                "AwareLock::Enter(libcoreclr.so)",
            ]]
        );
    }

    #[test]
    fn a_report_with_modules_and_without_addresses() {
        let text = "Thread (0x4D):\n  [Native Frames]\n  System.Private.CoreLib!System.Threading.Thread.Sleep(int32)\n  shop!Shop.Poller.Run()\n\n\
            Thread (0x4E):\n  System.Net.Sockets!System.Net.Sockets.SocketAsyncEngine.EventLoop()\n";
        assert_eq!(frames(text).len(), 2);
        assert_eq!(frames(text)[0][1], "Shop.Poller.Run(shop)");
    }

    #[test]
    fn who_holds_a_lock_for_which_others_wait() {
        let text = "Index         SyncBlock MonitorHeld Recursion Owning Thread Info          SyncBlock Owner\n\
            \x20 14 00007f00aa000010            5         1 00007f00aa00bb10 1b2   7   00007f00bb000010 Shop.Cart\n";
        let said = read_text("t", text.as_bytes()).observed.statements;
        assert!(
            said[0]
                .text
                .starts_with("2 threads wait for the lock of a Shop.Cart, which thread 7 (0x1b2) holds"),
            "{said:?}"
        );
    }
}
