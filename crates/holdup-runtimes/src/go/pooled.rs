//! Who waits for a connection of a pool of `database/sql`, and who has one.
//!
//! The problem: a result or a transaction has a connection for as long as it is not closed, and its goroutine may stand anywhere, even
//! before the same pool. The choice: the pool is what the stack of a goroutine that waits for one has in common with that of the goroutine
//! which opens its connections. A connection begins with the address of its pool, and a transaction with that and its connection; a result
//! begins with that of its connection. So whose stack has the address of one of these has a connection, or had one. In: goroutines. Out:
//! the pools that they wait for, among what they await, and those of which they have a connection, among what they refer to.

use super::handing::{ASKED_MAX, STACK_WORDS};
use super::{Function, Goroutine, Goroutines, Program, Whose};
use crate::memory::Source;
use std::collections::BTreeSet;
use std::ops::Range;

/// Addresses that programs may use.
const ADDRESSES: Range<u64> = 1 << 16..1 << 47;

/// What is nearer to the list of goroutines than so many bytes is the program's own file. What it has made is elsewhere, from Go 1.26 on at
/// an address by chance.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Pools that one goroutine is looked at for.
const POOLS_MAX: usize = 64;

/// Of a time that was read from the clock, the first word: it has a reading of the monotonic clock.
const MONOTONIC: u64 = 1 << 63;

/// Where a transaction has its connection, behind its pool and a lock for readers and a writer.
const OF_TRANSACTION: u64 = 32;

impl<S: Source> Program<S> {
    /// Notes which pools goroutines wait for, and who refers to a connection of one. `waits`: whether a function waits for a connection;
    /// `opens`: whether one opens them for the pool.
    pub fn pooled(
        &mut self,
        all: &mut Goroutines,
        waits: impl Fn(&Function) -> bool,
        opens: impl Fn(&Function) -> bool,
    ) {
        let standing = |program: &mut Self, which: &dyn Fn(&Function) -> bool| {
            let whose = |function: &Function| match which(function) {
                true => Whose::Application,
                false => Whose::Library,
            };
            let mut found = Vec::new();
            for (at, one) in all.all.iter().enumerate() {
                if program.stands_in(one, &whose, Whose::Application).is_some() {
                    found.push(at);
                }
            }
            found
        };
        let waiting = standing(self, &waits);
        if waiting.is_empty() {
            return;
        }
        let opening = standing(self, &opens);
        self.connections(all, &waiting, &opening);
    }

    /// The same, of those that wait and those that open connections, by their places.
    pub(super) fn connections(&mut self, all: &mut Goroutines, waiting: &[usize], opening: &[usize]) {
        let mut kept = BTreeSet::new();
        for at in opening.iter().take(POOLS_MAX) {
            kept.extend(self.heap_words(&all.all[*at]));
        }
        let mut pools: BTreeSet<u64> = BTreeSet::new();
        for at in waiting.iter().take(ASKED_MAX) {
            let own: Vec<u64> = self
                .heap_words(&all.all[*at])
                .intersection(&kept)
                .copied()
                .take(POOLS_MAX)
                .collect();
            pools.extend(&own);
            all.all[*at].awaited.channels.extend(own);
        }
        if pools.is_empty() {
            return;
        }
        let mut asked = 0;
        for at in 0..all.all.len() {
            if asked == ASKED_MAX || opening.contains(&at) || all.all[at].addresses.is_empty() {
                continue;
            }
            asked += 1;
            let words = self.heap_words(&all.all[at]);
            self.memory.ahead(words.iter().copied());
            let has: BTreeSet<u64> = words
                .into_iter()
                .filter_map(|word| self.connection_of(word, &pools))
                .collect();
            all.all[at].refers.extend(has);
        }
    }

    /// The pool of which this is a connection, or something that has one: a result has it first, a transaction behind its pool and a lock.
    fn connection_of(&mut self, at: u64, pools: &BTreeSet<u64>) -> Option<u64> {
        if let Some(pool) = self.connection(at, pools) {
            return Some(pool);
        }
        let first = self.memory.word(at)?;
        let connection = match pools.contains(&first) {
            true => self.memory.word(at.checked_add(OF_TRANSACTION)?)?,
            false => first,
        };
        match is_made(connection, self.list) {
            true => self.connection(connection, pools),
            false => None,
        }
    }

    /// The pool of which this is a connection: it is first, and then comes the time at which the connection was made.
    fn connection(&mut self, at: u64, pools: &BTreeSet<u64>) -> Option<u64> {
        let pool = self.memory.word(at)?;
        let made = self.memory.word(at.checked_add(8)?)?;
        (pools.contains(&pool) && made & MONOTONIC != 0).then_some(pool)
    }

    /// The words of a goroutine's stack that may be addresses of what the program has made.
    fn heap_words(&mut self, one: &Goroutine) -> BTreeSet<u64> {
        let Some((sp, high)) = self.stack_of(one.at) else {
            return BTreeSet::new();
        };
        let (end, list) = (high.min(sp.saturating_add(STACK_WORDS * 8)), self.list);
        (sp..end)
            .step_by(8)
            .map_while(|at| self.memory.word(at))
            .filter(|word| is_made(*word, list) && !(sp..high).contains(word))
            .collect()
    }
}

