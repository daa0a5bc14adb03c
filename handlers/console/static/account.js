// A customer's account: balances, open orders, positions, fills, history and ledger, and what can be done with orders.

import { get, getWithPosition, request } from "./api.js";
import { compare, format, grouped, money, parse, plain, rounded, sign } from "./decimal.js";
import { byId, el, keepingFocus, moment, onFrame, restoreFocus, setText, settled, tabs, words } from "./dom.js";
import { describe, local, reference, utc } from "./entry.js";
import { explainOrder, explainRecord } from "./explain.js";
import { say, submitting } from "./form.js";
import { Past } from "./past.js";
import { actions, amount, button, cell, explainButton, flags, number, side, status, table, trigger, when } from "./rows.js";

const terminal = ["filled", "canceled", "expired", "rejected"];
const prices = ["limit_price", "trigger_price", "stop_loss_price", "take_profit_price"]; // that an order may have
const unreadable = "The account cannot be read";
const channels = ["orders", "trades", "balance-changes", "positions", "margin"];

export class Account {
  #stream;
  #changed;
  #protect;
  #customer = null;
  #mayTrade = false;
  #orders = new Map(); // open ones, by code
  #positions = new Map(); // by symbol
  #position = null; // in the log, of the newest that the stream told
  #view = "orders-view";
  #choose;
  #amending = null;
  #past = new Past();
  #confirm = 0;
  #refresh = settled(() => this.#load(), 250);
  #draw = onFrame(() => this.#showOrders());
  #drawPositions = onFrame(() => this.#showPositions());

