// What is asked of an owner. pending_requirements says which questionnaires are to be answered, and why; each becomes a form. A
// program would be told by a webhook and ask then; a page asks again every two seconds.

import { byId, el, inTurn, isolated, words } from "/console/dom.js";
import { clearFaults, say, submitting } from "/console/form.js";
import { Documents } from "./documents.js";
import { field } from "./questions.js";
import { post, read } from "./service.js";

export class Requirements {
  #drawn = ""; // what the forms are for: they are left alone while that stays the same
  #forms = new Map(); // the id of a questionnaire → its form, and the line that says why it is asked for
  #documents;
  #note = []; // strings and elements: what is to be known before the questions
  #changed;
  #look = inTurn();

  constructor(owner, changed) {
    this.owner = owner; // "persons/<id>"
    this.#changed = changed;
    this.#documents = new Documents(owner);
    this.gone = false; // another owner was chosen
    byId("forms").replaceChildren();
    byId("asked-said").replaceChildren();
  }

  async refresh() {
    const current = this.#look();
    const pending = await read(`${this.owner}/pending_requirements`);
    const state = JSON.stringify(pending);
    if (this.gone || !current() || state === this.#drawn) return;
    const ids = [...new Set(pending.flatMap((p) => p.pending_questionnaire_ids))];
    const fresh = ids.filter((id) => !this.#forms.has(id));
    const [questionnaires] = await Promise.all([Promise.all(fresh.map((id) => read(`questionnaires/${id}`))), fresh.length ? this.#documents.load() : null]);
    if (this.gone || !current() || state === this.#drawn) return;
    // Meanwhile another look may have made one of these forms, and an answer that was sent may have taken one away.
    for (const q of questionnaires) if (!this.#forms.has(q.id)) this.#forms.set(q.id, this.#form(q));
    this.#draw(pending, ids);
    if (ids.every((id) => this.#forms.has(id))) this.#drawn = state;
  }

  // draw shows the forms of what is asked. One that stays is not touched: somebody may be typing there.
  #draw(pending, ids) {
    byId("asked-said").replaceChildren(...this.#note, sentence(pending));
    for (const [id, { form, why }] of this.#forms) {
      if (ids.includes(id)) {
        const asked = el("p", {}, "Asked for: ", ...reasons(pending, id));
        if (why.textContent !== asked.textContent) why.replaceChildren(...asked.childNodes);
        continue;
      }
      form.remove();
      this.#forms.delete(id);
    }
    const place = byId("forms");
    ids.filter((id) => this.#forms.has(id)).forEach((id, i) => {
      const { form } = this.#forms.get(id);
      if (place.children[i] !== form) place.insertBefore(form, place.children[i] ?? null);
    });
  }

  // again has the form of a questionnaire be made anew, if it is still asked for.
  async #again(id, note = []) {
    this.#note = note;
    this.#forms.get(id)?.form.remove();
    this.#forms.delete(id);
    this.#drawn = "";
    await this.#changed();
    if (!this.gone) byId("asked").focus();
  }

  #form(questionnaire) {
    const questions = [...questionnaire.data.questions].sort((a, b) => a.position - b.position);
    const fields = questions.map((question) => ({ question, ...field(question, this.#documents) }));
    const result = el("div", { class: "result", role: "alert" });
    const why = el("p", { class: "hint" });
    const form = el("form", { class: "fields questionnaire", novalidate: true, autocomplete: "off", "data-questionnaire": questionnaire.id },
      el("div", {}, el("h3", {}, questionnaire.name), el("p", { class: "hint" }, questionnaire.description), why),
      ...fields.map((f) => f.element), result,
      el("div", { class: "actions" }, el("button", { type: "submit", class: "primary" }, "Send the answers")));
    for (const mended of ["input", "change"]) form.addEventListener(mended, (event) => clearFaults(event.target.closest(".question") ?? form));
    submitting(form, result, async () => {
      const answers = fields.map((f) => ({ id: f.question.id, said: f.answer() })).filter((a) => a.said).map((a) => ({ question_id: a.id, ...a.said }));
      say(result, "wait", "Sending …");
      try {
        await post(`${this.owner}/questionnaires/${questionnaire.id}/response`, { answers });
      } catch (failure) {
        if (failure.code === "QUESTIONNAIRE_VERSION_OUTDATED") {
          await this.#again(questionnaire.id, [isolated(questionnaire.name), " has changed meanwhile. Please answer the new version. "]);
          return;
        }
        if (failure.status !== 422) throw failure;
        say(result, "bad", showFaults(form, failure, answers));
        return;
      }
      await this.#again(questionnaire.id);
    });
    return { form, why };
  }
}

const reasons = (pending, id) => pending.filter((p) => p.pending_questionnaire_ids.includes(id)).flatMap((p, i) => [i ? "; " : null, isolated(words(p.reason))]);

function sentence(pending) {
  if (!pending.length) return "Nothing is to be answered now.";
  const video = pending.some((p) => !p.pending_questionnaire_ids.length);
  return video ? "A video identification is required. You will be told how to proceed." : "";
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
