// Where the time went: one bar and its table, the time of requests beside it, and further parts that some reports have.

// The smallest part of a bar that has room for its share.
const LABELLED = 0.07;

// A bar of shares; each piece is a button, and its table says the same in words.
const bar = (pieces, whole, pick, name_) => {
  const box = el("div", { class: "stack", role: "group", "aria-label": name_ });
  for (const piece of pieces) {
    const words_ = `${phrase(piece.cause)}: ${percent(piece.ns, whole)}, ${duration(piece.ns)}`;
    const one = el(pick ? "button" : "span", { type: pick ? "button" : null, class: "piece g-" + GROUPS[groupOf(piece.cause)][0], title: words_,
      "aria-label": pick ? words_ : null, onclick: pick ? () => pick(piece) : null }, piece.ns > whole * LABELLED ? el("span", {}, percent(piece.ns, whole)) : null);
    one.style.flexGrow = String(Math.max(piece.ns / whole, 0.002));
    one.style.backgroundColor = groupColour(piece.cause);
    one.piece = piece;
    box.append(one);
  }
  return box;
};

const legend = (causes) => {
  const used = [...new Set(causes.map(groupOf))].sort((a, b) => a - b);
  return el("ul", { class: "legend", "aria-label": "Colours" }, used.map((at) => {
    const box = el("i", { class: "swatch g-" + GROUPS[at][0] });
    box.style.backgroundColor = `var(--g-${GROUPS[at][0]})`;
    return el("li", {}, box, GROUPS[at][1]);
  }));
};

const tileRow = (tile, key, whole) => {
  const [first, ...rest] = tile.rows.length ? tile.rows : [{ body: [[phrase(tile.cause), "", false]], edge: tile.cause }];
  const share = el("i", {});
  share.style.width = Math.min(100, (tile.ns / whole) * 100) + "%";
  share.style.backgroundColor = groupColour(tile.cause);
  const pick = () => look(view.tile === key ? { ...NOTHING } : { ...NOTHING, tile: key }, true);
  const row = el("div", { class: "tile" },
    el("button", { class: "pick", type: "button", "aria-pressed": "false", onclick: pick },
      el("span", { class: "share" }, tile.share), el("span", { class: "time" }, (tile.open ? "≥" : "") + tile.time),
      el("span", { class: "words" }, swatch(tile.cause), spans(first.body)), el("span", { class: "id" }, tile.cause)),
    el("div", { class: "meter", "aria-hidden": "true" }, share),
    rest.length ? el("div", { class: "rows" }, rest.map((one) => saidRow(one))) : null);
  onView(() => row.firstChild.setAttribute("aria-pressed", String(view.tile === key)));
  return row;
};

// What is too small for an entry, by cause.
const small = (rest) => {
  const few = words.tiles.length < 3;
  const shown_ = words.rest.filter((one) => one.cause !== "idle" || !ofThreads).slice(0, 8);
  const row = (one) => el("li", {}, el("button", { class: "link", type: "button", onclick: () => look(view.cause === one.cause ? { ...NOTHING } : { ...NOTHING, cause: one.cause }, true) },
    el("span", { class: "share" }, percent(one.ns, wholeNs)), el("span", { class: "time" }, duration(one.ns)), el("span", {}, swatch(one.cause), phrase(one.cause))));
  return el("details", { class: "small", open: few }, el("summary", {}, `Everything else: ${percent(rest, wholeNs)}, ${duration(rest)}, mostly ${phrase(words.rest[0].cause)}`), el("ul", {}, shown_.map(row)));
};

const path = () => {
  if (!report.causes.length || !wholeNs) return;
  const key = (kind, at) => kind + at;
  const pieces = words.tiles.map((tile, at) => ({ ...tile, key: key("t", at) }));
  const rest = words.rest.reduce((sum, one) => sum + one.ns, 0);
  const every = [...pieces, ...words.rest.map((one) => ({ cause: one.cause, ns: one.ns, key: null }))];
  // Of what runs on, most threads wait for work most of the time: that is nobody's answer, and told beside the bar.
  const idle = ofThreads ? every.filter((one) => one.cause === "idle").reduce((sum, one) => sum + one.ns, 0) : 0;
  const all = idle && idle < wholeNs ? every.filter((one) => one.cause !== "idle") : every;
  const strip = bar(all, all.reduce((sum, one) => sum + one.ns, 0), (piece) => look(piece.key ? { ...NOTHING, tile: piece.key } : { ...NOTHING, cause: piece.cause }, true), "Where the time went");
  onView(() => {
    for (const one of strip.children) {
      const on = view.tile ? one.piece.key === view.tile : view.cause ? one.piece.cause === view.cause : !narrowed || touches(one.piece);
      one.classList.toggle("off", !on);
    }
  });
  section("path",
    el("div", { class: "card" },
      card(ofThreads ? "Thread time by cause" : "Where the time went",
        idle ? `${duration(wholeNs)} of thread time; ${percent(idle, wholeNs)} of it was idle, the bar is the rest` : ofThreads ? `${duration(wholeNs)} of thread time, by cause` : `${duration(wholeNs)} from start to end, along the critical path`),
      strip, legend(all.map((one) => one.cause)),
      el("div", { class: "tiles" }, words.tiles.map((tile, at) => tileRow(tile, key("t", at), wholeNs))),
      rest ? small(rest) : null,
      words.handed_on.length ? [el("h3", { class: "gap" }, "Threads blocked by the above"),
        el("div", { class: "tiles" }, words.handed_on.map((tile, at) => tileRow(tile, key("h", at), wholeNs)))] : null,
      words.living.length ? el("div", { class: "about" }, words.living.map((row) => saidRow(row))) : null));
};
const touches = (piece) => (piece.waits ? piece.waits.some((at) => chosen[at]) : waits.some((wait, at) => chosen[at] && wait.cause === piece.cause));

