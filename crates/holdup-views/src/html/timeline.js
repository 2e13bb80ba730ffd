// When the time passed: windows above, each thread in a row below. Far out a pixel shows the mix of causes, near every piece.
// Pieces lie in typed arrays, and only rows in sight are drawn.

const ROW = 21;
const GUTTER = 196;
const PIECE = 15;
// The shortest stretch that fills the picture, and the tallest picture, in nanoseconds and pixels.
const NEAREST = 2000;
const TALLEST = 21 * 20;

// Pieces as columns, whichever way they came.
const pieces = (() => {
  const raw = report.timeline && report.timeline.pieces;
  if (!raw) return null;
  const list = Array.isArray(raw) ? raw : null;
  const columns = list ? null : raw;
  const count = list ? list.length : (columns.start_ns || []).length;
  if (!count && !(report.windows || []).length) return null;
  const get = (key) => (list ? list.map((one) => one[key]) : columns[key] || []);
  const number = (value) => (typeof value === "number" ? value : -1);
  const tasks = (report.timeline.tasks || []).map((one) => ({ ...one.name, row: one.thread ?? -1 }));
  const task = Int32Array.from(get("task"), number);
  const told_ = { count, task, start: Float64Array.from(get("start_ns"), Number), ns: Float64Array.from(get("ns"), Number), wait: Int32Array.from(get("wait"), number),
    cause: get("cause"), ended: get("ended_by"), before: get("before_ns"), open: get("open"), tasks };
  told_.group = Uint8Array.from(told_.cause, groupOf);
  told_.thread = Int32Array.from(task, (at) => (tasks[at] ? tasks[at].row : -1));
  return told_;
})();
const windows = (report.windows || []).map((one) => ({ ...one, causes: Object.entries(one.causes).map(([cause, ns]) => ({ cause, ns })) }));
const span = () => windows.reduce((most, one) => Math.max(most, one.from_ns + one.ns), pieces ? pieces.start.reduce((most, from, at) => Math.max(most, from + pieces.ns[at]), 0) : 0);

// How much of each wait lies in a stretch of time, of what is told one by one.
const inWindow = ([from, to]) => {
  const sums = new Float64Array(waits.length);
  if (!pieces) return sums;
  for (let at = 0; at < pieces.count; at++) {
    if (pieces.wait[at] < 0) continue;
    const ns = Math.min(to, pieces.start[at] + pieces.ns[at]) - Math.max(from, pieces.start[at]);
    if (ns > 0) sums[pieces.wait[at]] += ns;
  }
  return sums;
};

const ENDED = { timer: "its timeout", device: "a device", interrupt: "an interrupt", unknown: "unknown" };
const enderOf = (at) => (pieces.ended[at] && typeof pieces.ended[at] === "object" ? pieces.tasks[pieces.ended[at].task] : null);
const enderWords = (at) => {
  const ended = pieces.ended[at];
  const task = enderOf(at);
  return task ? threadWords(task) : ENDED[ended] || (pieces.open[at] ? "not ended: still waiting" : null);
};
// Facts of one piece, for the drawer.
const singleWords = (at) => {
  if (!pieces || at >= pieces.count) return null;
  const ender = enderOf(at);
  const words_ = enderWords(at);
  const row = ender && ender.row >= 0 ? ender.row : null;
  const ended = row !== null && threads[row] ? el("button", { class: "link", type: "button", onclick: () => stepToTask(at) }, words_) : words_;
  return [el("dt", {}, "This one"), el("dd", {}, `${pieces.open[at] ? "≥" : ""}${duration(pieces.ns[at] + (pieces.before[at] || 0))}, from ${pieces.before[at] ? "before observation" : instant(pieces.start[at])}`),
    words_ ? [el("dt", {}, "Ended by"), el("dd", {}, ended)] : null];
};
// What the one that ended a piece was at in that instant.
const pieceOf = (task, when) => {
  let best = null;
  for (let at = 0; at < pieces.count; at++) {
    if (pieces.task[at] !== task || pieces.start[at] > when) continue;
    if (best === null || pieces.start[at] > pieces.start[best]) best = at;
  }
  return best;
};
const pickPiece = (at) => {
  const wait = pieces.wait[at] >= 0 ? pieces.wait[at] : waitOf(pieces.tasks[pieces.task[at]].pid, pieces.tasks[pieces.task[at]].tid, pieces.cause[at], -1);
  if (wait === null || wait >= waits.length) {
    say("It is not known which wait this piece belongs to.");
    return;
  }
  look({ wait: String(wait), one: String(at) }, true);
};
const stepToTask = (at) => {
  const next = pieceOf(pieces.ended[at].task, pieces.start[at] + pieces.ns[at]);
  if (next === null) {
    say("That thread has no single waits in this list.");
    return;
  }
  trail.push(view.wait);
  pickPiece(next);
};

