package verify_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

// log is a log in memory.
type log struct {
	transfer.Log // the rest of it
	records      []*kgo.Record
	base         *record.Base
}

func (l log) Base(context.Context) (*record.Base, error) { return l.base, nil }

func (l log) Records(context.Context) (transfer.Records, error) {
	return &logReader{l.records}, nil
}

func (log) String() string { return "the log" }

type logReader struct{ left []*kgo.Record }

func (r *logReader) Next(ctx context.Context) (*kgo.Record, error) {
	if len(r.left) == 0 || ctx.Err() != nil {
		return nil, io.EOF
	}
	next := r.left[0]
	r.left = r.left[1:]
	return next, nil
}

func (*logReader) Close() {}

// sample is a journal with a few hundred records or more, decided by its rules.
type sample struct {
	verify.Config
	id      scalar.ID
	records []*kgo.Record
}

func (s *sample) name() string { return s.Rules.Journal() }

// with returns the configuration for other records of the journal.
func (s *sample) with(records []*kgo.Record) verify.Config {
	cfg := s.Config
	cfg.Source = verify.FromLog(log{records: records})
	return cfg
}

// add appends a record to the chain, as an owner writes it.
func (s *sample) add(t testing.TB, r record.Record) {
	t.Helper()
	r.Sequence, r.Prev = int64(len(s.records)), record.Hash{}
	if n := len(s.records); n > 0 {
		r.Prev = sha256.Sum256(s.records[n-1].Value)
	}
	value, err := record.Encode(nil, &r)
	if err != nil {
		t.Fatal(err)
	}
	s.records = append(s.records, s.kafka(&r, value))
}

func (s *sample) kafka(r *record.Record, value []byte) *kgo.Record {
	k := journal.KafkaRecord("topic", s.name(), 0, s.id, r, value)
	k.Offset = r.Sequence
	return k
}

// samples returns the three journals. They are the same in all tests, which MUST NOT change them.
var samples = sync.OnceValue(func() []*sample {
	t := new(fataler)
	owner := projectiontest.NewOwner(t, 5)
	owner.Play(1200)
	owner.PassHour()
	owner.Play(300)
	registrar := projectiontest.NewRegistrar(t, 6)
	registrar.Play(1600)
	before := slices.IndexFunc(registrar.Entries, func(e record.Entry) bool { return e.Record.Command.Type == decide.CommandActivateRules })
	all := []*sample{
		{Config: verify.Config{Rules: trading.Rules(), Codec: trading.Codec(), Payloads: trading.Payloads()}},
		{Config: verify.Config{Rules: onboarding.Rules(), Codec: onboarding.Codec(), Payloads: onboarding.Payloads()}},
		users(t),
	}
	for i, entries := range [][]record.Entry{owner.Entries, registrar.Entries[:before]} { // from there on, records have inputs
		all[i].id = entries[0].Journal
		for _, e := range entries {
			r := *e.Record
			if id := waits(r.Events); r.Command.Actor != decide.Engine && !id.IsZero() { // the generators give records other ids
				r.Command.ID = id
			}
			all[i].add(t, r)
		}
	}
	return all
})

// waits returns the id of the command that waits for the result of work, if a record is about work.
func waits(events []decide.Event) (id scalar.ID) {
	for _, e := range events {
		switch e := e.(type) {
		case *trading.WorkStarted:
			id = e.CommandID
		case *trading.WorkFinished:
			id = e.CommandID
		}
	}
	return id
}

// users returns a journal of users, brokers and keys.
func users(t testing.TB) *sample {
	s := &sample{Config: verify.Config{Rules: identity.Rules(), Codec: identity.Codec(), Payloads: identity.Payloads()}, id: scalar.ID{9}}
	state, now, random := s.Rules.NewState(), scalar.Time(1_800_000_000_000_000), rand.New(rand.NewPCG(3, 4))
	keep := func(c decide.Recorded, d decide.Decision) {
		at := decide.Stamp{Journal: s.id, Sequence: int64(len(s.records)), Time: now}
		s.add(t, record.Record{Time: now, Command: c, Input: d.Input, Outcome: decide.Accepted, Events: d.Events})
		state.Evolve(at, c, decide.Accepted, d.Events)
		now += scalar.Time(random.IntN(1000))
	}
	keep(decide.Recorded{Type: record.TypeGenesis, Actor: decide.Engine}, decide.Decision{Events: []decide.Event{&record.Genesis{Journal: "identity", JournalID: s.id, Partitions: 1}}})
	keep(decide.Recorded{Type: record.TypeTermStarted, Actor: decide.Engine}, decide.Decision{Events: []decide.Event{&record.TermStarted{Term: 1, Node: "n"}}})
	system := decide.Actor{System: "bootstrap"}
	for n := range 400 {
		var p decide.Payload = &identity.RegisterBroker{Broker: fmt.Sprintf("broker%d", n), Name: "Broker"}
		if n%4 > 0 {
			p = &identity.RegisterUser{Username: fmt.Sprintf("user%d", n), Broker: fmt.Sprintf("broker%d", n-n%4), Scopes: []string{"read", "trade"}, IsActive: n%3 > 0, PasswordHash: []byte("sealed")}
		}
		c := decide.Command{ID: scalar.ID{byte(n), byte(n >> 8), 1}, Type: p.CommandType(), Actor: system, Payload: p}
		d, err := state.Decide(decide.Stamp{Journal: s.id, Sequence: int64(len(s.records)), Time: now}, c)
		if err != nil {
			t.Fatalf("%s: %v", c.Type, err)
		}
		keep(c.Recorded(), d)
	}
	return s
}

// fataler lets generators fail that are not called by a test.
type fataler struct{ testing.TB }

func (*fataler) Helper()                         {}
func (*fataler) Fatal(args ...any)               { panic(fmt.Sprint(args...)) }
func (*fataler) Fatalf(format string, a ...any)  { panic(fmt.Sprintf(format, a...)) }
func (*fataler) Errorf(format string, a ...any)  { panic(fmt.Sprintf(format, a...)) }
func (*fataler) Logf(format string, args ...any) {}
func (*fataler) Cleanup(func())                  {}

// run verifies a log.
func run(t testing.TB, cfg verify.Config) verify.Report {
	t.Helper()
	report, err := verify.Verify(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// clone returns a copy of a record that can be changed.
func clone(r *kgo.Record) *kgo.Record {
	c := *r
	c.Key, c.Value, c.Headers = slices.Clone(r.Key), slices.Clone(r.Value), slices.Clone(r.Headers)
	for i := range c.Headers {
		c.Headers[i].Value = slices.Clone(c.Headers[i].Value)
	}
	return &c
}

// renumber returns copies with the offsets that a topic would give to the records.
func renumber(records []*kgo.Record) []*kgo.Record {
	out := make([]*kgo.Record, len(records))
	for i, r := range records {
		c := *r
		c.Offset = int64(i)
		out[i] = &c
	}
	return out
}

// rechain returns records of which each from one on names the hash of the one before it, as a forger with access to the log
// writes them.
func (s *sample) rechain(t testing.TB, records []*kgo.Record, from int) []*kgo.Record {
	t.Helper()
	decoder := record.NewDecoder(s.Rules.Registry())
	out := slices.Clone(records)
	for i := from; i < len(out); i++ {
		r, err := decoder.Decode(out[i].Value)
		if err != nil {
			t.Fatal(err)
		}
		r.Sequence = int64(i)
		if r.Prev = (record.Hash{}); i > 0 {
			r.Prev = sha256.Sum256(out[i-1].Value)
		}
		value, err := record.Encode(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = s.kafka(r, value)
	}
	return out
}
