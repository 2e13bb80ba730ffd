//! Trees of made-up stacks: nothing is missing, whatever is left out.

use super::{SHOWN, Source, Stacks, tree};
use crate::comparison::frames::Frames;
use holdup_evidence::observed::Weight;
use holdup_model::report::{Measure, StackTree, TreeFrameKind};
use proptest::prelude::{prop_assert, proptest};

fn source(stacks: &[(&str, u64)]) -> Source {
    let mut source = Source::of_profile("p".to_owned(), &Frames::default(), Weight::Ns);
    for (stack, weight) in stacks {
        let mut at = source.stacks.root();
        for frame in stack.split(';') {
            at = source.stacks.below(at, frame, TreeFrameKind::Native);
        }
        source.stacks.add(at, *weight as f64);
    }
    source
}

/// All of a tree as lines, with what is below each added up.
fn weights(tree: &StackTree) -> Vec<(String, f64, f64)> {
    let mut lines: Vec<(String, f64, f64)> = Vec::new();
    for node in &tree.nodes {
        let name = &tree.frames[node.frame as usize].name;
        let path = match node.parent {
            Some(parent) => format!("{};{name}", lines[parent as usize].0),
            None => name.clone(),
        };
        lines.push((path, node.before, node.after));
    }
    for at in (1..lines.len()).rev() {
        let parent = tree.nodes[at].parent.unwrap() as usize;
        assert!(parent < at);
        let (before, after) = (lines[at].1, lines[at].2);
        lines[parent].1 += before;
        lines[parent].2 += after;
    }
    lines
}

#[test]
fn both_sides_are_for_each_unit_of_work_and_what_is_gone_is_there() {
    let before = [source(&[("main;read", 300), ("main;gone", 100)])];
    let after = [source(&[("main;read", 400), ("main;x$$Lambda$7;new", 40)])];
    let tree = tree([&before, &after], [10.0, 4.0], Measure::Ns).unwrap();
    let line = |path: &str, before: f64, after: f64| (path.to_owned(), before, after);
    assert_eq!(
        weights(&tree),
        [
            line("everything", 40.0, 110.0),
            line("everything;main", 40.0, 110.0),
            line("everything;main;read", 30.0, 100.0),
            line("everything;main;gone", 10.0, 0.0),
            line("everything;main;x$$Lambda*", 0.0, 10.0),
            line("everything;main;x$$Lambda*;new", 0.0, 10.0),
        ]
    );
}

#[test]
fn a_side_without_stacks_has_no_picture() {
    let some = [source(&[("main", 1)])];
    let none = [source(&[])];
    assert!(tree([&some, &none], [1.0, 1.0], Measure::Ns).is_none());
    assert!(tree([&some, &some], [1.0, 0.0], Measure::Ns).is_none());
    assert!(tree([&[], &some], [1.0, 1.0], Measure::Ns).is_none());
}

#[test]
fn what_is_too_small_counts_in_its_caller_and_nothing_is_missing() {
    let mut one = source(&[("main;big", 1_000_000)]);
    for at in 0..2 * SHOWN {
        let root = one.stacks.root();
        let main = one.stacks.below(root, "main", TreeFrameKind::Native);
        let small = one
            .stacks
            .below(main, &format!("small_{at}_of"), TreeFrameKind::Native);
        one.stacks.add(small, 1.0);
    }
    let sides = [one];
    let tree = tree([&sides, &sides], [1.0, 1.0], Measure::Ns).unwrap();
    assert_eq!(tree.nodes.len(), SHOWN);
    assert!(tree.left_out > SHOWN as u64);
    let lines = weights(&tree);
    assert_eq!(
        (lines[0].1, lines[0].2),
        (1_000_000.0 + 2.0 * SHOWN as f64, lines[0].1)
    );
}

#[test]
fn segments_of_one_run_are_added_up() {
    let mut all = Stacks::default();
    all.append(&source(&[("main;read", 3)]).stacks);
    all.append(&source(&[("main;write", 4), ("main;read", 1)]).stacks);
    let sides = [Source {
        stacks: all,
        ..source(&[])
    }];
    let tree = tree([&sides, &sides], [1.0, 1.0], Measure::Ns).unwrap();
    let read = weights(&tree)
        .into_iter()
        .find(|line| line.0.ends_with(";read"))
        .unwrap();
    assert_eq!((read.1, read.2), (4.0, 4.0));
}

#[test]
fn a_profile_is_drawn_as_it_is_read() {
    let mut frames = Frames::default().with_stacks();
    for (stack, weight) in [
        ("java/Run.run_[j];--;sys_read_[k]", 3),
        ("java/Run.run_[j];--;sys_read_[k];wait_[k]", 4),
        ("java/Run.run_[j]", 1),
        ("other", 2),
        ("java/Run.run_[j];--;sys_read_[k]", 5),
    ] {
        frames.add(stack.as_bytes(), weight);
    }
    let sides = [Source::of_profile("p".to_owned(), &frames, Weight::Us)];
    let tree = tree([&sides, &sides], [1.0, 1.0], Measure::Ns).unwrap();
    let rows: Vec<(String, f64)> = weights(&tree)
        .into_iter()
        .map(|(path, before, _)| (path, before))
        .collect();
    let line = |path: &str, us: u32| (path.to_owned(), f64::from(us) * 1e3);
    assert_eq!(
        rows,
        [
            line("everything", 15),
            line("everything;java/Run.run", 13),
            line("everything;java/Run.run;sys_read", 12),
            line("everything;java/Run.run;sys_read;wait", 4),
            line("everything;other", 2),
        ]
    );
    let kinds: Vec<TreeFrameKind> = tree.frames.iter().map(|frame| frame.kind).collect();
    use TreeFrameKind::{Java, Kernel, Native, Other};
    assert_eq!(kinds, [Other, Java, Kernel, Kernel, Native]);
}

proptest! {
    #[test]
    fn sums_are_those_of_the_stacks(stacks in proptest::collection::vec(("[ab](;[abc]{1,2}){0,4}", 0_u64..9), 1..30)) {
        let stacks: Vec<(&str, u64)> = stacks.iter().map(|(stack, weight)| (stack.as_str(), *weight)).collect();
        let sides = [source(&stacks)];
        let tree = tree([&sides, &sides], [1.0, 2.0], Measure::Samples).unwrap();
        let sum: f64 = stacks.iter().map(|(_, weight)| *weight as f64).sum();
        let lines = weights(&tree);
        prop_assert!((lines[0].1 - sum).abs() < 1e-9 && (lines[0].2 - sum / 2.0).abs() < 1e-9);
    }
}
