package commitment_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/domain/disclose"
	"github.com/perpetua-exchange/perpetua/domain/epoch"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
)

var journalID = scalar.ID{0x6f, 0x96, 0x19, 0xff, 0x8b, 0x86, 0x4d, 0x01, 0xb4, 0x2d, 0, 0xcf, 0x4f, 0xc9, 0x64, 0xff}

// compiled returns the classes of this repository's schemas.
var compiled = sync.OnceValues(func() (*disclose.Policy, error) { return disclose.Compile(schemas.Events()) })

func committer(t testing.TB, journal string) *commitment.Committer {
	t.Helper()
	classes, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	c, err := commitment.NewCommitter(classes, journal)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func epochKey(t testing.TB, sequence int64) *commitment.EpochKey {
	t.Helper()
	k, err := commitment.NewEpochKey([]byte("a secret of exactly thirty-two b"), journalID, epoch.Of(sequence))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// aRecord returns the value of a record with events, each given as its type and its data in version 1.
func aRecord(sequence int64, actor string, events ...string) []byte {
	return fmt.Appendf(nil, `{"sequence":%d,"prev":"%s","time":"2026-01-02T03:04:05.678901Z","command":{"id":"019b3c1e-8d6a-7b7e-8c5e-2f4a1b9d0c3e","type":"order.place","actor":%s,"data":{"fingerprint":"00ff"}},"outcome":"accepted","events":[%s]}`,
		sequence, strings.Repeat("ab", 32), actor, eventsOf(events...))
}

func eventsOf(events ...string) string {
	var list []string
	for i := 0; i < len(events); i += 2 {
		list = append(list, fmt.Sprintf(`{"type":%q,"version":1,"data":%s}`, events[i], events[i+1]))
	}
	return strings.Join(list, ",")
}

const desk = `{"sub":"desk","broker":"alpha"}`

// expired returns n events of canceled orders, each of a customer of its own.
func expired(n int) (out []string) {
	for i := range n {
		out = append(out, "trigger.fired", fmt.Sprintf(`{"order_code":"O-%d","customer_code":"C-%d","broker":"alpha"}`, i, i))
	}
	return out
}

// TestRoot computes the roots of records with many numbers of units in another way: with crypto/hmac and tlog.TreeHash.
func TestRoot(t *testing.T) {
	c := committer(t, "trading")
	for n := 1; n < 70; n++ {
		sequence := int64(4090 + n)
		value := aRecord(sequence, desk, expired(n)...)
		key := epochKey(t, sequence)
		tree, err := c.Tree(key, sequence, value)
		if err != nil {
			t.Fatal(err)
		}
		root, err := c.Root(key, sequence, value)
		if err != nil || root != tree.Root() || len(tree.Units) != n+3 {
			t.Fatalf("%d units, root %x and %x: %v", len(tree.Units), root, tree.Root(), err)
		}
		var stored []tlog.Hash
		reader := tlog.HashReaderFunc(func(indexes []int64) (out []tlog.Hash, _ error) {
			for _, i := range indexes {
				out = append(out, stored[i])
			}
			return out, nil
		})
		for i, u := range tree.Units {
			record := sha256.Sum256(value)
			salt := sum(key.Bytes(), binary.BigEndian.AppendUint32(append(binary.BigEndian.AppendUint64(nil, uint64(sequence)), record[:]...), uint32(i)))
			head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(i)), uint32(len(tree.Units)))
			hashes, err := tlog.StoredHashes(int64(i), sum(salt, append(head, u.Bytes...)), reader)
			if err != nil {
				t.Fatal(err)
			}
			stored = append(stored, hashes...)
		}
		if want, err := tlog.TreeHash(int64(len(tree.Units)), reader); err != nil || commitment.Hash(want) != root {
			t.Errorf("%d units: the root is %x, not %v (%v)", len(tree.Units), root, want, err)
		}
	}
}

func sum(key, message []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(message)
	return h.Sum(nil)
}

