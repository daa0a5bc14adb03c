// The console: puts the parts together. See console.go for what it is and what it may do.

import { claims, currentToken, exchange, get, logOut, onToken, request, watchLog } from "./api.js";
import { Account } from "./account.js";
import { Book } from "./book.js";
import { plain } from "./decimal.js";
import { Chart } from "./chart.js";
import { byId, el, escaped, repeat, setText, words } from "./dom.js";
import { Entry, reference } from "./entry.js";
import { say, submitting } from "./form.js";
import { Log } from "./log.js";
import { openLogin } from "./login.js";
import { Proposals } from "./proposals.js";
import { clear, report } from "./status.js";
import { Stream } from "./stream.js";
import "./theme.js";
import { Ticker } from "./ticker.js";
import { Liquidations, Trades } from "./trades.js";

const stream = new Stream(currentToken, (reason) => logOut(reason));
const trades = new Trades(stream, () => priced());
const ticker = new Ticker(stream, () => trades.last(), () => priced());
const chart = new Chart(stream);
new Liquidations(stream);
const entry = new Entry(() => trades.last()?.price ?? ticker.mark(), (order) => account.place(order));
const book = new Book(stream, (price) => entry.usePrice(price));
const log = new Log();
const proposals = new Proposals();

// priced says that there may be another price to value an order at.
function priced() {
  ticker.changed();
  entry.priced();
}

let instruments = [];
let symbol = "";

const account = new Account(stream, ({ orders, positions, summary }) => {
  if (orders) book.mark(orders.filter((o) => o.symbol === symbol));
  if (positions) mark(positions);
  if (summary !== undefined) entry.available(summary?.available_margin);
}, (position) => {
  choose(position.symbol);
  entry.protect(position);
});

function mark(positions) {
  const own = positions.find((p) => p.symbol === symbol) ?? null;
  chart.marks(own);
  entry.holds(own);
}

// The panels stand in the page in the order in which they are shown, so that the Tab key goes the way that the eye goes.

const narrow = matchMedia("(max-width: 760px)"); // as in style.css

function arrange() {
  const focused = document.activeElement;
  const market = ["chart", "book", "trades"];
  const panels = narrow.matches ? ["account", "entry", ...market, "proposals", "log"] : [...market, "entry", "account", "proposals", "log"];
  document.querySelector("main").append(...panels.map((name) => byId(`${name}-panel`)));
  focused?.focus(); // moving an element takes the focus from it
}

narrow.addEventListener("change", arrange);
if (narrow.matches) arrange();

// Instruments.

async function loadInstruments() {
  try {
    instruments = await get("/v1/instruments");
    clear("instruments");
  } catch (failure) {
    if (failure.status) report("instruments", "bad", "No instruments", `The instruments cannot be read: ${failure.message} (${failure.code})`);
    setTimeout(loadInstruments, 3000); // watchLog says when the server is gone
    return;
  }
  const select = byId("symbol");
  const names = instruments.map((i) => i.symbol);
  if (names.join() !== [...select.options].map((o) => o.value).join()) {
    select.replaceChildren(...names.map((n) => el("option", { value: n }, n.replace("_PERP", " perpetual").replace("USDC ", "/USDC "))));
    select.value = names.includes(symbol) ? symbol : names[0] ?? "";
  }
  if (!symbol || !names.includes(symbol)) {
    const wanted = decodeURIComponent(location.hash.slice(1));
    choose(names.includes(wanted) ? wanted : names[0]);
  }
  const shown = instruments.find((i) => i.symbol === symbol);
  if (shown) entry.change(shown);
  showStatus();
}

function showStatus() {
  const status = instruments.find((i) => i.symbol === symbol)?.status;
  const chip = byId("instrument-status");
  chip.hidden = !status || status === "open";
  setText(chip, words(status));
}

function choose(name) {
  const instrument = instruments.find((i) => i.symbol === name);
  if (!instrument || name === symbol) return;
  symbol = name;
  byId("symbol").value = name;
  history.replaceState(null, "", `#${name}`);
  entry.instrument(instrument);
  setText(byId("index-of"), name);
  byId("index-result").replaceChildren();
  book.follow(name);
  trades.follow(name);
  ticker.follow(name);
  chart.follow(instrument);
  book.mark(account.orders().filter((o) => o.symbol === name));
  mark(account.positions());
}

byId("symbol").addEventListener("change", (event) => {
  choose(event.target.value);
  showStatus();
});

stream.subscribe("instruments", { start: () => loadInstruments(), message: () => loadInstruments() });

// Who is logged in, and whose account is shown.

let customer = null;
const unanswered = new Map(); // a deposit that may or may not have been made → its reference
let loads = 0; // of customers: only the last one is shown

function showCustomer(code) {
  customer = code;
  const may = (scope) => claims()?.scopes.includes(scope) ?? false;
  byId("customer").value = code ?? "";
  account.show(code, may("trade"));
  entry.trader(code, may("trade"));
  setText(byId("deposit-to"), code ?? "customer");
  byId("deposit-result").replaceChildren();
}

const mostPages = 10;

// firstCustomers reads the list page by page, up to mostPages. It stops when current returns false.
async function firstCustomers(current) {
  const customers = [];
  for (let pages = 1, after = null; ; pages++) {
    const { records, response_metadata: page } = await get("/v1/customers", { page_size: 1000, after });
    customers.push(...records);
    if (!page.has_next || pages === mostPages || !current()) return { customers, more: page.has_next };
    after = page.end_cursor;
  }
}

