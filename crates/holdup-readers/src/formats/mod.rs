//! The formats, one file each.

mod arrays;
mod atop;
mod benchmarks;
mod biotop;
mod buildkit;
mod builds;
mod capacity;
mod ceph;
mod ceph_ops;
mod compile_times;
mod conntrack;
mod containers;
mod counters;
mod cpu_frequency;
mod ctest;
mod dash_table;
mod databases;
mod df;
mod dmesg;
mod dmesg_json;
mod dstat;
mod editor_start;
mod file_locks;
mod free;
mod gctrace;
mod getdelays;
mod ghc_rts;
mod haproxy;
mod histogram;
mod iotop;
mod ip_link;
mod journal;
mod journal_json;
mod json_pairs;
mod jvm_log;
mod kernel_files;
mod kubectl_describe;
mod kubernetes_events;
mod latency_tests;
mod lock_stat;
mod lsblk;
mod lsblk_pairs;
mod lsof;
mod mounts;
mod multipath;
mod nagiostats;
mod named;
mod net_counters;
mod nfs;
mod nfsiostat;
mod node_conditions;
mod node_report;
mod numastat;
mod nvidia_smi;
mod perf_lock;
mod perf_sched;
mod perf_stat;
mod probes;
mod proc_task;
pub(crate) mod profiles;
mod prometheus;
mod ps;
mod ranked_list;
mod report;
mod request_phases;
mod rtla;
mod search_cluster;
mod services;
mod slabtop;
mod slurm;
mod sockets;
mod softnet;
mod stacks;
mod strace_log;
mod strace_summary;
mod swaps;
mod sysstat;
pub(crate) mod systemd;
pub(crate) mod text;
mod thread_dump;
mod time_command;
mod timed_log;
mod tls_client;
mod tls_debug;
mod top;
mod traffic_control;
mod turbostat;
mod uptime;
mod vmstat;
mod xentop;

pub(crate) use journal::{Writer, message as journal_message};
pub(crate) use ps::Piled;
pub(crate) use timed_log::{FORMAT as LOG, Stamps};

use crate::format::Format;

