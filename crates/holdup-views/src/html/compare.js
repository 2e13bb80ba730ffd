// BEFORE beside AFTER: what changed for each unit of work, the largest first, and how sure that is. The pictures of the stacks are
// both.js's. Every line names both sides, so that none can be read the wrong way round.

const comparison = report.comparison || null;
const MANY = 40;

const each = () => (comparison.unit === "whole" ? "of the whole" : (/^[aeio]/.test(comparison.unit) ? "an " : "a ") + brief(comparison.unit, 40));
const amount = (value, measure) => {
  const size = Math.abs(value);
  if (measure === "ns") return duration(Math.round(size));
  if (measure === "share") return (size * 100).toFixed(1) + " %";
  if (measure === "percent") return size.toFixed(1) + " %";
  return size === Math.round(size) ? size.toLocaleString("en") : size.toFixed(size < 1 ? 3 : 1);
};
const changed = (value, measure) => {
  const sign = value > 0 ? "+" : value < 0 ? "−" : "";
  if (measure === "share") return sign + (Math.abs(value) * 100).toFixed(1) + " points";
  if (measure === "percent") return sign + Math.abs(value).toFixed(1) + " points";
  return sign + amount(value, measure);
};
const share = (part, whole) => (whole ? (part > 0 ? "+" : part < 0 ? "−" : "") + ((Math.abs(part) / whole) * 100).toFixed(1) + " %" : "");
const sureWords = (one) => {
  if (one.significant === true) return el("span", { class: "badge note" }, "significant");
  if (one.significant === false) return el("span", { class: "aside" }, "may be noise");
  if (one.within_sampling === true) return el("span", { class: "aside" }, "sampling error");
  return el("span", { class: "aside" }, "unknown");
};

// What stands above the headline of a comparison.
const comparisonMood = () => {
  const change = comparison.change_ns;
  if (comparison.significant === false) return ["good", "No difference"];
  if (comparison.significant === null) return ["warning", "May be noise"];
  if (change === null) return ["note", "A difference"];
  return change > 0 ? ["critical", "Slower"] : ["good", "Faster"];
};
const sideWords = (side) => {
  const [file, runs, units] = side === "BEFORE" ? [comparison.before, comparison.before_n, comparison.before_units] : [comparison.after, comparison.after_n, comparison.after_units];
  const work = units !== null && comparison.unit !== "run" && comparison.compared !== "figures" ? `, ${counted(Math.round(units * 10) / 10, comparison.unit, comparison.unit + "s")}` : "";
  return [el("b", { class: "side " + side.toLowerCase() }, side), " ", name(file, 120, "command any"), " ", el("span", {}, counted(runs, "run", "runs") + work)];
};

// A change to either side of the middle: to the right is more in AFTER.
const swing = (change, most) => {
  const bar = el("i", { class: change > 0 ? "more" : "less" });
  bar.style.width = Math.max(1, (Math.abs(change) / most) * 50) + "%";
  bar.style.left = change > 0 ? "50%" : 50 - Math.max(1, (Math.abs(change) / most) * 50) + "%";
  return el("div", { class: "swing", "aria-hidden": "true" }, bar);
};

const bars = () => {
  const most = Math.max(comparison.before_ns || 0, comparison.after_ns || 0);
  const line = (side, whole, of) => {
    const bar = el("div", { class: "stack", "aria-hidden": "true" });
    for (const one of [...comparison.causes].sort((a, b) => Math.max(b.before_ns, b.after_ns) - Math.max(a.before_ns, a.after_ns))) {
      if (!of(one)) continue;
      const piece = el("span", { class: "piece g-" + GROUPS[groupOf(one.cause)][0], title: `${side}: ${phrase(one.cause)}, ${duration(of(one))}` });
      piece.style.flexGrow = String(of(one));
      piece.style.backgroundColor = groupColour(one.cause);
      bar.append(piece);
    }
    bar.style.width = (whole / most) * 100 + "%";
    return el("div", { class: "pair" }, el("b", { class: "side " + side.toLowerCase() }, side), el("div", {}, bar), el("span", { class: "time" }, duration(whole)));
  };
  const legend = el("ul", { class: "legend" }, [...new Set(comparison.causes.map((one) => groupOf(one.cause)))].sort().map((group) => {
    const box = el("i", { class: "swatch g-" + GROUPS[group][0] });
    box.style.backgroundColor = `var(--g-${GROUPS[group][0]})`;
    return el("li", {}, box, GROUPS[group][1]);
  }));
  return el("div", { class: "pairs" }, line("BEFORE", comparison.before_ns, (one) => one.before_ns), line("AFTER", comparison.after_ns, (one) => one.after_ns), legend);
};

