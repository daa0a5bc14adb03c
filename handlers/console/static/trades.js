// An instrument's last trades, and everybody's liquidations, as they happen.

import { get } from "./api.js";
import { grouped } from "./decimal.js";
import { byId, clock, el, onFrame, setText, tabs, words } from "./dom.js";

const kept = 100; // trades remembered
const listed = 50; // rows listed

export class Trades {
  #stream;
  #changed;
  #topic = "";
  #symbol = "";
  #trades = []; // newest first
  #codes = new Set();
  #draw = onFrame(() => this.#show());

  // changed is called whenever there is a new trade.
  constructor(stream, changed) {
    this.#stream = stream;
    this.#changed = changed;
  }

  follow(symbol) {
    if (this.#topic) this.#stream.unsubscribe(this.#topic);
    this.#symbol = symbol;
    this.#topic = `market-trades:${symbol}`;
    this.#trades = [];
    this.#codes.clear();
    this.#draw();
    this.#stream.subscribe(this.#topic, { start: () => this.#load(symbol), message: (t) => this.#add([t]) });
  }

  // last is the last trade, with whether its price was up or down from the one before; or null.
  last() {
    const [t] = this.#trades;
    if (!t) return null;
    const before = this.#trades.find((other) => other.price !== t.price)?.price;
    return { price: t.price, direction: before ? (Number(t.price) > Number(before) ? "up" : "down") : "" };
  }

  async #load(symbol) {
    try {
      const trades = await get("/v1/market-trades", { symbol, page_size: kept });
      if (symbol === this.#symbol) this.#add(trades);
    } catch {
      // The rows are a convenience: what is new comes by the stream, which has its own way to complain.
    }
  }

  // add takes trades in any order; those that the list and the stream both gave count once.
  #add(trades) {
    const fresh = trades.filter((t) => !this.#codes.has(t.code));
    if (!fresh.length) return;
    this.#trades = [...fresh, ...this.#trades].sort((a, b) => b.sequence - a.sequence || b.ordinal - a.ordinal);
    for (const t of fresh) this.#codes.add(t.code);
    for (const t of this.#trades.splice(kept)) this.#codes.delete(t.code);
    this.#draw();
    this.#changed();
  }

  #show() {
    byId("trades").replaceChildren(...this.#trades.slice(0, listed).map((trade) =>
      el("tr", { class: trade.type === "trade" ? null : "forced", title: `${trade.timestamp} · ${words(trade.type)} · record ${trade.sequence} · ${trade.code}` },
        el("td", { class: trade.action === "buy" ? "up" : "down" }, grouped(trade.price)),
        el("td", { class: "num" }, grouped(trade.amount)),
        el("td", { class: "num dim" }, clock(trade.timestamp)))));
    byId("no-trades").hidden = this.#trades.length > 0;
  }
}

const back = 5000; // records looked back over for liquidations, when the page is opened
const who = { liquidation: "book", takeover: "insurance", auto_deleveraging: "ADL" };

export class Liquidations {
  #list = []; // newest first
  #fresh = 0; // that nobody has looked at
  #shown = false;
  #draw = onFrame(() => this.#show());

  constructor(stream) {
    const choose = tabs(byId("flow-tabs"), (view) => {
      this.#shown = view === "liquidations-view";
      if (this.#shown) this.#fresh = 0;
      this.#draw();
    });
    choose("trades-view");
    let at = null; // in the log, of the last one
    let far = back;
    stream.subscribe("liquidations", {
      resume: async () => (at ??= await from(far)),
      tooOld: () => {
        at = null; // older liquidations are not shown
        far = 0;
      },
      message: (m) => {
        at = m.position;
        this.#list.unshift(m);
        this.#list.splice(kept);
        if (!this.#shown) this.#fresh++;
        this.#draw();
      },
    }, { positions: true });
  }

  #show() {
    setText(byId("tab-liquidations"), this.#fresh ? `Liquidations (${this.#fresh})` : "Liquidations");
    byId("liquidations").replaceChildren(...this.#list.slice(0, listed).map((l) =>
      el("tr", { title: `${l.timestamp} · ${words(l.kind)} · record ${l.sequence}` },
        el("td", {}, l.symbol.replace(/USDC_PERP$/, ""), " ", el("span", { class: l.side === "sell" ? "down" : "up" }, l.side === "sell" ? "long" : "short")),
        el("td", { class: "num" }, grouped(l.price)),
        el("td", { class: "num" }, grouped(l.amount)),
        el("td", { class: "num dim" }, l.kind === "liquidation" ? clock(l.timestamp) : who[l.kind]))));
    byId("no-liquidations").hidden = this.#list.length > 0;
  }
}

// from is a position so many records back in the log, or null while nobody says where it is.
async function from(far) {
  try {
    const { journals } = await get("/v1/status");
    const trading = journals.find((j) => j.journal === "trading");
    return `trading/0@${Math.max(0, trading.sequence - far)}`;
  } catch {
    return null;
  }
}
