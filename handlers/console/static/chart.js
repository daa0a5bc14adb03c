// The chart: an instrument's candles as they form, with their volume, a crosshair that tells what is under it, and lines at
// one's own position. Candles come from the list, and from then on by the stream; those of mark and index prices, which the
// stream does not tell, are asked for again and again. Drawn by a vendored library, see vendored/README.md.

import { CandlestickSeries, createChart, CrosshairMode, HistogramSeries, LineStyle, TickMarkType } from "./lightweight-charts.js";
import { get } from "./api.js";
import { grouped, parse } from "./decimal.js";
import { byId, el, moment, repeat, setText } from "./dom.js";

const page = 500; // candles asked for at once
const intervals = ["1m", "5m", "15m", "1h", "4h", "1d"];
const chosenKey = "perpetua.interval";

export class Chart {
  #stream;
  #box = byId("chart");
  #chart;
  #series;
  #volume;
  #instrument = null;
  #interval = intervals.includes(localStorage.getItem(chosenKey)) ? localStorage.getItem(chosenKey) : "1m";
  #price = "trade";
  #topic = "";
  #candles = new Map(); // by their time, as text
  #times = []; // of the candles drawn, in seconds, oldest first
  #older = false; // whether there may be older ones than those here
  #asking = false;
  #at = null; // the candle under the crosshair, null for the last one
  #lines = [];

