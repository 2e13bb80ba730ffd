//! What the report has of more and more workers: `holdup scale`.
//!
//! Rates are operations a second; times are for each operation.

use holdup_evidence::{Cause, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Throughput and latency against the number of workers, beside a control that shares nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scaling {
    /// By number of workers, from one.
    pub points: Vec<ScalingPoint>,
    /// Contention of the universal scalability law, relative to the control: the interval in which it lies with 95 %. Null where
    /// fewer than three numbers of workers are no more than the CPUs: `no_fit` says so.
    pub sigma: Option<[f64; 2]>,
    /// Its cost of keeping each other informed (coherency), likewise.
    pub kappa: Option<[f64; 2]>,
    /// What becomes of it as workers are added.
    pub verdict: ScalingVerdict,
    /// The function, lock, file or device that they contend for; null where they do not, or where it could not be known.
    pub contends_on: Option<String>,
    /// The cause of the waits for that.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub contends_cause: Option<Cause>,
    /// What a worker does again and again, in words.
    pub what: String,
    /// One of that: `read`, `run`.
    pub unit: String,
    /// What the control does, in words.
    pub control: String,
    /// CPUs that the workers may use.
    pub cpus: u32,
    /// How often each point was measured.
    pub repeats: u32,
    /// What the order of measuring was drawn with.
    pub seed: u64,
    /// The likeliest sigma and kappa.
    #[serde(default)]
    pub fit: Option<[f64; 2]>,
    /// Why there is no fit.
    #[serde(default)]
    pub no_fit: Option<String>,
    /// The answer, in plain words.
    pub words: Vec<String>,
    /// What is to be kept in mind.
    pub notes: Vec<String>,
}

/// What becomes of throughput as workers are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScalingVerdict {
    /// An operation takes no longer than alone.
    Scales,
    /// CPUs are what is short.
    CpuBound,
    /// Workers are in each other's way.
    Contends,
}

impl ScalingVerdict {
    /// As the report has it.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            ScalingVerdict::Scales => "scales",
            ScalingVerdict::CpuBound => "cpu-bound",
            ScalingVerdict::Contends => "contends",
        }
    }
}

/// So many workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingPoint {
    /// How many.
    pub workers: u32,
    /// Operations a second of all of them: the median of the repeats.
    pub throughput: f64,
    /// Median of how long one took, of all repeats.
    pub p50_ns: Ns,
    /// 99th percentile of that.
    pub p99_ns: Ns,
    /// The control's operations a second.
    pub control: f64,
    /// Where the throughput's median lies: with six repeats in 97 of 100 cases, with five or fewer it is just their range.
    pub throughput_interval: [f64; 2],
    /// The same of the control.
    pub control_interval: [f64; 2],
    /// Median of how long one of the control took.
    pub control_p50_ns: Ns,
    /// Throughput by the fitted law; null without one, and beyond the CPUs.
    #[serde(default)]
    pub fitted: Option<f64>,
    /// What so many workers would do if each did as much as one alone.
    pub ideal: f64,
    /// How many operations were measured.
    pub operations: u64,
    /// Where the time of one went.
    pub each: PerOperation,
    /// Where that of the control's went.
    pub control_each: PerOperation,
}

/// The time of an operation, median of the repeats, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerOperation {
    /// Running its own code.
    pub user_ns: f64,
    /// Running in the kernel.
    pub kernel_ns: f64,
    /// Ready to run, without a CPU.
    pub queued_ns: f64,
    /// Waiting for anything else.
    pub blocked_ns: f64,
    /// All of it.
    pub all_ns: f64,
}
