//! Weeks of a machine, made up: nights, week-ends, a job at three, a deployment. And what is not ordinary.

use super::{Basis, Judgement, Loads, Usual, When};
use holdup_evidence::Cause;

/// A Monday, in days since 1970.
const MONDAY: u32 = 20_423;

/// Minutes of a window that is judged, as `show --last 10m` asks for one.
const WINDOW: u32 = 10;

/// Milliseconds a second in nanoseconds a second.
const MS: f64 = 1_000_000.0;

fn when(day: u32, minute: u32) -> When {
    let unix = (i64::from(MONDAY + day) * 86_400 + i64::from(minute) * 60) * 1_000_000_000;
    When::of(unix, 0)
}

/// A number between 0 and 1 that is the same in each run.
fn noise(seed: u64) -> f64 {
    let mut x = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((x ^ (x >> 27)) >> 40) as f64 / f64::from(1_u32 << 24)
}

/// Visitors at an hour: few at night, many at noon and in the evening, fewer at week-ends.
fn visitors(day: u32, minute: u32) -> f64 {
    let hour = f64::from(minute) / 60.0;
    let daily = 0.15 + 0.85 * (-((hour - 14.0) / 5.0).powi(2)).exp();
    let weekend = if day % 7 >= 5 { 0.5 } else { 1.0 };
    // Now and then a newsletter doubles it.
    let burst = if noise(u64::from(day) * 31 + u64::from(minute / 30)) > 0.97 {
        2.0
    } else {
        1.0
    };
    daily * weekend * burst
}

/// An ordinary minute. On Wednesday at 15:00 a deployment restarts the application, which costs 1.7 times the CPU from then on.
fn minute(day: u32, minute: u32) -> Loads {
    let seed = u64::from(day) * 1_440 + u64::from(minute);
    let jitter = |number: u64| 0.5 + noise(seed * 16 + number);
    let visitors = visitors(day, minute);
    let deployed = day > 2 || (day == 2 && minute >= 900);
    let restart = day == 2 && (900..903).contains(&minute);
    let mut loads = Loads::default();
    let mut add = |program: &str, cause, ms: f64| {
        *loads.0.entry((program.to_owned(), cause)).or_default() += ms * MS;
    };
    add("nginx", Cause::CpuUser, 60.0 * visitors * jitter(1));
    let app = if deployed { 680.0 } else { 400.0 };
    add("app", Cause::CpuUser, app * visitors * jitter(2));
    add("app", Cause::NetReceive, 900.0 * visitors * jitter(3));
    add("postgres", Cause::DiskSync, 150.0 * visitors * jitter(4));
    add("postgres", Cause::CpuUser, 200.0 * visitors * jitter(5));
    add("postgres", Cause::LockFutex, 10.0 * visitors * jitter(6));
    if restart {
        add("app", Cause::DiskRead, 400.0);
        add("app", Cause::CpuUser, 900.0);
    }
    // The backup, at about three, longer at the week's end; logs are rotated at midnight; cron each five minutes.
    let (from, long) = (
        178 + (noise(u64::from(day) + 7) * 5.0) as u32,
        if day % 7 == 6 { 50 } else { 25 },
    );
    if (from..from + long).contains(&minute) {
        add("backup", Cause::DiskRead, 700.0 * jitter(7));
        add("backup", Cause::DiskSync, 250.0 * jitter(8));
        add("postgres", Cause::DiskRead, 300.0 * jitter(9));
    }
    if minute < 3 {
        add("logrotate", Cause::CpuUser, 500.0 * jitter(10));
    }
    if minute.is_multiple_of(5) {
        add("cron", Cause::CpuUser, 300.0 * jitter(11));
    }
    loads
}

/// The mean of some minutes, with what is added to each.
fn window(day: u32, from: u32, more: &[(&str, Cause, f64)]) -> Loads {
    let mut sum = Loads::default();
    for at in from..from + WINDOW {
        for (key, rate) in minute(day, at).0 {
            *sum.0.entry(key).or_default() += rate / f64::from(WINDOW);
        }
    }
    for (program, cause, ms) in more {
        *sum.0.entry(((*program).to_owned(), *cause)).or_default() += ms * MS;
    }
    sum
}

