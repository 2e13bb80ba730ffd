//! Figures of real machines (samples beside this), and of one that says nothing.

use super::{Copy, main, options, security};
use crate::hsperfdata::Index;
use holdup_evidence::{Collector, Jvm};

/// Such memory of real machines, as it was after some seconds of the same program.
fn real(name: &str) -> Jvm {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/figures/samples");
    let bytes = std::fs::read(format!("{folder}/{name}")).unwrap();
    let index = Index::parse(&bytes).unwrap();
    Copy {
        index: &index,
        bytes: &bytes,
    }
    .jvm(7)
}

#[test]
fn real_machines_say_what_they_are() {
    let jvm = real("g1-17.hsperfdata");
    assert_eq!(jvm.version.as_deref(), Some("17.0.15"));
    assert_eq!(jvm.name.as_deref(), Some("OpenJDK 64-Bit Server VM"));
    assert_eq!(jvm.collector, Some(Collector::G1));
    assert_eq!(jvm.max_heap, Some(200 << 20));
    assert_eq!(jvm.main.as_deref(), Some("Full"));
    assert_eq!(jvm.options, ["-XX:+UseG1GC", "-Xmx200m", "-Xms64m"]);
    assert!(jvm.uptime.is_some_and(|ns| ns > 1_000_000_000));
    let found = &jvm.after;
    assert!(found.collections > 0 && found.collecting > 0, "{found:?}");
    assert!(found.safepoints.is_some_and(|count| count > 0));
    assert!(found.stopped > found.reaching, "{found:?}");
    assert!(
        found
            .last_cause
            .as_deref()
            .is_some_and(|cause| cause.starts_with("G1 ")),
        "{found:?}"
    );

    let jvm = real("z-25.hsperfdata");
    assert_eq!(jvm.version.as_deref(), Some("25.0.3"));
    assert_eq!(jvm.collector, Some(Collector::Z));
    assert_eq!(jvm.max_heap, Some(256 << 20));
    assert_eq!(jvm.uptime, None, "it no longer tells its ticks");
    assert!(jvm.after.safepoints.is_some_and(|count| count > 0));
}

#[test]
fn what_a_program_is_told_is_left_out_and_the_machines_options_are_kept() {
    let all = "-Xmx512m -Dpassword=secret -XX:+UseG1GC -javaagent:/x.jar";
    assert_eq!(options(all), ["-Xmx512m", "-XX:+UseG1GC"]);
    assert_eq!(options(""), Vec::<String>::new());
    let egd = "-Djava.security.egd=file:/dev/./urandom";
    assert_eq!(security(&format!("{all} {egd}")), Some(vec![egd.to_owned()]));
    assert_eq!(security(all), Some(Vec::new()));
    assert_eq!(security(&"-Dx=y ".repeat(200)), None, "it may have been cut");
    assert_eq!(options(&"-Xa ".repeat(1_000)).len(), 64);
}

#[test]
fn the_program_is_named_without_its_arguments() {
    assert_eq!(
        main("com.example.Main --password secret").as_deref(),
        Some("com.example.Main")
    );
    assert_eq!(
        main("/opt/app/server.jar --port 1").as_deref(),
        Some("server.jar")
    );
    assert_eq!(
        main("my.module/com.example.Main x").as_deref(),
        Some("my.module/com.example.Main")
    );
    assert_eq!(main(""), None);
}

#[test]
fn memory_that_says_nothing_gives_a_machine_of_which_nothing_is_known() {
    let index = Index::default();
    let jvm = Copy {
        index: &index,
        bytes: &[],
    }
    .jvm(7);
    assert_eq!((jvm.version, jvm.collector, jvm.max_heap), (None, None, None));
    assert_eq!(jvm.after.collections, 0);
    assert_eq!(jvm.after.safepoints, None);
}
