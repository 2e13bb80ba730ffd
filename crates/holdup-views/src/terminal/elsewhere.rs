//! The lines about processes in containers: they have other numbers and paths, and both sides' are said.

use super::margins;
use crate::sheet::Sheet;
use crate::units::counted;
use holdup_model::report::{Elsewhere, Report};

/// Processes that are described singly; where there are more, as in a recording of a machine, they are counted.
const MAX_PROCESSES: usize = 3;

/// Writes them below the header.
pub(super) fn write(sheet: &mut Sheet, report: &Report) {
    let all = &report.subject.elsewhere;
    let singly = if all.len() > MAX_PROCESSES { 0 } else { all.len() };
    let first = all.iter().take(singly).map(line);
    margins::lines(sheet, first, all.len(), |more| {
        format!(
            "{} in other namespaces: the JSON report lists them",
            counted(more, "process is", "processes are")
        )
    });
}

fn line(one: &Elsewhere) -> String {
    let inside = one
        .pid_inside
        .map(|inside| format!("has pid {inside} in its namespace"));
    let paths = one
        .root
        .as_ref()
        .map(|root| format!("has its own root directory, which is {root} here"));
    let cgroup = one.cgroup.as_ref().map(|cgroup| format!("is in cgroup {cgroup}"));
    let parts: Vec<String> = inside.into_iter().chain(paths).chain(cgroup).collect();
    format!("process {} {}", one.pid, parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{Elsewhere, line};

    #[test]
    fn both_sides_numbers_and_paths_are_said() {
        let mut one = Elsewhere {
            pid: 4711,
            pid_inside: Some(1),
            root: Some("/proc/4711/root".to_owned()),
            cgroup: Some("/docker/abc".to_owned()),
        };
        assert_eq!(
            line(&one),
            "process 4711 has pid 1 in its namespace, has its own root directory, which is /proc/4711/root \
             here, is in cgroup /docker/abc"
        );
        (one.root, one.cgroup) = (None, None);
        assert_eq!(line(&one), "process 4711 has pid 1 in its namespace");
    }
}
