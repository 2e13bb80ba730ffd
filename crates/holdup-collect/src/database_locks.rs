//! Who waits for whom in the database servers that are watched, and who is to act at the ends of those chains.
//!
//! The problem: a stack says that a session waits for a lock, and the server alone knows who has it. It keeps that in its memory, behind
//! symbols that it exports. In: watched processes, now and then. Out: sessions that wait, and those that they wait for, with their clients;
//! for each waiting thread the one that must act before it can go on: the client of a session that is idle, and else the session itself. That
//! one is watched too. A child that can be abandoned ([`super::behind`]) reads the memory.

mod of_machine;
mod poolers;
mod reading;

use super::behind::Readers;
use super::database_memory::{OtherEnd, accepted};
use super::moment::Moment;
use super::{Observation, sessions};
use holdup_evidence::facts::{LockKind, LockSession, LockWait, SessionClient, SessionState};
use holdup_evidence::{LockOwner, Ns};
use holdup_knowledge::user_code::mysql;
use holdup_knowledge::{postgres_locks, postgres_titles};
use holdup_proc::descriptors::Open;
use holdup_proc::{Root, clocks, names, tasks};
use holdup_runtimes::databases::{MAX_SESSIONS, mariadb};
pub use of_machine::of_machine;
use reading::{OfMariadb, OfPostgres, Question, Read, answer};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::SystemTime;

/// Servers that are looked at.
const MAX_SERVERS: usize = 8;

/// Steps from one who waits to the one at the end: longer queues are followed as far.
const MAX_STEPS: usize = MAX_SESSIONS;

/// What is known so far.
#[derive(Debug)]
pub(super) struct Locks {
    memory: Readers<Question, Option<Read>>,
    known: Vec<LockSession>,
}

impl Default for Locks {
    fn default() -> Locks {
        Locks {
            memory: Readers::new(|| Box::new(|question| answer(&question))),
            known: Vec::new(),
        }
    }
}

impl Locks {
    /// Processes of clients whose sessions others wait for.
    pub(super) fn clients(&self) -> BTreeSet<u32> {
        let clients = self.known.iter().filter_map(|one| one.client.as_ref()?.pid);
        clients.collect()
    }

    /// What was found out.
    pub(super) fn finish(self) -> Vec<LockSession> {
        self.known
    }
}

/// For whom threads wait that wait for locks of databases, by the numbers of the threads, and when that was seen.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    seen: Ns,
    owners: HashMap<u32, LockOwner>,
}

impl Awaited {
    /// For whom a thread waits that began to at `start`.
    pub(super) fn by(&self, tid: u32, start: Ns) -> Option<LockOwner> {
        self.owners.get(&tid).copied().filter(|_| start <= self.seen)
    }
}

/// Looks at the servers among these processes. Returns those that are to act, at the ends of the chains. A look at which a session waited
/// for another is kept until there is a later one.
pub(super) fn look(observation: &mut Observation, watched: &BTreeSet<u32>) -> BTreeSet<u32> {
    let root = Root::system();
    let seen = clocks::monotonic();
    let mut found = Vec::new();
    let mut moment = Moment::now();
    for (server, watched) in postgres_servers(&root, observation, watched) {
        let symbols = watched.iter().find_map(|pid| {
            let naming = &mut observation.naming;
            naming.addresses_of(*pid, postgres_titles::is_server, postgres_locks::SYMBOLS)
        });
        let sessions = &observation.sessions;
        let state = |pid| sessions.state(pid);
        let memory = &mut observation.locks.memory;
        found.extend(of_postgres(memory, &root, server, symbols, &state));
    }
    let is_mysql = |pid: &&u32| names::comm(&root, **pid).is_some_and(|name| mysql::is_server(&name));
    for server in watched.iter().filter(is_mysql).take(MAX_SERVERS) {
        let naming = &mut observation.naming;
        let symbols = naming.addresses_of(*server, mysql::is_server, mysql::SYMBOLS);
        let memory = &mut observation.locks.memory;
        found.extend(of_mariadb(memory, *server, symbols, &mut moment));
    }
    if found.iter().all(|one| one.waits.is_none()) {
        return BTreeSet::new();
    }
    poolers::look(&mut observation.locks.memory, &mut found, &mut moment);
    let on_clients = waits_for_clients(&mut observation.locks.memory, &found, &mut moment);
    let owners = to_act(&found, &on_clients);
    let pids = owners.values().map(|owner| owner.pid).collect();
    observation.naming.awaits_in_databases(Awaited { seen, owners });
    observation.locks.known = found;
    pids
}

