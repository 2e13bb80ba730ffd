//! A crash dump of Erlang's virtual machine (`erl_crash.dump`).
//!
//! In: a heading with the reason (`Slogan`), then sections of names and values, one for each process. Out: why it ended, and of the processes
//! that were there the one with the longest queue of messages and the one with most memory.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::whole;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("erlang-crash-dump", Family::Threads, recognise)
    .about("a crash dump of Erlang's virtual machine")
    .openings(&["=erl_crash_dump:"]);

/// What it begins with.
const OPENING: &[u8] = b"=erl_crash_dump:";

/// Bytes of a value that is told.
const VALUE: usize = 400;

/// Messages in a queue from which a process does not keep up.
const MIN_MESSAGES: u64 = 1_000;

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(memchr::memmem::find(head, OPENING).is_some())
}

/// What is known of a process.
#[derive(Debug, Clone, Default)]
struct Process {
    id: String,
    name: String,
    at: String,
    messages: u64,
    /// Words of memory of its stack and heap.
    words: u64,
    quote: Quote,
}

impl Process {
    fn called(&self) -> String {
        match self.name.as_str() {
            "" => format!("process {}", self.id),
            name => format!("process {name} ({})", self.id),
        }
    }

    fn place(&self) -> String {
        match self.at.as_str() {
            "" => String::new(),
            at => format!(", in {at}"),
        }
    }
}

#[derive(Debug, Default)]
struct Reader {
    slogan: Option<(String, Quote)>,
    process: Option<Process>,
    queue: Option<Process>,
    large: Option<Process>,
}

impl Reader {
    fn close(&mut self) {
        let Some(process) = self.process.take() else {
            return;
        };
        if self
            .queue
            .as_ref()
            .is_none_or(|most| process.messages > most.messages)
        {
            self.queue = Some(process.clone());
        }
        if self.large.as_ref().is_none_or(|most| process.words > most.words) {
            self.large = Some(process);
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..VALUE).unwrap_or(line));
        let text = text.trim();
        if let Some(section) = text.strip_prefix('=') {
            self.close();
            if let Some(id) = section.strip_prefix("proc:") {
                self.process = Some(Process {
                    id: id.to_owned(),
                    quote: out.here(),
                    ..Process::default()
                });
            }
            return Understood::Evidence;
        }
        let Some((name, value)) = text.split_once(": ") else {
            return Understood::Ignorable;
        };
        if name == "Slogan" {
            self.slogan = Some((value.to_owned(), out.here()));
            return Understood::Evidence;
        }
        let Some(process) = &mut self.process else {
            return Understood::Ignorable;
        };
        match name {
            "Name" => value.clone_into(&mut process.name),
            "Message queue length" => process.messages = whole(value.as_bytes()).unwrap_or(0),
            "Stack+heap" => process.words = whole(value.as_bytes()).unwrap_or(0),
            // `0x00007f (gen_server:loop/7 + 123)`.
            "Program counter" => {
                let call = value.split_once('(').map_or(value, |(_, call)| call);
                let end = call.find([' ', ')']).unwrap_or(call.len());
                call.get(..end).unwrap_or(call).clone_into(&mut process.at);
            }
            "Current call" => value.clone_into(&mut process.at),
            _ => return Understood::Ignorable,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        let queue = self.queue.take().filter(|queue| queue.messages >= MIN_MESSAGES);
        let large = self.large.take().filter(|large| large.words > 0);
        if let Some((slogan, quote)) = self.slogan.take() {
            let behind = queue.as_ref().map_or_else(String::new, |queue| {
                format!(
                    "; {} messages waited for {}{}",
                    queue.messages,
                    queue.called(),
                    queue.place()
                )
            });
            let text = format!("the Erlang virtual machine ended: {slogan}{behind}");
            out.statement(statements::one(StatementKind::Ended, None, quote, text));
        }
        if let Some(queue) = queue {
            let text = format!(
                "{} messages wait for {}{}",
                queue.messages,
                queue.called(),
                queue.place()
            );
            out.statement(statements::one(StatementKind::Stalled, None, queue.quote, text));
        }
        if let Some(large) = large {
            let text = format!(
                "{} has most memory: {} words of stack and heap{}",
                large.called(),
                large.words,
                large.place()
            );
            out.statement(statements::one(StatementKind::Took, None, large.quote, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn why_it_ended_and_who_did_not_keep_up() {
        let text = "=erl_crash_dump:0.5\nSun Aug 25 00:57:34 2024\nSlogan: eheap_alloc: Cannot allocate 800 bytes of memory (of type \"heap\").\n\
            System version: Erlang/OTP 26\n=memory\ntotal: 99\n=proc:<0.12.0>\nState: Waiting\nName: small\nMessage queue length: 3\nStack+heap: 233\n\
            =proc:<0.44.0>\nState: Running\nName: mailer\nMessage queue length: 81233\nStack+heap: 99233\nProgram counter: 0x00f (mail:send/2 + 12)\n=end\n";
        let reading = read_text("e", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "erlang-crash-dump");
        let said = &reading.observed.statements[0].text;
        assert_eq!(
            said,
            "the Erlang virtual machine ended: eheap_alloc: Cannot allocate 800 bytes of memory (of type \"heap\").; 81233 messages waited for process mailer (<0.44.0>), in mail:send/2"
        );
    }

    #[test]
    fn a_dump_that_is_cut_tells_what_it_has() {
        let said = read_text("e", b"=erl_crash_dump:0.5\nSlogan: erl_child_setup closed\n")
            .observed
            .statements;
        assert_eq!(said.len(), 1, "{said:?}");
        for text in [
            "=erl_crash_dump:",
            "=erl_crash_dump:0.5\n=proc:",
            "=erl_crash_dump:0.5\n=proc:x\nProgram counter: (\n",
        ] {
            let _ = read_text("e", text.as_bytes());
        }
    }
}
