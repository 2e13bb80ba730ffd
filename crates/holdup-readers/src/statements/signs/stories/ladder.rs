//! The recovery from errors of disks and controllers, which climbs: a request is aborted, then the device is reset, the target, the bus, the
//! controller; at last the device is given up. All that time its requests wait.
//!
//! In: lines of the drivers of SCSI hosts and of NVMe. Out: one fact for each device: what it was asked, how far the recovery went, how long it took.

use super::{Line, MAX_LINES, Span, times};
use crate::statements::signs::Told;
use crate::statements::tables::Fact;
use holdup_evidence::Ns;
use holdup_evidence::observed::{StatementKind, When};
use holdup_evidence::units::duration;

/// Devices that are followed, those that are told, and commands of one that are named.
const MAX_DEVICES: usize = 200;
const MAX_TOLD: usize = 4;
const COMMANDS: usize = 4;

/// Requests that are aborted from which a device does not answer: one may have been slow.
const MIN_ABORTS: u64 = 3;

/// Lines behind a step in which its device may be named.
const NAMED_WITHIN: u64 = 3;

/// Time without a line behind which another recovery begins: the longest step takes some minutes.
const APART_NS: i128 = 600_000_000_000;

/// Words of a step that succeeded.
const SUCCESS: [&str; 2] = ["reset: SUCCESS", "RESET SUCCEEDED"];

/// Bytes of a name or a command that are kept.
const MAX_BYTES: usize = 60;

/// How far the recovery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Abort,
    Device,
    Target,
    Bus,
    Host,
    /// It was given up.
    Lost,
}

/// Words of drivers (mpt3sas, megaraid_sas, qla2xxx, aacraid, hpsa, vmw_pvscsi, the SCSI layer, nvme) for their steps.
const STEPS: &[(&str, Step)] = &[
    ("attempting task abort", Step::Abort),
    ("Abort command issued", Step::Abort),
    ("Host adapter abort request", Step::Abort),
    ("timeout, aborting", Step::Abort),
    ("attempting device reset", Step::Device),
    ("DEVICE RESET ISSUED", Step::Device),
    ("SCSI device reset", Step::Device),
    ("resetting logical", Step::Device),
    ("attempting target reset", Step::Target),
    ("TARGET RESET ISSUED", Step::Target),
    ("attempting bus reset", Step::Bus),
    ("BUS RESET ISSUED", Step::Bus),
    ("SCSI Bus reset", Step::Bus),
    ("Host bus reset request", Step::Bus),
    ("attempting host reset", Step::Host),
    ("ADAPTER RESET ISSUED", Step::Host),
    ("SCSI Host reset", Step::Host),
    ("resetting fusion adapter", Step::Host),
    ("timeout, reset controller", Step::Host),
    ("timeout, disable controller", Step::Host),
    ("controller is down; will reset", Step::Host),
    ("Device offlined", Step::Lost),
    ("rejecting I/O to offline device", Step::Lost),
    ("Removing after probe failure", Step::Lost),
    ("Device not ready; aborting reset", Step::Lost),
    ("Disabling device after reset failure", Step::Lost),
];

/// The devices of one artefact.
#[derive(Debug, Default)]
pub(super) struct Ladders {
    devices: Vec<Device>,
    /// A step whose line names a controller alone: the lines behind it say of which device.
    open: Option<(Step, String, Option<When>, u64)>,
}

#[derive(Debug, Default)]
struct Device {
    name: String,
    controller: String,
    now: Recovery,
    /// The one of those before that went furthest.
    worst: Recovery,
    /// Recoveries that are told, and the lines of all of them.
    times: u64,
    lines: Vec<u64>,
}

/// One recovery of a device.
#[derive(Debug, Default)]
struct Recovery {
    commands: Vec<String>,
    counts: [u64; Step::Lost as usize + 1],
    /// Whether its last step succeeded.
    succeeded: bool,
    span: Span,
}

impl Ladders {
    pub(super) fn line(&mut self, line: Line<'_>) {
        if let Some((_, command)) = line.text.split_once("CDB: ") {
            self.command(line, command);
            return;
        }
        if SUCCESS.iter().any(|words| line.text.contains(words)) {
            self.succeeded(line);
            return;
        }
        let found = STEPS.iter().find(|(words, _)| line.text.contains(words));
        let Some((words, step)) = found else {
            return;
        };
        // Programs time out and abort, too: the driver of NVMe names its queue.
        if words.starts_with("timeout,") && !line.text.contains("QID ") {
            return;
        }
        self.settle();
        let before = line.text.split(words).next().unwrap_or_default();
        let controller = controller(before);
        match device(line.text) {
            Some(name) => self.count(&name, &controller, *step, line),
            None if !controller.is_empty() => self.open = Some((*step, controller, line.at, line.number)),
            None => {}
        }
    }

