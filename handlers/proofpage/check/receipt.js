// Verifies receipts. streams/README.md has the form, under "Receipts".

import { decode, equal, hmac, insist, only } from "./bytes.js";
import { hashes, keepsPolicy, leaf, openCheckpoint, readLogKeys, rootOf, tooLate, unitPlace } from "./note.js";

// verifyReceipt verifies a receipt with the log's keys, and with a policy unless that is empty. It returns unit 1, the texts of
// all units, the checkpoint, and whether witnesses had to cosign it. now is in milliseconds.
export async function verifyReceipt(receipt, key, policy, now) {
  insist(receipt.format === "perpetua-receipt@v1", `format: ${receipt.format} is unknown`);
  only(receipt, ["format", "units", "entry", "proof"], "receipt");
  insist(typeof receipt.entry === "string" && typeof receipt.proof === "string" && Array.isArray(receipt.units) && receipt.units.length, "entry, proof and units are needed");
  const keys = await readLogKeys(key);
  const entry = decode(receipt.entry, "entry");
  insist(entry.length === 33 && entry[0] === 1, "entry: this is not an entry of the log");
  const cut = receipt.proof.indexOf("\n\n");
  insist(cut > 0, "proof: it is cut off before its checkpoint");
  const [first, ...lines] = receipt.proof.slice(0, cut).split("\n");
  insist(first === "c2sp.org/tlog-proof@v1", `proof: ${first} is unknown`);
  if (lines[0]?.startsWith("extra ")) lines.shift();
  const [, index] = /^index (0|[1-9][0-9]*)$/.exec(lines.shift() ?? "") ?? [];
  insist(index, "proof: the index is missing");
  const note = receipt.proof.slice(cut + 2);
  const checkpoint = await openCheckpoint(note, keys, now);
  insist(policy || checkpoint.retired === null, tooLate);
  const witnessed = policy ? await keepsPolicy(policy, keys, note, now) : false;
  const root = await rootOf(index, checkpoint.size, await leaf(entry), hashes(lines, "proof"), "proof");
  insist(equal(root, checkpoint.root), "proof: the path leads to another root than the checkpoint's");
  await verifyUnits(receipt.units, entry.slice(1));
  const head = JSON.parse(receipt.units[0].unit);
  insist(receipt.units[0].index === 1 && Number.isSafeInteger(head.sequence) && String(head.sequence) === index, "units[0]: this is unit 1 of another record");
  return { head, units: receipt.units.map((u) => u.unit), checkpoint, witnessed };
}

async function verifyUnits(units, root) {
  let last = 0;
  for (const [i, unit] of units.entries()) {
    const what = `units[${i}]`;
    only(unit, ["unit", "index", "count", "salt", "path"], what);
    insist(Number.isInteger(unit.index) && unit.index > last && unit.count === units[0].count, `${what}: it does not follow unit ${last}`);
    insist(typeof unit.unit === "string" && typeof unit.salt === "string" && Array.isArray(unit.path), `${what}: unit, salt and path are needed`);
    const [salt] = hashes([unit.salt], what); // another length could be the same key of HMAC
    const data = await hmac(salt, unitPlace(unit));
    const climbed = await rootOf(unit.index, unit.count, await leaf(data), hashes(unit.path, what), what);
    insist(equal(climbed, root), `${what}: it is not a part of this record`);
    last = unit.index;
  }
}
