//! A unit of systemd whose start timed out, beside its file: the type in the file says what systemd waited for.
//!
//! In: lines of a unit's file, and of the log. Out: which sign of being ready never came, after how long, and of which command.

use super::{Line, Span};
use crate::statements::signs::Told;
use crate::statements::tables::Fact;
use holdup_evidence::observed::{StatementKind, When};
use holdup_evidence::units::duration;

/// Bytes of a command or a name that are told.
const MAX_CHARS: usize = 100;

/// What systemd waits for until a unit of each type counts as started (systemd.service(5)).
const TYPES: [(&str, &str); 5] = [
    (
        "forking",
        "which means that its command puts itself into the background and returns, but it did not return, or its PID file did not appear",
    ),
    (
        "notify",
        "which means that its program reports READY=1 over the notification socket, but no report came",
    ),
    (
        "notify-reload",
        "which means that its program reports READY=1 over the notification socket, but no report came",
    ),
    (
        "oneshot",
        "which means that its command does its work and ends, but it does not end",
    ),
    (
        "dbus",
        "which means that its program takes its name on the bus, but it did not",
    ),
];

/// A start of the unit that the file describes.
#[derive(Debug, Default)]
struct Began {
    name: Option<String>,
    at: Option<When>,
}

/// The unit's file and its start.
#[derive(Debug, Default)]
pub(super) struct Starts {
    kind: Option<(&'static str, &'static str)>,
    command: String,
    description: String,
    /// Whether what the file describes was started, by which name where that is told, and when.
    began: Option<Began>,
    timed_out: Option<String>,
    ns: Option<u64>,
    span: Span,
}

impl Starts {
    pub(super) fn line(&mut self, line: Line<'_>) {
        let text = line.text.trim();
        let value = |name: &str| text.strip_prefix(name).map(str::trim);
        if let Some(kind) = value("Type=") {
            self.kind = TYPES.iter().find(|(name, _)| *name == kind).copied();
        } else if let Some(command) = value("ExecStart=") {
            self.command = command.chars().take(MAX_CHARS).collect();
        } else if let Some(description) = value("Description=") {
            self.description = description.chars().take(MAX_CHARS).collect();
        } else if let Some((_, unit)) = text.split_once("]: Starting ") {
            // `Starting mine.service - My daemon...`, or without the name.
            if !self.description.is_empty() && unit.contains(&self.description) {
                let name = unit.split_once(".service - ").map(|(name, _)| name.to_owned());
                self.began = Some(Began { name, at: line.at });
            }
        } else if let Some((before, _)) = text.split_once(".service: Start operation timed out")
            && self.timed_out.is_none()
            && let Some(began) = &self.began
        {
            let name = before.rsplit(' ').next().unwrap_or_default();
            if began.name.as_ref().is_some_and(|own| own != name) {
                return;
            }
            self.timed_out = Some(name.chars().take(MAX_CHARS).collect());
            let waited = line.at.zip(began.at).and_then(|(at, began)| at.since(began));
            self.ns = waited.and_then(|ns| u64::try_from(ns).ok()).filter(|ns| *ns > 0);
            self.span.add(line);
        }
    }

    pub(super) fn end(self, told: &mut Told) -> Option<Fact> {
        let (name, (kind, means)) = (self.timed_out?, self.kind?);
        let after = self
            .ns
            .map(|ns| format!(" within {}", duration(ns)))
            .unwrap_or_default();
        let command = match self.command.as_str() {
            "" => String::new(),
            command => format!(" (ExecStart={command})"),
        };
        Some(Fact {
            kind: StatementKind::TimedOut,
            share: None,
            ns: self.ns,
            line: self.span.tell(told),
            text: format!(
                "{name}.service did not become ready{after} and systemd ended it: it is of Type={kind}, {means}{command}"
            ),
        })
    }
}
