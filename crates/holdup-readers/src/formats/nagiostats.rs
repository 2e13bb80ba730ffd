//! `nagiostats` and `icingastats`: how late the checks of a monitoring server begin, beside how long they take.
//!
//! In: lines `Active Service Latency: LEAST / GREATEST / MEAN sec` and the same of the execution time, of services and of hosts; the page
//! `Tactical Overview` has the same figures. Out: a statement about the services' checks, and one about the hosts' where those are late too.
//! Source: `base/nagiostats.c` of Nagios, whose order is least, greatest, mean.

use super::report::{any_line, holds, ns_of, rounded, text_in};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::Out;
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("nagiostats", Family::Host, recognise).about("nagiostats, icingastats");

/// Seconds of latency below which checks are on time: the latency is generally less than a second, and goes up where there are too many
/// checks for their execution time (Red Hat Network Satellite, reference guide, probe "Latency").
const MAX_LATENCY_SECONDS: f64 = 1.0;

/// What stands above the figures.
const HEADING: &str = "CURRENT STATUS DATA";

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(holds(head, " Latency:") && any_line(head, |line| Figures::of(line).is_some()))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Which {
    Latency,
    Execution,
}

/// A line of three figures.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figures {
    /// Whether they are of services, and not of hosts.
    services: bool,
    which: Which,
    greatest: f64,
    mean: f64,
}

impl Figures {
    fn of(line: &str) -> Option<Figures> {
        let (name, rest) = line.split_once(':')?;
        let (services, which) = match name.trim() {
            "Active Service Latency" | "Service Check Latency" => (true, Which::Latency),
            "Active Service Execution Time" | "Service Check Execution Time" => (true, Which::Execution),
            "Active Host Latency" | "Host Check Latency" => (false, Which::Latency),
            "Active Host Execution Time" | "Host Check Execution Time" => (false, Which::Execution),
            _ => return None,
        };
        let mut figures =
            rest.trim().strip_suffix("sec")?.split('/').map(|figure| {
                decimal(figure.trim().as_bytes()).filter(|seconds| (0.0..1e9).contains(seconds))
            });
        let (_least, greatest, mean) = (figures.next()??, figures.next()??, figures.next()??);
        figures.next().is_none().then_some(Figures {
            services,
            which,
            greatest,
            mean,
        })
    }
}

/// What is known of the checks of services, or of hosts.
#[derive(Debug, Default)]
struct Checks {
    latency: Option<(Figures, Quote)>,
    execution: Option<Figures>,
    all: Option<u64>,
    /// How many were checked within five minutes.
    within_five: Option<u64>,
}

impl Checks {
    fn sentence(&self, of: &str, late: Figures) -> String {
        let mut text = format!(
            "active checks of {of} begin {} s late at the mean (latency, at most {} s)",
            rounded(late.mean),
            rounded(late.greatest)
        );
        if let Some(execution) = self.execution {
            text.push_str(&format!(
                "; a check itself takes {} s at the mean, at most {} s",
                rounded(execution.mean),
                rounded(execution.greatest)
            ));
        }
        if let Some((all, checked)) = self.all.zip(self.within_five) {
            text.push_str(&format!("; {checked} of {all} were checked within 5 min"));
        }
        text
    }
}

#[derive(Debug, Default)]
struct Reader {
    services: Checks,
    hosts: Checks,
}

impl Reader {
    fn of(&mut self, services: bool) -> &mut Checks {
        match services {
            true => &mut self.services,
            false => &mut self.hosts,
        }
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(figures) = Figures::of(&text) {
            // The same figures again are another report.
            if figures.which == Which::Latency && self.of(figures.services).latency.is_some() {
                self.end(out);
            }
            let checks = self.of(figures.services);
            match figures.which {
                Which::Latency => checks.latency = Some((figures, out.here())),
                Which::Execution => checks.execution = Some(figures),
            }
            return Understood::Evidence;
        }
        let Some((name, value)) = text.split_once(':') else {
            let is_line = text.bytes().all(|byte| byte == b'-');
            return match is_line || text == HEADING {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        let services = name.contains("Service");
        let first = value.split_whitespace().next().unwrap_or_default();
        match name.trim() {
            "Total Services" | "Total Hosts" => self.of(services).all = first.parse().ok(),
            // Of the last 1, 5, 15 and 60 minutes.
            name if name.starts_with("Active ") && name.contains(" Last 1/5/15/60 min") => {
                let five = value.split('/').nth(1).unwrap_or_default();
                // The slashes of the name stand before the colon.
                self.of(services).within_five = five.trim().parse().ok();
            }
            _ => return Understood::Ignorable,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let mut well = None;
        let mut late = false;
        for (of, checks) in [("services", &read.services), ("hosts", &read.hosts)] {
            let Some((figures, quote)) = &checks.latency else {
                continue;
            };
            let text = checks.sentence(of, *figures);
            if figures.mean >= MAX_LATENCY_SECONDS {
                late = true;
                let ns = Some(ns_of(figures.mean));
                out.statement(statements::one(StatementKind::Stalled, ns, quote.clone(), text));
            } else if well.is_none() {
                well = Some((quote.clone(), text));
            }
        }
        if let Some((quote, text)) = well.filter(|_| !late) {
            let text = format!("{text}; less than {MAX_LATENCY_SECONDS:.0} s late is well");
            out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const LATE: &str = "Total Services:                         640\n\
        Active Service Latency:                 0.000 / 188.204 / 21.375 sec\n\
        Active Service Execution Time:          0.010 / 61.450 / 1.204 sec\n\
        Active Services Last 1/5/15/60 min:     31 / 170 / 402 / 633\n\
        Services Ok/Warn/Unk/Crit:              610 / 12 / 8 / 10\n\n\
        Total Hosts:                            80\n\
        Active Host Latency:                    0.000 / 0.900 / 0.210 sec\n";

    #[test]
    fn checks_that_begin_late() {
        let reading = read_text("n", LATE.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "nagiostats");
        assert_eq!(
            reading.texts(),
            [
                "active checks of services begin 21.4 s late at the mean (latency, at most 188 s); a check itself takes 1.2 s at the mean, \
                 at most 61.5 s; 170 of 640 were checked within 5 min"
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Stalled);
    }

    #[test]
    fn checks_on_time_are_well() {
        let well = LATE.replace("188.204 / 21.375", "0.800 / 0.120");
        let reading = read_text("n", well.as_bytes());
        assert_eq!(reading.observed.statements.len(), 1);
        assert_eq!(reading.observed.statements[0].kind, StatementKind::WithinNorm);
    }

    #[test]
    fn the_overview_and_one_line_alone() {
        let text = "Service Check Execution Time: 0.10 / 9.20 / 1.250 sec\nService Check Latency: 410.00 / 520.50 / 470.250 sec\n";
        let reading = read_text("n", text.as_bytes());
        assert!(
            reading.texts()[0].starts_with("active checks of services begin 470 s late"),
            "{reading:?}"
        );
    }

    #[test]
    fn a_script_that_reads_the_same_is_none() {
        for text in [
            "grep 'Active Service Latency:' stats | cut -d/ -f2\n",
            "Active Service Latency: a / b / c sec\n",
            "Active Service Latency: 1 / 2 / 3 / 4 sec\n",
        ] {
            assert_ne!(
                read_text("n", text.as_bytes()).observed.sources[0].format,
                "nagiostats"
            );
        }
    }
}
