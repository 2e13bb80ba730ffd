//! Each screen as cells, and what keys do.

use crate::{Effect, Event, Key, Moments, Paper, State, draw};
use holdup_evidence::Cause;
use holdup_model::finding::Severity;
use holdup_views::{Look, LookRow, LookStep};
use ratatui_core::backend::TestBackend;
use ratatui_core::style::Color;
use ratatui_core::terminal::Terminal;

const SECOND: u64 = 1_000_000_000;

const PLAIN: Paper = Paper {
    colour: false,
    unicode: true,
};

fn step(who: &str, doing: Cause) -> LookStep {
    LookStep {
        who: who.to_owned(),
        doing: Some(doing),
        ns: 9 * SECOND,
    }
}

fn row(pid: u32, who: &str, cause: Cause, what: &str) -> LookRow {
    LookRow {
        key: format!("{pid} {} {what}", cause.id()),
        cause,
        who: format!("{who} (pid {pid})"),
        what: format!("{}{what}", cause.phrase()),
        ns: 2 * SECOND,
        longest_ns: 12 * SECOND + 300_000_000,
        count: 1,
        open: true,
        rests: cause.rests(),
        behind: Vec::new(),
        lines: vec![("".to_owned(), "read, 1 byte".to_owned())],
        has_stack: false,
        findings: Vec::new(),
    }
}

/// A machine on which one waits behind three others.
fn look() -> Look {
    let mut first = row(101, "importer", Cause::IpcPipe, ": pipe from loader");
    first.behind = vec![
        step("loader (pid 102)", Cause::LockFile),
        step("backup (pid 103)", Cause::ProcessChild),
        step("tar (pid 104)", Cause::DiskSync),
    ];
    first.findings = vec![
        (
            String::new(),
            "importer waits for tar to reach the disk".to_owned(),
        ),
        ("do".to_owned(), "look at tar".to_owned()),
    ];
    let mut second = row(102, "loader", Cause::LockFile, ": /var/lock/load");
    second.behind = vec![step("backup (pid 103)", Cause::ProcessChild)];
    second.has_stack = true;
    second.lines.push(("user".to_owned(), "flock+0x7".to_owned()));
    let mut third = row(104, "tar", Cause::DiskSync, ": /var/backup/a.tar");
    (third.open, third.count) = (false, 42);
    Look {
        subject: "the whole machine".to_owned(),
        began: "2026-11-29T08:00:00Z".to_owned(),
        lasted_ns: 2 * SECOND,
        how: "sampled".to_owned(),
        sentence: "importer (pid 101) waits behind tar (pid 104), which forces data to disk".to_owned(),
        size: Some("for at least 12.3 s".to_owned()),
        severity: Some(Severity::Warning),
        remedy: Some(("Look at tar.".to_owned(), Some("holdup attach -p 104".to_owned()))),
        figures: vec!["CPUs 12.0 % busy".to_owned(), "disk vda 97.0 % busy".to_owned()],
        running: vec!["tar 3.0 %".to_owned()],
        idle_threads: 140,
        threads: 144,
        rows: vec![first, second, third, row(1, "init", Cause::Idle, "")],
        more_rows: 0,
        gaps: vec!["stacks of other users' processes".to_owned()],
    }
}

fn after(state: State, events: impl IntoIterator<Item = Event>) -> State {
    events
        .into_iter()
        .fold(state, |state, event| state.after(event).0)
}

fn shown(columns: u16, lines: u16) -> State {
    let events = [
        Event::Size(columns, lines),
        Event::Look("08:00:02".to_owned(), Box::new(look())),
        Event::Status("a look every 2.0 s".to_owned()),
    ];
    after(State::new(Moments::live()), events)
}

fn keys(state: State, keys: &[Key]) -> State {
    after(state, keys.iter().map(|key| Event::Key(*key)))
}

