// Verifies proofs of liabilities. streams/README.md has the form, under "Proof of liabilities".

import { bigEndian, decode, equal, hmac, insist, join, only, sha256, utf8 } from "./bytes.js";

const name = "proof of liabilities";

function number(text, what) {
  insist(/^(0|[1-9][0-9]*)$/.test(text), `${what}: this is not a whole number`);
  return BigInt(text);
}

function codeOf(customer) {
  const code = utf8(customer);
  insist(code.length >= 1 && code.length <= 32 && !code.includes(0), "customer_code: this is no code of a customer");
  return join(code, new Uint8Array(32 - code.length));
}

function balance(text, what) {
  insist(/^(0|-?[1-9][0-9]*)$/.test(text), `${what}: this is not a whole number`);
  return BigInt(text);
}

function hash(text, what) {
  const bytes = decode(text, what);
  insist(bytes.length === 32, `${what}: it has ${bytes.length} bytes`);
  return bytes;
}

const accounts = ["clearing", "fees", "funding", "insurance", "rounding"];

async function parent(left, right) {
  const sum = left.sum + right.sum;
  bigEndian(sum, 16);
  return { sum, hash: await sha256(new Uint8Array([1]), left.hash, bigEndian(left.sum, 16), right.hash, bigEndian(right.sum, 16)) };
}

// words returns an HMAC as four numbers.
async function words(key, label) {
  const view = new DataView((await hmac(key, utf8(label))).buffer);
  return [0, 8, 16, 24].map((at) => view.getBigUint64(at));
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

// split returns the parts of a value in the order of their leaves.
async function split(nonce, value) {
  const random = await words(nonce, "parts\0");
  const cuts = random.slice(1, 2 + Number(random[0] % 3n)).map((r) => (value * r) >> 64n).sort(compare);
  const order = await words(nonce, "order\0");
  return [...cuts, value].map((to, i) => ({ value: to - (i ? cuts[i - 1] : 0n), order: order[i] }))
    .sort((a, b) => compare(a.order, b.order)).map((part) => part.value); // a stable sort
}

// verifyLiability verifies a proof against a recorded statement, or against its own if that is null. It returns the statement.
export async function verifyLiability(proof, statement) {
  insist(proof.format === "perpetua-liabilities-v1", `format: ${proof.format} is unknown`);
  only(proof, ["format", "recorded", "customer_code", "nonce", "value", "parts"], name);
  const recorded = proof.recorded;
  insist(recorded?.venue && Array.isArray(proof.parts) && typeof proof.customer_code === "string", `${name}: recorded, parts and customer_code are needed`);
  insist(Object.keys(recorded.venue).sort().join() === accounts.join(), `venue: it has other accounts than ${accounts.join(", ")}`);
  const venue = accounts.reduce((sum, name) => sum + balance(recorded.venue[name], `venue.${name}`), 0n);
  const total = number(recorded.total, "total");
  insist(total - number(recorded.deficits, "deficits") + venue === balance(recorded.net_paid_in, "net_paid_in"), "recorded: total − deficits + venue is not what was paid in");
  insist(proof.parts.length >= 2 && proof.parts.length <= 4, "parts: there are not two to four");
  const nonce = hash(proof.nonce, "nonce");
  const subNonce = await hmac(nonce, bigEndian(recorded.position, 8), codeOf(proof.customer_code));
  const root = hash(recorded.root, "root");
  let [last, sum] = [-1, 0n];
  for (const [i, part] of proof.parts.entries()) {
    const what = `parts[${i}]`;
    only(part, ["index", "value", "path"], what);
    insist(Number.isInteger(part.index) && part.index > last && part.index < recorded.leaves && 2 ** part.path.length === recorded.leaves, `${what}: index ${part.index} of ${recorded.leaves}`);
    const value = number(part.value, what);
    let at = { sum: value, hash: await hmac(subNonce, bigEndian(value, 16), bigEndian(part.index, 8)) };
    for (const [height, step] of part.path.entries()) {
      insist(step.length === 2, `${what}: a step has ${step.length} members`);
      const other = { sum: number(step[0], what), hash: hash(step[1], what) };
      at = Math.floor(part.index / 2 ** height) % 2 ? await parent(other, at) : await parent(at, other);
    }
    insist(at.sum === total && equal(at.hash, root), `${what}: the path leads to another root than the recorded one`);
    [last, sum] = [part.index, sum + value];
  }
  insist(sum === number(proof.value, "value"), "value: the parts have another sum");
  const parts = await split(nonce, sum);
  insist(parts.length === proof.parts.length && parts.every((value, i) => value === BigInt(proof.parts[i].value)), "parts: the nonce splits the value into others");
  if (statement) {
    for (const member of new Set([...Object.keys(recorded), ...Object.keys(statement)])) {
      const [here, there] = [recorded, statement].map((of) => JSON.stringify(of[member]));
      insist(here === there, `${member}: the recorded statement has ${there}, and the proof ${here}`);
    }
  }
  return recorded;
}
