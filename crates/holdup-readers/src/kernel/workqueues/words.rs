//! A stuck pool of workers, in words.

use super::Pool;

/// Functions that a statement names.
const MAX_NAMED: usize = 4;

/// What has its worker, for how long it has been stuck, and what waits.
pub(super) fn told(pool: &Pool) -> String {
    let cpus = match pool.cpus.as_str() {
        "" => String::new(),
        cpus if cpus.bytes().all(|byte| byte.is_ascii_digit()) => format!(" of CPU {cpus}"),
        cpus => format!(" of CPUs {cpus}"),
    };
    let nice = match pool.nice.as_str() {
        "" | "0" => String::new(),
        nice => format!(" with nice {nice}"),
    };
    let long = match pool.seconds {
        0 => String::new(),
        seconds => format!(" for {seconds} s"),
    };
    let place = format!("the kernel's worker pool{cpus}{nice}");
    let mut text = match pool.flying.split_first() {
        Some((first, others)) => {
            let runs = |seconds: Option<u64>| {
                seconds.map_or_else(String::new, |seconds| format!(", for {seconds} s"))
            };
            let mut who = format!(
                "{} (work queue {}, worker {}{})",
                first.function,
                first.queue,
                first.worker,
                runs(first.seconds)
            );
            for other in others.iter().take(MAX_NAMED - 1) {
                let long = runs(other.seconds);
                who.push_str(&format!(", {} (worker {}{long})", other.function, other.worker));
            }
            let verb = if others.is_empty() { "is" } else { "are" };
            format!("{who} {verb} in flight in {place}, which has been stuck{long} (workqueue lockup)")
        }
        None => {
            format!("{place} has been stuck{long} (workqueue lockup), and nothing in flight is told of it")
        }
    };
    if !pool.frames.is_empty() {
        text.push_str(&format!("; its worker is in {}", pool.frames.join(" < ")));
    }
    if pool.waits > 0 {
        let mut pending: Vec<&(String, u64)> = pool.pending.iter().collect();
        pending.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let named: Vec<String> = pending
            .iter()
            .take(MAX_NAMED)
            .map(|(name, count)| match count {
                1 => name.clone(),
                count => format!("{count} {name}"),
            })
            .collect();
        let end = if pending.len() > MAX_NAMED { ", …" } else { "" };
        text.push_str(&format!(
            "; {} wait for it: {}{end}",
            pool.waits,
            named.join(", ")
        ));
    }
    text
}
