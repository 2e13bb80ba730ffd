//! Which share of the words of ordinary command lines is masked: `cargo run -p holdup-secrets --example share -- FILE`, a line each.
#![allow(clippy::print_stdout, reason = "a command-line program for people")]

use holdup_secrets::mask_text;

fn main() {
    let path = std::env::args().nth(1).expect("a file of command lines");
    let text = std::fs::read_to_string(path).expect("the file can be read");
    let (mut lines, mut words, mut masked) = (0_usize, 0, 0);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        lines += 1;
        words += line.split_whitespace().count();
        let shown = mask_text(line);
        if shown != line {
            masked += shown.matches(holdup_secrets::MASKED).count();
            println!("{line}\n    {shown}");
        }
    }
    println!(
        "{lines} lines, {words} words, {masked} masked: {:.2} %",
        100.0 * masked as f64 / words.max(1) as f64
    );
}
