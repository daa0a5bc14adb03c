// The queue: cases by their state, oldest first, a page at a time. Nothing personal is in it.

import { byId, el, keepingFocus, moment, update, words } from "/console/dom.js";
import { clearFaults, say, showFailure } from "/console/form.js";
import { read } from "./service.js";

const size = 25;

export const levels = { pending: "", ongoing: "wait", blocked: "bad", finished: "good", failed: "bad", canceled: "", terminated: "bad" };

// stateOf is the state of a case in words, and how to show it.
export const stateOf = (c) => ({ text: words(c.status) + (c.result ? `, ${c.result}` : ""), level: c.result === "fail" ? "bad" : levels[c.status] });

export class Queue {
  #chosen;
  #page = 1;
  #drawn = "";

  // chosen is called with the id of a case.
  constructor(chosen) {
    this.#chosen = chosen;
    this.entitlements = [];
    this.items = []; // of the page that is shown
    this.current = "";
    byId("filter").addEventListener("submit", (event) => event.preventDefault());
    byId("filter").addEventListener("change", () => this.#turn(1));
    byId("earlier").addEventListener("click", () => this.#turn(this.#page - 1));
    byId("later").addEventListener("click", () => this.#turn(this.#page + 1));
  }

  // find returns what is known of a case that the queue shows.
  find(id) {
    return this.items.find((c) => c.id === id) ?? null;
  }

  name(entitlement) {
    return words(this.entitlements.find((e) => e.id === entitlement)?.name) || entitlement;
  }

  offer(entitlements) {
    this.entitlements = entitlements;
    const { value } = byId("filter-entitlement");
    byId("filter-entitlement").replaceChildren(el("option", { value: "" }, "all"), ...entitlements.map((e) => el("option", { value: e.id }, words(e.name))));
    byId("filter-entitlement").value = value;
    this.#drawn = "";
  }

  clear() {
    this.current = this.#drawn = "";
    this.#page = 1;
    this.items = [];
    byId("filter").reset();
    byId("queue").replaceChildren();
  }

  async #turn(page) {
    this.#page = Math.max(1, page);
    try {
      await this.refresh();
    } catch (failure) {
      if (!failure.code) throw failure;
      say(byId("filter-result"), "bad", showFailure(byId("filter"), failure));
    }
  }

  async refresh() {
    const query = Object.fromEntries([...new FormData(byId("filter"))].map(([name, value]) => [name, value.trim()]));
    const asked = JSON.stringify([query, this.#page]);
    this.asked = asked;
    const got = await read("entitlement_triggers", { ...query, page: this.#page, size });
    if (this.asked !== asked) return; // another filter was chosen meanwhile
    clearFaults(byId("filter"));
    byId("filter-result").replaceChildren();
    this.#draw(got);
  }

  #draw(got) {
    const state = JSON.stringify([got, this.current]);
    if (state === this.#drawn) return;
    this.#drawn = state;
    this.items = got.items;
    const from = (got.page - 1) * size;
    byId("queue-count").textContent = got.items.length ? `${from + 1}–${from + got.items.length} of ${got.total}` : `${got.total}`;
    byId("queue-empty").hidden = got.items.length > 0;
    keepingFocus(byId("queue-panel"), () => {
      byId("earlier").disabled = got.page <= 1;
      byId("later").disabled = got.page >= got.pages;
      update(byId("queue"), got.items.map((c) => el("li", { "data-key": c.id }, this.#button(c))));
    });
  }

  #button(c) {
    const state = stateOf(c);
    const due = c.deadline ? `, due ${moment(c.deadline)}` : "";
    return el("button", { type: "button", "data-key": "open", "data-case": c.id, "aria-current": c.id === this.current ? "true" : null, click: () => this.#chosen(c.id) },
      el("strong", {}, this.name(c.entitlement_id)), el("span", { class: `chip ${state.level}` }, state.text),
      el("small", {}, `${c.owner_type} of ${c.tenant}, since ${moment(c.created_at)}${due}`));
  }
}
