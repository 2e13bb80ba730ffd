//! A finding: what is wrong, with the evidence for it and what to do. Rules make them; views print them.

use crate::attributed::{Asker, Resource};
use crate::title::Title;
use holdup_evidence::{Cause, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Describes; nothing is wrong.
    Note,
    /// Has harm and a remedy.
    Warning,
    /// Stops the work.
    Critical,
}

/// How sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// It fits, and more than one other thing could.
    Suspect,
    /// Signature, number and named object agree.
    Strong,
    /// The one in the way was found and its release observed, or the kernel says so itself.
    Proved,
}

/// One observation that a finding rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// In plain words, numbers included.
    pub text: String,
    /// Where it was seen: a probe, a file of `/proc`, `file:line` of an artefact.
    pub source: String,
}

impl Evidence {
    /// An observation and where it was made.
    pub fn new(text: impl Into<String>, source: impl Into<String>) -> Evidence {
        Evidence {
            text: text.into(),
            source: source.into(),
        }
    }
}

/// Something a person can do about it. holdup never does it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// In plain words.
    pub text: String,
    /// The command, where there is one.
    pub command: Option<String>,
    /// Whether it changes nothing that others rely on.
    pub safe: bool,
    /// What may go wrong, for those that are not safe.
    pub risk: Option<String>,
    /// A remedy that people try and that does not help here; printed as "not".
    #[serde(default)]
    pub pointless: bool,
}

impl Remedy {
    /// A remedy that changes nothing that others rely on.
    pub fn safe(text: impl Into<String>) -> Remedy {
        Remedy {
            text: text.into(),
            command: None,
            safe: true,
            risk: None,
            pointless: false,
        }
    }

    /// A remedy with a risk.
    pub fn changing(text: impl Into<String>, risk: impl Into<String>) -> Remedy {
        Remedy {
            text: text.into(),
            command: None,
            safe: false,
            risk: Some(risk.into()),
            pointless: false,
        }
    }

    /// What people try and what does not help, and why.
    pub fn pointless(text: impl Into<String>) -> Remedy {
        Remedy {
            text: text.into(),
            command: None,
            safe: true,
            risk: None,
            pointless: true,
        }
    }

    /// The same with a command to type.
    #[must_use]
    pub fn with_command(mut self, command: impl Into<String>) -> Remedy {
        self.command = Some(command.into());
        self
    }
}

/// Pieces of evidence that a finding keeps; more are counted. Nobody reads more, and a log may have a million.
const EVIDENCE: usize = 60;

/// Findings that a rule's verdict is cut to; more are counted.
pub const FINDINGS: usize = 50;

/// What is wrong. Can't be made without evidence: see [`Finding::new`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule's id.
    pub rule: String,
    /// How bad.
    pub severity: Severity,
    /// One sentence in plain words.
    pub title: Title,
    /// The cause it is about.
    pub cause: Cause,
    /// Of the run's critical path; `None` where an artefact proves the trouble and no duration.
    pub ns: Option<Ns>,
    /// One standard error of the time that this is a part of, where that is an estimate; else 0.
    #[serde(default)]
    pub error: Ns,
    /// What it is about.
    pub resource: Resource,
    /// Who asked.
    pub asker: Asker,
    evidence: Vec<Evidence>,
    /// Pieces of evidence that were not kept.
    #[serde(default)]
    more: usize,
    /// What to do, best first.
    pub remedies: Vec<Remedy>,
    /// How sure.
    pub confidence: Confidence,
}

impl Finding {
    /// A finding with its first piece of evidence; there is none without.
    #[must_use]
    pub fn new(
        rule: &str,
        severity: Severity,
        title: impl Into<Title>,
        cause: Cause,
        ns: Ns,
        first: Evidence,
    ) -> Finding {
        Finding {
            rule: rule.to_owned(),
            severity,
            title: title.into(),
            cause,
            ns: Some(ns),
            error: 0,
            resource: Resource::default(),
            asker: Asker::default(),
            evidence: vec![first],
            more: 0,
            remedies: Vec::new(),
            confidence: Confidence::Strong,
        }
    }

    /// The same where no duration is proved.
    #[must_use]
    pub fn without_duration(
        rule: &str,
        severity: Severity,
        title: impl Into<Title>,
        cause: Cause,
        first: Evidence,
    ) -> Finding {
        Finding {
            ns: None,
            ..Finding::new(rule, severity, title, cause, 0, first)
        }
    }

    /// More evidence.
    #[must_use]
    pub fn and(mut self, evidence: Evidence) -> Finding {
        if self.evidence.len() < EVIDENCE {
            self.evidence.push(evidence);
        } else {
            self.more = self.more.saturating_add(1);
        }
        self
    }

    /// Its evidence, to be told in other words.
    pub fn evidence_mut(&mut self) -> &mut [Evidence] {
        &mut self.evidence
    }

    /// What was not kept, said as the last piece of evidence; `others` are findings of the same rule that are not reported.
    pub fn with_left_out(mut self, others: usize) -> Finding {
        let from = self
            .evidence
            .last()
            .map(|last| last.source.clone())
            .unwrap_or_default();
        for (count, what) in [(self.more, "piece"), (others, "finding")] {
            let plural = if count == 1 { "" } else { "s" };
            let of = if what == "piece" { " of evidence" } else { "" };
            if count > 0 {
                let text = format!("{count} more {what}{plural}{of} of this kind");
                self.evidence.push(Evidence::new(text, from.clone()));
            }
        }
        self.more = 0;
        self
    }

    /// What it is about and who asked.
    #[must_use]
    pub fn about(mut self, resource: Resource, asker: Asker) -> Finding {
        self.resource = resource;
        self.asker = asker;
        self
    }

    /// Another thing to do.
    #[must_use]
    pub fn remedy(mut self, remedy: Remedy) -> Finding {
        self.remedies.push(remedy);
        self
    }

    /// How sure.
    #[must_use]
    pub fn confidence(mut self, confidence: Confidence) -> Finding {
        self.confidence = confidence;
        self
    }

    /// What it rests on; never empty.
    #[must_use]
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Something is wrong.
    Fires(Vec<Finding>),
    /// It is not that, and the number that says so.
    Clear(String),
    /// It could be that; what is missing to tell.
    CannotTell(String),
}

/// What the rules said of a run. Rule ids are text here, as they are in the report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdicts {
    /// What is wrong, worst first.
    pub findings: Vec<Finding>,
    /// Rules that say "not that", and the number that says so.
    pub ruled_out: Vec<(String, String)>,
    /// Rules that could not tell, and what they miss.
    pub cannot_tell: Vec<(String, String)>,
}