fn screen(state: &State, paper: Paper) -> String {
    let mut terminal = Terminal::new(TestBackend::new(state.size.0, state.size.1)).unwrap();
    terminal
        .draw(|frame| draw(state, paper, frame.buffer_mut()))
        .unwrap();
    let text = terminal.backend().to_string();
    text.lines()
        .map(|line| line.trim_matches('"').trim_end())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_list_at_each_size() {
    for (columns, lines) in [(80, 24), (40, 12), (200, 50)] {
        insta::assert_snapshot!(
            format!("list_{columns}x{lines}"),
            screen(&shown(columns, lines), PLAIN)
        );
    }
}

#[test]
fn the_details_at_each_size() {
    for (columns, lines) in [(80, 24), (40, 12)] {
        let state = keys(shown(columns, lines), &[Key::Down, Key::Enter]);
        insta::assert_snapshot!(format!("details_{columns}x{lines}"), screen(&state, PLAIN));
    }
}

#[test]
fn help_and_filter() {
    insta::assert_snapshot!("help", screen(&keys(shown(80, 24), &[Key::Char('?')]), PLAIN));
    let typed = [Key::Char('/'), Key::Char('t'), Key::Char('a'), Key::Char('r')];
    insta::assert_snapshot!("filter", screen(&keys(shown(80, 24), &typed), PLAIN));
}

#[test]
fn without_a_look_or_a_row_it_says_why() {
    let empty = after(State::new(Moments::live()), [Event::Size(80, 24)]);
    assert!(screen(&empty, PLAIN).contains("The first look is under way."));
    let nobody = Event::Look("now".to_owned(), Box::default());
    assert!(screen(&after(empty, [nobody]), PLAIN).contains("Nobody waits."));
    let none = keys(shown(80, 24), &[Key::Char('/'), Key::Char('~')]);
    assert!(screen(&none, PLAIN).contains("No row matches the filter ~."));
}

#[test]
fn no_size_is_too_small() {
    for (columns, lines) in [
        (0, 0),
        (1, 1),
        (2, 3),
        (80, 0),
        (80, 1),
        (80, 2),
        (7, 40),
        (300, 3),
    ] {
        let list = shown(columns, lines);
        if columns > 0 && lines > 0 {
            screen(&list, PLAIN);
            screen(&keys(list.clone(), &[Key::Enter]), PLAIN);
            screen(&keys(list.clone(), &[Key::Char('?'), Key::End]), PLAIN);
        }
        keys(list, &[Key::Down, Key::PageDown, Key::End, Key::Home]);
    }
}

#[test]
fn names_can_neither_move_the_cursor_nor_push_others_aside() {
    let mut hostile = look();
    hostile.rows[0].who = "\x1b[2J\u{202e}evil\n\t文件文件文件文件文件文件文件文件 (pid 9)".to_owned();
    hostile.rows[0].what = "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}".repeat(50);
    hostile.rows[0].behind[2].who = "\u{9b}31m".to_owned();
    hostile.sentence = "line\u{2028}end \x07".to_owned();
    let event = || Event::Look("x\x1b[31m".to_owned(), Box::new(hostile.clone()));
    for (columns, lines) in [(80, 24), (40, 12), (13, 9)] {
        for unicode in [true, false] {
            let paper = Paper { unicode, ..PLAIN };
            let state = after(shown(columns, lines), [event()]);
            let text = screen(&state, paper);
            assert!(!text.chars().any(|one| one.is_control() && one != '\n'), "{text}");
            assert!(unicode || text.is_ascii(), "{text}");
            let opened = screen(&keys(state, &[Key::Enter]), paper);
            assert!(
                !opened.chars().any(|one| one.is_control() && one != '\n'),
                "{opened}"
            );
        }
    }
}

#[test]
fn without_colour_there_is_none_and_the_chosen_row_still_has_its_mark() {
    let state = keys(shown(80, 24), &[Key::Down]);
    let cells = |paper| {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal
            .draw(|frame| draw(&state, paper, frame.buffer_mut()))
            .unwrap();
        let coloured =
            |cell: &&ratatui_core::buffer::Cell| cell.fg != Color::Reset || cell.bg != Color::Reset;
        terminal
            .backend()
            .buffer()
            .content()
            .iter()
            .filter(coloured)
            .count()
    };
    assert_eq!(cells(PLAIN), 0);
    assert!(
        cells(Paper {
            colour: true,
            ..PLAIN
        }) > 0
    );
    let text = screen(&state, PLAIN);
    let marked: Vec<&str> = text.lines().filter(|line| line.starts_with('>')).collect();
    assert!(
        marked.len() == 1 && marked[0].contains("loader (pid 102)"),
        "{text}"
    );
}

#[test]
fn idle_is_one_line_until_it_is_asked_for() {
    let state = shown(80, 24);
    assert!(!screen(&state, PLAIN).contains("init (pid 1)"));
    assert!(screen(&state, PLAIN).contains("idle: 140 of 144 threads"));
    assert!(screen(&keys(state, &[Key::Char('i')]), PLAIN).contains("init (pid 1)"));
}

#[test]
fn order_and_filter_choose_rows() {
    let who = |state: &State| -> Vec<String> { state.rows().iter().map(|row| row.who.clone()).collect() };
    let state = shown(80, 24);
    assert_eq!(who(&state)[0], "importer (pid 101)");
    let by_name = keys(state.clone(), &[Key::Char('s'), Key::Char('s')]);
    assert_eq!(
        who(&by_name),
        ["importer (pid 101)", "loader (pid 102)", "tar (pid 104)"]
    );
    // The filter finds whoever waits behind a name, too.
    let typed = [
        Key::Char('/'),
        Key::Char('T'),
        Key::Char('a'),
        Key::Char('r'),
        Key::Enter,
    ];
    assert_eq!(
        who(&keys(state.clone(), &typed)),
        ["importer (pid 101)", "tar (pid 104)"]
    );
    // What is typed into the filter is no command.
    let quits = state
        .after(Event::Key(Key::Char('/')))
        .0
        .after(Event::Key(Key::Char('q')));
    assert_eq!((quits.0.filter.as_str(), quits.1), ("q", Effect::Nothing));
}

#[test]
fn a_row_stays_chosen_as_looks_come_and_go() {
    let state = keys(shown(80, 24), &[Key::Down]);
    let mut next = look();
    next.rows.swap(0, 1);
    let state = after(state, [Event::Look("later".to_owned(), Box::new(next))]);
    let rows = state.rows();
    assert_eq!(rows[state.chosen_at(&rows)].who, "loader (pid 102)");
}

#[test]
fn a_click_chooses_and_a_second_one_opens() {
    let state = shown(80, 24);
    let text = screen(&state, PLAIN);
    let line = text
        .lines()
        .position(|line| line.contains("  loader (pid 102)  "))
        .unwrap();
    let click = || Event::Click(u16::try_from(line).unwrap());
    let state = after(state, [click()]);
    assert!(screen(&state, PLAIN).lines().nth(line).unwrap().starts_with('>'));
    let state = after(state, [click()]);
    assert!(screen(&state, PLAIN).contains("flock+0x7"));
    assert!(!screen(&keys(state, &[Key::Backspace]), PLAIN).contains("flock+0x7"));
}

#[test]
fn the_stack_of_an_earlier_look_is_shown_with_its_time() {
    let mut later = look();
    later.rows[1].has_stack = false;
    later.rows[1].lines.pop();
    let state = after(
        shown(80, 40),
        [Event::Look("08:00:04".to_owned(), Box::new(later))],
    );
    let text = screen(&keys(state, &[Key::Down, Key::Enter]), PLAIN);
    assert!(
        text.contains("as it was at 08:00:02") && text.contains("flock+0x7"),
        "{text}"
    );
}

#[test]
fn a_chosen_row_is_on_the_screen_however_many_there_are() {
    let mut many = look();
    many.rows = (1..300).map(|pid| row(pid, "p", Cause::DiskSync, "")).collect();
    let mut state = after(shown(60, 14), [Event::Look("x".to_owned(), Box::new(many))]);
    for key in [
        Key::End,
        Key::PageUp,
        Key::Up,
        Key::Home,
        Key::PageDown,
        Key::Down,
    ] {
        state = keys(state, &[key]);
        let text = screen(&state, PLAIN);
        assert!(text.lines().any(|line| line.starts_with('>')), "{key:?}\n{text}");
    }
}

#[test]
fn keys_end_it_stop_it_and_go_through_recordings() {
    let effect = |state: State, key| state.after(Event::Key(key)).1;
    assert_eq!(effect(shown(80, 24), Key::Char('q')), Effect::Quit);
    assert_eq!(effect(shown(80, 24), Key::Interrupt), Effect::Quit);
    assert_eq!(effect(shown(80, 24), Key::Suspend), Effect::Suspend);
    let replay = State::new(Moments::replay(vec!["13:00".to_owned(), "13:01".to_owned()]));
    let (replay, first) = replay.after(Event::Size(80, 24));
    assert_eq!(first, Effect::Load(1));
    let (replay, none) = replay.after(Event::Loaded(1, Ok(Box::new(look()))));
    assert_eq!(none, Effect::Nothing);
    assert!(screen(&replay, PLAIN).contains("recording 2 of 2"));
    let (replay, next) = replay.after(Event::Key(Key::Left));
    assert_eq!(next, Effect::Load(0));
    let (replay, _) = replay.after(Event::Loaded(0, Err("it is damaged".to_owned())));
    assert!(screen(&replay, PLAIN).contains("cannot be read: it is damaged"));
}
