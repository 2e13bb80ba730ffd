//! Waiting for the daemon behind a FUSE file system.

use crate::rules::{Extend, MATTERS, Need, Rule, RuleId, Run, Waits, root, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Remedy, Severity, Verdict};
use holdup_model::title::Title;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::FuseDaemonSlow, check)
    .about("the daemon of a FUSE mount is slow to answer")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::FsFuse]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let mount = |wait: &holdup_model::attributed::AttributedWait| {
        wait.resource
            .detail
            .mount
            .as_ref()
            .unwrap_or(&wait.resource.name)
            .clone()
    };
    let groups = run.worth(waits, waits.split(mount), MATTERS);
    let finding = |group: &Waits<'_>| {
        let main = group.main();
        let holders = group.holders();
        let daemon = holders
            .first()
            .map_or_else(|| "its daemon".to_owned(), |h| say::who_with_pid(&h.name));
        let mount = mount(main);
        let mount = say::name_or(&mount, "a FUSE mount");
        let root = root::of(group);
        // What the daemon itself does is in its evidence.
        let further = root.filter(|root| {
            holders
                .first()
                .is_some_and(|daemon| daemon.name.pid != root.pid())
        });
        let title = Title::from(format!(
            "{} waits for {daemon}, which serves {mount}",
            say::who(&main.asker.name)
        ))
        .with(further.map_or_else(String::new, |root| root.stands()));
        RULE.finding(Severity::Warning, title, group)
            .and_if(holders.first().map(say::meanwhile))
            .and_if(say::way(group))
            .and_if(say::kernel_top(group))
            .proved_if(!holders.is_empty())
            .remedy(root.map_or_else(
                || Remedy::safe("find out what the daemon waits for"),
                |root| root.remedy(),
            ))
            .remedy(Remedy::safe(
                "call it less often: copy the files first, or mount with longer attribute caching",
            ))
            .remedy(Remedy::pointless(
                "a faster disk under the mount point: every call goes through the daemon",
            ))
    };
    Verdict::Fires(groups.iter().map(finding).collect())
}
