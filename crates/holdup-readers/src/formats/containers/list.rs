//! `docker ps`, `podman ps` and `crictl ps -a`: which containers begin anew again and again, have ended, or are not healthy.
//!
//! In: a heading with `STATUS` and `NAMES`, or with `STATE` and `ATTEMPT`; rows. Out: a statement for each container that is not up; else that
//! all are. Source: `cli/command/formatter/container.go` and the health checks of Docker's documentation, `cmd/crictl/container.go`.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, name_of, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("container-list", Family::Host, recognise)
    .about("docker ps, podman ps, crictl ps");

/// Rows whose trouble is told; of more, those that come first.
const MAX_TOLD: usize = 20;

/// The exit status of what was killed: 128 and the number of SIGKILL, as shells count it.
const KILLED: &str = "137";

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(any_line(head, |line| Heading::of(line).is_some()))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Heading {
    Docker,
    Cri,
}

impl Heading {
    fn of(line: &str) -> Option<Heading> {
        let begins =
            line.starts_with("CONTAINER ID ") && line.contains(" STATUS ") && line.ends_with(" NAMES");
        let of_cri = line.starts_with("CONTAINER ") && line.contains(" STATE ") && line.contains(" ATTEMPT ");
        match (begins, of_cri) {
            (true, _) => Some(Heading::Docker),
            (false, true) => Some(Heading::Cri),
            (false, false) => None,
        }
    }
}

/// What a row says of its container.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    trouble: Option<(StatementKind, String)>,
}

impl Row {
    fn of(heading: Heading, line: &str) -> Option<Row> {
        match heading {
            Heading::Docker => Row::of_docker(line),
            Heading::Cri => Row::of_cri(line),
        }
    }

    /// The state begins a column, so that two blanks stand before it.
    fn of_docker(line: &str) -> Option<Row> {
        use StatementKind as K;
        let name = line.split_whitespace().next_back()?;
        let cell = |begin: &str| {
            let at = line.find(&format!("  {begin}"))?;
            let rest = line.get(at + 2..)?;
            Some(rest.split("   ").next().unwrap_or(rest).trim().to_owned())
        };
        let code = |cell: &str| {
            let (_, rest) = cell.split_once('(')?;
            Some(rest.split_once(')')?.0.to_owned())
        };
        let killed = |code: &Option<String>| match code.as_deref() {
            Some(KILLED) => {
                ": it was killed (137 is SIGKILL, which the kernel sends where memory is used up)"
            }
            _ => "",
        };
        let trouble = if let Some(cell) = cell("Restarting (") {
            let code = code(&cell);
            Some((
                K::Ended,
                format!("is begun anew again and again, {cell}{}", killed(&code)),
            ))
        } else if let Some(cell) = cell("Exited (") {
            let code = code(&cell);
            match code.as_deref() {
                Some("0") => None,
                Some(KILLED) => Some((K::Ended, format!("has ended, {cell}{}", killed(&code)))),
                _ => Some((K::Failed, format!("has ended, {cell}"))),
            }
        } else if let Some(cell) = cell("Up ") {
            match () {
                () if cell.contains("(unhealthy)") => {
                    Some((K::Failed, format!("fails its health check, {cell}")))
                }
                () if cell.contains("(Paused)") => Some((K::Stalled, format!("is paused, {cell}"))),
                () => None,
            }
        } else if let Some(cell) = cell("Dead") {
            Some((K::Failed, format!("could not be removed, {cell}")))
        } else {
            // Created and not begun, or being removed.
            cell("Created").or_else(|| cell("Removal"))?;
            None
        };
        Some(Row {
            name: name_of(name),
            trouble,
        })
    }

