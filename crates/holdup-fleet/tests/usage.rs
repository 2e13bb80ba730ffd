//! What the program says of what it cannot do.

use std::process::Command;

#[test]
fn what_it_cannot_do_it_says_in_one_line() {
    for arguments in [
        &["sql", "file:///x", "SELECT 1"][..],
        &["show", "/x"],
        &["diff", "file:///x"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_holdup-fleet"))
            .args(arguments)
            .output()
            .expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1);
    }
}
