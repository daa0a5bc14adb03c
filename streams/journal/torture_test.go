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

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// TestEveryAcknowledgedCommandIsThereOnceUnderFaults has clients follow up every unknown outcome with the same key,
// while two owners fence each other and what lies between them and the brokers holds requests and acknowledgements
// back and cuts connections. TORTURE_SEED repeats a run's faults, TORTURE_SECONDS makes it longer.
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
	faulty, calm := context.WithTimeout(ctx, lasts)
	defer calm()

	var owners []*journal.Owner
	var gates []*gate
	var running sync.WaitGroup
	for i := range 2 {
		g := newGate()
		cfg := r.ownerConfig(fmt.Sprint("n", i))
		cfg.Client, cfg.Deadline = r.newClient(nil, g), 500*time.Millisecond
		o, err := journal.NewOwner(cfg)
		if err != nil {
			t.Fatal(err)
		}
		owners, gates = append(owners, o), append(gates, g)
		running.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for ctx.Err() == nil {
				if err := o.Run(ctx); err != nil && journal.Final(err) {
					t.Error(err)
					return
				}
				wait := time.NewTimer(time.Duration(random.IntN(300)) * time.Millisecond)
				if i > 0 && faulty.Err() != nil {
					return // one owner is enough to finish
				}
				<-wait.C
			}
		})
	}

	// Clients: each command has a key and is sent again until its outcome is known.
	type answered struct {
		key   string
		entry journal.Entry
	}
	var mu sync.Mutex
	var acknowledged []answered
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(100+c)))
			for n := 0; faulty.Err() == nil; n++ {
				key := fmt.Sprintf("c%d-%d", c, n)
				for {
					result, err := owners[random.IntN(len(owners))].Submit(ctx, keyed(key, &add{key, 1}))
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
	for faulty.Err() == nil {
		g := gates[random.IntN(len(gates))]
		switch random.IntN(5) {
		case 0:
			g.withhold()
		case 1:
			g.stall()
		case 2:
			g.cut()
		default:
			g.release()
		}
		<-time.After(time.Duration(random.IntN(60)) * time.Millisecond)
	}
	for _, g := range gates {
		g.release()
	}
	clients.Wait()
	stop()
	running.Wait()

	all := r.all()
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
		case *journal.Taken:
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
