//! It does not wait: the time goes into its own code.

use crate::rules::{
    Extend, Generality, Rule, RuleId, Run, WORTH_A_NOTE, Waits, fires, percent, queueing, say,
};
use holdup_attribution::attribution::{chosen_frame, is_applications};
use holdup_evidence::{Cause, Frame};
use holdup_knowledge::interpreters::is_own_code;
use holdup_model::attributed::{AttributedWait, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Remedy, Severity, Verdict};
use holdup_model::title::Title;

/// Share of the elapsed time on a CPU, in its own code or in the kernel for it, from which it does not wait. The rest
/// of a fifth is what starting and ending a program costs.
const MIN_CPU_SHARE: f64 = 0.80;

/// Functions that are named at most.
const MAX_FUNCTIONS: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::CpuBound, check)
    .about("the program computes: it runs its own code and does not wait")
    .causes(&[Cause::CpuUser])
    .from(WORTH_A_NOTE)
    .generality(Generality::Describes);

fn check(run: &Run<'_>, user: &Waits<'_>) -> Verdict {
    let kernel = run.path(Cause::CpuKernel);
    let share = run.share(user.path() + kernel);
    if share < MIN_CPU_SHARE {
        return Verdict::Clear(format!(
            "it is on a CPU for {} of the elapsed time",
            percent(share)
        ));
    }
    let title = Title::from(format!(
        "CPU-bound: it is on a CPU for {} of the time",
        percent(share)
    ));
    let title = title.with(mostly(user));
    let text = format!(
        "{} in its own code, {} in the kernel",
        percent(run.share(user.path())),
        percent(run.share(kernel))
    );
    let finding = RULE
        .finding(Severity::Note, title, user)
        .and(Evidence::new(text, "CPU samples"))
        .about_if_unnamed(Some(function(user.main())))
        .and_if(functions(run, user))
        .and_if(queueing::stolen(run))
        .confidence(Confidence::Strong);
    fires(finding.remedy(Remedy::safe(
        "profile it (`perf record`): faster code or more threads help, a faster disk or network does not",
    )))
}

/// Part of the time in its own code that one of the program's functions has, from which the first sentence names it.
const MIN_SHARE_OF_FUNCTION: f64 = 0.5;

/// For the end of a title: the function of the program in which it runs most of the time, with its line where that is known.
fn mostly(user: &Waits<'_>) -> String {
    let own = |frame: &Frame| is_applications(frame) && !is_own_code(frame);
    let named = user.only(|wait| chosen_frame(&wait.asker.stack).is_some_and(own));
    let groups = named.map(|named| named.split(|wait| wait.asker.frame.clone()));
    let most = groups.and_then(|groups| groups.into_iter().max_by_key(Waits::path));
    let most = most.filter(|most| most.path() as f64 >= user.path() as f64 * MIN_SHARE_OF_FUNCTION);
    let place = most
        .as_ref()
        .and_then(|most| chosen_frame(&most.main().asker.stack));
    place.map_or_else(String::new, |place| format!("; mostly in {}", say::place(place)))
}

/// The function that the thread ran, in its module; without names the process.
fn function(wait: &AttributedWait) -> Resource {
    let asker = &wait.asker;
    let name = asker
        .frame
        .as_ref()
        .or(asker.module.as_ref())
        .unwrap_or(&asker.name.process);
    Resource::named(ResourceKind::Name, name).with(|facts| facts.module.clone_from(&asker.module))
}

/// The functions in which it runs the longest.
fn functions(run: &Run<'_>, user: &Waits<'_>) -> Option<Evidence> {
    let named = user.only(|wait| wait.asker.frame.is_some())?;
    let groups = named.split(|wait| wait.asker.frame.clone());
    let top: Vec<String> = groups
        .iter()
        .take(MAX_FUNCTIONS)
        .map(|group| {
            let name = group.main().asker.frame.clone().unwrap_or_default();
            format!("{name} {}", percent(run.share(group.path())))
        })
        .collect();
    Some(Evidence::new(
        format!(
            "mostly in {} ({})",
            top.join(", "),
            say::who(&named.main().asker.name)
        ),
        "user stacks",
    ))
}
