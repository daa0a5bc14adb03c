// The explanation of a record: its command, the state that it met, the arithmetic, what it changed, and the proof that it is in the
// transparency log.

import { get } from "./api.js";
import { grouped, money, sign } from "./decimal.js";
import { byId, el, moment, setText, words } from "./dom.js";
import { describe } from "./entry.js";
import { say } from "./form.js";
import { amount, cell, number, side, table, when } from "./rows.js";

const path = (customer, rest) => `/v1/customers/${encodeURIComponent(customer)}${rest}`;

let asked = 0; // an answer to an earlier question is not shown

// explainOrder opens the explanation of the record that placed or rejected an order.
export const explainOrder = (customer, code) => open(path(customer, `/orders/${code}/explain`));

// explainRecord opens the explanation of a record.
export const explainRecord = (customer, sequence) => open(path(customer, `/records/${sequence}/explain`));

async function open(question) {
  const turn = ++asked;
  const dialog = byId("explain-dialog");
  const result = byId("explain-result");
  byId("explain-body").replaceChildren();
  setText(byId("explain-title"), "Explanation");
  say(result, "wait", "The venue decides the record again …");
  if (!dialog.open) dialog.showModal();
  try {
    const x = await get(question);
    if (turn !== asked) return;
    result.replaceChildren();
    show(x);
  } catch (failure) {
    if (turn === asked) say(result, "bad", `${failure.message} (${failure.code ?? "ERROR"})`);
  }
}

function show(x) {
  setText(byId("explain-title"), `Record #${grouped(x.position.split("@")[1])}: ${x.subjects.map(words).join(", ")}`);
  const body = byId("explain-body");
  body.replaceChildren(
    facts([["Position", x.position], ["Time", moment(x.timestamp), x.timestamp], ["Outcome", words(x.outcome)], ["Rules", String(x.rules)]]),
    part("Command", command(x.command)),
    part(`Before, at ${x.met.position}`, ...met(x.met)),
    part("Arithmetic", x.decided_again ? arithmetic(x.arithmetic)
      : el("p", { class: "hint" }, "The record has an older form, which does not show all that the command contained. So it can't be decided again.")),
    part("Changes", ...changes(x)));
  if (x.now) body.append(part("Since then", el("p", {}, describe(x.now)), trades(x.later, "No later trades")));
  body.append(part("Proof", ...proof(x)));
}

const part = (title, ...content) => el("div", { class: "part-of" }, el("h3", {}, title), ...content);
const facts = (pairs) => el("dl", { class: "facts" }, ...pairs.map(([name, text, title]) => el("div", { title }, el("dt", {}, name), el("dd", {}, text))));
const inBox = (fill) => {
  const box = el("div");
  fill(box);
  return box;
};

function command(c) {
  if (!c) return el("p", { class: "hint" }, "Another party gave the command.");
  const all = el("div", {}, facts([["Type", c.type], ["Given by", c.sub ?? "the engine, the venue, or another user"], ["Id", c.id], ["Idempotency-Key", c.idempotency_key ?? "–"]]));
  if (c.request) all.append(el("details", {}, el("summary", {}, "Request, with its defaults"), el("pre", { tabindex: "0" }, JSON.stringify(c.request, null, 2))));
  return all;
}

function met(m) {
  const a = m.account;
  return [
    facts([["Balance", money(a.balance), a.balance], ["Equity", money(a.total_equity), a.total_equity], ["Available", money(a.available_margin), a.available_margin],
      ["Used margin", money(a.used_margin), a.used_margin], ["Maintenance margin", money(a.maintenance_margin), a.maintenance_margin], ["Risk", words(a.risk_state)]]),
    m.instruments.length > 0 && inBox((box) => table(box, "", [["Symbol"], ["Status"], ["Index", 1], ["Mark", 1], ["Best bid", 1], ["Best ask", 1]],
      m.instruments.map((i) => el("tr", {}, cell(i.symbol), cell(words(i.status)), number(i.index_price), number(i.mark_price), number(i.best_bid), number(i.best_ask))))),
    inBox((box) => table(box, "No positions", [["Symbol"], ["Size", 1], ["Entry", 1], ["Mark", 1], ["Unrealized P&L", 1]],
      m.positions.map((p) => el("tr", {}, cell(p.symbol), number(p.amount, sign(p.amount)), number(p.entry_price), number(p.mark_price), amount(p.unrealised_pnl, sign(p.unrealised_pnl)))))),
  ];
}