/// Whether this may be the address of something that the program has made; `list`: where its list of goroutines is.
fn is_made(word: u64, list: u64) -> bool {
    ADDRESSES.contains(&word) && word.is_multiple_of(8) && word.abs_diff(list) > FILE_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::super::layout::{LAYOUTS, PC, SP, WAITING};
    use super::super::{Place, Program};
    use crate::memory::Written;

    const LIST: u64 = 0x50_0000;
    const SLICE: u64 = 0x2000;
    const FIRST: u64 = 0xc0_0010_0000;
    const STACKS: u64 = 0xc0_0020_0000;
    const STACK_BYTES: u64 = 0x800;
    const POOL: u64 = 0xc0_0030_0000;
    const CONNECTION: u64 = 0xc0_0030_1000;
    const RESULT: u64 = 0xc0_0030_2000;
    const TRANSACTION: u64 = 0xc0_0030_3000;
    const STATEMENT: u64 = 0xc0_0030_4000;
    const SERVER: u64 = 0xc0_0030_5000;
    const TEXT: u64 = 0x4000;

    /// Goroutines that have these words on their stacks.
    fn program(stacks: &[&[u64]]) -> Program<Written> {
        let layout = LAYOUTS[0];
        let mut memory = Written::default();
        memory.word(SLICE, LIST);
        memory.word(SLICE + 8, stacks.len() as u64);
        memory.word(SLICE + 16, stacks.len() as u64);
        for (at, words) in stacks.iter().enumerate() {
            let at = at as u64;
            let (goroutine, low) = (FIRST + at * 0x1c0, STACKS + at * STACK_BYTES);
            memory.word(LIST + at * 8, goroutine);
            memory.word(goroutine, low);
            memory.word(goroutine + 8, low + STACK_BYTES);
            memory.word(goroutine + SP, low + 0x600);
            memory.word(goroutine + PC, 0x40_0000 + at);
            memory.word(goroutine + 72, goroutine);
            memory.word(goroutine + layout.frame, low + 0x7e0);
            memory.put(goroutine + layout.status, &WAITING.to_le_bytes());
            memory.word(goroutine + layout.id, 1 + at);
            for word in (0x600..STACK_BYTES).step_by(8) {
                memory.word(low + word, 0);
            }
            memory.word(low + 0x7e8, 0x41_0000);
            for (place, word) in words.iter().enumerate() {
                memory.word(low + 0x600 + place as u64 * 8, *word);
            }
        }
        memory.word(POOL, 7);
        memory.word(POOL + 8, 0);
        memory.word(CONNECTION, POOL);
        memory.word(CONNECTION + 8, super::MONOTONIC | 9);
        memory.word(RESULT, CONNECTION);
        memory.word(RESULT + 8, 0);
        memory.word(TRANSACTION, POOL);
        memory.word(TRANSACTION + 8, 0);
        memory.word(TRANSACTION + 32, CONNECTION);
        memory.word(SERVER, POOL);
        memory.word(SERVER + 8, 0);
        memory.word(SERVER + 32, 0);
        memory.word(STATEMENT, POOL);
        memory.word(STATEMENT + 8, TEXT);
        memory.word(STATEMENT + 32, 0);
        let place = Place {
            goroutines: Some(SLICE),
            reasons: None,
            table: None,
        };
        Program::find(memory, place).unwrap()
    }

    #[test]
    fn who_has_an_open_result_or_transaction_has_a_connection_of_the_pool() {
        let other = POOL + 0x9000;
        let mut found = program(&[
            &[POOL, 0xc0_0000_0008],
            &[POOL, RESULT],
            &[TRANSACTION],
            &[POOL, STATEMENT, SERVER],
            &[other, TEXT, u64::MAX],
            &[CONNECTION],
        ]);
        let mut all = found.goroutines().unwrap();
        found.connections(&mut all, &[1, 3], &[0]);
        let refers: Vec<&[u64]> = all.all.iter().map(|one| one.refers.as_slice()).collect();
        assert_eq!(refers, [&[][..], &[POOL], &[POOL], &[], &[], &[POOL]]);
        let awaits: Vec<&[u64]> = all
            .all
            .iter()
            .map(|one| one.awaited.channels.as_slice())
            .collect();
        assert_eq!(awaits, [&[][..], &[POOL], &[], &[POOL], &[], &[]]);
    }

    #[test]
    fn without_who_opens_connections_no_pool_is_known() {
        let mut found = program(&[&[POOL, RESULT], &[POOL]]);
        let mut all = found.goroutines().unwrap();
        found.connections(&mut all, &[0], &[]);
        assert!(
            all.all
                .iter()
                .all(|one| one.refers.is_empty() && one.awaited.channels.is_empty())
        );
    }
}
