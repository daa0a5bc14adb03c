// Who applies: a person or a corporate of the client's, one that is registered or a new one.

import { byId, el } from "/console/dom.js";
import { say, submitting } from "/console/form.js";
import { post, read } from "./service.js";

// The names that each kind of owner has to have. The service takes much more: see the reference.
const names = { persons: [["first_name", "First name"], ["last_name", "Last name"]], corporates: [["legal_name", "Legal name"]] };

const named = (owner) => `${owner.legal_name ?? `${owner.first_name} ${owner.last_name}`} · ${owner.external_id}`;

export class Owners {
  #chosen;

  // chosen is called with the kind and the path of who is chosen, like "persons", "persons/<id>"; the path is null for nobody.
  constructor(chosen) {
    this.#chosen = chosen;
    this.kind = "persons";
    for (const radio of byId("find").elements.kind) radio.addEventListener("change", () => this.load(radio.value));
    byId("owner").addEventListener("change", () => this.#choose());
    byId("find").addEventListener("submit", (event) => event.preventDefault());
    submitting(byId("register"), byId("register-result"), () => this.#register());
  }

  // load lists who is registered, and turns to one of them, or to the form for a new one.
  async load(kind = this.kind, prefer = null) {
    this.kind = kind;
    try {
      const page = await read(kind, { size: 100 });
      if (kind !== this.kind) return; // the other kind was chosen meanwhile
      byId("owner").replaceChildren(...page.items.map((o) => el("option", { value: o.id }, named(o))), el("option", { value: "" }, "Somebody new …"));
      byId("owners-shown").textContent = page.total > page.items.length ? `the newest ${page.items.length} of ${page.total}` : "";
      byId("names").replaceChildren(...names[kind].map(([name, label]) => el("label", { "data-field": name }, el("span", {}, label), el("input", { name }))));
      byId("find-result").replaceChildren();
      if (prefer) byId("owner").value = prefer;
      this.#choose();
    } catch (failure) {
      if (!failure.code) throw failure;
      say(byId("find-result"), "bad", `The applicants cannot be read: ${failure.message} (${failure.code})`);
    }
  }

  #choose() {
    const id = byId("owner").value;
    byId("register").hidden = id !== "";
    this.#chosen(this.kind, id ? `${this.kind}/${id}` : null);
  }

  async #register() {
    const kind = this.kind;
    const body = Object.fromEntries(new FormData(byId("register")));
    const made = await post(kind, body);
    byId("register").reset();
    byId("register-result").replaceChildren();
    await this.load(kind, made.id);
    byId("entitlement").focus();
  }
}
