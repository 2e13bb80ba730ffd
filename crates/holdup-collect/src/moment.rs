//! What processes have open at a moment, read once for all who ask.
//!
//! The problem: at the begin and at the end of an observation several look at the same tables of sockets and the same descriptors. The
//! kernel walks all its connections for each reading of a table, 5 ms where there are none; a recorder begins and ends each minute.
//! In: processes. Out: their ends of pipes and sockets, and the sockets of their network namespaces.

use holdup_proc::descriptors::{self, Ends, Open, SocketHolders};
use holdup_proc::sockets::{self, Sockets};
use holdup_proc::{Root, names};
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// A moment: what was looked at once is not looked at again.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) root: Root,
    ends: HashMap<u32, Option<Rc<Ends>>>,
    namespaces: HashMap<u32, Option<String>>,
    sockets: HashMap<Option<String>, Rc<Sockets>>,
    holders: OnceCell<SocketHolders>,
}

impl Moment {
    /// Nothing is looked at yet.
    pub(super) fn now() -> Moment {
        Moment {
            root: Root::system(),
            ends: HashMap::new(),
            namespaces: HashMap::new(),
            sockets: HashMap::new(),
            holders: OnceCell::new(),
        }
    }

    /// Which processes have a socket, lowest id first, without the one that asks. All descriptors of the machine are looked through for the
    /// first question, and for no other.
    pub(super) fn holders_of(&self, inode: u64) -> &[u32] {
        self.all_holders().of.get(&inode).map_or(&[], Vec::as_slice)
    }

    /// Whether that is known of all processes: of very many only some are looked through.
    pub(super) fn knows_all_holders(&self) -> bool {
        self.all_holders().whole
    }

    fn all_holders(&self) -> &SocketHolders {
        self.holders
            .get_or_init(|| descriptors::socket_holders(&self.root, std::process::id()))
    }

    /// The same of several.
    pub(super) fn holders(&self, wanted: &HashSet<Open>) -> HashMap<Open, Vec<u32>> {
        let of = |open: &Open| match open {
            Open::Socket(inode) => Some((open.clone(), self.holders_of(*inode).to_vec())),
            _ => None,
        };
        wanted
            .iter()
            .filter_map(of)
            .filter(|(_, pids)| !pids.is_empty())
            .collect()
    }

    /// What a process has open; `None` when it is gone.
    pub(super) fn ends(&mut self, pid: u32) -> Option<Rc<Ends>> {
        let root = &self.root;
        let ends = self.ends.entry(pid);
        ends.or_insert_with(|| descriptors::ends(root, pid).map(Rc::new))
            .clone()
    }

    /// The network namespace that a process is in; `None` where that is not known.
    pub(super) fn namespace(&mut self, pid: u32) -> Option<String> {
        let root = &self.root;
        let namespaces = self.namespaces.entry(pid);
        namespaces
            .or_insert_with(|| names::network_namespace(root, pid))
            .clone()
    }

    /// The sockets of that namespace.
    pub(super) fn sockets(&mut self, pid: u32) -> Rc<Sockets> {
        let namespace = self.namespace(pid);
        let root = &self.root;
        let sockets = self.sockets.entry(namespace);
        Rc::clone(sockets.or_insert_with(|| Rc::new(sockets::read(root, pid))))
    }
}
