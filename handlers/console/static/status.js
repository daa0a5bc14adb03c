// What is wrong, said in one place at the top of the page, each problem for as long as it lasts. The first problem also
// decides what the light in the header shows.

import { byId, el, setText } from "./dom.js";

const problems = new Map(); // key → {level, light, text}
let drawn = "";
let base = { level: "wait", light: "Connecting" };

function draw() {
  const list = [...problems.entries()];
  const worst = list.find(([, p]) => p.level === "bad") ?? list[0];
  const light = worst ? worst[1] : base;
  byId("light").dataset.level = light.level;
  setText(byId("light-text"), light.light);
  // The text is only replaced when it changes, so that a screen reader says it once.
  const text = JSON.stringify(list);
  if (text === drawn) return;
  drawn = text;
  const banner = byId("banner");
  banner.replaceChildren(...list.map(([key, p]) => el("p", { class: p.level, "data-key": key }, el("strong", {}, p.light), " ", p.text)));
  banner.hidden = list.length === 0;
}

// report shows a problem until it is cleared: level "bad" or "wait", a word or two for the light, and a sentence.
export function report(key, level, light, text) {
  problems.set(key, { level, light, text });
  draw();
}

export function clear(key) {
  if (problems.delete(key)) draw();
}

export const reported = (key) => problems.has(key);

// live says what the light shows while nothing is wrong.
export function live(level, light) {
  base = { level, light };
  draw();
}
