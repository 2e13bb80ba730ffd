//! What kind of machine it is: `/proc/cpuinfo`, `lscpu`, `uname -a`, `/proc/version`, `/proc/cmdline`. Out: facts.

use crate::format::{Family, Format, LineReader, Shape, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::{whole, words};
use memchr::memmem;

pub(crate) static CPUINFO: Format = Format::lines::<CpuInfo>("cpuinfo", Family::Host, is_cpuinfo)
    .about("/proc/cpuinfo")
    .openings(&["processor\t:"]);

pub(crate) static LSCPU: Format = Format::lines::<Lscpu>("lscpu", Family::Host, is_lscpu)
    .about("lscpu")
    .openings(&["Architecture:  "]);

pub(crate) static UNAME: Format =
    Format::new("uname", Family::Host, is_uname, Shape::Lines(|| Box::new(Uname))).about("uname -a");

pub(crate) static CMDLINE: Format = Format::new(
    "kernel-command-line",
    Family::Host,
    is_command_line,
    Shape::Lines(|| Box::new(CommandLine)),
)
.about("/proc/cmdline")
.openings(&["BOOT_IMAGE="]);

/// CPUs that a kernel has at most.
const CPUS: u64 = 8192;

/// Bytes of a release that are kept.
const RELEASE: usize = 100;

/// Words that only a CPU's instruction for random numbers has among its flags.
const RANDOM: &[&[u8]] = &[b"rdrand", b"rdseed", b"rng"];

fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
}

/// Name and value around a colon.
fn pair(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b':', line)?;
    Some((line.get(..at)?.trim_ascii(), line.get(at + 1..)?.trim_ascii()))
}

fn is_cpuinfo(head: &[u8]) -> Sureness {
    let mut names = lines(head).filter_map(pair);
    let first = names.any(|(name, value)| name == b"processor" && whole(value).is_some());
    let second =
        names.any(|(name, _)| matches!(name, b"model name" | b"BogoMIPS" | b"bogomips" | b"vendor_id"));
    if first && second {
        Sureness::Certain
    } else {
        Sureness::No
    }
}

#[derive(Debug, Default)]
struct CpuInfo {
    cpus: u64,
}

impl LineReader for CpuInfo {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        let Some((name, value)) = pair(line) else {
            return Understood::No;
        };
        match name {
            b"processor" => {
                if whole(value).is_none() {
                    return Understood::No;
                }
                self.cpus = (self.cpus + 1).min(CPUS);
                Understood::Evidence
            }
            b"flags" | b"Features" => {
                flags(value, out);
                Understood::Evidence
            }
            _ => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        if self.cpus > 0 {
            out.facts().cpus.get_or_insert(self.cpus as u32);
        }
    }
}

fn flags(flags: &[u8], out: &mut Out<'_>) {
    let has = |name: &[u8]| words(flags).any(|flag| flag == name);
    let random = &mut out.facts().random;
    random
        .cpu_instruction
        .get_or_insert(RANDOM.iter().any(|flag| has(flag)));
    // Only x86 says so among the flags: their absence elsewhere says nothing.
    if has(b"fpu") {
        random.virtual_machine.get_or_insert(has(b"hypervisor"));
    }
}

fn is_lscpu(head: &[u8]) -> Sureness {
    let names = || lines(head).filter_map(pair).map(|(name, _)| name);
    let has = |name: &[u8]| names().any(|other| other == name);
    if has(b"CPU(s)") && (has(b"Architecture") || has(b"Thread(s) per core") || has(b"On-line CPU(s) list")) {
        return Sureness::Certain;
    }
    // In other languages these stay.
    if has(b"CPU(s)") && has(b"BogoMIPS") {
        Sureness::Likely
    } else {
        Sureness::No
    }
}

#[derive(Debug, Default)]
struct Lscpu {
    /// The number of the line `CPU(s):`, unless a list tells which of them are switched on.
    cpus: Option<u64>,
    online: Option<u64>,
}

/// How many CPUs a list has: `0-3,5`.
fn listed(list: &[u8]) -> Option<u64> {
    let mut count: u64 = 0;
    for part in list.split(|byte| *byte == b',') {
        let mut ends = part
            .split(|byte| *byte == b'-')
            .map(|end| whole(end.trim_ascii()));
        let first = ends.next()??;
        let last = match ends.next() {
            Some(last) => last?,
            None => first,
        };
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count).filter(|count| (1..=CPUS).contains(count))
}

impl LineReader for Lscpu {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        let Some((name, value)) = pair(line) else {
            // Long lists of flags are wrapped by some.
            return Understood::No;
        };
        match name {
            b"CPU(s)" => self.cpus = whole(value).filter(|cpus| (1..=CPUS).contains(cpus)),
            b"On-line CPU(s) list" => self.online = listed(value),
            b"Flags" | b"Markierungen" | b"Drapeaux" => flags(value, out),
            b"Hypervisor vendor" => {
                out.facts().random.virtual_machine.get_or_insert(true);
            }
            _ => return Understood::Ignorable,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        if let Some(cpus) = self.online.or(self.cpus) {
            out.facts().cpus.get_or_insert(cpus as u32);
        }
    }
}

