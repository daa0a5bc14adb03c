// The deliveries about an owner since a case began: what receivers were told, each attempt, and another try for what is over.

import { byId, el, moment, words } from "/console/dom.js";
import { say } from "/console/form.js";
import { post, read } from "./service.js";

const bound = 10; // pages of 100 deliveries of the whole venue that are looked through for an owner's

// load returns the deliveries, and whether there may be more.
export async function load(c) {
  const found = [];
  for (let page = 1; page <= bound; page++) {
    const { items, pages } = await read("webhook_deliveries", { page, size: 100 });
    found.push(...items.filter((d) => d.owner_id === c.owner_id && d.created_at >= c.created_at));
    if (page >= pages || items.at(-1).created_at < c.created_at) return { found, more: false };
  }
  return { found, more: true };
}

const levels = { delivered: "good", dead: "bad", retrying: "wait", pending: "wait", canceled: "" };

export function draw({ found, more }, may, done) {
  byId("deliveries-note").textContent = more ? `Of the newest ${bound * 100} deliveries to anybody` : "About this owner, since the case began";
  byId("deliveries").replaceChildren(...found.map((d) => el("li", { "data-delivery": d.id },
    el("strong", { class: "grow" }, d.event_type), el("span", { class: `chip ${levels[d.status] ?? ""}` }, words(d.status)),
    el("span", { class: "note" }, moment(d.created_at), d.next_attempt_at ? `, next try ${moment(d.next_attempt_at)}` : ""),
    may && ["delivered", "dead"].includes(d.status) ? el("button", { type: "button", "aria-label": `Deliver ${d.event_type} of ${moment(d.created_at)} again`, click: () => replay(d, done) }, "Deliver again") : null,
    el("ol", { class: "attempts" }, ...d.attempts.map((a) => el("li", {}, attempt(a)))))));
  if (!found.length) byId("deliveries").replaceChildren(el("li", { class: "dim" }, "There are none."));
}

const attempt = (a) => `${a.number}. ${moment(a.started_at)}, ${a.duration_ms} ms: ${a.status_code ?? a.error ?? "no answer"}${a.response ? `, “${a.response}”` : ""}`;

async function replay(delivery, done) {
  const result = byId("replay-result");
  say(result, "wait", "Sending …");
  try {
    await post(`webhook_deliveries/${delivery.id}/replay`, undefined);
    say(result, "good", `${delivery.event_type} is delivered again.`);
    await done();
  } catch (failure) {
    if (!failure.code) throw failure;
    say(result, "bad", `${failure.message} (${failure.code})`);
  }
}
