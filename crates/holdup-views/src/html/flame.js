// The flame graph of waits: callers above, callees below, the cause at the end; as wide as the time. Drawn on a canvas, so that
// its size is that of the picture and not that of the report.

const FRAME = 21;
const LANGUAGES = { kernel: "kernel", native: "native", java: "Java", python: "Python", javascript: "JavaScript", ruby: "Ruby", php: "PHP", perl: "Perl", other: "thread or cause" };

// One tree of all stacks; a node is a label under its parent. Paths of labels hold whatever is filtered away.
const flame = { labels: [], kinds: [], numbers: new Map(), root: null, leaves: [] };
const labelOf = (label, kind) => {
  const key = kind + "\0" + label;
  let at = flame.numbers.get(key);
  if (at === undefined) {
    at = flame.labels.length;
    flame.numbers.set(key, at);
    flame.labels.push(label);
    flame.kinds.push(kind);
  }
  return at;
};
const node = (label, parent) => ({ label, parent, depth: parent ? parent.depth + 1 : 0, children: new Map(), ns: 0, waits: [] });

const plant = () => {
  flame.root = node(labelOf("everything", "other"), null);
  flame.leaves = waits.map((wait, at) => {
    const frames = wait.asker.stack.slice(0, 200).reverse().map((frame) => [frameWords(frame), frame.language]);
    if (!frames.length) frames.push([`${wait.asker.process || "[no name]"}: no stack was taken`, "other"]);
    frames.push(...wait.kernel_stack.slice(0, 100).reverse().map((one) => [one, "kernel"]), [wait.cause, "cause"]);
    let here = flame.root;
    for (const [label, kind] of frames) {
      const number = labelOf(label, kind);
      let next = here.children.get(number);
      if (!next) here.children.set(number, (next = node(number, here)));
      here = next;
    }
    here.waits.push(at);
    return here;
  });
};
const nodeAt = (frames) => {
  let here = flame.root;
  for (const label of frames.split(".").map(Number)) here = here && here.children.get(label);
  return here || null;
};
const framesOf = (one) => {
  const labels = [];
  for (let here = one; here.parent; here = here.parent) labels.push(here.label);
  return labels.reverse().join(".");
};
// Time without a stack stands behind the time that has one.
const bare = (one) => Number(one.depth === 1 && flame.kinds[one.label] === "other");
// The waits at and below a node.
const flameWaits = (frames) => {
  const found = new Set();
  const start = nodeAt(frames);
  const open = start ? [start] : [];
  while (open.length) {
    const one = open.pop();
    one.waits.forEach((at) => found.add(at));
    open.push(...one.children.values());
  }
  return found;
};

