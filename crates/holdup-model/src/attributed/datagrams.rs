//! Datagrams over UDP, by peer: whether what was sent is answered.

use super::ThreadName;
use holdup_evidence::Ns;
use serde::{Deserialize, Serialize};

/// All that was sent over UDP while it was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Datagrams {
    /// To whom, those first to whom most was sent that nothing came back to.
    pub peers: Vec<DatagramPeer>,
    /// Answers of DNS that were sent and that refuse or say that the server failed.
    pub refused: u64,
}

/// One peer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DatagramPeer {
    /// Address and port.
    pub peer: String,
    /// Who sent last.
    pub by: ThreadName,
    /// Of which protocol the last one is a request; `None`: of none that is known.
    pub protocol: Option<DatagramProtocol>,
    /// Datagrams that were sent.
    pub sent: u64,
    /// Datagrams that came back.
    pub received: u64,
    /// Those that were sent since something came back last.
    pub unanswered: u64,
    /// Of DNS: answers that refuse or say that the server failed.
    pub failed: u64,
    /// From the first of `unanswered` to the end.
    pub silent: Ns,
    /// From the first that was sent to the end.
    pub watched: Ns,
}

/// A protocol whose requests are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatagramProtocol {
    /// Names.
    Dns,
    /// Who may use a network.
    Radius,
    /// Calls.
    Sip,
    /// Time.
    Ntp,
    /// Figures of devices.
    Snmp,
    /// The own address, as others see it.
    Stun,
}

impl DatagramProtocol {
    /// As a report calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DatagramProtocol::Dns => "DNS",
            DatagramProtocol::Radius => "RADIUS",
            DatagramProtocol::Sip => "SIP",
            DatagramProtocol::Ntp => "NTP",
            DatagramProtocol::Snmp => "SNMP",
            DatagramProtocol::Stun => "STUN",
        }
    }
}
