// The report, its indexes, and what is looked at: one view, which the address holds and every part follows.

const read = (id) => JSON.parse(document.getElementById(id).textContent || "null");
const words = read("words");
const packed = read("report") || { report: null, items: [], lists: [] };

// Lists that stand as columns become records again; the pieces of the time line stay as they are.
const records = (columns) => {
  if (!columns || Array.isArray(columns)) return columns;
  const names = Object.keys(columns);
  return columns[names[0]].map((_, at) => Object.fromEntries(names.map((name) => [name, columns[name][at]])));
};
if (packed.report) {
  const whole = packed.report;
  whole.waits = records(whole.waits);
  whole.threads = records(whole.threads);
  for (const one of whole.threads) one.causes = records(one.causes);
  if (whole.timeline) for (const list of ["tasks", "rest"]) whole.timeline[list] = records(whole.timeline[list]);
}

// Lists that are kept once go back to where they are used.
const unshare = (value) => {
  if (value === null || typeof value !== "object") return;
  for (const key of Object.keys(value)) {
    if ((key === "stack" || key === "kernel_stack") && typeof value[key] === "number") {
      value[key] = packed.lists[value[key]].map((at) => packed.items[at]);
    } else if (key !== "timeline") {
      unshare(value[key]);
    }
  }
};
unshare(packed.report);
const report = packed.report || { subject: { kind: "run", command: [], started: "", wall_ns: 0 }, coverage: { lost: [], not_measured: [] },
  causes: [], threads: [], waits: [], findings: [], ruled_out: [], cannot_tell: [], requests: null };
const waits = report.waits;
const threads = report.threads;
const ofThreads = report.subject.kind === "attach" || report.subject.kind === "host";
const wholeNs = ofThreads ? report.causes.reduce((sum, one) => sum + one.ns, 0) : report.subject.wall_ns;
const began = Date.parse(report.subject.started) || 0;

// Families of causes: few enough to be told apart by colour, each with its word.
const GROUPS = [
  ["cpu", "running"], ["queue", "waiting for a CPU"], ["disk", "disks and files"], ["memory", "memory"],
  ["lock", "locks and runtimes"], ["peer", "other processes"], ["net", "network"], ["kernel", "kernel and devices"],
  ["rest", "sleep and idle"], ["unknown", "unknown"],
];
const OF_AREA = { cpu: 0, sched: 1, disk: 2, fs: 2, mem: 3, lock: 4, runtime: 4, ipc: 5, process: 5, net: 6, poll: 6,
  random: 7, gpu: 7, io: 7, kernel: 7, device: 7, security: 7, timer: 8, idle: 8, unknown: 9 };
const groupOf = (cause) => {
  const area = cause.split(".")[0];
  return Object.hasOwn(OF_AREA, area) ? OF_AREA[area] : 9;
};
const groupColour = (cause) => `var(--g-${GROUPS[groupOf(cause)][0]})`;
const isCause = (cause) => Object.hasOwn(words.causes, cause);
const phrase = (cause) => (isCause(cause) ? words.causes[cause].phrase : cause);
const onCpu = (cause) => isCause(cause) && Boolean(words.causes[cause].cpu);

// A cause with its colour and its words.
const swatch = (cause) => {
  const box = el("i", { class: "swatch g-" + GROUPS[groupOf(cause)][0], "aria-hidden": "true" });
  box.style.backgroundColor = groupColour(cause);
  return box;
};

const threadAt = new Map();
threads.forEach((one, at) => {
  const key = one.pid + "/" + one.tid + (one.tid === 0 ? "/" + one.process : "");
  if (!threadAt.has(key)) threadAt.set(key, at);
});
const findThread = (pid, tid, process) =>
  threadAt.get(pid + "/" + tid + (tid === 0 ? "/" + (process || "") : "")) ?? threadAt.get(pid + "/" + pid) ?? null;
const threadOf = waits.map((wait) => findThread(wait.asker.pid, wait.asker.tid, wait.asker.process));
const threadWords = (one, most = 34) => {
  const process = brief(one.process || "[no name]", most);
  const own = one.name ?? one.thread ?? "";
  if (one.threads > 1) return `${counted(one.threads, "thread", "threads")} of ${process}`;
  if (one.pid === 0) return process;
  if (own && own !== one.process) return `${brief(own, most)} of ${process} (${one.tid})`;
  return `${process} (${one.tid || one.pid})`;
};

const parts = [];
// A part tells how it follows the view: `follow(changed)`.
const onView = (follow) => parts.push(follow);

const NO_VIEW = { cause: "", thread: "", wait: "", tile: "", frames: "", q: "", from: "", to: "", sort: "", what: "", colour: "", zoom: "", clock: "", one: "", node: "" };
const view = { ...NO_VIEW };