// arithmetic lists each formula with its values and its result.
const arithmetic = (lines) => lines.length === 0 ? el("p", { class: "hint" }, "No rule with arithmetic decided this record.") : el("ol", { class: "arithmetic" }, ...lines.map((line) => el("li", {},
  el("p", { class: "result-of" }, el("strong", {}, words(line.name)), line.subject && el("span", { class: "dim" }, ` ${line.subject}`), el("span", { class: "equals" }, ` = ${line.result}`)),
  el("p", { class: "formula" }, line.formula),
  el("p", { class: "values" }, Object.entries(line.values).map(([name, value]) => `${name} ${value}`).join(" · ")))));

function changes(x) {
  return [
    ...x.orders.map((o) => el("p", {}, describe(o))),
    x.trades.length > 0 && trades(x.trades, ""),
    inBox((box) => table(box, "No postings", [["Posting"], ["Symbol"], ["Amount", 1], ["Balance", 1], ["Currency"]],
      x.transactions.map((t) => el("tr", { title: t.code }, cell(words(t.type)), cell(t.symbol ?? "–"), number(t.amount, sign(t.amount)), number(t.balance), cell(t.currency))))),
    x.positions.length > 0 && inBox((box) => table(box, "", [["Position"], ["Size", 1], ["Entry", 1], ["Cost", 1]],
      x.positions.map((p) => el("tr", {}, cell(p.symbol), number(p.amount, sign(p.amount)), number(p.entry_price), number(p.cost))))),
  ];
}

const trades = (list, none) => inBox((box) => table(box, none, [["Trade"], ["Side"], ["Price", 1], ["Amount", 1], ["Value", 1], ["Fee", 1], ["Role"]],
  list.map((t) => el("tr", { title: t.code }, when(t.timestamp), side(t.action), number(t.price), number(t.amount), amount(t.notional), number(t.fee), cell(t.role)))));

// receiptOf returns the path of the receipt of a record, or null if it changed nothing that has receipts.
function receiptOf(x) {
  const sequence = x.position.split("@")[1];
  const receipt = (kind, code) => path(x.customer_code, `/${kind}/${code}/receipt?sequence=${sequence}`);
  if (x.trades.length) return receipt("trades", x.trades[0].code);
  if (x.transactions.length) return receipt("transactions", x.transactions[0].code);
  if (x.orders.length) return receipt("orders", x.orders[0].code);
  return null;
}

// proof offers the receipt of a record. Getting it waits for a checkpoint that covers the record.
function proof(x) {
  const from = receiptOf(x);
  if (!from) return [el("p", { class: "hint" }, "There is no receipt of this record.")];
  const output = el("div", { class: "result", role: "status" });
  const button = el("button", { type: "button", class: "receipt" }, "Get the receipt");
  button.addEventListener("click", async () => {
    say(output, "wait", "Waiting for a checkpoint …");
    try {
      receipt(output, await get(from), x.position);
    } catch (failure) {
      say(output, "bad", `${failure.message} (${failure.code ?? "ERROR"})`);
    }
  });
  return [button, output];
}

// receipt shows which checkpoint covers a record, and offers the file.
function receipt(output, content, position) {
  const [origin, size] = content.proof.split("\n\n")[1].split("\n");
  const file = new File([JSON.stringify(content)], "receipt.json", { type: "application/json" });
  const name = `receipt-${position.replaceAll(/[^a-z0-9]+/g, "-")}.json`;
  const link = el("a", { href: URL.createObjectURL(file), download: name }, name);
  say(output, "good", `The log ${origin} with ${grouped(size)} records has it. `, link, ". ", el("a", { href: "/check" }, "This page"), " and ", el("code", {}, "perpetua receipt verify"), " check the file.");
}

byId("explain-dialog").addEventListener("close", () => {
  asked++;
  byId("explain-body").replaceChildren();
});