/// Servers of PostgreSQL of which a session waits by its title, each with the watched processes of it.
fn postgres_servers(
    root: &Root,
    observation: &Observation,
    watched: &BTreeSet<u32>,
) -> BTreeMap<u32, Vec<u32>> {
    let waiting = observation.sessions.servers_with_waiting();
    let mut servers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    if waiting.is_empty() {
        return servers;
    }
    for pid in watched {
        let server = names::parent(root, *pid).filter(|parent| waiting.contains(parent));
        let server = server.or_else(|| waiting.contains(pid).then_some(*pid));
        if let Some(server) = server {
            servers.entry(server).or_default().push(*pid);
        }
    }
    while servers.len() > MAX_SERVERS {
        servers.pop_last();
    }
    servers
}

/// Addresses of symbols.
type Symbols = Vec<Option<u64>>;

fn of_postgres(
    memory: &mut Readers<Question, Option<Read>>,
    root: &Root,
    server: u32,
    symbols: Option<Symbols>,
    state: &dyn Fn(u32) -> Option<SessionState>,
) -> Vec<LockSession> {
    let symbols = symbols.and_then(|at| {
        let [entry, kinds, status, application] = at.try_into().ok()?;
        Some((entry?, kinds?, status, application))
    });
    let Some((entry, kinds, status, application)) = symbols else {
        return Vec::new();
    };
    let children = tasks::children(root, server);
    let all = children.len() <= MAX_SESSIONS;
    let pids: Vec<(u32, u32)> = children
        .into_iter()
        .take(MAX_SESSIONS)
        .map(|pid| (pid, names::process_inside(root, pid).unwrap_or(pid)))
        .collect();
    let inside: HashMap<u32, u32> = pids.iter().copied().collect();
    let question = Question::Postgres(OfPostgres {
        pids,
        all,
        entry,
        kinds,
        status,
        application,
        now: now(),
    });
    let Some(Read::Postgres(read)) = memory.ask(server, question).flatten() else {
        return Vec::new();
    };
    let mut found: Vec<LockSession> = Vec::new();
    let mut waits: HashMap<u32, LockWait> = HashMap::new();
    for waiter in read.waiters {
        let (kind, name) = postgres_locks::named(&waiter.kind, waiter.fields, waiter.last);
        let id = |pid: Option<u32>| {
            let inside = pid.map(|pid| inside.get(&pid).copied().unwrap_or(pid));
            u64::from(inside.unwrap_or(0))
        };
        let behind = waiter.behind.into_iter().map(id).collect();
        waits.insert(waiter.pid, LockWait { kind, name, behind });
    }
    if waits.values().any(|wait| wait.behind.contains(&0)) {
        found.push(LockSession {
            server,
            ..LockSession::default()
        });
    }
    let served: Vec<u32> = read.sessions.iter().map(|one| one.pid).collect();
    let mut clients = sessions::clients(&served);
    for session in read.sessions {
        let pid = session.pid;
        found.push(LockSession {
            server,
            pid,
            tid: pid,
            process: names::comm(root, pid).unwrap_or_default(),
            id: u64::from(inside.get(&pid).copied().unwrap_or(pid)),
            application: session.application,
            state: state(pid),
            open_ns: session.open_us.map(in_ns),
            waits: waits.remove(&pid),
            client: clients.remove(&pid),
            pooler: None,
        });
    }
    found
}