async function loadCustomers(prefer) {
  if (!claims()) return;
  const load = ++loads;
  const current = () => load === loads;
  const output = byId("new-customer-result");
  try {
    const { customers, more } = await firstCustomers(current);
    if (!current()) return;
    if (more) say(output, "wait", `The list has the first ${customers.length} customers.`);
    const codes = customers.map((c) => c.customer_code);
    byId("customer").replaceChildren(...customers.map((c) => el("option", { value: c.customer_code }, c.name ? `${c.customer_code} · ${escaped(c.name)}` : c.customer_code)));
    byId("customer-label").hidden = codes.length === 0;
    showCustomer(codes.includes(prefer) ? prefer : codes[0] ?? null);
    byId("logged-out").hidden = codes.length > 0;
    if (!codes.length) setText(byId("logged-out"), "There are no customers yet.");
  } catch (failure) {
    if (current()) say(output, "bad", `The customers cannot be read: ${failure.message} (${failure.code})`);
  }
}

function session(reason, changed = true) {
  const who = claims();
  const has = (scope) => who?.scopes.includes(scope) ?? false;
  const venue = (scope) => has(scope) && !who.customer; // a token that is confined to one account has no rights over the venue
  byId("open-login").hidden = Boolean(who);
  byId("logout").hidden = byId("who").hidden = !who;
  setText(byId("who"), who ? `${who.sub} · ${who.broker}` : "");
  byId("who").title = who ? `Scopes: ${who.scope}` : "";
  byId("customer-label").hidden = true;
  byId("customer").replaceChildren();
  byId("new-customer").hidden = !has("trade") || Boolean(who?.customer);
  byId("new-customer-result").replaceChildren();
  byId("tab-operator").hidden = !venue("operator");
  byId("logged-out").hidden = Boolean(who);
  setText(byId("logged-out"), "Log in to see orders, positions and balances.");
  log.allow(venue("operator") || venue("auditor"));
  proposals.allow(venue("operator") || venue("auditor"), venue("operator"));
  unanswered.clear();
  loads++; // the customers of the last user are not shown to this one
  showCustomer(null);
  if (changed) stream.reconnect();
  if (who) loadCustomers();
  if (reason) report("session", "wait", "Logged out", `${reason} Log in again.`);
  else clear("session");
  ticks();
}

onToken(session);
byId("customer").addEventListener("change", (event) => showCustomer(event.target.value));
byId("login-to-trade").addEventListener("click", openLogin);

submitting(byId("new-customer"), byId("new-customer-result"), async () => {
  const code = byId("new-customer").elements.customer_code.value.trim();
  const made = await request("POST", "/v1/customers", code ? { customer_code: code } : {});
  byId("new-customer").reset();
  byId("new-customer-result").replaceChildren();
  await loadCustomers(made.customer_code);
  if (customer !== made.customer_code) setTimeout(() => loadCustomers(made.customer_code), 1000); // the list may lag
});

// What an operator needs to get a market going.

// An operator who presses again because no answer came sends the same deposit. The server knows it by its reference, makes it once,
// and answers 200 in place of 201 if it was made before. The messages name the customer, because another one may be shown by now.
submitting(byId("deposit"), byId("deposit-result"), async () => {
  const [to, amount] = [customer, plain(byId("deposit").elements.amount.value)];
  const sent = `${to} ${amount}`;
  if (!unanswered.has(sent)) unanswered.set(sent, reference());
  const body = { currency: "USDC", amount, reference_id: unanswered.get(sent) };
  try {
    const { content, status } = await exchange("POST", `/admin/v1/customers/${encodeURIComponent(to)}/deposits`, body);
    unanswered.delete(sent);
    if (to === customer) byId("deposit").reset();
    const output = byId("deposit-result");
    if (status === 202) say(output, "wait", `The deposit of ${amount} USDC to ${to} waits for a second person.`);
    else if (status === 200) say(output, "wait", `The deposit of ${content.amount} ${content.currency} to ${to} had been made before, and was not repeated. The balance after it was ${content.balance}.`);
    else say(output, "good", `${content.amount} ${content.currency} deposited to ${to}, the balance is ${content.balance}.`);
  } catch (failure) {
    const unknown = failure.code === "OUTCOME_UNKNOWN" || failure.status === 0;
    if (unknown) failure.message = `It is not known whether the deposit of ${amount} USDC to ${to} was made. Sending the same to ${to} again is safe.`;
    else if (to !== customer) failure.message = `The deposit of ${amount} USDC to ${to} was refused: ${failure.message}`;
    if (to !== customer) failure.faults = []; // the fields are those of another deposit
    throw failure;
  }
});

submitting(byId("index-price"), byId("index-result"), async () => {
  const price = plain(byId("index-price").elements.price.value);
  const set = await request("POST", `/admin/v1/index-prices/${symbol}`, { price });
  byId("index-price").reset();
  say(byId("index-result"), "good", `Index ${set.index_price}, mark ${set.mark_price}.`);
});

// What is asked for again and again: everything else comes by the stream.

const ticking = [
  repeat(async () => log.positions(await watchLog()), 2000),
  repeat(() => log.tick(), 2000),
  repeat(() => proposals.tick(), 5000),
];
function ticks() {
  for (const tick of ticking) tick();
}

session("", false);
