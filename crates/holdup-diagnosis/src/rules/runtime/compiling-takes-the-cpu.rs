//! A JVM compiles its own code on the CPU that the program needs, and the program stands ready meanwhile.

use crate::rules::{Extend, Rule, RuleId, Run, Waits, duration, fires, percent, queueing, say};
use holdup_attribution::attribution::compiles;
use holdup_evidence::{Cause, Jvm, Ns};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::CompilingTakesTheCpu, check)
    .about("the JIT compiler uses the CPU that the program needs")
    .causes(&[Cause::SchedRunqueue, Cause::SchedThrottled])
    .explains(&[RuleId::CpuQuotaSpent]);

/// Part of the CPU time of all of the machine's threads that compiling takes, from which it is in the way. A program that has
/// warmed up spends a few per cent so.
const MIN_CPU_SHARE: f64 = 1.0 / 3.0;

/// Part of the time for which its own threads must have had the CPU: else others are in the way.
const MIN_TIME_SHARE: f64 = 0.5;

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let of_jvm = |pid: u32| run.facts.jvms.iter().find(|jvm| jvm.pid == pid);
    let Some(ready) = waits.only(|wait| of_jvm(wait.asker.name.pid).is_some()) else {
        return Verdict::Clear("0 of the runnable threads belong to a JVM".to_owned());
    };
    let pid = ready.main().asker.name.pid;
    let (Some(jvm), Some(program)) = (
        of_jvm(pid),
        ready.only(|wait| wait.asker.name.pid == pid && !compiles(&wait.asker.name.thread)),
    ) else {
        return Verdict::Clear("0 of the runnable threads belong to the program".to_owned());
    };
    let ran = |which: &dyn Fn(&str) -> bool| {
        let own = |cause| matches!(cause, Cause::CpuUser | Cause::CpuKernel);
        let waits =
            run.waits(|wait| own(wait.cause) && wait.asker.name.pid == pid && which(&wait.asker.name.thread));
        waits.map_or(0, |waits| waits.own())
    };
    let (compiling, all) = (ran(&compiles), ran(&|_| true));
    let part = compiling as f64 / all.max(1) as f64;
    if part < MIN_CPU_SHARE || program.cost().saturating_mul(2) < waits.cost() {
        return Verdict::Clear(format!(
            "compiling is {} of the JVM's time on a CPU",
            percent(part)
        ));
    }
    if waits.cause() == Cause::SchedRunqueue {
        match by_itself(&ready) {
            None => {
                return Verdict::CannotTell(
                    "the threads that had the CPU while threads of the JVM were runnable".to_owned(),
                );
            }
            Some(own) if own <= MIN_TIME_SHARE => {
                return Verdict::Clear(format!(
                    "its own threads had the CPU for {} of the time that it was runnable",
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
        "{who} is runnable without a CPU for {} of the time, because its JIT compiler has it",
        percent(run.share(program.cost()))
    );
    let counted = format!(
        "compiler threads used the CPU for {}, which is {} of the CPU time of the JVM",
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
            "give it one more CPU, or a larger quota, while it starts: compilation then runs in parallel",
        ))
        .remedy(Remedy::changing(
            "use -XX:TieredStopAtLevel=1 for a program that runs for seconds: each method is compiled once, \
             quickly",
            "long-running code is slower without the second compiler",
        ))
        .remedy(Remedy::safe(
            "use an AOT cache of an earlier run (JDK 25 and later): -XX:AOTCacheOutput=app.aot once, then \
             -XX:AOTCache=app.aot",
        ))
}
