//! Which crate may depend on which.

/// What each crate may depend on within the workspace. The data goes one way, so a crate may depend only on crates above it: no circle
/// fits into this list. A new crate is a new line here.
pub(crate) const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("holdup-evidence", &[]),
    ("holdup-pages", &[]),
    ("holdup-secrets", &[]),
    ("holdup-detached", &[]),
    ("holdup-files", &["holdup-detached"]),
    ("holdup-perf", &[]),
    // What is concluded, as types, and what is known: collection asks the tables, too.
    ("holdup-model", &["holdup-evidence"]),
    ("holdup-knowledge", &["holdup-evidence", "holdup-model"]),
    // Collection: what was observed.
    (
        "holdup-bpf",
        &["holdup-evidence", "holdup-knowledge", "holdup-perf"],
    ),
    (
        "holdup-proc",
        &[
            "holdup-detached",
            "holdup-evidence",
            "holdup-knowledge",
            "holdup-perf",
        ],
    ),
    ("holdup-readers", &["holdup-evidence"]),
    ("holdup-runtimes", &["holdup-evidence"]),
    (
        "holdup-symbols",
        &["holdup-detached", "holdup-evidence", "holdup-knowledge"],
    ),
    (
        "holdup-jvm",
        &[
            "holdup-detached",
            "holdup-evidence",
            "holdup-proc",
            "holdup-runtimes",
            "holdup-symbols",
        ],
    ),
    // Conclusions: each stage knows the ones before it by their types, and none of their users.
    (
        "holdup-attribution",
        &["holdup-evidence", "holdup-knowledge", "holdup-model"],
    ),
    (
        "holdup-artefacts",
        &[
            "holdup-attribution",
            "holdup-evidence",
            "holdup-knowledge",
            "holdup-model",
        ],
    ),
    (
        "holdup-diagnosis",
        &[
            "holdup-artefacts",
            "holdup-attribution",
            "holdup-evidence",
            "holdup-knowledge",
            "holdup-model",
        ],
    ),
    ("holdup-comparison", &["holdup-evidence", "holdup-model"]),
    ("holdup-report", &["holdup-evidence", "holdup-model"]),
    // What people and other programs see, and what is kept.
    ("holdup-views", &["holdup-evidence", "holdup-model"]),
    ("holdup-top", &["holdup-evidence", "holdup-model", "holdup-views"]),
    (
        "holdup-recording",
        &[
            "holdup-evidence",
            "holdup-files",
            "holdup-model",
            "holdup-secrets",
        ],
    ),
    (
        "holdup-events",
        &["holdup-attribution", "holdup-evidence", "holdup-model"],
    ),
    // It must build without clang and libelf, so it knows nothing of collection.
    (
        "holdup-replay",
        &[
            "holdup-diagnosis",
            "holdup-events",
            "holdup-evidence",
            "holdup-model",
            "holdup-report",
            "holdup-views",
        ],
    ),
    ("holdup-subject", &["holdup-proc"]),
    ("holdup-times", &[]),
    // The program that runs queries is built with it alone, so it knows little.
    (
        "holdup-store",
        &["holdup-evidence", "holdup-recording", "holdup-times"],
    ),
    // It has hosts judged by holdup itself, so it knows no stage.
    (
        "holdup-fleet",
        &[
            "holdup-comparison",
            "holdup-evidence",
            "holdup-files",
            "holdup-model",
            "holdup-recording",
            "holdup-store",
            "holdup-times",
            "holdup-views",
        ],
    ),
    // It attributes as it collects, so that memory does not grow with the number of events. It knows no rule and no view.
    (
        "holdup-collect",
        &[
            "holdup-attribution",
            "holdup-bpf",
            "holdup-detached",
            "holdup-events",
            "holdup-evidence",
            "holdup-files",
            "holdup-jvm",
            "holdup-knowledge",
            "holdup-model",
            "holdup-proc",
            "holdup-readers",
            "holdup-report",
            "holdup-runtimes",
            "holdup-subject",
            "holdup-symbols",
        ],
    ),
    (
        "holdup",
        &[
            "holdup-artefacts",
            "holdup-bpf",
            "holdup-collect",
            "holdup-comparison",
            "holdup-detached",
            "holdup-diagnosis",
            "holdup-evidence",
            "holdup-files",
            "holdup-knowledge",
            "holdup-model",
            "holdup-pages",
            "holdup-proc",
            "holdup-readers",
            "holdup-recording",
            "holdup-report",
            "holdup-secrets",
            "holdup-subject",
            "holdup-times",
            "holdup-top",
            "holdup-views",
        ],
    ),
    (
        "holdup-fuzz",
        &[
            "holdup-attribution",
            "holdup-bpf",
            "holdup-evidence",
            "holdup-jvm",
            "holdup-proc",
            "holdup-readers",
            "holdup-recording",
            "holdup-symbols",
        ],
    ),
    // It installs what holdup needs to be built, so it must build without.
    ("xtask", &[]),
];

/// What the tests of a crate may use besides.
pub(crate) const TESTS_MAY_USE: &[(&str, &[&str])] = &[
    // They judge again what it kept.
    ("holdup", &["holdup-replay"]),
    // They read what it writes, and make reports to write.
    (
        "holdup-views",
        &["holdup-comparison", "holdup-readers", "holdup-report"],
    ),
];