const timeline = () => {
  if (!pieces) return;
  const whole = axisSpan();
  // Pieces of a row, in order; rows with the most of anything but idleness first.
  const busy = (cause) => Number(cause !== "idle");
  const perRow = new Map();
  const rowFor = (thread) => perRow.get(thread) || perRow.set(thread, { thread, pieces: [], rest: [], sum: 0 }).get(thread);
  for (let at = 0; at < pieces.count; at++) if (pieces.thread[at] >= 0 && threads[pieces.thread[at]]) { const row = rowFor(pieces.thread[at]); row.pieces.push(at); row.sum += busy(pieces.cause[at]) * pieces.ns[at]; }
  for (const one of report.timeline.rest || []) if (threads[one.thread]) { const row = rowFor(one.thread); row.rest.push(one); row.sum += busy(one.cause) * one.ns.reduce((sum, ns) => sum + ns, 0); }
  const allRows = [...perRow.values()].sort((a, b) => b.sum - a.sum || a.thread - b.thread);
  let rows = allRows;
  const scroller = el("div", { class: "timeline-scroll", tabindex: "-1" });
  const spacer = el("div", {});
  const canvas = el("canvas", { class: "lanes", tabindex: "0", role: "img", "aria-describedby": "timeline-help" });
  const overview = el("canvas", { class: "overview", tabindex: "0", role: "img", "aria-label": "Causes over time; drag, or press the arrow keys, to choose a window" });
  const range = el("span", { class: "aside" });
  const list = el("tbody", {});
  scroller.append(canvas, spacer);
  const colours = () => GROUPS.map(([id]) => computed("--g-" + id));

  const RESTING = GROUPS.findIndex(([id]) => id === "rest");
  // The mix of causes in each pixel of a row; slots of a pixel: chosen groups, then the others.
  const slots = GROUPS.length * 2;
  const mixOf = (row, from, to, width) => {
    const mix = new Float32Array(width * slots);
    const per = (to - from) / width;
    const add = (start, end, amount, slot) => {
      const first = Math.max(0, Math.floor((start - from) / per));
      const last = Math.min(width - 1, Math.floor((end - from) / per));
      for (let x = first; x <= last; x++) {
        const part = Math.min(end, from + (x + 1) * per) - Math.max(start, from + x * per);
        if (part > 0) mix[x * slots + slot] += part * amount;
      }
    };
    for (const at of row.pieces) {
      const end = pieces.start[at] + pieces.ns[at];
      if (end < from || pieces.start[at] > to) continue;
      const on = !narrowed || (pieces.wait[at] >= 0 ? chosen[pieces.wait[at]] : restChosen(row.thread, pieces.cause[at]));
      add(pieces.start[at], end, 1, pieces.group[at] + (on ? 0 : GROUPS.length));
    }
    for (const one of row.rest) {
      const group = groupOf(one.cause) + (!narrowed || restChosen(row.thread, one.cause) ? 0 : GROUPS.length);
      one.ns.forEach((ns, index) => {
        const window = windows[one.first + index];
        if (window && ns && window.from_ns < to && window.from_ns + window.ns > from) add(window.from_ns, window.from_ns + window.ns, ns / window.ns, group);
      });
    }
    return [mix, per];
  };
  const restChosen = (thread, cause) => view.wait === "" && !view.tile && !view.frames && (!view.cause || view.cause === cause) && (view.thread === "" || Number(view.thread) === thread);

  const drawOverview = () => {
    const high = 58;
    const [pen, width] = prepare(overview, high + 18);
    const left = gutter(width);
    const shades = colours();
    // Whoever waits for work is left out here, lest it hide the others.
    const idle = ofThreads ? "idle" : "";
    const most = Math.max(1e-9, ...windows.map((one) => one.causes.reduce((sum, part) => sum + (part.cause !== idle) * part.ns, 0) / one.ns));
    const [from, to] = [0, whole];
    for (const one of windows) {
      const x = left + (one.from_ns / whole) * (width - left);
      const w = Math.max(1, (one.ns / whole) * (width - left) - 0.5);
      let y = high;
      const groups = new Float64Array(GROUPS.length);
      for (const part of one.causes) if (part.cause !== idle) groups[groupOf(part.cause)] += part.ns;
      groups.forEach((ns, group) => {
        const h = (ns / one.ns / most) * high;
        pen.fillStyle = shades[group];
        pen.fillRect(x, y - h, w, h);
        y -= h;
      });
    }
    const answered = windows.map((one) => one.requests || 0);
    const peak = Math.max(...answered, 0);
    if (peak > 0) {
      pen.strokeStyle = computed("--ink");
      pen.lineWidth = 1.5;
      pen.beginPath();
      windows.forEach((one, at) => {
        const x = left + ((one.from_ns + one.ns / 2) / whole) * (width - left);
        const y = high - (answered[at] / peak) * (high - 4);
        if (at) pen.lineTo(x, y); else pen.moveTo(x, y);
      });
      pen.stroke();
    }
    pen.fillStyle = computed("--ink-2");
    pen.fillText("all threads", 0, 12);
    if (idle && left > 150) pen.fillText("without idle time", 0, 28);
    if (peak > 0 && left > 150) pen.fillText("line: requests answered", 0, 44);
    ticks(pen, from, to, left, width, high + 2);
    const frame = (a, b, colour) => {
      const x = left + (a / whole) * (width - left);
      const w = Math.max(2, ((b - a) / whole) * (width - left));
      pen.strokeStyle = colour;
      pen.lineWidth = 2;
      pen.strokeRect(x + 1, 1, Math.max(1, w - 2), high - 2);
    };
    if (view.zoom) frame(...zoomNow(), computed("--ink-3"));
    if (view.from !== "") frame(Number(view.from), Number(view.to), computed("--pick"));
  };

  const visible = () => Math.min(rows.length, Math.ceil(scroller.clientHeight / ROW) + 1);
  const drawLanes = () => {
    const high = Math.min(TALLEST, rows.length * ROW) + 22;
    scroller.style.height = high + "px";
    spacer.style.height = Math.max(0, rows.length * ROW + 22 - high) + "px";
    const [pen, width] = prepare(canvas, high);
    const left = gutter(width);
    const [from, to] = zoomNow();
    const shades = colours();
    const ink = computed("--ink");
    const soft = computed("--sunk");
    const first = Math.floor(scroller.scrollTop / ROW);
    const offset = scroller.scrollTop % ROW;
    pen.save();
    pen.beginPath();
    pen.rect(0, 0, width, high - 20);
    pen.clip();
    for (let index = first; index < Math.min(rows.length, first + Math.ceil(high / ROW) + 1); index++) {
      const row = rows[index];
      const y = (index - first) * ROW - offset + 2;
      const wide = Math.max(1, Math.floor(width - left));
      const [mix, per] = mixOf(row, from, to, wide);
      const room = per * (threads[row.thread].threads || 1);
      pen.fillStyle = soft;
      pen.fillRect(left, y, wide, PIECE);
      let runFrom = 0;
      let run = "";
      const flush = (until) => {
        if (!run) return;
        let top = 0;
        for (const part of run.split(",")) {
          const [slot, h] = part.split(":").map(Number);
          pen.globalAlpha = slot < GROUPS.length ? (slot === RESTING ? 0.45 : 1) : 0.2;
          pen.fillStyle = shades[slot % GROUPS.length];
          pen.fillRect(left + runFrom, y + top, until - runFrom, h);
          top += h;
        }
        pen.globalAlpha = 1;
      };
      for (let x = 0; x <= wide; x++) {
        let key = "";
        if (x < wide) {
          let sum = 0;
          for (let slot = 0; slot < slots; slot++) sum += mix[x * slots + slot];
          const scale = PIECE / Math.max(room, sum);
          for (let slot = 0; slot < slots; slot++) {
            const h = Math.round(mix[x * slots + slot] * scale * 2) / 2;
            if (h > 0) key += (key ? "," : "") + slot + ":" + h;
          }
        }
        if (key !== run) { flush(x); run = key; runFrom = x; }
      }
      // Words in pieces that have room for some, and a frame around the one that is picked.
      for (const at of row.pieces) {
        const x0 = left + ((pieces.start[at] - from) / (to - from)) * wide;
        const x1 = left + ((pieces.start[at] + pieces.ns[at] - from) / (to - from)) * wide;
        if (x1 < left || x0 > width) continue;
        const [a, b] = [Math.max(left, x0), Math.min(width, x1)];
        if (b - a > 64 && threads[row.thread].threads === 1) {
          pen.fillStyle = inkOn(shades[pieces.group[at]]);
          pen.fillText(brief(pieces.cause[at], Math.floor((b - a - 8) / 6.4)), a + 5, y + PIECE / 2 + 0.5);
        }
        if (view.one === String(at)) {
          pen.strokeStyle = ink;
          pen.lineWidth = 2;
          pen.strokeRect(a, y - 1, Math.max(3, b - a), PIECE + 2);
          const ender = enderOf(at);
          const there = ender ? rows.findIndex((one) => one.thread === ender.row) : -1;
          if (there >= 0 && there !== index) {
            const y2 = (there - first) * ROW - offset + 2 + PIECE / 2;
            pen.beginPath();
            pen.moveTo(b, y + PIECE / 2);
            pen.lineTo(b, y2);
            pen.stroke();
            pen.beginPath();
            pen.arc(b, y2, 4, 0, 7);
            pen.fillStyle = ink;
            pen.fill();
          }
        }
      }
      pen.fillStyle = view.thread === String(row.thread) ? computed("--pick") : computed("--ink-2");
      pen.fillText(brief(threadWords(threads[row.thread], 18), Math.floor((left - 10) / 6.6)), 0, y + PIECE / 2 + 0.5);
    }
    pen.restore();
    ticks(pen, from, to, left, width, high - 18);
    range.textContent = `${counted(rows.length, "row", "rows")}, ${duration(Math.round(to - from))} in sight`;
    canvas.setAttribute("aria-label", `Time line of ${counted(rows.length, "thread", "threads")} over ${duration(Math.round(to - from))}; the table below lists the longest waits.`);
  };
  const tell = () => {
    const [from, to] = zoomNow();
    const best = [];
    for (let at = 0; at < pieces.count; at++) {
      if (onCpu(pieces.cause[at]) || pieces.start[at] > to || pieces.start[at] + pieces.ns[at] < from) continue;
      if (narrowed && !(pieces.wait[at] >= 0 && chosen[pieces.wait[at]])) continue;
      best.push(at);
    }
    best.sort((a, b) => pieces.ns[b] - pieces.ns[a]);
    fill(list, best.slice(0, 40).map((at) => el("tr", {}, el("td", {}, el("button", { class: "link", type: "button", onclick: () => pickPiece(at) }, swatch(pieces.cause[at]), phrase(pieces.cause[at]))),
      el("td", { class: "number" }, duration(pieces.ns[at])), el("td", { class: "number" }, instant(pieces.start[at])), el("td", {}, name(threadWords(pieces.tasks[pieces.task[at]]), 50)), el("td", {}, enderWords(at) ? name(enderWords(at), 50) : ""))));
  };
  const draw = () => { drawOverview(); drawLanes(); };

  const timeAt = (event, one) => {
    const box = one.getBoundingClientRect();
    const left = gutter(box.width);
    const [from, to] = one === overview ? [0, whole] : zoomNow();
    return from + Math.max(0, Math.min(1, (event.clientX - box.left - left) / (box.width - left))) * (to - from);
  };
  const rowAt = (event) => rows[Math.floor((event.clientY - canvas.getBoundingClientRect().top + scroller.scrollTop - 2) / ROW)];
  const pieceAt = (event) => {
    const row = rowAt(event);
    if (!row || event.clientX - canvas.getBoundingClientRect().left < gutter(canvas.clientWidth)) return null;
    const when = timeAt(event, canvas);
    const [from, to] = zoomNow();
    const slack = ((to - from) / canvas.clientWidth) * 2;
    let best = null;
    for (const at of row.pieces) {
      const far = Math.max(pieces.start[at] - when, when - pieces.start[at] - pieces.ns[at]);
      if (far <= slack && (best === null || far < best[1] || (far <= 0 && pieces.ns[at] > pieces.ns[best[0]]))) best = [at, Math.max(0, far)];
    }
    return best && best[0];
  };
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, zoom: zoomNow(), moved: false }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      const far = event.clientX - drag.x;
      if (Math.abs(far) > 3) drag.moved = true;
      if (!drag.moved) return;
      const by = (-far / (canvas.clientWidth - gutter(canvas.clientWidth))) * (drag.zoom[1] - drag.zoom[0]);
      setZoom(drag.zoom[0] + by, drag.zoom[1] + by);
      return;
    }
    const at = pieceAt(event);
    const row = rowAt(event);
    const left = event.clientX - canvas.getBoundingClientRect().left < gutter(canvas.clientWidth);
    canvas.style.cursor = at !== null || left ? "pointer" : "grab";
    if (at !== null) {
      const ended = enderWords(at);
      tip(event, [el("b", {}, phrase(pieces.cause[at])), el("span", {}, `${duration(pieces.ns[at])} from ${instant(pieces.start[at])}`), el("span", {}, brief(threadWords(threads[pieces.thread[at]]), 60)), ended ? el("span", {}, "ended by: " + ended) : null].filter(Boolean));
    } else tip(event, row && left ? [el("b", {}, brief(threadWords(threads[row.thread]), 80))] : null);
  });
  canvas.addEventListener("pointerup", (event) => {
    const still = drag && !drag.moved;
    drag = null;
    if (!still) return;
    const at = pieceAt(event);
    const row = rowAt(event);
    if (at !== null) pickPiece(at);
    else if (row && event.clientX - canvas.getBoundingClientRect().left < gutter(canvas.clientWidth)) look(view.thread === String(row.thread) ? { thread: "" } : { ...NOTHING, thread: String(row.thread) }, true);
  });
  canvas.addEventListener("pointerleave", () => tip(null, null));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) < Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (event.ctrlKey) zoomBy(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event, canvas));
    else pan((event.deltaX || event.deltaY) / 1500);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const act = { ...AXIS_KEYS, ArrowDown: () => { scroller.scrollTop += ROW * 3; }, ArrowUp: () => { scroller.scrollTop -= ROW * 3; } }[event.key];
    if (!act) return;
    act();
    event.preventDefault();
  });
  let mark = null;
  overview.addEventListener("pointerdown", (event) => { mark = timeAt(event, overview); overview.setPointerCapture(event.pointerId); });
  overview.addEventListener("pointermove", (event) => {
    const when = timeAt(event, overview);
    if (mark !== null) {
      if (Math.abs(when - mark) > whole / 400) look({ from: String(Math.round(Math.min(mark, when))), to: String(Math.round(Math.max(mark, when))), wait: "", one: "" });
      return;
    }
    const one = windows.find((window) => when >= window.from_ns && when < window.from_ns + window.ns);
    if (!one) return tip(null, null);
    const all = one.causes.reduce((sum, part) => sum + part.ns, 0);
    tip(event, [el("b", {}, `${instant(one.from_ns)}, ${duration(one.ns)}`), ...[...one.causes].sort((a, b) => b.ns - a.ns).slice(0, 4).map((part) => el("span", {}, `${percent(part.ns, all)} ${phrase(part.cause)}`)),
      one.requests ? el("span", {}, `${counted(one.requests, "request", "requests")} answered`) : null].filter(Boolean));
  });
  overview.addEventListener("pointerup", (event) => {
    const when = timeAt(event, overview);
    if (mark !== null && Math.abs(when - mark) <= whole / 400) look({ from: "", to: "" });
    mark = null;
  });
  overview.addEventListener("pointerleave", () => tip(null, null));
  overview.addEventListener("keydown", (event) => {
    const step = whole / Math.max(10, windows.length);
    const [from, to] = view.from === "" ? [0, step] : [Number(view.from), Number(view.to)];
    const move = { ArrowRight: [step, step], ArrowLeft: [-step, -step], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
    if (!move) return;
    event.preventDefault();
    const next = view.from === "" ? [from, to] : [Math.max(0, from + move[0]), Math.min(whole, to + move[1])];
    if (next[1] - next[0] >= step * 0.9) look({ from: String(Math.round(next[0])), to: String(Math.round(next[1])), wait: "", one: "" });
  });
  scroller.addEventListener("scroll", () => requestAnimationFrame(drawLanes));
  const button = (label, title, act) => el("button", { class: "button icon", type: "button", "aria-label": title, title, onclick: act }, label);
  const left_out = report.timeline.left_out || 0;
  section("timeline", el("div", { class: "card" },
    card("Time line", null, range, el("span", { class: "row" }, button("−", "See more time", () => zoomBy(1 / 0.6)), button("+", "See less time", () => zoomBy(0.6)), button("⤢", "See all of it", () => look({ zoom: "" })),
      el("button", { class: "button", type: "button", id: "only", "aria-pressed": "false", onclick: (event) => { const on = event.currentTarget.getAttribute("aria-pressed") !== "true"; event.currentTarget.setAttribute("aria-pressed", String(on)); filterRows(on); } }, "Only rows with the chosen"))),
    el("div", { class: "canvas-box" }, overview), scroller,
    legend([...new Set(pieces.cause)]),
    el("p", { class: "aside", id: "timeline-help" }, "Drag above to choose a window. Below, drag to move, Ctrl and wheel or + and − to zoom; a click picks a wait and shows who ended it.",
      left_out ? ` ${counted(left_out, "shorter piece is", "shorter pieces are")} drawn as a mix.` : ""),
    el("details", {}, el("summary", {}, "The longest single waits as a table"), el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["waited for", "time", "from", "thread", "ended by"].map((head, at) => el("th", { scope: "col", class: at === 1 || at === 2 ? "number" : null }, head)))), list)))));
  const filterRows = (on) => {
    rows = on && narrowed ? allRows.filter((row) => row.pieces.some((at) => pieces.wait[at] >= 0 && chosen[pieces.wait[at]]) || row.rest.some((one) => restChosen(row.thread, one.cause))) : allRows;
    scroller.scrollTop = 0;
    drawLanes();
  };
  const reveal = () => {
    if (view.one === "" || Number(view.one) >= pieces.count) return;
    const at = Number(view.one);
    const index = rows.findIndex((row) => row.thread === pieces.thread[at]);
    const y = index * ROW;
    if (index >= 0 && (y < scroller.scrollTop || y > scroller.scrollTop + TALLEST - ROW)) scroller.scrollTop = Math.max(0, y - TALLEST / 2);
    const [from, to] = zoomNow();
    if (pieces.start[at] > to || pieces.start[at] + pieces.ns[at] < from) setZoom(pieces.start[at] - (to - from) / 2, pieces.start[at] + (to - from) / 2);
  };
  onView((changed) => {
    if (document.getElementById("only").getAttribute("aria-pressed") === "true" && changed.some((key) => key in NOTHING && key !== "one")) filterRows(true);
    if (changed.includes("one")) reveal();
    if (changed.some((key) => !["sort", "q", "what", "colour"].includes(key))) { draw(); tell(); }
  });
  onResize(draw);
  onTheme(draw);
  draw();
  tell();
};
