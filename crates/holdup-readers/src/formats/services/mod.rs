//! What servers and their workers say of themselves in reports and logs of their own.

pub(crate) mod apiserver_traces;
pub(crate) mod cassandra_compactions;
pub(crate) mod cassandra_pools;
pub(crate) mod cassandra_ring;
pub(crate) mod dotnet_counters;
pub(crate) mod dotnet_pool;
pub(crate) mod kafka_groups;
pub(crate) mod mail_timing;
pub(crate) mod passenger;
pub(crate) mod php_slow_log;
pub(crate) mod python_workers;
pub(crate) mod sidekiq_stats;
pub(crate) mod squid;
pub(crate) mod vertx_blocked;
pub(crate) mod zabbix_log;
