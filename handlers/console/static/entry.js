// Order entry.

import { get, request } from "./api.js";
import { compare, format, grouped, money, multiply, parse, plain, quotient, sign } from "./decimal.js";
import { byId, el, setText, words } from "./dom.js";
import { clearFaults, say, submitting } from "./form.js";

// kinds says of each order type which prices it takes, which times in force (the default first), whether it has a limit
// once it trades, and whether it waits for a price first.
const resting = ["GTC", "IOC", "FOK", "GTD"];
const waiting = ["IOC", "FOK", "GTD"];
const kinds = {
  limit: { prices: ["limit_price"], times: resting, limit: true },
  market: { prices: [], times: ["IOC", "FOK"] },
  stop_loss: { prices: ["trigger_price"], times: waiting, waits: true },
  stop_loss_limit: { prices: ["trigger_price", "limit_price"], times: resting, limit: true, waits: true },
  take_profit: { prices: ["trigger_price"], times: waiting, waits: true },
  take_profit_limit: { prices: ["trigger_price", "limit_price"], times: resting, limit: true, waits: true },
  take_profit_stop_loss: { prices: ["take_profit_price", "stop_loss_price"], times: waiting, waits: true },
};
const again = 3000; // milliseconds until what could not be read is asked for again
const allPrices = ["limit_price", "trigger_price", "take_profit_price", "stop_loss_price"];
const names = { GTC: "Good till canceled", IOC: "Immediate or cancel", FOK: "Fill or kill", GTD: "Good till a date" };

