// Puts the parts together: the bar above, the chips of what is chosen, colours, sizes; then all of it once.

const sizes = [];
const themes = [];
const onResize = (draw) => sizes.push(draw);
const onTheme = (draw) => themes.push(draw);

// Text on a colour: black or white, whichever has more contrast with it by WCAG's relative luminance (equal at 0.179).
const inkOn = (colour) => {
  const parts_ = colour.match(/[0-9a-f]{2}/gi);
  if (!parts_) return computed("--ink");
  const [r, g, b] = parts_.map((part) => parseInt(part, 16) / 255).map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#0a0b0d" : "#ffffff";
};

const tip = (event, children) => {
  const box = document.getElementById("tip");
  box.hidden = !children;
  if (!children) return;
  fill(box, children);
  const wide = box.offsetWidth;
  box.style.left = Math.max(8, Math.min(event.clientX + 14, innerWidth - wide - 8)) + "px";
  box.style.top = Math.max(8, event.clientY + 18 + box.offsetHeight > innerHeight ? event.clientY - box.offsetHeight - 10 : event.clientY + 18) + "px";
};

const go = (id) => {
  const part = document.getElementById(id);
  if (!part) return;
  part.scrollIntoView();
  part.focus({ preventScroll: true });
};

const PARTS = [["verdict", "Verdict"], ["scaling", "Workers"], ["findings", "Findings"], ["path", "Where the time went"], ["requests", "Requests"], ["timeline", "Time line"], ["machine", "Machine"],
  ["flame", "Flame graph"], ["waits", "Waits"], ["threads", "Threads"], ["changes", "Where the time went"], ["both", "BEFORE and AFTER"], ["made", "How many"],
  ["amounts", "What changed"], ["differs", "What else differs"], ["more", "Ruled out"]];

const navigation = () => {
  const nav = document.getElementById("nav");
  const told_ = [...PARTS.slice(0, 4), ...words.parts.map((part, at) => ["part" + at, part.name]), ...PARTS.slice(4)];
  for (const [id, label] of told_) {
    if (!document.getElementById(id)) continue;
    nav.append(el("button", { type: "button", "data-part": id, onclick: () => go(id) }, label));
  }
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) entry.target.inView = entry.isIntersecting;
    const first = [...main.children].find((one) => one.inView && nav.querySelector(`[data-part="${one.id}"]`));
    for (const button of nav.children) button.setAttribute("aria-current", String(Boolean(first) && button.dataset.part === first.id));
  }, { rootMargin: "-70px 0px -45% 0px" });
  for (const one of main.children) seen.observe(one);
  document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); go("verdict"); });
};

const tools = () => {
  const clocks = [["", "Local"], ["utc", "UTC"], ["since", "Since start"]].map(([value, label]) =>
    el("button", { type: "button", "data-clock": value, onclick: () => look({ clock: value }) }, label));
  const group = el("div", { class: "choice", role: "group", "aria-label": "Clock" }, clocks);
  const sync = () => clocks.forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.clock === view.clock)));
  onView(sync);
  sync();
  const system = matchMedia("(prefers-color-scheme: dark)");
  const theme = el("button", { class: "button icon", type: "button", id: "theme", onclick: () => {
    setTheme(themeNow() === "dark" ? "light" : "dark");
    theme.dataset.own = "yes";
  } });
  const setTheme = (next) => {
    document.documentElement.dataset.theme = next;
    theme.textContent = next === "dark" ? "☀" : "☾";
    theme.setAttribute("aria-label", next === "dark" ? "Light colours" : "Dark colours");
    theme.title = theme.getAttribute("aria-label");
    for (const draw of themes) draw();
  };
  system.addEventListener("change", () => { if (!theme.dataset.own) setTheme(system.matches ? "dark" : "light"); });
  setTheme(system.matches ? "dark" : "light");
  // On paper the colours are light, whatever the screen's are.
  let before = null;
  addEventListener("beforeprint", () => { before = themeNow(); setTheme("light"); });
  addEventListener("afterprint", () => { if (before) setTheme(before); });
  fill(document.getElementById("tools"), report.subject.kind === "read" || comparison ? null : group, theme);
};

// What is chosen, in words, with a way out of it.
const chips = () => {
  const box = el("div", { class: "chips", id: "chips", role: "region", "aria-label": "What is chosen", hidden: true });
  document.getElementById("bar").append(box);
  const chip = (label, clear) => el("button", { class: "chip", type: "button", onclick: () => look(clear), "aria-label": `Stop choosing ${label}` }, el("span", {}, label), el("i", { "aria-hidden": "true" }, "×"));
  const draw = () => {
    box.hidden = !narrowed;
    if (!narrowed) return;
    let sum = 0;
    let count = 0;
    for (let at = 0; at < waits.length; at++) if (chosen[at]) { sum += weightOf(at); count += 1; }
    const told_ = [];
    if (view.tile) told_.push(chip(phrase(entryOf(view.tile).cause), { tile: "" }));
    if (view.cause) told_.push(chip(phrase(view.cause), { cause: "" }));
    if (view.thread !== "") told_.push(chip(brief(threadWords(threads[Number(view.thread)]), 40), { thread: "" }));
    if (view.frames) { const one = nodeAt(view.frames); told_.push(chip(one ? brief(flame.labels[one.label], 40) : "a function", { frames: "" })); }
    if (view.from !== "") told_.push(chip(`${instant(Number(view.from))} to ${instant(Number(view.to))}`, { from: "", to: "" }));
    if (view.wait !== "") told_.push(chip("one wait", { wait: "", one: "" }));
    fill(box, el("span", {}, `${counted(count, "row", "rows")}, ${duration(sum)}:`), told_, el("button", { class: "button small", type: "button", onclick: () => look({ ...NOTHING }) }, "Clear"));
  };
  onView(draw);
  return draw;
};

const start = () => {
  plant();
  Object.assign(view, readAddress());
  choose();
  hero();
  scaling();
  findings();
  path();
  extra();
  requests();
  timeline();
  machine();
  flameGraph();
  waitsTable();
  threadsTable();
  compare();
  more();
  walk();
  tools();
  navigation();
  const draw = chips();
  draw();
  if (location.hash.length > 1) show(Object.keys(view));
  addEventListener("hashchange", followAddress);
  addEventListener("popstate", followAddress);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    requestAnimationFrame(() => { for (const one of sizes) one(); });
  });
  document.documentElement.dataset.ready = "yes";
};
start();
