//! Cron jobs that pile up: the same command several times at once, each started by cron, because the earlier runs have not ended.
//!
//! In: rows of one list, with the parent where the list has it, and in the list's order. Out: a statement about the job of which most copies run.

use crate::find::find;
use crate::gather::text_of;
use std::collections::{HashMap, HashSet};

/// Copies from which they pile up: two are a run that took a little longer once.
const MIN_COPIES: usize = 3;

/// Rows of cron and jobs that are kept, bytes of a command, and copies whose numbers are told.
const MAX_ROWS: usize = 4_096;
const MAX_COMMAND_BYTES: usize = 160;
const MAX_TOLD: usize = 6;

/// Rows between a process of cron and its shell, in a list without parents.
const NEAR: u64 = 2;

/// How shells are asked to run a job.
const SHELLS: [&[u8]; 6] = [
    b"/bin/sh -c ",
    b"sh -c ",
    b"/bin/bash -c ",
    b"bash -c ",
    b"/usr/bin/sh -c ",
    b"/usr/bin/bash -c ",
];

#[derive(Debug)]
struct Job {
    command: Vec<u8>,
    pid: u32,
    parent: Option<u32>,
    /// Whether a process of cron stands right above it.
    below_cron: bool,
    line: u64,
}

/// The jobs of one list.
#[derive(Debug, Default)]
pub(crate) struct Piled {
    rows: u64,
    /// The row of the last process that cron made for a job.
    last_cron: Option<u64>,
    crons: HashSet<u32>,
    jobs: Vec<Job>,
}

/// What a process of cron is called: `/usr/sbin/CRON -f`, `crond`, `(CROND)`. The one that is made for a job has its name in capitals.
fn cron(command: &[u8]) -> Option<bool> {
    let program = command.split(u8::is_ascii_whitespace).next()?;
    let name = program.rsplit(|byte| *byte == b'/').next()?;
    let name = name.strip_prefix(b"(").unwrap_or(name);
    let name = name.strip_suffix(b")").unwrap_or(name);
    match name {
        b"CRON" | b"CROND" => Some(true),
        b"cron" | b"crond" => Some(false),
        _ => None,
    }
}

/// The command that a shell was asked to run.
fn asked(command: &[u8]) -> Option<&[u8]> {
    SHELLS
        .iter()
        .find_map(|shell| command.strip_prefix(*shell))
        .map(<[u8]>::trim_ascii)
}

/// Whether a command is another one for each user: `cd ~/site && php cron.php`.
fn of_home(command: &[u8]) -> bool {
    command.contains(&b'~')
        || [&b"$HOME"[..], b"${HOME", b"$USER"]
            .iter()
            .any(|of| find(command, of).is_some())
}

impl Piled {
    /// Takes a row; its command without the lines of a forest.
    pub(crate) fn row(&mut self, pid: Option<u32>, parent: Option<u32>, command: &[u8], line: u64) {
        self.rows += 1;
        let Some(pid) = pid else { return };
        if let Some(of_job) = cron(command) {
            if of_job {
                self.last_cron = Some(self.rows);
            }
            if self.crons.len() < MAX_ROWS {
                self.crons.insert(pid);
            }
            return;
        }
        let Some(asked) = asked(command).filter(|asked| !asked.is_empty() && !of_home(asked)) else {
            return;
        };
        if self.jobs.len() < MAX_ROWS {
            let below_cron = self.last_cron.take().is_some_and(|row| self.rows - row <= NEAR);
            self.jobs.push(Job {
                command: asked.get(..MAX_COMMAND_BYTES).unwrap_or(asked).to_vec(),
                pid,
                parent,
                below_cron,
                line,
            });
        }
    }

