// Decimals come as strings and are computed with exactly: a decimal is {n: BigInt, scale}, its value n / 10^scale.
// Numbers of JavaScript are used for drawing only.

export function parse(text) {
  const match = /^(-?)([0-9]+)(?:\.([0-9]+))?$/.exec(text ?? "");
  if (!match) return null;
  const fraction = match[3] ?? "";
  const n = BigInt(match[2] + fraction);
  return { n: match[1] ? -n : n, scale: fraction.length };
}

const at = (d, scale) => d.n * 10n ** BigInt(scale - d.scale);

export function add(a, b) {
  const scale = Math.max(a.scale, b.scale);
  return { n: at(a, scale) + at(b, scale), scale };
}

export const subtract = (a, b) => add(a, { n: -b.n, scale: b.scale });

export const multiply = (a, b) => ({ n: a.n * b.n, scale: a.scale + b.scale });

// compare orders two decimal strings.
export function compare(x, y) {
  const a = parse(x);
  const b = parse(y);
  const scale = Math.max(a.scale, b.scale);
  const [m, n] = [at(a, scale), at(b, scale)];
  return m < n ? -1 : m > n ? 1 : 0;
}

export function format(d) {
  const digits = (d.n < 0n ? -d.n : d.n).toString().padStart(d.scale + 1, "0");
  const whole = digits.slice(0, digits.length - d.scale);
  const text = d.scale ? `${whole}.${digits.slice(-d.scale)}` : whole;
  return d.n < 0n ? `-${text}` : text;
}

// rounded returns the decimal with at most so many decimals, half away from zero, for display.
export function rounded(d, scale) {
  if (d.scale <= scale) return d;
  const unit = 10n ** BigInt(d.scale - scale);
  const half = d.n < 0n ? -unit / 2n : unit / 2n;
  return { n: (d.n + half) / unit, scale };
}

// grouped puts commas between the thousands of a decimal string, and a real minus before a negative one.
export function grouped(text) {
  if (text === null || text === undefined || text === "") return "–";
  const [whole, fraction] = text.replace("-", "").split(".");
  const out = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (fraction ? `.${fraction}` : "");
  return text.startsWith("-") ? `−${out}` : out;
}

// quotient is a / b with so many decimals, rounded up in size.
export function quotient(a, b, scale) {
  const [n, d] = [a.n * 10n ** BigInt(scale + b.scale), b.n * 10n ** BigInt(a.scale)];
  const up = n % d === 0n ? 0n : 1n;
  return { n: n / d + up, scale };
}

// money shows an amount of money with two decimals; the element's title should hold the exact one.
export function money(text) {
  const d = parse(text);
  if (!d) return "–";
  const r = rounded(d, 2);
  return grouped(format({ n: r.n * 10n ** BigInt(2 - r.scale), scale: 2 }));
}

// plain takes out what grouped puts in, so that a number can be typed, or copied, as the page prints it. Commas that are
// not between thousands stay, for the server to refuse: in some countries they stand before the fraction.
export function plain(text) {
  const typed = text.trim().replace(/^−/, "-");
  return /^-?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?$/.test(typed) ? typed.replaceAll(",", "") : typed;
}

// sign is "up" above zero, "down" below, for colouring.
export function sign(text) {
  const d = parse(text);
  return !d || d.n === 0n ? "" : d.n > 0n ? "up" : "down";
}
