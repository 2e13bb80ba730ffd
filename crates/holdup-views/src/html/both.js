// Stacks of BEFORE and AFTER: as a difference, as wide as both together so that what is gone is there, too; and side by side, on one
// scale. One search and one zoom lead all of them.

const both = (() => {
  const tree = comparison && comparison.stacks;
  if (!tree) return null;
  const kinds = ["kernel", "native", "java", "python", "javascript", "ruby", "php", "perl", "cause", "other"];
  // Lists of many records stand as columns.
  const columns = Array.isArray(tree.nodes) ? null : tree.nodes;
  const records = columns ? columns.frame.map((frame, at) => ({ frame, parent: columns.parent ? columns.parent[at] : null, before: columns.before[at], after: columns.after[at] })) : tree.nodes;
  const nodes = records.map((one, at) => {
    const frame = tree.frames[one.frame] || { name: "", kind: "other" };
    return { at, parent: at === 0 ? null : one.parent, label: frame.name, kind: kinds.includes(frame.kind) ? frame.kind : "other", before: one.before, after: one.after, children: [], depth: 0 };
  });
  // Callers stand before what they call; what does not is left where it is, and nothing leads to it.
  for (const one of nodes) {
    const parent = one.parent !== null && one.parent < one.at ? nodes[one.parent] : null;
    one.caller = parent;
    if (parent) { parent.children.push(one); one.depth = parent.depth + 1; }
  }
  for (const one of [...nodes].reverse()) if (one.caller) { one.caller.before += one.before; one.caller.after += one.after; }
  if (!nodes.length) return null;
  return { nodes, root: nodes[0], measure: tree.measure, leftOut: tree.left_out, cut: tree.cut };
})();

const SIDES = { before: (one) => one.before, after: (one) => one.after, difference: (one) => (one.before + one.after) / 2 };

