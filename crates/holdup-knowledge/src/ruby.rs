//! Files of Ruby code: whose they are.
//!
//! In: the path that a method's code names. Out: whether it belongs to Ruby, its standard library or an installed gem, and not to the
//! program.

/// Code that is part of the interpreter's binary: `<internal:kernel>`.
const BUILT_IN: &str = "<internal:";

/// Folders of installed code, below which everything is: of the distribution, and of gems that it has packaged.
const INSTALLED: [&str; 3] = ["vendor_ruby", "site_ruby", "rubygems-integration"];

/// The folder in which each gem has one: `gems/rack-3.0.8`. A gem from a repository is in `bundler/gems/rack-1a2b3c`.
const GEMS: &str = "gems";

/// The folder in which the standard library has one for each version: `ruby/3.1.0`.
const LIBRARY: &str = "ruby";

/// Whether a file is of Ruby, its standard library or an installed gem. Functions that are written in C have no file.
#[must_use]
pub fn of_library(file: &str) -> bool {
    let folders = || file.rsplit('/').skip(1);
    let pairs = || folders().zip(folders().skip(1));
    file.is_empty()
        || file.starts_with(BUILT_IN)
        || folders().any(|folder| INSTALLED.contains(&folder))
        || pairs().any(|(folder, above)| match above {
            GEMS => folder.contains('-'),
            LIBRARY => is_version(folder),
            _ => false,
        })
}

/// `3.1.0`.
fn is_version(folder: &str) -> bool {
    let mut numbers = folder.split('.');
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.clone().count() == 3 && numbers.all(number)
}

#[cfg(test)]
mod tests {
    use super::of_library;

    #[test]
    fn ruby_its_library_and_gems_are_not_the_program() {
        for file in [
            "",
            "<internal:kernel>",
            "/usr/lib/ruby/3.1.0/open3.rb",
            "/usr/local/lib/ruby/3.4.0/net/http.rb",
            "/usr/lib/ruby/vendor_ruby/rubygems.rb",
            "/usr/local/lib/ruby/site_ruby/3.1.0/rubygems.rb",
            "/usr/share/rubygems-integration/all/gems/rake-13.0.6/lib/rake.rb",
            "/var/lib/gems/3.1.0/gems/puma-6.4.0/lib/puma/server.rb",
            "/srv/shop/vendor/bundle/ruby/3.1.0/gems/pg-1.5.4/lib/pg.rb",
            "/usr/local/bundle/bundler/gems/rails-3f1c2ab9/activerecord/lib/active_record.rb",
        ] {
            assert!(of_library(file), "{file}");
        }
        for file in [
            "/srv/shop/prices.rb",
            "/srv/ruby/app.rb",
            "/srv/ruby/1.2/app.rb",
            "/srv/shop/gems/prices.rb",
            "/srv/gems.rb",
            "(eval)",
            "-e",
            "prices.rb",
        ] {
            assert!(!of_library(file), "{file}");
        }
    }
}
