// The axis of time that the pictures of when it passed share: what of it is in sight, and how one moves along it.

// All that is told of time: threads' and the machine's. Every movement asks for it.
let axisLength = 0;
const axisSpan = () => (axisLength ||= Math.max(span(), hostSpan(), 1));
const zoomNow = () => {
  const whole = axisSpan();
  if (!view.zoom) return [0, whole];
  const [from, to] = view.zoom.split("-").map(Number);
  return from < to && from < whole ? [from, Math.min(to, whole)] : [0, whole];
};
const setZoom = (from, to) => {
  const whole = axisSpan();
  const length = Math.min(whole, Math.max(NEAREST, to - from));
  const start_ = Math.max(0, Math.min(from, whole - length));
  look({ zoom: length >= whole ? "" : `${Math.round(start_)}-${Math.round(start_ + length)}` });
};
const zoomBy = (factor, middle = null) => {
  const [from, to] = zoomNow();
  const at = middle ?? (from + to) / 2;
  setZoom(at - (at - from) * factor, at + (to - at) * factor);
};
const pan = (part) => { const [from, to] = zoomNow(); setZoom(from + (to - from) * part, to + (to - from) * part); };
// Keys that move along it, on whichever picture.
const AXIS_KEYS = { ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "+": () => zoomBy(0.6), "=": () => zoomBy(0.6), "-": () => zoomBy(1 / 0.6), Home: () => look({ zoom: "" }) };

// Makes a canvas ready for a picture of this height; its pen and its width.
const prepare = (one, height) => {
  const width = one.parentElement.clientWidth;
  const scale = window.devicePixelRatio || 1;
  one.width = Math.round(width * scale);
  one.height = Math.round(height * scale);
  one.style.height = height + "px";
  const pen = one.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px " + computed("--sans");
  pen.textBaseline = "middle";
  return [pen, width];
};
// Names stand to the left of the axis.
const gutter = (width) => (width < 560 ? 96 : GUTTER);
const ticks = (pen, from, to, left, width, y) => {
  const most = Math.max(2, Math.floor((width - left) / 130));
  const rough = (to - from) / most;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * size).find((one) => one >= rough);
  pen.fillStyle = computed("--ink-3");
  pen.textAlign = "left";
  for (let at = Math.ceil(from / step) * step; at < to; at += step) {
    const x = left + ((at - from) / (to - from)) * (width - left);
    pen.fillRect(x, y, 1, 5);
    if (x < width - 60) pen.fillText(view.clock === "since" || step < 1e6 ? "+" + duration(Math.round(at)) : instant(at), x + 4, y + 8);
  }
};
