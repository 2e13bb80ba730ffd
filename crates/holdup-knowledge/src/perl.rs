//! Files of Perl code: whose they are.
//!
//! In: the path that a statement has. Out: whether it belongs to Perl or to an installed module, and not to the program.

/// Folders into which modules are installed, whatever is above them.
const MODULES: [&str; 3] = ["perl-base", "site_perl", "vendor_perl"];

/// The folder into which others are installed, and the folders that it is in: `/usr/share/perl5`, `~/perl5/lib/perl5`. A folder of
/// libraries for one architecture has a name with [`ARCHITECTURE`] in it.
const PERL: &str = "perl5";
const LIBRARIES: [&str; 3] = ["lib", "lib64", "share"];
const ARCHITECTURE: &str = "-linux-";

/// The folders that have those of a version: `/usr/share/perl/5.36.0`, `lib/5.36.0`.
const OF_VERSIONS: [&str; 3] = ["perl", "lib", "lib64"];

/// What a text is called that was evaluated: `(eval 7)`.
const EVALUATED: &str = "(eval ";

/// Whether a file is of Perl or of an installed module. What a module evaluates, mostly functions that it makes, has no file.
#[must_use]
pub fn of_library(file: &str) -> bool {
    let folders = || file.rsplit('/').skip(1);
    let above = || folders().zip(folders().skip(1));
    file.is_empty()
        || file.starts_with(EVALUATED)
        || folders().any(|folder| MODULES.contains(&folder))
        || above().any(|(folder, above)| {
            let installed = folder == PERL && (LIBRARIES.contains(&above) || above.contains(ARCHITECTURE));
            installed || (is_version(folder) && OF_VERSIONS.contains(&above))
        })
}

/// `5.36`, `5.36.0`.
fn is_version(folder: &str) -> bool {
    let rest = folder.strip_prefix("5.").unwrap_or_default();
    !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::of_library;

    #[test]
    fn perl_and_installed_modules_are_not_the_program() {
        for file in [
            "",
            "(eval 12)",
            "/usr/share/perl/5.36/HTTP/Tiny.pm",
            "/usr/share/perl5/LWP/UserAgent.pm",
            "/usr/lib/x86_64-linux-gnu/perl5/5.36/DBI.pm",
            "/usr/lib/x86_64-linux-gnu/perl/5.36/IO/Socket.pm",
            "/usr/lib/x86_64-linux-gnu/perl-base/IO/Handle.pm",
            "/usr/local/share/perl/5.36.0/Mojo/IOLoop.pm",
            "/usr/share/perl5/vendor_perl/Plack/Runner.pm",
            "/home/shop/perl5/lib/perl5/Moo.pm",
            "/opt/perl-5.36.0/lib/5.36.0/List/Util.pm",
            "/opt/perl-5.36.0/lib/site_perl/5.36.0/Moo.pm",
        ] {
            assert!(of_library(file), "{file}");
        }
        for file in [
            "/srv/shop/prices.pl",
            "prices.pl",
            "/srv/shop/lib/Shop/Prices.pm",
            "/home/shop/perl5/prices.pl",
            "/srv/perl/app.psgi",
            "/srv/shop/releases/5.36/app.pl",
        ] {
            assert!(!of_library(file), "{file}");
        }
    }
}
