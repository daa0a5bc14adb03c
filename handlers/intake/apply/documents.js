// The documents of an owner, and the field that takes one or several of them: those that are there, and a file to upload.

import { el, isolated, words } from "/console/dom.js";
import { say } from "/console/form.js";
import { read, upload } from "./service.js";

// What a file can be, as the service names it.
const categories = ("undetermined id_document residence_permit poa selfie source_of_funds bank_statement cv pep_questionnaire power_of_attorney contract "
  + "article_of_association commercial_register_extract transparency_register_extract organizational_chart financial_statement proof_of_capability "
  + "proof_of_license aml_policy carf_self_declaration retail_edd corporate_edd partner_cdd_report rfi_document transaction_history trading_history "
  + "kyt_report tx_monitoring_report sar onboarding_report termination_notice other_corporate_document other_retail_document generic").split(" ");
const orientations = ["undetermined", "front", "back"];

// Documents are those of one owner. Each field shows all of them, and an upload at one field is there at all.
export class Documents {
  #lists = []; // what to call with a document that has come

  constructor(owner) {
    this.owner = owner; // "persons/<id>"
    this.all = [];
  }

  async load() {
    this.all = (await read(`${this.owner}/documents`, { size: 100 })).items;
  }

  onAdded(call) {
    this.#lists.push(call);
  }

  async add(file, category, orientation) {
    const document = await upload(this.owner, file, category, orientation);
    this.all.unshift(document);
    for (const call of this.#lists) call(document);
    return document;
  }
}

const options = (values, none) => values.map((v) => el("option", { value: v }, v === "undetermined" ? none : words(v)));

// documentChoice returns the inputs of a question for documents: type "radio" for one, "checkbox" for several.
export function documentChoice(question, documents, type) {
  const list = el("div");
  const show = (document) => {
    const input = el("input", { type, name: `q-${question.id}`, value: document.id });
    list.prepend(el("label", { class: "choice" }, input, el("span", {}, isolated(document.name), el("em", {}, ` · ${words(document.category)}`))));
    return input;
  };
  for (const document of [...documents.all].reverse()) show(document);

  const category = el("select", {}, ...options(categories, "other"));
  if (categories.includes(question.value)) category.value = question.value;
  const side = el("select", {}, ...options(orientations, "not specified"));
  const file = el("input", { type: "file" });
  const result = el("div", { class: "result", role: "status" });
  let own = false; // the document that comes is from this field, and chosen by that
  documents.onAdded((document) => {
    const input = show(document);
    if (!own) return;
    input.checked = true;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });
  file.addEventListener("change", async () => {
    if (!file.files.length) return;
    const [one] = file.files;
    file.disabled = true;
    say(result, "wait", "Uploading ", isolated(one.name), " …");
    own = true;
    try {
      await documents.add(one, category.value, side.value);
      say(result, "good", isolated(one.name), " is uploaded and chosen.");
    } catch (failure) {
      if (!failure.code) throw failure;
      say(result, "bad", isolated(one.name), ` was not taken: ${refusals[failure.code] ?? failure.message} (${failure.code})`);
    } finally {
      own = false;
      file.disabled = false;
      file.value = "";
      file.focus();
    }
  });
  return [list, el("div", { class: "upload" },
    el("label", {}, el("span", {}, "Kind of document"), category), el("label", {}, el("span", {}, "Side"), side),
    el("label", {}, el("span", {}, "Upload a file"), file), result)];
}

const refusals = {
  UNSUPPORTED_MEDIA_TYPE: "The file must be a complete PDF, JPEG, PNG, WebP or HEIC.",
  DOCUMENT_TOO_LARGE: "The file is larger than 20 MiB.",
  DOCUMENT_INFECTED: "The file contains a virus.",
};
