// The market's figures, its last trades and how the price went.

import { get } from "./api.js";
import { grouped, money, sign } from "./decimal.js";
import { byId, clock, el, onFrame, setText, svg } from "./dom.js";

const kept = 300; // trades remembered
const listed = 40; // trades listed

export class Market {
  #stream;
  #topic = "";
  #symbol = "";
  #trades = []; // newest first
  #codes = new Set();
  #ticker = null;
  #draw = onFrame(() => this.#show());

  constructor(stream) {
    this.#stream = stream;
    new ResizeObserver(() => this.#draw()).observe(byId("chart"));
  }

  follow(symbol) {
    if (this.#topic) this.#stream.unsubscribe(this.#topic);
    this.#symbol = symbol;
    this.#topic = `market-trades:${symbol}`;
    this.#clear();
    this.#ticker = null;
    this.#stream.subscribe(this.#topic, { start: () => this.#load(symbol), message: (t) => this.#add([t]) });
    this.refresh();
  }

  // last is the price of the last trade, else the mark price, or null.
  last() {
    return this.#trades[0]?.price ?? this.#ticker?.mark_price ?? null;
  }

  #clear() {
    this.#trades = [];
    this.#codes.clear();
    this.#draw();
  }

  async #load(symbol) {
    try {
      const trades = await get("/v1/market-trades", { symbol, limit: kept });
      if (symbol === this.#symbol) this.#add(trades);
    } catch {
      // The rows are a convenience: what is new comes by the stream, which has its own way to complain.
    }
  }

  // add takes trades in any order; those that the list and the stream both gave count once. Trades of one record keep
  // the order in which they came.
  #add(trades) {
    const fresh = trades.filter((t) => !this.#codes.has(t.code));
    if (!fresh.length) return;
    this.#trades = [...fresh, ...this.#trades].sort((a, b) => b.sequence - a.sequence);
    for (const t of fresh) this.#codes.add(t.code);
    for (const t of this.#trades.splice(kept)) this.#codes.delete(t.code);
    this.#draw();
  }

  // refresh reads the ticker.
  async refresh() {
    const symbol = this.#symbol;
    if (!symbol) return;
    try {
      const [ticker] = await get("/v1/tickers", { symbol });
      if (symbol === this.#symbol) this.#ticker = ticker ?? null;
    } catch {
      return; // watchLog says when the server is gone
    }
    this.#draw();
  }

  #show() {
    const t = this.#ticker;
    const last = this.last();
    const direction = this.#direction();
    const price = byId("last");
    setText(price, last ? grouped(last) : "–");
    price.className = direction;
    document.title = last ? `${grouped(last)} ${this.#symbol} · Perpetua` : "Perpetua";
    setText(byId("mark"), grouped(t?.mark_price));
    setText(byId("index"), grouped(t?.index_price));
    const change = byId("change");
    setText(change, t?.change_24h ? `${sign(t.change_24h) === "up" ? "+" : ""}${grouped(t.change_24h)}%` : "–");
    change.className = sign(t?.change_24h);
    setText(byId("high"), grouped(t?.high_24h));
    setText(byId("low"), grouped(t?.low_24h));
    setText(byId("volume"), grouped(t?.volume_24h));
    setText(byId("turnover"), money(t?.turnover_24h));
    setText(byId("interest"), grouped(t?.open_interest));
    byId("trades").replaceChildren(...this.#trades.slice(0, listed).map((trade) =>
      el("tr", { class: trade.type === "trade" ? null : "forced", title: `${trade.timestamp} · record ${trade.sequence} · ${trade.code}` },
        el("td", { class: trade.action === "buy" ? "up" : "down" }, grouped(trade.price)),
        el("td", { class: "num" }, grouped(trade.amount)),
        el("td", { class: "num dim" }, clock(trade.timestamp)))));
    byId("no-trades").hidden = this.#trades.length > 0;
    this.#chart();
  }

  #direction() {
    const [a, b] = [this.#trades[0]?.price, this.#trades.find((t) => t.price !== this.#trades[0].price)?.price];
    return a && b ? (Number(a) > Number(b) ? "up" : "down") : "";
  }

  // chart draws how the price went, oldest on the left: the average of a few trades each as a line, in the band of their
  // lowest and highest, with the highest, the lowest and the last price named.
  #chart() {
    const box = byId("chart");
    const [width, height] = [box.clientWidth, box.clientHeight];
    const trades = this.#trades.toReversed();
    if (trades.length < 2 || width < 50) {
      box.replaceChildren();
      box.setAttribute("aria-label", "Too few trades for a chart");
      return;
    }
    const spans = averages(trades, Math.max(1, Math.ceil(trades.length / (width / 7))));
    const low = spans.reduce((a, b) => (b.low < a.low ? b : a));
    const high = spans.reduce((a, b) => (b.high > a.high ? b : a));
    const last = trades.at(-1);
    const [top, bottom, right] = [14, height - 24, width - 78];
    const x = (i) => ((spans.length === 1 ? 1 : i / (spans.length - 1)) * right).toFixed(1);
    const y = (price) => (high.high === low.low ? (top + bottom) / 2 : bottom - ((price - low.low) / (high.high - low.low)) * (bottom - top));
    const path = (of, value) => of.map((s) => `${x(s.at)},${y(value(s)).toFixed(1)}`).join("L");
    const at = y(Number(last.price));
    const label = (price, kind) => svg("text", { class: kind, x: right + 10, y: y(Number(price)) + 4 }, document.createTextNode(grouped(price)));
    const rule = (price, kind) => svg("line", { class: kind, x1: 0, x2: right + 4, y1: y(Number(price)), y2: y(Number(price)) });
    const far = (s) => Math.abs(y(Number(s)) - at) > 14;
    const time = (t, place) => svg("text", { class: "scale", y: height - 6, ...place }, document.createTextNode(clock(t.timestamp)));
    box.replaceChildren(
      rule(high.highest, "rule"), rule(low.lowest, "rule"),
      svg("path", { class: "band", d: `M${path(spans, (s) => s.high)}L${path(spans.toReversed(), (s) => s.low)}Z` }),
      svg("path", { class: "line", d: `M${path(spans, (s) => s.average)}` }),
      rule(last.price, "rule last"),
      ...[high.highest, low.lowest].filter(far).map((price) => label(price, "scale")),
      svg("rect", { class: "tag", x: right + 4, y: at - 9, width: 72, height: 18, rx: 3 }), label(last.price, "tagged"),
      time(trades[0], { x: 8 }), time(last, { x: right, "text-anchor": "end" }));
    box.setAttribute("aria-label", `Prices of the last ${trades.length} trades: from ${trades[0].price} to ${last.price}, lowest ${low.lowest}, highest ${high.highest}`);
  }
}

// averages sums up each so many trades: their average weighted by amount, and their lowest and highest price.
function averages(trades, each) {
  const out = [];
  for (let i = 0; i < trades.length; i += each) {
    const span = { at: out.length, low: Infinity, high: -Infinity };
    let [value, amount] = [0, 0];
    for (const t of trades.slice(i, i + each)) {
      const price = Number(t.price);
      value += price * Number(t.amount);
      amount += Number(t.amount);
      if (price < span.low) [span.low, span.lowest] = [price, t.price];
      if (price > span.high) [span.high, span.highest] = [price, t.price];
    }
    span.average = value / amount;
    out.push(span);
  }
  return out;
}
