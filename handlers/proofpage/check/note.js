// Signed notes: keys, signatures of checkpoints, and the quorum of witnesses, in the forms of c2sp.org/signed-note,
// c2sp.org/tlog-cosignature, and c2sp.org/tlog-policy.

import { bigEndian, decode, equal, insist, join, sha256, signed, utf8 } from "./bytes.js";

const logKey = 1;
const witnessKey = 4;

// readKey reads a verifier key of a kind: {name, id, key}.
async function readKey(text, kind, what) {
  const [, name, hash, data] = /^([^+\s]+)\+([0-9a-f]{8})\+(\S+)$/.exec(text.trim()) ?? [];
  insist(name, `${what}: this is not a verifier key like name+hash+key`);
  const bytes = decode(data, what);
  insist(bytes.length === 33 && bytes[0] === kind, `${what}: the key has another type`);
  const id = (await sha256(utf8(`${name}\n`), bytes)).slice(0, 4);
  insist([...id].map((b) => b.toString(16).padStart(2, "0")).join("") === hash, `${what}: the key does not have the hash ${hash}`);
  return { name, id, key: bytes.slice(1) };
}

export const readLogKey = (text) => readKey(text, logKey, "key of the log");

// hasSignature reports whether a note has a signature of the key. One that is wrong is refused. message returns the signed bytes.
async function hasSignature(note, { name, id, key }, message) {
  const cut = note.indexOf("\n\n");
  const text = note.slice(0, cut + 1);
  for (const line of note.slice(cut + 2).split("\n").filter(Boolean)) {
    const [dash, signer, blob] = line.split(" ");
    const bytes = decode(blob ?? "", "proof: a signature");
    if (dash !== "—" || signer !== name || !equal(bytes.slice(0, 4), id)) continue;
    insist(await signed(key, bytes.slice(-64), message(text, bytes.slice(4))), `proof: the signature of ${name} is wrong`);
    return true;
  }
  return false;
}

// openCheckpoint verifies the signature of the log and returns the checkpoint: {origin, size, root}.
export async function openCheckpoint(note, log) {
  insist(await hasSignature(note, log, utf8), "proof: the checkpoint has no signature of the log's key");
  const [origin, size, root] = note.split("\n");
  insist(origin === log.name, `proof: the checkpoint is of ${origin}`);
  insist(/^(0|[1-9][0-9]*)$/.test(size), "proof: the checkpoint has no size");
  return { origin, size: BigInt(size), root: decode(root, "proof: root") };
}

// cosigned is what a witness signs.
function cosigned(text, bytes) {
  insist(bytes.length === 72, "proof: a cosignature has another length");
  const time = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0);
  return utf8(`cosignature/v1\ntime ${time}\n${text}`);
}

// hasQuorum reports whether the witnesses of a policy have cosigned a checkpoint.
export async function hasQuorum(policy, note) {
  const met = new Map([["none", true]]);
  const of = (name) => {
    insist(met.has(name), `policy: there is no ${name}`);
    return met.get(name);
  };
  for (const line of policy.split("\n")) {
    const [kind, name, ...rest] = line.trim().split(/\s+/);
    if (kind === "witness") met.set(name, await hasSignature(note, await readKey(rest[0] ?? "", witnessKey, `policy: ${name}`), cosigned));
    else if (kind === "group") {
      const [threshold, ...members] = rest;
      const least = { all: members.length, any: 1 }[threshold] ?? Number(threshold);
      insist(Number.isInteger(least) && least >= 1 && least <= members.length, `policy: the group ${name} asks for ${threshold}`);
      met.set(name, members.filter(of).length >= least);
    } else if (kind === "quorum") return of(name);
    else insist(kind === "" || kind === "log" || kind.startsWith("#"), `policy: ${kind} is unknown`);
  }
  insist(false, "policy: it names no quorum");
}

const node = (left, right) => sha256(new Uint8Array([1]), left, right);

// leaf returns the hash of a leaf with its data.
export const leaf = (data) => sha256(new Uint8Array([0]), data);

// rootOf returns the root to which the path of a leaf leads, as RFC 9162 has it in section 2.1.3.2.
export async function rootOf(index, size, hash, path, what) {
  let [at, last] = [BigInt(index), BigInt(size) - 1n];
  insist(at >= 0n && at <= last, `${what}: index ${index} of ${size}`);
  let climbed = hash;
  for (const step of path) {
    insist(last > 0n, `${what}: the path is too long`);
    if (at & 1n || at === last) {
      climbed = await node(step, climbed);
      while (!(at & 1n) && at) [at, last] = [at >> 1n, last >> 1n];
    } else climbed = await node(climbed, step);
    [at, last] = [at >> 1n, last >> 1n];
  }
  insist(last === 0n, `${what}: the path is too short`);
  return climbed;
}

// hashes decodes the steps of a path.
export const hashes = (list, what) => list.map((text) => {
  const step = decode(text, what);
  insist(step.length === 32, `${what}: a hash has ${step.length} bytes`);
  return step;
});

// unitPlace returns the bytes of a unit with its place in the record, which its salt authenticates.
export const unitPlace = (unit) => join(bigEndian(unit.index, 4), bigEndian(unit.count, 4), utf8(unit.unit));
