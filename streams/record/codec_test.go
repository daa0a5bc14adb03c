package record_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
)

const sampleValue = `{"sequence":12,"prev":"ab01000000000000000000000000000000000000000000000000000000000000","time":"2026-03-04T05:06:07.000089Z",` +
	`"command":{"id":"01020300-0000-0000-0000-000000000000","type":"test.say","actor":{"sub":"alice","broker":"alpha","customer":"C1"},` +
	`"data":{"key":"k<1>","fingerprint":"00ff","source":{"journal":"onboarding","sequence":9}}},"outcome":"rejected",` +
	`"events":[{"type":"test.note","version":2,"data":{"text":"a<b>&` + "\u2028" + `\"é\\","list":["x"]}},{"type":"test.quick","version":1,"data":{"n":7}}]}`

func TestTheFormOfARecord(t *testing.T) {
	value, err := record.Encode(nil, recordtest.Sample())
	if err != nil || string(value) != sampleValue {
		t.Fatalf("%s\n%v, instead of\n%s", value, err, sampleValue)
	}
	back, err := record.Decode(recordtest.Rules{}.Registry(), value)
	if err != nil || !reflect.DeepEqual(back, recordtest.Sample()) {
		t.Errorf("decoded as %+v, %v", back, err)
	}
	partial := recordtest.Sample()
	partial.Input = `{"amount":"2"}`
	value, err = record.Encode(nil, partial)
	if want := strings.Replace(sampleValue, `"sequence":9}}`, `"sequence":9},"input":{"amount":"2"}}`, 1); err != nil || string(value) != want {
		t.Fatalf("%s\n%v, instead of\n%s", value, err, want)
	}
	if back, err = record.Decode(recordtest.Rules{}.Registry(), value); err != nil || !reflect.DeepEqual(back, partial) {
		t.Errorf("decoded as %+v, %v", back, err)
	}
	small := recordtest.Sample()
	small.Command.Actor, small.Command.Metadata = decide.Engine, decide.Metadata{}
	value, err = record.Encode(nil, small)
	if err != nil || !strings.Contains(string(value), `"actor":{"system":"engine"},"data":{}},`) {
		t.Errorf("%s, %v", value, err)
	}
}

func TestWhatHasNoFormIsNotEncoded(t *testing.T) {
	for what, change := range map[string]func(*record.Record){
		"no event":        func(r *record.Record) { r.Events = nil },
		"no outcome":      func(r *record.Record) { r.Outcome = "" },
		"bad type":        func(r *record.Record) { r.Command.Type = "\xff" },
		"bad actor":       func(r *record.Record) { r.Command.Actor.Sub = "\xff" },
		"bad key":         func(r *record.Record) { r.Command.Metadata.Key = "\xff" },
		"bad source":      func(r *record.Record) { r.Command.Metadata.Source.Journal = "\xff" },
		"input no JSON":   func(r *record.Record) { r.Input = `{"a":}` },
		"input no object": func(r *record.Record) { r.Input = `["a"]` },
		"input empty":     func(r *record.Record) { r.Input = `{}` },
		"input spaced":    func(r *record.Record) { r.Input = `{"a": 1}` },
		"two inputs":      func(r *record.Record) { r.Input = `{"a":1}{"b":2}` },
		"bad event":       func(r *record.Record) { r.Events[0].(*recordtest.Note).Text = "\xff" },
		"failing encoder": func(r *record.Record) { r.Events[1].(*recordtest.Quick).N = -1 },
	} {
		r := recordtest.Sample()
		change(r)
		if value, err := record.Encode(nil, r); err == nil {
			t.Errorf("%s: %s", what, value)
		}
	}
}

