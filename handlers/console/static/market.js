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

  // chart draws the trades' prices one after the other, oldest on the left, with the highest, the lowest and the last named.
  #chart() {
    const box = byId("chart");
    const [width, height] = [box.clientWidth, box.clientHeight];
    const points = this.#trades.toReversed().map((t) => ({ at: Date.parse(t.timestamp), price: Number(t.price), text: t.price }));
    if (points.length < 2 || width < 50) {
      box.replaceChildren();
      box.setAttribute("aria-label", "Too few trades for a chart");
      return;
    }
    const prices = points.map((p) => p.price);
    const [low, high] = [Math.min(...prices), Math.max(...prices)];
    const [from, to] = [points[0].at, points.at(-1).at];
    const [top, bottom, right] = [14, height - 20, width - 76];
    const x = (i) => (i / (points.length - 1)) * right; // evenly: trades come in bursts
    const y = (price) => (high === low ? (top + bottom) / 2 : bottom - ((price - low) / (high - low)) * (bottom - top));
    let line = "";
    points.forEach((p, i) => {
      line += i ? `H${x(i).toFixed(1)}V${y(p.price).toFixed(1)}` : `M0,${y(p.price).toFixed(1)}`;
    });
    const last = points.at(-1);
    const label = (price, text, kind) => svg("text", { class: kind, x: right + 8, y: y(price) + 4 }, document.createTextNode(grouped(text)));
    const rule = (price, kind) => svg("line", { class: kind, x1: 0, x2: right + 4, y1: y(price), y2: y(price) });
    const near = (price) => Math.abs(y(price) - y(last.price)) < 13;
    const highest = points.find((p) => p.price === high);
    const lowest = points.find((p) => p.price === low);
    box.replaceChildren(
      rule(high, "rule"), rule(low, "rule"),
      svg("path", { class: "area", d: `${line}V${height - 18}H0Z` }), svg("path", { class: "line", d: line }),
      rule(last.price, "rule last"), svg("circle", { class: "dot", cx: right, cy: y(last.price), r: 3 }),
      ...(near(high) ? [] : [label(high, highest.text, "scale")]), ...(near(low) ? [] : [label(low, lowest.text, "scale")]),
      svg("rect", { class: "tag", x: right + 4, y: y(last.price) - 9, width: 72, height: 18, rx: 3 }), label(last.price, last.text, "tagged"),
      svg("text", { class: "scale", x: 0, y: height - 4 }, document.createTextNode(clock(from))),
      svg("text", { class: "scale", x: right, y: height - 4, "text-anchor": "end" }, document.createTextNode(clock(to))));
    box.setAttribute("aria-label", `Prices of the last ${points.length} trades: from ${points[0].text} to ${last.text}, lowest ${lowest.text}, highest ${highest.text}`);
  }
}
