//! Tasks that carry the I/O or the memory that others wait for, and wait at the same place as these: a circle that nothing opens.
//!
//! In: tasks that are blocked at one place. Out: a sentence about the carrier among them.

use holdup_evidence::observed::SeenThread;

/// Tasks that have to be blocked beside the carrier.
const MIN_OTHERS: usize = 2;

/// Words of functions in which a task waits until memory is freed or written back: what a carrier of I/O waits there for needs itself. Waits for a
/// disk are none of them: below a carrier lies another device.
const FOR_MEMORY: [&str; 7] = [
    "reclaim",
    "shrink_",
    "congestion_wait",
    "balance_dirty",
    "throttle_direct",
    "mempool_alloc",
    "alloc_pages_slowpath",
];

/// What the others need a task for.
fn carries(name: &str) -> Option<String> {
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let numbered = |begin: &str| {
        let rest = name.strip_prefix(begin)?;
        let digits = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
        digits.then_some(())
    };
    let raid = || {
        let (device, level) = name.strip_prefix("md")?.split_once("_raid")?;
        let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (number(device) && number(level)).then_some(())
    };
    if numbered("loop").is_some() || numbered("nbd").is_some() || raid().is_some() {
        return Some(format!(
            "carries the I/O of the device {}",
            name.split('_').next().unwrap_or(name)
        ));
    }
    let crypt = ["dmcrypt_write", "kcryptd"]
        .iter()
        .any(|begin| name.starts_with(begin));
    crypt.then(|| "carries the I/O of an encrypted device".to_owned())
}

/// The sentence about the carrier among tasks that are blocked in a function.
pub(super) fn circle(function: &str, tasks: &[&SeenThread]) -> Option<(String, usize)> {
    if !FOR_MEMORY.iter().any(|word| function.contains(word)) || tasks.len() <= MIN_OTHERS {
        return None;
    }
    let (place, does) = tasks
        .iter()
        .enumerate()
        .find_map(|(place, task)| Some((place, carries(&task.name)?)))?;
    let name = tasks.get(place)?.name.as_str();
    let reclaimer = tasks
        .iter()
        .find(|task| task.name.trim_start_matches('[').starts_with("kswapd"));
    let reclaimer = reclaimer.map_or_else(String::new, |task| {
        format!(", and so is {}, which should free memory", task.name)
    });
    let text = format!(
        "{name}, which {does}, is itself blocked at the same place ({function}){reclaimer}: memory is freed there by writing, and what has to be \
         written goes through {name}, so that they wait for each other (a deadlock of reclaim)"
    );
    Some((text, place))
}

#[cfg(test)]
mod tests {
    use super::circle;
    use holdup_evidence::observed::SeenThread;

    fn told(function: &str, names: &[&str]) -> Option<String> {
        let tasks: Vec<SeenThread> = names
            .iter()
            .map(|name| SeenThread {
                name: (*name).to_owned(),
                ..SeenThread::default()
            })
            .collect();
        circle(function, &tasks.iter().collect::<Vec<_>>()).map(|(text, _)| text)
    }

    #[test]
    fn a_loop_device_waits_where_its_users_wait() {
        let text = told("xfs_reclaim_inodes_ag", &["kswapd0", "app", "loop3"]).unwrap();
        assert!(
            text.starts_with(
                "loop3, which carries the I/O of the device loop3, is itself blocked at the same place (xfs_reclaim_inodes_ag), and so is kswapd0"
            ),
            "{text}"
        );
    }

    #[test]
    fn arrays_and_encrypted_devices_carry_too() {
        assert!(told("mempool_alloc", &["a", "b", "md127_raid6"]).is_some());
        assert!(told("shrink_inactive_list", &["a", "b", "dmcrypt_write/2"]).is_some());
    }

    #[test]
    fn a_carrier_that_waits_for_the_disk_below_is_none() {
        assert_eq!(told("io_schedule", &["a", "b", "loop3"]), None);
        assert_eq!(told("xfs_reclaim_inodes_ag", &["a", "b", "c"]), None);
        assert_eq!(told("xfs_reclaim_inodes_ag", &["a", "loop3"]), None);
        assert_eq!(
            told("xfs_reclaim_inodes_ag", &["a", "b", "looper1", "loop"]),
            None
        );
    }
}