// TestOpenings: each unit's proof verifies, and no longer does with any one bit changed, in any part of it.
func TestOpenings(t *testing.T) {
	c := committer(t, "trading")
	salts := make(map[commitment.Hash]bool)
	for _, n := range []int{1, 2, 5, 9} {
		sequence := int64(n)
		tree, err := c.Tree(epochKey(t, sequence), sequence, aRecord(sequence, desk, expired(n)...))
		if err != nil {
			t.Fatal(err)
		}
		root := tree.Root()
		for i, u := range tree.Units {
			o, err := tree.Opening(i)
			if err != nil {
				t.Fatal(err)
			}
			if err := o.Verify(root, u.Bytes); err != nil {
				t.Fatal(err)
			}
			if salts[o.Salt] || o.Salt == (commitment.Hash{}) {
				t.Errorf("the salt of unit %d of %d is not new", i, n)
			}
			salts[o.Salt] = true
			tamper(t, root, o, u.Bytes)
		}
	}
	tree, err := c.Tree(epochKey(t, 1), 1, aRecord(1, desk, expired(1)...))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{-1, len(tree.Units)} {
		if _, err := tree.Opening(i); err == nil {
			t.Errorf("there is a proof of unit %d", i)
		}
	}
}

// TestManyOpenings: the hashes of a tree are computed once for all openings.
func TestManyOpenings(t *testing.T) {
	tree, err := committer(t, "trading").Tree(epochKey(t, 1), 1, aRecord(1, desk, expired(200)...))
	if err != nil {
		t.Fatal(err)
	}
	all := testing.AllocsPerRun(5, func() {
		if _, err := tree.Opening(7); err != nil {
			t.Fatal(err)
		}
	})
	if all > float64(len(tree.Units)/4) {
		t.Errorf("an opening of %d units allocates %v times", len(tree.Units), all)
	}
}

// tamper changes every bit of a proof, one after the other.
func tamper(t *testing.T, root commitment.Hash, o commitment.Opening, unit []byte) {
	t.Helper()
	refused := func(what string) {
		if o.Verify(root, unit) == nil {
			t.Errorf("unit %d of %d verifies with another %s", o.Index, o.Count, what)
		}
	}
	flip := func(what string, b []byte) {
		for bit := range 8 * len(b) {
			b[bit/8] ^= 1 << (bit % 8)
			refused(fmt.Sprint(what, ", bit ", bit))
			b[bit/8] ^= 1 << (bit % 8)
		}
	}
	flip("unit", unit)
	flip("salt", o.Salt[:])
	flip("root", root[:])
	for i := range o.Path {
		flip("path", o.Path[i][:])
	}
	for bit := range 32 {
		o.Index ^= 1 << bit
		refused("index")
		o.Index ^= 1 << bit
		o.Count ^= 1 << bit
		refused("count")
		o.Count ^= 1 << bit
	}
	path := o.Path
	o.Path = append(append([]commitment.Hash(nil), path...), root)
	refused("path, longer")
	if len(path) > 0 {
		o.Path = path[:len(path)-1]
		refused("path, shorter")
	}
	unit = append(append([]byte(nil), unit...), ' ')
	o.Path = path
	refused("unit, longer")
}

// TestKeys: a root depends on the secret, the journal, the epoch and the sequence.
func TestKeys(t *testing.T) {
	c, seen := committer(t, "trading"), make(map[commitment.Hash]string)
	value := aRecord(1, desk, expired(1)...)
	for _, secret := range []string{"a secret of exactly thirty-two b", "another one, also of 32 bytes..."} {
		for _, journal := range []scalar.ID{journalID, {1}} {
			for _, sequence := range []int64{0, 1, 4095, 4096, 1 << 40} {
				name := fmt.Sprint(secret, journal, sequence)
				key, err := commitment.NewEpochKey([]byte(secret), journal, epoch.Of(sequence))
				if err != nil {
					t.Fatal(err)
				}
				root, err := c.Root(key, sequence, value)
				if err != nil || seen[root] != "" {
					t.Errorf("%s and %s have the same root (%v)", name, seen[root], err)
				}
				seen[root] = name
				again, err := commitment.ParseEpochKey(key.Bytes())
				if err != nil {
					t.Fatal(err)
				}
				if got, err := c.Root(again, sequence, value); err != nil || got != root {
					t.Errorf("%s: with the bytes of the key another root (%v)", name, err)
				}
			}
		}
	}
	if _, err := commitment.NewEpochKey([]byte("short"), journalID, 0); err == nil {
		t.Error("a short secret is taken")
	}
	if _, err := commitment.NewEpochKey(make([]byte, 32), journalID, -1); err == nil {
		t.Error("an epoch below 0 is taken")
	}
	if _, err := commitment.ParseEpochKey(make([]byte, 31)); err == nil {
		t.Error("31 bytes are a key")
	}
	key := epochKey(t, 0)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		if text := fmt.Sprintf(verb, key); text != "(an epoch key)" {
			t.Errorf("with %s a key prints as %s", verb, text)
		}
	}
}