fn of_mariadb(
    memory: &mut Readers<Question, Option<Read>>,
    server: u32,
    symbols: Option<Symbols>,
    moment: &mut Moment,
) -> Vec<LockSession> {
    let symbols = symbols.and_then(|at| at.into_iter().collect::<Option<Vec<u64>>>());
    let Some(Ok(at)) = symbols.map(<[u64; 9]>::try_from) else {
        return Vec::new();
    };
    let [
        sessions,
        session,
        ticket,
        id,
        context,
        engine,
        command,
        connection,
        stages,
    ] = at;
    let root = &moment.root;
    let threads = tasks::threads(root, server);
    // In a container the server knows its threads by other numbers.
    let same = names::process_inside(root, server).is_none_or(|inside| inside == server);
    let inside = |tid: u32| match same {
        true => Some(tid),
        false => names::process_inside(root, tid),
    };
    let tids: HashMap<u32, u32> = threads
        .into_iter()
        .filter_map(|tid| Some((inside(tid)?, tid)))
        .collect();
    let question = Question::Mariadb(OfMariadb {
        pid: server,
        symbols: mariadb::Symbols {
            sessions,
            session,
            ticket,
            id,
            context,
            engine,
            command,
            connection,
            stages,
        },
        tids: tids.keys().copied().collect(),
        now: now(),
    });
    let Some(Read::Mariadb(read)) = memory.ask(server, question).flatten() else {
        return Vec::new();
    };
    let awaited: HashSet<u64> = read
        .iter()
        .filter_map(|one| one.waits.as_ref())
        .flat_map(|waits| waits.behind.iter().copied())
        .collect();
    let of_rows = read
        .iter()
        .filter_map(|one| one.waits.as_ref())
        .filter(|waits| matches!(waits.lock, mariadb::Lock::Row(_)));
    let have_rows: HashSet<u64> = of_rows.flat_map(|waits| waits.behind.iter().copied()).collect();
    let ends: Vec<(u64, u32)> = read
        .iter()
        .filter(|one| one.waits.is_some() || awaited.contains(&one.id))
        .filter_map(|one| Some((one.id, one.descriptor?)))
        .collect();
    let mut clients = clients_of(server, &ends, moment);
    let process = names::comm(&moment.root, server).unwrap_or_default();
    let now = now();
    let mut found = Vec::new();
    for one in read {
        if one.waits.is_none() && !awaited.contains(&one.id) {
            continue;
        }
        // Of others the beginning may be that of one which is over.
        let began = one.began.filter(|_| have_rows.contains(&one.id));
        found.push(LockSession {
            server,
            pid: server,
            tid: one.tid.and_then(|tid| tids.get(&tid).copied()).unwrap_or(0),
            process: process.clone(),
            id: one.id,
            application: String::new(),
            state: Some(match (&one.waits, one.idle) {
                (Some(_), _) => SessionState::Waiting,
                (None, true) => SessionState::Idle,
                (None, false) => SessionState::Works,
            }),
            open_ns: began.map(|began| in_ns(now.saturating_sub(began))),
            waits: one.waits.map(wait),
            client: clients.remove(&one.id),
            pooler: None,
        });
    }
    found
}

fn wait(waits: mariadb::Waits) -> LockWait {
    let (kind, name) = match waits.lock {
        mariadb::Lock::Row(table) => (LockKind::Row, table.unwrap_or_default().replacen('/', ".", 1)),
        mariadb::Lock::Definition {
            stage,
            database,
            name,
        } => {
            let both = match (database.is_empty(), name.is_empty()) {
                (false, false) => format!("{database}.{name}"),
                (false, true) => database,
                (true, _) => name,
            };
            (mysql::lock_of_stage(&stage), both)
        }
    };
    LockWait {
        kind,
        name,
        behind: waits.behind,
    }
}

/// Who is at the other ends of connections of a server: by numbers of sessions, with their descriptors.
fn clients_of(server: u32, ends: &[(u64, u32)], moment: &mut Moment) -> HashMap<u64, SessionClient> {
    let accepted = accepted(server, moment);
    let folder = moment.root.proc.join(server.to_string()).join("fd");
    let connections: Vec<(u64, OtherEnd)> = ends
        .iter()
        .filter_map(|(id, descriptor)| {
            let target = std::fs::read_link(folder.join(descriptor.to_string())).ok()?;
            let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            let end = accepted.get(&inode.parse().ok()?)?;
            Some((*id, *end))
        })
        .collect();
    let wanted: HashSet<Open> = connections
        .iter()
        .filter_map(|(_, end)| end.inode.map(Open::Socket))
        .collect();
    let holders = match wanted.is_empty() {
        true => HashMap::new(),
        false => moment.holders(&wanted),
    };
    let client = |end: &OtherEnd| {
        let pids = end.inode.and_then(|inode| holders.get(&Open::Socket(inode)));
        let pid = pids.and_then(|pids| pids.iter().copied().find(|pid| *pid != server));
        sessions::client(&moment.root, end.address, pid)
    };
    connections.iter().map(|(id, end)| (*id, client(end))).collect()
}

