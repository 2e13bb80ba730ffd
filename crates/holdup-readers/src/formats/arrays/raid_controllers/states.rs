//! States of volumes and of drives, by the words of the tools.

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Worth {
    Well,
    /// It is being mended, or will fail.
    Warned,
    /// A volume lacks a drive, or a drive is gone.
    Degraded,
    /// The data is not there.
    Offline,
}

/// States of volumes and of drives by the words of the tools.
const STATES: [(&str, Worth); 24] = [
    ("OfLn", Worth::Offline),
    ("Dgrd", Worth::Degraded),
    ("Pdgd", Worth::Degraded),
    ("Degraded", Worth::Degraded),
    ("Partially Degraded", Worth::Degraded),
    ("Interim Recovery Mode", Worth::Degraded),
    ("Ready for Rebuild", Worth::Degraded),
    ("Failed", Worth::Degraded),
    ("Offline", Worth::Degraded),
    ("Offln", Worth::Degraded),
    ("UBad", Worth::Degraded),
    ("UBUnsp", Worth::Degraded),
    ("Unconfigured(bad)", Worth::Degraded),
    ("Missing", Worth::Degraded),
    ("Msng", Worth::Degraded),
    ("Rbld", Worth::Warned),
    ("Rec", Worth::Warned),
    ("Cpybck", Worth::Warned),
    ("Rebuild", Worth::Warned),
    ("Rebuilding", Worth::Warned),
    ("Recovering", Worth::Warned),
    ("Copyback", Worth::Warned),
    ("Predictive Failure", Worth::Warned),
    ("Transforming", Worth::Warned),
];

pub(super) fn worth(state: &str) -> Worth {
    let state = state.trim();
    let known = STATES.iter().find(|(known, _)| *known == state);
    known.map_or(Worth::Well, |(_, worth)| *worth)
}

/// The data of a volume that is offline are gone; those of a drive may be on the others.
pub(super) fn offline(state: &str) -> Worth {
    match state {
        "Offline" | "Failed" => Worth::Offline,
        other => worth(other),
    }
}
