// Text and numbers for people: elements without markup, names without tricks, durations as the terminal writes them.

const NS = { us: 1e3, ms: 1e6, s: 1e9 };

// An element; children that are texts become texts and never markup.
const el = (tag, attributes, ...children) => {
  const one = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) one.addEventListener(key.slice(2), value);
    else if (key === "class") one.className = value;
    else one.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    one.append(typeof child === "object" ? child : String(child));
  }
  return one;
};

const fill = (parent, ...children) => {
  parent.replaceChildren();
  for (const child of children.flat(3)) if (child) parent.append(child);
  return parent;
};

// What would act on the text around it, or show nothing, is shown as an escape: names are anybody's.
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e01ef}]/gu;
const printable = (text) =>
  String(text ?? "").replace(UNPRINTABLE, (one) => "\\u{" + one.codePointAt(0).toString(16) + "}");

// Ends tell more than middles.
const brief = (text, most) => {
  const all = [...printable(text).slice(0, 4000)];
  if (all.length <= most) return all.join("");
  const head = Math.ceil((most - 1) / 2);
  return all.slice(0, head).join("") + "…" + all.slice(all.length - (most - 1 - head)).join("");
};

// A name in a box of its own, with the whole of it on demand.
const name = (text, most = 80, kind = "any") => {
  const short = brief(text, most);
  const whole = printable(text);
  return el("bdi", { class: kind, title: short === whole ? null : whole.slice(0, 600) }, short);
};

const rounded = (ns, unit) => Math.floor(ns / unit) + (ns % unit >= Math.ceil(unit / 2) ? 1 : 0);
const decimal = (ns, unit, places, word) =>
  (rounded(ns, unit / 10 ** places) / 10 ** places).toFixed(places) + " " + word;

const duration = (ns) => {
  if (ns === 0) return "0 s";
  if (ns < 1e3) return ns + " ns";
  if (ns < 9950) return decimal(ns, NS.us, 1, "µs");
  if (ns < 999500) return decimal(ns, NS.us, 0, "µs");
  if (ns < 99950000) return decimal(ns, NS.ms, 1, "ms");
  if (ns < 999500000) return decimal(ns, NS.ms, 0, "ms");
  if (ns < 59995e6) return decimal(ns, NS.s, 2, "s");
  const seconds = rounded(ns, NS.s);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(seconds / 3600);
  return hours < 72 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
};

const percent = (part, whole) => {
  if (!whole) return "0.0 %";
  const tenths = Math.round((part * 1000) / whole);
  if (tenths === 0 && part > 0) return "<0.1 %";
  if (tenths === 1000 && part < whole) return ">99.9 %";
  return (tenths / 10).toFixed(1) + " %";
};

const counted = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

// Rows of the terminal, set by the page.
const spans = (body) =>
  body.map(([text, look, blank], at) => [
    at > 0 && blank ? " " : null,
    el("bdi", { class: "any " + look, title: null }, text.length > 2000 ? brief(text, 2000) : text),
  ]);
const plainText = (row) => row.body.map(([text, , blank], at) => (at > 0 && blank ? " " : "") + text).join("");
const saidRow = (row, kind = "") =>
  el("div", { class: ("said " + kind).trim() },
    row.lead ? el("span", { class: "label" }, row.lead) : null,
    el("span", { class: "body" }, spans(row.body)),
    row.edge ? el("span", { class: "edge mono" }, row.edge) : null);

const say = (words) => { document.getElementById("status").textContent = words; };

// Puts a text where a person can paste it from; where that is not allowed, it is left selected.
const copy = async (text, button) => {
  const told = button.textContent;
  const done = (words) => { button.textContent = words; say(words); button.dataset.done = "yes"; };
  try {
    await navigator.clipboard.writeText(text);
    done("Copied");
  } catch {
    const box = el("textarea", { class: "copybox", readonly: true, "aria-label": "Text to copy" });
    box.value = text;
    button.after(box);
    box.focus();
    box.select();
    done("Selected: copy it with Ctrl+C");
    box.addEventListener("blur", () => { box.remove(); button.textContent = told; }, { once: true });
    return;
  }
  button.addEventListener("blur", () => { button.textContent = told; }, { once: true });
};
const copyButton = (words, text, kind) =>
  el("button", { class: "button " + kind, type: "button", onclick: (event) => copy(text(), event.currentTarget) }, words);
