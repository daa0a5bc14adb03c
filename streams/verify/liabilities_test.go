package verify_test

import (
	"crypto/sha256"
	"slices"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/epoch"
	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/liabilities"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

// stating returns the beginning of the sample of trading up to an instant of funding, and a record with the statement about it, which
// forge may change.
func stating(t *testing.T, forge func(*form.Statement)) *sample {
	t.Helper()
	all := samples()[0]
	s := &sample{Config: all.Config, id: all.id}
	state, decoder := s.Rules.NewState().(*trading.State), record.NewDecoder(s.Rules.Registry())
	now := scalar.Time(0)
	evolve := func() {
		r, err := decoder.Decode(s.records[len(s.records)-1].Value)
		if err != nil {
			t.Fatal(err)
		}
		now = r.Time
		state.Evolve(decide.Stamp{Journal: s.id, Sequence: r.Sequence, Time: r.Time, Prev: r.Prev}, r.Command, r.Outcome, r.Events)
	}
	var owed *liabilities.Snapshot
	stop := len(all.records)
	for n, k := range all.records {
		s.records = append(s.records, k)
		if evolve(); owed == nil {
			if at, ok := state.FundingInstant(); ok {
				stop = n + 20
				at.Hash = position(k).Hash
				owed = liabilities.Of(state, at)
			}
		}
		if n == stop {
			break
		}
	}
	if owed == nil {
		t.Fatal("the sample has no instant of funding")
	}
	key, err := commitment.NewEpochKey(secret, s.id, epoch.Of(owed.Sequence))
	if err != nil {
		t.Fatal(err)
	}
	b, err := liabilities.State(owed, key)
	if err != nil {
		t.Fatal(err)
	}
	forge(&b.Statement)
	do := func(actor decide.Actor, p decide.Payload) {
		at := decide.Stamp{Journal: s.id, Sequence: int64(len(s.records)), Time: now, Prev: sha256.Sum256(s.records[len(s.records)-1].Value)}
		c := decide.Command{ID: scalar.ID{1}, Type: p.CommandType(), Actor: actor, Payload: p}
		d, err := state.Decide(at, c)
		if err != nil {
			t.Fatal(err)
		}
		s.add(t, record.Record{Time: now, Command: c.Recorded(), Input: d.Input, Outcome: d.Outcome, Events: d.Events})
		evolve()
	}
	for rules := 2; !state.StatesLiabilities() && rules <= s.Rules.Newest(); rules++ {
		do(decide.Actor{Sub: "operator", Broker: "venue"}, &decide.ActivateRules{Rules: rules})
	}
	do(decide.Actor{System: "liabilities"}, &trading.RecordLiabilities{Statement: b.Statement}) // an owner accepts it
	return s
}

// TestLiabilities: false statements that an owner accepts, and that add up, are found.
func TestLiabilities(t *testing.T) {
	more := func(a *form.Amount) { *a = form.Amount{Hi: a.Hi, Lo: a.Lo + 5} }
	for name, c := range map[string]struct {
		forge   func(*form.Statement)
		keyless bool // it is found without the key
	}{
		"true":         {func(*form.Statement) {}, false},
		"total":        {func(s *form.Statement) { more(&s.Total); more(&s.Deficits) }, true},
		"fund":         {func(s *form.Statement) { s.Venue.Insurance += 5; s.Venue.Rounding -= 5 }, true},
		"leaves":       {func(s *form.Statement) { s.Leaves *= 16 }, true},
		"other leaves": {func(s *form.Statement) { s.Root[0] ^= 1 }, false},
	} {
		s := stating(t, c.forge)
		n := int64(len(s.records) - 1)
		for _, workers := range []int{1, 3} {
			for _, span := range []int{7, 5000} {
				cfg := s.with(s.records)
				cfg.Workers, cfg.SpanRecords = workers, span
				report := run(t, cfg)
				if d := report.Difference; (d != nil) != c.keyless || d != nil && (d.Check != verify.CheckLiabilities || d.Sequence != n) ||
					d == nil && report.Decided.Unverified["liabilities: root"] != 1 {
					t.Errorf("%s, without keys: %+v", name, report)
				}
				cfg.Keys = s.signed(t, 0).Keys
				report = run(t, cfg)
				if d := report.Difference; (d == nil) != (name == "true") || d != nil && (d.Check != verify.CheckLiabilities || d.Sequence != n) || len(report.Decided.Unverified) > 0 {
					t.Errorf("%s: %+v", name, report)
				}
			}
		}
	}
	s := stating(t, func(*form.Statement) {})
	base := int64(len(s.records) - 5) // after the instant
	cfg := s.with(nil)
	cfg.Source = verify.FromLog(log{records: s.records[base:], base: &record.Base{Journal: s.name(), Partitions: 1, JournalID: s.id, Sequence: base,
		Prev: position(s.records[base-1]).Hash, Term: 1}})
	for _, snapshots := range [][]verify.Snapshot{nil, s.saved(t, base)} {
		cfg.Snapshots = slices.Clone(snapshots)
		if report := run(t, cfg); report.Difference != nil || report.Decided.Unverified["liabilities: sums and root"] != 1 {
			t.Errorf("the instant is before the base: %+v", report)
		}
	}
}