const flameGraph = () => {
  if (!waits.length) return;
  const box = el("div", { class: "canvas-box" });
  const canvas = el("canvas", { class: "flame", tabindex: "0", role: "img", "aria-describedby": "flame-help" });
  const crumbs = el("div", { class: "crumbs row" });
  const list = el("tbody", {});
  const sum = el("span", { class: "aside" });
  const find = el("input", { type: "search", placeholder: "Find a function", "aria-label": "Find in the flame graph", maxlength: "200", oninput: (event) => look({ q: event.target.value }) });
  const choice = (label, key, options) => el("select", { "aria-label": label, onchange: (event) => look({ [key]: event.target.value, ...(key === "what" ? {} : { frames: "", wait: "" }) }) },
    options.map(([value, words_]) => el("option", { value }, words_)));
  const what = choice("Which time", "what", [["", "time waited"], ["running", "waited and running"], ["all", "everything, idle too"]]);
  const cause = choice("Cause", "cause", [["", "every cause"], ...[...new Set(waits.map((wait) => wait.cause))].sort().map((one) => [one, one])]);
  const thread = choice("Thread", "thread", [["", "every thread"], ...threads.slice(0, 500).map((one, at) => [String(at), brief(threadWords(one), 50)])]);
  const colour = el("button", { class: "button", type: "button", "aria-pressed": "false", onclick: () => look({ colour: view.colour ? "" : "cause" }) }, "Colour by cause");
  let rows = [];
  let top = flame.root;
  let focus = null;
  let total = 0;

  const counts = (at) => chosenButFrames(at) && (view.what === "all" || ((view.what === "running" || !onCpu(waits[at].cause)) && waits[at].cause !== "idle"));
  // The picture keeps what is beside the chosen frame; everything else narrows it.
  const chosenButFrames = (at) => (view.frames ? beside(at) : chosen[at]);
  const beside = (at) => (view.wait === "" || Number(view.wait) === at) && (!view.cause || waits[at].cause === view.cause) && (view.thread === "" || threadOf[at] === Number(view.thread)) &&
    (!view.tile || entryOf(view.tile).waits.includes(at)) && (!within || within[at] > 0);

  const weigh = () => {
    const clear = [flame.root];
    while (clear.length) {
      const one = clear.pop();
      one.ns = 0;
      clear.push(...one.children.values());
    }
    total = 0;
    for (let at = 0; at < waits.length; at++) {
      if (!counts(at)) continue;
      const ns = weightOf(at);
      total += ns;
      for (let here = flame.leaves[at]; here; here = here.parent) here.ns += ns;
    }
    top = (view.frames && nodeAt(view.frames)) || flame.root;
    if (!top.ns) top = flame.root;
  };
  // Boxes of the picture, wide enough to be seen, with those that lead to its top.
  const layout = (width) => {
    rows = [];
    const above = [];
    for (let here = top; here; here = here.parent) above.unshift(here);
    above.forEach((one, depth) => rows.push({ one, x: 0, w: width, depth, above: one !== top }));
    const place = (one, x, w, depth) => {
      let left = x;
      for (const child of [...one.children.values()].filter((next) => next.ns > 0).sort((a, b) => bare(a) - bare(b) || b.ns - a.ns)) {
        const wide = (w * child.ns) / one.ns;
        if (wide >= 0.6) {
          rows.push({ one: child, x: left, w: wide, depth, above: false });
          place(child, left, wide, depth + 1);
        }
        left += wide;
      }
    };
    if (top.ns) place(top, 0, width, above.length);
  };
  const words_ = (one) => (flame.kinds[one.label] === "cause" ? phrase(flame.labels[one.label]) : flame.labels[one.label]);
  const hit = (label) => view.q && flame.labels[label].toLowerCase().includes(view.q.toLowerCase());
  // Of all time below a node what most is, for colours by cause.
  const mostly = (one) => {
    const sums = new Map();
    const open = [one];
    for (let guard = 0; open.length && guard < 3000; guard++) {
      const next = open.pop();
      if (flame.kinds[next.label] === "cause") sums.set(flame.labels[next.label], (sums.get(flame.labels[next.label]) || 0) + next.ns);
      open.push(...next.children.values());
    }
    return [...sums].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "unknown";
  };
  const paint = () => {
    const width = box.clientWidth;
    if (!width) return;
    layout(width);
    const depth = Math.max(1, ...rows.map((row) => row.depth + 1));
    const height = depth * FRAME + 2;
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.min(Math.round(height * scale), 16000);
    canvas.style.height = height + "px";
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12.5px " + computed("--sans");
    pen.textBaseline = "middle";
    const ink = { dark: computed("--ink"), gap: computed("--card") };
    const colours = {};
    for (const kind of ["kernel", "native", "java", "python", "javascript", "ruby", "php", "perl", "other"]) colours[kind] = computed("--l-" + kind);
    const groups = GROUPS.map(([id]) => computed("--g-" + id));
    for (const row of rows) {
      const kind = flame.kinds[row.one.label];
      const shade = kind === "cause" ? groups[groupOf(flame.labels[row.one.label])] : view.colour ? groups[groupOf(mostly(row.one))] : colours[kind] || colours.other;
      const faded = row.above || (view.q && !hit(row.one.label));
      pen.globalAlpha = faded ? 0.38 : 1;
      pen.fillStyle = shade;
      const y = row.depth * FRAME;
      const w = Math.max(row.w - 1, 0.6);
      pen.fillRect(row.x, y, w, FRAME - 1);
      pen.globalAlpha = faded ? 0.75 : 1;
      if (focus === row.one) {
        pen.strokeStyle = ink.dark;
        pen.lineWidth = 2;
        pen.strokeRect(row.x + 1, y + 1, w - 2, FRAME - 3);
      }
      if (row.w > 26) {
        const solid = kind === "cause" || view.colour;
        pen.fillStyle = solid ? inkOn(shade) : ink.dark;
        const room = row.w - 10;
        const label = brief(words_(row.one), Math.max(2, Math.floor(room / 6.3)));
        pen.save();
        pen.beginPath();
        pen.rect(row.x, y, row.w - 3, FRAME);
        pen.clip();
        pen.fillText(label, row.x + 5, y + FRAME / 2);
        pen.restore();
      }
      pen.globalAlpha = 1;
    }
    canvas.setAttribute("aria-label", `Flame graph of ${duration(total)}. ${rows.length} frames; the table below lists the largest.`);
  };
  const tell = () => {
    sum.textContent = `${duration(total)} in ${counted(waits.filter((_, at) => counts(at)).length, "row", "rows")}` + (within ? ", of this window what was told one by one" : "");
    const trail_ = [];
    for (let here = top; here; here = here.parent) trail_.unshift(here);
    fill(crumbs, trail_.length > 1 ? [el("button", { class: "button small", type: "button", onclick: () => look({ frames: "" }) }, "Whole graph"),
      el("span", { class: "aside" }, "› ", name(words_(top), 80), `, ${percent(top.ns, total)}`)] : null);
    const sums = new Map();
    const open = [...flame.root.children.values()];
    while (open.length) {
      const one = open.pop();
      if (!one.ns) continue;
      let again = false;
      for (let here = one.parent; here; here = here.parent) if (here.label === one.label) again = true;
      const have = sums.get(one.label) || { ns: 0, one };
      if (!again) have.ns += one.ns;
      if (one.ns > have.one.ns) have.one = one;
      sums.set(one.label, have);
      open.push(...one.children.values());
    }
    const best = [...sums].filter(([label]) => !view.q || hit(label)).sort((a, b) => b[1].ns - a[1].ns).slice(0, 40);
    fill(list, best.map(([label, have]) => el("tr", {}, el("td", {}, el("button", { class: "link", type: "button", onclick: () => look({ frames: framesOf(have.one) }, true) }, name(words_(have.one), 90, "any mono"))),
      el("td", {}, LANGUAGES[flame.kinds[label]] || "cause"), el("td", { class: "number" }, percent(have.ns, total)), el("td", { class: "number" }, duration(have.ns)))));
  };
  const draw = () => { weigh(); paint(); tell(); };
  const at = (event) => {
    const place = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - place.left, event.clientY - place.top];
    return rows.find((row) => x >= row.x && x < row.x + row.w && Math.floor(y / FRAME) === row.depth) || null;
  };
  const zoom = (one) => {
    focus = null;
    look({ frames: one.parent ? framesOf(one) : "", wait: "", one: "" }, true);
    say(one.parent ? `Zoomed to ${words_(one)}` : "The whole graph");
  };
  const tipOf = (row) => [el("b", {}, brief(words_(row.one), 200)), el("span", {}, `${LANGUAGES[flame.kinds[row.one.label]] || flame.labels[row.one.label]} · ${duration(row.one.ns)} · ${percent(row.one.ns, total)}`)];
  canvas.addEventListener("mousemove", (event) => { const row = at(event); tip(event, row ? tipOf(row) : null); canvas.style.cursor = row ? "pointer" : "default"; });
  canvas.addEventListener("mouseleave", () => tip(null, null));
  canvas.addEventListener("click", (event) => { const row = at(event); if (row) zoom(row.one); });
  canvas.addEventListener("keydown", (event) => {
    const here = rows.find((row) => row.one === focus) || rows.find((row) => row.one === top);
    if (!here) return;
    const same = rows.filter((row) => row.depth === here.depth).sort((a, b) => a.x - b.x);
    const beside_ = (step) => same[same.indexOf(here) + step];
    const next = { ArrowDown: rows.find((row) => row.depth === here.depth + 1 && row.x >= here.x - 0.5 && row.x < here.x + here.w), ArrowUp: rows.find((row) => row.one === here.one.parent),
      ArrowLeft: beside_(-1), ArrowRight: beside_(1) }[event.key];
    if (next) {
      focus = next.one;
      paint();
      say(`${words_(focus)}, ${percent(focus.ns, total)}`);
    } else if (event.key === "Enter") zoom(focus || top);
    else if (event.key === "Escape" && view.frames) { look({ frames: "" }); event.stopPropagation(); }
    else if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
  });
  box.append(canvas);
  const swatches = Object.entries(LANGUAGES).filter(([id]) => id === "other" || flame.kinds.includes(id)).map(([id, words__]) => {
    const one = el("i", { class: "swatch" });
    one.style.backgroundColor = `var(--l-${id})`;
    return el("li", {}, one, words__);
  });
  section("flame", el("div", { class: "card" },
    card("Who asked: flame graph of waits", null, sum),
    el("div", { class: "row tools-row" }, what, cause, thread, find, colour),
    crumbs, box, el("ul", { class: "legend" }, swatches),
    el("p", { class: "aside", id: "flame-help" }, "Callers above, callees below, the cause last; as wide as the time. A click zooms in and selects the same waits everywhere; arrow keys and Enter do so, too."),
    el("details", {}, el("summary", {}, "The same as a table"), el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["function", "kind", "share", "time"].map((head, index) => el("th", { scope: "col", class: index > 1 ? "number" : null }, head)))), list)))));
  const sync = () => {
    what.value = view.what;
    cause.value = view.cause;
    thread.value = view.thread;
    if (thread.value !== view.thread) thread.value = "";
    colour.setAttribute("aria-pressed", String(Boolean(view.colour)));
    if (document.activeElement !== find) find.value = view.q;
  };
  onView((changed) => {
    if (changed.some((key) => !["clock", "sort", "zoom", "one"].includes(key))) draw();
    sync();
  });
  onResize(paint);
  onTheme(paint);
  sync();
  draw();
};