func TestWhatIsNotExactlyARecordIsNotDecoded(t *testing.T) {
	for what, change := range map[string][2]string{
		"space":                       {`{"sequence":12`, `{"sequence": 12`},
		"leading zero":                {`"sequence":12`, `"sequence":012`},
		"negative":                    {`"sequence":12`, `"sequence":-1`},
		"too great":                   {`"sequence":12`, `"sequence":9223372036854775808`},
		"fraction":                    {`"sequence":12`, `"sequence":12.0`},
		"upper-case hash":             {`"prev":"ab`, `"prev":"AB`},
		"short hash":                  {`"prev":"ab`, `"prev":"a`},
		"comma in time":               {`07.000089Z`, `07,000089Z`},
		"no such day":                 {`2026-03-04`, `2026-02-30`},
		"upper-case id":               {`"id":"010203`, `"id":"0A0203`},
		"escaped type":                {`"type":"test.say"`, `"type":"test\u002esay"`},
		"actor's order":               {`"sub":"alice","broker":"alpha"`, `"broker":"alpha","sub":"alice"`},
		"empty actor member":          {`"sub":"alice"`, `"sub":""`},
		"unknown actor":               {`"customer":"C1"`, `"account":"C1"`},
		"unknown kept":                {`"fingerprint":"00ff"`, `"print":"00ff"`},
		"repeated kept":               {`"fingerprint":"00ff"`, `"key":"00ff"`},
		"an empty input":              {`"sequence":9}}`, `"sequence":9},"input":{}}`},
		"an input of another kind":    {`"sequence":9}}`, `"sequence":9},"input":"{}"}`},
		"space in the input":          {`"sequence":9}}`, `"sequence":9},"input":{"a": 1}}`},
		"an input that is no JSON":    {`"sequence":9}}`, `"sequence":9},"input":{"a":01}}`},
		"the input out of order":      {`"source":{`, `"input":{"a":1},"source":{`},
		"a member of the input twice": {`"sequence":9}}`, `"sequence":9},"input":{"a":1,"a":1}}`},
		"outcome":                     {`"rejected"`, `"refused"`},
		"no events":                   {`"events":[{`, `"events":[],"x":[{`},
		"trailing data":               {`]}`, `]} `},
		"version 0":                   {`"version":2`, `"version":0`},
		"other version":               {`"version":2`, `"version":3`},
		"unknown type":                {`test.note`, `test.nope`},
		"unknown member":              {`"text":`, `"test":`},
		"repeated member":             {`"list":["x"]`, `"text":"x"`},
		"space in data":               {`{"n":7}`, `{"n":7 }`},
		"invalid UTF-8":               {`é`, "\xe9"},
		"wrong type of data":          {`"n":7`, `"n":"7"`},
		"data is no object":           {`{"n":7}`, `7`},
		"a second document":           {`]}`, `]}{}`},
		"a member after the events":   {`]}`, `],"x":1}`},
	} {
		i := strings.LastIndex(sampleValue, change[0])
		if i < 0 {
			t.Fatalf("%s: nothing to change", what)
		}
		value := sampleValue[:i] + change[1] + sampleValue[i+len(change[0]):]
		if r, err := record.Decode(recordtest.Rules{}.Registry(), []byte(value)); err == nil {
			t.Errorf("%s: decoded %s as %+v", what, value, r)
		}
	}
	for i := range sampleValue {
		if _, err := record.Decode(recordtest.Rules{}.Registry(), []byte(sampleValue[:i])); err == nil {
			t.Errorf("decoded the first %d bytes", i)
		}
	}
}

