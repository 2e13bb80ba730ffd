//! In which language a process is written: advice names settings and calls of that one only.

use super::Run;
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::{Language, TaskRuntime};

/// That of a process, by the tasks of its runtime or by the frames of its waits; `None` where neither is known.
pub(super) fn of(run: &Run<'_>, pid: u32) -> Option<Language> {
    let mut tasks = run.attributed.tasks.iter();
    let by_tasks = tasks
        .find(|task| task.pid == pid)
        .and_then(|task| match task.runtime {
            TaskRuntime::Go => Some(Language::Go),
            TaskRuntime::Asyncio => Some(Language::Python),
            TaskRuntime::Java => Some(Language::Java),
            TaskRuntime::Node => Some(Language::JavaScript),
            TaskRuntime::Tokio => None,
        });
    let waits = run
        .attributed
        .waits
        .iter()
        .filter(|wait| wait.asker.name.pid == pid);
    let known = |language: &Language| !matches!(language, Language::Native | Language::Kernel);
    let mut frames = waits.filter_map(|wait| Some(chosen_frame(&wait.asker.stack)?.language));
    by_tasks.or_else(|| frames.find(known))
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::rules::Run;
    use holdup_evidence::facts::SystemFacts;
    use holdup_evidence::{Frame, Language};
    use holdup_model::attributed::{Attributed, AttributedWait};

    fn waiter(pid: u32, language: Language) -> AttributedWait {
        let mut wait = crate::rules::tests::wait();
        wait.asker.name.pid = pid;
        wait.asker.stack = vec![Frame {
            symbol: Some("pay".to_owned()),
            file: Some("/srv/shop/pay".to_owned()),
            language,
            ..Frame::default()
        }];
        wait
    }

    #[test]
    fn it_is_that_of_the_processs_own_frames() {
        let attributed = Attributed {
            waits: vec![waiter(1, Language::Python), waiter(2, Language::Java)],
            ..Attributed::default()
        };
        let facts = SystemFacts::default();
        let run = Run::new(&attributed, &facts);
        assert_eq!(of(&run, 1), Some(Language::Python));
        assert_eq!(of(&run, 2), Some(Language::Java));
        assert_eq!(of(&run, 3), None);
    }

    #[test]
    fn machine_code_is_of_no_known_language() {
        let attributed = Attributed {
            waits: vec![waiter(1, Language::Native)],
            ..Attributed::default()
        };
        let facts = SystemFacts::default();
        assert_eq!(of(&Run::new(&attributed, &facts), 1), None);
    }
}
