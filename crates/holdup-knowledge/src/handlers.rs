//! Code of servers and frameworks that calls a program's handler for one request.
//!
//! The problem: a thread of a server that is parked has no work as a rule, and one that is parked within a handler has a client that waits. The
//! choice: who is in a function of the program that such code called has a request in hand, unless it waits for something in the server's own
//! code, as one does whose client has not sent all of it.
//!
//! In: a stack, innermost frame first. Out: whether its thread has a request in hand.

use crate::{java, python, ruby};
use holdup_evidence::{Frame, Language};

/// Methods of Java by which a handler is called, by how their names begin.
const IN_JAVA: &[&str] = &[
    "javax.servlet.http.HttpServlet.service",
    "jakarta.servlet.http.HttpServlet.service",
    "sun.net.httpserver.ServerImpl$Exchange.run",
    "com.sun.net.httpserver.Filter$Chain.doFilter",
    "org.eclipse.jetty.server.Server.handle",
    "org.eclipse.jetty.server.handler.",
    "org.apache.catalina.core.",
    "org.springframework.web.",
    "org.glassfish.jersey.server.",
    "org.glassfish.grizzly.http.server.",
    "io.undertow.server.Connectors.executeRootHandler",
    "io.javalin.",
    "io.grpc.internal.ServerCallImpl$ServerStreamListenerImpl.",
    "io.helidon.webserver.",
    "spark.http.matching.",
];

/// Servers' own code in which a thread with a request waits for its client.
const SERVERS_OF_JAVA: &[&str] = &[
    "org.eclipse.jetty.server.",
    "org.eclipse.jetty.io.",
    "org.eclipse.jetty.ee",
    "org.apache.tomcat.",
    "org.apache.catalina.",
    "org.apache.coyote.",
    "org.glassfish.grizzly.",
    "io.undertow.",
    "org.xnio.",
    "io.helidon.webserver.",
];

/// Functions of Python by which a handler is called: how the path of the file ends, and the name.
const IN_PYTHON: &[(&str, &str)] = &[
    ("/http/server.py", "handle_one_request"),
    ("/xmlrpc/server.py", "_dispatch"),
    ("/flask/app.py", "dispatch_request"),
    ("/django/core/handlers/base.py", "_get_response"),
    ("/bottle.py", "_handle"),
    ("/falcon/app.py", "__call__"),
    ("/cherrypy/_cprequest.py", "respond"),
    ("/pyramid/router.py", "invoke_request"),
    ("/grpc/_server.py", "_call_behavior"),
    // Where handlers that are no coroutines run, of servers with an event loop. Any program of anyio is begun by another `run` of this file.
    ("/anyio/_backends/_asyncio.py", "WorkerThread.run"),
    ("/asgiref/sync.py", "thread_handler"),
];

/// The same of Ruby.
const IN_RUBY: &[(&str, &str)] = &[
    ("/puma/request.rb", "handle_request"),
    ("/webrick/httpserver.rb", "service"),
    ("/unicorn/http_server.rb", "process_client"),
];

/// Whether a thread has a request in hand.
#[must_use]
pub fn has_request(stack: &[Frame]) -> bool {
    let language = stack
        .iter()
        .map(|frame| frame.language)
        .find(|language| matches!(language, Language::Java | Language::Python | Language::Ruby));
    match language {
        Some(Language::Java) => in_java(stack),
        Some(Language::Python) => within(stack, Language::Python, IN_PYTHON, python::is_of_library),
        Some(Language::Ruby) => {
            let of_library = |frame: &Frame| ruby::of_library(frame.file.as_deref().unwrap_or_default());
            within(stack, Language::Ruby, IN_RUBY, of_library)
        }
        _ => false,
    }
}

fn in_java(stack: &[Frame]) -> bool {
    let frames = stack.iter().filter(|frame| frame.language == Language::Java);
    let names: Vec<&str> = frames.filter_map(|frame| frame.symbol.as_deref()).collect();
    let any = |list: &[&str], name: &str| list.iter().any(|start| java::is(name, start));
    let Some(called) = names.iter().position(|name| any(IN_JAVA, name)) else {
        return false;
    };
    let within = &names[..called];
    let first = within.iter().find(|name| !java::of_runtime(name));
    within.iter().any(|name| !java::of_library(name)) && first.is_some_and(|name| !any(SERVERS_OF_JAVA, name))
}

