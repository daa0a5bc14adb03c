// The log: where each journal and its readers stand, and the last records as they are written. The chain is checked here,
// in the browser: a record's hash must be the SHA-256 of its bytes, and its prev the hash of the record before it.

import { get } from "./api.js";
import { grouped } from "./decimal.js";
import { byId, clock, el, keepingFocus, setText } from "./dom.js";
import { clear, report } from "./status.js";

const kept = 60; // records listed

export class Log {
  #allowed = false;
  #journal = "trading";
  #last = null; // the newest record shown
  #checked = 0;
  #broken = "";

  constructor() {
    byId("records-journal").addEventListener("change", (event) => {
      this.#journal = event.target.value;
      this.#reset();
      this.tick();
    });
  }

  // allow says whether the user may see journals.
  allow(allowed) {
    this.#allowed = allowed;
    byId("records-box").hidden = !allowed;
    byId("log-hint").hidden = allowed;
    if (!allowed) clear("readers");
    this.#reset();
    byId("journals").replaceChildren();
  }

  #reset() {
    this.#last = null;
    this.#checked = 0;
    this.#broken = "";
    byId("records").replaceChildren();
    setText(byId("chain"), "");
  }

  // positions shows what /readyz says, which anybody may know.
  positions(journals) {
    if (this.#allowed || !journals) return;
    byId("journals").replaceChildren(...Object.entries(journals).sort().map(([name, at]) =>
      el("article", { class: "card" }, el("h3", {}, name), el("p", { class: "tip" }, "#", grouped(at.split("@")[1])))));
  }

  async tick() {
    if (!this.#allowed) return;
    try {
      const { items } = await get("/admin/v1/journals");
      this.#journals(items);
      if (!byId("records-pause").checked) await this.#records();
      setText(byId("log-note"), "");
    } catch (failure) {
      setText(byId("log-note"), `not up to date: ${failure.message} (${failure.code ?? "ERROR"})`);
    }
  }

  #journals(items) {
    if (!this.#allowed) return;
    byId("journals").replaceChildren(...items.map((j) => el("article", { class: "card" },
      el("h3", {}, `${j.journal}/${j.partition}`),
      el("p", { class: "tip", title: `Journal ${j.journal_id}` }, "#", grouped(String(j.sequence)), el("span", { class: "dim" }, j.time ? ` at ${clock(j.time)}` : "")),
      el("p", { class: "hash", title: `SHA-256 ${j.hash}` }, short(j.hash)),
      el("dl", {}, ...j.readers.map((r) => el("div", { class: r.error ? "bad" : null, title: r.error }, el("dt", {}, r.name),
        el("dd", {}, r.error ? "stopped" : r.lag ? `${grouped(String(r.lag))} behind` : "at the tip")))))));
    const stopped = items.flatMap((j) => j.readers.filter((r) => r.error).map((r) => `${r.name} of ${j.journal}: ${r.error}`));
    if (stopped.length) report("readers", "bad", "Reader stopped", stopped.join(" · "));
    else clear("readers");
    const select = byId("records-journal");
    const names = items.map((j) => j.journal);
    if (names.join() !== [...select.options].map((o) => o.value).join()) {
      select.replaceChildren(...names.map((n) => el("option", { value: n, selected: n === this.#journal }, n)));
    }
  }

  async #records() {
    const journal = this.#journal;
    const path = `/admin/v1/journals/${journal}/records`;
    let answer;
    try {
      answer = await get(path, this.#last ? { after: this.#last.sequence, page_size: 200 } : { page_size: kept });
    } catch (failure) {
      if (failure.code !== "RECORDS_NOT_HELD") throw failure;
      this.#reset();
      return;
    }
    const list = byId("records");
    for (const record of answer.records) {
      const fault = await check(record, this.#last);
      if (journal !== this.#journal || !this.#allowed) return;
      if (fault) this.#broken ||= `Record ${record.sequence}: ${fault}`;
      this.#checked++;
      this.#last = record;
      list.prepend(item(record, fault));
    }
    keepingFocus(list, () => {
      while (list.children.length > kept) list.lastElementChild.remove();
    });
    const chain = byId("chain");
    chain.dataset.level = this.#broken ? "bad" : "good";
    setText(chain, this.#broken || (crypto.subtle ? `✓ hashes of the ${this.#checked > 1 ? `${grouped(String(this.#checked))} records` : "record"} checked here` : "hashes can only be checked over HTTPS or on this machine"));
  }
}

const short = (hash) => `${hash.slice(0, 8)}…${hash.slice(-8)}`;

// check returns what is wrong with a record, or "".
async function check(record, before) {
  if (before && record.sequence !== before.sequence + 1) return "does not follow the record before it";
  if (before && JSON.parse(record.value).prev !== before.hash) return "its prev is not the hash of the record before it";
  if (!crypto.subtle) return ""; // browsers offer it in secure contexts only
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(record.value)));
  const hash = [...sum].map((b) => b.toString(16).padStart(2, "0")).join("");
  return hash === record.hash ? "" : "its hash is not the hash of its bytes";
}

// item shows a record in a line, which opens to the whole of it.
function item(record, fault) {
  const r = JSON.parse(record.value);
  const counts = new Map();
  for (const e of r.events ?? []) counts.set(e.type, (counts.get(e.type) ?? 0) + 1);
  const actor = r.command?.actor ?? {};
  const by = actor.sub ?? actor.system ?? "";
  const details = el("details", {},
    el("summary", {},
      el("span", { class: "seq" }, "#", grouped(String(record.sequence))),
      el("span", { class: "dim", title: r.time }, clock(r.time)),
      el("span", { class: "command" }, r.command?.type ?? ""),
      el("span", { class: r.outcome === "rejected" || r.outcome === "refused" ? "chip bad" : "chip" }, r.outcome ?? ""),
      el("span", { class: "events" }, ...[...counts].map(([type, n]) => el("span", { class: "event" }, n > 1 ? `${type} ×${n}` : type))),
      el("span", { class: "dim by" }, by),
      el("span", { class: `hash${fault ? " bad" : ""}`, title: `SHA-256 ${record.hash}${fault ? `: ${fault}` : ""}` }, fault ? "✗ " : "", short(record.hash))));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) {
      details.append(el("p", { class: "hash whole" }, `offset ${record.offset} · SHA-256 ${record.hash}`), el("pre", { tabindex: "0" }, JSON.stringify(r, null, 2)));
    }
  }, { once: true });
  return el("li", { "data-sequence": record.sequence }, details);
}