/// `Linux host1 6.1.0-13-amd64 #1 SMP …` or `Linux version 6.1.0 (…) … #1 SMP …`.
fn uname(line: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let mut words = words(line);
    if words.next()? != b"Linux" {
        return None;
    }
    let (second, release, behind) = (words.next()?, words.next()?, words.next()?);
    let is_release = |word: &[u8]| word.first().is_some_and(u8::is_ascii_digit) && word.contains(&b'.');
    let known = memmem::find(line, b" #").is_some();
    if second == b"version" && is_release(release) && known {
        return Some((None, release));
    }
    (is_release(release) && behind.starts_with(b"#")).then_some((Some(second), release))
}

fn is_uname(head: &[u8]) -> Sureness {
    let first = lines(head).next();
    if first.is_some_and(|line| uname(line).is_some()) {
        Sureness::Certain
    } else {
        Sureness::No
    }
}

#[derive(Debug)]
struct Uname;

impl LineReader for Uname {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        let Some((host, release)) = uname(line) else {
            return Understood::No;
        };
        let text = |word: &[u8]| text_of(word.get(..RELEASE).unwrap_or(word));
        if let Some(host) = host {
            out.source().host = Some(text(host));
        }
        out.facts().kernel_release.get_or_insert(text(release));
        Understood::Evidence
    }
}

fn is_command_line(head: &[u8]) -> Sureness {
    let mut lines = lines(head);
    let (first, second) = (lines.next(), lines.next());
    let Some(line) = first.filter(|_| second.is_none()) else {
        return Sureness::No;
    };
    let has = |name: &[u8]| words(line).any(|word| word.starts_with(name));
    let console = has(b"console=") && words(line).count() > 2;
    match has(b"BOOT_IMAGE=") || console || has(b"root=") && (has(b"ro") || has(b"rw")) {
        true => Sureness::Likely,
        false => Sureness::No,
    }
}

#[derive(Debug)]
struct CommandLine;

impl LineReader for CommandLine {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        let has = |name: &[u8]| {
            words(line).any(|word| word == name || word.starts_with(name) && name.ends_with(b"="))
        };
        if !has(b"BOOT_IMAGE=") && !has(b"root=") && !has(b"console=") {
            return Understood::No;
        }
        let value = words(line).find_map(|word| word.strip_prefix(b"random.trust_cpu="));
        let trust = match value {
            Some(b"1" | b"on" | b"y" | b"Y") => Some(true),
            Some(b"0" | b"off" | b"n" | b"N") => Some(false),
            _ => None,
        };
        let random = &mut out.facts().random;
        random.trust_cpu = random.trust_cpu.or(trust);
        Understood::Evidence
    }
}

#[cfg(test)]
mod tests {
    use super::listed;
    use crate::read_text;

    #[test]
    fn how_many_cpus() {
        assert_eq!(listed(b"0-3,5"), Some(5));
        assert_eq!(listed(b"0"), Some(1));
        for wrong in [
            &b""[..],
            b"3-0",
            b"0-18446744073709551615",
            b"x",
            b"0-99999",
            b"0-1,",
        ] {
            assert_eq!(listed(wrong), None, "{wrong:?}");
        }
        let lscpu = "Architecture:        x86_64\nCPU(s):              8\nOn-line CPU(s) list: 0-3\nHypervisor vendor:   KVM\n";
        let facts = read_text("a", lscpu.as_bytes()).facts;
        assert_eq!((facts.cpus, facts.random.virtual_machine), (Some(4), Some(true)));
        let cpuinfo = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu rdrand\n\nprocessor\t: 1\nmodel name\t: x\n";
        let facts = read_text("a", cpuinfo.as_bytes()).facts;
        assert_eq!(facts.cpus, Some(2));
        assert_eq!(
            (facts.random.cpu_instruction, facts.random.virtual_machine),
            (Some(true), Some(false))
        );
    }

    #[test]
    fn kernel_and_its_command_line() {
        let text = "Linux host1 6.1.0-13-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.55-1 (2023-09-29) x86_64 GNU/Linux\n";
        let reading = read_text("a", text.as_bytes());
        assert_eq!(reading.facts.kernel_release.as_deref(), Some("6.1.0-13-amd64"));
        assert_eq!(reading.observed.sources[0].host.as_deref(), Some("host1"));
        let text = "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro random.trust_cpu=off quiet\n";
        assert_eq!(
            read_text("a", text.as_bytes()).facts.random.trust_cpu,
            Some(false)
        );
    }
}