const requests = () => {
  const told_ = report.requests;
  if (!told_ || (!told_.count && !told_.open)) return;
  const whole = told_.causes.reduce((sum, one) => sum + one.ns, 0);
  const figure = (label, value) => el("div", { class: "figure" }, el("b", {}, value), el("span", {}, label));
  const slow = told_.slow;
  const most = slow ? Math.max(slow.mean_ns, slow.usual_ns, 1) : 1;
  const line = (label, ns, kind) => {
    const one = el("i", { class: kind });
    one.style.width = Math.max(0.5, (ns / most) * 100) + "%";
    return el("div", { class: "versus" }, el("span", {}, label), el("div", { class: "meter" }, one), el("b", {}, duration(ns)));
  };
  const example = (title) => (slow.request ? [", such as ", name(slow.request, 90, "any mono")] : null);
  section("requests",
    el("div", { class: "card" },
      card("Requests", told_.count ? `${counted(told_.count, "request", "requests")} answered` : null),
      el("div", { class: "figures" },
        told_.count ? [figure("median", duration(told_.p50_ns)), figure("99 % within", duration(told_.p99_ns)), figure("slowest", duration(told_.max_ns))] : null,
        told_.open ? [figure("unanswered", told_.open.toLocaleString("en")), figure("the oldest for", duration(told_.oldest_open_ns))] : null),
      slow && slow.more.length ? el("div", { class: "slow" }, el("h3", {}, "The slowest ", counted(slow.count, "one", "of them"), " beside the usual", example()),
        line("slow", slow.mean_ns, "slow"), line("usual", slow.usual_ns, "usual"),
        el("p", {}, "More of: ", slow.more.slice(0, 4).map((one, at) => [at ? ", " : "", el("button", { class: "link", type: "button", onclick: () => look({ ...NOTHING, cause: one.cause }, true) },
          swatch(one.cause), `${duration(one.ns)} ${phrase(one.cause)}`)]))) : null,
      whole ? [el("h3", { class: "gap" }, "Causes of the threads that had a request"),
        bar(told_.causes, whole, (piece) => look({ ...NOTHING, cause: piece.cause }, true), "The time of requests")] : null,
      told_.listeners.length > 1 ? table(["on", "answered", "median", "99 % within", "slowest", "unanswered"],
        told_.listeners.slice(0, 50).map((one) => [one.port === null ? "Unix sockets" : "port " + one.port, one.count.toLocaleString("en"), duration(one.p50_ns), duration(one.p99_ns), duration(one.max_ns), one.open.toLocaleString("en")])) : null));
};

// A plain table: names left, figures right.
const table = (heads, rows) =>
  el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, el("table", {},
    el("thead", {}, el("tr", {}, heads.map((head, at) => el("th", { scope: "col", class: at ? "number" : null }, head)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, at) => el("td", { class: at ? "number" : null }, cell)))))));

// Parts that a machine's or a boot's report has.
// The plot stands in the page already, for browsers that run no script.
const scaling = () => {
  const plot = document.getElementById("plot");
  if (plot) section("scaling", el("div", { class: "card" }, card("Throughput against workers", "times the work of one worker; both axes double at each step"), plot));
};

const extra = () => {
  words.parts.forEach((part, at) =>
    section("part" + at, el("div", { class: "card" }, card(part.name), el("div", { class: "about wide" }, part.rows.map((row) => saidRow(row))))));
};

const more = () => {
  const rules = (list, key) => el("dl", { class: "rules" }, list.map((one) => [el("dt", { class: "mono" }, brief(one.rule, 60)), el("dd", {}, name(one[key], 900))]));
  const part = (title, count, open, ...inner) => el("details", { open }, el("summary", {}, title, " ", el("span", { class: "badge" }, count)), inner);
  const left = words.left_out.map(([what, count]) => el("p", { class: "said" }, el("span", { class: "label" }, "left out"), el("span", { class: "body" }, `${count.toLocaleString("en")} ${what}: the page would be too large; --json has them`)));
  const gaps = words.gaps.length + left.length;
  if (!gaps && !report.ruled_out.length && !report.cannot_tell.length) return;
  section("more", el("div", { class: "card" }, card("Ruled out, and not known"),
    gaps ? part("Not observed, or dropped", gaps, true, el("div", { class: "about wide" }, words.gaps.map((row) => saidRow(row)), left)) : null,
    report.cannot_tell.length ? part("Rules that cannot tell", report.cannot_tell.length, false, rules(report.cannot_tell, "missing")) : null,
    report.ruled_out.length ? part("Ruled out", report.ruled_out.length, false, rules(report.ruled_out, "why")) : null));
};
