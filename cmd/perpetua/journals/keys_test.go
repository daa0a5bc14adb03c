package journals_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// old is a journal that a build wrote which did not tell routes apart, folded.
type old struct {
	journals.Journal
	state   decide.State
	records []*record.Record
	last    decide.Stamp
}

func open(t *testing.T, name string) *old {
	t.Helper()
	j, err := journals.All().Of(name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/keys/" + name + ".journal")
	if err != nil {
		t.Fatal(err)
	}
	o := &old{Journal: j, state: j.Rules.NewState()}
	for value := range bytes.Lines(text) {
		r, err := record.Decode(j.Rules.Registry(), bytes.TrimSuffix(value, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		o.last.Sequence, o.last.Time = r.Sequence, r.Time
		o.state.Evolve(o.last, r.Command, r.Outcome, r.Events)
		o.records = append(o.records, r)
	}
	return o
}

// answer says which record answers a command of this build that has the key of an old one; -1: the key was used for
// another.
func (o *old) answer(t *testing.T, r *record.Record, fingerprint string) int64 {
	t.Helper()
	payload, known := o.Payloads.New(r.Command.Type)
	if !known {
		t.Fatalf("%s makes nothing", r.Command.Type)
	}
	c := decide.Command{ID: scalar.ID{9}, Type: r.Command.Type, Actor: r.Command.Actor, Payload: payload,
		Metadata: decide.Metadata{Key: r.Command.Metadata.Key, Fingerprint: fingerprint}}
	d, err := o.state.Decide(decide.Stamp{Sequence: o.last.Sequence + 1, Time: o.last.Time + scalar.Hour}, c)
	var refusal *decide.Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Code == decide.CodeKeyReused:
		return -1
	case err != nil || !d.Repeated:
		t.Errorf("record %d, a %s, would be decided anew: %+v, %v", r.Sequence, c.Type, d, err)
	}
	return d.Repeat
}

// TestKeysOfABuildThatDidNotTellRoutesApart folds journals of such a build, by way of snapshots too. A request that was
// decided there has its answer, whether its command tells the route now or not; with another content its key is
// refused.
func TestKeysOfABuildThatDidNotTellRoutesApart(t *testing.T) {
	for name, least := range map[string]int{"trading": 10, "onboarding": 12} {
		o, keyed := open(t, name), 0
		for range 2 {
			for _, r := range o.records {
				print := r.Command.Metadata.Fingerprint
				if r.Command.Metadata.Key == "" || r.Command.Actor.Sub == "" {
					continue
				}
				keyed++
				for _, now := range []string{print, decide.OfRoute("POST /somewhere", print)} {
					if got := o.answer(t, r, now); got != r.Sequence {
						t.Errorf("%s: record %d, a %s, is answered by %d", name, r.Sequence, r.Command.Type, got)
					}
				}
				if got := o.answer(t, r, decide.OfRoute("POST /somewhere", strings.Repeat("0", 32))); got != -1 {
					t.Errorf("%s: another request with the key of record %d is answered by %d", name, r.Sequence, got)
				}
			}
			state, err := o.Codec.Read(o.Codec.Append(nil, o.state))
			if err != nil {
				t.Fatal(err)
			}
			o.state = state
		}
		if keyed < 2*least {
			t.Errorf("%s has %d keys", name, keyed/2)
		}
	}
}
