"""Checks vectors.json with nothing but the standard library: builds the tree of liabilities from the customers, and checks each
proof.

    python3 check.py vectors.json
    python3 check.py --proof proof.json     checks the response of GET /v1/customers/CODE/liability-proof

The form is in streams/README.md, under "Proof of liabilities".
"""

import base64
import hashlib
import hmac
import json
import pathlib
import sys


def mac(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()


def u64(n):
    return n.to_bytes(8, "big")


def u128(n):
    return n.to_bytes(16, "big")  # an OverflowError if it has more bits


def code_of(customer):
    code = customer.encode()
    assert len(code) <= 32
    return code + bytes(32 - len(code))


def words(data):
    return [int.from_bytes(data[i : i + 8], "big") for i in range(0, 32, 8)]


def leaf(nonce, position, customer, value, index):
    sub_nonce = mac(nonce, u64(position) + code_of(customer))
    return value, mac(sub_nonce, u128(value) + u64(index))


def parent(left, right):
    total = left[0] + right[0]
    u128(total)
    return total, hashlib.sha256(b"\1" + left[1] + u128(left[0]) + right[1] + u128(right[0])).digest()


def split(nonce, value):
    random = words(mac(nonce, b"parts\0"))
    cuts = sorted(value * r >> 64 for r in random[1 : 2 + random[0] % 3])
    return [to - of for of, to in zip([0] + cuts, cuts + [value])]


def tree(epoch_key, position, record, customers):
    key = mac(epoch_key, b"perpetua liabilities tree\0" + u64(position) + record)
    leaves = []
    for customer, value in sorted(customers.items(), key=lambda one: one[0].encode()):
        nonce = mac(key, b"nonce\0" + code_of(customer))
        order = words(mac(nonce, b"order\0"))
        for i, part in enumerate(split(nonce, value)):
            leaves.append((order[i], customer, nonce, part))
    width = 1
    while width < len(leaves):
        width *= 2
    nonce = mac(key, b"nonce\0" + bytes(32))
    for i in range(width - len(leaves)):
        leaves.append((words(mac(nonce, b"order\0" + u64(i)))[0], "", nonce, 0))
    leaves.sort(key=lambda one: one[0])
    level = [leaf(nonce, position, customer, part, i) for i, (_, customer, nonce, part) in enumerate(leaves)]
    while len(level) > 1:
        level = [parent(level[i], level[i + 1]) for i in range(0, len(level), 2)]
    return width, level[0]


def number(text):
    assert text.isascii() and text.isdigit() and str(int(text)) == text, text
    return int(text)


def hash_of(text):
    hash_ = base64.b64decode(text, validate=True)
    assert len(hash_) == 32, text
    return hash_


def check_proof(proof):
    recorded, nonce, total = proof["recorded"], hash_of(proof["nonce"]), 0
    assert proof["customer_code"] and "\0" not in proof["customer_code"]
    venue = sum(int(balance) for balance in recorded["venue"].values())
    assert number(recorded["total"]) - number(recorded["deficits"]) + venue == int(recorded["net_paid_in"]), "the sum"
    assert 2 <= len(proof["parts"]) <= 4
    last = -1
    for part in proof["parts"]:
        index, value = part["index"], number(part["value"])
        assert last < index < recorded["leaves"] == 1 << len(part["path"])
        last, total = index, total + value
        at = leaf(nonce, recorded["position"], proof["customer_code"], value, index)
        for height, (sum_, hash_) in enumerate(part["path"]):
            other = number(sum_), hash_of(hash_)
            at = parent(other, at) if index >> height & 1 else parent(at, other)
        assert at == (number(recorded["total"]), hash_of(recorded["root"])), "leaf %d" % index
    assert total == number(proof["value"])
    order = words(mac(nonce, b"order\0"))
    parts = sorted(enumerate(split(nonce, total)), key=lambda one: (order[one[0]], one[0]))
    assert [number(part["value"]) for part in proof["parts"]] == [value for _, value in parts], "the parts are others than those of the value"


def check(vectors):
    proofs = 0
    for one in vectors["trees"]:
        customers = {c["code"]: number(c["value"]) for c in one["customers"]}
        width, root = tree(bytes.fromhex(one["epoch_key"]), one["position"], bytes.fromhex(one["record"]), customers)
        assert root == (number(one["total"]), base64.b64decode(one["root"])) and width == one["leaves"], "the tree at %d" % one["position"]
        assert len(one["proofs"]) == len(customers)
        for proof in one["proofs"]:
            check_proof(proof)
            assert number(proof["value"]) == customers[proof["customer_code"]]
            assert (proof["recorded"]["root"], proof["recorded"]["total"], proof["recorded"]["position"]) == (one["root"], one["total"], one["position"])
            proofs += 1
    print("%d trees, %d proofs" % (len(vectors["trees"]), proofs))


if __name__ == "__main__":
    if sys.argv[1] == "--proof":
        check_proof(json.loads(pathlib.Path(sys.argv[2]).read_text()))
        print("the proof is valid for its own statement: compare that with the recorded one")
    else:
        check(json.loads(pathlib.Path(sys.argv[1]).read_text()))
