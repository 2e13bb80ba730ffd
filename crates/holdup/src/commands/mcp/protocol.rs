//! JSON-RPC 2.0 as the protocol uses it: what a line is, and what answers look like. Pure.

use serde_json::{Map, Value, json};

/// Versions of the protocol that are understood, newest first: what this server uses of them is the same in all.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Why a request has no result, as JSON-RPC numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    /// The line is no JSON.
    Parse = -32_700,
    /// The JSON is no request.
    Invalid = -32_600,
    /// There is no such method.
    Method = -32_601,
    /// The parameters are wrong, or there is no such tool.
    Params = -32_602,
}

/// What a line is.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    /// Asks for an answer.
    Request {
        id: Value,
        method: String,
        params: Map<String, Value>,
    },
    /// Asks for none.
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// An answer to something that this server never asks, or an empty line.
    Nothing,
    /// No message: this is the answer.
    Wrong(Value),
}

/// Takes a line apart.
pub(super) fn message(line: &[u8]) -> Message {
    if line.trim_ascii().is_empty() {
        return Message::Nothing;
    }
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return Message::Wrong(failure(&Value::Null, Code::Parse, "the line is not JSON"));
    };
    let Value::Object(mut value) = value else {
        let why = "a line is one JSON-RPC object; batches are not part of the protocol";
        return Message::Wrong(failure(&Value::Null, Code::Invalid, why));
    };
    let id = value.remove("id");
    let wrong = |id: Option<Value>, code, why| Message::Wrong(failure(&id.unwrap_or_default(), code, why));
    if id.as_ref().is_some_and(|id| !id.is_string() && !id.is_number()) {
        return wrong(None, Code::Invalid, "id is a string or a number");
    }
    if value.get("jsonrpc") != Some(&json!("2.0")) {
        return wrong(id, Code::Invalid, "jsonrpc is \"2.0\"");
    }
    let method = match value.remove("method") {
        Some(Value::String(method)) => method,
        None if value.contains_key("result") || value.contains_key("error") => return Message::Nothing,
        _ => return wrong(id, Code::Invalid, "method is a string"),
    };
    let params = match value.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) if id.is_none() => return Message::Nothing,
        Some(_) => return wrong(id, Code::Params, "params is an object"),
    };
    match id {
        Some(id) => Message::Request { id, method, params },
        None => Message::Notification { method, params },
    }
}

/// The answer to a request.
pub(super) fn success(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// The answer to a request that has none.
pub(super) fn failure(id: &Value, code: Code, why: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code as i64, "message": why}})
}

/// The answer to `initialize`.
pub(super) fn welcome(params: &Map<String, Value>, instructions: &str) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let version = VERSIONS.into_iter().find(|version| asked == Some(version));
    json!({
        "protocolVersion": version.unwrap_or(VERSIONS[0]),
        "capabilities": {"tools": {"listChanged": false}},
        "serverInfo": {"name": "holdup", "title": "holdup", "version": env!("CARGO_PKG_VERSION")},
        "instructions": instructions,
    })
}

#[cfg(test)]
mod tests {
    use super::{Code, Message, message, welcome};
    use serde_json::{Map, Value, json};

    fn code(line: &str) -> Option<i64> {
        match message(line.as_bytes()) {
            Message::Wrong(answer) => answer["error"]["code"].as_i64(),
            _ => None,
        }
    }

    #[test]
    fn what_is_no_request_is_answered_with_its_code() {
        for (line, expected) in [
            ("{", Code::Parse),
            ("\u{1}garbage", Code::Parse),
            ("[]", Code::Invalid),
            ("7", Code::Invalid),
            (r#"{"id":1,"method":"ping"}"#, Code::Invalid),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Code::Invalid),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, Code::Invalid),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, Code::Invalid),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
                Code::Params,
            ),
        ] {
            assert_eq!(code(line), Some(expected as i64), "{line}");
        }
        for line in [
            "",
            " ",
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","method":"x","params":[]}"#,
        ] {
            assert_eq!(message(line.as_bytes()), Message::Nothing, "{line}");
        }
        let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(code(&deep), Some(Code::Parse as i64), "no stack overflows");
    }

    #[test]
    fn requests_have_an_id_and_notifications_none() {
        let request = message(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#);
        assert!(matches!(request, Message::Request { id, .. } if id == "a"));
        let notification = message(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert!(matches!(notification, Message::Notification { .. }));
    }

    #[test]
    fn a_version_that_is_not_known_gets_the_newest() {
        let of = |version: &str| {
            let mut params = Map::new();
            params.insert("protocolVersion".to_owned(), json!(version));
            welcome(&params, "")["protocolVersion"].take()
        };
        assert_eq!(of("2025-06-18"), "2025-06-18");
        assert_eq!(of("1999-01-01"), "2025-11-25");
        assert_eq!(
            welcome(&Map::new(), "")["protocolVersion"],
            Value::from("2025-11-25")
        );
    }
}
