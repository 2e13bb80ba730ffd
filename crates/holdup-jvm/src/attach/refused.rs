//! Why there is no dump, and what would make one possible.

use super::PATIENCE;
use holdup_evidence::Ns;

/// Nanoseconds in a millisecond.
const MS: Ns = 1_000_000;

/// Why there is no dump.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub enum Refused {
    /// The process is gone, or its status can't be read.
    #[error("the process has exited, or may not be read")]
    Gone,
    /// Another program has that number now, or it is no such machine.
    #[error("it has no libjvm mapped")]
    NoJvm,
    /// It would answer when it goes on.
    #[error("it is stopped, and answers nobody")]
    Stopped,
    /// The same.
    #[error("its cgroup is frozen, so that it answers nobody")]
    Frozen,
    /// The signal would end it.
    #[error("it does not handle SIGQUIT (-Xrs has that effect), which would end it")]
    NoHandler,
    /// The signal might end it.
    #[error("it has just been started, and SIGQUIT might end it")]
    Young,
    /// It says so itself.
    #[error("it was told not to answer (-XX:+DisableAttachMechanism)")]
    Disabled,
    /// It leaves signals to others.
    #[error("it was told to leave signals to others (-Xrs), so that nobody knows what SIGQUIT does to it")]
    ReducedSignals,
    /// It stops for too long.
    #[error(
        "with {threads} threads it would be stopped for up to {}, and a thousandth of the observed time is {}",
        milliseconds(*estimate),
        milliseconds(*budget)
    )]
    OverBudget {
        /// Threads that it has.
        threads: u32,
        /// How long that would take.
        estimate: Ns,
        /// How long it may.
        budget: Ns,
    },
    /// A JVM answers its own user and root.
    #[error("it is another user's, and answers that user and root only")]
    AnotherUsers,
    /// A program that has changed some of its ids.
    #[error("its user ids or group ids differ from each other, as those of a setuid program do")]
    MixedIds,
    /// holdup could not act as its user.
    #[error("holdup could not take the ids of its user: {0}")]
    NotItsUser(String),
    /// Its `/tmp` is not to be used.
    #[error("its /tmp can't be used: {0}")]
    NoTmp(String),
    /// Somebody else's socket is where its own should be.
    #[error("the socket in its /tmp is not its own: {0}")]
    NotItsSocket(String),
    /// No socket came.
    #[error("it opened no socket within {} s: it does not get to run, or can't write to its /tmp", PATIENCE.as_secs())]
    NoSocket,
    /// No answer, or not all of it.
    #[error("it did not answer within {} s: it does not get to run, or not all of its threads come to a safepoint", PATIENCE.as_secs())]
    NoAnswer,
    /// More than anybody reads.
    #[error("its answer was longer than 128 MB")]
    TooLong,
    /// It answered something else.
    #[error("it refused: {0}")]
    Answer(String),
}

fn milliseconds(ns: Ns) -> String {
    format!("{:.1} ms", ns as f64 / MS as f64)
}

impl Refused {
    /// Whether it may be otherwise a moment later.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Refused::Stopped | Refused::Frozen | Refused::Young | Refused::OverBudget { .. }
        )
    }

    /// What would make a dump possible.
    #[must_use]
    pub fn fix(&self, pid: u32) -> String {
        match self {
            Refused::Gone | Refused::NoJvm | Refused::MixedIds | Refused::TooLong | Refused::Answer(_) => {
                "none is needed for causes".to_owned()
            }
            Refused::Stopped => format!("let it go on (kill -CONT {pid}), and look again"),
            Refused::Frozen => "thaw its cgroup, and look again".to_owned(),
            Refused::NoHandler | Refused::ReducedSignals => {
                "start it without -Xrs, or with a JDK whose libjvm describes its structures".to_owned()
            }
            Refused::Young => "look for longer than two seconds".to_owned(),
            Refused::Disabled => {
                "start it without -XX:+DisableAttachMechanism, or with a JDK whose libjvm describes its structures"
                    .to_owned()
            }
            Refused::OverBudget { estimate, .. } => {
                let seconds = estimate.saturating_mul(1_000).div_ceil(1_000_000_000).saturating_add(1);
                format!("observe for {seconds} s or longer (attach -d {seconds}); or run jstack {pid}, if it may be stopped")
            }
            Refused::AnotherUsers | Refused::NotItsUser(_) => "run holdup as that user or as root".to_owned(),
            Refused::NoTmp(_) => "give it a /tmp that its user can write to".to_owned(),
            Refused::NotItsSocket(_) => {
                "see who put that there, remove it, and look again".to_owned()
            }
            Refused::NoSocket | Refused::NoAnswer => {
                "see why it does not get to run: causes do not need its answer".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Refused;

    #[test]
    fn what_is_too_long_now_is_possible_when_it_was_looked_at_for_longer() {
        let refused = Refused::OverBudget {
            threads: 40,
            estimate: 4_500_000,
            budget: 1_000_000,
        };
        assert!(refused.to_string().contains("40 threads"), "{refused}");
        assert!(refused.to_string().contains("4.5 ms"), "{refused}");
        assert!(refused.fix(7).contains("attach -d 6"), "{}", refused.fix(7));
        assert!(refused.may_pass() && !Refused::Disabled.may_pass());
    }
}