const readAddress = () => {
  const told = new URLSearchParams(location.hash.slice(1));
  const number = (key, most) => {
    const text = told.get(key) ?? "";
    return /^\d{1,16}$/.test(text) && Number(text) < most ? text : "";
  };
  const next = { ...NO_VIEW };
  next.cause = isCause(told.get("cause") ?? "") ? told.get("cause") : "";
  next.thread = number("thread", threads.length);
  next.wait = number("wait", waits.length);
  next.tile = /^[th]\d{1,3}$/.test(told.get("tile") ?? "") && entryOf(told.get("tile")) ? told.get("tile") : "";
  next.frames = /^\d+(\.\d+){0,400}$/.test(told.get("frames") ?? "") ? told.get("frames") : "";
  next.q = (told.get("q") ?? "").slice(0, 200);
  next.from = number("from", 2 ** 53);
  next.to = number("to", 2 ** 53);
  if (next.from === "" || next.to === "" || Number(next.from) >= Number(next.to)) next.from = next.to = "";
  next.sort = /^-?[a-z_]{1,20}$/.test(told.get("sort") ?? "") ? told.get("sort") : "";
  next.what = ["all", "running"].includes(told.get("what")) ? told.get("what") : "";
  next.colour = told.get("colour") === "cause" ? "cause" : "";
  next.zoom = /^\d{1,16}-\d{1,16}$/.test(told.get("zoom") ?? "") ? told.get("zoom") : "";
  next.clock = ["utc", "since"].includes(told.get("clock")) ? told.get("clock") : "";
  next.one = number("one", 2 ** 31);
  next.node = number("node", both ? both.nodes.length : 0);
  return next;
};

const entryOf = (tile) => (tile[0] === "t" ? words.tiles : words.handed_on)[Number(tile.slice(1))] ?? null;

const address = () => {
  const told = new URLSearchParams();
  for (const [key, value] of Object.entries(view)) if (value !== "") told.set(key, value);
  return "#" + told.toString();
};

// Changes what is looked at; the address follows, and so does every part.
const look = (change, keep = false) => {
  const before = { ...view };
  Object.assign(view, change);
  const changed = Object.keys(view).filter((key) => view[key] !== before[key]);
  if (changed.length === 0) return;
  if (keep || !hand.held) write(keep);
  else hand.owed = true;
  show(changed);
};
// A drag, a held key and a wheel change the view many times a second, and browsers leave addresses out beyond two hundred in ten
// seconds: while a hand is at it the address waits, and is written once when it lets go.
const hand = { held: false, owed: false, timer: 0 };
const QUIET_MS = 200;
const write = (keep) => {
  hand.owed = false;
  history[keep ? "pushState" : "replaceState"](null, "", address());
};
const hold = () => { hand.held = true; };
const letGo = () => {
  hand.held = false;
  if (hand.owed) write(false);
};
addEventListener("pointerdown", hold, true);
for (const end of ["pointerup", "pointercancel", "keyup", "blur"]) addEventListener(end, letGo);
addEventListener("keydown", (event) => { if (event.repeat) hold(); }, true);
addEventListener("wheel", () => { hold(); clearTimeout(hand.timer); hand.timer = setTimeout(letGo, QUIET_MS); }, { capture: true, passive: true });
const show = (changed) => {
  choose();
  for (const follow of parts) follow(changed);
};
const followAddress = () => {
  const before = { ...view };
  Object.assign(view, readAddress());
  const changed = Object.keys(view).filter((key) => view[key] !== before[key]);
  if (changed.length) show(changed);
};

// What is chosen: one byte a wait, and whether anything narrows the choice.
const chosen = new Uint8Array(waits.length).fill(1);
// The same without regard to one wait that is picked: the table of waits keeps its rows around it.
const listed = new Uint8Array(waits.length).fill(1);
let narrowed = false;
// Of a window: how much of each wait lies in it; null where there is no window.
let within = null;

const choose = () => {
  const tile = view.tile ? new Set(entryOf(view.tile).waits) : null;
  const window = view.from !== "" ? [Number(view.from), Number(view.to)] : null;
  within = window ? inWindow(window) : null;
  const frames = view.frames ? flameWaits(view.frames) : null;
  narrowed = Boolean(view.cause || view.thread !== "" || view.wait !== "" || tile || window || frames);
  for (let at = 0; at < waits.length; at++) {
    listed[at] = Number(
      (!view.cause || waits[at].cause === view.cause) &&
      (view.thread === "" || threadOf[at] === Number(view.thread)) &&
      (!tile || tile.has(at)) && (!frames || frames.has(at)) && (!within || within[at] > 0));
    chosen[at] = Number(listed[at] && (view.wait === "" || Number(view.wait) === at));
  }
};
const NOTHING = { cause: "", thread: "", wait: "", tile: "", frames: "", from: "", to: "", one: "" };

// Instants as the person wants them.
const two = (number, width = 2) => String(number).padStart(width, "0");
const instant = (ns) => {
  if (view.clock === "since") return "+" + (ns === 0 ? "0 s" : duration(ns));
  const date = new Date(began + ns / 1e6);
  const utc = view.clock === "utc";
  const of = (part) => (utc ? date["getUTC" + part]() : date["get" + part]());
  return `${two(of("Hours"))}:${two(of("Minutes"))}:${two(of("Seconds"))}.${two(of("Milliseconds"), 3)}` + (utc ? " UTC" : "");
};
const day = () => {
  const date = new Date(began);
  if (view.clock === "utc") return date.toISOString().slice(0, 10);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
};

const themeNow = () => document.documentElement.dataset.theme;
const computed = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
