package journal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

type note struct {
	Text string   `json:"text"`
	List []string `json:"list,omitempty"`
}

func (*note) EventType() string { return "test.note" }
func (*note) EventVersion() int { return 2 }

// quick is an event that writes itself.
type quick struct {
	N int `json:"n"`
}

func (*quick) EventType() string { return "test.quick" }
func (q *quick) AppendJSON(b []byte) ([]byte, error) {
	if q.N < 0 {
		return b, errors.New("negative")
	}
	return append(b, `{"n":7}`...), nil
}

type noteRules struct{}

func (noteRules) Journal() string        { return "trading" }
func (noteRules) NewState() decide.State { return nil }
func (noteRules) Limit() int             { return 1 << 20 }
func (noteRules) Newest() int            { return 1 }
func (noteRules) Registry() *decide.Registry {
	r := decide.NewRegistry()
	r.Add(func() decide.Event { return new(note) })
	r.Add(func() decide.Event { return new(quick) })
	return r
}

func sample() *Record {
	return &Record{Sequence: 12, Prev: Hash{0xab, 0x01}, Time: scalar.TimeOf(time.Date(2026, 3, 4, 5, 6, 7, 89000, time.UTC)),
		Command: decide.Recorded{ID: scalar.ID{1, 2, 3}, Type: "test.say", Actor: decide.Actor{Sub: "alice", Broker: "alpha", Customer: "C1"},
			Kept: decide.Kept{Key: "k<1>", Fingerprint: "00ff", Source: &decide.Source{Journal: "onboarding", Sequence: 9}}},
		Outcome: decide.Rejected, Events: []decide.Event{&note{Text: "a<b>&\u2028\"é\\", List: []string{"x"}}, &quick{7}}}
}

const sampleValue = `{"sequence":12,"prev":"ab01000000000000000000000000000000000000000000000000000000000000","time":"2026-03-04T05:06:07.000089Z",` +
	`"command":{"id":"01020300-0000-0000-0000-000000000000","type":"test.say","actor":{"sub":"alice","broker":"alpha","customer":"C1"},` +
	`"data":{"key":"k<1>","fingerprint":"00ff","source":{"journal":"onboarding","sequence":9}}},"outcome":"rejected",` +
	`"events":[{"type":"test.note","version":2,"data":{"text":"a<b>&` + "\u2028" + `\"é\\","list":["x"]}},{"type":"test.quick","version":1,"data":{"n":7}}]}`

func TestTheFormOfARecord(t *testing.T) {
	value, err := AppendRecord(nil, sample())
	if err != nil || string(value) != sampleValue {
		t.Fatalf("%s\n%v, instead of\n%s", value, err, sampleValue)
	}
	back, err := DecodeRecord(noteRules{}.Registry(), value)
	if err != nil || !reflect.DeepEqual(back, sample()) {
		t.Errorf("decoded as %+v, %v", back, err)
	}
	small := sample()
	small.Command.Actor, small.Command.Kept = decide.Engine, decide.Kept{}
	value, err = AppendRecord(nil, small)
	if err != nil || !strings.Contains(string(value), `"actor":{"system":"engine"},"data":{}},`) {
		t.Errorf("%s, %v", value, err)
	}
}

func TestWhatHasNoFormIsNotEncoded(t *testing.T) {
	for what, change := range map[string]func(*Record){
		"no event":        func(r *Record) { r.Events = nil },
		"no outcome":      func(r *Record) { r.Outcome = "" },
		"bad type":        func(r *Record) { r.Command.Type = "\xff" },
		"bad actor":       func(r *Record) { r.Command.Actor.Sub = "\xff" },
		"bad key":         func(r *Record) { r.Command.Kept.Key = "\xff" },
		"bad source":      func(r *Record) { r.Command.Kept.Source.Journal = "\xff" },
		"bad event":       func(r *Record) { r.Events[0].(*note).Text = "\xff" },
		"failing encoder": func(r *Record) { r.Events[1].(*quick).N = -1 },
	} {
		r := sample()
		change(r)
		if value, err := AppendRecord(nil, r); err == nil {
			t.Errorf("%s: %s", what, value)
		}
	}
}

