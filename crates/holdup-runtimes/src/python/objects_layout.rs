//! Where each version of CPython keeps what is read of objects on the heap, of coroutines and of tasks: one table per minor version, as in
//! [`super::versions`].

/// How dictionaries are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dictionaries {
    /// To 3.10.
    Old,
    /// From 3.11.
    New,
}

/// Where objects have their attributes, if not where their type says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attributes {
    /// Only where their type says.
    Offset,
    /// Before the object are pointers to values and to a dictionary: 3.11.
    TwoBefore,
    /// Before the object is a pointer to either; a bit tells which: 3.12.
    TaggedBefore,
    /// Values are behind the object, unless there is a dictionary: 3.13.
    Inline,
}

/// Where frames have what they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// The frame lists its blocks: to 3.10.
    Blocks {
        /// Of a frame: the pointer to what it works on, its variables, how many blocks it is in, and those.
        stack: u64,
        variables: u64,
        blocks_count: u64,
        blocks: u64,
        /// Of its code: how many values it works on at most.
        depth: u64,
    },
    /// The code has a table of blocks: from 3.11.
    Table {
        /// Of a frame: its variables.
        variables: u64,
        /// Of its code: how many those are, the table, and how many values it works on at most.
        count: u64,
        table: u64,
        depth: u64,
    },
}

/// Where coroutines have their frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coroutines {
    /// A pointer, null once it has ended; and whether it runs, if it says that: to 3.10.
    Pointer { frame: u64, running: Option<u64> },
    /// Within, with a byte that says how far it is: from 3.11.
    Within { frame: u64, state: u64 },
}

/// How a suspended frame says which of its values is the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// A pointer behind it.
    Top(u64),
    /// How many there are.
    Depth(u64),
    /// How many there are, with the variables.
    All(u64),
}

/// Where tasks of `asyncio` have what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskFields {
    /// Of any future: its state.
    pub(super) state: u64,
    /// The future that the task awaits, its coroutine, and its name.
    pub(super) waiter: u64,
    pub(super) coroutine: u64,
    pub(super) name: u64,
}

impl TaskFields {
    const fn at(state: u64, waiter: u64) -> TaskFields {
        TaskFields {
            state,
            waiter,
            coroutine: waiter + 8,
            name: waiter + 16,
        }
    }
}

/// What is read of objects on the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Objects {
    pub(super) dictionaries: Dictionaries,
    pub(super) attributes: Attributes,
    /// Of a type: the names of its objects' attributes.
    pub(super) cached_keys: u64,
    /// Of a function of Python: its name.
    pub(super) function_name: u64,
    pub(super) values: Values,
    /// Of an interpreter: its modules.
    pub(super) modules: u64,
    pub(super) tasks: TaskFields,
    pub(super) coroutines: Coroutines,
    /// Of a coroutine: its name, with the class.
    pub(super) coroutine_name: u64,
    pub(super) awaited: Awaited,
    /// Of a frame: the variables of its module. Of its code: the names that it uses.
    pub(super) globals: u64,
    pub(super) names: u64,
}

pub(super) const OBJECTS_3_8: Objects = Objects {
    dictionaries: Dictionaries::Old,
    attributes: Attributes::Offset,
    cached_keys: 872,
    function_name: 64,
    values: Values::Blocks {
        stack: 64,
        variables: 360,
        blocks_count: 112,
        blocks: 120,
        depth: 32,
    },
    modules: 56,
    tasks: TaskFields::at(72, 104),
    coroutines: Coroutines::Pointer {
        frame: 16,
        running: Some(24),
    },
    coroutine_name: 56,
    awaited: Awaited::Top(72),
    globals: 48,
    names: 64,
};

pub(super) const OBJECTS_3_9: Objects = Objects {
    modules: 856,
    tasks: TaskFields::at(80, 144),
    ..OBJECTS_3_8
};

pub(super) const OBJECTS_3_10: Objects = Objects {
    function_name: 32,
    values: Values::Blocks {
        stack: 64,
        variables: 352,
        blocks_count: 104,
        blocks: 112,
        depth: 32,
    },
    tasks: TaskFields::at(88, 152),
    coroutines: Coroutines::Pointer {
        frame: 16,
        running: None,
    },
    coroutine_name: 48,
    awaited: Awaited::Depth(80),
    ..OBJECTS_3_9
};

pub(super) const OBJECTS_3_11: Objects = Objects {
    dictionaries: Dictionaries::New,
    attributes: Attributes::TwoBefore,
    values: Values::Table {
        variables: 72,
        count: 76,
        table: 40,
        depth: 68,
    },
    modules: 888,
    tasks: TaskFields::at(88, 128),
    coroutines: Coroutines::Within { frame: 80, state: 75 },
    coroutine_name: 40,
    awaited: Awaited::All(64),
    globals: 8,
    names: 32,
    ..OBJECTS_3_10
};

pub(super) const OBJECTS_3_12: Objects = Objects {
    attributes: Attributes::TaggedBefore,
    cached_keys: 880,
    values: Values::Table {
        variables: 72,
        count: 72,
        table: 40,
        depth: 64,
    },
    modules: 944,
    coroutines: Coroutines::Within { frame: 72, state: 67 },
    coroutine_name: 32,
    globals: 24,
    ..OBJECTS_3_11
};

pub(super) const OBJECTS_3_13: Objects = Objects {
    attributes: Attributes::Inline,
    modules: 7656,
    tasks: TaskFields::at(96, 112),
    ..OBJECTS_3_12
};
