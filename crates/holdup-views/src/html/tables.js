// Waits and threads as tables: sorted, filtered, a page of rows at a time, so that the document stays small.

// Rows shown at first, and with each further press.
const ROWS = 60;

const COLUMNS = [
  ["cause", "waited for", (at) => phrase(waits[at].cause), false],
  ["ns", "time", (at) => weightOf(at), true],
  ["share", "share", (at) => weightOf(at), true],
  ["count", "times", (at) => waits[at].count, true],
  ["max_ns", "longest", (at) => waits[at].max_ns, true],
  ["p99_ns", "99 %", (at) => waits[at].p99_ns, true],
  ["thread", "thread", (at) => waits[at].asker.process + "\0" + waits[at].asker.thread, false],
  ["resource", "on", (at) => waits[at].resource.name, false],
  ["asker", "asked by", (at) => waits[at].asker.frame || "", false],
];
// What changes the rows.
const FILTERS = ["cause", "thread", "tile", "frames", "from", "to", "q", "sort"];
const DEFAULT_SORT = "-ns";

// Of a window only what lies in it counts.
const weightOf = (at) => (within ? within[at] : waits[at].ns);

const found = waits.map(() => null);
const wordsOf = (at) => {
  const wait = waits[at];
  found[at] ??= [wait.cause, phrase(wait.cause), wait.call, wait.resource.name, wait.asker.process, wait.asker.thread, wait.asker.frame, wait.asker.module,
    wait.held_by && wait.held_by.process, wait.held_by && wait.held_by.thread, ...wait.asker.stack.map((frame) => frame.symbol)]
    .filter(Boolean).join("\n").toLowerCase().slice(0, 20000);
  return found[at];
};
const matches = (at) => !view.q || wordsOf(at).includes(view.q.toLowerCase());

const sorted = () => {
  const key = view.sort || DEFAULT_SORT;
  const down = key[0] === "-";
  const column = COLUMNS.find(([id]) => id === key.replace("-", "")) || COLUMNS[1];
  const list = [];
  for (let at = 0; at < waits.length; at++) if (listed[at] && matches(at)) list.push(at);
  const of = new Map(list.map((at) => [at, column[2](at)]));
  const compare = column[3] ? (a, b) => of.get(a) - of.get(b) : (a, b) => (of.get(a) < of.get(b) ? -1 : Number(of.get(a) > of.get(b)));
  // Waiting for work is shown, and nobody's answer.
  const last = (at) => Number(!view.sort && ofThreads && waits[at].cause === "idle");
  return list.sort((a, b) => last(a) - last(b) || (down ? -1 : 1) * compare(a, b) || a - b);
};

let order = [];
let shown = ROWS;

const waitRow = (at) => {
  const wait = waits[at];
  const most = order.length ? Math.max(...order.slice(0, 400).map(weightOf), 1) : 1;
  const share = el("i", {});
  share.style.width = Math.max(1, Math.min(100, (weightOf(at) / most) * 100)) + "%";
  share.style.backgroundColor = groupColour(wait.cause);
  const whole = report.coverage.observed_ns || waits.reduce((sum, one) => sum + one.ns, 0);
  const row = el("tr", { tabindex: "-1", "data-wait": at, "aria-selected": String(view.wait === String(at)) },
    el("td", { class: "cause" }, swatch(wait.cause), el("span", {}, phrase(wait.cause)), el("div", { class: "id" }, wait.cause)),
    el("td", { class: "number" }, (wait.open ? "≥" : "") + duration(weightOf(at)), el("div", { class: "meter" }, share)),
    el("td", { class: "number" }, percent(weightOf(at), whole)),
    el("td", { class: "number" }, wait.count.toLocaleString("en")),
    el("td", { class: "number" }, onCpu(wait.cause) && !wait.max_ns ? "" : duration(wait.max_ns)),
    el("td", { class: "number" }, wait.p99_ns ? duration(wait.p99_ns) : ""),
    el("td", {}, name(threadWords(wait.asker), 60), wait.held_by ? el("div", { class: "aside" }, "blocker: ", name(threadWords(wait.held_by), 50)) : null),
    el("td", {}, name(wait.resource.name, 48), wait.call ? el("div", { class: "id" }, brief(wait.call, 30)) : null),
    el("td", {}, wait.asker.frame ? name(wait.asker.frame, 48, "any mono") : null, wait.asker.module ? el("div", { class: "id" }, brief(wait.asker.module, 40)) : null));
  return row;
};

