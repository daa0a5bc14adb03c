package identity_test

import (
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
)

// TestFrozenLog decides random commands in short logs, one after the other, and compares the SHA-256 of all records with
// that of earlier builds.
func TestFrozenLog(t *testing.T) {
	digest := new(recordtest.Digest)
	freeze := func(records int, name string) {
		for seed := digest.Records(); digest.Records() < records; seed++ {
			frozenWorld(t, digest, seed)
		}
		digest.Check(t, name)
	}
	freeze(10_000, "10,000 records")
	if os.Getenv(recordtest.Long) != "" {
		freeze(100_000, "100,000 records")
	}
}

// frozenWorld adds the records of one log of random commands to the digest.
func frozenWorld(t *testing.T, digest *recordtest.Digest, seed int) {
	l := rapid.Custom(func(r *rapid.T) *log {
		l := seeded(t)
		for range rapid.IntRange(20, 200).Draw(r, "commands") {
			l.now += scalar.Time(rapid.Int64Range(0, int64(10*scalar.Hour)).Draw(r, "passes"))
			l.do(l.draw(r))
		}
		return l
	}).Example(seed)
	log, registry := recordtest.NewLog(t, digest, identity.Rules(), scalar.ID{7}, start), identity.Rules().Registry()
	for _, r := range l.records {
		var events []decide.Event
		for _, e := range r.events {
			event, err := registry.Decode(e.kind, e.version, e.data)
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, event)
		}
		log.Append(r.at.Time, r.command, r.outcome, events)
	}
}
