//! Chromium without a window, led through a pipe by the protocol of its developer tools.
//!
//! In: addresses, sizes, scripts. Out: values of scripts, and what went wrong in a page: errors, and requests of any kind.

use anyhow::{Context, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The pipes are expected at 3 and 4; the shell puts them there.
const AT_3_AND_4: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;

/// After this long without a word the browser is taken for dead, in milliseconds.
const SILENCE: u16 = 60_000;

/// A browser.
pub(super) struct Browser {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
    /// Bytes that are no whole message yet.
    buffer: Vec<u8>,
    next: u64,
    /// What happened since the page was opened.
    events: Vec<Value>,
}

/// A page in it.
pub(super) struct Page<'a> {
    browser: &'a mut Browser,
    target: String,
    session: String,
}

impl Browser {
    /// Starts it, with a profile of its own in `folder`.
    pub(super) fn start(folder: &Path) -> anyhow::Result<Browser> {
        let profile = folder.join("profile");
        let mut child = Command::new("sh")
            .args([
                "-c",
                AT_3_AND_4,
                "chromium",
                "--headless",
                "--remote-debugging-pipe",
            ])
            // Root has no sandbox; pages of ours are all that is opened.
            .args([
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                // Each control changes the page's address, and here they are used faster than a hand could: beyond two hundred in
                // ten seconds the browser leaves changes out and says so in the log.
                "--disable-ipc-flooding-protection",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start chromium")?;
        let to = child.stdin.take().expect("stdin is piped");
        let from = child.stdout.take().expect("stdout is piped");
        Ok(Browser {
            child,
            to,
            from,
            buffer: Vec::new(),
            next: 0,
            events: Vec::new(),
        })
    }

    /// Opens a page and waits until it is loaded.
    pub(super) fn open(&mut self, url: &str) -> anyhow::Result<Page<'_>> {
        let answer = self.ask("Target.createTarget", &json!({"url": "about:blank"}), None)?;
        let target = text(&answer["targetId"])?;
        let answer = self.ask(
            "Target.attachToTarget",
            &json!({"targetId": target, "flatten": true}),
            None,
        )?;
        let session = text(&answer["sessionId"])?;
        self.events.clear();
        for domain in ["Runtime.enable", "Log.enable", "Network.enable", "Page.enable"] {
            self.ask(domain, &json!({}), Some(&session))?;
        }
        self.ask("Page.navigate", &json!({"url": url}), Some(&session))?;
        while !self
            .events
            .iter()
            .any(|event| event["method"] == "Page.loadEventFired")
        {
            let message = self.read()?;
            self.events.push(message);
        }
        Ok(Page {
            browser: self,
            target,
            session,
        })
    }

    /// Ends it.
    pub(super) fn close(mut self) -> anyhow::Result<()> {
        self.ask("Browser.close", &json!({}), None)?;
        self.child.wait().context("wait for chromium")?;
        Ok(())
    }

    /// Sends a command and waits for its answer; what else comes is kept.
    fn ask(&mut self, method: &str, parameters: &Value, session: Option<&str>) -> anyhow::Result<Value> {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": parameters});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).context("write to chromium")?;
        loop {
            let mut message = self.read()?;
            if message["id"] != self.next {
                self.events.push(message);
                continue;
            }
            if let Some(error) = message.get("error") {
                bail!("chromium refuses {method}: {error}");
            }
            return Ok(message["result"].take());
        }
    }

    /// The next message; each ends with a zero byte.
    fn read(&mut self) -> anyhow::Result<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == 0) {
                let message: Vec<u8> = self.buffer.drain(..=end).collect();
                return serde_json::from_slice(&message[..end]).context("read what chromium says");
            }
            let ready = poll(
                &mut [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)],
                PollTimeout::from(SILENCE),
            );
            if ready.context("wait for chromium")? == 0 {
                bail!("chromium has been silent for a minute");
            }
            let mut bytes = [0; 65_536];
            let count = self.from.read(&mut bytes).context("read from chromium")?;
            if count == 0 {
                bail!("chromium has ended; does `chromium --headless --no-sandbox` start here?");
            }
            self.buffer.extend_from_slice(&bytes[..count]);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // After an error it is still there.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Page<'_> {
    /// Sets the window's width and the system's colours.
    pub(super) fn look_like(&mut self, width: u32, scheme: &str) -> anyhow::Result<()> {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", &size)?;
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.ask("Emulation.setEmulatedMedia", &media)?;
        // Sizes are followed with the next picture.
        self.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))",
        )?;
        Ok(())
    }

    /// The value of an expression, or of what it promises.
    pub(super) fn evaluate(&mut self, expression: &str) -> anyhow::Result<Value> {
        let what = json!({"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true});
        let mut answer = self.ask("Runtime.evaluate", &what)?;
        if let Some(error) = answer.get("exceptionDetails") {
            bail!("a script failed: {}", error["exception"]["description"]);
        }
        Ok(answer["result"]["value"].take())
    }

    /// What went wrong in it, and every request but that for itself.
    pub(super) fn troubles(&self, url: &str) -> Vec<String> {
        let events = self.browser.events.iter();
        events.filter_map(|event| trouble(event, url)).collect()
    }

    /// Closes it.
    pub(super) fn close(self) -> anyhow::Result<()> {
        let target = json!({"targetId": self.target});
        self.browser.ask("Target.closeTarget", &target, None)?;
        Ok(())
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> anyhow::Result<Value> {
        self.browser.ask(method, parameters, Some(&self.session))
    }
}

/// What Chromium's advice begins with that a canvas is read more than once.
const READS_PIXELS: &str = "Canvas2D: Multiple readback operations";

/// What an event tells of trouble.
fn trouble(event: &Value, url: &str) -> Option<String> {
    let params = &event["params"];
    match event["method"].as_str()? {
        "Runtime.exceptionThrown" => {
            let details = &params["exceptionDetails"];
            Some(format!("an error: {}", details["exception"]["description"]))
        }
        "Runtime.consoleAPICalled" => Some(format!("in the console: {}", params["args"])),
        // Advice to whoever reads pixels, which no page does: `drive.js` looks at what is drawn.
        "Log.entryAdded"
            if params["entry"]["text"]
                .as_str()
                .is_some_and(|text| text.starts_with(READS_PIXELS)) =>
        {
            None
        }
        "Log.entryAdded" => Some(format!("in the log: {}", params["entry"]["text"])),
        "Network.requestWillBeSent" => {
            let asked = params["request"]["url"].as_str().unwrap_or("no address");
            let own = asked.split('#').next() == Some(url);
            (!own).then(|| format!("a request left: {asked:.200}"))
        }
        _ => None,
    }
}

fn text(value: &Value) -> anyhow::Result<String> {
    Ok(value.as_str().context("chromium gave no id")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::trouble;
    use serde_json::json;

    #[test]
    fn every_request_but_the_pages_own_is_trouble() {
        let request =
            |url: &str| json!({"method": "Network.requestWillBeSent", "params": {"request": {"url": url}}});
        assert_eq!(trouble(&request("file:///p.html#wait=1"), "file:///p.html"), None);
        assert!(trouble(&request("https://example.org/"), "file:///p.html").is_some());
        assert!(trouble(&request("file:///q"), "file:///p.html").is_some());
        let log = json!({"method": "Log.entryAdded", "params": {"entry": {"text": "Refused to run"}}});
        assert!(trouble(&log, "").is_some());
        assert_eq!(trouble(&json!({"method": "Page.loadEventFired"}), ""), None);
    }
}
