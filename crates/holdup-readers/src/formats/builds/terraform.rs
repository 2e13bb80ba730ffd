//! `terraform apply` and its kin (OpenTofu): which resource took longest, is still being made, or failed.
//!
//! In: `aws_db.main: Still creating... [10m0s elapsed]`, `aws_db.main: Creation complete after 12m3s [id=…]`, `Error: …` with the resource below.
//! Out: a statement about each that failed, about those of which no end stands there, and about the longest. Source: `ui_hook` of Terraform.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{Largest, any_line, holds, length, name_of, ns_of, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;
use std::collections::BTreeMap;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("terraform", Family::Times, recognise).about("terraform apply");

/// Resources that are being made at once, and errors that are told.
const MAX_RESOURCES: usize = 5_000;
const MAX_ERRORS: usize = 20;

fn recognise(head: &[u8]) -> Sureness {
    let may = holds(head, " elapsed]") || holds(head, " complete after ");
    Sureness::certain_if(
        may && any_line(head, |line| {
            Line::of(line).is_some_and(|line| line.event != Event::Begun)
        }),
    )
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    Begun,
    /// Still not done, or done, after seconds.
    Goes(f64),
    Done(f64),
}

#[derive(Debug, PartialEq)]
struct Line<'a> {
    resource: &'a str,
    /// `creating`, `destroying`, `modifying`, `reading`.
    does: String,
    event: Event,
}

/// What is done to a resource, by the word of its end.
const ENDS: [(&str, &str); 5] = [
    ("Creation complete after ", "creating"),
    ("Destruction complete after ", "destroying"),
    ("Modifications complete after ", "modifying"),
    ("Read complete after ", "reading"),
    ("Provisioning complete after ", "provisioning"),
];

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Option<Line<'a>> {
        let (resource, rest) = line.split_once(": ")?;
        let resource = resource.trim();
        if resource.is_empty() || resource.contains(char::is_whitespace) || !resource.contains('.') {
            return None;
        }
        if let Some(rest) = rest.strip_prefix("Still ") {
            let (does, rest) = rest.split_once("...")?;
            // `[10m0s elapsed]`, `[id=i-0a1, 10s elapsed]`.
            let inner = rest.trim().strip_prefix('[')?.split_once(" elapsed")?.0;
            let time = inner.rsplit(' ').next()?;
            return Some(Line {
                resource,
                does: name_of(does),
                event: Event::Goes(length(time)?),
            });
        }
        for (words, does) in ENDS {
            if let Some(rest) = rest.strip_prefix(words) {
                let time = rest.split([' ', '[']).next()?;
                return Some(Line {
                    resource,
                    does: does.to_owned(),
                    event: Event::Done(length(time)?),
                });
            }
        }
        let (does, _) = rest.split_once("...")?;
        let begins = ["Creating", "Destroying", "Modifying", "Reading"].contains(&does);
        begins.then(|| Line {
            resource,
            does: does.to_ascii_lowercase(),
            event: Event::Begun,
        })
    }
}

#[derive(Debug, Default)]
struct Reader {
    /// Those that are not done: what is done to them, and the seconds so far.
    open: BTreeMap<String, (String, f64, Quote)>,
    done: Largest,
    does: String,
    /// The error that is being read, and those that are complete.
    error: Option<(String, String, Quote)>,
    errors: Vec<(String, String, Quote)>,
}