func TestTheRuleOfValidity(t *testing.T) {
	genesis := &record.Genesis{Journal: "trading", JournalID: scalar.ID{5}, Partition: 0, Partitions: 1}
	first := recordtest.Link(0, record.Hash{}, genesis)
	h0 := record.Hash(sha256.Sum256(first))
	second := recordtest.Link(1, h0, &record.TermStarted{Term: 1, Node: "n"})
	h1 := record.Hash(sha256.Sum256(second))
	start := func() *record.Chain {
		c := record.NewChain(recordtest.Rules{}, 0, record.Before)
		for i, v := range [][]byte{first, second} {
			if _, ok, err := c.Admit(int64(i), v); !ok || err != nil {
				t.Fatalf("record %d: %v %v", i, ok, err)
			}
		}
		return c
	}
	swap := func(v []byte, old, to string) []byte { return []byte(strings.Replace(string(v), old, to, 1)) }
	good := recordtest.Link(2, h1, &recordtest.Note{Text: "hello"})
	for what, v := range map[string][]byte{
		"nothing":                           nil,
		"garbage":                           []byte("garbage"),
		"JSON":                              []byte(`{"a":1}`),
		"another genesis":                   recordtest.Link(0, record.Hash{}, genesis),
		"the last one again":                second,
		"another prev":                      recordtest.Link(2, h0, &recordtest.Note{Text: "x"}),
		"the right number only":             recordtest.Link(2, record.Hash{7}, &recordtest.Note{Text: "x"}),
		"an unknown type with another prev": swap(recordtest.Link(2, h0, &recordtest.Note{Text: "x"}), "test.note", "test.nope"),
		"right prev, broken JSON":           swap(good, `{"text":"hello"}`, `{"text":"hello",,}`),
		"right prev, repeated names":        swap(good, `{"text":"hello"}`, `{"text":"hello","text":"x"}`),
		"right prev, invalid UTF-8":         swap(good, `hello`, "\xff"),
		"cut off":                           good[:len(good)-1],
	} {
		c := start()
		if _, ok, err := c.Admit(2, v); ok || err != nil {
			t.Errorf("%s: %v %v", what, ok, err)
		}
		if e, ok, err := c.Admit(3, good); !ok || err != nil || e.Position.Offset != 3 || e.Position.Sequence != 2 || e.Position.Hash != sha256.Sum256(good) {
			t.Errorf("after %s: %v %v", what, ok, err)
		}
	}
	for what, v := range map[string][]byte{
		"a sequence behind":   recordtest.Link(1, h1, &recordtest.Note{Text: "x"}),
		"a sequence ahead":    recordtest.Link(3, h1, &recordtest.Note{Text: "x"}),
		"an unknown type":     swap(good, "test.note", "test.nope"),
		"an unknown version":  swap(good, `"version":2`, `"version":9`),
		"an unknown member":   swap(good, `"text"`, `"test"`),
		"another form":        swap(good, `{"sequence":2,`, `{"sequence":2,"trace":"x",`),
		"space":               swap(good, `,`, ` ,`),
		"a second genesis":    recordtest.Link(2, h1, genesis),
		"a stale term":        recordtest.Link(2, h1, &record.TermStarted{Term: 1}),
		"a term left out":     recordtest.Link(2, h1, &record.TermStarted{Term: 3}),
		"taken and more":      recordtest.Link(2, h1, &record.TermStarted{Term: 2}, &recordtest.Note{Text: "x"}),
		"taken in disguise":   swap(recordtest.Link(2, h1, &record.TermStarted{Term: 2}), `"type":"journal.taken","actor"`, `"type":"test.say","actor"`),
		"disguised as taken":  swap(good, `"type":"test.say"`, `"type":"journal.taken"`),
		"an invalid sequence": swap(good, `"sequence":2`, `"sequence":2.5`),
	} {
		c := start()
		_, ok, err := c.Admit(2, v)
		var broken *record.BrokenRecordError
		if ok || !errors.As(err, &broken) || broken.Offset != 2 || broken.Journal != "trading" {
			t.Errorf("%s: %v %v", what, ok, err)
		}
	}
	for what, v := range map[string][]byte{
		"another journal's":   recordtest.Link(0, record.Hash{}, &record.Genesis{Journal: "identity", Partitions: 1}),
		"another partition's": recordtest.Link(0, record.Hash{}, &record.Genesis{Journal: "trading", Partition: 1, Partitions: 2}),
		"no genesis":          recordtest.Link(0, record.Hash{}, &recordtest.Note{Text: "x"}),
	} {
		c := record.NewChain(recordtest.Rules{}, 0, record.Before)
		if _, ok, err := c.Admit(0, v); ok || err == nil {
			t.Errorf("%s: %v %v", what, ok, err)
		}
	}
}

