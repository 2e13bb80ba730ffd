// The first screen: what it was, what is wrong, what that rests on, what to do; and how far all of it can be trusted.

const main = document.getElementById("main");
const section = (id, ...children) => {
  const one = el("section", { id, tabindex: "-1" }, children);
  main.append(one);
  return one;
};
const card = (title, aside, ...tools) =>
  el("header", {}, el("h2", {}, title), aside ? el("span", { class: "aside" }, aside) : null, tools.length ? el("span", { class: "grow" }) : null, tools);

const trouble = report.findings.filter((one) => one.severity !== "note");
const told = words.findings ? report.findings : [];

// What stands above the headline.
const mood = () => {
  if (comparison) return comparisonMood();
  const first = told[0];
  if (report.scaling) return { contends: ["warning", "Contends"], "cpu-bound": ["note", "CPU-bound"], scales: ["good", "Scales"] }[report.scaling.verdict] || ["note", "Scaling"];
  if (!words.findings) return ["bad", "No verdict"];
  if (words.verdict.length && (!first || first.severity === "note" || report.subject.kind !== "host")) {
    if (!trouble.length) return [words.nothing_found.level, words.nothing_found.words];
  }
  if (!first) return ["note", report.subject.kind === "boot" ? "Boot" : "No rule reports a problem"];
  return { critical: ["critical", "Critical"], warning: ["warning", "Warning"], note: ["note", "Note"] }[first.severity];
};

const headline = () => {
  if (words.verdict.length) return plainText(words.verdict[0]);
  return told.length ? told[0].title : plainText(words.header[0]);
};

const lead = () => {
  const tile = words.tiles[0];
  if (report.host || report.boot || report.scaling || !tile) return null;
  const named = tile.rows.length ? tile.rows[0].body.slice(1).map(([text]) => text).join(" ") : "";
  return el("p", { class: "lead" }, el("b", {}, tile.share), " of ", ofThreads ? "its thread time" : "the elapsed time", ", ",
    el("b", {}, (tile.open ? "≥" : "") + tile.time), ", went into ", el("b", {}, phrase(tile.cause)),
    named ? [": ", name(named, 90)] : null, ".");
};

const fact = (list, key, ...value) => { if (value.some(Boolean)) list.append(el("dt", {}, key), el("dd", {}, value)); };

const trust = () => {
  const coverage = report.coverage;
  const list = el("dl", { class: "facts" });
  const observed = coverage.observed_ns;
  const when = el("span", {});
  const stamp = () => { when.textContent = report.subject.started ? `${day()} ${view.clock === "since" ? "" : instant(0)}`.trim() : ""; };
  stamp();
  onView((changed) => { if (changed.includes("clock")) stamp(); });
  const place = report.machine || { host: report.boot && report.boot.host, kernel: (report.boot || report.host || {}).release };
  fact(list, "Host", place.host ? name(place.host, 40) : null);
  fact(list, "Kernel", place.kernel ? "Linux " + brief(place.kernel, 40) : null);
  fact(list, "When", report.subject.kind === "read" || comparison ? null : when);
  if (comparison) {
    fact(list, "A unit of work", comparison.unit === "whole" ? "unknown" : brief(comparison.unit, 40));
    fact(list, "BEFORE", counted(comparison.before_n, "run", "runs"));
    fact(list, "AFTER", counted(comparison.after_n, "run", "runs"));
    fact(list, "More runs like BEFORE", comparison.noise_n ? String(comparison.noise_n) : null);
    fact(list, "Runs vary by", comparison.run_to_run === null ? "not measured" : percent(comparison.run_to_run, 1));
    fact(list, "Significance", comparison.p === null ? null : "p " + comparison.p.toFixed(3));
  }
  if (observed) {
    fact(list, "Accounted for", percent(coverage.attributed_ns || 0, observed));
    fact(list, "Unknown", percent(coverage.unknown_ns || 0, observed));
  }
  const lost = coverage.lost.reduce((sum, one) => sum + one.count, 0);
  fact(list, "Dropped records", coverage.backend === "artefact" ? null : lost.toLocaleString("en"));
  fact(list, "Evidence", { bpf: "traced with BPF", proc: "kernel's files, sampled", artefact: "files" }[coverage.backend]);
  if (coverage.backend !== "artefact") fact(list, "Overhead of holdup", duration(coverage.own_cost_ns) + " CPU");
  fact(list, "Made by", "holdup " + brief(report.holdup ? report.holdup.version : "", 20));
  const gauge = el("div", { class: "gauge", "aria-hidden": "true" });
  if (observed) {
    const sure = el("i", {});
    const unknown = el("i", { class: "unknown" });
    sure.style.flex = String((coverage.attributed_ns || 0) / observed);
    unknown.style.flex = String((coverage.unknown_ns || 0) / observed);
    gauge.append(sure, unknown);
  }
  const gaps = coverage.not_measured.length + coverage.lost.length;
  return el("div", { class: "card" }, observed ? gauge : null, list,
    gaps ? el("p", { class: "aside gaps" }, el("button", { class: "button small", type: "button", onclick: () => go("more") },
      counted(gaps, "thing was not observed", "things were not observed"))) : null);
};

