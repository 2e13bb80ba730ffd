//! Constructed events of each style, and rubbish.

use crate::read_text;
use holdup_evidence::observed::{TlsEvent, What};

fn events(text: &str) -> Vec<TlsEvent> {
    let reading = read_text("t", text.as_bytes());
    let tls = reading.observed.happenings.into_iter();
    tls.filter_map(|one| match one.what {
        What::Tls(event) => Some(event),
        _ => None,
    })
    .collect()
}

fn hello(of: &str, id: &str, more: &str) -> String {
    format!("javax.net.ssl|DEBUG|10|main|2026-11-22 04:03:17.582 UTC|{of}Hello.java:639|Produced {of}Hello handshake message (
\"{of}Hello\": {{
  \"client version\"      : \"TLSv1.2\",
  \"session id\"          : \"{id}\",
  \"extensions\"          : [
{more}
  ]
}}
)
")
}

#[test]
fn a_session_is_taken_up_when_the_server_repeats_its_id_or_takes_the_key() {
    let three = "    \"supported_versions (43)\": {\n      \"selected version\": [TLSv1.3]\n    },";
    let psk = format!("{three}\n    \"pre_shared_key (41)\": {{\n    }}");
    for (offered, answered, more, resumed) in [
        ("", "0A 0B", "", false),
        ("0A0B", "0A 0B", "", true),
        ("0A0B", "0A0C", "", false),
        ("0A0B", "0A0B", three, false),
        ("0A0B", "0A0B", &psk, true),
    ] {
        let text = hello("Client", offered, "") + &hello("Server", answered, more);
        let events = events(&text);
        assert_eq!(
            events[1],
            TlsEvent::ServerHello {
                resumed: Some(resumed),
                server: None,
            },
            "{offered} {answered} {more}"
        );
    }
}

#[test]
fn what_a_client_offers() {
    let ticket = "    \"session_ticket (35)\": {\n        \"ticket\" : {\n  0000: 0A\n        }\n    },";
    let empty = "    \"session_ticket (35)\": {\n      <empty>\n    },";
    let name = "    \"server_name (0)\": {\n      type=host_name (0), value=a.example\n    },";
    let of = |more: &str| events(&hello("Client", "", more)).remove(0);
    let hello = |ticket, server: Option<&str>| TlsEvent::ClientHello {
        session_id: 0,
        server: server.map(str::to_owned),
        ticket: Some(ticket),
    };
    assert_eq!(of(ticket), hello(true, None));
    assert_eq!(of(empty), hello(false, None));
    assert_eq!(of(name), hello(false, Some("a.example")));
    let cut = "\"ClientHello\": {\n  \"session id\"          : \"62 E9\",\n...\n}\n";
    let cut = events(cut);
    assert_eq!(
        cut,
        [TlsEvent::ClientHello {
            session_id: 2,
            server: None,
            ticket: None
        }]
    );
}

#[test]
fn a_fatal_alert_has_who_raised_it() {
    let text = "javax.net.ssl|ERROR|2D|exec-5|2020-12-15 19:17:24.055 CET|TransportContext.java:312|Fatal (INTERNAL_ERROR): closing early (
\"throwable\" : {
  javax.net.ssl.SSLException: closing early
  \tat java.base/sun.security.ssl.Alert.createSSLException(Alert.java:133)
  \tat java.base/sun.security.ssl.TransportContext.fatal(TransportContext.java:307)
  \tat java.base/sun.security.ssl.SSLSocketImpl.shutdownInput(SSLSocketImpl.java:645)
  \tat a.b.Client.close(Client.java:5)
";
    let [TlsEvent::Fatal { why, raised_by }] = &events(text)[..] else {
        panic!()
    };
    assert_eq!(why, "Fatal (INTERNAL_ERROR): closing early");
    assert_eq!(
        raised_by.as_deref(),
        Some("sun.security.ssl.SSLSocketImpl.shutdownInput, called by a.b.Client.close")
    );
}

#[test]
fn the_style_of_jdk_8() {
    let text = "*** ClientHello, TLSv1.2
RandomCookie:  GMT: 1 bytes = { 1, 2 }
Session ID:  {93, 5}
Cipher Suites: [A]
***
*** ServerHello, TLSv1.2
Session ID:  {93, 5}
***
%% Server resumed [Session-1, A]
*** ClientHello, TLSv1.2
Session ID:  {}
Extension server_name, server_name: [type=host_name (0), value=a.example]
***
*** ServerHello, TLSv1.2
Session ID:  {93, 7}
***
*** Certificate chain
chain [0] = [
***
main, SEND TLSv1.2 ALERT:  fatal, description = internal_error
";
    let all = events(text);
    assert_eq!(
        all,
        [
            TlsEvent::ClientHello {
                session_id: 2,
                server: None,
                ticket: Some(false)
            },
            TlsEvent::ServerHello {
                resumed: None,
                server: None
            },
            TlsEvent::ServerHello {
                resumed: Some(true),
                server: None
            },
            TlsEvent::ClientHello {
                session_id: 0,
                server: Some("a.example".into()),
                ticket: Some(false)
            },
            TlsEvent::ServerHello {
                resumed: None,
                server: Some("a.example".into())
            },
            TlsEvent::Certificate {
                server: Some("a.example".into())
            },
            TlsEvent::Fatal {
                why: "fatal, description = internal_error".into(),
                raised_by: None
            },
        ]
    );
}

#[test]
fn rubbish_is_nothing() {
    for text in [
        "javax.net.ssl|\n",
        "javax.net.ssl|||||\n",
        "javax.net.ssl|DEBUG|1|m|x|y|Fatal\n",
        "\"ClientHello\": {\n\0\n\"session id\" : \"\n",
        "*** ClientHello, \nSession ID\n",
    ] {
        assert!(events(text).is_empty(), "{text}");
    }
}

#[test]
fn why_a_session_is_not_taken_up() {
    let text = hello("Client", "", "")
        + "javax.net.ssl|ALL|10|main|2026-11-22 04:03:17.582 UTC|ClientHello.java:518|Can't resume, endpoint id algorithm does \
           not match, requested: HTTPS, cached: null\n\
           javax.net.ssl|WARNING|10|main|2026-11-22 04:03:17.583 UTC|SSLSocketImpl.java:720|Invalidate the session: SO_LINGER \
           timeout, close_notify message cannot be sent.\n\
           javax.net.ssl|ALL|10|main|2026-11-22 04:03:17.584 UTC|ClientHello.java:528|Try resuming session (\n)\n";
    let why = |event| match event {
        TlsEvent::NotResumed { why } => Some(why),
        _ => None,
    };
    assert_eq!(
        events(&text).into_iter().filter_map(why).collect::<Vec<_>>(),
        [
            "Can't resume, endpoint id algorithm does not match, requested: HTTPS, cached: null",
            "Invalidate the session: SO_LINGER timeout, close_notify message cannot be sent.",
        ]
    );
}
