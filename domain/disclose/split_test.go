package disclose_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/disclose"
	"github.com/perpetua-exchange/perpetua/domain/disclose/disclosetest"
	"github.com/perpetua-exchange/perpetua/schemas"
)

func splitter(t testing.TB, journal string) *disclose.Splitter {
	t.Helper()
	p, err := disclose.Compile(schemas.Events())
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Splitter(journal)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// record returns the value of a record with events, each given as its type, its version and its data.
func record(actor, data string, events ...string) []byte {
	return []byte(`{"sequence":7,"prev":"` + strings.Repeat("ab", 32) + `","time":"2026-01-02T03:04:05.678901Z","command":{"id":"019b3c1e-8d6a-7b7e-8c5e-2f4a1b9d0c3e","type":"some.command","actor":` +
		actor + `,"data":` + data + `},"outcome":"accepted","events":[` + strings.Join(events, ",") + `]}`)
}

func event(kind string, version int, data string) string {
	return fmt.Sprintf(`{"type":%q,"version":%d,"data":%s}`, kind, version, data)
}

// goldenEvents returns the golden events of a journal by type and version.
func goldenEvents(t testing.TB, journal string) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../schemas/events/" + journal + "/golden/*.v[0-9]*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	out := make(map[string]string)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		if strings.HasSuffix(name, ".input") { // of a command
			continue
		}
		kind := strings.TrimSuffix(name, ".record")
		version := kind[len(kind)-1:]
		kind = strings.TrimSuffix(kind, ".v"+version)
		data := strings.TrimSuffix(string(text), "\n")
		if strings.HasSuffix(name, ".record") {
			_, data, _ = strings.Cut(data, `"version":1,"data":`)
			data = strings.TrimSuffix(data, "}]}")
		}
		out[kind+".v"+version] = event(kind, int(version[0]-'0'), data)
	}
	return out
}

// TestGoldenEvents checks the units of every event type and version, alone and together with others.
func TestGoldenEvents(t *testing.T) {
	for _, journal := range []string{"trading", "onboarding", "identity"} {
		s, all := splitter(t, journal), goldenEvents(t, journal)
		maps.Copy(all, goldenEvents(t, "journal"))
		described, err := fs.Glob(schemas.Events(), journal+"/*.v*.schema.json")
		if err != nil || len(described) == 0 {
			t.Fatal(err)
		}
		for _, name := range described {
			if all[strings.TrimSuffix(filepath.Base(name), ".schema.json")] == "" {
				t.Errorf("%s has no golden file", name)
			}
		}
		var together []string
		for _, name := range slices.Sorted(maps.Keys(all)) {
			for _, actor := range []string{`{"sub":"trader-1","broker":"beta","customer":"C-of-actor"}`, `{"sub":"desk","broker":"alpha"}`, `{"system":"engine"}`} {
				for _, data := range []string{`{}`, `{"key":"k:1","fingerprint":"00ff","session":"b1000000-0000-0000-0000-000000000000","source":{"journal":"onboarding","sequence":9},"input":{"symbol":"BTCUSDC_PERP"}}`} {
					disclosetest.Check(t, s, record(actor, data, all[name]))
				}
			}
			together = append(together, all[name])
		}
		disclosetest.Check(t, s, record(`{"system":"engine"}`, `{}`, together...))
	}
}

// TestATrade shows the units of a trade.
func TestATrade(t *testing.T) {
	s := splitter(t, "trading")
	value := record(`{"sub":"desk","broker":"alpha"}`, `{"key":"k1","fingerprint":"00ff","source":{"journal":"onboarding","sequence":9}}`, event("trade.executed", 1,
		`{"code":"T","symbol":"S","price":"10","amount":"2","notional":"20","action":"buy","type":"trade",`+
			`"taker":{"order_code":"OB","customer_code":"bob","broker":"alpha","fee":"1"},"maker":{"order_code":"OC","customer_code":"carl","broker":"beta","fee":"-1"},`+
			`"positions":[{"customer_code":"bob","symbol":"S","amount":"2","cost":"20"},{"customer_code":"carl","symbol":"S","amount":"0","cost":"0"}],`+
			`"postings":[{"code":"T","customer_code":"bob","type":"trade","currency":"USDC","amount":"3","balance":"4"},{"account":"clearing","type":"trade","currency":"USDC","amount":"-3","balance":"5"},`+
			`{"code":"T","customer_code":"dora","type":"trade","currency":"USDC","amount":"6","balance":"7"}]}`), event("funding.posted", 1, `{"code":"F","customer_code":"bob","broker":"alpha","postings":[]}`))
	want := []string{
		`{"class":"public","sequence":7,"time":"2026-01-02T03:04:05.678901Z","command":{"type":"some.command"},"outcome":"accepted"}`,
		`{"class":"customer","owner":"broker/alpha","command":{"id":"019b3c1e-8d6a-7b7e-8c5e-2f4a1b9d0c3e","actor":{"sub":"desk","broker":"alpha"},"data":{"key":"k1","fingerprint":"` + hashed(`"00ff"`) + `"}}}`,
		`{"class":"venue","command":{"data":{"source":{"journal":"onboarding","sequence":9}}}}`,
		`{"class":"public","event":0,"type":"trade.executed","version":1,"data":{"code":"T","symbol":"S","price":"10","amount":"2","notional":"20","action":"buy","type":"trade"}}`,
		`{"class":"taker","owner":"customer/bob","event":0,"type":"trade.executed","version":1,"data":{"taker":{"order_code":"OB","customer_code":"bob","broker":"alpha","fee":"1"},` +
			`"positions":[{"customer_code":"bob","symbol":"S","amount":"2","cost":"20"}],"postings":[{"code":"T","customer_code":"bob","type":"trade","currency":"USDC","amount":"3","balance":"4"}]}}`,
		`{"class":"maker","owner":"customer/carl","event":0,"type":"trade.executed","version":1,"data":{"maker":{"order_code":"OC","customer_code":"carl","broker":"beta","fee":"-1"},` +
			`"positions":[{"customer_code":"carl","symbol":"S","amount":"0","cost":"0"}]}}`,
		`{"class":"customer","owner":"customer/dora","event":0,"type":"trade.executed","version":1,"data":{"postings":[{"code":"T","customer_code":"dora","type":"trade","currency":"USDC","amount":"6","balance":"7"}]}}`,
		`{"class":"venue","event":0,"type":"trade.executed","version":1,"data":{"postings":[{"account":"clearing","type":"trade","currency":"USDC","amount":"-3","balance":"5"}]}}`,
		`{"class":"customer","owner":"customer/bob","event":1,"type":"funding.posted","version":1,"data":{"code":"F","customer_code":"bob","broker":"alpha","postings":[]}}`,
	}
	units := disclosetest.Check(t, s, value)[1:]
	for i, u := range units {
		if i >= len(want) || string(u.Bytes) != want[i] {
			t.Errorf("unit %d is\n%s", i+1, u.Bytes)
		}
	}
	if len(units) != len(want) {
		t.Errorf("%d units, not %d", len(units), len(want))
	}
}

func hashed(value string) string {
	sum := disclosetest.Hash([]byte(value))
	return fmt.Sprintf("%x", sum)
}

func TestRecordsThatAreRefused(t *testing.T) {
	s := splitter(t, "trading")
	good := record(`{"system":"engine"}`, `{}`, event("engine.step", 1, `{"work":"expiry"}`))
	disclosetest.Check(t, s, good)
	for name, value := range map[string][]byte{
		"an unknown event":               record(`{}`, `{}`, event("engine.stop", 1, `{}`)),
		"an unknown version":             record(`{}`, `{}`, event("engine.step", 9, `{}`)),
		"an event of another journal":    record(`{}`, `{}`, event("user.changed", 1, `{}`)),
		"an unknown member":              record(`{}`, `{}`, event("trade.executed", 1, `{"more":1}`)),
		"an unknown member of a command": record(`{}`, `{"more":1}`, event("engine.step", 1, `{"work":"expiry"}`)),
		"more after the end":             append(slices.Clone(good), '}'),
		"nothing":                        nil,
		"another object":                 []byte(`{"a":1}`),
	} {
		if units, err := s.Split(value, disclosetest.Hash); err == nil {
			t.Errorf("%s: %d units", name, len(units))
		}
	}
	for n := range good {
		if _, err := s.Split(good[:n], disclosetest.Hash); err == nil {
			t.Errorf("the first %d bytes are split", n)
		}
	}
	disclosetest.Check(t, s, good) // a failure leaves nothing behind
	if _, err := (&disclose.Policy{}).Splitter("trading"); err == nil {
		t.Error("a journal without classes has a splitter")
	}
}

// FuzzSplit: whatever bytes a log holds, splitting them ends, and fails or gives units.
func FuzzSplit(f *testing.F) {
	s := splitter(f, "trading")
	f.Add(record(`{"system":"engine"}`, `{}`, event("engine.step", 1, `{"work":"expiry"}`)))
	for _, e := range goldenEvents(f, "trading") {
		f.Add(record(`{"sub":"a","broker":"b"}`, `{"key":"k"}`, e))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if units, err := s.Split(value, disclosetest.Hash); err == nil && len(units) < 3 {
			t.Errorf("%d units", len(units))
		}
	})
}
