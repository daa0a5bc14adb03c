// Decisions: the actions that the table of transitions has from a case's state. The service judges; what it refuses is said here.

import { byId, el, words } from "/console/dom.js";
import { clearFaults, say, submitting } from "/console/form.js";
import { clear, report } from "/console/status.js";
import { post } from "./service.js";

const open = ["pending", "ongoing", "blocked"];

// from are the states that each action is allowed in; code is what is usually written.
const actions = {
  request_information: { from: ["ongoing"], code: "MORE_NEEDED", label: "Request information" },
  request_video_identification: { from: ["ongoing"], code: "VIDEO_NEEDED", label: "Request a video identification" },
  complete_video_identification: { from: ["ongoing"], code: "VIDEO_DONE", label: "Report the video identification" },
  approve: { from: ["ongoing"], code: "APPROVED", label: "Approve" },
  reject: { from: ["ongoing"], code: "REJECTED", label: "Reject" },
  block: { from: ["ongoing"], code: "COMPLIANCE_HOLD", label: "Block" },
  release: { from: ["blocked"], code: "RELEASED", label: "Release" },
  cancel: { from: open, code: "WITHDRAWN", label: "Cancel" },
  terminate: { from: open, code: "TERMINATED", label: "Terminate" },
  fail: { from: ["pending", "ongoing"], code: "TECHNICAL_ERROR", label: "Fail" },
};

export class Decide {
  #case = null;
  #state = "";
  #shown = 0; // counts the cases that were chosen

  // done is called once something was decided; questionnaires are those that may be asked for.
  constructor(done) {
    this.questionnaires = [];
    byId("action").addEventListener("change", () => this.#turnTo());
    submitting(byId("decide"), byId("decide-result"), async () => {
      const { id } = this.#case;
      const shown = this.#shown;
      const action = byId("action").value;
      clear("decide");
      say(byId("decide-result"), "wait", "Sending …");
      let proposed = false;
      try {
        proposed = await post(`entitlement_triggers/${id}/${action}`, this.#body(action));
      } catch (failure) {
        if (shown === this.#shown || !failure.code) throw failure;
        return report("decide", "bad", "Not confirmed", `${actions[action].label}, for the case ${id}: ${failure.message} (${failure.code})`);
      }
      if (shown !== this.#shown) return done(); // the form is that of another case
      byId("decide").reset();
      this.#state = "";
      if (proposed) say(byId("decide-result"), "wait", `${actions[action].label}: proposed. A second operator confirms it in the `, el("a", { href: "/" }, "console"), ".");
      else say(byId("decide-result"), "good", `${actions[action].label}: done.`);
      await done();
    });
  }

  // clear forgets the case, and what was being written about it.
  clear() {
    this.#shown++;
    this.#case = null;
    this.#state = "";
    byId("decide").reset();
    byId("decide-result").replaceChildren();
  }

  // show offers what the case allows. What is being written is left alone while that stays the same.
  show(c, may) {
    const video = c.pending_requirements.some((p) => !p.pending_questionnaire_ids.length);
    const allowed = Object.entries(actions).filter(([name, a]) => a.from.includes(c.status) && (name !== "complete_video_identification" || video)).map(([name]) => name);
    const state = JSON.stringify([c.id, allowed, may]);
    if (this.#case?.id !== c.id) byId("decide-result").replaceChildren();
    this.#case = c;
    if (state === this.#state) return;
    this.#state = state;
    byId("decide").reset();
    clearFaults(byId("decide"));
    byId("decide").hidden = !may || !allowed.length;
    byId("no-actions").hidden = may && allowed.length > 0;
    byId("no-actions").textContent = may ? "The case is over." : "Operators decide; this user looks only.";
    byId("action").replaceChildren(...allowed.map((name) => el("option", { value: name }, actions[name].label)));
    this.#turnTo();
  }

  #turnTo() {
    const action = byId("action").value;
    if (!action) return;
    clearFaults(byId("decide"));
    byId("decide").elements.code.value = actions[action].code;
    byId("field-video").hidden = action !== "complete_video_identification";
    byId("field-questionnaires").hidden = action !== "request_information";
    byId("do").textContent = actions[action].label;
    const offered = this.questionnaires.filter((q) => q.is_published && q.owner_type === this.#case.owner_type && (!q.owner_type_id || q.owner_type_id === this.#case.owner_id));
    const [legend] = byId("field-questionnaires").children;
    byId("field-questionnaires").replaceChildren(legend,
      ...offered.map((q) => el("label", {}, el("input", { type: "checkbox", name: "questionnaire", value: q.id }), el("span", {}, q.name))));
  }

  #body(action) {
    const form = new FormData(byId("decide"));
    const body = { code: form.get("code").trim(), reason: form.get("reason").trim() };
    const optional = (name) => (form.get(name).trim() ? { [name]: form.get(name).trim() } : {});
    Object.assign(body, optional("internal_reason"));
    if (action === "request_information") body.questionnaire_ids = form.getAll("questionnaire");
    if (action === "complete_video_identification") Object.assign(body, { outcome: form.get("outcome") }, optional("external_reference"));
    return body;
  }
}

export const labelOf = (action) => actions[action]?.label ?? words(action);
