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
async function hasSignature(note, { name, id, key }, size, message) {
  const cut = note.lastIndexOf("\n\n");
  insist(cut > 0 && note.endsWith("\n"), "proof: the checkpoint has no signatures, or is cut off");
  const text = note.slice(0, cut + 1);
  for (const line of note.slice(cut + 2, -1).split("\n")) {
    const [dash, signer, blob, ...more] = line.split(" ");
    insist(dash === "—" && signer && blob && !more.length, "proof: a line with a signature has another form");
    const bytes = decode(blob, "proof: a signature");
    if (signer !== name || !equal(bytes.slice(0, 4), id)) continue;
    insist(bytes.length === size, `proof: the signature of ${name} has ${bytes.length} bytes`);
    insist(await signed(key, bytes.slice(-64), message(text, bytes.slice(4))), `proof: the signature of ${name} is wrong`);
    return true;
  }
  return false;
}

// openCheckpoint verifies the signature of the log and returns the checkpoint: {origin, size, root}.
export async function openCheckpoint(note, log) {
  insist(await hasSignature(note, log, 68, utf8), "proof: the checkpoint has no signature of the log's key");
  const [origin, size, root] = note.split("\n");
  insist(origin === log.name, `proof: the checkpoint is of ${origin}`);
  insist(/^(0|[1-9][0-9]*)$/.test(size), "proof: the checkpoint has no size");
  return { origin, size: BigInt(size), root: decode(root, "proof: root") };
}

// cosigned is what a witness signs.
function cosigned(text, bytes) {
  const time = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0);
  return utf8(`cosignature/v1\ntime ${time}\n${text}`);
}

// readPolicy reads a policy: {logs, witnesses, groups, quorum}. Each name and key may be used once, and a name is defined before it is
// used.
async function readPolicy(text) {
  const policy = { logs: [], witnesses: new Map(), groups: new Map(), quorum: null };
  const keys = new Set();
  const listed = new Set();
  const fresh = (name) => insist(name && name !== "none" && !policy.witnesses.has(name) && !policy.groups.has(name), `policy: ${name} is no new name`);
  const known = (name) => insist(policy.witnesses.has(name) || policy.groups.has(name), `policy: there is no ${name}`);
  for (const line of text.split("\n").map((l) => l.trim()).filter((l) => l && !l.startsWith("#"))) {
    const [kind, ...rest] = line.split(/\s+/);
    if (kind === "log") policy.logs.push(await readLogKey(rest[0] ?? ""));
    else if (kind === "witness") {
      const [name, key = ""] = rest;
      fresh(name);
      const witness = await readKey(key, witnessKey, `policy: ${name}`);
      insist(!keys.has(String(witness.key)), `policy: the key of ${name} is used twice`);
      keys.add(String(witness.key));
      policy.witnesses.set(name, witness);
    } else if (kind === "group") {
      const [name, threshold, ...members] = rest;
      fresh(name);
      const least = { all: members.length, any: 1 }[threshold] ?? Number(threshold);
      insist(["all", "any", String(least)].includes(threshold) && Number.isInteger(least) && least >= 1 && least <= members.length, `policy: the group ${name} asks for ${threshold}`);
      for (const m of members) {
        known(m);
        insist(!listed.has(m), `policy: ${m} is a member twice`);
        listed.add(m);
      }
      policy.groups.set(name, { least, members });
    } else {
      insist(kind === "quorum" && rest.length === 1 && policy.quorum === null, `policy: ${line}`);
      [policy.quorum] = rest;
      if (policy.quorum !== "none") known(policy.quorum);
    }
  }
  insist(policy.quorum !== null, "policy: it names no quorum");
  return policy;
}

// keepsPolicy verifies that a checkpoint of a log has what a policy asks for. It returns whether that is more than the log's signature.
export async function keepsPolicy(text, log, note) {
  const policy = await readPolicy(text);
  insist(!policy.logs.length || policy.logs.some((l) => l.name === log.name && equal(l.key, log.key)), "policy: it has other logs");
  const met = new Map();
  for (const [name, witness] of policy.witnesses) met.set(name, await hasSignature(note, witness, 76, cosigned));
  for (const [name, group] of policy.groups) met.set(name, group.members.filter((m) => met.get(m)).length >= group.least);
  insist(policy.quorum === "none" || met.get(policy.quorum), "proof: cosignatures are missing that the policy asks for");
  return policy.quorum !== "none";
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
