// The operators' interface as this page uses it. A write has an Idempotency-Key, and its position in the log is waited for by the
// reads after it, so that the page shows what was done.

import { exchange, get } from "/console/api.js";

let position = null; // of the last write

export const read = (path, query = {}) => get(`/admin/v1/${path}`, query, position);

const key = () => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");

const unanswered = new Map(); // what was sent and may or may not have taken effect → its Idempotency-Key

// post returns whether the action waits for a second person.
export async function post(path, body) {
  const sent = `${path} ${JSON.stringify(body)}`;
  if (!unanswered.has(sent)) unanswered.set(sent, key());
  try {
    const answer = await exchange("POST", `/admin/v1/${path}`, body, { "Idempotency-Key": unanswered.get(sent) });
    unanswered.delete(sent);
    position = answer.position ?? position;
    return answer.status === 202;
  } catch (failure) {
    if (failure.status > 0 && failure.status < 500) unanswered.delete(sent);
    throw failure;
  }
}

export function forget() {
  position = null;
  unanswered.clear();
  urls.clear();
  questionnaires.clear();
}

// all reads a list to its end, or to a bound.
export const all = (path, bound = 1000, query = {}) => toTheEnd((paging) => read(path, { ...query, ...paging }), bound);

async function toTheEnd(page, bound) {
  const items = [];
  for (let n = 1; items.length < bound; n++) {
    const got = await page({ page: n, size: 100 });
    items.push(...got.items);
    if (n >= got.pages) break;
  }
  return items;
}

const urls = new Map(); // the id of a registration → where it delivers to; null once it is known to be gone

// receivers returns where registrations deliver to. Those of all tenants are read again when one is new.
export async function receivers(ids) {
  if (ids.some((id) => !urls.has(id))) {
    for (const w of await toTheEnd((paging) => get("/api/v1/webhooks", paging, position), 10000)) urls.set(w.id, w.url);
    for (const id of ids) if (!urls.has(id)) urls.set(id, null);
  }
  return Object.fromEntries(ids.map((id) => [id, urls.get(id)]));
}

const questionnaires = new Map(); // id → the promise of it, with all its versions; what a version asks never changes

// questionnaireOf returns a questionnaire that has a version: one that was read before that version came is read again.
export async function questionnaireOf(id, version) {
  const has = (q) => !version || q.versions.some((v) => v.id === version);
  const known = await questionnaires.get(id)?.catch(() => null);
  if (known && has(known)) return known;
  questionnaires.set(id, read(`questionnaires/${id}`));
  return questionnaires.get(id);
}