// Rows of which the first are shown, and all on demand.
const folded = (rows) => {
  const body = el("tbody", {}, rows.slice(0, MANY));
  if (rows.length <= MANY) return [body, null];
  const next = el("button", { class: "button", type: "button", onclick: () => { body.append(...rows.slice(MANY)); next.remove(); } }, `Show ${rows.length - MANY} more`);
  return [body, el("p", { class: "row" }, next)];
};
const changesTable = (kind, heads, rows) => {
  const [body, next] = folded(rows);
  return [el("div", { class: "scroll" }, el("table", { class: kind }, el("thead", {}, el("tr", {}, heads.map(([head, number]) => el("th", { scope: "col", class: number ? "number" : null }, head)))), body)), next];
};
const sideCell = (side, words_) => el("td", { class: "number" }, el("span", { class: "side " + side.toLowerCase() }, side), " ", words_);

const causesTable = () => {
  const told_ = comparison.causes.filter((one) => one.change_ns !== 0);
  if (!told_.length) return;
  const most = Math.max(...told_.map((one) => Math.abs(one.change_ns)));
  const row = (one) => el("tr", { "data-change": one.change_ns },
    el("td", { class: "number change" }, changed(one.change_ns, "ns"), swing(one.change_ns, most)),
    el("td", { class: "number" }, share(one.change_ns, comparison.before_ns)),
    sideCell("BEFORE", duration(one.before_ns)), sideCell("AFTER", duration(one.after_ns)),
    el("td", { class: "cause" }, swatch(one.cause), phrase(one.cause), el("div", { class: "id" }, one.cause)),
    el("td", {}, sureWords(one), one.p === null || one.p === undefined ? null : el("div", { class: "id" }, "p " + one.p.toFixed(3))));
  section("changes", el("div", { class: "card" }, card("Where the time went", `${each()}, largest change first`), comparison.before_ns && comparison.after_ns ? bars() : null,
    changesTable("changes", [[`change ${each()}`, true], ["of BEFORE's whole", true], ["BEFORE", true], ["AFTER", true], ["what", false], ["chance", false]], told_.map(row))));
};

const amountsTable = (id, title, aside, list) => {
  if (!list.length) return;
  const most = Math.max(...list.map((one) => Math.abs(one.change)), 1e-12);
  const row = (one) => el("tr", {},
    el("td", { class: "number change" }, changed(one.change, one.measure), swing(one.change, most)),
    sideCell("BEFORE", amount(one.before, one.measure)), sideCell("AFTER", amount(one.after, one.measure)),
    el("td", {}, name(one.name, 110, "any mono"), one.presence === "new" ? el("span", { class: "warn" }, " new: BEFORE had none") : one.presence === "gone" ? el("span", { class: "warn" }, " gone: AFTER has none") : null,
      one.within ? el("div", { class: "id" }, `with what it called: ${changed(one.within[2], one.measure)}, BEFORE ${amount(one.within[0], one.measure)}, AFTER ${amount(one.within[1], one.measure)}`) : null),
    el("td", {}, sureWords(one)));
  section(id, el("div", { class: "card" }, card(title, aside),
    changesTable("amounts", [["change", true], ["BEFORE", true], ["AFTER", true], ["what", false], ["chance", false]], list.map(row))));
};

const differs = () => {
  const rows = comparison.differences.map((one) => [el("dt", {}, name(one.what, 80)),
    el("dd", {}, el("span", { class: "side before" }, "BEFORE"), " ", name(one.before, 400), " ", el("span", { class: "side after" }, "AFTER"), " ", name(one.after, 400))]);
  const method = el("p", { class: "aside" }, "Test of significance: ", brief(comparison.method, 400), ".");
  section("differs", el("div", { class: "card" }, card("Other differences", rows.length ? "kernel, builds, options, command lines" : "none recorded"),
    rows.length ? el("dl", { class: "rules" }, rows) : null,
    comparison.notes.length ? el("ul", {}, comparison.notes.map((note) => el("li", { class: "aside" }, name(note, 600)))) : null, method));
};

const compare = () => {
  if (!comparison) return;
  causesTable();
  bothPictures();
  amountsTable("made", "How many", each(), comparison.made);
  amountsTable("amounts", { profiles: "Functions", dumps: "Functions", calls: "Calls" }[comparison.compared] || "Figures",
    ["profiles", "dumps"].includes(comparison.compared) ? "by self amount, largest change first" : "largest change first", comparison.amounts);
  differs();
};
