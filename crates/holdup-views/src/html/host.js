// Figures of the whole machine on the axis of the time line: a strip each, from 0 to 100 %, and the same as a table.

const STRIP = 34;
const FULL = 24;
// What each is called, in a word for narrow windows, and whose colour it has.
const HOST_WORDS = {
  "cpu-busy": ["CPUs busy", "CPUs", "cpu"],
  "cpu-iowait": ["CPUs idle, a disk awaited", "iowait", "disk"],
  "pressure-cpu": ["tasks short of a CPU", "short of CPU", "queue"],
  "pressure-memory": ["tasks short of memory", "short of mem.", "memory"],
  "pressure-io": ["tasks short of a disk", "short of disk", "disk"],
  "disk-busy": ["disk busy", "disk", "disk"],
};

// Only what is what it should be: a report may be anybody's.
const hostFigures = (() => {
  const raw = report.host_figures || {};
  const stretches = (raw.stretches || []).map((one) => ({ from: one.from_ns, to: one.from_ns + one.ns }));
  const lines = (raw.lines || []).filter((one) => Object.hasOwn(HOST_WORDS, one.figure)).map((one) => ({ ...one, of: one.of || "", shares: stretches.map((_, at) => one.shares[at] ?? null) }));
  return { stretches, lines: lines.filter((one) => one.shares.some((share) => share !== null)) };
})();
const hostSpan = () => hostFigures.stretches.reduce((most, one) => Math.max(most, one.to), 0);
const hostWords = (line, most = 34) => HOST_WORDS[line.figure][0] + (line.of ? ": " + brief(line.of, most) : "");
const hostColour = (line) => "--g-" + HOST_WORDS[line.figure][2];
const inPercent = (share) => (share === null ? "not told" : (share * 100).toFixed(1) + " %");

const machine = () => {
  const { stretches, lines } = hostFigures;
  if (!lines.length) return;
  const canvas = el("canvas", { class: "strips", tabindex: "0", role: "img", "aria-describedby": "machine-help" });
  const range = el("span", { class: "aside" });
  const body = el("tbody", {});
  const high = lines.length * STRIP;
  const inSight = () => { const [from, to] = zoomNow(); return stretches.map((one, at) => at).filter((at) => stretches[at].to > from && stretches[at].from < to); };
  const draw = () => {
    const [pen, width] = prepare(canvas, high + 20);
    const left = gutter(width);
    const [from, to] = zoomNow();
    const place = (ns) => left + ((Math.max(from, Math.min(to, ns)) - from) / (to - from)) * (width - left);
    const seen = inSight();
    lines.forEach((line, row) => {
      const base = row * STRIP + FULL + 4;
      pen.fillStyle = computed("--sunk");
      for (const at of seen) if (line.shares[at] !== null) pen.fillRect(place(stretches[at].from), base - FULL, Math.max(1, place(stretches[at].to) - place(stretches[at].from)), FULL);
      pen.fillStyle = computed(hostColour(line));
      for (const at of seen) {
        const h = (line.shares[at] ?? 0) * FULL;
        if (h > 0) pen.fillRect(place(stretches[at].from), base - Math.max(1, h), Math.max(1, place(stretches[at].to) - place(stretches[at].from)), Math.max(1, h));
      }
      pen.fillStyle = computed("--ink-2");
      const words_ = left < GUTTER ? HOST_WORDS[line.figure][1] + (line.of ? " " + line.of : "") : hostWords(line, 14);
      pen.fillText(brief(words_, Math.floor((left - 8) / 6.4)), 0, base - FULL + 7);
      pen.fillStyle = computed("--ink-3");
      pen.fillText("up to " + inPercent(Math.max(0, ...seen.map((at) => line.shares[at] ?? 0))), 0, base - 4);
    });
    if (view.from !== "") {
      pen.strokeStyle = computed("--pick");
      pen.lineWidth = 2;
      const x = place(Number(view.from));
      pen.strokeRect(x, 1, Math.max(2, place(Number(view.to)) - x), high - 2);
    }
    ticks(pen, from, to, left, width, high + 2);
    range.textContent = `${duration(Math.round(to - from))} in sight`;
    canvas.setAttribute("aria-label", `${counted(lines.length, "figure", "figures")} of the machine over ${duration(Math.round(to - from))}; the table below has them.`);
  };
  const tell = () => {
    const seen = inSight();
    fill(body, lines.map((line) => {
      const told_ = seen.filter((at) => line.shares[at] !== null);
      const length = (at) => stretches[at].to - stretches[at].from;
      const all = told_.reduce((sum, at) => sum + length(at), 0);
      const mean = all ? told_.reduce((sum, at) => sum + line.shares[at] * length(at), 0) / all : null;
      const peak = told_.length ? told_.reduce((best, at) => (line.shares[at] > line.shares[best] ? at : best)) : null;
      const when = peak === null ? "" : `${instant(stretches[peak].from)}, for ${duration(length(peak))}`;
      return el("tr", { "data-figure": line.figure }, el("th", { scope: "row" }, hostWords(line, 60)), el("td", { class: "number" }, inPercent(mean)), el("td", { class: "number" }, peak === null ? "" : inPercent(line.shares[peak])),
        el("td", {}, peak === null ? "" : el("button", { class: "link", type: "button", onclick: () => setZoom(stretches[peak].from - 2 * length(peak), stretches[peak].to + 2 * length(peak)) }, when)));
    }));
  };
  const under = (event) => {
    const box = canvas.getBoundingClientRect();
    const left = gutter(box.width);
    const x = event.clientX - box.left;
    if (x < left) return null;
    const [from, to] = zoomNow();
    const when = from + ((x - left) / (box.width - left)) * (to - from);
    return stretches.findIndex((one) => when >= one.from && when < one.to);
  };
  canvas.addEventListener("pointermove", (event) => {
    const at = under(event);
    if (at === null || at < 0) return tip(null, null);
    const one = stretches[at];
    tip(event, [el("b", {}, `${instant(one.from)}, ${duration(one.to - one.from)}`), ...lines.map((line) => el("span", {}, `${hostWords(line)}: ${inPercent(line.shares[at])}`))]);
  });
  canvas.addEventListener("pointerleave", () => tip(null, null));
  canvas.addEventListener("keydown", (event) => {
    if (!AXIS_KEYS[event.key]) return;
    AXIS_KEYS[event.key]();
    event.preventDefault();
  });
  section("machine", el("div", { class: "card" },
    card("The machine meanwhile", null, range),
    el("div", { class: "canvas-box" }, canvas),
    el("p", { class: "aside", id: "machine-help" }, "Of the whole machine, by the kernel's own counters; each strip is 0 to 100 %. + and − zoom, arrow keys move, as on the time line."),
    el("details", {}, el("summary", {}, "The machine as a table"), el("div", { class: "scroll" }, el("table", { class: "machine" },
      el("thead", {}, el("tr", {}, ["of what is in sight", "mean", "greatest", "when that was"].map((head, at) => el("th", { scope: "col", class: at === 1 || at === 2 ? "number" : null }, head)))), body)))));
  onView((changed) => { if (changed.some((key) => ["zoom", "from", "to", "clock"].includes(key))) { draw(); tell(); } });
  onResize(draw);
  onTheme(draw);
  draw();
  tell();
};
