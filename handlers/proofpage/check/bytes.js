// Bytes, hashes and signatures.

// Wrong is what does not hold in a proof. Its message says where.
export class Wrong extends Error {}

export function insist(holds, message) {
  if (!holds) throw new Wrong(message);
}

// only refuses members of an object that its form does not have.
export function only(object, members, what) {
  for (const name of Object.keys(object)) insist(members.includes(name), `${what}: the member ${name} is unknown`);
}

export const utf8 = (text) => new TextEncoder().encode(text);

// decode decodes base64 and refuses any form but the usual one.
export function decode(text, what) {
  let binary = null;
  try {
    binary = atob(text);
  } catch {
    // refused below
  }
  insist(binary !== null && btoa(binary) === text, `${what}: this is not base64`);
  return Uint8Array.from(binary, (c) => c.charCodeAt(0));
}

export function join(...parts) {
  const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) {
    all.set(p, at);
    at += p.length;
  }
  return all;
}

// bigEndian returns a number in so many bytes.
export function bigEndian(n, size) {
  let rest = BigInt(n);
  insist(rest >= 0n && rest < 1n << BigInt(8 * size), `${n} does not fit ${size} bytes`);
  const bytes = new Uint8Array(size);
  for (let i = size - 1; i >= 0; i--, rest >>= 8n) bytes[i] = Number(rest & 255n);
  return bytes;
}

export const equal = (a, b) => a.length === b.length && a.every((byte, i) => byte === b[i]);

export const sha256 = async (...parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", join(...parts)));

export async function hmac(key, ...parts) {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, join(...parts)));
}

// signed reports whether an Ed25519 signature is right.
export async function signed(key, signature, message) {
  const imported = await crypto.subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
  return crypto.subtle.verify({ name: "Ed25519" }, imported, signature, message);
}