/// Judges each window of these days, then learns from its minutes; what was unusual.
fn live(usual: &mut Usual, days: std::ops::Range<u32>) -> Vec<(u32, u32, Judgement)> {
    let mut alarms = Vec::new();
    for day in days {
        for from in (0..1_440).step_by(WINDOW as usize) {
            let judged = usual.judge(when(day, from), &window(day, from, &[]));
            if !judged.above.is_empty() {
                alarms.push((day, from, judged));
            }
            for at in from..from + WINDOW {
                usual.learn(when(day, at), &minute(day, at));
            }
        }
    }
    alarms
}

#[test]
fn seven_ordinary_days_with_nights_a_week_end_and_a_deployment_give_no_alarm() {
    let alarms = live(&mut Usual::default(), 0..7);
    assert!(alarms.is_empty(), "{:#?}", &alarms[..alarms.len().min(5)]);
}

#[test]
fn four_weeks_give_none_and_what_is_known_stays_small() {
    let mut usual = Usual::default();
    let alarms = live(&mut usual, 0..28);
    assert!(alarms.is_empty(), "{:#?}", &alarms[..alarms.len().min(5)]);
    let bytes = serde_json::to_string(&usual).unwrap().len();
    assert!(bytes < 64 << 10, "{bytes}");
}

#[test]
fn a_backup_at_noon_is_many_times_the_usual_at_that_hour_and_at_three_it_is_as_usual() {
    let mut usual = Usual::default();
    live(&mut usual, 0..9);
    let backup = [
        ("backup", Cause::DiskSync, 1_200.0),
        ("postgres", Cause::LockFutex, 3_000.0),
    ];
    let judged = usual.judge(when(9, 780), &window(9, 780, &backup));
    let rows: Vec<(&str, Cause)> = judged
        .above
        .iter()
        .map(|one| (one.program.as_str(), one.cause))
        .collect();
    assert_eq!(
        rows,
        [("postgres", Cause::LockFutex), ("backup", Cause::DiskSync)]
    );
    assert!(judged.above[1].times > 40.0);
    assert_eq!(judged.above[1].basis, Basis::Hour(7));
    let at_night = usual.judge(when(9, 185), &window(9, 185, &[]));
    assert!(at_night.above.is_empty() && at_night.as_usual > 0, "{at_night:?}");
}

#[test]
fn the_incident_is_still_unusual_when_it_was_learned_and_on_the_day_after() {
    let mut usual = Usual::default();
    live(&mut usual, 0..9);
    let stuck = [("app", Cause::LockFutex, 4_000.0)];
    for at in 780..800 {
        usual.learn(when(9, at), &window(9, at, &stuck));
    }
    for day in [9, 10] {
        let judged = usual.judge(when(day, 780), &window(day, 780, &stuck));
        assert_eq!(judged.above.len(), 1, "{judged:?}");
    }
}

#[test]
fn on_the_first_day_and_of_a_new_program_nothing_is_said() {
    let mut usual = Usual::default();
    let storm = [("backup", Cause::DiskSync, 9_000.0)];
    assert!(
        usual
            .judge(when(0, 780), &window(0, 780, &storm))
            .above
            .is_empty()
    );
    live(&mut usual, 0..5);
    let new = [("migrate", Cause::CpuUser, 2_000.0)];
    let judged = usual.judge(when(5, 780), &window(5, 780, &new));
    assert!(judged.above.is_empty() && judged.unknown == 1, "{judged:?}");
}

#[test]
fn an_hour_is_of_the_machines_zone_and_days_have_their_kind() {
    // Saturday, the first of August 2026, 23:30 UTC.
    let unix = 1_785_627_000_000_000_000;
    let here = When::of(unix, 0);
    assert_eq!((here.hour, here.weekend), (23, true));
    let east = When::of(unix, 7_200);
    assert_eq!((east.hour, east.day - here.day, east.weekend), (1, 1, true));
}