func TestWhatIsNotExactlyARecordIsNotDecoded(t *testing.T) {
	for what, change := range map[string][2]string{
		"space":                     {`{"sequence":12`, `{"sequence": 12`},
		"leading zero":              {`"sequence":12`, `"sequence":012`},
		"negative":                  {`"sequence":12`, `"sequence":-1`},
		"too great":                 {`"sequence":12`, `"sequence":9223372036854775808`},
		"fraction":                  {`"sequence":12`, `"sequence":12.0`},
		"upper-case hash":           {`"prev":"ab`, `"prev":"AB`},
		"short hash":                {`"prev":"ab`, `"prev":"a`},
		"comma in time":             {`07.000089Z`, `07,000089Z`},
		"no such day":               {`2026-03-04`, `2026-02-30`},
		"upper-case id":             {`"id":"010203`, `"id":"0A0203`},
		"escaped type":              {`"type":"test.say"`, `"type":"test\u002esay"`},
		"actor's order":             {`"sub":"alice","broker":"alpha"`, `"broker":"alpha","sub":"alice"`},
		"empty actor member":        {`"sub":"alice"`, `"sub":""`},
		"unknown actor":             {`"customer":"C1"`, `"account":"C1"`},
		"unknown kept":              {`"fingerprint":"00ff"`, `"print":"00ff"`},
		"repeated kept":             {`"fingerprint":"00ff"`, `"key":"00ff"`},
		"outcome":                   {`"rejected"`, `"refused"`},
		"no events":                 {`"events":[{`, `"events":[],"x":[{`},
		"trailing data":             {`]}`, `]} `},
		"version 0":                 {`"version":2`, `"version":0`},
		"other version":             {`"version":2`, `"version":3`},
		"unknown type":              {`test.note`, `test.nope`},
		"unknown member":            {`"text":`, `"test":`},
		"repeated member":           {`"list":["x"]`, `"text":"x"`},
		"space in data":             {`{"n":7}`, `{"n":7 }`},
		"invalid UTF-8":             {`é`, "\xe9"},
		"wrong type of data":        {`"n":7`, `"n":"7"`},
		"data is no object":         {`{"n":7}`, `7`},
		"a second document":         {`]}`, `]}{}`},
		"a member after the events": {`]}`, `],"x":1}`},
	} {
		i := strings.LastIndex(sampleValue, change[0])
		if i < 0 {
			t.Fatalf("%s: nothing to change", what)
		}
		value := sampleValue[:i] + change[1] + sampleValue[i+len(change[0]):]
		if r, err := DecodeRecord(noteRules{}.Registry(), []byte(value)); err == nil {
			t.Errorf("%s: decoded %s as %+v", what, value, r)
		}
	}
	for i := range sampleValue {
		if _, err := DecodeRecord(noteRules{}.Registry(), []byte(sampleValue[:i])); err == nil {
			t.Errorf("decoded the first %d bytes", i)
		}
	}
}

func TestKeyHeadersAndTimestampAreFunctionsOfTheValue(t *testing.T) {
	r, id := sample(), scalar.ID{9, 9}
	e := Entry{Record: r, Journal: id, Value: []byte(sampleValue)}
	k := KafkaRecord("x-trading", "trading", 3, id, r, e.Value)
	if string(k.Key) != "trading/3" || k.Topic != "x-trading" || k.Partition != 3 || k.Timestamp.UnixMicro() != 1772600767000000 {
		t.Errorf("%+v", k)
	}
	want := [][2]string{{"ce_specversion", "1.0"}, {"ce_id", "09090000-0000-0000-0000-000000000000/12"}, {"ce_source", "/journals/trading/3"},
		{"ce_type", "test.say"}, {"ce_time", "2026-03-04T05:06:07.000089Z"}, {"content-type", "application/json"}}
	for i, h := range k.Headers {
		if h.Key != want[i][0] || string(h.Value) != want[i][1] {
			t.Errorf("header %d is %s: %s", i, h.Key, h.Value)
		}
	}
	if err := VerifyKafka(e, "trading", k); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(*kgo.Record){
		"key":       func(k *kgo.Record) { k.Key = nil },
		"timestamp": func(k *kgo.Record) { k.Timestamp = k.Timestamp.Add(time.Millisecond) },
		"value":     func(k *kgo.Record) { k.Headers[3].Value = []byte("test.other") },
		"name":      func(k *kgo.Record) { k.Headers[0].Key = "x" },
		"more":      func(k *kgo.Record) { k.Headers = append(k.Headers, kgo.RecordHeader{Key: "x"}) },
		"partition": func(k *kgo.Record) { k.Partition = 4 },
	} {
		k := KafkaRecord("x-trading", "trading", 3, id, r, e.Value)
		change(k)
		if VerifyKafka(e, "trading", k) == nil {
			t.Errorf("another %s passes", what)
		}
	}
}

// link makes a value that comes after prev.
func link(sequence int64, prev Hash, events ...decide.Event) []byte {
	r := sample()
	r.Sequence, r.Prev, r.Events = sequence, prev, events
	switch events[0].(type) {
	case *Genesis, *Taken:
		r.Command.Type = events[0].EventType()
	}
	value, err := AppendRecord(nil, r)
	if err != nil {
		panic(err)
	}
	return value
}

