//! The status page of PHP-FPM.
//!
//! Out: whether all processes of a pool are busy, how many connections wait for one, and how often the pool was too small.

use super::{Names, Reader, has};
use crate::format::{Family, Format, Shape};
use holdup_evidence::observed::{Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::new(
    "php-fpm-status",
    Family::Runtime,
    |head| has(head, NAMES, 3),
    Shape::Lines(|| Reader::boxed(judge)),
)
.about("status page of PHP-FPM");

const NAMES: &[&str] = &[
    "process manager",
    "accepted conn",
    "listen queue",
    "max listen queue",
    "listen queue len",
    "idle processes",
    "active processes",
    "max active processes",
    "max children reached",
    "slow requests",
];

fn judge(names: &Names) -> Vec<Statement> {
    let pool = match names.text("pool") {
        "" => "a pool".to_owned(),
        pool => format!("pool {pool}"),
    };
    let of = |name| names.number(name);
    let (busy, all) = (of("active processes"), of("total processes"));
    let waiting = names.some("listen queue");
    let reached = names.some("max children reached");
    let mut said = Vec::new();
    if let Some((busy, idle)) = busy.zip(of("idle processes"))
        && idle == 0.0
        && busy > 0.0
        && (waiting.is_some() || reached.is_some())
    {
        let text = format!(
            "all {busy:.0} processes of {pool} are busy; {:.0} connections wait in its listen queue (at most {}); max children reached \
             {:.0} times",
            waiting.unwrap_or(0.0),
            names.text("listen queue len"),
            reached.unwrap_or(0.0)
        );
        said.push(names.say(StatementKind::Exhausted, "active processes", text));
    } else if let Some(times) = reached {
        let text =
            format!("{pool} had as many processes as it may have {times:.0} times (max children reached)");
        said.push(names.say(StatementKind::Exhausted, "max children reached", text));
    } else if let Some(waiting) = waiting {
        let text = format!("{waiting:.0} connections wait in the listen queue of {pool}");
        said.push(names.say(StatementKind::Stalled, "listen queue", text));
    }
    if let Some(slow) = names.some("slow requests") {
        let text =
            format!("{slow:.0} requests of {pool} were slow by its own limit (request_slowlog_timeout)");
        said.push(names.say(StatementKind::Stalled, "slow requests", text));
    }
    if said.is_empty()
        && let Some((busy, all)) = busy.zip(all)
    {
        let text = format!(
            "{busy:.0} of {all:.0} processes of {pool} are busy, and nobody waits in its listen queue (0 is well)"
        );
        said.push(names.say(StatementKind::WithinNorm, "active processes", text));
    }
    said
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn first(idle: u32, busy: u32, waiting: u32, reached: u32) -> (StatementKind, String) {
        let text = format!(
            "pool:                 shop\nprocess manager:      dynamic\nlisten queue:         {waiting}\nlisten queue len:     128\n\
             idle processes:       {idle}\nactive processes:     {busy}\ntotal processes:      {}\nmax children reached: {reached}\nslow requests:        0\n",
            idle + busy
        );
        let reading = read_text("f", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "php-fpm-status");
        let one = &reading.observed.statements[0];
        (one.kind, one.text.clone())
    }

    #[test]
    fn a_pool_without_idle_processes_is_used_up_where_somebody_waits() {
        let (kind, text) = first(0, 20, 41, 9);
        assert_eq!(kind, StatementKind::Exhausted);
        assert_eq!(
            text,
            "all 20 processes of pool shop are busy; 41 connections wait in its listen queue (at most 128); max children reached 9 times"
        );
        assert_eq!(first(3, 17, 0, 0).0, StatementKind::WithinNorm);
        assert_eq!(first(0, 20, 0, 0).0, StatementKind::WithinNorm);
    }
}