/// Every format that is read.
pub static ALL: &[&Format] = &[
    &atop::FORMAT,
    &stacks::mac_hang::FORMAT,
    &arrays::lvs::FORMAT,
    &capacity::btrfs_usage::FORMAT,
    &capacity::quota::FORMAT,
    &capacity::zfs::FORMAT,
    &systemd::networkctl::FORMAT,
    &biotop::FORMAT,
    &stacks::crash_bt::FORMAT,
    &buildkit::FORMAT,
    &ceph::FORMAT,
    &ceph_ops::FORMAT,
    &profiles::collapsed::FORMAT,
    &compile_times::FORMAT,
    &conntrack::FORMAT,
    &counters::FORMAT,
    &cpu_frequency::FORMAT,
    &ctest::FORMAT,
    &named::clock_sync::FORMAT,
    &named::cpu_stat::FORMAT,
    &named::links::BONDING,
    &named::links::ETHTOOL,
    &named::memory_events::FORMAT,
    &named::nvme::FORMAT,
    &named::sensors::FORMAT,
    &named::storage_links::BTRFS,
    &named::storage_links::ISCSI,
    &named::task_sched::FORMAT,
    &kernel_files::machine::CPUINFO,
    &databases::current_op::FORMAT,
    &named::curl::FORMAT,
    &databases::sessions::FORMAT,
    &df::FORMAT,
    &probes::dig::FORMAT,
    &kernel_files::diskstats::FORMAT,
    &dmesg::FORMAT,
    &dmesg_json::FORMAT,
    &arrays::drbd::FORMAT,
    &arrays::drbdadm::FORMAT,
    &dstat::FORMAT,
    &editor_start::FORMAT,
    &stacks::erlang_crash::FORMAT,
    &stacks::erlang_process::FORMAT,
    &file_locks::LSLOCKS,
    &file_locks::PROC,
    &benchmarks::disk_speed::FORMAT,
    &benchmarks::fio::FORMAT,
    &free::FORMAT,
    &gctrace::FORMAT,
    &getdelays::FORMAT,
    &stacks::goroutines::FORMAT,
    &haproxy::LOG,
    &haproxy::STATS,
    &histogram::FORMAT,
    &stacks::hot_threads::FORMAT,
    &databases::innodb_status::FORMAT,
    &sysstat::IOSTAT,
    &ip_link::FORMAT,
    &iotop::FORMAT,
    &benchmarks::iperf::FORMAT,
    &latency_tests::FORMAT,
    &lock_stat::FORMAT,
    &thread_dump::javacore::FORMAT,
    &profiles::jfr::FORMAT,
    &profiles::jfr_print::FORMAT,
    &journal::FORMAT,
    &journal_json::FORMAT,
    &jvm_log::FORMAT,
    &jvm_log::jstat::FORMAT,
    &kernel_files::machine::CMDLINE,
    &kernel_files::FORMAT,
    &uptime::LOADAVG,
    &timed_log::FORMAT,
    &kubectl_describe::FORMAT,
    &node_conditions::FORMAT,
    &kubernetes_events::FORMAT,
    &containers::list::FORMAT,
    &containers::pods::FORMAT,
    &containers::usage::FORMAT,
    &ghc_rts::FORMAT,
    &lsblk::FORMAT,
    &lsblk::JSON,
    &lsblk_pairs::FORMAT,
    &lsof::FORMAT,
    &kernel_files::machine::LSCPU,
    &strace_log::LTRACE,
    &kernel_files::meminfo::FORMAT,
    &arrays::mdadm::FORMAT,
    &arrays::mdstat::FORMAT,
    &mounts::FORMAT,
    &sysstat::MPSTAT,
    &probes::mtr::FORMAT,
    &multipath::FORMAT,
    &databases::mysql_slow_log::FORMAT,
    &net_counters::FILES,
    &stacks::native::FORMAT,
    &sockets::interfaces::FORMAT,
    &sockets::netstat::FORMAT,
    &net_counters::STATISTICS,
    &nfsiostat::FORMAT,
    &nfs::mountstats::FORMAT,
    &nfs::nfsstat::FORMAT,
    &numastat::FORMAT,
    &node_report::FORMAT,
    &net_counters::NSTAT,
    &nvidia_smi::FORMAT,
    &jvm_log::openj9::FORMAT,
    &profiles::off_cpu::FORMAT,
    &request_phases::FORMAT,
    &rtla::FORMAT,
    &profiles::perf_report::FORMAT,
    &perf_lock::FORMAT,
    &perf_sched::FORMAT,
    &perf_stat::FORMAT,
    &profiles::perf_script::FORMAT,
    &strace_log::perf_trace::FORMAT,
    &databases::pg_activity::FORMAT,
    &databases::pg_replication::FORMAT,
    &benchmarks::pgbench::FORMAT,
    &named::php_fpm::FORMAT,
    &named::mysql_status::FORMAT,
    &sysstat::PIDSTAT,
    &probes::ping::FORMAT,
    &databases::postgresql_log::FORMAT,
    &profiles::pprof::FORMAT,
    &kernel_files::pressure::FORMAT,
    &kernel_files::stat::FORMAT,
    &proc_task::FORMAT,
    &prometheus::FORMAT,
    &arrays::raid_controllers::FORMAT,
    &ranked_list::FORMAT,
    &ps::FORMAT,
    &databases::explain::FORMAT,
    &stacks::python::FORMAT,
    &stacks::ruby::FORMAT,
    &stacks::dotnet::FORMAT,
    &named::redis_info::FORMAT,
    &databases::redis_latency::FORMAT,
    &databases::redis_slowlog::FORMAT,
    &benchmarks::requests::FORMAT,
    &named::replica::FORMAT,
    &sysstat::SAR,
    &named::web_server::FORMAT,
    &slabtop::FORMAT,
    &arrays::smartctl::FORMAT,
    &net_counters::SOCKSTAT,
    &sockets::states::FORMAT,
    &softnet::FORMAT,
    &sockets::ss::FORMAT,
    &databases::sqlite_plan::FORMAT,
    &strace_log::FORMAT,
    &strace_summary::FORMAT,
    &swaps::FORMAT,
    &benchmarks::sysbench::FORMAT,
    &kernel_files::settings::FORMAT,
    &sysstat::JSON,
    &systemd::blame::FORMAT,
    &systemd::chain::FORMAT,
    &systemd::dump::FORMAT,
    &systemd::jobs::FORMAT,
    &systemd::plot::FORMAT,
    &systemd::time::FORMAT,
    &traffic_control::FORMAT,
    &turbostat::FORMAT,
    &text::FORMAT,
    &thread_dump::FORMAT,
    &thread_dump::json::FORMAT,
    &time_command::FORMAT,
    &probes::time_sources::FORMAT,
    &probes::traceroute::FORMAT,
    &tls_client::FORMAT,
    &tls_debug::FORMAT,
    &top::FORMAT,
    &profiles::v8_ticks::FORMAT,
    &kernel_files::machine::UNAME,
    &uptime::FORMAT,
    &vmstat::FORMAT,
    &kernel_files::vmstat_counters::FORMAT,
    &xentop::FORMAT,
    &arrays::zpool::FORMAT,
    // Reports and logs of applications, which may have outputs of the tools above within them: where both are as sure, the tool's own
    // reader takes it.
    &nagiostats::FORMAT,
    &named::seff::FORMAT,
    &slurm::sacct::FORMAT,
    &slurm::squeue::FORMAT,
    &services::squid::FORMAT,
    &search_cluster::allocation::FORMAT,
    &search_cluster::state::FORMAT,
    &databases::explain_json::FORMAT,
    &databases::mysql_plan::FORMAT,
    &databases::mysql_plan_json::FORMAT,
    &databases::progress::FORMAT,
    &databases::statement_totals::FORMAT,
    &services::python_workers::FORMAT,
    &services::php_slow_log::FORMAT,
    &builds::webpack::FORMAT,
    &builds::broccoli::FORMAT,
    &builds::reactor::FORMAT,
    &profiles::function_table::FORMAT,
    &databases::tkprof::FORMAT,
    &databases::sql_server::statistics::FORMAT,
    &services::kafka_groups::FORMAT,
    &benchmarks::load_tests::FORMAT,
    &databases::mongo_explain::FORMAT,
    &databases::mongo_stat::FORMAT,
    &databases::query_digest::FORMAT,
    &services::mail_timing::FORMAT,
    &builds::terraform::FORMAT,
    &builds::ansible::FORMAT,
    &named::backup::FORMAT,
    &services::cassandra_pools::FORMAT,
    &services::cassandra_ring::FORMAT,
    &services::vertx_blocked::FORMAT,
    &services::dotnet_counters::FORMAT,
    &services::dotnet_pool::FORMAT,
    &services::passenger::FORMAT,
    &databases::lock_tree::FORMAT,
    &services::sidekiq_stats::FORMAT,
    &benchmarks::vegeta::FORMAT,
    &benchmarks::fio_json::FORMAT,
    &stacks::mac_sample::FORMAT,
    &services::apiserver_traces::FORMAT,
    &services::zabbix_log::FORMAT,
    &databases::table_scans::COCKROACH,
    &databases::table_scans::ORACLE,
    &databases::sql_server::processes::FORMAT,
    &databases::sql_server::sessions::FORMAT,
    &builds::ci_jobs::FORMAT,
    &databases::redis_ping::FORMAT,
    &databases::mysqltuner::FORMAT,
    &services::cassandra_compactions::FORMAT,
    &databases::oracle_alert::FORMAT,
    &profiles::line_profiler::FORMAT,
    &builds::trace2::FORMAT,
];
