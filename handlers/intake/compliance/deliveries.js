// The deliveries about an owner since a case began: what receivers were told, each attempt, and another try for what is over or waits for its retry.

import { byId, el, isolated, moment, update, words } from "/console/dom.js";
import { say } from "/console/form.js";
import { all, post, receivers } from "./service.js";

const bound = 1000; // deliveries that are shown

// load returns the deliveries, where each goes, and whether there may be more.
export async function load(c) {
  const about = await all("webhook_deliveries", bound, { owner_id: c.owner_id });
  const found = about.filter((d) => d.created_at >= c.created_at);
  return { found, to: await receivers(found.map((d) => d.webhook_id)), more: found.length >= bound };
}

// again says what a replay does to a delivery of each status that takes one.
const again = { delivered: "again", dead: "again", retrying: "now" };

const levels = { delivered: "good", dead: "bad", retrying: "wait", pending: "wait", canceled: "" };

export function draw({ found, to, more }, may, done) {
  byId("deliveries-note").textContent = more ? `The newest ${bound} about this owner` : "About this owner, since the case began";
  const none = el("li", { class: "dim" }, "There are none.");
  update(byId("deliveries"), !found.length ? [none] : found.map((d) => el("li", { "data-key": `${d.id} ${d.status}`, "data-delivery": d.id },
    el("strong", { class: "grow" }, d.event_type), el("span", { class: `chip ${levels[d.status] ?? ""}` }, words(d.status)),
    el("span", { class: "note" }, moment(d.created_at), d.next_attempt_at ? `, next try ${moment(d.next_attempt_at)}` : ""),
    may && d.status in again ? el("button", { type: "button", "data-key": "replay", "aria-label": `Deliver ${again[d.status]}: ${d.event_type} of ${moment(d.created_at)}`, click: () => replay(d, done) }, `Deliver ${again[d.status]}`) : null,
    el("span", { class: "note to" }, to[d.webhook_id] ? `to ${to[d.webhook_id]}` : "to a receiver that was deleted"),
    el("ol", { class: "attempts" }, ...d.attempts.map((a) => el("li", {}, ...attempt(a)))))));
}

const attempt = (a) => [`${a.number}. ${moment(a.started_at)}, ${a.duration_ms} ms: ${a.status_code ?? a.error ?? "no answer"}`, ...(a.response ? [", “", isolated(a.response), "”"] : [])];

// isListed reports whether the page shows a delivery. It does not once another case was chosen.
const isListed = ({ id }) => [...byId("deliveries").children].some((item) => item.dataset.delivery === id);

async function replay(delivery, done) {
  const result = byId("replay-result");
  say(result, "wait", "Sending …");
  try {
    await post(`webhook_deliveries/${delivery.id}/replay`, undefined);
    if (isListed(delivery)) say(result, "good", `${delivery.event_type} is delivered ${again[delivery.status]}.`);
    await done();
  } catch (failure) {
    if (!failure.code) throw failure;
    if (isListed(delivery)) say(result, "bad", `${failure.message} (${failure.code})`);
  }
}
