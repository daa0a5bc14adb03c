package identity_test

import (
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
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
			frozenWorld(t, digest, again, seed)
		}
		digest.Check(t, name)
	}
	freeze(10_000, "10,000 records")
	if os.Getenv(recordtest.Long) != "" {
		freeze(100_000, "100,000 records")
	}
	t.Logf("decided again: %v", again)
}

// frozenWorld adds the records of one log of random commands to the digest.
func frozenWorld(t *testing.T, digest *recordtest.Digest, again recordtest.Verdicts, seed int) {
	l := rapid.Custom(func(r *rapid.T) *log {
		l := seeded(t)
		for range rapid.IntRange(20, 200).Draw(r, "commands") {
			l.now += scalar.Time(rapid.Int64Range(0, int64(10*scalar.Hour)).Draw(r, "passes"))
			l.do(l.draw(r))
		}
		return l
	}).Example(seed)
	l.write(t, digest, again)
}

// write writes the log as the records of a journal. Each is decided again: see recordtest.Log.
func (l *log) write(t *testing.T, digest *recordtest.Digest, again recordtest.Verdicts) {
	t.Helper()
	log := recordtest.NewLog(t, digest, identity.Rules(), identity.Payloads(), again, scalar.ID{7}, start)
	log.DecidedIn(scalar.ID{})
	registry := identity.Rules().Registry()
	for _, r := range l.records {
		var events []decide.Event
		for _, e := range r.events {
			event, err := registry.Decode(e.kind, e.version, e.data)
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, event)
		}
		log.Append(&journal.Record{Time: r.at.Time, Command: r.command, Outcome: r.outcome, Events: events})
	}
}