    /// A line with a command: of the step that its controller has begun, or of a device that is followed.
    fn command(&mut self, line: Line<'_>, command: &str) {
        let Some(name) = device(line.text) else {
            return;
        };
        if let Some((step, controller, at, number)) = self.open.take() {
            match line.number <= number + NAMED_WITHIN {
                true => {
                    let of_step = Line { at, number, ..line };
                    self.count(&name, &controller, step, of_step);
                }
                false => self.open = Some((step, controller, at, number)),
            }
        }
        let end = command.find(['(', ':']).unwrap_or(command.len());
        let command = command.get(..end).unwrap_or_default().trim();
        // Some kernels print its bytes alone.
        let named = command.len() < MAX_BYTES && command.starts_with(|char: char| char.is_ascii_uppercase());
        let of = self.devices.iter_mut().find(|device| device.name == name);
        if let Some(commands) = of.filter(|_| named).map(|device| &mut device.now.commands)
            && commands.len() < COMMANDS
            && !commands.iter().any(|known| known == command)
        {
            commands.push(command.to_owned());
        }
    }

    /// A reset succeeded: of a device, or of the one that its controller reset last.
    fn succeeded(&mut self, line: Line<'_>) {
        self.settle();
        let before = SUCCESS.iter().find_map(|words| line.text.split_once(words));
        // `mpt3sas_cm0: device reset: SUCCESS`: the kind of the step stands between.
        let before = before.map_or("", |(before, _)| before.trim_end());
        let of = before
            .rsplit_once(' ')
            .map_or(String::new(), |(before, _)| controller(before));
        let name = device(line.text);
        let mut devices = self.devices.iter_mut().rev();
        let found = devices.find(|device| match &name {
            Some(name) => device.name == *name,
            None => !of.is_empty() && (device.controller == of || device.name == of),
        });
        if let Some(device) = found
            && !device.is_apart(line.at)
        {
            device.now.succeeded = true;
            device.now.span.add(line);
        }
    }

    /// A step of which no device was named is the controller's.
    fn settle(&mut self) {
        if let Some((step, controller, at, number)) = self.open.take() {
            let line = Line { text: "", at, number };
            self.count(&controller, "", step, line);
        }
    }

    fn count(&mut self, name: &str, controller: &str, step: Step, line: Line<'_>) {
        let place = self.devices.iter().position(|device| device.name == name);
        let place = match place {
            Some(place) => place,
            None if self.devices.len() < MAX_DEVICES => {
                self.devices.push(Device {
                    name: name.to_owned(),
                    controller: controller.to_owned(),
                    ..Device::default()
                });
                self.devices.len() - 1
            }
            None => return,
        };
        if let Some(device) = self.devices.get_mut(place) {
            if device.is_apart(line.at) {
                device.close();
            }
            let now = &mut device.now;
            if let Some(count) = now.counts.get_mut(step as usize) {
                *count += 1;
            }
            now.succeeded = false;
            now.span.add(line);
        }
    }

    pub(super) fn end(mut self, told: &mut Told) -> Vec<Fact> {
        self.settle();
        for device in &mut self.devices {
            device.close();
        }
        self.devices.retain(|device| device.times > 0);
        self.devices
            .sort_by_key(|device| std::cmp::Reverse(device.worst.rank()));
        for line in self
            .devices
            .iter()
            .take(MAX_TOLD)
            .flat_map(|device| &device.lines)
        {
            told.add(*line);
        }
        let facts = self.devices.iter().take(MAX_TOLD).map(|device| Fact {
            kind: match device.worst.of(Step::Lost) {
                0 => StatementKind::TimedOut,
                _ => StatementKind::Unreachable,
            },
            share: None,
            ns: device.worst.span.ns(),
            line: device.worst.span.tell(told),
            text: device.sentence(),
        });
        facts.collect()
    }
}

impl Recovery {
    /// How far it went, and how long it took.
    fn rank(&self) -> (usize, Option<Ns>) {
        (self.highest(), self.span.ns())
    }

    fn of(&self, step: Step) -> u64 {
        self.counts.get(step as usize).copied().unwrap_or(0)
    }

    fn highest(&self) -> usize {
        self.counts.iter().rposition(|count| *count > 0).unwrap_or(0)
    }

    fn is_silent(&self) -> bool {
        self.of(Step::Abort) >= MIN_ABORTS || self.highest() > Step::Abort as usize
    }

