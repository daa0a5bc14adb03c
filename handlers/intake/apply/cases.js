// The cases of an owner: what was applied for, how it stands, and what has happened.

import { byId, el, inTurn, moment, words } from "/console/dom.js";
import { read } from "./service.js";
import { happened } from "./timeline.js";

export class Cases {
  #drawn = "";
  #look = inTurn();

  constructor(owner, entitlements) {
    this.owner = owner; // "persons/<id>"
    this.entitlements = entitlements;
    this.gone = false; // another owner was chosen
    byId("cases").replaceChildren();
    byId("case-said").replaceChildren();
  }

  async refresh() {
    const current = this.#look();
    const { items } = await read(`${this.owner}/entitlement_triggers`, { size: 20, page: 1 });
    const timelines = await Promise.all(items.map((t) => read(`${this.owner}/entitlement_triggers/${t.id}/timeline`)));
    const state = JSON.stringify([items, timelines]);
    if (this.gone || !current() || state === this.#drawn) return;
    this.#drawn = state;
    byId("case-said").textContent = items.length ? said(items[0]) : "Nothing has been applied for yet.";
    byId("cases").replaceChildren(...items.map((t, i) => this.#case(t, timelines[i])));
  }

  #case(trigger, timeline) {
    const entitlement = this.entitlements.find((e) => e.id === trigger.entitlement_id);
    const level = { success: "good", fail: "bad" }[trigger.result] ?? "";
    return el("article", { class: "case", "data-trigger": trigger.id },
      el("h3", {}, words(entitlement?.name) || trigger.entitlement_id, el("span", { class: `chip ${level}` }, words(trigger.status) + (trigger.result ? `, ${trigger.result}` : ""))),
      el("ol", { class: "timeline" }, ...timeline.map((event) => el("li", {}, el("time", { datetime: event.time, title: event.time }, moment(event.time)), el("span", {}, ...happened(event))))));
  }
}

// said is what a screen reader says when the newest case moves on.
function said(trigger) {
  if (trigger.result === "success") return "It is granted.";
  if (trigger.result === "fail") return "It was not granted.";
  return trigger.status === "blocked" ? "It is on hold." : "It is being worked on.";
}
