// The service as this page uses it. It shows three things that whoever builds on the service needs:
//
//   1. A write carries an Idempotency-Key. If its outcome stays unknown (no answer, or 503), the same write is sent again with the
//      same key, and takes effect once.
//   2. A write is answered with the position of the log that it is at (X-Log-Position). A read that carries this position as
//      X-Min-Log-Position sees the write: lists are made from the log, and may be a moment behind.
//   3. Errors are {"detail": "A_CODE"}, or for a request that is not valid {"detail": [{loc, msg, type}, …]}, every fault at once.
//
// How the requests are sent, with the token of the login, is in the console's api.js.

import { exchange, get } from "/console/api.js";

let position = null; // of the last write

const unanswered = new Map(); // what was sent and may or may not have taken effect → its Idempotency-Key

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("");
}

async function write(path, body, what) {
  const sent = `${path} ${what}`;
  if (!unanswered.has(sent)) unanswered.set(sent, newKey());
  try {
    const answer = await exchange("POST", `/api/v1/${path}`, body, { "Idempotency-Key": unanswered.get(sent) });
    unanswered.delete(sent);
    position = answer.position ?? position;
    return answer.content;
  } catch (failure) {
    const unknown = failure.status === 0 || failure.status >= 500;
    if (!unknown) unanswered.delete(sent); // it was refused: the next try is another write
    throw failure;
  }
}

// post sends JSON.
export const post = (path, body) => write(path, body, JSON.stringify(body));

// upload sends a file of an owner. What it is is told by its category; what type it is the service tells by its content.
export function upload(owner, file, category, orientation) {
  const form = new FormData();
  form.append("category", category);
  form.append("orientation", orientation);
  form.append("file", file, file.name);
  return write(`${owner}/documents`, form, JSON.stringify([category, orientation, file.name, file.size, file.lastModified]));
}

// read gets something that holds at least what this page wrote.
export const read = (path, query = {}) => get(`/api/v1/${path}`, query, position);

// forget is for a new login: another client's writes are none of ours.
export function forget() {
  position = null;
  unanswered.clear();
}
