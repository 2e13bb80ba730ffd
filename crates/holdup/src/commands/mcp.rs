//! `holdup mcp`: the Model Context Protocol on stdin and stdout, for agents.
//!
//! In: lines of JSON-RPC. Out: lines of JSON-RPC, each bounded. The server itself observes nothing and opens no file that a client names:
//! every call is a process of holdup's own with `--json`, which has a deadline and can be abandoned. So nothing that may block is in the
//! process that must answer. What it understands of the protocol: `initialize`, `ping`, `tools/list`, `tools/call`, cancellation.

mod answer;
mod child;
mod lines;
mod protocol;
mod server;
mod store;
mod tools;

use crate::cli::McpArgs;
use tools::Allowed;

/// Serves until stdin ends.
///
/// # Errors
/// When stdin can't be read or stdout can't be written to.
pub(crate) fn run(args: &McpArgs) -> anyhow::Result<u8> {
    let allowed = Allowed {
        commands: args.allow_try,
    };
    server::serve(&mut std::io::stdin().lock(), std::io::stdout(), allowed)?;
    Ok(0)
}
