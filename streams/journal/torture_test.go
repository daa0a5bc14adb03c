package journal_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestEveryAcknowledgedCommandIsThereOnceUnderFaults has two owners fence each other, while what lies between them and
// the brokers holds requests, acknowledgements and fetched records back and cuts connections. Their terms begin with
// seeds, and some end before they have resumed what earlier ones kept. Half of the clients follow up every unknown
// outcome with the same key. The other half sends each command once and without a key: nothing but the owners themselves
// keeps those from taking effect twice. TORTURE_SEED repeats a run's faults, TORTURE_SECONDS makes it longer.
func TestEveryAcknowledgedCommandIsThereOnceUnderFaults(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("TORTURE_SEED"), 10, 64); err == nil {
		seed = s
	}
	lasts := 3 * time.Second
	if s, err := strconv.Atoi(os.Getenv("TORTURE_SECONDS")); err == nil {
		lasts = time.Duration(s) * time.Second
	}
	t.Logf("TORTURE_SEED=%d", seed)
	r := newRig(t)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	faulty, calm := context.WithCancel(ctx)
	defer calm()

	var owners []*journal.Owner
	var gates []*gate
	var running sync.WaitGroup
	for i := range 2 {
		g := newGate()
		cfg := r.ownerConfig(fmt.Sprint("n", i))
		cfg.Client, cfg.Deadline = r.newClient(nil, g), 2*time.Second
		random := rand.New(rand.NewPCG(seed, uint64(200+i)))
		cfg.Seed = func(ctx context.Context) (*record.Seed, error) { return r.seedUpTo(ctx, random.IntN(10)) }
		o, err := journal.NewOwner(cfg)
		if err != nil {
			t.Fatal(err)
		}
		owners, gates = append(owners, o), append(gates, g)
		running.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for ctx.Err() == nil {
				if err := o.Run(ctx); err != nil && record.Final(err) {
					t.Error(err)
					return
				}
				wait := time.NewTimer(time.Duration(random.IntN(150)) * time.Millisecond)
				if i > 0 && faulty.Err() != nil {
					return // one owner is enough to finish
				}
				<-wait.C
			}
		})
	}

	type answered struct {
		key   string
		entry record.Entry
	}
	var mu sync.Mutex
	var acknowledged []answered
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(100+c)))
			for n := 0; faulty.Err() == nil; n++ {
				key := fmt.Sprintf("c%d-%d", c, n)
				once := c%2 == 0
				for {
					send := keyed(key, &add{key, 1})
					if once {
						send = command(&add{key, 1})
					}
					result, err := owners[random.IntN(len(owners))].Submit(ctx, send)
					if err == nil {
						mu.Lock()
						acknowledged = append(acknowledged, answered{key, *result.Entry})
						mu.Unlock()
						break
					}
					if !unknown(err) && !notAccepted(err) {
						t.Errorf("%s: %v", key, err)
						return
					}
					if once && unknown(err) {
						break
					}
					if ctx.Err() != nil {
						t.Errorf("%s never had an outcome", key)
						return
					}
					<-time.After(time.Millisecond)
				}
			}
		})
	}

	random := rand.New(rand.NewPCG(seed, 1000))
	latest := int64(0) // a machine under load gets to few terms in the time
	for began := time.Now(); time.Since(began) < lasts || latest < 4 && time.Since(began) < time.Minute; {
		for _, o := range owners {
			term, _ := o.Serving()
			latest = max(latest, term)
		}
		i := random.IntN(len(gates))
		g := gates[i]
		switch random.IntN(10) {
		case 0:
			g.withhold()
		case 1:
			g.stall()
		case 2:
			g.cut()
		case 3:
			g.blind(true)
		case 4, 5, 6:
			overtake(faulty, owners[i], g)
		default:
			g.release()
		}
		<-time.After(time.Duration(random.IntN(60)) * time.Millisecond)
	}
	calm()
	for _, g := range gates {
		g.release()
	}
	clients.Wait()
	stop()
	running.Wait()

	all := r.all()
	if err := journaltest.CommandsOnce(all); err != nil {
		t.Error(err)
	}
	r.checkWhole(len(all))
	applied := make(map[string]scalar.ID)
	bySequence := make(map[int64]string)
	terms := 0
	for _, e := range all {
		bySequence[e.Position.Sequence] = string(e.Value)
		switch v := e.Record.Events[0].(type) {
		case *added:
			if other, twice := applied[v.Name]; twice {
				t.Errorf("%s was applied by %v and by %v", v.Name, other, e.Record.Command.ID)
			}
			applied[v.Name] = e.Record.Command.ID
			if v.Total != 1 {
				t.Errorf("%s has total %d", v.Name, v.Total)
			}
		case *record.TermStarted:
			terms++
		}
	}
	for _, a := range acknowledged {
		if bySequence[a.entry.Position.Sequence] != string(a.entry.Value) {
			t.Errorf("%s was acknowledged as record %d, which is not in the log", a.key, a.entry.Position.Sequence)
		}
		if _, ok := applied[a.key]; !ok {
			t.Errorf("%s was acknowledged and not applied", a.key)
		}
	}
	t.Logf("%d commands in %d records and %d terms", len(acknowledged), len(all), terms)
	if len(acknowledged) == 0 || terms < 2 {
		t.Error("that was no torture")
	}
}