    /// `87d3992f84f74  busybox@sha256:…  8 seconds ago  Exited  busybox  12  f84dd361f8dc5`.
    fn of_cri(line: &str) -> Option<Row> {
        let words: Vec<&str> = line.split_whitespace().take(60).collect();
        let states = ["Running", "Exited", "Created", "Unknown"];
        let at = words.iter().position(|word| states.contains(word))?;
        let (state, name) = (words.get(at)?, words.get(at + 1)?);
        let attempt: u64 = words.get(at + 2)?.parse().ok()?;
        let trouble = match (*state, attempt) {
            ("Exited", 1..) => Some((
                StatementKind::Ended,
                format!("has ended, and was begun anew {attempt} times"),
            )),
            ("Unknown", _) => Some((StatementKind::Unreachable, "has no known state".to_owned())),
            _ => None,
        };
        Some(Row {
            name: name_of(name),
            trouble,
        })
    }
}

#[derive(Debug, Default)]
struct Reader {
    heading: Option<Heading>,
    rows: u64,
    told: Vec<Statement>,
    quote: Option<Quote>,
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let Some(quote) = read.quote else { return };
        if read.told.is_empty() {
            let text = format!(
                "none of {} containers fails, is killed or is begun anew again and again",
                read.rows
            );
            out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
        }
        read.told.into_iter().for_each(|one| out.statement(one));
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(heading) = Heading::of(&text) {
            self.close(out);
            self.heading = Some(heading);
            return Understood::Evidence;
        }
        let Some(row) = self.heading.and_then(|heading| Row::of(heading, &text)) else {
            return Understood::No;
        };
        self.rows += 1;
        if self.quote.is_none() {
            self.quote = Some(out.here());
        }
        if let Some((kind, trouble)) = row.trouble {
            let text = format!("the container {} {trouble}", row.name);
            match self.told.len() < MAX_TOLD {
                true => self.told.push(statements::one(kind, None, out.here(), text)),
                false => out.account().left_out += 1,
            }
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind as K;

    const DOCKER: &str = "CONTAINER ID   IMAGE          COMMAND                  CREATED       STATUS                            PORTS      NAMES\n\
        3b1d0a9c7e21   shop/search    \"/entry.sh\"              2 days ago    Restarting (137) 12 seconds ago              search_1\n\
        a0cc51d2f6b8   shop/web       \"nginx -g 'daemon of\u{2026}\"   2 days ago    Up 2 days (unhealthy)             80/tcp     web_1\n\
        e77f2b90d1c4   redis:7        \"docker-entrypoint.s\u{2026}\"   2 days ago    Up 2 days                         6379/tcp   cache_1\n\
        f77f2b90d1c4   shop/import    \"/import\"                2 days ago    Exited (0) 2 days ago                        import_1\n";

    #[test]
    fn containers_that_do_not_work() {
        let reading = read_text("c", DOCKER.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "container-list");
        assert_eq!(reading.accounts[0].not_understood, 0);
        assert_eq!(
            reading.texts(),
            [
                "the container search_1 is begun anew again and again, Restarting (137) 12 seconds ago: it was killed (137 is SIGKILL, which \
                 the kernel sends where memory is used up)",
                "the container web_1 fails its health check, Up 2 days (unhealthy)"
            ]
        );
        let well: String = DOCKER
            .lines()
            .filter(|line| !line.contains("Restarting") && !line.contains("unhealthy"))
            .map(|line| format!("{line}\n"))
            .collect();
        let reading = read_text("c", well.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, K::WithinNorm);
    }

    #[test]
    fn of_the_runtime_itself() {
        let text = "CONTAINER           IMAGE               CREATED             STATE               NAME                ATTEMPT             POD ID\n\
            87d3992f84f74       busybox@sha256:4bd  8 seconds ago       Exited              importer            12                  f84dd361f8dc5\n\
            3cd112c9cbda5       nginx@sha256:1111   2 hours ago         Running             nginx               0                   f84dd361f8dc5\n";
        assert_eq!(
            read_text("c", text.as_bytes()).texts(),
            ["the container importer has ended, and was begun anew 12 times"]
        );
    }

    #[test]
    fn rubbish_is_none() {
        for text in [
            "CONTAINER ID   STATUS    NAMES\n\n   \nx\n  Exited (\n",
            "CONTAINER STATE ATTEMPT POD\nRunning\nExited a b\n",
        ] {
            let _ = read_text("c", text.as_bytes());
        }
    }
}