func TestTheRuleOfValidity(t *testing.T) {
	genesis := &Genesis{Journal: "trading", JournalID: scalar.ID{5}, Partition: 0, Partitions: 1}
	first := link(0, Hash{}, genesis)
	h0 := Hash(sha256.Sum256(first))
	second := link(1, h0, &Taken{Term: 1, Node: "n"})
	h1 := Hash(sha256.Sum256(second))
	start := func() *chain {
		c := newChain(noteRules{}, 0, Before)
		for i, v := range [][]byte{first, second} {
			if _, ok, err := c.admit(int64(i), v); !ok || err != nil {
				t.Fatalf("record %d: %v %v", i, ok, err)
			}
		}
		return c
	}
	swap := func(v []byte, old, to string) []byte { return []byte(strings.Replace(string(v), old, to, 1)) }
	good := link(2, h1, &note{Text: "hello"})
	for what, v := range map[string][]byte{
		"nothing":                           nil,
		"garbage":                           []byte("garbage"),
		"JSON":                              []byte(`{"a":1}`),
		"another genesis":                   link(0, Hash{}, genesis),
		"the last one again":                second,
		"another prev":                      link(2, h0, &note{Text: "x"}),
		"the right number only":             link(2, Hash{7}, &note{Text: "x"}),
		"an unknown type with another prev": swap(link(2, h0, &note{Text: "x"}), "test.note", "test.nope"),
		"right prev, broken JSON":           swap(good, `{"text":"hello"}`, `{"text":"hello",,}`),
		"right prev, repeated names":        swap(good, `{"text":"hello"}`, `{"text":"hello","text":"x"}`),
		"right prev, invalid UTF-8":         swap(good, `hello`, "\xff"),
		"cut off":                           good[:len(good)-1],
	} {
		c := start()
		if _, ok, err := c.admit(2, v); ok || err != nil {
			t.Errorf("%s: %v %v", what, ok, err)
		}
		if e, ok, err := c.admit(3, good); !ok || err != nil || e.Position.Offset != 3 || e.Position.Sequence != 2 || e.Position.Hash != sha256.Sum256(good) {
			t.Errorf("after %s: %v %v", what, ok, err)
		}
	}
	for what, v := range map[string][]byte{
		"a sequence behind":   link(1, h1, &note{Text: "x"}),
		"a sequence ahead":    link(3, h1, &note{Text: "x"}),
		"an unknown type":     swap(good, "test.note", "test.nope"),
		"an unknown version":  swap(good, `"version":2`, `"version":9`),
		"an unknown member":   swap(good, `"text"`, `"test"`),
		"another form":        swap(good, `{"sequence":2,`, `{"sequence":2,"trace":"x",`),
		"space":               swap(good, `,`, ` ,`),
		"a second genesis":    link(2, h1, genesis),
		"a stale term":        link(2, h1, &Taken{Term: 1}),
		"a term left out":     link(2, h1, &Taken{Term: 3}),
		"taken and more":      link(2, h1, &Taken{Term: 2}, &note{Text: "x"}),
		"taken in disguise":   swap(link(2, h1, &Taken{Term: 2}), `"type":"journal.taken","actor"`, `"type":"test.say","actor"`),
		"disguised as taken":  swap(good, `"type":"test.say"`, `"type":"journal.taken"`),
		"an invalid sequence": swap(good, `"sequence":2`, `"sequence":2.5`),
	} {
		c := start()
		_, ok, err := c.admit(2, v)
		var broken *BrokenRecordError
		if ok || !errors.As(err, &broken) || broken.Offset != 2 || broken.Journal != "trading" {
			t.Errorf("%s: %v %v", what, ok, err)
		}
	}
	for what, v := range map[string][]byte{
		"another journal's":   link(0, Hash{}, &Genesis{Journal: "identity", Partitions: 1}),
		"another partition's": link(0, Hash{}, &Genesis{Journal: "trading", Partition: 1, Partitions: 2}),
		"no genesis":          link(0, Hash{}, &note{Text: "x"}),
	} {
		c := newChain(noteRules{}, 0, Before)
		if _, ok, err := c.admit(0, v); ok || err == nil {
			t.Errorf("%s: %v %v", what, ok, err)
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(sampleValue))
	f.Add(link(0, Hash{}, &Genesis{Journal: "trading", Partitions: 1}))
	f.Add(link(2, Hash{3}, &Taken{Term: 4, Node: "n", URL: "http://n", Build: "dev"}))
	own, rules := Shapes(), noteRules{}.Registry()
	f.Fuzz(func(t *testing.T, value []byte) {
		e, err := parseEnvelope(value)
		if err != nil {
			return
		}
		r, err := e.finish(own, rules)
		if err != nil {
			return
		}
		// The envelope has one form: with the events' data left as it was, encoding gives the same bytes.
		raw := *r
		raw.Events = nil
		for _, v := range e.events {
			raw.Events = append(raw.Events, &asItWas{v})
		}
		if again, err := AppendRecord(nil, &raw); err != nil || !bytes.Equal(again, value) {
			t.Fatalf("%s\nbecame\n%s\n%v", value, again, err)
		}
		// And what was once written by AppendRecord stays the same for ever.
		once, err := AppendRecord(nil, r)
		if err != nil {
			t.Fatalf("decoded %s and can't encode it: %v", value, err)
		}
		back, err := DecodeRecord(rules, once)
		if err != nil {
			t.Fatalf("can't decode %s: %v", once, err)
		}
		if twice, err := AppendRecord(nil, back); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s\nbecame\n%s\n%v", once, twice, err)
		}
	})
}

type asItWas struct{ raw rawEvent }

func (a *asItWas) EventType() string                   { return a.raw.name }
func (a *asItWas) EventVersion() int                   { return a.raw.version }
func (a *asItWas) AppendJSON(b []byte) ([]byte, error) { return append(b, a.raw.data...), nil }