const waitsTable = () => {
  if (!waits.length) return;
  const heads = el("tr", {}, COLUMNS.map(([id, head, , number]) =>
    el("th", { scope: "col", class: number ? "number" : null, "data-sort": id },
      el("button", { type: "button", onclick: () => look({ sort: (view.sort || DEFAULT_SORT) === "-" + id ? id : "-" + id }) }, head))));
  const body = el("tbody", {});
  const count = el("span", { class: "aside" });
  const next = el("button", { class: "button", type: "button", onclick: () => { shown += ROWS * 3; draw(); } });
  const find = el("input", { type: "search", id: "find", placeholder: "Find a name, a function, a file", "aria-label": "Find in waits", maxlength: "200",
    oninput: (event) => look({ q: event.target.value }) });
  const draw = () => {
    order = sorted();
    count.textContent = order.length === waits.length ? counted(waits.length, "row", "rows") : `${order.length.toLocaleString("en")} of ${counted(waits.length, "row", "rows")}`;
    fill(body, order.slice(0, shown).map(waitRow));
    if (!order.length) body.append(el("tr", {}, el("td", { colspan: COLUMNS.length, class: "aside" }, "No wait fits what is chosen and searched for.")));
    const entry = body.querySelector('[aria-selected="true"]') || body.firstElementChild;
    if (entry) entry.tabIndex = 0;
    next.hidden = order.length <= shown;
    next.textContent = `Show ${Math.min(ROWS * 3, order.length - shown)} more`;
    for (const head of heads.children) {
      const sort = view.sort || DEFAULT_SORT;
      head.setAttribute("aria-sort", sort === "-" + head.dataset.sort ? "descending" : sort === head.dataset.sort ? "ascending" : "none");
    }
  };
  const rowOf = (event) => event.target.closest("tr[data-wait]");
  body.addEventListener("click", (event) => {
    const row = rowOf(event);
    if (row && !String(getSelection())) pickWait(Number(row.dataset.wait));
  });
  body.addEventListener("keydown", (event) => {
    const row = rowOf(event);
    if (!row) return;
    const step = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling, Home: body.firstElementChild, End: body.lastElementChild }[event.key];
    if (step) {
      row.tabIndex = -1;
      step.tabIndex = 0;
      step.focus();
      event.preventDefault();
    } else if (event.key === "Enter" || event.key === " ") {
      pickWait(Number(row.dataset.wait));
      event.preventDefault();
    }
  });
  section("waits", el("div", { class: "card" },
    card("Waits", null, count, find),
    el("div", { class: "scroll" }, el("table", { class: "waits", "aria-label": "Waits and running time by thread, what was waited for and who asked" }, el("thead", {}, heads), body)),
    el("p", { class: "row" }, next)));
  onView((changed) => {
    if (changed.some((key) => FILTERS.includes(key))) {
      if (!changed.every((key) => key === "sort")) shown = ROWS;
      draw();
    }
    for (const row of body.children) row.setAttribute("aria-selected", String(row.dataset.wait === view.wait));
    if (find.value !== view.q && document.activeElement !== find) find.value = view.q;
  });
  draw();
};

const threadsTable = () => {
  if (!threads.length) return;
  let most = ROWS;
  const body = el("tbody", {});
  const next = el("button", { class: "button", type: "button", onclick: () => { most += ROWS * 3; draw(); } });
  const row = (at) => {
    const one = threads[at];
    const pick = () => look(view.thread === String(at) ? { ...NOTHING } : { ...NOTHING, thread: String(at) }, true);
    const first = one.causes[0];
    return el("tr", { "data-thread": at, "aria-selected": String(view.thread === String(at)) },
      el("td", {}, el("button", { class: "link", type: "button", onclick: pick }, name(threadWords(one), 70))),
      el("td", { class: "number" }, one.pid || ""), el("td", { class: "number" }, one.tid || ""),
      el("td", { class: "number" }, (one.open && !ofThreads ? "≥" : "") + duration(one.wall_ns)),
      el("td", { class: "mix" }, one.wall_ns ? bar(one.causes.slice(0, 12), one.wall_ns, null, "Time") : null),
      el("td", {}, first ? [`${percent(first.ns, one.wall_ns)} `, phrase(first.cause)] : null));
  };
  const draw = () => {
    fill(body, threads.slice(0, most).map((one, at) => row(at)));
    next.hidden = threads.length <= most;
    next.textContent = `Show ${Math.min(ROWS * 3, threads.length - most)} more`;
  };
  section("threads", el("div", { class: "card" },
    card("Threads", counted(threads.reduce((sum, one) => sum + one.threads, 0), "thread", "threads") + ", each one's own time"),
    el("div", { class: "scroll" }, el("table", { class: "threads" }, el("thead", {}, el("tr", {},
      el("th", { scope: "col" }, "name"), el("th", { scope: "col", class: "number" }, "process"), el("th", { scope: "col", class: "number" }, "thread"),
      el("th", { scope: "col", class: "number" }, "lifetime"), el("th", { scope: "col" }, "causes"), el("th", { scope: "col" }, "mostly"))), body)),
    el("p", { class: "row" }, next)));
  onView((changed) => {
    if (changed.includes("thread")) for (const one of body.children) one.setAttribute("aria-selected", String(one.dataset.thread === view.thread));
  });
  draw();
};