// TestWhatIsPassedOverIsStillJSON is about readers that seek: what every other reader skips, they skip too.
func TestWhatIsPassedOverIsStillJSON(t *testing.T) {
	good := recordtest.Link(1, record.Hash{1}, &recordtest.Note{Text: "hello"})
	bad := []byte(strings.Replace(string(good), `{"text":"hello"}`, `{"text":"hello",,}`, 1))
	c := record.NewChain(recordtest.Rules{}, 0, record.Position{Hash: record.Hash{1}})
	c.DecodeFrom(5)
	if _, ok, err := c.Admit(1, bad); ok || err != nil {
		t.Errorf("what is no JSON: %v %v", ok, err)
	}
	if e, ok, err := c.Admit(2, good); !ok || err != nil || e.Record != nil {
		t.Errorf("what is: %v %v", ok, err)
	}
}

// TestWhatIsPassedOverComesFromTheCache gives a cached record another hash, which the chain then has.
func TestWhatIsPassedOverComesFromTheCache(t *testing.T) {
	value := recordtest.Link(1, record.Hash{1}, &recordtest.Note{Text: "hello"})
	r, err := record.DecodeHead(value)
	if err != nil {
		t.Fatal(err)
	}
	cache := record.NewEncodedCache(8)
	cache.Add(record.Entry{Record: r, Position: record.Position{Sequence: 1, Hash: record.Hash{9}}, Value: slices.Clone(value)})
	for what, c := range map[string]struct {
		value  []byte
		cached bool
	}{
		"the cached bytes": {value, true},
		"other bytes":      {recordtest.Link(1, record.Hash{1}, &recordtest.Note{Text: "hallo"}), false},
	} {
		chain := record.NewHeadChain("trading", 0, record.Position{Hash: record.Hash{1}})
		chain.UseCache(cache)
		e, ok, err := chain.Admit(1, c.value)
		if !ok || err != nil || e.Record != nil || !bytes.Equal(e.Value, c.value) {
			t.Fatalf("%s: %v, %v: %+v", what, ok, err, e)
		}
		if at := chain.Position(); (at.Hash == record.Hash{9}) != c.cached || at.Sequence != 1 || !e.Position.Equal(at) {
			t.Errorf("%s: the chain is at %v", what, at)
		}
		if head := chain.Head(); head == nil || head.Time != r.Time || head.Command.Type != r.Command.Type || chain.Term() != record.UnknownTerm {
			t.Errorf("%s: the head is %+v in term %d", what, head, chain.Term())
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(sampleValue))
	f.Add(recordtest.Link(0, record.Hash{}, &record.Genesis{Journal: "trading", Partitions: 1}))
	f.Add(recordtest.Link(2, record.Hash{3}, &record.TermStarted{Term: 4, Node: "n", URL: "http://n", Build: "dev"}))
	rules := recordtest.Rules{}.Registry()
	f.Fuzz(func(t *testing.T, value []byte) {
		r, raw, err := record.DecodeInPieces(rules, value)
		if err != nil {
			return
		}
		// The envelope has one form: with the events' data left as it was, encoding gives the same bytes.
		if again, err := record.Encode(nil, raw); err != nil || !bytes.Equal(again, value) {
			t.Fatalf("%s\nbecame\n%s\n%v", value, again, err)
		}
		// And what was once written by Encode stays the same for ever.
		once, err := record.Encode(nil, r)
		if err != nil {
			t.Fatalf("decoded %s and can't encode it: %v", value, err)
		}
		back, err := record.Decode(rules, once)
		if err != nil {
			t.Fatalf("can't decode %s: %v", once, err)
		}
		if twice, err := record.Encode(nil, back); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s\nbecame\n%s\n%v", once, twice, err)
		}
	})
}
