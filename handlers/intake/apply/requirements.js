// What is asked of an owner. pending_requirements says which questionnaires are to be answered, and why; each becomes a form. A
// program would be told by a webhook and ask then; a page asks again every two seconds.

import { byId, el, inTurn, words } from "/console/dom.js";
import { clearFaults, say, submitting } from "/console/form.js";
import { Documents } from "./documents.js";
import { field } from "./questions.js";
import { post, read } from "./service.js";

export class Requirements {
  #drawn = ""; // what the forms are for: they are left alone while that stays the same
  #changed;
  #look = inTurn();

  constructor(owner, changed) {
    this.owner = owner; // "persons/<id>"
    this.#changed = changed;
    this.gone = false; // another owner was chosen
    byId("forms").replaceChildren();
    byId("asked-said").replaceChildren();
  }

  async refresh() {
    const current = this.#look();
    const pending = await read(`${this.owner}/pending_requirements`);
    const state = JSON.stringify(pending);
    if (this.gone || !current() || state === this.#drawn) return;
    const documents = new Documents(this.owner);
    const ids = [...new Set(pending.flatMap((p) => p.pending_questionnaire_ids))];
    const [questionnaires] = await Promise.all([Promise.all(ids.map((id) => read(`questionnaires/${id}`))), ids.length ? documents.load() : null]);
    if (this.gone || !current() || state === this.#drawn) return; // what is being filled in is not drawn again
    this.#drawn = state;
    byId("asked-said").textContent = sentence(pending);
    byId("forms").replaceChildren(...questionnaires.map((q) => this.#form(q, reasons(pending, q.id), documents)));
  }

  #form(questionnaire, why, documents) {
    const questions = [...questionnaire.data.questions].sort((a, b) => a.position - b.position);
    const fields = questions.map((question) => ({ question, ...field(question, documents) }));
    const result = el("div", { class: "result", role: "alert" });
    const form = el("form", { class: "fields questionnaire", novalidate: true, autocomplete: "off", "data-questionnaire": questionnaire.id },
      el("div", {}, el("h3", {}, questionnaire.name), el("p", { class: "hint" }, questionnaire.description), el("p", { class: "hint" }, `Asked for: ${why}`)),
      ...fields.map((f) => f.element), result,
      el("div", { class: "actions" }, el("button", { type: "submit", class: "primary" }, "Send the answers")));
    for (const mended of ["input", "change"]) form.addEventListener(mended, (event) => clearFaults(event.target.closest(".question") ?? form));
    submitting(form, result, async () => {
      const answers = fields.map((f) => ({ id: f.question.id, said: f.answer() })).filter((a) => a.said).map((a) => ({ question_id: a.id, ...a.said }));
      say(result, "wait", "Sending …");
      try {
        await post(`${this.owner}/questionnaires/${questionnaire.id}/response`, { answers });
      } catch (failure) {
        if (failure.status !== 422) throw failure;
        say(result, "bad", showFaults(form, failure, answers));
        return;
      }
      this.#drawn = "";
      await this.#changed();
      if (!this.gone) byId("asked").focus();
    });
    return form;
  }
}

const reasons = (pending, id) => pending.filter((p) => p.pending_questionnaire_ids.includes(id)).map((p) => words(p.reason)).join("; ");

function sentence(pending) {
  if (!pending.length) return "Nothing is to be answered now.";
  const video = pending.some((p) => !p.pending_questionnaire_ids.length);
  return video ? "A video identification is required. You will be told how it goes on." : "";
}

// showFaults puts what the service says next to the question that it is about. A fault of an answer names it by its place,
// ["body", "answers", 2, "answer_integer"]; a question that was not answered is named by its id, ["body", "answers", "…"].
function showFaults(form, failure, answers) {
  clearFaults(form);
  const unplaced = [];
  let first = null;
  for (const { loc, code, message } of failure.faults) {
    const named = typeof loc[2] === "number" ? answers[loc[2]]?.question_id : loc[2];
    const element = named && form.querySelector(`[data-question="${CSS.escape(named)}"]`);
    if (!element) {
      unplaced.push(message);
      continue;
    }
    const id = `fault-${named}`;
    byId(id)?.remove();
    element.append(el("span", { class: "fault", id }, code === "missing" ? "This question has to be answered." : message));
    for (const input of element.querySelectorAll("input, select, textarea")) {
      if (input.closest(".upload")) continue;
      input.setAttribute("aria-invalid", "true");
      input.setAttribute("aria-describedby", id);
    }
    const input = element.querySelector("input, select, textarea");
    if (!first || first.compareDocumentPosition(input) & Node.DOCUMENT_POSITION_PRECEDING) first = input;
  }
  first?.focus();
  const count = form.querySelectorAll(".fault").length;
  const placed = count ? [count === 1 ? "One question needs attention." : `${count} questions need attention.`] : [];
  return [...placed, ...unplaced].join(" ") || failure.message;
}
