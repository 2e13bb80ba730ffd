//! Redis and what speaks its protocol: which commands only read, and which wait, or want no answer, by design.

/// Processes of servers that speak it.
const SERVERS: [&str; 4] = ["keydb-server", "redis-sentinel", "redis-server", "valkey-server"];

/// Commands that change no data: those that read it, and those that are about the connection or the server.
const READS: [&str; 60] = [
    "AUTH",
    "BITCOUNT",
    "CLIENT",
    "COMMAND",
    "CONFIG",
    "DBSIZE",
    "ECHO",
    "EXISTS",
    "EXPIRETIME",
    "GEODIST",
    "GEOHASH",
    "GEOPOS",
    "GET",
    "GETBIT",
    "GETRANGE",
    "HELLO",
    "HEXISTS",
    "HGET",
    "HGETALL",
    "HKEYS",
    "HLEN",
    "HMGET",
    "HSCAN",
    "HSTRLEN",
    "HVALS",
    "INFO",
    "KEYS",
    "LINDEX",
    "LLEN",
    "LRANGE",
    "MEMORY",
    "MGET",
    "OBJECT",
    "PFCOUNT",
    "PING",
    "PTTL",
    "QUIT",
    "RANDOMKEY",
    "ROLE",
    "SCAN",
    "SCARD",
    "SDIFF",
    "SELECT",
    "SINTER",
    "SISMEMBER",
    "SLOWLOG",
    "SMEMBERS",
    "SSCAN",
    "STRLEN",
    "SUNION",
    "TIME",
    "TTL",
    "TYPE",
    "XLEN",
    "XRANGE",
    "ZCARD",
    "ZCOUNT",
    "ZRANGE",
    "ZRANK",
    "ZSCORE",
];

/// Commands that are answered once something comes or a limit of time of their own has run out, and those that begin or belong to a stream.
const WAITS: [&str; 21] = [
    "BLMOVE",
    "BLMPOP",
    "BLPOP",
    "BRPOP",
    "BRPOPLPUSH",
    "BZMPOP",
    "BZPOPMAX",
    "BZPOPMIN",
    "MONITOR",
    "PSUBSCRIBE",
    "PSYNC",
    "PUNSUBSCRIBE",
    "REPLCONF",
    "SSUBSCRIBE",
    "SUBSCRIBE",
    "SYNC",
    "UNSUBSCRIBE",
    "WAIT",
    "WAITAOF",
    "XREAD",
    "XREADGROUP",
];

/// Whether a process of this name is such a server.
#[must_use]
pub fn is_server(process: &str) -> bool {
    SERVERS.contains(&process)
}

/// Whether a command changes no data.
#[must_use]
pub fn only_reads(command: &str) -> bool {
    READS.contains(&command)
}

/// Whether a command may stay without an answer for as long as its client likes, or gets none.
#[must_use]
pub fn waits_by_design(command: &str) -> bool {
    WAITS.contains(&command)
}

#[cfg(test)]
mod tests {
    use super::{WAITS, is_server, only_reads, waits_by_design};

    #[test]
    fn what_waits_by_design_is_no_read() {
        assert!(WAITS.is_sorted() && WAITS.iter().all(|name| !only_reads(name)));
        assert!(waits_by_design("BZPOPMIN") && !waits_by_design("LPOP") && !waits_by_design("PING"));
    }

    #[test]
    fn what_writes_or_may_wait_is_no_read() {
        assert!(
            ["HGET", "INFO", "PING", "XRANGE"]
                .iter()
                .all(|name| only_reads(name))
        );
        assert!(
            !["SET", "HINCRBY", "BLPOP", "EVAL", "WAIT", "get"]
                .iter()
                .any(|name| only_reads(name))
        );
        assert!(is_server("redis-server") && !is_server("redis-cli"));
    }
}
