//! Interpreters that programs have inside: the functions of their interfaces within which a script runs.
//!
//! The problem: of a server that runs a client's script the functions of the interpreter take the time, and that it is a script is what to know. In: the name
//! of a function that a program calls. Out: what it runs, in words.

/// The functions, and what they run.
const RUNS: [(&str, &[&str]); 5] = [
    (
        "a script in Lua",
        &["lua_pcall", "lua_pcallk", "lua_call", "lua_callk", "lua_resume"],
    ),
    (
        "a script in JavaScript",
        &["JS_Call", "JS_EvalFunction", "duk_pcall", "duk_call"],
    ),
    ("code in Perl", &["Perl_call_sv", "perl_run"]),
    (
        "a script in Tcl",
        &["Tcl_EvalEx", "Tcl_EvalObjEx", "Tcl_EvalObjv"],
    ),
    (
        "a regular expression",
        &[
            "pcre_exec",
            "pcre2_match_8",
            "pcre2_match_16",
            "regexec",
            "onig_search",
        ],
    ),
];

/// What a function runs that the program was given.
#[must_use]
pub fn runs(symbol: &str) -> Option<&'static str> {
    let found = RUNS.iter().find(|(_, functions)| functions.contains(&symbol));
    found.map(|(what, _)| *what)
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn only_the_interface_counts() {
        assert_eq!(runs("lua_pcall"), Some("a script in Lua"));
        assert_eq!(runs("pcre2_match_8"), Some("a regular expression"));
        assert_eq!(runs("lua_pushstring"), None);
    }
}
