"""Verifies a transparency log from what it serves, with nothing but Python's standard library.

usage: verify.py URL [KEY [TOKEN]]

URL is that of the log, like http://localhost:8080/tlog/trading/0. KEY is a verifier key that has not retired; without it, the log is
asked for its newest. It verifies the signature of the checkpoint (RFC 8032), its root from every entry, every tile against the entries, and proofs of
inclusion and consistency (RFC 9162, section 2.1) made from the tiles.
"""
import base64
import hashlib
import sys
import urllib.request

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def add(a, b):
    u, v = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = v - u, d - c, d + c, v + u
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(n, point):
    out = (0, 1, 1, 0)
    while n:
        if n & 1:
            out = add(out, point)
        point, n = add(point, point), n >> 1
    return out


def point(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * ROOT % P
    if y >= P or (x * x - x2) % P or not x and sign:
        raise ValueError("not a point of the curve")
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def signed(public, message, signature):
    s = int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    a, b = times(s, BASE), add(point(signature[:32]), times(h, point(public)))
    return len(signature) == 64 and s < L and (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def leaf(entry):
    return hashlib.sha256(b"\0" + entry).digest()


def node(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def split(n):
    return 1 << (n - 1).bit_length() - 1


def mth(hashes):
    """The Merkle tree hash over leaf hashes."""
    if len(hashes) == 1:
        return hashes[0]
    k = split(len(hashes))
    return node(mth(hashes[:k]), mth(hashes[k:]))


class Log:
    def __init__(self, url, token):
        self.url, self.token, self.tiles = url, token, {}

    def get(self, path):
        request = urllib.request.Request(self.url + "/" + path)
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token)
        with urllib.request.urlopen(request) as response:
            return response.read()

    def tile(self, level, index, width, unit=32):
        path = "%03d" % (index % 1000)
        for rest in iter(lambda: index // 1000, 0):
            path, index = "x%03d/" % (rest % 1000) + path, rest
        path = "tile/%s/%s" % (level, path) + ("" if width == 256 else ".p/%d" % width)
        if path not in self.tiles:
            self.tiles[path] = self.get(path)
        data = self.tiles[path]
        assert len(data) == width * unit, "%s has %d bytes" % (path, len(data))
        return [data[i : i + unit] for i in range(0, len(data), unit)]

    def width(self, level, index, size):
        return min(256, (size >> 8 * level) - index * 256)

    def range(self, start, end, size):
        """The Merkle tree hash of the leaves from start to end, from the tiles of a tree of a size."""
        n = end - start
        level = 0
        while n >= 256 ** (level + 1) and n & (n - 1) == 0 and start % n == 0:
            level += 1
        per = 256**level
        if n % per == 0 and start % per == 0 and start // per // 256 == (end // per - 1) // 256:
            at = start // per
            hashes = self.tile(level, at // 256, self.width(level, at // 256, size))
            return mth(hashes[at % 256 : at % 256 + n // per])
        k = split(n)
        return node(self.range(start, start + k, size), self.range(start + k, end, size))

    def inclusion(self, m, start, end, size):
        if end - start == 1:
            return []
        k = split(end - start)
        if m < start + k:
            return self.inclusion(m, start, start + k, size) + [self.range(start + k, end, size)]
        return self.inclusion(m, start + k, end, size) + [self.range(start, start + k, size)]

    def consistency(self, m, start, end, size, known=True):
        n = end - start
        if m == n:
            return [] if known else [self.range(start, end, size)]
        k = split(n)
        if m <= k:
            return self.consistency(m, start, start + k, size, known) + [self.range(start + k, end, size)]
        return self.consistency(m - k, start + k, end, size, False) + [self.range(start, start + k, size)]


def included(entry, m, n, path, root):
    """RFC 9162, section 2.1.3.2."""
    f, s, r = m, n - 1, leaf(entry)
    for p in path:
        assert s
        if f & 1 or f == s:
            r = node(p, r)
            while not f & 1 and f:
                f, s = f >> 1, s >> 1
        else:
            r = node(r, p)
        f, s = f >> 1, s >> 1
    return s == 0 and r == root


def consistent(m, n, first, second, path):
    """RFC 9162, section 2.1.4.2."""
    if m & (m - 1) == 0:
        path = [first] + path
    f, s = m - 1, n - 1
    while f & 1:
        f, s = f >> 1, s >> 1
    fr = sr = path[0]
    for c in path[1:]:
        assert s
        if f & 1 or f == s:
            fr, sr = node(c, fr), node(c, sr)
            while not f & 1 and f:
                f, s = f >> 1, s >> 1
        else:
            sr = node(sr, c)
        f, s = f >> 1, s >> 1
    return s == 0 and fr == first and sr == second


def main(url, key=None, token=None):
    log = Log(url.rstrip("/"), token)
    key = key or log.get("key").decode().strip()
    name, keyhash, public = key.split("+", 2)
    public = base64.b64decode(public, validate=True)
    assert public[0] == 1 and len(public) == 33, "not an Ed25519 key"
    assert hashlib.sha256(name.encode() + b"\n" + public).hexdigest()[:8] == keyhash, "the key's hash is another"
    text, signatures = log.get("checkpoint").decode().split("\n\n", 1)
    origin, size, root = (text + "\n").split("\n")[:3]
    assert origin == name, "the checkpoint is of " + origin
    for line in signatures.splitlines():
        dash, signer, blob = line.split(" ")
        blob = base64.b64decode(blob, validate=True)
        if dash == "\u2014" and signer == name and blob[:4].hex() == keyhash:
            assert signed(public[1:], (text + "\n").encode(), blob[4:]), "the signature is wrong"
            break
    else:
        raise ValueError("no signature of the key")
    size, root = int(size), base64.b64decode(root, validate=True)

    entries = []
    for index in range((size + 255) // 256):
        for item in log.tile("entries", index, log.width(0, index, size), 35):
            assert item[:3] == b"\0\x21\1", "not an entry of 33 bytes that begins with 1"
            entries.append(item[2:])
    hashes = [leaf(e) for e in entries]
    assert mth(hashes) == root, "the entries give another root"
    level = 0
    while hashes:
        for index in range((len(hashes) + 255) // 256):
            want = hashes[index * 256 : index * 256 + 256]
            assert log.tile(level, index, len(want)) == want, "tile %d of level %d differs" % (index, level)
        hashes = [mth(hashes[i : i + 256]) for i in range(0, len(hashes) // 256 * 256, 256)]
        level += 1
    proofs = sorted({0, size // 3, size // 2, size - 1, max(0, size - 257), min(size - 1, 255), min(size - 1, 256)})
    for m in proofs:
        assert included(entries[m], m, size, log.inclusion(m, 0, size, size), root), "record %d is not included" % m
        assert not included(entries[m] + b"x", m, size, log.inclusion(m, 0, size, size), root)
        first = mth([leaf(e) for e in entries[: m + 1]])
        assert m + 1 == size or consistent(m + 1, size, first, root, log.consistency(m + 1, 0, size, size)), "size %d does not follow %d" % (size, m + 1)
    print("%s: %d records, %d tiles, %d proofs" % (name, size, len(log.tiles), 2 * len(proofs)))


if __name__ == "__main__":
    main(*sys.argv[1:])
