//! `cpupower frequency-info` and `cpufreq-info`: whether a CPU is kept below what its hardware can do.
//!
//! In: for each CPU the limits of its hardware and of the policy, the governor and the frequency that it has now. Out: a statement about the
//! CPU that its policy limits most; else how fast it is. Source: `tools/power/cpupower/utils/cpufreq-info.c` of the kernel.

use super::report::{any_line, name_of, number, rounded, text_in};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("cpu-frequency", Family::Host, recognise).about("cpupower frequency-info");

/// The part of the hardware's highest frequency below which the policy's limit is a brake: what the kernel sets by itself is all of it.
const LIMITED: f64 = 0.95;

/// Per cent of the hardware's highest frequency in a sentence, and MHz of a GHz.
const PERCENT: f64 = 100.0;
const MHZ_OF_GHZ: f64 = 1e3;

fn recognise(head: &[u8]) -> Sureness {
    let begins = any_line(head, |line| cpu(line).is_some());
    let limits = any_line(head, |line| {
        line.starts_with("hardware limits:") || line.starts_with("current policy:")
    });
    Sureness::certain_if(begins && limits)
}

/// The number of `analyzing CPU 0:`.
fn cpu(line: &str) -> Option<&str> {
    let number = line.strip_prefix("analyzing CPU ")?.strip_suffix(':')?;
    number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b','))
        .then_some(number)
}

/// MHz of all frequencies of a line: `1.20 GHz - 2.60 GHz`.
fn frequencies(text: &str) -> Vec<f64> {
    let words: Vec<&str> = text.split_whitespace().take(40).collect();
    let of = |pair: &[&str]| {
        let [figure, unit] = pair else { return None };
        let factor = match unit.trim_end_matches(['.', ',']) {
            "GHz" => MHZ_OF_GHZ,
            "MHz" => 1.0,
            "kHz" => 1e-3,
            _ => return None,
        };
        Some(number(figure)? * factor)
    };
    words.windows(2).filter_map(of).collect()
}

#[derive(Debug, Default)]
struct Cpu {
    name: String,
    highest_mhz: Option<f64>,
    policy_mhz: Option<f64>,
    now_mhz: Option<f64>,
    governor: String,
    quote: Quote,
}

impl Cpu {
    /// The part of the hardware's highest frequency that the policy allows.
    fn allowed(&self) -> Option<f64> {
        let (policy, highest) = self.policy_mhz.zip(self.highest_mhz)?;
        (highest > 0.0).then(|| policy / highest)
    }

    fn sentence(&self) -> String {
        let mut text = format!("CPU {}", self.name);
        if let Some(allowed) = self.allowed().filter(|allowed| *allowed < LIMITED) {
            text.push_str(&format!(
                " may use at most {:.0} MHz, {} % of its {:.0} MHz",
                self.policy_mhz.unwrap_or(0.0),
                rounded(PERCENT * allowed),
                self.highest_mhz.unwrap_or(0.0)
            ));
        } else if let Some(highest) = self.highest_mhz {
            text.push_str(&format!(" may use all of its {highest:.0} MHz"));
        }
        if let Some(now) = self.now_mhz {
            text.push_str(&format!(", now {now:.0} MHz"));
        }
        if !self.governor.is_empty() {
            text.push_str(&format!(" (governor {})", self.governor));
        }
        text
    }
}

#[derive(Debug, Default)]
struct Reader {
    cpu: Option<Cpu>,
    /// The one that is limited most, and the first.
    worst: Option<(f64, Cpu)>,
    first: Option<Cpu>,
}

impl Reader {
    fn close(&mut self) {
        let Some(cpu) = self.cpu.take() else { return };
        match cpu.allowed() {
            Some(allowed) if self.worst.as_ref().is_none_or(|(worst, _)| allowed < *worst) => {
                self.worst = Some((allowed, cpu));
            }
            _ if self.first.is_none() && cpu.now_mhz.is_some() => self.first = Some(cpu),
            _ => {}
        }
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(number) = cpu(&text) {
            self.close();
            self.cpu = Some(Cpu {
                name: name_of(number),
                quote: out.here(),
                ..Cpu::default()
            });
            return Understood::Evidence;
        }
        let Some(cpu) = &mut self.cpu else {
            return Understood::No;
        };
        let found = frequencies(&text);
        let highest = found.iter().copied().fold(None, |most: Option<f64>, one| {
            Some(most.map_or(one, |most| most.max(one)))
        });
        if text.starts_with("hardware limits:") {
            cpu.highest_mhz = highest;
        } else if text.starts_with("current policy:")
            || text.starts_with("within ")
            || text.starts_with("current policy ")
        {
            cpu.policy_mhz = highest.or(cpu.policy_mhz);
        } else if text.starts_with("current CPU frequency") {
            cpu.now_mhz = found.first().copied().or(cpu.now_mhz);
        } else if let Some((_, rest)) = text.split_once("The governor \"") {
            cpu.governor = name_of(rest.split('"').next().unwrap_or_default());
        } else {
            return Understood::Ignorable;
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        let read = std::mem::take(self);
        match (read.worst, read.first) {
            (Some((allowed, cpu)), _) if allowed < LIMITED => out.statement(Statement {
                share: Some(1.0 - allowed),
                ..statements::one(StatementKind::Stalled, None, cpu.quote.clone(), cpu.sentence())
            }),
            (Some((_, cpu)), _) | (None, Some(cpu)) => {
                out.statement(statements::one(
                    StatementKind::WithinNorm,
                    None,
                    cpu.quote.clone(),
                    cpu.sentence(),
                ));
            }
            (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind as K;

    const LIMITED: &str = "analyzing CPU 3:\n  driver: acpi-cpufreq\n  hardware limits: 1.20 GHz - 2.60 GHz\n\
        \x20 available cpufreq governors: conservative powersave performance\n\
        \x20 current policy: frequency should be within 1.20 GHz and 1.30 GHz.\n\
        \x20                 The governor \"powersave\" may decide which speed to use\n                  within this range.\n\
        \x20 current CPU frequency: 1.20 GHz (asserted by call to hardware)\n";

    #[test]
    fn a_policy_that_limits() {
        let reading = read_text("c", LIMITED.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "cpu-frequency");
        assert_eq!(
            reading.texts(),
            ["CPU 3 may use at most 1300 MHz, 50 % of its 2600 MHz, now 1200 MHz (governor powersave)"]
        );
        let well = LIMITED.replace("1.30 GHz", "2.60 GHz");
        let reading = read_text("c", well.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, K::WithinNorm);
    }

    #[test]
    fn rubbish_is_none() {
        for text in [
            "analyzing CPU 0:\nhardware limits: Not Available\n",
            "analyzing CPU 0:\nhardware limits: 0 GHz - 0 GHz\ncurrent policy: within 1e999 GHz and x GHz\n",
        ] {
            assert!(
                read_text("c", text.as_bytes()).observed.statements.is_empty(),
                "{text}"
            );
        }
    }
}