    fn sentence(&self, said: &mut String) {
        const WORDS: [(Step, &str); 5] = [
            (Step::Abort, "aborted requests"),
            (Step::Device, "reset the device"),
            (Step::Target, "reset the target"),
            (Step::Bus, "reset the bus"),
            (Step::Host, "reset the controller"),
        ];
        let steps = WORDS.iter().filter(|(step, _)| self.of(*step) > 0);
        let steps: Vec<String> = steps
            .map(|(step, words)| format!("{words}{}", times(self.of(*step))))
            .collect();
        if !self.commands.is_empty() {
            said.push_str(&format!(": {} timed out", self.commands.join(", ")));
        }
        if !steps.is_empty() {
            said.push_str(&format!("; the error handling {}", steps.join(", then ")));
        }
        if let Some(ns) = self.span.ns() {
            said.push_str(&format!(", within {} in which its requests wait", duration(ns)));
        }
        if self.of(Step::Lost) > 0 {
            said.push_str("; then it was given up, and its requests fail");
        } else if self.succeeded {
            said.push_str("; the last reset succeeded");
        }
    }
}

impl Device {
    /// Whether a line is of another recovery.
    fn is_apart(&self, at: Option<When>) -> bool {
        let gap = at.zip(self.now.span.last).and_then(|(at, last)| at.since(last));
        gap.is_some_and(|gap| gap.abs() > APART_NS)
    }

    /// The recovery is over.
    fn close(&mut self) {
        let now = std::mem::take(&mut self.now);
        if !now.is_silent() {
            return;
        }
        self.times += 1;
        let room = MAX_LINES.saturating_sub(self.lines.len());
        self.lines.extend(now.span.lines.iter().take(room));
        if self.times == 1 || now.rank() > self.worst.rank() {
            self.worst = now;
        }
    }

    fn sentence(&self) -> String {
        let mut said = self.name.clone();
        if !self.controller.is_empty() && self.controller != self.name {
            said.push_str(&format!(" ({})", self.controller));
        }
        said.push_str(" did not answer");
        self.worst.sentence(&mut said);
        if self.times > 1 {
            said.push_str(&format!(
                "; it was so at {} times, and this is the worst",
                self.times
            ));
        }
        said
    }
}

/// The controller that a line begins with, by the word before what it says: `mpt2sas3: `, `megaraid_sas 0000:02:00.0: `.
fn controller(before: &str) -> String {
    // Other words than those of a driver's beginning name no controller.
    let Some(before) = before.trim_end().strip_suffix(':') else {
        return String::new();
    };
    let words: Vec<&str> = before.split_whitespace().rev().take(2).collect();
    let named = words
        .iter()
        .find(|word| is_name(word) && !word.starts_with("tag#"));
    let name = named.map_or("", |word| word.trim_end_matches([':', ']']));
    match name {
        "kernel" | "sd" | "scsi" => String::new(),
        name => name.to_owned(),
    }
}

fn is_name(word: &str) -> bool {
    word.len() < MAX_BYTES && word.starts_with(|char: char| char.is_ascii_alphabetic())
}

/// The device that a line names: `7:0:14:0` of SCSI with the letters of its disk, `nexus=3:0:1`, `nvme0`.
fn device(text: &str) -> Option<String> {
    let mut words = text
        .split([' ', ',', '(', ')'])
        .map(|word| word.trim_end_matches([':', '.']));
    let address = words.clone().find(|word| parts(word) == Some(4));
    if let Some(address) = address {
        let letters = words.find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
        let disk = letters.filter(|letters| letters.starts_with("sd") && letters.len() < MAX_BYTES);
        return Some(match disk {
            Some(disk) => format!("sd {address} [{disk}]"),
            None => format!("sd {address}"),
        });
    }
    words.find_map(|word| {
        if let Some(nexus) = word.strip_prefix("nexus=") {
            return parts(nexus).map(|_| format!("sd {nexus}"));
        }
        let number = word.strip_prefix("nvme")?;
        let fits = number.starts_with(|char: char| char.is_ascii_digit()) && word.len() < MAX_BYTES;
        fits.then(|| word.to_owned())
    })
}

/// How many numbers with colons between them a word is.
fn parts(word: &str) -> Option<usize> {
    let parts = word.split(':');
    let numbers = parts
        .clone()
        .all(|part| !part.is_empty() && part.len() <= 6 && part.bytes().all(|byte| byte.is_ascii_digit()));
    let count = parts.count();
    (numbers && count > 2).then_some(count)
}
