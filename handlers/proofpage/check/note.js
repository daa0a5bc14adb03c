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

const readLogKey = (text) => readKey(text, logKey, "key of the log");

// readLogKeys reads a list of the keys of one log: on each line a key, and after "until" when it retires, in milliseconds.
export async function readLogKeys(text) {
  const keys = [];
  for (const line of text.split("\n").map((l) => l.trim()).filter((l) => l && !l.startsWith("#"))) {
    const [first, word, time, ...more] = line.split(/\s+/);
    const until = word === undefined ? Infinity : Date.parse(time);
    insist((word === undefined || word === "until") && !Number.isNaN(until) && !more.length, "key of the log: a line is a key, or a key, until, and a time");
    const key = { ...await readLogKey(first), until };
    insist(keys.every((k) => k.name === key.name && !equal(k.id, key.id)), "key of the log: a key is of another log, or occurs twice");
    keys.push(key);
  }
  insist(keys.length, "key of the log: there is none");
  return keys;
}

// signatureOf returns the signature of the key in a note, or null if there is none. One that is wrong is refused. message returns the
// signed bytes.
async function signatureOf(note, { name, id, key }, size, message) {
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
    return bytes.slice(4);
  }
  return null;
}

// openCheckpoint verifies the signature of the log and returns the checkpoint: {origin, size, root, retired}. If only a key that
// retired before now has signed it, retired is when; otherwise it is null.
export async function openCheckpoint(note, keys, now) {
  const signers = [];
  for (const key of keys) if (await signatureOf(note, key, 68, utf8)) signers.push(key);
  insist(signers.length, "proof: the checkpoint has no signature of the log's key");
  const until = Math.max(...signers.map((k) => k.until));
  const [origin, size, root] = note.split("\n");
  insist(origin === keys[0].name, `proof: the checkpoint is of ${origin}`);
  insist(/^(0|[1-9][0-9]*)$/.test(size), "proof: the checkpoint has no size");
  return { origin, size: BigInt(size), root: decode(root, "proof: root"), retired: now < until ? null : until };
}

// secondsOf returns the time of a cosignature.
const secondsOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0);

// cosigned is what a witness signs.
const cosigned = (text, bytes) => utf8(`cosignature/v1\ntime ${secondsOf(bytes)}\n${text}`);

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
// Of the log's keys, those count that the policy has, if it has any. If the key of the checkpoint retired, the quorum must have
// cosigned before.
export async function keepsPolicy(text, keys, note, now) {
  const policy = await readPolicy(text);
  const listed = keys.filter((k) => !policy.logs.length || policy.logs.some((l) => l.name === k.name && equal(l.key, k.key)));
  insist(listed.length, "policy: it has other logs");
  const { retired } = await openCheckpoint(note, listed, now);
  const met = new Map();
  for (const [name, witness] of policy.witnesses) {
    const signature = await signatureOf(note, witness, 76, cosigned);
    met.set(name, signature !== null && (retired === null || Number(secondsOf(signature)) * 1000 < retired));
  }
  for (const [name, group] of policy.groups) met.set(name, group.members.filter((m) => met.get(m)).length >= group.least);
  insist(retired === null || policy.quorum !== "none", tooLate);
  insist(policy.quorum === "none" || met.get(policy.quorum), retired === null ? "proof: cosignatures are missing that the policy asks for" : tooLate);
  return policy.quorum !== "none";
}

// tooLate refuses a checkpoint that only a retired key has signed.
export const tooLate = "proof: only a retired key has signed the checkpoint, and no quorum that a policy asks for cosigned it before";

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
