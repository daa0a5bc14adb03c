// The order book: kept from a snapshot and the updates after it, each of which must follow on the one before. Where one
// does not, the book is not shown any more and asked for anew.

import { add, compare, format, grouped, parse, rounded, subtract } from "./decimal.js";
import { byId, el, onFrame, setText } from "./dom.js";
import { isWaiting } from "./entry.js";

const depth = 12; // levels shown on each side

export class Book {
  #stream;
  #topic = "";
  #sequence = -1; // -1 while there is no book
  #sides = { bid: new Map(), ask: new Map() }; // price → amount, as text
  #rows = { bid: [], ask: [] };
  #gaps = 0;
  #marked = new Map(); // own resting orders: side and price → count
  #draw = onFrame(() => this.#show());

  // picked is called with the price of a level that is clicked.
  constructor(stream, picked) {
    this.#stream = stream;
    this.#build("ask", byId("asks"), picked);
    this.#build("bid", byId("bids"), picked);
    for (const body of [byId("asks"), byId("bids")]) body.addEventListener("keydown", (event) => this.#move(event));
  }

  #build(side, body, picked) {
    for (let i = 0; i < depth; i++) {
      const price = el("button", { type: "button", class: "price", tabindex: "-1", hidden: true, click: () => picked(price.value) });
      const row = { price, amount: el("td", { class: "num" }), total: el("td", { class: "num" }) };
      row.tr = el("tr", {}, el("td", { class: side === "bid" ? "up" : "down" }, price), row.amount, row.total);
      this.#rows[side].push(row);
    }
    // The best ask is the lowest of the asks' rows: the reader's eye is at the spread.
    const rows = this.#rows[side].map((r) => r.tr);
    body.replaceChildren(...(side === "ask" ? rows.reverse() : rows));
    this.#rows[side][0].price.tabIndex = 0;
  }

  // move lets the arrow keys walk through the prices; only the best ones are in the tab order.
  #move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const all = [...byId("book").querySelectorAll("button.price")].filter((b) => b.value);
    const to = all[all.indexOf(document.activeElement) + step];
    event.preventDefault();
    to?.focus();
  }

  // follow shows another symbol's book.
  follow(symbol) {
    if (this.#topic) this.#stream.unsubscribe(this.#topic);
    this.#topic = `orderbook-stream:${symbol}`;
    this.#forget();
    this.#stream.subscribe(this.#topic, { start: () => this.#forget(), message: (m) => this.#take(m) });
  }

  // mark shows which levels hold orders of one's own.
  mark(orders) {
    this.#marked = new Map(orders.filter((o) => o.limit_price && !isWaiting(o)).map((o) => [`${o.action === "buy" ? "bid" : "ask"} ${o.limit_price}`, o]));
    this.#draw();
  }

  best(side) {
    return this.#sorted(side)[0] ?? null;
  }

  #forget() {
    this.#sequence = -1;
    this.#sides.bid.clear();
    this.#sides.ask.clear();
    this.#draw();
  }

  #take(m) {
    if (m.type === "snapshot") {
      this.#forget();
      for (const l of m.bids) this.#sides.bid.set(l.price, l.amount);
      for (const l of m.asks) this.#sides.ask.set(l.price, l.amount);
      this.#sequence = m.sequence;
    } else if (this.#sequence < 0) {
      return; // what came before the snapshot
    } else if (m.prev_sequence !== this.#sequence) {
      this.#gaps++;
      this.#forget();
      this.#stream.resubscribe(this.#topic);
    } else {
      for (const c of m.changes) {
        if (c.action === "delete") this.#sides[c.type].delete(c.price);
        else this.#sides[c.type].set(c.price, c.amount);
      }
      this.#sequence = m.sequence;
    }
    this.#draw();
  }

  #sorted(side) {
    const direction = side === "bid" ? -1 : 1;
    return [...this.#sides[side].keys()].sort((a, b) => direction * compare(a, b));
  }

  #show() {
    const asks = this.#showSide("ask");
    const bids = this.#showSide("bid");
    const most = Math.max(asks.total, bids.total, Number.MIN_VALUE);
    for (const { rows, totals } of [asks, bids]) {
      rows.forEach((row, i) => row.tr.style.setProperty("--part", `${((totals[i] ?? 0) / most) * 100}%`));
    }
    const known = this.#sequence >= 0;
    setText(byId("book-sequence"), known ? `#${this.#sequence}${this.#gaps ? ` · resynced ${this.#gaps}×` : ""}` : "");
    byId("book").setAttribute("aria-busy", String(!known));
    const spread = byId("spread");
    if (!known) setText(spread, "Waiting for the book");
    else if (!asks.best && !bids.best) setText(spread, "The book is empty");
    else if (!asks.best || !bids.best) setText(spread, asks.best ? "No bids" : "No asks");
    else {
      const wide = subtract(parse(asks.best), parse(bids.best));
      const mid = Number(asks.best) + Number(bids.best);
      setText(spread, `Spread ${grouped(format(wide))}  ·  ${((2e4 * Number(format(wide))) / mid).toFixed(1)} bp`);
    }
  }

  #showSide(side) {
    const prices = this.#sorted(side);
    const totals = [];
    let sum = { n: 0n, scale: 0 };
    this.#rows[side].forEach((row, i) => {
      const price = prices[i] ?? "";
      const amount = price && this.#sides[side].get(price);
      if (price) {
        sum = add(sum, parse(amount));
        totals.push(Number(format(sum)));
      }
      const own = price && this.#marked.has(`${side} ${price}`);
      if (row.price.value !== price || row.own !== own) {
        row.own = own;
        row.price.value = price;
        setText(row.price, price ? grouped(price) : "");
        row.price.hidden = !price;
        row.price.setAttribute("aria-label", `${side === "bid" ? "Bid" : "Ask"} ${grouped(price)}${own ? ", holds an order of yours" : ""}, use as limit price`);
        row.tr.classList.toggle("own", Boolean(own));
      }
      setText(row.amount, price ? grouped(amount) : "");
      setText(row.total, price ? grouped(format(rounded(sum, 8))) : "");
    });
    return { rows: this.#rows[side], totals, total: totals.at(-1) ?? 0, best: prices[0] };
  }
}