const bothPictures = () => {
  if (!both) return;
  const words_ = (one) => (one.kind === "cause" ? phrase(one.label) : one.label) || "[no name]";
  const line = (one) => `${changed(one.after - one.before, both.measure)} ${each()}: BEFORE ${amount(one.before, both.measure)}, AFTER ${amount(one.after, both.measure)}`;
  const top = () => both.nodes[Number(view.node || 0)] || both.root;
  const hit = (one) => view.q && one.label.toLowerCase().includes(view.q.toLowerCase());
  const crumbs = el("div", { class: "crumbs row" });
  const list = el("tbody", {});
  const find = el("input", { type: "search", placeholder: "Find a function", "aria-label": "Find in both graphs", maxlength: "200", oninput: (event) => look({ q: event.target.value }) });
  const zoom = (one) => {
    look({ node: one.at ? String(one.at) : "" }, true);
    say(one.at ? `Zoomed to ${words_(one)}` : "The whole graph");
  };
  // Orange is more in AFTER, blue is less; how strong, by the part of the larger side that changed.
  const shadeOf = (one) => {
    const most = Math.max(one.before, one.after);
    const part = most > 0 ? (one.after - one.before) / most : 0;
    const strength = Math.round(Math.min(1, Math.abs(part)) * 100);
    return strength < 3 ? "var(--l-other)" : `color-mix(in srgb, var(${part > 0 ? "--more" : "--less"}) ${25 + strength * 0.75}%, var(--l-other))`;
  };
  const resolved = new Map();
  const colour = (words__) => {
    if (!resolved.has(words__)) {
      const probe = el("i", {});
      probe.style.color = words__;
      document.body.append(probe);
      resolved.set(words__, getComputedStyle(probe).color);
      probe.remove();
    }
    return resolved.get(words__);
  };
  const pictures = [];
  const picture = (kind, title) => {
    const of = SIDES[kind];
    const box = el("div", { class: "canvas-box" });
    const canvas = el("canvas", { class: "picture-of-both", tabindex: "0", role: "img" });
    box.append(canvas);
    let rows = [];
    let focus = null;
    const layout = (width) => {
      rows = [];
      const here = top();
      const above = [];
      for (let one = here; one; one = one.caller) above.unshift(one);
      // Side by side both are on one scale: the larger side fills the picture.
      const scale = kind === "difference" ? of(here) : Math.max(here.before, here.after);
      const full = scale > 0 ? (width * of(here)) / scale : 0;
      above.forEach((one, depth) => rows.push({ one, x: 0, w: one === here ? full : width, depth, above: one !== here }));
      const open = [[here, 0, full, above.length]];
      while (open.length) {
        const [one, x, w, depth] = open.pop();
        let left = x;
        for (const child of [...one.children].sort((a, b) => SIDES.difference(b) - SIDES.difference(a))) {
          const wide = of(one) > 0 ? (w * of(child)) / of(one) : 0;
          if (wide >= 0.6) {
            rows.push({ one: child, x: left, w: wide, depth, above: false });
            open.push([child, left, wide, depth + 1]);
          }
          left += wide;
        }
      }
    };
    const paint = () => {
      const width = box.clientWidth;
      if (!width) return;
      layout(width);
      const height = Math.max(1, ...rows.map((row) => row.depth + 1)) * FRAME + 2;
      const scale = window.devicePixelRatio || 1;
      canvas.width = Math.round(width * scale);
      canvas.height = Math.min(Math.round(height * scale), 16000);
      canvas.style.height = height + "px";
      const pen = canvas.getContext("2d");
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.clearRect(0, 0, width, height);
      pen.font = "12.5px " + computed("--sans");
      pen.textBaseline = "middle";
      const ink = computed("--ink");
      for (const row of rows) {
        const one = row.one;
        const faded = row.above || (view.q && !hit(one));
        const y = row.depth * FRAME;
        pen.globalAlpha = faded ? 0.4 : 1;
        pen.fillStyle = colour(kind === "difference" ? shadeOf(one) : one.kind === "cause" ? groupColour(one.label) : `var(--l-${one.kind})`);
        pen.fillRect(row.x, y, Math.max(row.w - 1, 0.6), FRAME - 1);
        pen.globalAlpha = faded ? 0.75 : 1;
        if (focus === one) {
          pen.strokeStyle = ink;
          pen.lineWidth = 2;
          pen.strokeRect(row.x + 1, y + 1, row.w - 3, FRAME - 3);
        }
        if (row.w > 26) {
          pen.save();
          pen.beginPath();
          pen.rect(row.x, y, row.w - 3, FRAME);
          pen.clip();
          pen.fillStyle = kind !== "difference" && one.kind === "cause" ? inkOn(computed("--g-" + GROUPS[groupOf(one.label)][0])) : ink;
          pen.fillText(brief(words_(one), Math.max(2, Math.floor((row.w - 10) / 6.3))), row.x + 5, y + FRAME / 2);
          pen.restore();
        }
        pen.globalAlpha = 1;
      }
      canvas.setAttribute("aria-label", `${title}. ${line(top())}. The table below lists what changed most.`);
    };
    const at = (event) => {
      const place = canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - place.left, event.clientY - place.top];
      return rows.find((row) => x >= row.x && x < row.x + row.w && Math.floor(y / FRAME) === row.depth) || null;
    };
    canvas.addEventListener("mousemove", (event) => {
      const row = at(event);
      tip(event, row ? [el("b", {}, brief(words_(row.one), 200)), el("span", {}, line(row.one))] : null);
      canvas.style.cursor = row ? "pointer" : "default";
    });
    canvas.addEventListener("mouseleave", () => tip(null, null));
    canvas.addEventListener("click", (event) => { const row = at(event); if (row) zoom(row.one); });
    canvas.addEventListener("keydown", (event) => {
      const here = rows.find((row) => row.one === focus) || rows.find((row) => row.one === top());
      if (!here) return;
      const same = rows.filter((row) => row.depth === here.depth).sort((a, b) => a.x - b.x);
      const beside_ = (step) => same[same.indexOf(here) + step];
      const next = { ArrowDown: rows.find((row) => row.one.caller === here.one), ArrowUp: rows.find((row) => row.one === here.one.caller), ArrowLeft: beside_(-1), ArrowRight: beside_(1) }[event.key];
      if (next) {
        focus = next.one;
        paint();
        say(`${words_(focus)}, ${line(focus)}`);
      } else if (event.key === "Enter") zoom(focus || top());
      else if (event.key === "Escape" && view.node) { look({ node: "" }); event.stopPropagation(); }
      else if (!event.key.startsWith("Arrow")) return;
      event.preventDefault();
    });
    pictures.push(paint);
    return el("figure", { class: "picture " + kind }, el("figcaption", {}, title), box);
  };
  const tell = () => {
    const here = top();
    fill(crumbs, here.at ? [el("button", { class: "button small", type: "button", onclick: () => zoom(both.root) }, "Whole graph"), el("span", { class: "aside" }, "› ", name(words_(here), 80), `, ${line(here)}`)] : null);
    // By function, wherever it is called; one that calls itself counts once.
    const sums = new Map();
    for (const one of both.nodes) {
      let again = false;
      let below = one === here;
      for (let up = one.caller; up; up = up.caller) {
        if (up.label === one.label && up.kind === one.kind) again = true;
        if (up === here) below = true;
      }
      if (!below || (view.q && !hit(one))) continue;
      const key = one.kind + "\0" + one.label;
      const have = sums.get(key) || { one, before: 0, after: 0 };
      if (!again) { have.before += one.before; have.after += one.after; }
      if (SIDES.difference(one) > SIDES.difference(have.one)) have.one = one;
      sums.set(key, have);
    }
    const best = [...sums.values()].sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before)).slice(0, MANY);
    fill(list, best.map((have) => el("tr", {}, el("td", { class: "number change" }, changed(have.after - have.before, both.measure)), sideCell("BEFORE", amount(have.before, both.measure)), sideCell("AFTER", amount(have.after, both.measure)),
      el("td", {}, el("button", { class: "link", type: "button", onclick: () => zoom(have.one) }, name(words_(have.one), 90, "any mono"))))));
  };
  const swatches = [["more", "more in AFTER than in BEFORE"], ["less", "less in AFTER than in BEFORE"]].map(([id, told_]) => {
    const one = el("i", { class: "swatch" });
    one.style.backgroundColor = `var(--${id})`;
    return el("li", {}, one, told_);
  });
  const small = [both.leftOut ? `${counted(both.leftOut, "frame is", "frames are")} too small to be drawn and count in their callers` : "", both.cut ? `${counted(both.cut, "frame", "frames")} found no room` : ""].filter(Boolean).join("; ");
  section("both", el("div", { class: "card" }, card("Who asked, BEFORE and AFTER", both.measure === "ns" ? `time ${each()}, without what waits for work` : each()),
    el("div", { class: "row tools-row" }, find), crumbs,
    picture("difference", "The difference: as wide as BEFORE and AFTER together"),
    el("ul", { class: "legend" }, swatches),
    el("div", { class: "beside" }, picture("before", "BEFORE"), picture("after", "AFTER")),
    el("p", { class: "aside" }, "Callers above, callees below, the cause last. BEFORE and AFTER are on one scale. A click zooms all three; arrow keys and Enter do so, too." + (small ? " " + small + "." : "")),
    el("details", {}, el("summary", {}, "The same as a table"), el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, [["change", 1], ["BEFORE", 1], ["AFTER", 1], ["function, with what it called", 0]].map(([head, number]) => el("th", { scope: "col", class: number ? "number" : null }, head)))), list)))));
  const paintAll = () => { resolved.clear(); for (const paint of pictures) paint(); };
  onView((what) => {
    if (!what.includes("node") && !what.includes("q")) return;
    paintAll();
    tell();
    if (document.activeElement !== find) find.value = view.q;
  });
  onResize(paintAll);
  onTheme(paintAll);
  find.value = view.q;
  paintAll();
  tell();
};
