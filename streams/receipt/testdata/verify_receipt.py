"""Verifies a receipt with nothing but Python's standard library. It shares no code with the venue.

usage: verify_receipt.py RECEIPT.json KEYS [POLICY]

KEYS is the log's verifier key, or lines with one each. After a key may follow "until" and the time at which it retires. POLICY is a
c2sp.org/tlog-policy file.
"""
import base64
import hashlib
import hmac
import json
import sys
import time
from datetime import datetime

P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493  # Ed25519, RFC 8032
D, ROOT = -121665 * pow(121666, P - 2, P) % P, pow(2, (P - 1) // 4, P)


def decode(text):
    data = base64.b64decode(text, validate=True)
    assert base64.b64encode(data).decode() == text, "base64 in another form"
    return data


def add(a, b):
    u, v = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = v - u, d - c, d + c, v + u
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(n, point):
    out = (0, 1, 1, 0)
    while n:
        out, point, n = (add(out, point) if n & 1 else out), add(point, point), n >> 1
    return out


def point(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * ROOT % P
    assert y < P and x * x % P == square and (x or not sign), "not a point of the curve"
    x = x if x & 1 == sign else P - x
    return x, y, 1, x * y % P


def signed(public, message, signature):
    base, s = point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little")), int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    a, b = times(s, base), add(point(signature[:32]), times(h, point(public)))
    return len(signature) == 64 and s < L and (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def key(text, kind):  # c2sp.org/signed-note
    name, keyhash, data = text.split("+", 2)
    data = decode(data)
    assert len(data) == 33 and data[0] == kind, "not a key of type %d" % kind
    assert hashlib.sha256(name.encode() + b"\n" + data).hexdigest()[:8] == keyhash, "the key's hash is another"
    return name, keyhash, data[1:]


def log_keys(text):
    """The keys in a list, each with the time in seconds at which it retires."""
    lines = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert lines and all(len(line) == 1 or len(line) == 3 and line[1] == "until" for line in lines), "a line is KEY or KEY until TIME"
    return [(key(first, 1), datetime.fromisoformat(rest[1].replace("Z", "+00:00")).timestamp() if rest else float("inf")) for first, *rest in lines]


def signature_of(note, verifier, message):
    """The key's signature in a note, which must be right, or None. message makes what is signed from text and signature."""
    name, keyhash, public = verifier
    text, lines = note.split("\n\n", 1)
    for line in lines.splitlines():
        dash, signer, blob = line.split(" ")
        blob = decode(blob)
        if dash == "\u2014" and signer == name and blob[:4].hex() == keyhash:
            assert signed(public, message(text + "\n", blob[4:]), blob[-64:]), "the signature of " + name + " is wrong"
            return blob[4:]
    return None


def cosigned_text(text, blob):  # c2sp.org/tlog-cosignature, Ed25519
    return b"cosignature/v1\ntime %d\n" % int.from_bytes(blob[:8], "big") + text.encode()


def quorum(policy, note, before):  # c2sp.org/tlog-policy
    """Whether a note has the cosignatures that a policy asks for. If before is not None, only those from before that time count."""
    met, keys = {"none": before is None}, set()
    for line in policy.splitlines():
        kind, *rest = line.split() or ["#"]
        if kind == "witness":
            witness = key(rest[1], 4)
            assert rest[0] not in met and witness[2] not in keys, "policy: " + rest[0] + " is there twice"
            keys.add(witness[2])
            found = signature_of(note, witness, cosigned_text)
            met[rest[0]] = found is not None and (before is None or int.from_bytes(found[:8], "big") < before)
        elif kind == "group":
            assert rest[0] not in met and len(set(rest[2:])) == len(rest[2:]), "policy: a name is there twice"
            least = {"all": len(rest) - 2, "any": 1}.get(rest[1]) or int(rest[1])
            met[rest[0]] = sum(met[name] for name in rest[2:]) >= least
        elif kind == "quorum":
            return met[rest[0]]
    raise ValueError("the policy has no quorum")


def node(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def root_of(index, size, leaf, path):  # RFC 9162, section 2.1.3.2
    at, last = index, size - 1
    assert at <= last, "index %d of %d" % (index, size)
    for step in path:
        assert last, "the path is too long"
        if at & 1 or at == last:
            leaf = node(step, leaf)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            leaf = node(leaf, step)
        at, last = at >> 1, last >> 1
    assert last == 0, "the path is too short"
    return leaf


def hashes(lines):
    path = [decode(line) for line in lines]
    assert all(len(step) == 32 for step in path), "a hash has another length"
    return path


def verify(receipt, keys, policy=None, now=None):
    assert receipt["format"] == "perpetua-receipt@v1", "format " + receipt["format"]
    assert set(receipt) == {"format", "units", "entry", "proof"}, "the receipt has other members"
    entry = decode(receipt["entry"])
    assert len(entry) == 33 and entry[0] == 1, "entry"
    head, note = receipt["proof"].split("\n\n", 1)  # c2sp.org/tlog-proof
    first, *lines = head.split("\n")
    index, *path = lines[1:] if lines and lines[0].startswith("extra ") else lines  # nothing authenticates extra data
    assert first == "c2sp.org/tlog-proof@v1" and index == "index %d" % int(index[6:]), "proof"
    origin, size, root = (note.split("\n\n")[0] + "\n").split("\n")[:3]
    assert all(name == origin for (name, _, _), _ in keys), "the checkpoint is of " + origin
    retires = [until for log, until in keys if signature_of(note, log, lambda text, _: text.encode())]
    assert retires, "no signature of the log"
    retired = max(retires) if max(retires) <= (now or time.time()) else None  # only a key that retired vouches for it
    assert retired is None or policy, "the key has retired"
    assert policy is None or quorum(policy, note, retired), "cosignatures are missing" if retired is None else "the key has retired"
    leaf = hashlib.sha256(b"\0" + entry).digest()
    assert root_of(int(index[6:]), int(size), leaf, hashes(path)) == decode(root), "the proof leads to another root"
    last = 0
    for unit in receipt["units"]:
        assert set(unit) == {"unit", "index", "count", "salt", "path"}, "a unit has other members"
        at = unit["index"].to_bytes(4, "big") + unit["count"].to_bytes(4, "big")
        (salt,) = hashes([unit["salt"]])  # another length could be the same key of HMAC
        data = hmac.new(salt, at + unit["unit"].encode(), hashlib.sha256).digest()
        leaf = hashlib.sha256(b"\0" + data).digest()
        assert unit["index"] > last, "unit %d is repeated" % unit["index"]
        assert root_of(unit["index"], unit["count"], leaf, hashes(unit["path"])) == entry[1:], "unit %d is not of this record" % unit["index"]
        last = unit["index"]
    first = json.loads(receipt["units"][0]["unit"])
    assert receipt["units"][0]["index"] == 1 and first["sequence"] == int(index[6:]), "unit 1 is of another record"
    return first, origin


if __name__ == "__main__":
    given = open(sys.argv[3]).read() if len(sys.argv) > 3 else None
    found, where = verify(json.load(open(sys.argv[1])), log_keys(sys.argv[2]), given)
    print("record %d of %s at %s: %s, %s" % (found["sequence"], where, found["time"], found["command"]["type"], found["outcome"]))