// TestSaltsBindHistory: two records with the same sequence share no salt and no keyed hash, if they or a record before them
// differ. A log that was rolled back, or copied and continued in both places, has such records.
func TestSaltsBindHistory(t *testing.T) {
	key, c := epochKey(t, 5), committer(t, "trading")
	value := aRecord(5, desk, expired(1)...)
	salts, hashes := make(map[commitment.Hash]bool), make(map[string]bool)
	for name, v := range map[string][]byte{
		"the record":      value,
		"another history": bytes.Replace(value, []byte(`"prev":"ab`), []byte(`"prev":"cd`), 1),
		"another content": aRecord(5, desk, expired(2)...),
	} {
		tree, err := c.Tree(key, 5, v)
		if err != nil {
			t.Fatal(err)
		}
		for i := range tree.Units {
			o, err := tree.Opening(i)
			if err != nil || salts[o.Salt] {
				t.Errorf("%s: the salt of unit %d is that of another record (%v)", name, i, err)
			}
			salts[o.Salt] = true
		}
		_, hash, _ := strings.Cut(string(tree.Units[2].Bytes), `"fingerprint":`)
		if hash == "" || hashes[hash] {
			t.Errorf("%s: the hash of the fingerprint is that of another record: %s", name, hash)
		}
		hashes[hash] = true
	}
}

// TestHashedValues: no unit but the first holds the hash of a request.
func TestHashedValues(t *testing.T) {
	key, value := epochKey(t, 5), aRecord(5, desk, expired(1)...)
	tree, err := committer(t, "trading").Tree(key, 5, value)
	if err != nil {
		t.Fatal(err)
	}
	record := sha256.Sum256(value)
	want := fmt.Sprintf(`"fingerprint":"%x"`, sum(sum(key.Bytes(), append([]byte("hashed\x00\x00\x00\x00\x00\x00\x00\x05"), record[:]...)), []byte(`"00ff"`)))
	if !strings.Contains(string(tree.Units[2].Bytes), want) || strings.Contains(string(tree.Units[2].Bytes), "00ff") {
		t.Errorf("%s does not hold %s", tree.Units[2].Bytes, want)
	}
}

func TestOpeningAsJSON(t *testing.T) {
	o := commitment.Opening{Index: 1, Count: 3, Salt: commitment.Hash{1}, Path: []commitment.Hash{{2}, {3}}}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var again commitment.Opening
	if err := json.Unmarshal(text, &again); err != nil || fmt.Sprint(again) != fmt.Sprint(o) {
		t.Errorf("%s is read as %v: %v", text, again, err)
	}
	for _, bad := range []string{strings.Replace(string(text), `="`, `=\n"`, 1), strings.Replace(string(text), `"salt":"`, `"salt":"\r`, 1), `{"salt":"AQ=="}`, `{"salt":"!"}`, `{"path":["AQ"]}`, `{"index":-1}`, `{"count":4294967296}`} {
		if json.Unmarshal([]byte(bad), &again) == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

func TestRefusals(t *testing.T) {
	classes, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := commitment.NewCommitter(classes, "weather"); err == nil {
		t.Error("a journal without classes has a committer")
	}
	c := committer(t, "trading")
	if _, err := c.Root(epochKey(t, 0), 0, []byte("{}")); err == nil {
		t.Error("no record has a root")
	}
	if _, err := c.Tree(epochKey(t, 0), 0, []byte("{}")); err == nil {
		t.Error("no record has a tree")
	}
}
