//! The head of a rule's file: its id and check, then what differs from most rules. What a rule must be able to see follows from
//! what it judges, where the head does not name it.

use super::{
    ByArtefacts, ByAttached, ByChurn, ByLogs, ByMachine, ByRequests, BySeen, ByWaits, Check, Generality,
    Need, Place, Rule, RuleId, Run,
};
use holdup_evidence::Cause;

impl Rule {
    /// Judges waits.
    pub(super) const fn of_waits(id: RuleId, check: ByWaits) -> Self {
        Self::of_live_run(id, Check::Waits(check))
    }

    /// Judges artefacts alone.
    pub(super) const fn of_artefacts(id: RuleId, check: ByArtefacts) -> Self {
        Self::new(id, "", Check::Artefacts(check)).needs(&[Need::Artefacts])
    }

    /// Judges waits or artefacts.
    pub(super) const fn of_either(id: RuleId, waits: ByWaits, artefacts: ByArtefacts) -> Self {
        Self::of_live_run(id, Check::Both(waits, artefacts))
    }

    /// Judges what was made anew, or artefacts.
    pub(super) const fn of_churn(id: RuleId, churn: ByChurn, artefacts: ByArtefacts) -> Self {
        Self::of_live_run(id, Check::Live(churn, artefacts))
    }

    /// Judges requests.
    pub(super) const fn of_requests(id: RuleId, check: ByRequests) -> Self {
        Self::of_live_run(id, Check::Requests(check))
    }

    /// Judges processes that ran already.
    pub(super) const fn of_attached(id: RuleId, check: ByAttached) -> Self {
        Self::of_live_run(id, Check::Attached(check))
    }

    /// Judges the tasks of runtimes that looks met meanwhile.
    pub(super) const fn of_tasks(id: RuleId, check: ByAttached) -> Self {
        Self::of_live_run(id, Check::Tasks(|run| run.attributed.task_looks > 0, check))
    }

    /// Judges what runs tasks, where the first says that there is any.
    pub(super) const fn of_executors(id: RuleId, any: fn(&Run<'_>) -> bool, check: ByAttached) -> Self {
        Self::of_live_run(id, Check::Tasks(any, check))
    }

    /// Judges what observed processes wrote in their logs.
    pub(super) const fn of_logs(id: RuleId, check: ByLogs) -> Self {
        Self::of_live_run(id, Check::Logs(check))
    }

    /// Judges full file systems that observed processes may write to.
    pub(super) const fn of_full_file_systems(id: RuleId, check: ByAttached) -> Self {
        Self::of_live_run(id, Check::Full(check))
    }

    /// Judges a whole machine, or what a look at it shows.
    pub(super) const fn of_machine(id: RuleId, machine: ByMachine, seen: BySeen) -> Self {
        Self::of_live_run(id, Check::Machine(machine, seen))
    }

    const fn of_live_run(id: RuleId, check: Check) -> Self {
        Self::new(id, "", check).needs(&[Need::SchedulerEvents])
    }

    /// The trouble in one line, for lists.
    pub(super) const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// All that it must be able to see, in their order.
    pub(super) const fn needs(self, needs: &'static [Need]) -> Self {
        Self { needs, ..self }
    }

    /// The causes that it looks at, one at a time.
    pub(super) const fn causes(self, causes: &'static [Cause]) -> Self {
        Self { causes, ..self }
    }

    /// Share of the elapsed time (0..1) that one cause must have.
    pub(super) const fn from(self, from: f64) -> Self {
        Self { from, ..self }
    }

    /// How much it says, where that is not the one trouble that explains the waits.
    pub(super) const fn generality(self, generality: Generality) -> Self {
        Self { generality, ..self }
    }

    /// Rules about other causes, or artefacts, that have nothing to add where this one fires.
    pub(super) const fn explains(self, explains: &'static [RuleId]) -> Self {
        Self { explains, ..self }
    }

    /// It looks at the way to where the time went, not at the end.
    pub(super) const fn intermediate(self) -> Self {
        Self {
            place: Place::Intermediate,
            ..self
        }
    }
}
