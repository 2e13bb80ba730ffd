// The wait that is selected, and the way from it to who ended it, to the root: one step an arrow key.

const HOW = { "mutex-owner": "holds the lock: the lock stores its owner", "pi-futex": "holds the lock: the kernel stores its owner", "file-lock": "holds the file lock",
  "pipe-peer": "has the other end of the pipe", "socket-peer": "is the peer of the socket", "fuse-daemon": "serves the file system", tracer: "traces it", child: "is the awaited child",
  "kernel-lock": "holds the kernel lock", "robust-list": "holds the lock, according to its robust list", vmstructs: "holds the lock, according to the JVM", dump: "holds the lock, according to the thread dump",
  monitor: "owns the monitor", "last-to-stop": "was the last to reach the safepoint", waker: "woke it" };

// Where one came from on the way; left goes back there.
let trail = [];

// The row among the waits that a step of a way is about: the longest of that thread, of that cause if it has one.
const waitOf = (pid, tid, cause, not) => {
  let best = null;
  for (let at = 0; at < waits.length; at++) {
    const one = waits[at];
    if (one.asker.pid !== pid || one.asker.tid !== tid || at === not || (cause && one.cause !== cause)) continue;
    if (best === null || one.ns > waits[best].ns) best = at;
  }
  return best;
};

// Who is in the way, then who is in that one's way, to the end: as the time went on, where that leads to somebody who was observed, and
// by who is in the way of whom where it does not.
const way = (at) => {
  const wait = waits[at];
  const asks = { who: wait.asker, cause: wait.cause, ns: wait.ns, at, how: "waits" };
  const add = (steps, who, cause, ns, how) => {
    const last = steps[steps.length - 1].who;
    if (who.pid === last.pid && who.tid === last.tid) return;
    steps.push({ who, cause, ns, how, at: waitOf(who.pid, who.tid, cause || null, at) });
  };
  const gone = [asks];
  for (const link of wait.chain) {
    const holder = gone.length === 1 && wait.held_by && wait.held_by.pid === link.pid && wait.held_by.tid === link.tid ? wait.held_by : null;
    const known = findThread(link.pid, link.tid, link.process);
    add(gone, { ...link, thread: holder ? holder.thread : known !== null && threads[known].tid === link.tid ? threads[known].name : "" }, link.cause, link.ns, holder ? HOW[holder.how_known] : "the critical path continues there");
  }
  if (!wait.held_by || gone.some((step) => step !== asks && step.at !== null)) return gone;
  const held = [asks];
  add(held, wait.held_by, wait.held_by.doing, wait.held_by.ns, HOW[wait.held_by.how_known]);
  // What is in the way of that one is told with its own waits.
  for (let guard = 0; guard < 16; guard++) {
    const last = held[held.length - 1];
    const next = last.at === null ? null : waits[last.at].held_by;
    if (!next || held.some((step) => step.who.pid === next.pid && step.who.tid === next.tid)) break;
    add(held, next, next.doing, next.ns, HOW[next.how_known]);
  }
  return held.some((step) => step !== asks && step.at !== null) || gone.length < 2 ? held : gone;
};

const pickWait = (at) => {
  trail = [];
  look(view.wait === String(at) ? { wait: "", one: "" } : { wait: String(at), one: "" }, true);
};
const stepTo = (at) => {
  if (at === null || at === undefined || String(at) === view.wait) return false;
  trail.push(view.wait);
  look({ ...NOTHING, wait: String(at) }, true);
  return true;
};
const stepBack = () => {
  const before = trail.pop();
  if (before === undefined) return false;
  look({ ...NOTHING, wait: before }, true);
  return true;
};
const stepOn = () => {
  const steps = way(Number(view.wait));
  const next = steps.slice(1).find((step) => step.at !== null);
  if (!next) {
    say(steps.length > 1 ? "That one was not observed further." : "This is the root: it has no further blocker.");
    return;
  }
  stepTo(next.at);
};

const frameWords = (frame) => frame.symbol || (frame.module ? `${frame.module}+0x${frame.offset.toString(16)}` : `[no name] 0x${frame.offset.toString(16)}`);

const stackList = (wait) => {
  const line = (kind, what, where) => el("li", { class: "lang-" + kind }, el("span", { class: "tag" }, kind), name(what, 110, "any mono"), where ? el("span", { class: "aside" }, " ", brief(where, 60)) : null);
  const rows = [...wait.kernel_stack.map((one) => line("kernel", one, "")),
    ...wait.asker.stack.map((frame) => line(frame.language, frameWords(frame), [frame.symbol ? frame.module : null, frame.file ? frame.file + (frame.line ? ":" + frame.line : "") : null].filter(Boolean).join("  ")))];
  return rows.length ? el("ol", { class: "frames" }, rows.slice(0, 200)) : el("p", { class: "aside" }, "No stack was taken.");
};

