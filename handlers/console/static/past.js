// An account as of a past moment: its open orders, positions and balances, and the book of an instrument. A slider or a field names
// the moment.

import { exchange, get } from "./api.js";
import { sign } from "./decimal.js";
import { byId, el, inTurn, moment, setText, settled } from "./dom.js";
import { explainOrder, explainRecord } from "./explain.js";
import { say, submitting } from "./form.js";
import { actions, amount, cell, explainButton, flags, number, side, status, table, trigger, when } from "./rows.js";

const depth = 12; // levels of the book on each side
const behind = 2; // seconds: a moment is decided once a later record, or a second without records, has followed

export class Past {
  #customer = null;
  #turn = inTurn();
  #bookTurn = inTurn();
  #typed = inTurn(); // who moves the slider: what was typed must not move it after somebody else did
  #position = null; // that is shown
  #form = byId("past");
  #slide = settled(() => this.#show(this.#slid()), 120);

  constructor() {
    const slider = this.#form.elements.moment;
    slider.addEventListener("input", () => {
      this.#typed()();
      this.#label();
      this.#slide();
    });
    this.#form.elements.symbol.addEventListener("change", () => this.#showBook());
    submitting(this.#form, byId("past-result"), () => this.#show(this.#form.elements.as_of.value.trim(), true));
  }

  // customer turns to a customer, or to nobody.
  customer(code) {
    this.#customer = code;
    this.#typed()();
    this.#clear();
    byId("past-result").replaceChildren();
  }

  #clear() {
    this.#position = null;
    this.#bookTurn()(); // a book that is still on its way is not shown
    for (const id of ["past-orders", "past-positions", "past-balances", "past-book"]) byId(id).replaceChildren();
    setText(byId("past-at"), "");
  }

  // open sets the slider to the present. It begins with the first posting of the account.
  async open() {
    const customer = this.#customer;
    const now = Math.floor(Date.now() / 1000) - behind;
    const slider = this.#form.elements.moment;
    let first = now - 60;
    try {
      const { records } = await get(this.#path("/transactions"), { page_size: 1, sort: "asc" });
      if (records.length) first = Math.min(now, Math.floor(Date.parse(records[0].timestamp) / 1000) + 1);
    } catch {
      // the slider covers the last minute, and what is shown says why
    }
    if (customer !== this.#customer) return;
    this.#typed()();
    Object.assign(slider, { min: first, max: now, value: now });
    this.#label();
    await this.#show(this.#slid());
  }

  #path(rest) {
    return `/v1/customers/${encodeURIComponent(this.#customer)}${rest}`;
  }

  #slid() {
    return new Date(Number(this.#form.elements.moment.value) * 1000).toISOString();
  }

  #label(text = moment(Number(this.#form.elements.moment.value) * 1000)) {
    this.#form.elements.moment.setAttribute("aria-valuetext", text);
    setText(byId("past-moment"), text);
  }

  // follow moves the slider to a typed time or to the time of a typed record, also past its ends. If the time is not known, it shows
  // the record instead.
  async #follow(asOf, position, mayMove) {
    let at = asOf.includes("@") ? NaN : Date.parse(asOf);
    if (Number.isNaN(at)) {
      const tickers = await get("/v1/tickers", { as_of: position }).catch(() => []); // they have the time of the record
      at = Date.parse(tickers[0]?.timestamp);
    }
    if (!mayMove()) return;
    if (Number.isNaN(at)) return this.#label(position);
    const slider = this.#form.elements.moment;
    const value = Math.ceil(at / 1000); // the first moment of the slider that has the record
    Object.assign(slider, { min: Math.min(slider.min, value), max: Math.max(slider.max, value), value });
    this.#label(moment(at));
  }