/// Sessions at ends that execute statements, and wait meanwhile for their clients to read what they send, or to send more.
fn waits_for_clients(
    memory: &mut Readers<Question, Option<Read>>,
    sessions: &[LockSession],
    moment: &mut Moment,
) -> HashSet<(u32, u64)> {
    let mut found = HashSet::new();
    for end in sessions {
        let threaded = end.tid != 0 && end.tid != end.pid;
        let works = end.state == Some(SessionState::Works) && end.waits.is_none();
        if !threaded || !works {
            continue;
        }
        let question = Question::Thread(end.pid, end.tid);
        if let Some(Read::Sleeps(inode)) = memory.ask(end.pid, question).flatten()
            && accepted(end.pid, moment).contains_key(&inode)
        {
            found.insert((end.server, end.id));
        }
    }
    found
}

/// Who must act before each waiting thread can go on.
fn to_act(sessions: &[LockSession], on_clients: &HashSet<(u32, u64)>) -> HashMap<u32, LockOwner> {
    let by_id: HashMap<(u32, u64), &LockSession> =
        sessions.iter().map(|one| ((one.server, one.id), one)).collect();
    let mut owners = HashMap::new();
    for waiter in sessions.iter().filter(|one| one.waits.is_some() && one.tid != 0) {
        let Some(end) = end(waiter, &by_id).filter(|end| end.pid != 0) else {
            continue;
        };
        let idle = matches!(
            end.state,
            Some(SessionState::Idle | SessionState::IdleInTransaction)
        );
        let idle = idle || on_clients.contains(&(end.server, end.id));
        let client = end.client.as_ref().and_then(|client| client.pid);
        let owner = match client.filter(|_| idle) {
            Some(pid) => LockOwner { pid, tid: pid },
            None if end.tid != 0 => LockOwner {
                pid: end.pid,
                tid: end.tid,
            },
            None => continue,
        };
        owners.insert(waiter.tid, owner);
    }
    owners
}

/// The session at the end of a chain, which waits for none. `None` where they wait for each other: the server ends that itself.
fn end<'a>(waiter: &'a LockSession, by_id: &HashMap<(u32, u64), &'a LockSession>) -> Option<&'a LockSession> {
    let mut at = waiter;
    for _ in 0..MAX_STEPS {
        let Some(waits) = &at.waits else { return Some(at) };
        at = by_id.get(&(at.server, *waits.behind.first()?))?;
    }
    None
}

/// Microseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

fn in_ns(us: u64) -> Ns {
    us.saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::to_act;
    use holdup_evidence::facts::{LockSession, LockWait, SessionClient, SessionState};
    use std::collections::HashSet;

    fn session(id: u64, behind: &[u64], state: SessionState, client: Option<u32>) -> LockSession {
        LockSession {
            server: 1,
            pid: id as u32,
            tid: id as u32,
            id,
            state: Some(state),
            waits: (!behind.is_empty()).then(|| LockWait {
                behind: behind.to_vec(),
                ..LockWait::default()
            }),
            client: client.map(|pid| SessionClient {
                pid: Some(pid),
                ..SessionClient::default()
            }),
            ..LockSession::default()
        }
    }

    #[test]
    fn the_client_of_an_idle_session_is_to_act_and_else_the_session_itself() {
        use SessionState::{IdleInTransaction, Waiting, Works};
        let sessions = [
            session(10, &[], IdleInTransaction, Some(77)),
            session(11, &[10], Waiting, None),
            session(12, &[11, 10], Waiting, None),
            session(20, &[], Works, Some(78)),
            session(21, &[20], Waiting, None),
            session(31, &[32], Waiting, None),
            session(32, &[31], Waiting, None),
            session(41, &[40], Waiting, None),
            session(50, &[], Works, Some(79)),
            session(51, &[50], Waiting, None),
        ];
        let on_clients = HashSet::from([(1, 50)]);
        let owners = to_act(&sessions, &on_clients);
        let pid = |tid: u32| owners.get(&tid).map(|owner| owner.pid);
        assert_eq!((pid(11), pid(12)), (Some(77), Some(77)), "through the queue");
        assert_eq!(pid(21), Some(20));
        assert_eq!((pid(31), pid(32)), (None, None), "a circle");
        assert_eq!(pid(41), None, "behind one that is not known");
        assert_eq!(pid(51), Some(79), "it sends, and its client does not read");
    }
}
