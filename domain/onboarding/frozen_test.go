package onboarding_test

import (
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	journal "github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
)

// TestFrozenLog decides random commands in short logs, one after the other, and compares the SHA-256 of all records with
// that of earlier builds.
func TestFrozenLog(t *testing.T) {
	digest, again := new(recordtest.Digest), make(recordtest.Verdicts)
	freeze := func(records int, name string) {
		for seed := digest.Records(); digest.Records() < records; seed++ {
			frozenWorld(t, digest, again, seed, 1+2*(seed%2))
		}
		digest.Check(t, name)
	}
	freeze(10_000, "10,000 records")
	if os.Getenv(recordtest.Long) != "" {
		freeze(100_000, "100,000 records")
	}
	t.Logf("decided again: %v", again)
}

// TestFrozenLogByRules4 does the same for the rules that record inputs, by which every record can be decided again.
func TestFrozenLogByRules4(t *testing.T) {
	digest, again := new(recordtest.Digest), make(recordtest.Verdicts)
	for seed := 0; digest.Records() < 3_000; seed++ {
		frozenWorld(t, digest, again, seed, 4)
	}
	digest.Check(t, "3,000 records by rules 4")
	t.Logf("decided again: %v", again)
}

// frozenWorld adds the records of one log of random commands and steps to the digest.
func frozenWorld(t *testing.T, digest *recordtest.Digest, again recordtest.Verdicts, seed, rules int) {
	l := rapid.Custom(func(r *rapid.T) *log {
		l, w := owners(t), new(world)
		for next := l.state.ActiveRules() + 1; next <= rules; next++ {
			l.must(operator, &decide.ActivateRules{Rules: next})
		}
		for range rapid.IntRange(20, 200).Draw(r, "commands") {
			l.now += scalar.Time(rapid.Int64Range(0, int64(5*scalar.Day)).Draw(r, "passes"))
			for l.state.Due(l.now) != decide.Nothing {
				engine := decide.Recorded{Type: "engine.step", Actor: decide.Engine}
				if rapid.IntRange(0, 9).Draw(r, "set aside") == 0 {
					l.fold(engine, l.state.SetAside(l.stamp(), "broken"))
					continue
				}
				l.fold(engine, l.state.Step(l.stamp(), false))
				w.note(l.last)
			}
			actor, payload := w.random(r, l)
			l.do(actor, payload)
			w.note(l.last)
		}
		return l
	}).Example(seed)
	l.write(t, digest, again)
}

// write writes the log as the records of a journal. Each is decided again: see recordtest.Log.
func (l *log) write(t *testing.T, digest *recordtest.Digest, again recordtest.Verdicts) {
	t.Helper()
	l.writeBy(t, onboarding.Rules(), digest, again)
}

func (l *log) writeBy(t *testing.T, rules decide.Rules, digest *recordtest.Digest, again recordtest.Verdicts) {
	t.Helper()
	log := recordtest.NewLog(t, digest, rules, onboarding.Payloads(), again, id(77), start)
	registry := onboarding.Rules().Registry()
	for _, r := range l.records {
		var events []decide.Event
		for _, e := range r.events {
			event, err := registry.Decode(e.kind, e.version, e.data)
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, event)
		}
		log.Append(&journal.Record{Time: r.at.Time, Command: r.command, Input: r.input, Outcome: r.outcome, Events: events})
	}
}
