// Order entry.

import { request } from "./api.js";
import { format, grouped, money, multiply, parse } from "./decimal.js";
import { byId, el, setText, words } from "./dom.js";
import { clearFaults, say, submitting } from "./form.js";

const times = {
  limit: ["GTC", "IOC", "FOK", "GTD"], market: ["IOC", "FOK"], cash: ["IOC"],
};
const names = { GTC: "GTC till canceled", IOC: "IOC or cancel", FOK: "FOK fill or kill", GTD: "GTD till date" };

// utc makes a timestamp of the interface out of a local date and time.
export const utc = (local) => (local ? new Date(local).toISOString().replace(/(\.\d{3})Z$/, "$1000Z") : "");

// local is its reverse, as a datetime-local input wants it.
export function local(timestamp) {
  const d = new Date(timestamp);
  return new Date(d.getTime() - d.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}

export class Entry {
  #form = byId("entry");
  #instrument = null;
  #customer = null;
  #placed;
  #price;
  #unsure = null; // an order whose outcome is not known: {customer, body}

  // price returns a price to value a market order at; placed is called with each order that an answer holds.
  constructor(price, placed) {
    this.#price = price;
    this.#placed = placed;
    const leverage = this.#field("leverage");
    for (let i = 1; i <= 13; i++) leverage.append(el("option", { value: i }, `${i}×`));
    this.#form.addEventListener("input", () => this.#adapt());
    submitting(this.#form, byId("entry-result"), () => this.#place());
    this.#adapt();
  }

  #field(name) {
    return this.#form.elements[name];
  }

  instrument(i) {
    this.#instrument = i;
    for (const name of ["limit_price", "amount", "cash_amount"]) this.#field(name).value = "";
    this.#field("limit_price").placeholder = `in steps of ${i.price_tick}`;
    this.#field("amount").placeholder = `at least ${i.min_amount}`;
    setText(byId("price-unit"), i.quote_currency);
    setText(byId("amount-unit"), i.underlying);
    for (const option of this.#field("leverage").options) option.hidden = Number(option.value) > i.max_leverage;
    this.#forget();
    this.#adapt();
  }

  // forget takes away what was said of an order before.
  #forget() {
    clearFaults(this.#form);
    byId("entry-result").replaceChildren();
  }

  // trader says for whom orders are placed; null if nobody is logged in who may.
  trader(customer, mayTrade) {
    this.#customer = mayTrade ? customer : null;
    this.#forget();
    setText(byId("entry-customer"), customer ? (mayTrade ? `for ${customer}` : "this user may only look") : "");
    this.#adapt();
  }

  available(text) {
    setText(byId("order-available"), text ? `${money(text)} USDC` : "–");
  }

  usePrice(price) {
    this.#field("type").value = "limit";
    this.#field("limit_price").value = price;
    this.#adapt();
    this.#field(this.#sizing()).focus();
  }

  #sizing() {
    return this.#field("sizing").value;
  }

  // adapt shows the fields that go with the type, and what the order would be worth.
  #adapt() {
    const limit = this.#field("type").value === "limit";
    const cash = this.#sizing() === "cash_amount";
    const allowed = times[cash ? "cash" : limit ? "limit" : "market"];
    const time = this.#field("time_in_force");
    const before = time.value;
    if (allowed.join() !== [...time.options].map((o) => o.value).join()) {
      time.replaceChildren(...allowed.map((t) => el("option", { value: t }, names[t])));
      if (allowed.includes(before)) time.value = before;
    }
    const rests = limit && !cash && ["GTC", "GTD"].includes(time.value);
    byId("field-limit-price").hidden = !limit;
    byId("field-amount").hidden = cash;
    byId("field-cash").hidden = !cash;
    byId("field-expire").hidden = time.value !== "GTD";
    byId("field-post-only").hidden = !rests;
    const action = this.#field("action").value;
    const button = byId("place");
    button.className = action;
    setText(button, `${action === "buy" ? "Buy" : "Sell"} ${this.#instrument?.underlying ?? ""}`.trim());
    button.hidden = !this.#customer;
    byId("login-to-trade").hidden = Boolean(this.#customer) || byId("open-login").hidden;
    this.#value(limit, cash);
  }

  #value(limit, cash) {
    const price = parse(limit ? this.#field("limit_price").value : this.#price());
    const size = parse(this.#field("amount").value);
    const contract = parse(this.#instrument?.contract_size);
    let text = "–";
    if (cash) text = parse(this.#field("cash_amount").value) ? `≤ ${money(this.#field("cash_amount").value)} USDC` : "–";
    else if (price && size && contract) text = `${limit ? "" : "≈ "}${money(format(multiply(multiply(price, size), contract)))} USDC`;
    setText(byId("order-value"), text);
  }

  // body reads what is shown. An empty field is left out, so that the server says what is missing.
  #body() {
    const body = { symbol: this.#instrument?.symbol, action: this.#field("action").value, type: this.#field("type").value };
    for (const name of ["limit_price", this.#sizing(), "time_in_force", "leverage", "reference_id"]) {
      const value = this.#field(name).value.trim();
      if (value && !this.#field(name).closest("[hidden]")) body[name] = value;
    }
    const expires = this.#field("expire_time");
    if (expires.value && !expires.closest("[hidden]")) body.expire_time = utc(expires.value);
    if (this.#field("post_only").checked && !this.#field("post_only").closest("[hidden]")) body.post_only = true;
    if (this.#field("reduce_only").checked) body.reduce_only = true;
    body.reference_id ??= `console-${crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`}`;
    return body;
  }

  async #place() {
    if (!this.#customer) return byId("login-to-trade").click();
    this.#unsure = { customer: this.#customer, body: this.#body() };
    await this.#send();
  }

  // send places the order. Its reference makes repeating harmless: the server knows the order by it.
  async #send() {
    const { customer, body } = this.#unsure;
    const output = byId("entry-result");
    say(output, "wait", "Sending …");
    try {
      const order = await request("POST", `/v1/customers/${encodeURIComponent(customer)}/orders`, body);
      this.#unsure = null;
      this.#placed(order);
      say(output, order.status === "canceled" ? "wait" : "good", describe(order));
    } catch (failure) {
      if (failure.order) this.#placed(failure.order);
      if (failure.code === "OUTCOME_UNKNOWN" || failure.status === 0) {
        say(output, "bad", `It is not known whether the order was taken (${failure.code}). Repeating it is safe: it is known by its reference. `,
          el("button", { type: "button", class: "quiet", click: () => this.#again() }, "Repeat"));
        return;
      }
      throw failure;
    }
  }

  async #again() {
    try {
      await this.#send();
    } catch (failure) {
      say(byId("entry-result"), "bad", `${failure.message} (${failure.code})`);
    }
  }
}

// describe says in a sentence what became of an order.
export function describe(o) {
  const filled = `${grouped(o.filled_amount)} at ${grouped(o.average_fill_price)}`;
  const what = `${o.action === "buy" ? "Buy" : "Sell"} ${grouped(o.amount)} ${o.symbol}`;
  switch (o.status) {
    case "open": return `${what}: open${o.limit_price ? ` at ${grouped(o.limit_price)}` : ""}.`;
    case "partially_filled": return `${what}: ${filled} filled, the rest is open.`;
    case "filled": return `${what}: filled, ${filled}.`;
    default: return `${what}: ${o.status}${o.reason ? `, ${words(o.reason)}` : ""}${o.average_fill_price ? `; ${filled} filled` : ""}.`;
  }
}
