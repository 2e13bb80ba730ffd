//! What is written is read again, and the columns tell the same as the whole.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod support;

use holdup_recording::{COLUMNS, Segment, merge, read, save};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use support::Dice;

fn there_and_back(segment: &Segment) -> Segment {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.parquet");
    save(segment, &path).unwrap();
    read(&path).unwrap().pop().unwrap()
}

proptest! {
    // Each case goes to the disk.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_segment_comes_back_equal(seed in any::<u64>()) {
        let segment = Dice::new(seed).segment();
        prop_assert_eq!(there_and_back(&segment), segment);
    }

    #[test]
    fn one_segment_alone_is_what_it_was(seed in any::<u64>()) {
        let segment = Dice::new(seed).segment();
        prop_assert_eq!(merge([segment.clone()]), Some(segment));
    }

    #[test]
    fn sums_of_several_are_the_sums(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let mut segments: Vec<Segment> = (0..3).map(|_| dice.segment()).collect();
        // Among what ran already a run is reported as threads' time; here all are of one kind.
        for segment in &mut segments {
            segment.attributed.of_threads = true;
        }
        let whole = merge(segments.clone()).unwrap();
        prop_assert_eq!(whole.head.segments, 3);
        for cause in holdup_evidence::Cause::ALL {
            let of = |segment: &Segment| {
                let threads = segment.attributed.threads.iter();
                let waits = segment.attributed.waits.iter().filter(|wait| wait.cause == *cause);
                [
                    segment.attributed.path.get(cause).map_or(0, |tally| tally.ns),
                    threads.flat_map(|one| one.causes.get(cause)).map(|tally| tally.ns).fold(0, u64::saturating_add),
                    waits.clone().map(|wait| wait.ns).fold(0, u64::saturating_add),
                    waits.map(|wait| wait.max).max().unwrap_or(0),
                ]
            };
            let parts: Vec<[u64; 4]> = segments.iter().map(of).collect();
            let sum = |at: usize| parts.iter().map(|part| part[at]).fold(0, u64::saturating_add);
            let longest = parts.iter().map(|part| part[3]).max().unwrap_or(0);
            prop_assert_eq!(of(&whole), [sum(0), sum(1), sum(2), longest], "{}", cause.id());
        }
    }

    #[test]
    fn columns_tell_what_the_whole_does(seed in any::<u64>()) {
        let segment = Dice::new(seed).segment();
        let mut bytes = Vec::new();
        holdup_recording::write(&segment, &mut bytes).unwrap();
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let at = |name: &str| COLUMNS.iter().position(|column| column.name == name).unwrap();
        let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        let waits: Vec<_> = rows.iter().filter(|row| row.get_string(at("kind")).unwrap() == "wait").collect();
        prop_assert_eq!(waits.len(), segment.attributed.waits.len());
        for (row, wait) in waits.iter().zip(&segment.attributed.waits) {
            prop_assert_eq!(row.get_string(at("cause")).unwrap(), wait.cause.id());
            prop_assert_eq!(row.get_long(at("ns")).unwrap(), i64::try_from(wait.ns).unwrap_or(i64::MAX));
            prop_assert_eq!(row.get_string(at("process")).unwrap(), &wait.asker.name.process);
            prop_assert_eq!(row.get_string(at("resource")).unwrap(), &wait.resource.name);
            let stack = row.get_list(at("stack")).unwrap();
            prop_assert_eq!(stack.elements().len(), wait.asker.stack.len());
        }
        let figures: Vec<_> = rows.iter().filter(|row| row.get_string(at("kind")).unwrap() == "figure").collect();
        let series = segment.look.iter().flat_map(|look| &look.observed.series);
        let known: Vec<_> = series.filter(|one| one.greatest().is_some()).collect();
        prop_assert_eq!(figures.len(), known.len());
        for (row, series) in figures.iter().zip(known) {
            prop_assert_eq!(row.get_double(at("figure_max")).unwrap(), series.greatest().unwrap().value);
            prop_assert!(row.get_string(at("cause")).is_err() && row.get_long(at("ns")).is_err());
        }
    }
}

#[test]
fn the_page_has_every_column_as_it_is() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recordings.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, table) = page
        .split_once("| column | type | what |\n|---|---|---|\n")
        .unwrap();
    let rows: Vec<String> = COLUMNS
        .iter()
        .map(|column| format!("| `{}` | {} | {} |", column.name, column.kind(), column.about))
        .collect();
    assert_eq!(table.lines().take(rows.len()).collect::<Vec<_>>(), rows);
    assert_eq!(table.lines().nth(rows.len()), Some(""));
}
