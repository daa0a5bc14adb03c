"""Computes record roots from records, schemas and a secret, and checks proofs, with nothing but Python's standard library.

usage: check.py VECTORS.json SCHEMAS, where SCHEMAS is the folder schemas/events. It shares no code with the venue.
"""
import base64
import hashlib
import hmac
import json
import pathlib
import re
import sys

CLASSES = ["public", "taker", "maker", "customer", "venue"]


def mac(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()


def epoch_key(secret, journal_id, epoch):  # HKDF of RFC 5869 with one block of output
    info = b"perpetua commitment epoch\0" + journal_id + epoch.to_bytes(8, "big")
    return mac(mac(bytes(32), secret), info + b"\1")


def node(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def tree_hash(leaves):  # RFC 6962, section 2.1
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << ((len(leaves) - 1).bit_length() - 1)
    return node(tree_hash(leaves[:split]), tree_hash(leaves[split:]))


def root_of_proof(index, count, leaf, path):  # RFC 9162, section 2.1.3.2
    at, last = index, count - 1
    if at > last:
        return None
    for step in path:
        if last == 0:
            return None
        if at % 2 == 1 or at == last:
            leaf = node(step, leaf)
            while at % 2 == 0 and at != 0:
                at, last = at >> 1, last >> 1
        else:
            leaf = node(leaf, step)
        at, last = at >> 1, last >> 1
    return leaf if last == 0 else None


def leaf_hash(salt, index, count, unit):
    data = mac(salt, index.to_bytes(4, "big") + count.to_bytes(4, "big") + unit)
    return hashlib.sha256(b"\0" + data).digest()


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Schemas:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.common = self.read("common")["$defs"]

    def read(self, name):
        return json.loads((self.folder / (name + ".schema.json")).read_text())

    def of_event(self, journal, event):
        name = "%s.v%d" % (event["type"], event["version"])
        if (self.folder / journal / (name + ".schema.json")).exists():
            return self.read(journal + "/" + name)
        return self.read("journal/" + name)

    def resolve(self, schema):
        """Merges a schema with the definition that it refers to."""
        if "$ref" not in schema:
            return schema
        base = self.common[schema["$ref"].split("/")[-1]]
        merged = {**base, **{k: v for k, v in schema.items() if k != "properties"}}
        merged["properties"] = dict(base.get("properties", {}))
        for name, own in schema.get("properties", {}).items():
            if isinstance(own, dict):
                inherited = merged["properties"].get(name)
                classed = "x-disclosure" in own or not isinstance(inherited, dict)
                merged["properties"][name] = own if classed else inherited
        return merged


class Parts:
    """What each party is shown of a value: {owner or class: (class, value)}."""

    def __init__(self, schemas, hashed):
        self.schemas, self.hashed, self.parts, self.roles, self.lists = schemas, hashed, {}, {}, {}

    def put(self, party, path, value):
        at = self.parts.setdefault(party, {})
        for step, opens in path[:-1]:
            at = self.step(at, step, opens)
        self.step(at, path[-1][0], value)

    def step(self, at, step, value):
        """Puts value at a step unless something is there, and returns what is there."""
        if isinstance(at, dict):
            return at.setdefault(step, value() if callable(value) else value)
        known = self.lists.setdefault(id(at), {})
        if step not in known:
            known[step] = value() if callable(value) else value
            at.append(known[step])
        return known[step]

    def owner(self, schema, value, inherited):
        templates = schema.get("x-disclosure-owner", [])
        for template in templates:
            try:
                return re.sub(r"\{([^}]*)\}", lambda m: self.lookup(value, m.group(1)), template)
            except KeyError:
                pass
        return "venue" if templates else inherited

    @staticmethod
    def lookup(value, path):
        for name in path.split("."):
            value = value[name]
        return value

    def known(self, schema, value):
        """Fails if a value has a member that its schema lacks."""
        schema = self.schemas.resolve(schema)
        members = dict(schema.get("properties", {}))
        for one in schema.get("oneOf", []):
            members.update({name: s for name, s in one.get("properties", {}).items() if isinstance(s, dict)})
        if members:
            for name, inner in value.items():
                self.known(members[name], inner)
        elif "items" in schema:
            assert isinstance(value, list), value
            for element in value:
                self.known(schema["items"], element)
        else:
            assert schema.get("type") == "object" or not isinstance(value, (dict, list)), value

    def split(self, schema, value, path, owner):
        schema = self.schemas.resolve(schema)
        owner = self.owner(schema, value, owner)
        kind = schema.get("x-disclosure")
        if kind:
            party = kind if kind in ("public", "venue") else owner
            if kind in ("taker", "maker"):
                self.roles[party] = kind
            self.known(schema, value)
            self.put(party, path, self.hashed(value) if schema.get("x-disclosure-hashed") else value)
        elif not value:
            self.put(owner, path, value)
        elif isinstance(value, list):
            for i, element in enumerate(value):
                self.split(schema["items"], element, path[:-1] + [(path[-1][0], list), (i, None)], owner)
        else:
            for name, inner in value.items():
                start = path[:-1] + [(path[-1][0], dict)] if path else []
                self.split(schema["properties"][name], inner, start + [(name, None)], owner)

    def units(self, head):
        found = []
        for party, part in self.parts.items():
            kind = party if party in ("public", "venue") else self.roles.get(party, "customer")
            unit = {"class": kind}
            if kind not in ("public", "venue"):
                unit["owner"] = party
            found.append((CLASSES.index(kind), {**unit, **head, **part}))
        found.sort(key=lambda one: one[0])  # stable: parties of a class in the order in which they occur
        return [compact(unit).encode() for _, unit in found]


def units_of(schemas, journal, value, hashed):
    record = json.loads(value)
    out = [value]
    envelope = {k: v for k, v in record.items() if k not in ("prev", "events")}
    around = Parts(schemas, hashed)
    around.split(schemas.read("journal/record"), envelope, [], "venue")
    out += around.units({})
    for i, event in enumerate(record["events"]):
        parts = Parts(schemas, hashed)
        parts.split(schemas.of_event(journal, event), event["data"], [("data", None)], "venue")
        out += parts.units({"event": i, "type": event["type"], "version": event["version"]})
    return out


def check(vectors, schemas):
    secret, journal_id = bytes.fromhex(vectors["secret"]), bytes.fromhex(vectors["journal_id"].replace("-", ""))
    proofs = 0
    for record in vectors["records"]:
        value, sequence = record["value"].encode(), record["sequence"]
        key = epoch_key(secret, journal_id, sequence // 4096)
        assert key.hex() == record["epoch_key"], "epoch key of %d" % sequence
        bound = sequence.to_bytes(8, "big") + hashlib.sha256(value).digest()
        hash_key = mac(key, b"hashed" + bound)
        units = units_of(schemas, record["journal"], value, lambda v: mac(hash_key, compact(v).encode()).hex())
        assert len(units) == len(record["units"]), "number of units of %d" % sequence
        leaves, root = [], base64.b64decode(record["root"])
        for i, unit in enumerate(units):
            proof = record["units"][i]
            assert i == 0 or unit.decode() == proof["bytes"], "unit %d of %d:\n%s\n%s" % (i, sequence, unit.decode(), proof["bytes"])
            salt = mac(key, bound + i.to_bytes(4, "big"))
            assert salt == base64.b64decode(proof["opening"]["salt"]), "salt %d of %d" % (i, sequence)
            leaves.append(leaf_hash(salt, i, len(units), unit))
            path = [base64.b64decode(step) for step in proof["opening"]["path"]]
            assert root_of_proof(i, len(units), leaves[i], path) == root, "proof %d of %d" % (i, sequence)
            assert root_of_proof(i, len(units), leaf_hash(salt, i, len(units), unit + b" "), path) != root
            proofs += 1
        assert tree_hash(leaves) == root, "root of %d" % sequence
    print("%d roots, %d proofs" % (len(vectors["records"]), proofs))


if __name__ == "__main__":
    check(json.loads(pathlib.Path(sys.argv[1]).read_text()), Schemas(sys.argv[2]))
