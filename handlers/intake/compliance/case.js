// A case: everything about it that is read when it is chosen, and again while it is shown.

import { byId, el, inTurn, moment, setText, words } from "/console/dom.js";
import { happened } from "/apply/timeline.js";
import * as answers from "./answers.js";
import { Decide } from "./decide.js";
import * as deliveries from "./deliveries.js";
import * as documents from "./documents.js";
import { stateOf } from "./queue.js";
import { all, read } from "./service.js";

export class Case {
  #id = null;
  #drawn = new Map(); // part → what it was drawn from: it is left alone while that stays the same
  #look = inTurn();
  #named;
  #may = false;

  // named tells the name of an entitlement; changed is called once something was decided.
  constructor(named, changed) {
    this.#named = named;
    this.decide = new Decide(changed);
    this.changed = changed;
  }

  // turnTo empties the panel for another case, or for none.
  turnTo(id, may) {
    this.#id = id;
    this.#may = may;
    this.#drawn.clear();
    documents.closeViewer();
    byId("replay-result").replaceChildren();
    byId("case").hidden = true;
    byId("no-case").hidden = Boolean(id);
    byId("facts").replaceChildren();
    byId("case-status").textContent = "";
    setText(byId("case-title"), id ? "Reading the case …" : "Choose a case");
  }

  async refresh() {
    const id = this.#id;
    if (!id) return;
    const current = this.#look();
    const c = await read(`entitlement_triggers/${id}`);
    const owner = `${c.owner_type}s/${c.owner_id}`;
    // An owner who is erased is gone, with all answers and documents; the case stays.
    const gone = (failure) => {
      if (failure.status === 404) return null;
      throw failure;
    };
    const [who, responses, files, sent] = await Promise.all([read(owner).catch(gone), all(`${owner}/responses`).catch(gone), all(`${owner}/documents`).catch(gone), deliveries.load(c)]);
    const answered = await answers.load(responses ?? []);
    if (this.#id !== id || !current()) return; // another case was chosen meanwhile, or this one was looked at again
    this.#part("head", c, () => this.#head(c));
    this.#part("owner", [who], () => showOwner(who));
    this.#part("answers", [responses, files], () => answers.draw(owner, answered, files ?? []));
    this.#part("documents", [files], () => documents.list(owner, files ?? []));
    this.#part("timeline", c.timeline, () => byId("timeline").replaceChildren(...c.timeline.map(line)));
    this.#part("deliveries", sent, () => deliveries.draw(sent, this.#may, this.changed));
    this.decide.show(c, this.#may);
    byId("case").hidden = false;
  }

  #part(name, from, draw) {
    const state = JSON.stringify(from);
    if (this.#drawn.get(name) === state) return;
    this.#drawn.set(name, state);
    draw();
  }

  #head(c) {
    const state = stateOf(c);
    setText(byId("case-title"), `${this.#named(c.entitlement_id)}, ${c.owner_type} of ${c.tenant}`);
    byId("case-status").className = `chip ${state.level}`;
    byId("case-status").textContent = state.text;
    setText(byId("case-said"), `The case is ${state.text}`);
    const open = c.pending_requirements.map((p) => words(p.reason)).join("; ");
    facts("facts", { "Open requirements": open || "none", Since: moment(c.created_at), "Changed": moment(c.updated_at), Deadline: c.deadline ? moment(c.deadline) : "none", Case: c.id });
  }
}

const facts = (id, all) => byId(id).replaceChildren(...Object.entries(all).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));

function showOwner(who) {
  byId("owner-said").hidden = Boolean(who);
  byId("owner-said").textContent = "There is nothing left of the owner: the data was erased.";
  const { address, created_at: created, updated_at: updated, ...plain } = who ?? {};
  const known = Object.entries({ ...plain, ...address }).filter(([, value]) => value !== null && value !== undefined && value !== "");
  facts("owner", Object.fromEntries(known.map(([name, value]) => [words(name), String(value)])));
}

// line is an event of the timeline as operators see it: with who it was, and what stays inside.
function line(event) {
  const inside = [event.internal_reason, event.external_reference].filter(Boolean).join(" · ");
  const by = event.actor && event.actor_kind !== "system" ? ` [${event.actor}]` : "";
  return el("li", {}, el("time", { datetime: event.time, title: event.time }, moment(event.time)),
    el("span", {}, happened(event) + by, inside ? el("em", { class: "inside" }, `Internal: ${inside}`) : null));
}
