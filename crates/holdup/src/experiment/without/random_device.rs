//! Without `random.device`: `/dev/random` is `/dev/urandom`, for CMD alone.
//!
//! Bound over it in CMD's own mount namespace. Once the generator is seeded both give the same bytes, from the same generator; since Linux
//! 5.6 neither blocks then, and what a program waits for is what somebody put in its place.

use super::{Means, Way};
use holdup_evidence::Cause;

pub(super) const WAY: Way = Way {
    name: "random.device",
    causes: &[Cause::RandomDevice],
    means: Means::Bind {
        from: "/dev/urandom",
        over: "/dev/random",
    },
    how: "/dev/urandom replaces /dev/random",
    risk: "randomness: no risk once the kernel has seeded its generator; bytes read before that, early in boot, can be predicted",
    escapes: "other devices and daemons that CMD reads randomness from",
    settles: false,
    refuses: super::never,
};
