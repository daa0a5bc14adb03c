// The figures of an instrument at the top of the page, as the stream tells them, and how long it is until the next funding.

import { get } from "./api.js";
import { grouped, money, sign } from "./decimal.js";
import { byId, onFrame, setText } from "./dom.js";

export class Ticker {
  #stream;
  #symbol = "";
  #ticker = null;
  #skew = 0; // milliseconds that the server's clock is ahead of this one
  #last;
  #changed;
  #draw = onFrame(() => this.#show());

  // last returns {price, direction} of the last trade, or nothing; changed is called with each ticker.
  constructor(stream, last, changed) {
    this.#stream = stream;
    this.#last = last;
    this.#changed = changed;
    setInterval(() => this.#countdown(), 1000);
    this.#setClock();
  }

  async #setClock() {
    try {
      this.#skew = Date.parse((await get("/v1/time")).time) - Date.now();
    } catch {
      // then the countdown is by this machine's clock
    }
  }

  follow(symbol) {
    if (this.#symbol) this.#stream.unsubscribe(`ticker:${this.#symbol}`);
    this.#symbol = symbol;
    this.#ticker = null;
    this.#draw();
    this.#stream.subscribe(`ticker:${symbol}`, { message: (t) => {
      this.#ticker = t;
      this.#changed();
    } });
  }

  // mark is the mark price, or null.
  mark() {
    return this.#ticker?.mark_price ?? null;
  }

  // changed says that there was a trade.
  changed() {
    this.#draw();
  }

  #show() {
    const t = this.#ticker;
    const trade = this.#last();
    const last = trade?.price ?? t?.last_price ?? t?.mark_price ?? null;
    const price = byId("last");
    setText(price, last ? grouped(last) : "–");
    price.className = trade?.direction ?? "";
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
    const rate = byId("funding");
    setText(rate, t?.funding_rate ? percent(t.funding_rate) : "–");
    rate.className = sign(t?.funding_rate);
    rate.title = sign(t?.funding_rate) === "down" ? "Shorts pay longs" : "Longs pay shorts";
    this.#countdown();
  }

  #countdown() {
    const next = this.#ticker?.next_funding_time;
    const left = next ? Math.max(0, Math.round((Date.parse(next) - Date.now() - this.#skew) / 1000)) : null;
    const box = byId("funding-in");
    setText(box, left === null ? "–" : clock(left));
    box.title = next ?? "";
  }
}

// percent shows a rate like 0.00012500 as 0.0125%, with as many decimals as it has but no fewer than four.
function percent(rate) {
  const [whole, fraction] = rate.replace("-", "").split(".");
  const digits = `${whole}${fraction.slice(0, 2)}`.replace(/^0+(?=\d)/, "");
  return `${rate.startsWith("-") ? "−" : ""}${digits}.${fraction.slice(2, 6)}${fraction.slice(6).replace(/0+$/, "")}%`;
}

const two = (n) => String(n).padStart(2, "0");
const clock = (seconds) => `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
