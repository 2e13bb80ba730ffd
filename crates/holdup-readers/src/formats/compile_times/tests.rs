//! Tests of time reports: GCC of two ages, LLVM, rows alone, and lists that look alike.

use crate::read_text;

fn texts(text: &str) -> Vec<String> {
    let reading = read_text("c", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "compiler-times", "{text}");
    reading.texts().into_iter().map(str::to_owned).collect()
}

#[test]
fn the_largest_phase_and_pass_of_gcc() {
    let text = "Time variable                                   usr           sys          wall           GGC\n \
        phase setup                        :   0.00 (  0%)   0.00 (  0%)   0.20 (  0%)  1841k (  0%)\n \
        phase parsing                      :   9.00 ( 22%)   0.50 ( 50%)  11.00 ( 22%)   167M ( 18%)\n \
        phase opt and generate             :  31.00 ( 78%)   0.50 ( 50%)  38.80 ( 78%)   740M ( 82%)\n \
        |name lookup                       :   1.10 (  1%)   0.00 (  0%)  45.20 (  1%)  9480  (  0%)\n \
        alias analysis                     :  19.00 ( 30%)   0.00 (  0%)  21.50 ( 43%)     1G (  0%)\n \
        TOTAL                              :  40.00          1.00         50.00           907M\n";
    assert_eq!(
        texts(text),
        [
            "phase opt and generate takes 38.80 s of 50.00 s of wall time, 78 %; the largest pass is alias analysis with 21.50 s, 43 %"
        ]
    );
    let old = "Execution times (seconds)\n phase parsing           :   0.90 (90%) usr   0.10 ( 9%) sys   7.10 (71%) wall     329 kB (22%) ggc\n \
        expand                  :   0.00 ( 0%) usr   0.01 (10%) sys   2.00 (20%) wall       2 kB ( 0%) ggc\n \
        TOTAL                 :   1.00             0.11            10.00               1472 kB\n";
    assert_eq!(
        texts(old),
        [
            "phase parsing takes 7.10 s of 10.00 s of wall time, 71 %; the largest pass is expand with 2.00 s, 20 %"
        ]
    );
}

#[test]
fn the_largest_pass_of_llvm() {
    let text = "===-------------------------------------------------------------------------===\n                      \
        ... Pass execution timing report ...\n===-------------------------------------------------------------------------===\n  \
        Total Execution Time: 22.8407 seconds (22.8000 wall clock)\n\n   \
        ---User Time---   --System Time--   --User+System--   ---Wall Time---  --- Name ---\n   \
        8.9703 ( 46.4%)   0.1522 (  4.4%)   9.1226 ( 39.9%)  11.4000 ( 50.0%)  Straighten Everything #3\n   \
        0.9846 (  5.1%)   0.0328 (  0.9%)   1.0174 (  4.5%)   1.0161 (  4.5%)  Number Values #2\n  \
        19.3000 (100.0%)   3.4000 (100.0%)  22.8407 (100.0%)  22.8000 (100.0%)  Total\n";
    assert_eq!(
        texts(text),
        [
            "Straighten Everything #3 takes 11.40 s of 22.80 s of wall time, 50 % (Pass execution timing report)"
        ]
    );
    // Rows alone.
    let rows: Vec<&str> = text.lines().skip(6).take(2).collect();
    let rows = [
        rows.join("\n"),
        "   0.1000 (  0.5%)   0.0100 (  0.1%)   0.1100 (  0.5%)   0.1100 (  0.5%)  Third".to_owned(),
    ]
    .join("\n");
    assert_eq!(
        texts(&rows),
        ["Straighten Everything #3 takes 11.40 s of wall time, 50 %"]
    );
}

#[test]
fn other_lists_with_shares_are_none() {
    for text in [
        "used : 12.5 (40%)\nfree : 3.5 (60%)\nother : 1.0 (1%)\n",
        " : ( :\n) (%) (\n",
    ] {
        let reading = read_text("c", text.as_bytes());
        assert_ne!(reading.observed.sources[0].format, "compiler-times", "{text}");
    }
}
