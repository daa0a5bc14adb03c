// Small helpers for building the page. Text only ever enters it as text nodes, so nothing from the network is markup.

export const byId = (id) => document.getElementById(id);

// el makes an element: el("td", {class: "num", title: "…"}, "text", child, …). A function becomes a listener, true an
// empty attribute; null and false are left out.
export function el(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") e.addEventListener(key, value);
    else e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

// svg makes an SVG element.
export function svg(name, attributes = {}, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

// update gives a parent these children. An element stays if a child has its data-key, or neither has one and the child takes its
// place: it gets the attributes, texts, and children of that child. So a button that is updated keeps the focus, and a click
// during the update counts. Its listeners stay, too: they must look up whatever changes. Rows and buttons without a key are
// always replaced. aria-disabled stays, because a request under way has set it.
export function update(parent, children) {
  const focused = document.activeElement;
  const keyed = new Map();
  const others = [];
  for (const node of parent.childNodes) {
    if (node.dataset?.key) keyed.set(node.dataset.key, node);
    else others.push(node);
  }
  const next = children.map((child) => {
    const key = child.dataset?.key;
    const old = key ? keyed.get(key) : others.shift();
    if (old?.nodeName !== child.nodeName || (!key && ["TR", "BUTTON"].includes(child.nodeName))) return child;
    keyed.delete(key);
    become(old, child);
    return old;
  });
  const staying = new Set(next);
  for (const node of [...parent.childNodes]) if (!staying.has(node)) node.remove();
  let at = parent.firstChild;
  for (const node of next) {
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus(); // its row has moved
}

function become(old, child) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== child.data) old.data = child.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!child.hasAttribute(name) && name !== "aria-disabled") old.removeAttribute(name);
  for (const { name, value } of child.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  update(old, [...child.childNodes]);
}

// restoreFocus focuses a fallback if the element that had the focus was removed, hidden, or disabled. If nothing had the focus,
// nothing gets it. The fallback is what is around the element and no button: a second press must not hit another one.
export function restoreFocus(had, fallback) {
  const now = document.activeElement;
  const lost = now === document.body || now.disabled || !now.checkVisibility();
  if (lost && had && had !== document.body) fallback.focus();
}

// keepingFocus makes a change, after which restoreFocus looks for the focus.
export function keepingFocus(fallback, change) {
  const had = document.activeElement;
  change();
  restoreFocus(had, fallback);
}

// setText changes an element's text only if it differs, which keeps selections and costs no layout.
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// onFrame returns a function that asks for one call of draw with the next frame, however often it is called until then.
export function onFrame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}

// settled returns a function that calls work once things have been quiet for some milliseconds, at the latest after
// four times that.
export function settled(work, quiet) {
  let timer = 0;
  let first = 0;
  return () => {
    const now = Date.now();
    if (!timer) first = now;
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = 0;
      work();
    }, Math.max(0, Math.min(quiet, first + 4 * quiet - now)));
  };
}

// repeat calls work every so many milliseconds while the page is visible, and never twice at once.
export function repeat(work, every) {
  let busy = false;
  const tick = async () => {
    if (busy || document.hidden) return;
    busy = true;
    try {
      await work();
    } finally {
      busy = false;
    }
  };
  document.addEventListener("visibilitychange", tick);
  setInterval(tick, every);
  return tick;
}

// inTurn returns a function that begins a look at something. What that returns says whether what was seen may be shown: an answer
// that comes late must not take the place of what was asked for after it.
export function inTurn() {
  let begun = 0;
  let shown = 0;
  return () => {
    const turn = ++begun;
    return () => {
      if (turn < shown) return false;
      shown = turn;
      return true;
    };
  };
}

const two = (n) => String(n).padStart(2, "0");

// clock shows a timestamp's time of day where the reader is; the title of its element should hold the whole in UTC.
export function clock(timestamp) {
  const d = new Date(timestamp);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

// moment is clock with the day in front unless it is today.
export function moment(timestamp) {
  const d = new Date(timestamp);
  const today = new Date().toDateString() === d.toDateString();
  return today ? clock(timestamp) : `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(timestamp)}`;
}

// escaped writes invisible characters, and those that change the direction of text, as JSON escapes. So nobody can make a text look
// like another one.
export const escaped = (text) => text.replaceAll(/[\p{Cf}\u2028\u2029]/gu, (c) => c.split("").map((unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0")).join(""));

// isolated makes an element for a text that others wrote, beside other text. Characters that change the direction of text change that
// of this text alone.
export const isolated = (text) => el("bdi", {}, text);

// words turns an enumerated value into words.
export const words = (value) => (value ? value.replaceAll("_", " ") : "");

// tabs makes a tab list work as the ARIA practices want it: arrow keys move, the chosen one is the only one in the tab
// order. chosen is called with the id of the panel.
export function tabs(list, chosen) {
  const all = [...list.querySelectorAll('[role="tab"]')];
  const choose = (tab, focus) => {
    for (const t of all) {
      const on = t === tab;
      t.setAttribute("aria-selected", String(on));
      t.tabIndex = on ? 0 : -1;
      byId(t.getAttribute("aria-controls")).hidden = !on;
    }
    if (focus) tab.focus();
    chosen(tab.getAttribute("aria-controls"));
  };
  list.addEventListener("click", (event) => {
    const tab = event.target.closest('[role="tab"]');
    if (tab) choose(tab, false);
  });
  list.addEventListener("keydown", (event) => {
    const shown = all.filter((t) => !t.hidden);
    const at = shown.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    choose(shown[(to + shown.length) % shown.length], true);
  });
  return (panel) => choose(all.find((t) => t.getAttribute("aria-controls") === panel), false);
}
