// A case: everything about it that is read when it is chosen, and again while it is shown.

import { byId, el, inTurn, isolated, keepingFocus, moment, setText, words } from "/console/dom.js";
import { happened } from "/apply/timeline.js";
import * as answers from "./answers.js";
import { Decide } from "./decide.js";
import * as deliveries from "./deliveries.js";
import * as documents from "./documents.js";
import { stateOf } from "./queue.js";
import { all, read } from "./service.js";

export class Case {
  #id = null;
  #owner = null; // the path of who the case is about, once it was read
  #drawn = new Map(); // part → what it was drawn from: it is left alone while that stays the same
  #look = inTurn();
  #named;
  #may = false;

  // named tells the name of an entitlement, listed what the queue knows of a case; changed is called once something was decided.
  constructor(named, listed, changed) {
    this.listed = listed;
    this.#named = named;
    this.decide = new Decide(changed);
    this.changed = changed;
  }

  // turnTo empties the panel for another case, or for none.
  turnTo(id, may) {
    this.#id = id;
    this.#may = may;
    this.#owner = null;
    this.#drawn.clear();
    documents.closeViewer();
    byId("replay-result").replaceChildren();
    byId("case").hidden = true;
    byId("no-case").hidden = Boolean(id);
    for (const part of ["facts", "owner", "answers", "documents", "timeline", "deliveries"]) byId(part).replaceChildren();
    this.decide.clear();
    byId("case-status").textContent = "";
    setText(byId("case-title"), id ? "Reading the case …" : "Choose a case");
  }

  async refresh() {
    const id = this.#id;
    if (!id) return;
    const current = this.#look();
    const c = await read(`entitlement_triggers/${id}`).catch(gone);
    if (this.#id !== id) return;
    if (!c) return this.#erased(id, current);
    const owner = this.#owner = pathOf(c);
    // The owner may be erased between two of these.
    const [who, responses, files, sent] = await Promise.all([read(owner).catch(gone), all(`${owner}/responses`).catch(gone), all(`${owner}/documents`).catch(gone), deliveries.load(c)]);
    const [answered, certificate] = await Promise.all([answers.load(responses ?? []), !who || who.state === "restricted" ? read(`${owner}/erasure`).catch(gone) : null]);
    if (this.#id !== id || !current()) return; // another case was chosen meanwhile, or this one was looked at again
    this.#part("head", c, () => this.#head(c));
    this.#part("owner", [who, certificate], () => {
      if (!who) documents.closeViewer(); // what it shows is gone
      showOwner(who, certificate);
    });
    this.#part("answers", [responses, files], () => answers.draw(owner, answered, files ?? []));
    this.#part("documents", [files], () => documents.list(owner, files ?? []));
    this.#part("timeline", c.timeline, () => byId("timeline").replaceChildren(...c.timeline.map(line)));
    this.#part("deliveries", sent, () => deliveries.draw(sent, this.#may, this.changed));
    keepingFocus(byId("case-panel"), () => this.decide.show(c, this.#may));
    byId("case").hidden = false;
  }

  // erased tells of a case that this user is not shown any more, but for the certificate.
  async #erased(id, current) {
    const listed = this.listed(id);
    const owner = this.#owner ?? (listed && pathOf(listed));
    const certificate = owner ? await read(`${owner}/erasure`).catch(gone) : null;
    if (this.#id !== id || !current()) return;
    keepingFocus(byId("case-panel"), () => {
      byId("case").hidden = true;
    });
    documents.closeViewer();
    this.#drawn.clear();
    setText(byId("case-title"), certificate ? "The data of this owner is restricted or erased" : "There is no such case");
    byId("case-status").textContent = "";
    facts("facts", certificate ? { ...erasure(certificate), [words(certificate.owner_type)]: certificate.owner_id, Case: id } : { Case: id });
  }

  #part(name, from, draw) {
    const state = JSON.stringify(from);
    if (this.#drawn.get(name) === state) return;
    this.#drawn.set(name, state);
    keepingFocus(byId("case-panel"), draw);
  }

  #head(c) {
    const state = stateOf(c);
    setText(byId("case-title"), `${this.#named(c.entitlement_id)}, ${c.owner_type} of ${c.tenant}`);
    byId("case-status").className = `chip ${state.level}`;
    byId("case-status").textContent = state.text;
    setText(byId("case-said"), `The case is ${state.text}`);
    const open = c.pending_requirements.flatMap((p, i) => [i ? "; " : null, isolated(words(p.reason))]);
    facts("facts", { "Open requirements": open.length ? open : "none", Since: moment(c.created_at), "Changed": moment(c.updated_at), Deadline: c.deadline ? moment(c.deadline) : "none", Case: c.id });
  }
}

const facts = (id, all) => byId(id).replaceChildren(...Object.entries(all).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, ...[value].flat()))));

const pathOf = (c) => `${c.owner_type}s/${c.owner_id}`;

const gone = (failure) => {
  if (failure.status === 404) return null;
  throw failure;
};

// erasure are the facts of a certificate.
const erasure = (e) => ({ "Erasure asked for": [`${moment(e.requested_at)} by ${e.requested_by}: `, isolated(e.reason)], "Kept until": moment(e.retain_until),
  Erased: e.erased_at ? moment(e.erased_at) : "not yet", Key: e.key_id ? `${e.key_id}, destroyed ${moment(e.key_destroyed_at)}` : "not destroyed yet",
  "In the log": e.positions.join(", ") });

function showOwner(who, certificate) {
  byId("owner-said").hidden = Boolean(who);
  byId("owner-said").textContent = "There is nothing left of the owner: the data was erased.";
  const { address, created_at: created, updated_at: updated, ...plain } = who ?? {};
  const known = Object.entries({ ...plain, ...address }).filter(([, value]) => value !== null && value !== undefined && value !== "");
  facts("owner", { ...Object.fromEntries(known.map(([name, value]) => [words(name), String(value)])), ...(certificate ? erasure(certificate) : {}) });
}

// line is an event of the timeline as operators see it: with who it was, and what stays inside.
function line(event) {
  const inside = [event.internal_reason, event.external_reference].filter(Boolean).flatMap((text, i) => [i ? " · " : null, isolated(text)]);
  const by = event.actor && event.actor_kind !== "system" ? ` [${event.actor}]` : "";
  return el("li", {}, el("time", { datetime: event.time, title: event.time }, moment(event.time)),
    el("span", {}, ...happened(event), by, inside.length ? el("em", { class: "inside" }, "Internal: ", ...inside) : null));
}
