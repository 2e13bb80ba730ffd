//! What one process of Erlang's virtual machine does, and how many messages wait for it: `process_info/1`, `etp-process-info` of the emulator's
//! macros for gdb, `recon:info` and `recon:proc_count`.
//!
//! In: terms or names with values. Out: a statement about the process with the longest queue: what it is in, and that who asked it waits.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::holds;
use crate::gather::{Out, text_of};
use crate::numbers::whole;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("erlang-process", Family::Threads, recognise)
    .about("process_info and etp-process-info of Erlang");

/// Messages from which a process does not keep up, whatever it does.
const MANY_MESSAGES: u64 = 1_000;

/// Messages that wait behind a call that blocks: fewer come between two looks at any server.
const SOME_MESSAGES: u64 = 10;

/// Bytes of a line, and of a name.
const LINE_BYTES: usize = 8_192;
const NAME_CHARS: usize = 100;

/// Calls that keep a process, by module and the beginning of a function, and what they are. The first that fits counts.
const CALLS: [(&str, &str, &str); 16] = [
    ("prim_file", "pread", "reading a file (disk I/O)"),
    ("prim_file", "read", "reading a file (disk I/O)"),
    ("prim_file", "pwrite", "writing a file (disk I/O)"),
    ("prim_file", "write", "writing a file (disk I/O)"),
    ("prim_file", "sync", "waiting until a file is on the disk (fsync)"),
    (
        "prim_file",
        "datasync",
        "waiting until a file is on the disk (fsync)",
    ),
    ("prim_file", "", "in a call of a file system"),
    ("file", "", "in a call of a file system"),
    ("prim_inet", "recv", "waiting for data of a connection"),
    ("prim_inet", "send", "waiting until a peer takes data"),
    ("prim_inet", "connect", "waiting for a connection to be made"),
    ("gen_tcp", "", "waiting for a connection"),
    ("inet_db", "", "looking up a name"),
    ("gen", "do_call", "waiting for the answer of another process"),
    ("gen_server", "call", "waiting for the answer of another process"),
    ("timer", "sleep", "sleeping"),
];

/// Functions in which a process waits for its next message.
const IDLE: [(&str, &str); 4] = [
    ("gen_server", "loop"),
    ("gen_statem", "loop"),
    ("gen_event", "fetch_msg"),
    ("erlang", "hibernate"),
];

fn recognise(head: &[u8]) -> Sureness {
    // The emulator's monitor logs such terms behind what it complains of, which says more than they do.
    if [
        "long_schedule",
        "long_gc",
        "large_heap",
        "busy_port",
        "busy_dist_port",
    ]
    .iter()
    .any(|event| holds(head, event))
    {
        return Sureness::No;
    }
    let macros = holds(head, "Msgq len: ") && holds(head, "Current function: ");
    let terms =
        holds(head, "{current_function,{") && (holds(head, "{message_queue_len,") || holds(head, "[{<0."));
    match (macros, terms) {
        (true, _) => Sureness::Certain,
        (_, true) => Sureness::Likely,
        _ => Sureness::No,
    }
}

#[derive(Debug, Clone, Default)]
struct Process {
    id: String,
    name: String,
    /// Module and function.
    call: Option<(String, String)>,
    /// The call as it is printed.
    printed: String,
    messages: u64,
    /// Whether messages are calls whose senders wait for an answer.
    asked: bool,
    quote: Quote,
}

impl Process {
    fn called(&self) -> String {
        match (self.name.as_str(), self.id.as_str()) {
            ("", "") => "an Erlang process".to_owned(),
            ("", id) => format!("the Erlang process {id}"),
            (name, "") => format!("the Erlang process {name}"),
            (name, id) => format!("the Erlang process {name} ({id})"),
        }
    }

    /// What keeps it; `None` where the function is no call that blocks.
    fn kept_by(&self) -> Option<&'static str> {
        let (module, function) = self.call.as_ref()?;
        let known = CALLS
            .iter()
            .find(|(of, begin, _)| module == of && function.starts_with(begin));
        known.map(|(_, _, what)| *what)
    }

    fn is_idle(&self) -> bool {
        let of_loop = |(module, function): &(String, String)| {
            IDLE.iter().any(|(of, name)| module == of && function == name)
        };
        self.call.as_ref().is_some_and(of_loop)
    }
}

#[derive(Debug, Default)]
struct Reader {
    process: Process,
    worst: Option<Process>,
    /// Whether the rows of recon that follow count messages, and not memory or reductions.
    counts_messages: bool,
    /// Whether a process is passed over of which something else was counted.
    passes: bool,
}

/// Calls of recon that count something of each process, and what they are asked for where they count messages.
const COUNTS: [&str; 2] = ["proc_count(", "proc_window("];
const OF_MESSAGES: &str = "message_queue_len";

fn cut(text: &str) -> String {
    text.trim().chars().take(NAME_CHARS).collect()
}

/// What stands behind a key up to a sign that ends it.
fn behind<'t>(text: &'t str, key: &str, ends: &[char]) -> Option<&'t str> {
    let (_, rest) = text.split_once(key)?;
    rest.split(ends).next()
}