const walk = () => {
  const box = document.getElementById("walk");
  const close = () => look({ wait: "", one: "" });
  const draw = () => {
    box.hidden = view.wait === "";
    document.body.classList.toggle("walking", !box.hidden);
    if (box.hidden) return;
    const at = Number(view.wait);
    const wait = waits[at];
    const steps = way(at);
    const fact_ = (key, value) => (value ? [el("dt", {}, key), el("dd", {}, value)] : null);
    const step = (one, index) => {
      const inner = [el("span", { class: "who" }, swatch(one.cause || "unknown"), name(threadWords(one.who), 60)),
        el("span", { class: "doing" }, one.cause ? phrase(one.cause) : "not observed", one.ns ? `, ${duration(one.ns)}` : ""), el("span", { class: "how" }, index === 0 ? "this wait" : one.how)];
      const can = index > 0 && one.at !== null;
      return el("li", { class: (index === 0 ? "here " : "") + (index === steps.length - 1 && index > 0 ? "root" : "") },
        can ? el("button", { type: "button", class: "step", onclick: () => stepTo(one.at) }, inner) : el("div", { class: "step" }, inner));
    };
    const started = wait.max_started ? (Date.parse(wait.max_started) - began) * 1e6 : null;
    const single = view.one !== "" ? singleWords(Number(view.one)) : null;
    fill(box,
      el("div", { class: "head" }, swatch(wait.cause), el("h2", {}, phrase(wait.cause), wait.resource.name ? [": ", name(wait.resource.name, 80)] : null),
        el("span", { class: "grow" }),
        el("span", { class: "row" },
          el("button", { class: "button small", type: "button", id: "back", disabled: !trail.length, onclick: stepBack }, "← back"),
          el("button", { class: "button small", type: "button", id: "on", disabled: steps.length < 2, onclick: stepOn }, "to the blocker →"),
          el("button", { class: "button small icon", type: "button", "aria-label": "Close", onclick: close }, "×"))),
      el("ol", { class: "way", "aria-label": "From this wait to its blockers, to the root" }, steps.map(step)),
      el("div", { class: "details" },
        el("dl", { class: "facts" }, single,
          fact_("Total", duration(wait.ns) + (wait.open ? ", and goes on" : "")), fact_("Times", wait.count.toLocaleString("en")),
          fact_("Longest", wait.max_ns ? duration(wait.max_ns) + (started !== null ? `, from ${started < 0 ? "before observation" : instant(started)}` : "") : null),
          wait.count > 2 ? fact_("Median, 99 %", `${duration(wait.p50_ns)}, ${duration(wait.p99_ns)}`) : null,
          wait.held_by ? fact_("Blocker", [name(threadWords(wait.held_by), 60), ": " + HOW[wait.held_by.how_known]]) : null,
          fact_("Call", wait.call ? brief(wait.call, 60) + (wait.bytes ? `, ${counted(wait.bytes, "byte", "bytes")}` : "") : null),
          fact_("Timed out", wait.timed_out ? wait.timed_out.toLocaleString("en") : null),
          Object.entries(wait.resource.detail).slice(0, 20).map(([key, value]) => fact_(brief(key, 30), name(value, 120))),
          wait.ran_instead.length ? fact_("CPU ran", wait.ran_instead.slice(0, 4).map((one) => `${brief(one.process, 30)} ${duration(one.ns)}`).join(", ")) : null,
          fact_("Unknown because", wait.why_unknown ? name(wait.why_unknown, 300) : null),
          fact_("Known", wait.how === "sampled" ? `sampled${wait.error_ns ? ", ± " + duration(wait.error_ns) : ""}` : "exactly")),
        el("div", {}, el("h3", {}, "Stack, innermost first"), stackList(wait))));
    say(`Selected: ${threadWords(wait.asker)}, ${phrase(wait.cause)}, ${duration(wait.ns)}. ${steps.length - 1} steps to the root.`);
  };
  onView((changed) => { if (changed.includes("wait") || changed.includes("one") || (changed.includes("clock") && view.wait !== "")) draw(); });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select");
    if (event.key === "Escape" && !typing) {
      if (view.wait !== "") { close(); trail = []; }
      else if (narrowed) look({ ...NOTHING });
      event.preventDefault();
      return;
    }
    if (view.wait === "" || typing || event.target.closest("canvas, .scroll:not(:has(.waits))") || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowRight") { stepOn(); event.preventDefault(); }
    if (event.key === "ArrowLeft") { stepBack(); event.preventDefault(); }
  });
};