  // changed is called with {orders}, {positions} or {summary} whenever one is new; protect with a position that somebody
  // wants to limit the loss and profit of.
  constructor(stream, changed, protect) {
    this.#stream = stream;
    this.#changed = changed;
    this.#protect = protect;
    this.#choose = tabs(byId("account-tabs"), (view) => {
      this.#view = view;
      if (view === "past-view") this.#past.open();
      else this.#load();
    });
    byId("cancel-all").addEventListener("click", () => this.#cancelAll());
    submitting(byId("amend"), byId("amend-result"), () => this.#amend());
    // The browser gives the focus back to the button that opened the dialog, unless its row has gone.
    for (const id of ["amend-dialog", "explain-dialog"]) byId(id).addEventListener("close", () => restoreFocus(byId(id), byId(this.#view)));
  }

  orders() {
    return [...this.#orders.values()];
  }

  positions() {
    return [...this.#positions.values()];
  }

  #path(rest = "") {
    return `/v1/customers/${encodeURIComponent(this.#customer)}${rest}`;
  }

  // show turns to a customer, or to nobody.
  show(customer, mayTrade) {
    for (const c of channels) this.#stream.unsubscribe(c);
    if (customer !== this.#customer) for (const id of ["amend-dialog", "explain-dialog"]) byId(id).close();
    this.#customer = customer;
    this.#position = null;
    this.#mayTrade = mayTrade;
    this.#orders.clear();
    this.#positions.clear();
    this.#past.customer(customer);
    byId("account").hidden = !customer;
    byId("account-result").replaceChildren();
    byId("summary").replaceChildren();
    for (const id of ["orders-view", "positions-view", "fills-view", "history-view", "ledger-view"]) byId(id).replaceChildren();
    if (!customer) return this.#changed({ orders: [], positions: [], summary: null });
    const data = { customer_code: customer, positions: true };
    this.#stream.subscribe("orders", { resume: () => this.#loadOrders(customer), message: (m) => this.#take(m) }, data);
    for (const c of ["trades", "balance-changes"]) this.#stream.subscribe(c, { start: () => this.#refresh(), message: (m) => this.#noticed(m.position) }, data);
    // Positions and margin begin with what there is. Nothing is told of what was closed while the stream was away.
    this.#stream.subscribe("positions", { start: () => this.#hold([]), message: (p) => this.#hold([...this.positions().filter((q) => q.symbol !== p.symbol), p]) }, { customer_code: customer });
    this.#stream.subscribe("margin", { message: (m) => this.#summary(m) }, { customer_code: customer });
    this.#choose(this.#view === "operator-view" && !byId("tab-operator").hidden ? "operator-view" : "orders-view");
    this.#draw();
    this.#drawPositions();
  }

  // loadOrders reads the open orders and returns the position that they are as of, from which on the stream then tells
  // their changes: so none falls between the two, however far behind the read model is.
  async #loadOrders(customer) {
    try {
      const { content, position } = await getWithPosition(`/v1/customers/${encodeURIComponent(customer)}/orders`);
      if (customer !== this.#customer) return null;
      this.#orders = new Map(content.map((o) => [o.code, o]));
      this.#draw();
      return position;
    } catch (failure) {
      say(byId("account-result"), "bad", `${unreadable}: ${failure.message} (${failure.code ?? "ERROR"})`);
      return null;
    }
  }

  #take(message) {
    this.place({ ...message, type: message.order_type, updated: message.timestamp }, message.position);
  }

  // place takes note of an order, from the stream or from an answer, unless something newer is known of it.
  place(order, position = null) {
    if (order.customer_code !== this.#customer) return;
    this.#put(order);
    this.#draw();
    this.#noticed(position);
  }

  // noticed has the rest of the account read again, as of a position in the log or later.
  #noticed(position) {
    const whole = position?.split(".")[0]; // "trading/0@123.2" is within record 123
    if (whole && sequence(whole) > sequence(this.#position)) this.#position = whole;
    this.#refresh();
  }

  #put(order) {
    const known = this.#orders.get(order.code);
    if (known && known.updated > order.updated) return;
    if (terminal.includes(order.status)) this.#orders.delete(order.code);
    else this.#orders.set(order.code, order);
  }

  #hold(list) {
    this.#positions = new Map(list.filter((p) => Number(p.amount) !== 0).map((p) => [p.symbol, p]));
    this.#drawPositions();
  }

  // load reads whatever is in view that no stream tells in full.
  async #load() {
    const customer = this.#customer;
    if (!customer) return;
    const read = async (path, query = {}) => {
      const content = await get(this.#path(path), query, this.#position);
      if (customer !== this.#customer) throw new Error("another customer is shown now");
      return content;
    };
    const show = {
      "fills-view": async () => this.#fills((await read("/trades", { page_size: 50 })).records),
      "history-view": async () => this.#history((await read("/orders/history", { page_size: 50 })).records),
      "ledger-view": async () => this.#ledger((await read("/transactions", { page_size: 50 })).records),
    }[this.#view];
    const [failed] = (await Promise.allSettled([show?.()])).map((r) => r.reason);
    if (customer !== this.#customer) return;
    const output = byId("account-result");
    if (failed) say(output, "bad", `${unreadable}: ${failed.message} (${failed.code ?? "ERROR"})`);
    else if (output.textContent.startsWith(unreadable)) output.replaceChildren();
  }

  #summary(s) {
    const figures = [
      ["Equity", s.total_equity], ["Balance", s.balance], ["Unrealized P&L", s.unrealised_pnl, true],
      ["Available", s.available_margin], ["Used margin", s.used_margin], ["Order margin", s.order_margin],
    ];
    const ratio = Number(s.margin_ratio);
    byId("summary").replaceChildren(
      ...figures.map(([name, value, signed]) => el("div", { title: `${value} ${s.currency}` }, el("dt", {}, name), el("dd", { class: signed ? sign(value) : null }, money(value)))),
      el("div", {}, el("dt", {}, "Margin ratio"), el("dd", { class: s.risk_state === "normal" ? null : "down" },
        `${ratio > 99 ? "> 9,900" : (ratio * 100).toFixed(2)}% `, el("span", { class: s.risk_state === "normal" ? "chip" : "chip bad" }, words(s.risk_state)))));
    this.#changed({ summary: s });
  }

  #showOrders() {
    const orders = [...this.#orders.values()].sort((a, b) => (a.created < b.created ? 1 : -1));
    setText(byId("tab-orders"), orders.length ? `Open orders (${orders.length})` : "Open orders");
    keepingFocus(byId(this.#view), () => {
      byId("cancel-all").hidden = !this.#mayTrade || orders.length === 0;
    });
    table(byId("orders-view"), "No open orders", [["Time"], ["Symbol"], ["Side"], ["Type"], ["Price", 1], ["Trigger", 1], ["Amount", 1], ["Filled", 1], ["In force"], ["Status"], ["Actions", 1]],
      orders.map((o) => el("tr", { "data-key": o.code, title: `${o.code} · reference ${o.reference_id}` },
        when(o.created), cell(o.symbol), side(o.action), cell(flags(o)), number(o.limit_price), trigger(o), number(o.amount), number(o.filled_amount),
        cell(o.time_in_force === "GTD" ? `GTD ${moment(o.expire_time)}` : o.time_in_force), status(o),
        actions(explainButton(`${o.action} ${o.amount} at ${at(o)}`, () => explainOrder(o.customer_code, o.code)),
          this.#mayTrade && button("amend", `Amend ${o.action} ${o.amount} at ${at(o)}`, "Amend", () => this.#openAmend(o.code)),
          this.#mayTrade && button("cancel", `Cancel ${o.action} ${o.amount} at ${at(o)}`, "Cancel", (e) => this.#cancel(o.code, e.target))))));
    this.#changed({ orders });
  }

  #showPositions() {
    const list = this.positions().sort((a, b) => (a.symbol < b.symbol ? -1 : 1));
    setText(byId("tab-positions"), list.length ? `Positions (${list.length})` : "Positions");
    table(byId("positions-view"), "No positions", [["Symbol"], ["Size", 1], ["Entry", 1], ["Mark", 1], ["Liquidation", 1], ["Notional", 1], ["Unrealized P&L", 1], ["Margin", 1], ["Leverage", 1], ["Actions", 1]],
      list.map((p) => el("tr", { "data-key": p.symbol }, cell(p.symbol), number(p.amount, sign(p.amount)), number(short(p.entry_price)), number(p.mark_price), number(p.liquidation_price, "risk"), amount(p.notional),
        profit(p), amount(p.initial_margin), number(p.leverage, "", "×"),
        actions(this.#mayTrade && button("protect", `TP/SL: take profit and stop loss for ${p.symbol}`, "TP/SL", () => this.#withPosition(p.symbol, this.#protect)),
          this.#mayTrade && button("close", `Close ${p.symbol} at the market`, "Close", (e) => this.#withPosition(p.symbol, (now) => this.#close(now, e.target)))))));
    this.#changed({ positions: list });
  }

  // withPosition calls work with a position as it is now, unless it is closed.
  #withPosition(symbol, work) {
    const position = this.#positions.get(symbol);
    if (position) work(position);
  }

  #fills(list) {
    table(byId("fills-view"), "No fills yet", [["Time"], ["Symbol"], ["Side"], ["Price", 1], ["Amount", 1], ["Value", 1], ["Fee", 1], ["Role"], ["Kind"], ["Actions", 1]],
      list.map((t) => el("tr", { "data-key": `${t.code} ${t.action}`, title: `${t.code} · order ${t.order_code}` }, when(t.timestamp), cell(t.symbol), side(t.action), number(t.price), number(t.amount),
        amount(t.notional), number(t.fee), cell(t.role), cell(words(t.type)), actions(explainButton(`the fill of ${t.amount} at ${t.price}`, () => explainRecord(t.customer_code, t.sequence))))));
  }

  #history(list) {
    table(byId("history-view"), "No orders yet", [["Time"], ["Symbol"], ["Side"], ["Type"], ["Price", 1], ["Trigger", 1], ["Amount", 1], ["Filled", 1], ["Average", 1], ["Status"], ["Reason"], ["Actions", 1]],
      list.map((o) => el("tr", { "data-key": o.code, title: `${o.code} · reference ${o.reference_id}` }, when(o.updated), cell(o.symbol), side(o.action), cell(flags(o)), number(o.limit_price), trigger(o),
        number(o.amount), number(o.filled_amount), number(o.average_fill_price), status(o), cell(words(o.reason) || "–"),
        actions(explainButton(`${o.action} ${o.amount} at ${at(o)}`, () => explainOrder(o.customer_code, o.code))))));
  }

  #ledger(list) {
    table(byId("ledger-view"), "No ledger entries yet", [["Time"], ["Type"], ["Symbol"], ["Amount", 1], ["Balance", 1], ["Currency"], ["Status"], ["Record", 1], ["Actions", 1]],
      list.map((t) => el("tr", { "data-key": `${t.code} ${t.sequence}`, title: t.code }, when(t.timestamp), cell(words(t.type)), cell(t.symbol ?? "–"), number(t.amount, sign(t.amount)), number(t.balance),
        cell(t.currency), cell(words(t.status)), number(String(t.sequence)),
        actions(explainButton(`${words(t.type)} of ${t.amount}`, () => explainRecord(t.customer_code, t.sequence))))));
  }

  async #cancel(code, button) {
    button.setAttribute("aria-disabled", "true");
    await this.#act(async () => describe(await this.#noted(request("DELETE", this.#path(`/orders/${code}`)))));
    button.removeAttribute("aria-disabled");
  }

  // close sends what closes a position at the market. It only reduces, so pressing twice, or a fill meanwhile, turns
  // nothing around; and the reference makes it harmless that a request is sent again.
  async #close(position, button) {
    button.setAttribute("aria-disabled", "true");
    const body = { symbol: position.symbol, action: position.amount.startsWith("-") ? "buy" : "sell", type: "market",
      amount: position.amount.replace("-", ""), reduce_only: true, reference_id: reference() };
    await this.#act(async () => describe(await this.#noted(request("POST", this.#path("/orders"), body))));
    button.removeAttribute("aria-disabled");
  }

  async #noted(answer) {
    const order = await answer;
    this.place(order);
    return order;
  }

  // cancelAll wants a second press within a few seconds.
  async #cancelAll() {
    const button = byId("cancel-all");
    if (!this.#confirm) {
      setText(button, `Press again to cancel ${this.#orders.size}`);
      this.#confirm = setTimeout(() => this.#calm(), 4000);
      return;
    }
    this.#calm();
    await this.#act(async () => `${(await request("DELETE", this.#path("/orders"))).canceled} orders canceled.`);
  }

  #calm() {
    clearTimeout(this.#confirm);
    this.#confirm = 0;
    setText(byId("cancel-all"), "Cancel all");
  }

  async #act(work) {
    const customer = this.#customer;
    const output = byId("account-result");
    say(output, "wait", "Sending …");
    try {
      const done = await work();
      say(output, "good", this.#named(customer, done));
    } catch (failure) {
      say(output, "bad", this.#named(customer, `${failure.message} (${failure.code})`));
    }
  }

  // named begins a message with its customer if another one is shown by now.
  #named(customer, message) {
    return customer === this.#customer ? message : `${customer}: ${message}`;
  }

  #openAmend(code) {
    const order = this.#orders.get(code);
    if (!order) return; // it has just ended
    this.#amending = order;
    const form = byId("amend");
    for (const name of prices) {
      form.elements[name].value = order[name] ?? "";
      form.querySelector(`[data-field="${name}"]`).hidden = order[name] === null;
    }
    form.elements.amount.value = order.amount;
    form.elements.expire_time.value = order.expire_time ? local(order.expire_time) : "";
    byId("amend-expire").hidden = order.time_in_force !== "GTD";
    setText(byId("amend-order"), `${describe(order)} A new price or a larger amount moves the order to the end of the queue.`);
    byId("amend-result").replaceChildren();
    byId("amend-dialog").showModal();
    form.elements[prices.find((name) => order[name] !== null) ?? "amount"].select();
  }

  async #amend() {
    const order = this.#amending;
    const fields = byId("amend").elements;
    const body = {};
    for (const name of [...prices, "amount"]) {
      const value = plain(fields[name].value);
      if (fields[name].closest("[hidden]")) continue;
      if (value && !(/^[0-9.]+$/.test(value) && safeEqual(value, order[name]))) body[name] = value;
    }
    if (!byId("amend-expire").hidden && fields.expire_time.value !== local(order.expire_time)) body.expire_time = utc(fields.expire_time.value);
    const customer = this.#customer;
    const current = () => this.#amending === order && byId("amend-dialog").open;
    try {
      const changed = await this.#noted(request("PATCH", this.#path(`/orders/${order.code}`), body));
      if (current()) byId("amend-dialog").close();
      say(byId("account-result"), "good", this.#named(customer, describe(changed)));
    } catch (failure) {
      if (current()) throw failure;
      say(byId("account-result"), "bad", this.#named(customer, `${failure.message} (${failure.code})`));
    }
  }
}

// sequence is the record's number in a position like trading/0@123.
const sequence = (position) => Number(position?.split("@")[1] ?? -1);

function safeEqual(a, b) {
  try {
    return compare(a, b) === 0;
  } catch {
    return false; // not a decimal: the server will say so
  }
}

const at = (o) => prices.map((name) => o[name]).find(Boolean) ?? "the market";

// profit shows what a position has won or lost, and how much of its initial margin that is.
function profit(p) {
  const margin = Number(p.initial_margin);
  const part = margin > 0 ? ` (${((Number(p.unrealised_pnl) / margin) * 100).toFixed(1).replace("-", "−")}%)` : "";
  return el("td", { class: `num ${sign(p.unrealised_pnl)}`, title: p.unrealised_pnl }, money(p.unrealised_pnl), el("span", { class: "part" }, part));
}

// short leaves out decimals of an entry price, which is an average, beyond those that anybody reads.
const short = (price) => format(rounded(parse(price), 4));