impl Reader {
    /// The process is over: the one with most messages is kept.
    fn close(&mut self) {
        let one = std::mem::take(&mut self.process);
        let most = self.worst.as_ref().map_or(0, |worst| worst.messages);
        if one.messages > 0 && one.messages > most || self.worst.is_none() && one.call.is_some() {
            self.worst = Some(one);
        }
    }

    /// `prim_file:pread_nif/3`.
    fn function(&mut self, printed: &str) {
        let name = printed.split(['/', ' ', '+']).next().unwrap_or_default();
        if let Some((module, function)) = name.split_once(':') {
            self.process.call = Some((cut(module), cut(function)));
            self.process.printed = cut(printed);
        }
    }

    /// A line of the macros of gdb.
    fn macros(&mut self, text: &str, out: &Out<'_>) -> bool {
        let Some((name, value)) = text.split_once(": ") else {
            return false;
        };
        match name {
            "Pid" => {
                self.close();
                self.process.id = cut(value);
                self.process.quote = out.here();
            }
            "Registered name" => self.process.name = cut(value),
            "Current function" => self.function(value),
            "Msgq len" => {
                let count = value.split_whitespace().next().unwrap_or_default();
                self.process.messages = whole(count.as_bytes()).unwrap_or(0);
                self.process.quote = out.here();
            }
            _ => return false,
        }
        true
    }

