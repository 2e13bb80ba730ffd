//! Where programs that are known by their names have the limits that clients run into.
//!
//! In: the name of a process. Out: the setting, in the program's own words, for titles and remedies.

/// Programs by the begin of their processes' names, with the setting of how many clients they serve at once.
const WORKERS: [(&str, &str); 16] = [
    ("apache2", "MaxRequestWorkers"),
    ("httpd", "MaxRequestWorkers"),
    ("tinyproxy", "MaxClients"),
    ("php-fpm", "pm.max_children"),
    ("gunicorn", "--workers and --threads"),
    ("uwsgi", "processes"),
    ("puma", "workers and threads"),
    ("slapd", "threads"),
    ("lighttpd", "server.max-connections"),
    ("vsftpd", "max_clients"),
    ("proftpd", "MaxInstances"),
    ("smtpd", "maxproc of its line in master.cf"),
    ("imap-login", "process_limit of service imap-login"),
    ("pop3-login", "process_limit of service pop3-login"),
    ("saslauthd", "-n"),
    ("varnishd", "thread_pool_max"),
];

/// And with the setting of how long a client may keep its place without a request.
const QUIET: [(&str, &str); 9] = [
    ("apache2", "KeepAliveTimeout and RequestReadTimeout"),
    ("httpd", "KeepAliveTimeout and RequestReadTimeout"),
    ("tinyproxy", "Timeout"),
    (
        "gunicorn",
        "--keep-alive, with a worker class for many connections (gthread)",
    ),
    ("uwsgi", "http-timeout"),
    ("puma", "persistent_timeout and first_data_timeout"),
    ("lighttpd", "server.max-keep-alive-idle"),
    ("vsftpd", "idle_session_timeout"),
    ("slapd", "idletimeout"),
];

/// And with the setting of how many connections they have open, which such a program makes its limit of descriptors from.
const CONNECTIONS: [(&str, &str); 9] = [
    ("memcached", "the connection limit, -c"),
    ("redis-server", "the connection limit, maxclients"),
    ("valkey-server", "the connection limit, maxclients"),
    ("nginx", "worker_rlimit_nofile and worker_connections"),
    ("haproxy", "the connection limit, maxconn"),
    ("mariadbd", "open_files_limit and max_connections"),
    ("mysqld", "open_files_limit and max_connections"),
    ("lighttpd", "server.max-fds"),
    ("squid", "max_filedescriptors"),
];

/// Servers that keep a client waiting without any work to do for it, and why that may be.
const HELD_BACK: [(&str, &str); 4] = [
    (
        "beanstalkd",
        "no job is ready in the tubes that it watches, or they are paused (pause-tube)",
    ),
    (
        "redis-server",
        "it waits in a blocking command, or clients are paused (CLIENT PAUSE)",
    ),
    (
        "valkey-server",
        "it waits in a blocking command, or clients are paused (CLIENT PAUSE)",
    ),
    (
        "beam.smp",
        "no message is ready for it, or an alarm blocks its connection",
    ),
];

/// Servers with a setting by which they delay requests themselves.
const DELAYS: [(&str, &str); 3] = [
    ("nginx", "the rate limit limit_req without nodelay"),
    ("haproxy", "tarpit"),
    (
        "smtpd",
        "the rate limits and error delays of smtpd (smtpd_error_sleep_time)",
    ),
];

fn of(table: &[(&str, &'static str)], process: &str) -> Option<&'static str> {
    let found = table.iter().find(|(name, _)| process.starts_with(name));
    found.map(|(_, setting)| *setting)
}

/// Why an idle server of this name may hold an answer back.
pub(super) fn held_back(process: &str) -> Option<&'static str> {
    of(&HELD_BACK, process)
}

/// What delays requests in it.
pub(super) fn delays(process: &str) -> Option<&'static str> {
    of(&DELAYS, process)
}

/// How many clients it serves at once.
pub(super) fn workers(process: &str) -> Option<&'static str> {
    of(&WORKERS, process)
}

/// For how long a client may keep its place without a request.
pub(super) fn quiet(process: &str) -> Option<&'static str> {
    of(&QUIET, process)
}

/// How many connections it has open.
pub(super) fn connections(process: &str) -> Option<&'static str> {
    of(&CONNECTIONS, process)
}

#[cfg(test)]
mod tests {
    use super::{connections, quiet, workers};

    #[test]
    fn a_program_is_known_by_the_begin_of_its_name() {
        assert_eq!(workers("php-fpm8.2"), Some("pm.max_children"));
        assert_eq!(quiet("tinyproxy"), Some("Timeout"));
        assert_eq!(
            connections("redis-server"),
            Some("the connection limit, maxclients")
        );
        assert_eq!(workers("shopd"), None);
    }
}
