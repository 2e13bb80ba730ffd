//! Files of PHP code: whose they are.
//!
//! In: the path that a function's file has. Out: whether it belongs to an installed package, and not to the program.

/// The folders into which packages are installed: those of Composer, and of PEAR.
const PACKAGES: [&str; 2] = ["vendor", "pear"];

/// The folder of shared code, below which distributions install PHP packages: `/usr/share/php`.
const SHARED: [&str; 2] = ["share", "php"];

/// Whether a file is of an installed package. Functions of PHP itself have no file.
#[must_use]
pub fn of_library(file: &str) -> bool {
    let folders = || file.rsplit('/').skip(1);
    let shared = || folders().zip(folders().skip(1));
    file.is_empty()
        || folders().any(|folder| PACKAGES.contains(&folder))
        || shared().any(|(folder, above)| [above, folder] == SHARED)
}

#[cfg(test)]
mod tests {
    use super::of_library;

    #[test]
    fn packages_and_functions_of_php_are_not_the_program() {
        for file in [
            "",
            "/srv/shop/vendor/guzzlehttp/guzzle/src/Client.php",
            "phar:///usr/local/bin/tool.phar/vendor/autoload.php",
            "/usr/share/php/Composer/ClassLoader.php",
            "/opt/php/lib/pear/Mail.php",
        ] {
            assert!(of_library(file), "{file}");
        }
        for file in [
            "/srv/shop/prices.php",
            "/srv/php/vendor.php",
            "/usr/share/shop/index.php",
            "/srv/shop/run.php(12) : eval()'d code",
            "prices.php",
        ] {
            assert!(!of_library(file), "{file}");
        }
    }
}
