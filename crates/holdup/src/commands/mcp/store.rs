//! The last reports, so that a client can ask for parts of them.

use serde_json::Value;
use std::collections::VecDeque;

/// Reports that are kept.
const REPORTS: usize = 8;

/// Bytes of all of them as text; the last one is kept whatever its size, which is bounded where it is read.
const BYTES: usize = 48 << 20;

/// Fields that nobody asks for by id, and that are most of a report: pictures are drawn from them.
const PICTURES: [&str; 3] = ["timeline", "windows", "host_figures"];

/// Reports by number.
#[derive(Debug, Default)]
pub(super) struct Store {
    last: u64,
    reports: VecDeque<(u64, usize, Value)>,
}

impl Store {
    /// Keeps a report of so many bytes, and returns its id.
    pub(super) fn keep(&mut self, mut report: Value, bytes: usize) -> String {
        if let Some(fields) = report.as_object_mut() {
            PICTURES.iter().for_each(|name| {
                fields.remove(*name);
            });
        }
        self.last += 1;
        self.reports.push_back((self.last, bytes, report));
        let total = |reports: &VecDeque<(u64, usize, Value)>| reports.iter().map(|one| one.1).sum::<usize>();
        while self.reports.len() > 1 && (self.reports.len() > REPORTS || total(&self.reports) > BYTES) {
            self.reports.pop_front();
        }
        format!("r{}", self.last)
    }

    /// The report with this id, if it is still there.
    pub(super) fn get(&self, id: &str) -> Option<&Value> {
        let number: u64 = id.strip_prefix('r')?.parse().ok()?;
        let mut reports = self.reports.iter();
        reports.find(|one| one.0 == number).map(|one| &one.2)
    }
}

#[cfg(test)]
mod tests {
    use super::Store;
    use serde_json::json;

    #[test]
    fn the_oldest_go_first_and_ids_are_never_used_again() {
        let mut store = Store::default();
        let ids: Vec<String> = (0..10)
            .map(|at| store.keep(json!({"at": at, "timeline": [1]}), 10))
            .collect();
        assert_eq!((store.get(&ids[0]), store.get(&ids[1])), (None, None));
        assert_eq!(store.get(&ids[2]), Some(&json!({"at": 2})), "without its picture");
        store.keep(json!({}), 40 << 20);
        let last = store.keep(json!({"at": 11}), 47 << 20);
        assert_eq!(
            (store.get(&ids[9]), store.get(&last)),
            (None, Some(&json!({"at": 11})))
        );
        for wrong in ["", "r", "1", "r-1", "r99"] {
            assert_eq!(store.get(wrong), None, "{wrong}");
        }
    }
}
