// What an owner has answered: the questions by their labels, as the version asks that was answered, and the options by theirs.

import { byId, el, isolated, moment, words } from "/console/dom.js";
import { show } from "./documents.js";
import { questionnaireOf } from "./service.js";

// load returns each response with its questionnaire, newest first.
export const load = (responses) => Promise.all(responses.map(async (response) => ({ response, questionnaire: await questionnaireOf(response.questionnaire_id, response.questionnaire_version_id) })));

export function draw(owner, loaded, documents) {
  byId("answers").replaceChildren(...loaded.map(({ response, questionnaire }, i) => {
    const version = questionnaire.versions.find((v) => v.id === response.questionnaire_version_id);
    const newer = loaded.slice(0, i).some((other) => other.questionnaire.id === questionnaire.id);
    const questions = [...(version?.questions ?? [])].sort((a, b) => a.position - b.position);
    return el("article", { class: "response", "data-response": response.id },
      el("h3", {}, isolated(questionnaire.name), `, version ${version?.version_number ?? "?"} `, newer ? el("span", { class: "chip" }, "answered again since") : null),
      el("p", { class: "hint" }, moment(response.created_at)),
      el("dl", {}, ...questions.flatMap((q) => [el("dt", {}, q.label), el("dd", {}, ...said(owner, q, response.answers.find((a) => a.question_id === q.id), documents))])));
  }));
  if (!loaded.length) byId("answers").replaceChildren(el("p", { class: "empty" }, "Nothing is answered yet."));
}

// said is an answer as people read it.
function said(owner, question, answer, documents) {
  if (!answer) return [el("span", { class: "dim" }, "not answered")];
  const label = (id) => question.options.find((o) => o.id === id)?.label ?? id;
  const file = (id) => {
    const known = documents.find((d) => d.id === id);
    return known ? el("button", { type: "button", click: () => show(owner, known) }, isolated(known.name), ` (${words(known.category)})`) : id;
  };
  const told = {
    answer_text: (v) => [v], answer_integer: (v) => [String(v)], answer_boolean: (v) => [v ? "Yes" : "No"], answer_country: (v) => [v],
    answer_option_id: (v) => [label(v)], answer_option_ids: (v) => v.flatMap((id, i) => [i ? ", " : null, isolated(label(id))]),
    answer_document_id: (v) => [file(v)], answer_document_ids: (v) => v.map(file),
  };
  const [member, value] = Object.entries(answer).find(([name]) => name !== "question_id");
  return told[member](value);
}