// checkWhole has a verifier go over every record of the log, those that lost a race included: none of them may pass for one that
// goes on from a record which the log does not hold.
func (r *rig) checkWhole(valid int) {
	r.t.Helper()
	end, err := r.client.Tip(r.context(), "trading", 0)
	if err != nil {
		r.t.Fatal(err)
	}
	kc, err := r.client.Kafka(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.topic(): {0: kgo.NewOffset().At(0)}}))
	if err != nil {
		r.t.Fatal(err)
	}
	defer kc.Close()
	v, passed := journal.NewVerifier(r.rules, 0), 0
	for next := int64(0); next < end; {
		fetches := kc.PollFetches(r.context())
		if err := fetches.Err(); err != nil {
			r.t.Fatal(err)
		}
		for _, k := range fetches.Records() {
			next = k.Offset + 1
			ok, err := v.Verify(k)
			if err == nil {
				err = v.Torn()
			}
			if err != nil {
				r.t.Fatal(err)
			}
			if ok {
				passed++
			}
		}
	}
	r.t.Logf("%d of %d records are skipped", end-int64(passed), end)
	if passed != valid {
		r.t.Errorf("%d records are valid, and %d to the verifier", valid, passed)
	}
}

// overtake has an owner find its own valid taken record and a foreign one after it in the same answer, with replies of an
// earlier term still to give, if the other owner plays along: each wait is for something that may not come.
func overtake(ctx context.Context, o *journal.Owner, g *gate) {
	meanwhile := func(done func() bool) {
		ctx, stop := context.WithTimeout(ctx, 300*time.Millisecond)
		defer stop()
		for ctx.Err() == nil && !done() {
			<-time.After(time.Millisecond)
		}
	}
	out := func() bool { _, serving := o.Serving(); return !serving }
	g.withhold()
	meanwhile(out)
	g.release()
	g.stall()
	meanwhile(func() bool { return out() && g.stalled() > 0 })
	g.blind(true)
	g.set(false, false)
	meanwhile(func() bool { return false })
	g.cut()
	g.release()
}

// seedUpTo folds the log up to so many records before its end, nil if it is shorter. It reads with a client of no gate.
func (r *rig) seedUpTo(ctx context.Context, before int) (*record.Seed, error) {
	end, err := r.client.Tip(ctx, "trading", 0)
	if err != nil {
		return nil, err
	}
	s := &record.Seed{State: newCounters(), Position: record.Before}
	reader := journal.NewReader(r.client, r.rules, 0, record.Before)
	defer reader.Close()
	for next := int64(0); next < end-int64(before); {
		var entries []record.Entry
		if entries, next, err = reader.Next(ctx); err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Position.Offset >= end-int64(before) {
				break
			}
			s.State.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
			s.Position, s.Time, s.Journal = e.Position, e.Record.Time, e.Journal
			if taken, ok := e.Record.Events[0].(*record.TermStarted); ok {
				s.Term, s.URL = taken.Term, taken.URL
			}
		}
	}
	if s.Position.IsBefore() {
		return nil, nil
	}
	return s, nil
}
