//! `/etc/resolv.conf`: name servers, options and search list, as the C library's resolver reads them.

use crate::of_process;
use crate::root::{Problem, Root, text};
use holdup_evidence::facts::ResolverFacts;
use std::path::Path;

/// Name servers, options and search list; `None` when there is no such file.
pub fn read(root: &Root, problems: &mut Vec<Problem>) -> Option<ResolverFacts> {
    text(&root.etc.join("resolv.conf"), problems).map(|text| parse(&text))
}

/// The same, as a process has it in its own mount namespace. It may take as long as the process's file system does.
#[must_use]
pub fn of_process(root: &Root, pid: u32) -> Option<ResolverFacts> {
    of_process::text(root, pid, Path::new("/etc/resolv.conf")).map(|text| parse(&text))
}

fn parse(text: &str) -> ResolverFacts {
    let mut facts = ResolverFacts::default();
    for line in text.lines() {
        let mut words = line
            .split(['#', ';'])
            .next()
            .unwrap_or_default()
            .split_whitespace();
        match words.next() {
            Some("nameserver") => facts.servers.extend(words.next().map(str::to_owned)),
            Some("search") => facts.search = words.map(str::to_owned).collect(),
            Some("domain") => facts.search = words.next().map(str::to_owned).into_iter().collect(),
            Some("options") => facts.options.extend(words.map(str::to_owned)),
            _ => {}
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::root::Tree;

    #[test]
    fn servers_and_options_without_comments() {
        let tree = Tree::new(&[(
            "etc/resolv.conf",
            "# nameserver 1.1.1.1\ndomain example.net\nsearch example.org shop.example.org\nnameserver 192.0.2.1 # first\n\tnameserver fe80::1%eth0\nnameserver\noptions timeout:1 ndots:5\noptions rotate;x\n",
        )]);
        let facts = read(&tree.root, &mut Vec::new()).unwrap();
        assert_eq!(facts.servers, ["192.0.2.1", "fe80::1%eth0"]);
        assert_eq!(facts.search, ["example.org", "shop.example.org"]);
        assert_eq!(facts.options, ["timeout:1", "ndots:5", "rotate"]);
        assert_eq!(read(&Tree::new(&[]).root, &mut Vec::new()), None);
    }
}