  constructor(stream) {
    this.#stream = stream;
    this.#build();
    byId("intervals").replaceChildren(...intervals.map((name) => el("label", {},
      el("input", { type: "radio", name: "interval", value: name, checked: name === this.#interval, change: () => this.#choose(name, this.#price) }), el("span", {}, name))));
    byId("chart-price").addEventListener("change", (event) => this.#choose(this.#interval, event.target.value));
    this.#box.addEventListener("keydown", (event) => this.#key(event));
    this.#box.addEventListener("blur", () => this.#point(null));
    new MutationObserver(() => this.#paint()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#paint());
    repeat(() => this.#price !== "trade" && this.#load({ page_size: 3 }), 2000);
  }

  #build() {
    this.#chart = createChart(this.#box, {
      autoSize: true,
      layout: { attributionLogo: false, fontFamily: getComputedStyle(document.documentElement).fontFamily, fontSize: 11 }, // the logo is markup out of a text; the page names the maker below
      crosshair: { mode: CrosshairMode.Normal },
      timeScale: { timeVisible: true, secondsVisible: false, rightOffset: 6, barSpacing: 8, tickMarkFormatter: tick },
      localization: { timeFormatter: (time) => moment(time * 1000).replace(/:\d\d$/, ""), priceFormatter: (p) => grouped(p.toFixed(this.#decimals())) },
    });
    this.#series = this.#chart.addSeries(CandlestickSeries, { borderVisible: false });
    this.#volume = this.#chart.addSeries(HistogramSeries, { priceScaleId: "volume", priceFormat: { type: "volume" }, lastValueVisible: false, priceLineVisible: false });
    this.#chart.priceScale("volume").applyOptions({ scaleMargins: { top: 0.84, bottom: 0 } });
    this.#series.priceScale().applyOptions({ scaleMargins: { top: 0.1, bottom: 0.2 } });
    this.#chart.subscribeCrosshairMove((move) => this.#over(move.time ?? null));
    this.#chart.timeScale().subscribeVisibleLogicalRangeChange((range) => range && range.from < 20 && this.#before());
    this.#paint();
  }

  #decimals() {
    return parse(this.#instrument?.price_tick)?.scale ?? 2;
  }

  // paint takes the colours of the page.
  #paint() {
    const probe = el("span");
    this.#box.append(probe);
    const colour = (name) => {
      probe.style.color = `var(${name})`;
      return getComputedStyle(probe).color;
    };
    const [text, line, up, down, panel] = ["--dim", "--line", "--up", "--down", "--panel"].map(colour);
    this.#chart.applyOptions({ layout: { background: { color: panel }, textColor: text }, grid: { vertLines: { color: line }, horzLines: { color: line } },
      rightPriceScale: { borderColor: line }, timeScale: { borderColor: line }, crosshair: { vertLine: { color: text }, horzLine: { color: text } } });
    this.#series.applyOptions({ upColor: up, downColor: down, wickUpColor: up, wickDownColor: down });
    this.#colours = { up: colour("--up-fill"), down: colour("--down-fill"), line: colour("--accent"), bad: down };
    probe.remove();
    this.#drawAll();
  }
  #colours = {};

  // follow shows an instrument.
  follow(instrument) {
    this.#instrument = instrument;
    const tick = Number(instrument.price_tick);
    this.#series.applyOptions({ priceFormat: { type: "price", precision: this.#decimals(), minMove: tick } });
    this.#begin();
  }

  #choose(interval, price) {
    this.#interval = interval;
    this.#price = price;
    localStorage.setItem(chosenKey, interval);
    this.#begin();
  }

  #begin() {
    if (this.#topic) this.#stream.unsubscribe(this.#topic);
    this.#topic = "";
    this.#forget();
    if (!this.#instrument) return;
    if (this.#price !== "trade") return this.#load();
    this.#topic = `candles:${this.#interval}:${this.#instrument.symbol}`;
    let begun = false;
    this.#stream.subscribe(this.#topic, {
      start: () => {
        begun = false;
        this.#load();
      },
      // The list may be behind the stream. So with the first message it is read again as of that one: between the two
      // nothing is missing then.
      message: (m) => {
        if (!begun) this.#load({}, m.position);
        begun = true;
        this.#put([m]);
      },
    }, { positions: true });
  }

  #forget() {
    this.#candles.clear();
    this.#older = true;
    this.#at = null;
    this.#drawAll();
    this.#chart.timeScale().resetTimeScale();
  }

  // load reads candles, the newest unless the query says otherwise, and returns how many there were.
  async #load(query = {}, position = null) {
    const what = this.#what();
    try {
      const list = await get(`/v1/candles/${encodeURIComponent(this.#instrument.symbol)}`,
        { interval: this.#interval, price: this.#price, page_size: page, ...query }, position?.split(".")[0]);
      if (what !== this.#what()) return 0;
      this.#put(list);
      return list.length;
    } catch {
      return 0; // what is new comes by the stream, which has its own way to complain
    }
  }

  #what() {
    return `${this.#instrument?.symbol} ${this.#interval} ${this.#price}`;
  }

  // before reads older candles, when the reader comes to the left end of those here.
  async #before() {
    if (this.#asking || !this.#older || !this.#times.length) return;
    this.#asking = true;
    const what = this.#what();
    const to = new Date(this.#times[0] * 1000).toISOString().replace("Z", "000Z");
    const known = this.#candles.size;
    await this.#load({ to });
    if (what === this.#what() && this.#candles.size === known) this.#older = false;
    this.#asking = false;
  }

  // put takes candles, from the list or from the stream. Of two of one interval the one with more trades is newer.
  #put(list) {
    let last = this.#times.at(-1) ?? -Infinity;
    let all = false;
    for (const c of list) {
      const known = this.#candles.get(c.time);
      if (known && (known.trades ?? 0) > (c.trades ?? 0)) continue;
      this.#candles.set(c.time, c);
      const drawn = this.#drawn(c);
      if (list.length > 3 || drawn.time < last) all = true;
      if (all) continue;
      if (drawn.time > last) this.#times.push(drawn.time);
      last = drawn.time;
      this.#series.update(drawn);
      this.#volume.update(this.#bar(c));
    }
    if (all) this.#drawAll();
    this.#tell();
  }

  #drawn(c) {
    return { time: Date.parse(c.time) / 1000, open: Number(c.open), high: Number(c.high), low: Number(c.low), close: Number(c.close) };
  }

  #bar(c) {
    return { time: Date.parse(c.time) / 1000, value: Number(c.volume ?? 0), color: Number(c.close) >= Number(c.open) ? this.#colours.up : this.#colours.down };
  }

  #drawAll() {
    const sorted = [...this.#candles.values()].sort((a, b) => (a.time < b.time ? -1 : 1));
    this.#times = sorted.map((c) => Date.parse(c.time) / 1000);
    this.#series.setData(sorted.map((c) => this.#drawn(c)));
    this.#volume.setData(sorted.map((c) => this.#bar(c)));
    this.#tell();
  }

  // marks draws lines at one's own position: where it was entered and where it would be liquidated.
  marks(position) {
    for (const line of this.#lines) this.#series.removePriceLine(line);
    const line = (price, title, color) => this.#series.createPriceLine({ price: Number(price), title, color, lineWidth: 1, lineStyle: LineStyle.Dashed, axisLabelVisible: true });
    this.#lines = [];
    if (!position) return;
    this.#lines.push(line(position.entry_price, position.amount.startsWith("-") ? "short" : "long", this.#colours.line));
    if (position.liquidation_price) this.#lines.push(line(position.liquidation_price, "liquidation", this.#colours.bad));
  }

  #over(time) {
    this.#at = time === null ? null : new Date(time * 1000).toISOString().replace("Z", "000Z");
    this.#tell();
  }

  // tell says in words what is under the crosshair, else what the last candle is.
  #tell() {
    const c = this.#candles.get(this.#at) ?? this.#candles.get(this.#times.length ? new Date(this.#times.at(-1) * 1000).toISOString().replace("Z", "000Z") : "");
    byId("no-candles").hidden = Boolean(c);
    const box = byId("candle");
    if (!c) return box.replaceChildren();
    const kind = Number(c.close) >= Number(c.open) ? "up" : "down";
    const part = (name, value) => el("span", {}, el("span", { class: "dim" }, `${name} `), el("span", { class: kind }, grouped(value)));
    const change = ((Number(c.close) / Number(c.open) - 1) * 100).toFixed(2).replace("-", "−");
    box.replaceChildren(el("span", { class: "dim" }, moment(c.time).replace(/:\d\d$/, "")), part("O", c.open), part("H", c.high), part("L", c.low), part("C", c.close),
      el("span", { class: kind }, `${change}%`), ...(c.volume === undefined ? [] : [el("span", {}, el("span", { class: "dim" }, "Vol "), grouped(c.volume))]));
    const name = this.#instrument ? `${this.#instrument.symbol}, candles of ${this.#interval}` : "";
    setText(byId("chart-said"), document.activeElement === this.#box ? `${moment(c.time)}: open ${c.open}, high ${c.high}, low ${c.low}, close ${c.close}` : "");
    this.#box.setAttribute("aria-label", `${name}. Arrow keys move along, plus and minus zoom.`);
  }

  // key lets the arrow keys walk from candle to candle, and plus and minus zoom.
  #key(event) {
    const last = this.#times.length - 1;
    if (last < 0) return;
    const here = this.#at === null ? last + 1 : this.#times.indexOf(Date.parse(this.#at) / 1000);
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: last }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      return this.#point(this.#times[Math.max(0, Math.min(last, to))]);
    }
    if (event.key === "Escape") return this.#point(null);
    if (event.key !== "+" && event.key !== "-") return;
    const scale = this.#chart.timeScale();
    const range = scale.getVisibleLogicalRange();
    const by = ((range.to - range.from) / 2) * (event.key === "+" ? 0.2 : -0.25);
    scale.setVisibleLogicalRange({ from: range.from + by, to: range.to - by });
  }

  #point(time) {
    if (time === null) {
      this.#chart.clearCrosshairPosition();
      return this.#over(null);
    }
    const at = new Date(time * 1000).toISOString().replace("Z", "000Z");
    this.#chart.setCrosshairPosition(Number(this.#candles.get(at).close), time, this.#series);
    const scale = this.#chart.timeScale();
    const range = scale.getVisibleLogicalRange();
    const index = this.#times.indexOf(time);
    const by = index < range.from ? index - range.from - 2 : index > range.to ? index - range.to + 2 : 0;
    if (by) scale.setVisibleLogicalRange({ from: range.from + by, to: range.to + by });
    this.#over(time);
  }
}

const two = (n) => String(n).padStart(2, "0");

// tick names a place on the time scale in the reader's own time.
function tick(time, kind) {
  const d = new Date(time * 1000);
  if (kind === TickMarkType.Time || kind === TickMarkType.TimeWithSeconds) return `${two(d.getHours())}:${two(d.getMinutes())}`;
  if (kind === TickMarkType.DayOfMonth) return `${d.getDate()} ${d.toLocaleString("en", { month: "short" })}`;
  return kind === TickMarkType.Month ? d.toLocaleString("en", { month: "short" }) : String(d.getFullYear());
}