    /// The list is over: the line of the first copy, and what it says.
    pub(crate) fn told(&mut self) -> Option<(u64, String)> {
        let all = std::mem::take(self);
        let of_cron = |job: &&Job| match job.parent {
            Some(parent) => all.crons.contains(&parent),
            None => job.below_cron,
        };
        // A list that was taken several times has the same process several times.
        let mut seen = HashSet::new();
        let mut copies: HashMap<&[u8], Vec<&Job>> = HashMap::new();
        for job in all.jobs.iter().filter(of_cron).filter(|job| seen.insert(job.pid)) {
            copies.entry(&job.command).or_default().push(job);
        }
        let most = copies
            .into_iter()
            .max_by_key(|(command, jobs)| (jobs.len(), std::cmp::Reverse(*command)));
        let (command, jobs) = most.filter(|(_, jobs)| jobs.len() >= MIN_COPIES)?;
        let first = jobs.first()?;
        let pids: Vec<String> = jobs
            .iter()
            .take(MAX_TOLD)
            .map(|job| job.pid.to_string())
            .collect();
        let more = if jobs.len() > MAX_TOLD { ", …" } else { "" };
        let text = format!(
            "{} copies of the cron job `{}` run at once (pids {}{more}), each under a process of cron of its own: the earlier runs have not ended when \
             cron starts the next, and they pile up",
            jobs.len(),
            text_of(command),
            pids.join(", ")
        );
        Some((first.line, text))
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn piled(text: &str) -> Vec<String> {
        let observed = read_text("p", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "ps");
        let all = observed
            .statements
            .into_iter()
            .filter(|one| one.kind == StatementKind::Stalled);
        all.map(|one| one.text).collect()
    }

    #[test]
    fn rows_without_a_head_and_without_parents() {
        let run = |pid: u32| {
            format!(
                "{pid} ?        S      0:00 /usr/sbin/CRON -f\n{} ?        Ss     0:00 /bin/sh -c /opt/sync.sh >/dev/null 2>&1\n{} ?        S      0:01 rsync -a x y\n",
                pid + 1,
                pid + 2
            )
        };
        let text = format!("{}{}{}", run(100), run(200), run(300));
        let told = piled(&text);
        assert!(
            told[0].starts_with("3 copies of the cron job `/opt/sync.sh >/dev/null 2>&1` run at once (pids 101, 201, 301), each under"),
            "{told:?}"
        );
        assert_eq!(piled(&format!("{}{}", run(100), run(200))), Vec::<String>::new());
    }

    #[test]
    fn lists_that_name_the_parent() {
        let head = "UID        PID  PPID  C STIME TTY          TIME CMD\nroot       500     1  0 Mar01 ?        00:00:03 crond\n";
        let run = |pid: u32, job: &str| {
            format!("root      {pid}   500  0 10:01 ?        00:00:00 /bin/sh -c {job}\n")
        };
        let same = format!(
            "{head}{}{}{}{}",
            run(601, "backup.sh"),
            run(602, "backup.sh"),
            run(603, "backup.sh"),
            run(604, "other.sh")
        );
        assert!(piled(&same)[0].starts_with("3 copies of the cron job `backup.sh`"));
        let others = format!(
            "{head}{}{}{}",
            run(601, "a.sh"),
            run(602, "b.sh"),
            run(603, "c.sh")
        );
        assert_eq!(piled(&others), Vec::<String>::new());
    }

    #[test]
    fn the_same_list_again_and_jobs_of_several_homes() {
        let list = "UID        PID  PPID  C STIME TTY          TIME CMD\nroot       500     1  0 Mar01 ?        00:00:03 crond\n\
            root       601   500  0 10:01 ?        00:00:00 /bin/sh -c backup.sh\n";
        assert_eq!(piled(&list.repeat(3)), Vec::<String>::new());
        let run = |pid: u32| {
            format!(
                "u{pid}      {pid}   500  0 10:01 ?        00:00:00 /bin/sh -c cd ~/site && php cron.php\n"
            )
        };
        let homes = format!("{list}{}{}{}", run(701), run(702), run(703));
        assert_eq!(piled(&homes), Vec::<String>::new());
    }

    #[test]
    fn workers_that_somebody_else_started_are_meant_to_be_several() {
        let text = "UID        PID  PPID  C STIME TTY          TIME CMD\nroot       500     1  0 Mar01 ?        00:00:03 supervisord\n\
            root       501   500  0 10:01 ?        00:00:00 /bin/sh -c worker\nroot       502   500  0 10:01 ?        00:00:00 /bin/sh -c worker\n\
            root       503   500  0 10:01 ?        00:00:00 /bin/sh -c worker\n";
        assert_eq!(piled(text), Vec::<String>::new());
    }
}
