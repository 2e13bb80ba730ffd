//! What a cluster of Elasticsearch or OpenSearch says of its shards and of its tasks.

pub(crate) mod allocation;
pub(crate) mod state;
