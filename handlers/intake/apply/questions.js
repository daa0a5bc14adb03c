// A field for each type of question. All are made the same way: {element, answer}. The element is what is shown; answer() returns
// the member of the answer that belongs to the type, like {answer_text: "…"}, or null if nothing was said. The service judges
// the answers, so there is no checking here.

import { el, words } from "/console/dom.js";
import { countries } from "./countries.js";
import { documentChoice } from "./documents.js";

// labelled is a question with one input, which its label belongs to.
function labelled(question, input) {
  input.id = `q-${question.id}`;
  return el("div", { class: "question", "data-question": question.id },
    el("label", { class: "asked", for: input.id }, ...asked(question)), input);
}

// grouped is a question with several inputs, of which each has a label of its own.
const grouped = (question, ...inputs) =>
  el("fieldset", { class: "question", "data-question": question.id }, el("legend", {}, ...asked(question)), ...inputs);

const asked = (question) => [question.label, question.is_optional ? el("em", {}, " (optional)") : null].filter(Boolean);

const choice = (question, type, value, label) =>
  el("label", { class: "choice" }, el("input", { type, name: `q-${question.id}`, value }), el("span", {}, label));

const chosen = (element) => [...element.querySelectorAll("input:checked")].map((input) => input.value);

// oneOf is a choice of one. What is optional can be taken back.
function oneOf(question, options, read) {
  const none = question.is_optional ? [choice(question, "radio", "", "No answer")] : [];
  const element = grouped(question, ...options.map(([value, label]) => choice(question, "radio", value, label)), ...none);
  return { element, answer: () => (chosen(element)[0] ? read(chosen(element)[0]) : null) };
}

// inOrder are a question's options as they are to be shown.
const inOrder = (question) => [...question.options].sort((a, b) => a.position - b.position).map((o) => [o.id, o.label]);

const types = {
  text(question) {
    const input = el("textarea", { rows: 2 });
    return { element: labelled(question, input), answer: () => (input.value.trim() ? { answer_text: input.value } : null) };
  },

  // What is no whole number is sent as it was typed: the service says what is wrong with it.
  integer(question) {
    const input = el("input", { inputmode: "numeric", spellcheck: "false", autocomplete: "off" });
    const number = (text) => (/^-?\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : text);
    return { element: labelled(question, input), answer: () => (input.value.trim() ? { answer_integer: number(input.value.trim()) } : null) };
  },

  bool: (question) => oneOf(question, [["true", "Yes"], ["false", "No"]], (value) => ({ answer_boolean: value === "true" })),

  country(question) {
    const input = el("select", {}, el("option", { value: "" }, "Choose a country"), ...countries.map(([code, name]) => el("option", { value: code }, name)));
    return { element: labelled(question, input), answer: () => (input.value ? { answer_country: input.value } : null) };
  },

  single_choice: (question) => oneOf(question, inOrder(question), (id) => ({ answer_option_id: id })),

  multiple_choice(question) {
    const element = grouped(question, ...inOrder(question).map(([id, label]) => choice(question, "checkbox", id, label)));
    return { element, answer: () => (chosen(element).length ? { answer_option_ids: chosen(element) } : null) };
  },

  document(question, documents) {
    const element = grouped(question, ...documentChoice(question, documents, "radio"));
    return { element, answer: () => (chosen(element)[0] ? { answer_document_id: chosen(element)[0] } : null) };
  },

  multiple_documents(question, documents) {
    const element = grouped(question, ...documentChoice(question, documents, "checkbox"));
    return { element, answer: () => (chosen(element).length ? { answer_document_ids: chosen(element) } : null) };
  },
};

// field makes the field of a question. A type that this page does not know is said, not left out.
export function field(question, documents) {
  const make = types[question.question_type];
  if (make) return make(question, documents);
  return { element: el("p", { class: "question" }, `${question.label}: ${words(question.question_type)} cannot be answered here.`), answer: () => null };
}
