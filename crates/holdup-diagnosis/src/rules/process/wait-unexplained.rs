//! Time that no cause could be given to, or that went into waiting for any of several things.

use crate::rules::{Extend, Generality, Rule, RuleId, Run, WORTH_A_NOTE, Waits, fires, percent, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Confidence, Evidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::WaitUnexplained, check)
    .about("the cause of much of the time is unknown")
    .causes(&[Cause::PollWait, Cause::Unknown])
    .from(WORTH_A_NOTE)
    .generality(Generality::Describes)
    .intermediate();

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let main = waits.main();
    let share = percent(run.share(waits.cost()));
    let who = say::who(&main.asker.name);
    let title = match main.cause {
        Cause::PollWait => format!(
            "{who} waits in {}; the reason is unknown",
            call(main.call.as_deref())
        ),
        _ => format!("{share} of the time has no known cause"),
    };
    let why = main
        .why_unknown
        .as_deref()
        .map(|why| Evidence::new(why, "attribution"));
    let on = (!main.resource.name.is_empty())
        .then(|| Evidence::new(format!("it waited on {}", main.resource.name), "the open files"));
    let finding = RULE
        .finding(Severity::Note, title, waits)
        .and_if(why)
        .and_if(on)
        .and_if(say::kernel_top(waits))
        .confidence(Confidence::Suspect);
    let doctor =
        Remedy::safe("run `holdup doctor` to see what holdup cannot observe here, and how to change that");
    fires(finding.remedy(doctor.with_command("holdup doctor")))
}

fn call(name: Option<&str>) -> &str {
    name.unwrap_or("poll")
}
