// Proposals: actions that wait for a second person under the policy of a journal, and the latest ones that have ended. The server
// decides who may end a proposal; what it refuses is shown.

import { exchange, get } from "./api.js";
import { grouped } from "./decimal.js";
import { byId, el, escaped, inTurn, moment, setText, update, words } from "./dom.js";
import { say, submitting } from "./form.js";
import { actions, cell, table, when } from "./rows.js";

const journals = ["trading", "onboarding", "identity"]; // that may have a policy
const first = 20; // proposals of a journal that are listed at first
const most = 100; // that the server lists on a page

export class Proposals {
  #allowed = false;
  #may = false; // whether the user may end proposals
  #turn = inTurn();
  #sizes = new Map(); // journal → proposals to list
  #drawn = ""; // what is listed, so that nothing is drawn twice
  #shown = null; // the path of the proposal in the dialog

  constructor() {
    byId("proposals-status").addEventListener("change", () => {
      this.#sizes.clear();
      this.tick();
    });
    submitting(byId("proposal-end"), byId("proposal-result"), (button) => this.#end(button.value));
    byId("proposal-dialog").addEventListener("close", () => this.#closed());
  }

  // allow says whether the user may see proposals, and whether the user may end them.
  allow(sees, may) {
    this.#allowed = sees;
    this.#may = may;
    this.#sizes.clear();
    this.#turn()();
    this.#drawn = "";
    byId("proposals-panel").hidden = !sees;
    byId("proposals").replaceChildren();
    if (!sees) byId("proposal-dialog").close();
  }

  // closed forgets the proposal, so that nothing that comes late is shown. The focus goes to where it came from, or to what has been
  // drawn in its place.
  #closed() {
    const dialog = byId("proposal-dialog");
    if (dialog.open) return; // again, by now
    const path = this.#shown;
    this.#shown = null;
    for (const id of ["proposal-body", "proposal-result"]) byId(id).replaceChildren();
    const left = document.activeElement;
    if (left === document.body || dialog.contains(left)) (reviewOf(path) ?? byId("proposals-status")).focus();
  }

  // tick lists the proposals.
  async tick() {
    if (!this.#allowed) return;
    const newest = this.#turn();
    try {
      const lists = await Promise.all(journals.map((j) => this.#list(j)));
      if (!newest() || !this.#allowed) return;
      this.#draw(lists);
      setText(byId("proposals-note"), "");
    } catch (failure) {
      if (newest()) setText(byId("proposals-note"), `not up to date: ${failure.message} (${failure.code ?? "ERROR"})`);
    }
  }

  // list returns as many proposals of a journal as are to be listed, newest first, and what makes its policy weak.
  async #list(journal) {
    const wanted = this.#sizes.get(journal) ?? first;
    const { note } = await get(`/admin/v1/four-eyes/${journal}`);
    const items = [];
    let total = 1;
    for (let page = 1; items.length < Math.min(wanted, total); page++) {
      const found = await get(`/admin/v1/four-eyes/${journal}/proposals`, { status: byId("proposals-status").value, size: Math.min(wanted, most), page });
      items.push(...found.items);
      total = found.items.length ? found.total : 0;
    }
    return { journal, note, items, total };
  }

  #draw(lists) {
    const text = JSON.stringify(lists);
    if (text === this.#drawn) return;
    this.#drawn = text;
    update(byId("proposals"), lists.map((list) => {
      const box = el("div");
      table(box, "No such proposals", [["Made"], ["Action"], ["Proposed by"], ["Status"], ["Expires"], ["Review", 1]], list.items.map((p) => row(p, () => this.#open(p))));
      const left = list.total - list.items.length;
      if (left > 0) {
        box.append(el("p", { class: "empty" }, el("button", { type: "button", class: "quiet", "data-key": "more", click: () => this.#extend(list.journal) }, `Show more of ${left}`)));
      }
      return el("div", { class: "part-of", "data-key": list.journal, "data-journal": list.journal }, el("h3", {}, `Journal ${list.journal}`), list.note && el("p", { class: "hint" }, list.note), box);
    }));
  }

  #extend(journal) {
    const listed = this.#sizes.get(journal) ?? first;
    this.#sizes.set(journal, listed < most ? most : listed + most);
    this.tick();
  }

  async #open(p) {
    const path = pathOf(p);
    this.#shown = path;
    setText(byId("proposal-title"), title(p));
    byId("proposal-body").replaceChildren();
    byId("proposal-actions").hidden = byId("proposal-why").hidden = true;
    byId("proposal-end").reset();
    say(byId("proposal-result"), "wait", "Loading …");
    byId("proposal-dialog").showModal();
    try {
      await this.#load(path);
      if (this.#shown === path) byId("proposal-result").replaceChildren();
    } catch (failure) {
      if (this.#shown === path) say(byId("proposal-result"), "bad", `${failure.message} (${failure.code ?? "ERROR"})`);
    }
  }

  // load shows the whole command, with the texts that only the single proposal has. Nothing can be confirmed before that. With a log
  // position, it shows what is true there or later.
  async #load(path, position = null) {
    const p = await get(path, {}, position);
    if (this.#shown !== path) return;
    const held = byId("proposal-actions").contains(document.activeElement);
    byId("proposal-body").replaceChildren(...whole(p));
    byId("proposal-actions").hidden = byId("proposal-why").hidden = !this.#may || p.status !== "open";
    if (held && byId("proposal-actions").hidden) byId("proposal-dialog").querySelector("[data-close]").focus();
  }

  // end confirms, rejects, or withdraws the proposal in the dialog. A failure is shown too, with the proposal as it is then. If another
  // proposal has taken its place meanwhile, that one gets no message.
  async #end(verb) {
    const path = this.#shown;
    let position = null;
    try {
      const reason = verb === "confirm" ? "" : byId("proposal-end").elements.reason.value.trim();
      const ended = await exchange("POST", `${path}/${verb}`, reason ? { reason } : undefined);
      position = ended.position;
      if (this.#shown === path) say(byId("proposal-result"), "good", `The proposal is ${ended.content.status}.`);
    } catch (failure) {
      if (this.#shown === path) throw failure;
    } finally {
      this.#load(path, position).catch(() => {}); // the message about the request stays
      this.tick();
    }
  }
}

const pathOf = (p) => `/admin/v1/four-eyes/${p.journal}/proposals/${p.id}`;
const reviewOf = (path) => [...byId("proposals").querySelectorAll(".review")].find((b) => b.dataset.path === path);
const title = (p) => `${words(p.action.replaceAll(".", " "))}, ${p.journal}/0@${p.sequence}`;

const row = (p, open) => el("tr", { "data-key": p.id, title: p.id }, when(p.created), cell(p.action), cell(p.proposed_by), status(p), when(p.expires_at),
  actions(el("button", { type: "button", class: "quiet review", "data-key": "review", "data-path": pathOf(p), "aria-label": `Review ${title(p)} by ${p.proposed_by}`, click: open }, "Review")));

const status = (p) => el("td", {}, words(p.status), p.status === "open" && p.changed_sequence !== null && el("span", { class: "chip bad" }, "evidence changed"));

const facts = (pairs) => el("dl", { class: "facts" }, ...pairs.map(([name, text, title]) => el("div", { title }, el("dt", {}, name), el("dd", {}, text))));
const part = (name, ...content) => el("div", { class: "part-of" }, el("h3", {}, name), ...content);

// whole shows all that the second person needs to see.
function whole(p) {
  const reasons = ["reason", "internal_reason"].filter((name) => p.content?.[name]);
  return [
    facts([["Action", p.action], ["Status", words(p.status)], ["Proposed by", p.proposed_by], ["Made", moment(p.created), p.created], ["Expires", moment(p.expires_at), p.expires_at],
      ["Record", `#${grouped(String(p.sequence))}`], ["Decided on what was seen at", `#${grouped(String(p.seen))}`], ["About", p.objects.join(", ") || "–"]]),
    p.status === "open" && p.changed_sequence !== null && el("p", { class: "hint" }, `Record #${grouped(String(p.changed_sequence))} has changed what the proposal is about. A confirmation makes it void.`),
    p.ended && facts([["Ended by", p.ended_by || "the engine"], ["Ended", moment(p.ended), p.ended], ["Record of the end", `#${grouped(String(p.ended_sequence))}`]]),
    p.ended_reason && part("Reason of the end", el("p", {}, escaped(p.ended_reason))),
    ...reasons.map((name) => part(words(name).replace(/^./, (c) => c.toUpperCase()), el("p", {}, escaped(p.content[name])))),
    part("Command", el("pre", { tabindex: "0" }, escaped(JSON.stringify(p.content, null, 2)))),
  ].filter(Boolean);
}