const hero = () => {
  const [kind, mark] = mood();
  const [first, ...rest] = words.header[0] ? words.header[0].body : [["holdup", "", false]];
  const figures = [...rest, ...words.header.slice(1).flatMap((row) => row.body)];
  const what = comparison ? el("div", { class: "sides" }, el("p", {}, el("span", { class: "badge " + kind }, mark)), el("p", {}, sideWords("BEFORE")), el("p", {}, sideWords("AFTER")))
    : el("p", { class: "what" }, el("span", { class: "badge " + kind }, mark), el("bdi", { class: "command any" }, brief(first[0], 400)), figures.map(([text]) => el("bdi", { class: "any" }, text)));
  const further = words.verdict.slice(1);
  return section("verdict",
    el("div", { class: "hero" },
      el("div", {},
        what,
        el("h1", { id: "headline", class: comparison ? "long" : null }, el("bdi", { class: "any" }, headline())),
        lead(),
        comparison ? el("div", { class: "verdict-words" }, further.map((row) => el("p", {}, spans(row.body))),
          comparison.trade ? el("p", {}, el("b", {}, "The trade: "), name(comparison.trade, 1200)) : null)
          : further.map((row) => el("p", { class: "aside" }, spans(row.body))),
        el("div", { class: "about" }, words.about.map((row) => saidRow(row))),
        el("div", { class: "acts" }, copyButton("Copy as Markdown", () => words.markdown, "main"),
          copyButton("Copy the first line", () => words.headline, ""),
          words.page ? el("span", { class: "aside" }, "More: ", el("code", {}, "holdup explain " + brief(words.page, 40))) : null)),
      trust()));
};

const remedy = (one) =>
  one.pointless
    ? el("li", { class: "dont" }, el("span", { class: "badge" }, "does not help"), " ", name(one.text, 600))
    : el("li", { class: "do " + (one.safe ? "safe" : "changing") },
        el("span", { class: "badge " + (one.safe ? "safe" : "changing") }, one.safe ? "safe" : "changing"), " ", name(one.text, 600),
        one.command ? el("div", { class: "command-line" }, el("code", { class: "any" }, brief(one.command, 2000)), copyButton("Copy", () => one.command, "small")) : null,
        one.risk ? el("p", { class: "risk" }, "Risk: ", name(one.risk, 600)) : null);

const finding = (one, at) => {
  const seen = el("div", {}, el("h3", {}, "How we know"),
    el("ul", {}, one.evidence.map((piece) => el("li", {}, name(piece.text, 900, "any text"), piece.source ? el("div", { class: "source" }, name(piece.source, 200)) : null))));
  const does = one.remedies.length
    ? el("div", {}, el("h3", {}, "What to do"), el("ul", {}, [...one.remedies].sort((a, b) => a.pointless - b.pointless).map(remedy)))
    : null;
  const badge = el("span", { class: "badge " + one.severity }, one.severity + (one.confidence === "suspect" ? ", suspected" : ""));
  const inner = el("div", { class: "two" }, seen, does);
  const of = el("button", { class: "button small", type: "button", onclick: () => look({ ...NOTHING, cause: one.cause }) }, swatch(one.cause), "Show its waits");
  const tools = waits.some((wait) => wait.cause === one.cause) ? of : null;
  if (at === 0 || one.severity !== "note") {
    // The headline has the title of the first already.
    const title = at === 0 && !words.verdict.length ? el("h2", { class: "unseen" }, name(one.title, 400)) : el("h2", {}, badge, " ", name(one.title, 400));
    return el("article", { class: "card finding" }, at === 0 && !words.verdict.length ? [title, inner, el("footer", { class: "row" }, tools, el("span", { class: "grow" }), one.confidence === "suspect" ? el("span", { class: "aside" }, "suspected") : null, el("span", { class: "rule" }, brief(one.rule, 60)))]
      : [el("header", {}, title, el("span", { class: "grow" }), tools, el("span", { class: "rule" }, brief(one.rule, 60))), inner]);
  }
  return el("details", { class: "card finding" }, el("summary", {}, badge, " ", name(one.title, 400), " ", el("span", { class: "rule" }, brief(one.rule, 60))), inner);
};

const findings = () => {
  if (told.length) section("findings", el("div", { class: "findings" }, told.map(finding)));
};
