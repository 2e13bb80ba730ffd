//! A JVM compiles its own code on the CPU that the program needs, and the program stands ready meanwhile.

use crate::rules::{
    Check, Extend, Generality, MATTERS, Need, Place, Rule, RuleId, Run, Waits, duration, fires, percent,
    queueing, say,
};
use holdup_attribution::attribution::compiles;
use holdup_evidence::{Cause, Jvm, Ns};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::CompilingTakesTheCpu,
    about: "a JVM compiles its code on the CPU that the program itself needs",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::SchedRunqueue, Cause::SchedThrottled],
    from: MATTERS,
    generality: Generality::Specific,
    explains: &[RuleId::CpuQuotaSpent],
    place: Place::End,
    check: Check::Waits(check),
};

/// Part of the CPU time of all of the machine's threads that compiling takes, from which it is in the way. A program that has
/// warmed up spends a few per cent so.
const PART: f64 = 1.0 / 3.0;

/// Part of the time for which its own threads must have had the CPU: else others are in the way.
const MOST: f64 = 0.5;

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let of_jvm = |pid: u32| run.facts.jvms.iter().find(|jvm| jvm.pid == pid);
    let Some(ready) = waits.only(|wait| of_jvm(wait.asker.name.pid).is_some()) else {
        return Verdict::Clear("0 of the threads that were ready to run are of a JVM".to_owned());
    };
    let pid = ready.main().asker.name.pid;
    let (Some(jvm), Some(program)) = (
        of_jvm(pid),
        ready.only(|wait| wait.asker.name.pid == pid && !compiles(&wait.asker.name.thread)),
    ) else {
        return Verdict::Clear("0 of the threads that were ready to run are the program's".to_owned());
    };
    let ran = |which: &dyn Fn(&str) -> bool| {
        let own = |cause| matches!(cause, Cause::CpuUser | Cause::CpuKernel);
        let waits =
            run.waits(|wait| own(wait.cause) && wait.asker.name.pid == pid && which(&wait.asker.name.thread));
        waits.map_or(0, |waits| waits.own())
    };
    let (compiling, all) = (ran(&compiles), ran(&|_| true));
    let part = compiling as f64 / all.max(1) as f64;
    if part < PART || program.cost().saturating_mul(2) < waits.cost() {
        return Verdict::Clear(format!(
            "compiling is {} of the JVM's time on a CPU",
            percent(part)
        ));
    }
    if waits.cause() == Cause::SchedRunqueue {
        match by_itself(&ready) {
            None => {
                return Verdict::CannotTell(
                    "who had the CPU while the JVM's threads were ready to run".to_owned(),
                );
            }
            Some(own) if own <= MOST => {
                return Verdict::Clear(format!(
                    "its own threads had the CPU for {} of the time that it was ready to run",
                    percent(own)
                ));
            }
            Some(_) => {}
        }
    }
    fires(finding(run, &program, jvm, compiling, all))
}

/// For what part of the time threads of the same process ran; `None` where it is not known who ran.
fn by_itself(ready: &Waits<'_>) -> Option<f64> {
    let name = &ready.main().asker.name.process;
    let instead = queueing::ran_instead(ready);
    let all: Ns = instead.iter().map(|(_, ns)| ns).sum();
    let own = instead.iter().filter(|(other, _)| *other == name);
    let own: Ns = own.map(|(_, ns)| ns).sum();
    (all > 0).then(|| own as f64 / all as f64)
}

fn finding(run: &Run<'_>, program: &Waits<'_>, jvm: &Jvm, compiling: Ns, all: Ns) -> Finding {
    let who = say::name_or(&program.main().asker.name.process, "a JVM");
    let title = format!(
        "{who} compiles its code on the CPU that it needs to run: {} of the time it is ready and waits",
        percent(run.share(program.cost()))
    );
    let counted = format!(
        "threads that compile used the CPU for {}, which is {} of what the whole JVM used",
        duration(compiling),
        percent(compiling as f64 / all.max(1) as f64)
    );
    let has = jvm.processors.map(|cpus| {
        Evidence::new(
            format!(
                "it has {} by the kernel's and its own rules",
                say::several(u64::from(cpus), "CPU")
            ),
            "allowed CPUs and CPU quota",
        )
    });
    RULE.finding(Severity::Warning, title, program)
        .confidence(Confidence::Strong)
        .about_if_unnamed(queueing::winner(program))
        .and(Evidence::new(counted, say::SCHEDULER))
        .and_if(has)
        .and_if(queueing::who_ran(run, program))
        .remedy(Remedy::safe(
            "give it one CPU more, or a larger quota, for as long as it starts: compiling goes on beside the program then",
        ))
        .remedy(Remedy::changing(
            "for a program that runs for seconds: -XX:TieredStopAtLevel=1 compiles each method once, quickly",
            "code that runs for long stays slower than the second compiler makes it",
        ))
        .remedy(Remedy::safe(
            "from JDK 25 a cache that was made in an earlier run tells what is worth compiling: -XX:AOTCacheOutput=app.aot once, \
             then -XX:AOTCache=app.aot",
        ))
}
