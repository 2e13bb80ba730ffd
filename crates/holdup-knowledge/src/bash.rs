//! Files of scripts of Bash: whose they are.
//!
//! In: the path that Bash has of a function's file. Out: whether it belongs to the distribution, and not to the program.

/// Where distributions have functions for scripts and for the prompt.
const INSTALLED: [&str; 5] = [
    "/etc/bash_completion",
    "/etc/profile",
    "/lib/lsb/",
    "/usr/lib/lsb/",
    "/usr/share/bash-completion/",
];

/// Whether a file is of the distribution's functions.
#[must_use]
pub fn of_library(file: &str) -> bool {
    INSTALLED.iter().any(|folder| file.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::of_library;

    #[test]
    fn functions_for_the_prompt_and_for_services_are_not_the_program() {
        for file in [
            "/usr/share/bash-completion/bash_completion",
            "/lib/lsb/init-functions",
            "/etc/profile.d/vte.sh",
        ] {
            assert!(of_library(file), "{file}");
        }
        for file in [
            "backup.sh",
            "/etc/cron.daily/backup",
            "/usr/share/shop/backup.sh",
            "",
        ] {
            assert!(!of_library(file), "{file}");
        }
    }
}
