//! What a line of the list of rules stands for.
//!
//! In: the lines of `list.rs`, one a rule: its file, the same as a module and as a variant. Out: the modules, [`RuleId`](super::RuleId) with
//! the ids, [`ALL`](super::ALL), and a test of each page, by the rule's name: `cargo test -p holdup-diagnosis lock_convoy`.

/// Makes all of it; `list.rs` is its only use.
macro_rules! rules {
    ($($path:literal $module:ident $variant:ident)*) => {
        $(
            #[path = $path]
            pub(crate) mod $module;
        )*

        /// A rule's id: stable, retired but never reused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum RuleId {
            $(
                #[doc = concat!("`", $path, "`")]
                $variant,
            )*
        }

        impl RuleId {
            /// The id as text: the stem of the rule's files.
            #[must_use]
            pub fn id(self) -> &'static str {
                const IDS: &[&str] = &[$(super::listed::stem($path)),*];
                IDS[self as usize]
            }

            /// The rule.
            pub(super) fn rule(self) -> &'static super::Rule {
                ALL[self as usize]
            }
        }

        /// Every rule, by id.
        pub const ALL: &[&super::Rule] = &[$(&$module::RULE),*];

        #[cfg(test)]
        mod pages {
            $(
                #[test]
                fn $module() {
                    crate::rules::examples::check_page(super::RuleId::$variant, $path);
                }
            )*
        }
    };
}

/// The id in a path `<area>/<id>.rs`.
pub(super) const fn stem(path: &'static str) -> &'static str {
    let (mut from, mut at) = (0, 0);
    while at < path.len() {
        if path.as_bytes()[at] == b'/' {
            from = at + 1;
        }
        at += 1;
    }
    let (path, _extension) = path.split_at(path.len() - ".rs".len());
    path.split_at(from).1
}