/// Whether a function of the program is further in than one that calls handlers.
fn within(
    stack: &[Frame],
    language: Language,
    handlers: &[(&str, &str)],
    of_library: impl Fn(&Frame) -> bool,
) -> bool {
    let mut frames = stack.iter().filter(|frame| frame.language == language);
    let calls = |frame: &Frame| {
        let (file, symbol) = (frame.file.as_deref().unwrap_or_default(), frame.symbol.as_deref());
        let name = bare(symbol.unwrap_or_default());
        handlers
            .iter()
            .any(|(path, function)| file.ends_with(path) && (name == *function || symbol == Some(*function)))
    };
    let mut own = false;
    frames.any(|frame| {
        let found = own && calls(frame);
        own |= !of_library(frame);
        found
    })
}

/// The name of a function without its class, and of a block's without the block: `block in Puma::Request#handle_request`.
fn bare(symbol: &str) -> &str {
    symbol.rsplit([' ', '#', '.']).next().unwrap_or(symbol)
}

#[cfg(test)]
mod tests {
    use super::has_request;
    use holdup_evidence::{Frame, Language};

    fn stack(language: Language, frames: &[(&str, &str)]) -> Vec<Frame> {
        let frame = |(symbol, file): &(&str, &str)| Frame {
            symbol: Some((*symbol).to_owned()),
            file: (!file.is_empty()).then(|| (*file).to_owned()),
            language,
            ..Frame::default()
        };
        frames.iter().map(frame).collect()
    }

    fn java(names: &[&str]) -> Vec<Frame> {
        let frames: Vec<(&str, &str)> = names.iter().map(|name| (*name, "")).collect();
        stack(Language::Java, &frames)
    }

    #[test]
    fn a_servlet_that_waits_in_a_client_has_a_request() {
        let waits = [
            "java.lang.Object.wait",
            "org.apache.kafka.common.utils.SystemTime.waitObject",
        ];
        let own = "com.shop.Events.placed";
        let server = ["org.eclipse.jetty.server.Server.handle", "java.lang.Thread.run"];
        assert!(has_request(&java(&[&waits[..], &[own], &server].concat())));
        assert!(
            !has_request(&java(&[&waits[..], &[own], &server[1..]].concat())),
            "a thread of the program's"
        );
        assert!(
            !has_request(&java(&[&waits[..], &server].concat())),
            "of no handler of the program"
        );
    }

    #[test]
    fn who_waits_for_the_rest_of_a_request_waits_for_its_client() {
        let reads = [
            "java.lang.Object.wait",
            "org.eclipse.jetty.server.HttpInput.blockForContent",
            "com.shop.Upload.doPost",
            "javax.servlet.http.HttpServlet.service",
        ];
        assert!(!has_request(&java(&reads)));
        let idle = [
            "jdk.internal.misc.Unsafe.park",
            "org.eclipse.jetty.util.thread.QueuedThreadPool.idleJobPoll",
            "java.lang.Thread.run",
        ];
        assert!(!has_request(&java(&idle)));
    }

    #[test]
    fn handlers_of_python_and_ruby_are_told_by_who_called_them() {
        let threading = ("Event.wait", "/usr/lib/python3.11/threading.py");
        let own = ("Handler.do_POST", "/srv/app.py");
        let server = (
            "BaseHTTPRequestHandler.handle_one_request",
            "/usr/lib/python3.11/http/server.py",
        );
        assert!(has_request(&stack(Language::Python, &[threading, own, server])));
        assert!(!has_request(&stack(Language::Python, &[threading, own])));
        let anyio = (
            "WorkerThread.run",
            "/srv/venv/lib/python3.11/site-packages/anyio/_backends/_asyncio.py",
        );
        let takes = ("Queue.get", "/usr/lib/python3.11/queue.py");
        assert!(
            !has_request(&stack(Language::Python, &[takes, anyio])),
            "a worker without work"
        );
        let puma = "/var/lib/gems/3.1.0/gems/puma-6.4.0/lib/puma/request.rb";
        for name in ["handle_request", "block in Puma::Request#handle_request"] {
            let frames = [("pop", ""), ("record", "/srv/lib/audit.rb"), (name, puma)];
            assert!(has_request(&stack(Language::Ruby, &frames)), "{name}");
        }
        let worker = [("pop", ""), ("run", "/srv/lib/audit.rb")];
        assert!(!has_request(&stack(Language::Ruby, &worker)));
    }
}