    /// A line of terms: names and values may stand in one or in many lines.
    fn terms(&mut self, text: &str, out: &Out<'_>) -> bool {
        let mut any = false;
        if let Some(asked) = COUNTS.iter().find_map(|call| text.split_once(call)) {
            self.counts_messages = asked.1.trim_start().starts_with(OF_MESSAGES);
            return self.counts_messages;
        }
        // `[{<0.50.0>,81233,[mailer,{current_function,{mail,send,2}},` of recon: the process, what was counted, and what it does.
        if let Some(row) = text.trim_start_matches(['[', ' ', ',']).strip_prefix("{<")
            && let Some((id, rest)) = row.split_once(">,")
            && let Some((count, rest)) = rest.split_once(",[")
            && let Some(messages) = whole(count.trim().as_bytes())
        {
            self.close();
            self.passes = !self.counts_messages;
            self.process.id = format!("<{}>", cut(id));
            self.process.messages = messages;
            self.process.quote = out.here();
            let name = rest.split([',', '{']).next().unwrap_or_default();
            self.process.name = cut(name);
            any = true;
        }
        if self.passes
            && !["{registered_name,", "{message_queue_len,"]
                .iter()
                .any(|key| text.contains(key))
        {
            self.process = Process::default();
            return false;
        }
        self.passes = false;
        if let Some(name) = behind(text, "{registered_name,", &['}']) {
            self.close();
            self.process.name = cut(name.trim_matches(['[', ']', '\'']));
            self.process.quote = out.here();
            any = true;
        }
        if let Some(call) = behind(text, "{current_function,{", &['}']) {
            let mut parts = call.split(',').map(|part| part.trim().trim_matches('\''));
            if let (Some(module), Some(function)) = (parts.next(), parts.next()) {
                self.process.call = Some((cut(module), cut(function)));
                let arity = parts.next().unwrap_or_default();
                self.process.printed = cut(&format!("{module}:{function}/{arity}"));
                any = true;
            }
        }
        if let Some(count) = behind(text, "{message_queue_len,", &['}']) {
            self.process.messages = whole(count.trim().as_bytes()).unwrap_or(0);
            self.process.quote = out.here();
            any = true;
        }
        any
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..LINE_BYTES).unwrap_or(line));
        let text = text.trim();
        let asked = text.contains("'$gen_call'");
        self.process.asked |= asked;
        match self.macros(text, out) || self.terms(text, out) || asked {
            true => Understood::Evidence,
            false => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        let Some(one) = self.worst.take() else { return };
        let messages = match one.messages {
            0 => "no message waits".to_owned(),
            1 => "1 message waits".to_owned(),
            more => format!("{more} messages wait"),
        };
        let place = match one.printed.as_str() {
            "" => String::new(),
            printed => format!(" ({printed})"),
        };
        let doing = match one.kept_by() {
            Some(what) => format!("is {what}{place}"),
            None if one.is_idle() => format!("waits for its next message{place}"),
            None if place.is_empty() => "does something that is not shown".to_owned(),
            None => format!("is in {}", one.printed),
        };
        let kept = one.kept_by().is_some() && one.messages >= SOME_MESSAGES;
        let (kind, behind) = match kept || one.messages >= MANY_MESSAGES {
            true if one.asked => (
                StatementKind::Stalled,
                " in its mailbox, so its callers wait for their answers",
            ),
            true => (
                StatementKind::Stalled,
                " in its mailbox, so whoever needs it waits",
            ),
            // Somebody may wait for this call, however few ask.
            false if one.kept_by().is_some() => (StatementKind::Took, " in its mailbox"),
            false => (StatementKind::WithinNorm, " in its mailbox"),
        };
        let text = format!("{} {doing}, and {messages}{behind}", one.called());
        out.statement(statements::one(kind, None, one.quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> (StatementKind, String) {
        let reading = read_text("e", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "erlang-process");
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{reading:?}")
        };
        (one.kind, one.text.clone())
    }

    #[test]
    fn of_the_macros_of_gdb() {
        let text = "(gdb) etp-process-info-x (Process*)0x7f10\n  Pid: <0.811.0>\n  State: dirty-io-proc | active\n\n  Flags:\n  \
            Current function: prim_file:datasync_nif/1\n  Heap size: 987\n  Msgq len: 44 (inner=2, outer=42)\n  \
            [{'$gen_call',{<0.1.0>,#Ref<0.3.2.5>},flush} @from= <0.1.0>]\n";
        let told = "the Erlang process <0.811.0> is waiting until a file is on the disk (fsync) (prim_file:datasync_nif/1), and 44 messages wait in \
                    its mailbox, so its callers wait for their answers";
        assert_eq!(said(text), (StatementKind::Stalled, told.to_owned()));
    }

    #[test]
    fn of_terms_of_one_process_and_of_recon() {
        let text = "(rabbit@b1)1> erlang:process_info(whereis(mailer)).\n[{registered_name,mailer},\n {current_function,{gen,do_call,4}},\n \
            {initial_call,{proc_lib,init_p,5}},\n {status,waiting},\n {message_queue_len,812},\n {links,[<0.9.0>]}]\n";
        let told = "the Erlang process mailer is waiting for the answer of another process (gen:do_call/4), and 812 messages wait in its mailbox, \
                    so whoever needs it waits";
        assert_eq!(said(text), (StatementKind::Stalled, told.to_owned()));
        let text = "1> recon:proc_count(message_queue_len, 2).\n[{<0.50.0>,81233,\n  [mailer,\n   {current_function,{mail,render,2}},\n   \
            {initial_call,{proc_lib,init_p,5}}]},\n {<0.51.0>,3,[{current_function,{gen_server,loop,7}},{initial_call,{x,y,1}}]}]\n";
        let (kind, told) = said(&text.replace(",\n  [mailer,\n   {", ",[mailer,{"));
        assert_eq!(kind, StatementKind::Stalled);
        assert!(
            told.starts_with(
                "the Erlang process mailer (<0.50.0>) is in mail:render/2, and 81233 messages wait"
            ),
            "{told}"
        );
    }

    #[test]
    fn what_else_recon_counts_is_no_queue() {
        let rows = "[{<0.50.0>,81233784,[mailer,{current_function,{gen_server,loop,7}},{initial_call,{proc_lib,init_p,5}}]},\n {<0.51.0>,372344,\
            [{current_function,{mail,render,2}},\n  {initial_call,{x,y,1}}]}]\n";
        for command in [
            "1> recon:proc_count(memory, 2).\n",
            "1> recon:proc_window(reductions, 2, 500).\n",
            "",
        ] {
            let reading = read_text("e", format!("{command}{rows}").as_bytes());
            let all = &reading.observed.statements;
            assert!(all.iter().all(|one| !one.text.contains("message")), "{all:?}");
        }
    }

    #[test]
    fn one_that_keeps_up_is_well() {
        let text = "[{registered_name,mailer},{current_function,{gen_server,loop,7}},{message_queue_len,0},{status,waiting}]\n";
        assert_eq!(said(text).0, StatementKind::WithinNorm);
        let text =
            "  Pid: <0.811.0>\n  Current function: prim_file:pread_nif/3\n  Msgq len: 2 (inner=2, outer=0)\n";
        assert_eq!(said(text).0, StatementKind::Took);
        let unknown = text.replace("prim_file:pread_nif/3", "unknown");
        let told = "the Erlang process <0.811.0> does something that is not shown, and 2 messages wait in its mailbox";
        assert_eq!(said(&unknown), (StatementKind::WithinNorm, told.to_owned()));
        let text =
            "[{registered_name,mailer},\n {current_function,{gen,do_call,4}},\n {message_queue_len,0}]\n";
        let told = "the Erlang process mailer is waiting for the answer of another process (gen:do_call/4), and no message waits in its mailbox";
        assert_eq!(said(text), (StatementKind::Took, told.to_owned()));
        for text in [
            "Msgq len: x\nCurrent function: :",
            "{current_function,{\n{message_queue_len,",
            "[{<0.>,,[{current_function,{,,}}",
        ] {
            let _ = read_text("e", text.as_bytes());
        }
    }

    #[test]
    fn what_the_monitor_logs_is_no_list_of_processes() {
        let text = "10:00:01 [warning] [SYSMON] long_schedule warning: pid = <0.2.0>, info: [{timeout,2177},\n{in,undefined}]\n\
            [{current_function,{gen_server,loop,7}},\n {message_queue_len,0}]\n";
        let observed = read_text("e", text.as_bytes()).observed;
        assert_ne!(observed.sources[0].format, "erlang-process");
        let told = observed.statements.iter().filter_map(|one| one.known.as_ref());
        assert!(
            told.into_iter().any(|known| known.means.contains("2.18 s")),
            "{observed:?}"
        );
    }
}