impl Reader {
    fn close_error(&mut self) {
        if let Some(error) = self.error.take().filter(|_| self.errors.len() < MAX_ERRORS) {
            self.errors.push(error);
        }
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        // Errors stand in a frame of lines.
        let bare = text.trim_start_matches(['│', '╷', '╵', '|', ' ']).trim();
        if let Some(line) = Line::of(bare) {
            let resource = name_of(line.resource);
            match line.event {
                Event::Done(seconds) => {
                    self.open.remove(&resource);
                    if self.done.take(seconds, &resource, out.here()) {
                        self.does = line.does;
                    }
                }
                event => {
                    let seconds = if let Event::Goes(seconds) = event {
                        seconds
                    } else {
                        0.0
                    };
                    if self.open.len() < MAX_RESOURCES || self.open.contains_key(&resource) {
                        self.open.insert(resource, (line.does, seconds, out.here()));
                    } else {
                        out.account().left_out += 1;
                    }
                }
            }
            return Understood::Evidence;
        }
        if let Some(message) = bare.strip_prefix("Error: ") {
            self.close_error();
            self.error = Some((String::new(), name_of(message), out.here()));
            return Understood::Evidence;
        }
        if let Some(with) = bare.strip_prefix("with ").filter(|with| with.ends_with(',')) {
            if let Some((resource, ..)) = &mut self.error {
                *resource = name_of(with.trim_end_matches(','));
            }
            self.close_error();
            return Understood::Evidence;
        }
        // What the commands of a resource print is theirs: `desk_host.main (local-exec): …`.
        match bare.contains("-exec): ") {
            true => Understood::No,
            false => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close_error();
        let mut read = std::mem::take(self);
        let told = |seconds: f64| duration(ns_of(seconds));
        for (resource, message, quote) in read.errors {
            let after = read
                .open
                .remove(&resource)
                .filter(|(_, seconds, _)| *seconds > 0.0);
            let after = after.map_or_else(String::new, |(does, seconds, _)| {
                format!(" after {} of {does}", told(seconds))
            });
            let of = if resource.is_empty() {
                "a resource"
            } else {
                resource.as_str()
            };
            let text = format!("{of} failed{after}: {message}");
            out.statement(statements::one(StatementKind::Failed, None, quote, text));
        }
        let longest = read
            .open
            .iter()
            .max_by(|(_, one), (_, other)| one.1.total_cmp(&other.1));
        if let Some((resource, (does, seconds, quote))) = longest.filter(|(_, one)| one.1 > 0.0) {
            let more = match read.open.len() {
                1 => String::new(),
                count => format!("; {count} resources are not done"),
            };
            let text = format!(
                "{resource} is still {does} after {}, and this output does not have its end{more}",
                told(*seconds)
            );
            let ns = Some(ns_of(*seconds));
            out.statement(statements::one(StatementKind::Took, ns, quote.clone(), text));
        }
        if let Some((seconds, resource, quote)) = &read.done.first {
            let mut text = format!("{} {resource} took {}", read.does, told(*seconds));
            if read.done.count > 1 {
                text.push_str(&format!(", the longest of {} resources", read.done.count));
            }
            text.push_str(&read.done.and_next(told));
            out.statement(statements::one(
                StatementKind::Took,
                Some(ns_of(*seconds)),
                quote.clone(),
                text,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const APPLY: &str = "shop_net.main: Creating...\nshop_net.main: Creation complete after 3s [id=n-1]\nmodule.db.shop_db.main[0]: Creating...\n\
        module.db.shop_db.main[0]: Still creating... [10s elapsed]\nmodule.db.shop_db.main[0]: Still creating... [12m20s elapsed]\n";

    #[test]
    fn what_is_not_done_and_what_took_longest() {
        let reading = read_text("t", APPLY.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "terraform");
        assert_eq!(
            reading.texts(),
            [
                "module.db.shop_db.main[0] is still creating after 12 min 20 s, and this output does not have its end",
                "creating shop_net.main took 3.00 s",
            ]
        );
        let done = format!("{APPLY}module.db.shop_db.main[0]: Creation complete after 12m31s [id=d-1]\n");
        assert_eq!(
            read_text("t", done.as_bytes()).texts(),
            [
                "creating module.db.shop_db.main[0] took 12 min 31 s, the longest of 2 resources; next shop_net.main, 3.00 s"
            ]
        );
    }

    #[test]
    fn the_resource_that_failed() {
        let text = format!(
            "{APPLY}╷\n│ Error: waiting for it: timeout\n│ \n│   with module.db.shop_db.main[0],\n│   on main.tf line 3\n╵\n"
        );
        let reading = read_text("t", text.as_bytes());
        assert_eq!(
            reading.texts()[0],
            "module.db.shop_db.main[0] failed after 12 min 20 s of creating: waiting for it: timeout"
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Failed);
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "a: Still creating... [soon elapsed]\n",
            "The sync: Creation complete after 3s\n",
        ] {
            assert_ne!(
                read_text("t", text.as_bytes()).observed.sources[0].format,
                "terraform"
            );
        }
    }
}
