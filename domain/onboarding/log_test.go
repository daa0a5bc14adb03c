package onboarding_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

const start = scalar.Time(1_700_000_000_000_000)

var (
	alpha    = decide.Actor{Sub: "broker-a", Broker: "alpha"}
	beta     = decide.Actor{Sub: "broker-b", Broker: "beta"}
	operator = decide.Actor{Sub: "operator", Broker: "venue"}

	ann   = owner.Ref{Type: owner.PersonType, ID: id(1)}
	bob   = owner.Ref{Type: owner.PersonType, ID: id(2)}
	corp  = owner.Ref{Type: owner.CorporateType, ID: id(3)}
	ghost = owner.Ref{Type: owner.PersonType, ID: id(99)}
)

func id(n byte) scalar.ID       { return scalar.ID{0: 1, 15: n} }
func hmac(s string) []byte      { return bytes.Repeat([]byte{s[0]}, 32) }
func ptr[T any](v T) *T         { return &v }
func sealed() onboarding.Sealed { return onboarding.Sealed("ciphertext") }

// log is a journal in memory: what was decided, as the bytes that the journal would keep of it.
type log struct {
	t       testing.TB
	state   *onboarding.State
	now     scalar.Time
	records []record
	last    []decide.Event // of the latest record
}

type record struct {
	at      decide.Stamp
	command decide.Recorded
	input   string
	outcome decide.Outcome
	events  []encoded
}

type encoded struct {
	kind    string
	version int
	data    jsontext.Value
}

func newLog(t testing.TB) *log { return &log{t: t, state: onboarding.NewState(), now: start} }

func (l *log) stamp() decide.Stamp {
	return decide.Stamp{Journal: id(77), Sequence: int64(len(l.records)) + 1, Time: l.now}
}

// do decides a command and folds its record. It returns the refusal's code, or "repeat N", or the events' types.
func (l *log) do(actor decide.Actor, payload decide.Payload) string {
	l.t.Helper()
	return l.keyed(actor, "", payload)
}

func (l *log) keyed(actor decide.Actor, key string, payload decide.Payload) string {
	l.t.Helper()
	c := decide.Command{Type: payload.CommandType(), Actor: actor, Payload: payload, Metadata: decide.Metadata{Key: key}}
	if key != "" {
		c.Metadata.Fingerprint = fmt.Sprintf("%x", fmt.Sprintf("%+v", payload))
	}
	d, err := l.state.Decide(l.stamp(), c)
	if err != nil {
		var refusal *decide.Refusal
		if !errors.As(err, &refusal) {
			l.t.Fatalf("Decide failed with %v, which is no refusal", err)
		}
		return refusal.Code
	}
	if d.Repeated {
		return fmt.Sprintf("repeat %d", d.Repeat)
	}
	return l.fold(c.Recorded(), d)
}

func (l *log) fold(c decide.Recorded, d decide.Decision) string {
	l.t.Helper()
	if len(d.Events) == 0 {
		l.t.Fatal("a decision without events")
	}
	r := record{at: l.stamp(), command: c, input: d.Input, outcome: d.Outcome}
	var types []string
	for _, e := range d.Events {
		data, err := json.Marshal(e)
		if err != nil {
			l.t.Fatal(err)
		}
		r.events = append(r.events, encoded{e.EventType(), decide.VersionOf(e), data})
		types = append(types, e.EventType())
	}
	l.records, l.last = append(l.records, r), d.Events
	if _, stepped := d.Events[0].(*onboarding.Step); stepped {
		l.last = d.Events[1:]
	}
	l.state.Evolve(r.at, r.command, r.outcome, d.Events)
	return strings.Join(types, " ")
}

// must decides a command that has to be taken.
func (l *log) must(actor decide.Actor, payload decide.Payload) {
	l.t.Helper()
	if got := l.do(actor, payload); got != strings.ToLower(got) {
		l.t.Fatalf("%s: %s", payload.CommandType(), got)
	}
}

// steps does all that is due, and returns the types of the events of each step.
func (l *log) steps() []string {
	l.t.Helper()
	var out []string
	for l.state.Due(l.now) != decide.Nothing {
		made, stepped := strings.CutPrefix(l.fold(decide.Recorded{Actor: decide.Engine, Type: "engine.step"}, l.state.Step(l.stamp(), false)), "engine.step ")
		if !stepped {
			l.t.Fatalf("a step's record begins with %s", made)
		}
		out = append(out, made)
		if len(out) > 1000 {
			l.t.Fatal("the work does not end")
		}
	}
	return out
}

// replay folds the kept bytes into a new state, and sees that every event is encoded as it was.
func (l *log) replay() *onboarding.State {
	l.t.Helper()
	s := onboarding.NewState()
	registry := onboarding.Rules().Registry()
	for _, r := range l.records {
		var events []decide.Event
		for _, e := range r.events {
			event, err := registry.Decode(e.kind, e.version, e.data)
			if err != nil {
				l.t.Fatal(err)
			}
			again, err := json.Marshal(event)
			if err != nil || string(again) != string(e.data) {
				l.t.Fatalf("%s is encoded as %s and then as %s (%v)", e.kind, e.data, again, err)
			}
			events = append(events, event)
		}
		s.Evolve(r.at, r.command, r.outcome, events)
	}
	return s
}

// replayed fails unless a replay of the log gives the state.
func (l *log) replayed() {
	l.t.Helper()
	if s := l.replay(); !reflect.DeepEqual(s, l.state) {
		l.t.Errorf("replayed:\n%+v\nwas:\n%+v", s, l.state)
	}
}

// expect has commands answered one after the other.
type expect struct {
	name    string
	actor   decide.Actor
	payload decide.Payload
	want    string
}

func (l *log) run(cases []expect) {
	l.t.Helper()
	for _, c := range cases {
		if got := l.do(c.actor, c.payload); got != c.want {
			l.t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func register(ref owner.Ref, name string) *onboarding.RegisterOwner {
	return &onboarding.RegisterOwner{Ref: ref, ExternalID: hmac(name), Fields: sealed()}
}

func upload(ref owner.Ref, n byte) *onboarding.AddDocument {
	return &onboarding.AddDocument{Ref: ref, ID: id(n), Category: "id_document", Orientation: "front", Name: sealed(), Source: "k/1",
		SHA256: hmac("s"), Size: 10, Format: "pdf"}
}

// owners returns a log with ann and corp of alpha and bob of beta.
func owners(t testing.TB) *log {
	l := newLog(t)
	l.must(alpha, register(ann, "ann"))
	l.must(beta, register(bob, "bob"))
	l.must(alpha, register(corp, "ann"))
	return l
}