// utc makes a timestamp of the interface out of a local date and time. What is none, like a year of six digits, stays for the server
// to refuse.
export const utc = (local) => (Number.isNaN(Date.parse(local)) ? local : new Date(local).toISOString().replace(/(\.\d{3})Z$/, "$1000Z"));

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
  #terms = null; // the customer's {fees, margins}
  #type = ""; // that the form was adapted to last
  #unsure = null; // an order whose outcome is not known: {customer, body}

  // price returns a price to value a market order at; placed is called with each order that an answer holds.
  constructor(price, placed) {
    this.#price = price;
    this.#placed = placed;
    const leverage = this.#field("leverage");
    for (let i = 1; i <= 13; i++) leverage.append(el("option", { value: i }, `${i}×`));
    for (const event of ["input", "change"]) this.#form.addEventListener(event, () => this.#adapt());
    submitting(this.#form, byId("entry-result"), () => this.#place());
    this.#adapt();
  }

  #field(name) {
    return this.#form.elements[name];
  }

  instrument(i) {
    for (const name of [...allPrices, "amount", "cash_amount"]) this.#field(name).value = "";
    for (const name of allPrices) this.#field(name).placeholder = `in steps of ${i.price_tick}`;
    this.#field("amount").placeholder = `at least ${i.min_amount}`;
    for (const unit of this.#form.querySelectorAll(".price-unit")) setText(unit, i.quote_currency);
    setText(byId("amount-unit"), i.underlying);
    setText(byId("cash-unit"), i.quote_currency);
    this.#forget();
    this.change(i);
  }

  // change follows a change of the instrument that is shown. A leverage that it no longer permits is no longer chosen.
  change(i) {
    const before = this.#instrument;
    this.#instrument = i;
    if (before?.symbol === i.symbol && before.init_margin_req !== i.init_margin_req) this.#learn(); // the account's margins follow it
    const leverage = this.#field("leverage");
    for (const option of leverage.options) option.hidden = Number(option.value) > i.max_leverage;
    if (Number(leverage.value) > i.max_leverage) leverage.value = "";
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
    setText(byId("entry-customer"), customer ? (mayTrade ? `for ${customer}` : "read-only user") : "");
    this.#terms = null;
    this.#adapt();
    this.#learn();
  }

  // learn reads what orders cost the customer. Without it nothing is said of that, and orders can be placed all the same.
  async #learn() {
    const customer = this.#customer;
    if (!customer) return;
    const path = `/v1/customers/${encodeURIComponent(customer)}`;
    const [fees, margins] = await Promise.all([get(`${path}/fee-profile`), get(`${path}/margin-profile`)]).catch(() => []);
    if (customer !== this.#customer) return;
    if (!margins) return void setTimeout(() => customer === this.#customer && this.#learn(), again);
    this.#terms = { fees, margins };
    this.#adapt();
  }

  // priced values an order at the market anew: there may be a price now, or another one.
  priced() {
    if (!this.#kind().prices.length) this.#value(this.#kind(), this.#sizing() === "cash_amount");
  }

  available(text) {
    setText(byId("order-available"), text ? `${money(text)} USDC` : "–");
  }

  // usePrice puts a price where the type takes one; a market order becomes a limit order.
  usePrice(price) {
    if (!this.#kind().prices.length) this.#field("type").value = "limit";
    this.#field(this.#kind().prices[0]).value = price;
    this.#adapt();
    this.#field(this.#sizing()).focus();
  }

  // holds says what the customer has on the instrument that is shown: a position, or null.
  holds(position) {
    const box = byId("order-position");
    setText(box, position ? `${grouped(position.amount)} ${this.#instrument?.underlying ?? ""}` : "–");
    box.className = sign(position?.amount);
  }

  // protect fills the form in for an order that closes a position at a loss or a profit that is yet to be chosen.
  protect(position) {
    const set = { type: "take_profit_stop_loss", action: position.amount.startsWith("-") ? "buy" : "sell", sizing: "amount", amount: position.amount.replace("-", "") };
    for (const [name, value] of Object.entries(set)) this.#field(name).value = value;
    this.#field("reduce_only").checked = true;
    this.#forget();
    this.#adapt();
    byId("entry-panel").scrollIntoView({ block: "nearest" });
    this.#field("take_profit_price").focus();
  }

  #kind() {
    return kinds[this.#field("type").value];
  }

  #sizing() {
    return byId("field-sizing").hidden ? "amount" : this.#field("sizing").value;
  }

  // adapt shows the fields that go with the type, and what the order would be worth.
  #adapt() {
    const kind = this.#kind();
    byId("field-sizing").hidden = Boolean(kind.waits); // stops are sized in contracts
    const cash = this.#sizing() === "cash_amount";
    const allowed = cash ? ["IOC"] : kind.times;
    const time = this.#field("time_in_force");
    const before = this.#field("type").value === this.#type ? time.value : "";
    this.#type = this.#field("type").value;
    if (allowed.join() !== [...time.options].map((o) => o.value).join()) {
      time.replaceChildren(...allowed.map((t) => el("option", { value: t }, names[t])));
      if (allowed.includes(before)) time.value = before;
    } else if (!before) time.value = allowed[0];
    const rests = kind.limit && !cash && ["GTC", "GTD"].includes(time.value);
    for (const name of allPrices) byId(`field-${name.replaceAll("_", "-")}`).hidden = !kind.prices.includes(name);
    this.#explain(kind);
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
    this.#value(kind, cash);
  }

  // explain says which price a waiting order watches, and when it fires.
  #explain(kind) {
    const box = byId("entry-hint");
    box.hidden = !kind.waits;
    if (!kind.waits) return;
    const buys = this.#field("action").value === "buy";
    const type = this.#field("type").value;
    const [worse, better] = buys ? ["or above", "or below"] : ["or below", "or above"];
    if (type === "take_profit_stop_loss") {
      setText(box, `Triggers when the mark price is at the stop loss ${worse}, or at the take profit ${better}. The other leg is then canceled.`);
    } else setText(box, `Triggers when a trade is at the trigger price ${type.startsWith("stop") ? worse : better}.`);
  }

  #value(kind, cash) {
    const limit = kind.limit || kind.waits;
    const price = parse(limit ? this.#number(kind.prices.at(-1)) : this.#price());
    const size = parse(this.#number("amount"));
    const contract = parse(this.#instrument?.contract_size);
    let value = null;
    if (cash) value = parse(this.#number("cash_amount"));
    else if (price && size && contract) value = multiply(multiply(price, size), contract);
    const about = cash ? "≤ " : kind.limit ? "" : "≈ ";
    setText(byId("order-value"), value ? `${about}${money(format(value))} USDC` : "–");
    this.#costs(value, about);
  }

  // costs says before an order is sent what fee and margin it takes. The fee is that of a taker unless the order may only
  // rest; the margin is that of an order which closes nothing: one that does takes less, one that only reduces none.
  #costs(value, about) {
    const fee = this.#feeRate();
    const margin = this.#marginRate();
    const part = (percent) => money(format(multiply(value, { n: percent.n, scale: percent.scale + 2 })));
    const basis = fee && { n: parse(fee.rate).n, scale: parse(fee.rate).scale + 2 }; // of basis points, in percent
    setText(byId("order-fee"), value && fee ? `${fee.most ? "≤ " : about}${part(basis)} USDC` : "–");
    byId("order-fee").title = fee ? `${fee.rate} basis points, as ${fee.role}` : "";
    const reduces = this.#field("reduce_only").checked;
    setText(byId("order-margin"), !value || !margin ? "–" : reduces ? "none" : this.#kind().waits ? "when it triggers" : `≤ ${part(parse(margin))} USDC`);
    byId("order-margin").title = margin ? `${margin}% of the value` : "";
  }

  #feeRate() {
    const item = this.#terms?.fees.find((f) => f.symbol === this.#instrument?.symbol);
    if (!item) return null;
    const post = this.#field("post_only").checked && !this.#field("post_only").closest("[hidden]");
    if (post) return { rate: item.maker_fee, role: "maker" };
    const rests = !byId("field-post-only").hidden; // what rests pays as maker
    return { rate: item.taker_fee, role: "taker", most: rests && compare(item.maker_fee, item.taker_fee) < 0 };
  }

  // marginRate is the initial margin in percent: the strictest of the instrument's requirement, and the leverage that is
  // asked for or else what the account has.
  #marginRate() {
    const margins = this.#terms?.margins;
    const i = this.#instrument;
    if (!margins || !i) return null;
    const leverage = this.#field("leverage").value;
    const own = leverage ? format(quotient(parse("100"), parse(leverage), 2))
      : margins.instrument_margins.find((m) => m.symbol === i.symbol)?.initial_margin ?? margins.initial_margin;
    return compare(own, i.init_margin_req) > 0 ? own : i.init_margin_req;
  }

  #number(name) {
    return plain(this.#field(name).value);
  }

  // body reads what is shown. An empty field is left out, so that the server says what is missing.
  #body() {
    const body = { symbol: this.#instrument?.symbol, action: this.#field("action").value, type: this.#field("type").value };
    for (const name of [...allPrices, this.#sizing(), "time_in_force", "leverage", "reference_id"]) {
      const value = name === "reference_id" ? this.#field(name).value.trim() : plain(this.#field(name).value);
      if (value && !this.#field(name).closest("[hidden]")) body[name] = value;
    }
    const expires = this.#field("expire_time");
    if (expires.value && !expires.closest("[hidden]")) body.expire_time = utc(expires.value);
    if (this.#field("post_only").checked && !this.#field("post_only").closest("[hidden]")) body.post_only = true;
    if (this.#field("reduce_only").checked) body.reduce_only = true;
    body.reference_id ??= reference();
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
    const named = (message) => (customer === this.#customer ? message : `${customer}: ${message}`); // another one may be shown by now
    say(output, "wait", "Sending …");
    try {
      const order = await request("POST", `/v1/customers/${encodeURIComponent(customer)}/orders`, body);
      this.#unsure = null;
      this.#placed(order);
      if (body.leverage) this.#learn();
      say(output, order.status === "canceled" ? "wait" : "good", named(describe(order)));
    } catch (failure) {
      if (failure.order) this.#placed(failure.order);
      if (failure.code === "OUTCOME_UNKNOWN" || failure.status === 0) {
        say(output, "bad", named(`It is not known whether the order was accepted (${failure.code}). Repeating it is safe: the server recognizes it by its reference. `),
          el("button", { type: "button", class: "quiet", click: () => this.#again() }, "Repeat"));
        return;
      }
      if (customer === this.#customer) throw failure;
      say(output, "bad", named(`${failure.message} (${failure.code})`));
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

// reference makes a name for an order, by which repeating it is harmless.
export const reference = () => `console-${crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`}`;

// waitsFor says which price a stop or take profit waits for.
function waitsFor(o) {
  if (o.trigger_price) return `for ${grouped(o.trigger_price)}`;
  return `for ${grouped(o.stop_loss_price)} or ${grouped(o.take_profit_price)}`;
}

// isWaiting reports whether an order is a stop that has not fired, so that it is not in the book.
export const isWaiting = (o) => Boolean(o.trigger_price_type) && !o.triggered;

// describe says in a sentence what became of an order.
export function describe(o) {
  const filled = `${grouped(o.filled_amount)} at ${grouped(o.average_fill_price)}`;
  const what = `${o.action === "buy" ? "Buy" : "Sell"} ${grouped(o.amount)} ${o.symbol}`;
  switch (o.status) {
    case "open": return isWaiting(o) ? `${what}: waits ${waitsFor(o)}.` : `${what}: open${o.limit_price ? ` at ${grouped(o.limit_price)}` : ""}.`;
    case "partially_filled": return `${what}: ${filled} filled, the rest is open.`;
    case "filled": return `${what}: filled, ${filled}.`;
    default: return `${what}: ${o.status}${o.reason ? `, ${words(o.reason)}` : ""}${o.average_fill_price ? `; ${filled} filled` : ""}.`;
  }
}
