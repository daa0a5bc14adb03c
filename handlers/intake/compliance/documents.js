// The documents of an owner. An image or a PDF is shown in the page; what a browser cannot show is offered to be saved. The file
// comes by a download link, like any client's.

import { byId, el, isolated, moment, restoreFocus, update, words } from "/console/dom.js";
import { say } from "/console/form.js";
import { read } from "./service.js";

const shown = { "image/png": "img", "image/jpeg": "img", "image/webp": "img", "application/pdf": "iframe" };

let wanted = 0; // counts what was asked for: of two files the later one is shown
let held = null; // the address of the file that is shown, which the browser keeps until it is given back

export function closeViewer() {
  wanted++;
  byId("viewer").hidden = true;
  byId("shown").replaceChildren();
  byId("document-result").replaceChildren();
  if (held) URL.revokeObjectURL(held);
  held = null;
}

let opener = null; // where the focus goes back to

byId("close-viewer").addEventListener("click", () => {
  closeViewer();
  opener?.focus();
  restoreFocus(opener, byId("case-panel"));
});

// link is the path of a file. The link is to this server, under whatever name it is known to it.
async function link(owner, document) {
  const { url } = await read(`${owner}/documents/${document.id}/download_link`);
  const { pathname, search } = new URL(url);
  return pathname + search;
}

// show shows a document, or says how to have it.
export async function show(owner, doc) {
  closeViewer();
  opener = document.activeElement;
  const mine = wanted;
  say(byId("document-result"), "wait", "Reading ", isolated(doc.name), " …");
  try {
    const path = await link(owner, doc);
    const response = await fetch(path, { cache: "no-store" });
    if (!response.ok) throw Object.assign(new Error(response.statusText), { code: `HTTP_${response.status}` });
    const type = response.headers.get("Content-Type").split(";")[0];
    const bytes = await response.blob();
    if (mine !== wanted) return;
    byId("document-result").replaceChildren();
    byId("viewer-title").textContent = doc.name;
    byId("save").href = path;
    byId("save").download = doc.name;
    held = URL.createObjectURL(bytes.slice(0, bytes.size, type));
    byId("shown").replaceChildren(view(type, doc));
    byId("viewer").hidden = false;
    byId("viewer").focus();
    byId("viewer").scrollIntoView({ block: "nearest" });
  } catch (failure) {
    if (!failure.code && failure.name !== "TypeError") throw failure;
    if (mine === wanted) say(byId("document-result"), "bad", isolated(doc.name), ` cannot be read: ${failure.message} (${failure.code ?? "UNREACHABLE"})`);
  }
}

function view(type, doc) {
  if (shown[type] === "img") return el("img", { src: held, alt: `${words(doc.category)}: ${doc.name}` });
  if (shown[type] === "iframe") return el("iframe", { src: held, title: doc.name });
  return el("p", { class: "empty" }, "The browser does not show this kind of file. Use Save.");
}

// list shows all documents of an owner.
export function list(owner, documents) {
  if (!documents.length) return byId("documents").replaceChildren(el("li", { class: "dim" }, "There are none."));
  update(byId("documents"), documents.map((d) => el("li", { "data-key": d.id, "data-document": d.id },
    el("span", { class: "grow" }, isolated(d.name)), el("span", { class: "chip" }, words(d.category) + (d.orientation === "undetermined" ? "" : `, ${d.orientation}`)),
    el("span", { class: "note" }, moment(d.created_at), d.valid_until ? `, until ${d.valid_until.slice(0, 10)}` : ""),
    el("button", { type: "button", "data-key": "show", "aria-label": `Show ${d.name}`, click: () => show(owner, d) }, "Show"))));
}
