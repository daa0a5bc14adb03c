// Rows and cells of the tables of an account.

import { grouped, money } from "./decimal.js";
import { el, keepingFocus, moment, update, words } from "./dom.js";
import { isWaiting } from "./entry.js";

export const cell = (text) => el("td", {}, text);
export const when = (timestamp) => el("td", { class: "dim", title: timestamp }, moment(timestamp));
export const number = (text, kind = "", unit = "") => el("td", { class: `num ${kind}` }, grouped(text), text && unit);
export const amount = (text, kind = "") => el("td", { class: `num ${kind}`, title: text }, money(text));
export const side = (action) => el("td", { class: action === "buy" ? "up" : "down" }, action === "buy" ? "Buy" : "Sell");

// status shows the status of an order, and when its stop fired.
export const status = (o) => el("td", {}, words(o.status), o.triggered && " ", o.triggered && el("span", { class: "chip", title: o.triggered }, `triggered ${moment(o.triggered)}`));

// trigger shows the prices at which a stop fires.
export function trigger(o) {
  const watched = o.trigger_price_type === "mark_price" ? "the mark price" : "trades";
  const legs = o.trigger_price ? [grouped(o.trigger_price)] : o.stop_loss_price ? [`SL ${grouped(o.stop_loss_price)}`, `TP ${grouped(o.take_profit_price)}`] : ["–"];
  return el("td", { class: "num", title: isWaiting(o) ? `watches ${watched}` : null }, legs.join(" · "));
}

export const flags = (o) => [words(o.type), o.post_only && "post only", o.reduce_only && "reduce only", o.cash_amount && `cash ${money(o.cash_amount)}`].filter(Boolean).join(", ");

// table shows rows under headings, or a remark if there are none. A row with buttons needs a data-key, so that update keeps it.
// On a narrow screen each row becomes a card, whose cells are named by data-name.
export function table(box, none, headings, rows) {
  keepingFocus(box.closest("[tabindex]") ?? box, () => fill(box, none, headings, rows));
}

function fill(box, none, headings, rows) {
  if (!rows.length) return update(box, [el("p", { class: "empty" }, none)]);
  for (const row of rows) [...row.children].forEach((c, i) => c.setAttribute("data-name", headings[i][0]));
  update(box, [el("table", { class: "list" },
    el("thead", {}, el("tr", { "data-key": "headings" }, ...headings.map(([name, right]) => el("th", { scope: "col", class: right ? "num" : null }, name)))),
    el("tbody", {}, ...rows))]);
}

// actions holds the buttons of a row.
export const actions = (...buttons) => el("td", { class: "num actions" }, ...buttons);

// button makes a button of a row. Its key is unique within the row.
export const button = (key, name, label, click) => el("button", { type: "button", class: `quiet ${key}`, "data-key": key, "aria-label": name, click }, label);

// explainButton opens the explanation of what a row shows.
export const explainButton = (name, open) => button("explain", `Explain ${name}`, "Explain", open);