  // show shows the account as of a time or a position. typed says that a fault belongs to the field.
  async #show(asOf, typed = false) {
    if (!this.#customer) return;
    const customer = this.#customer;
    const newest = this.#turn();
    const mayMove = typed ? this.#typed() : null;
    const query = `?as_of=${encodeURIComponent(asOf)}`;
    try {
      const balances = await exchange("GET", this.#path("/balances") + query);
      const at = `?as_of=${encodeURIComponent(balances.position)}`; // all three are as of one record
      const [orders, positions] = await Promise.all([get(this.#path("/orders") + at), get(this.#path("/positions") + at)]);
      if (customer !== this.#customer || !newest()) return;
      byId("past-result").replaceChildren();
      setText(byId("past-at"), `As of ${balances.position}`);
      const field = this.#form.elements.as_of;
      if (!typed && document.activeElement !== field) field.value = balances.position; // somebody may be typing
      this.#draw(customer, orders, positions, balances.content);
      this.#position = balances.position;
      this.#showBook();
      if (typed) this.#follow(asOf, balances.position, mayMove);
    } catch (failure) {
      if (customer !== this.#customer || !newest()) return;
      this.#clear();
      if (typed) throw failure;
      say(byId("past-result"), "bad", `${failure.message} (${failure.code ?? "ERROR"})`);
    }
  }

  // showBook shows the book of the chosen instrument, one of those that were listed. It is as of the same record as the account.
  async #showBook() {
    const newest = this.#bookTurn();
    const box = byId("past-book");
    const query = { as_of: this.#position };
    if (!query.as_of) return;
    try {
      const instruments = await get("/v1/instruments", query);
      if (!newest()) return;
      const symbol = this.#choices(instruments);
      if (!symbol) return table(box, "No instrument was listed at that moment", [], []);
      const book = await get(`/v1/orderbook/${encodeURIComponent(symbol)}`, { ...query, depth });
      if (!newest()) return;
      const rows = Array.from({ length: Math.max(book.bids.length, book.asks.length) }, (_, i) => [book.bids[i], book.asks[i]]);
      table(box, `The book of ${symbol} was empty at that moment`, [["Bid amount", 1], ["Bid", 1], ["Ask", 1], ["Ask amount", 1]],
        rows.map(([bid, ask]) => el("tr", {}, number(bid?.amount ?? ""), number(bid?.price ?? "", "up"), number(ask?.price ?? "", "down"), number(ask?.amount ?? ""))));
    } catch (failure) {
      if (newest()) box.replaceChildren(el("p", { class: "empty" }, `${failure.message} (${failure.code ?? "ERROR"})`));
    }
  }

  // choices offers instruments, and returns the one that stays or becomes chosen: the one of the page at first.
  #choices(instruments) {
    const select = this.#form.elements.symbol;
    const names = instruments.map((i) => i.symbol);
    const wanted = [select.value, byId("symbol").value].find((s) => names.includes(s)) ?? names[0] ?? "";
    if (names.join() !== [...select.options].map((o) => o.value).join()) select.replaceChildren(...names.map((n) => el("option", { value: n }, n)));
    select.value = wanted;
    return wanted;
  }

  #draw(customer, orders, positions, balances) {
    table(byId("past-orders"), "No open orders at that moment", [["Placed"], ["Symbol"], ["Side"], ["Type"], ["Price", 1], ["Trigger", 1], ["Amount", 1], ["Filled", 1], ["Status"], ["Actions", 1]],
      orders.map((o) => el("tr", { "data-key": o.code, title: o.code }, when(o.created), cell(o.symbol), side(o.action), cell(flags(o)), number(o.limit_price), trigger(o), number(o.amount), number(o.filled_amount),
        status(o), actions(explainButton(`the ${o.action} order of ${o.amount}`, () => explainOrder(customer, o.code))))));
    table(byId("past-positions"), "No positions at that moment", [["Symbol"], ["Size", 1], ["Entry", 1], ["Cost", 1], ["Changed"], ["Actions", 1]],
      positions.map((p) => el("tr", { "data-key": `${p.symbol} ${p.sequence}` }, cell(p.symbol), number(p.amount, sign(p.amount)), number(p.entry_price), amount(p.cost), when(p.updated),
        actions(explainButton(`the last change of the position in ${p.symbol}`, () => explainRecord(customer, p.sequence))))));
    table(byId("past-balances"), "No balance at that moment", [["Currency"], ["Balance", 1], ["Changed"], ["Actions", 1]],
      balances.map((b) => el("tr", { "data-key": `${b.currency} ${b.sequence}` }, cell(b.currency), number(b.balance), when(b.updated),
        actions(explainButton(`the last change of the ${b.currency} balance`, () => explainRecord(customer, b.sequence))))));
  }
}
