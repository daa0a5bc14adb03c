package projections_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// cut projects the entries of a journal in transactions that end exactly where each says: the next entries appear once the last
// ones are applied. Where crash says so the runner's connection is cut in the middle of a transaction, or the runner
// is stopped after it, and another one goes on.
func cut(t *testing.T, name string, list []projections.Projection, entries []record.Entry, size func() int, crash func() string) *pgxpool.Pool {
	t.Helper()
	pool := projectiontest.Database(t)
	log := projectiontest.NewLog()
	killer := &saboteur{statement: "SELECT pg_terminate_backend(pg_backend_pid())"}
	list = append(list, killer)
	r, stop := startOf(t, name, pool, log, list...)
	for from := 0; from < len(entries); {
		to := min(from+size(), len(entries))
		how := crash()
		if how == "within" {
			killer.sequence = int64(from)
			killer.times.Store(1)
		}
		log.Append(entries[from:to]...)
		wait(t, r, int64(to-1))
		if how == "after" {
			stop()
			r, stop = startOf(t, name, pool, log, list...)
		}
		from = to
	}
	stop()
	return pool
}

func never() string { return "" }

// Whatever a transaction gathers, and wherever one is cut off, the rows are those of one record at a time.
func TestAnyCutsGiveTheRowsOfSingleRecords(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	owner := projectiontest.NewOwner(t, seed) // the real rules: sweeps, mass cancels, expiries
	owner.Play(150)
	registrar := projectiontest.NewRegistrar(t, seed)
	registrar.Play(400)
	for name, of := range map[string]struct {
		journal string
		list    []projections.Projection
		entries []record.Entry
	}{
		"made up":    {"trading", readmodels.Trading(), projectiontest.NewVenue(seed).Entries(400)},
		"decided":    {"trading", readmodels.Trading(), owner.Entries},
		"onboarding": {"onboarding", readmodels.Onboarding(), registrar.Entries},
	} {
		t.Run(name, func(t *testing.T) {
			entries := of.entries
			rows := func(size func() int, crash func() string) *pgxpool.Pool {
				return cut(t, of.journal, of.list, entries, size, crash)
			}
			want := digests(t, rows(func() int { return 1 }, never))
			for n := range uint64(2) {
				random := rand.New(rand.NewPCG(seed+n, uint64(len(entries))))
				size := func() int { return 1 + random.IntN(1+random.IntN(80)) }
				crash := func() string { return []string{"", "", "", "within", "after"}[random.IntN(5)] }
				same(t, digests(t, rows(size, crash)), want)
			}
		})
	}
}

// A delivery that loses its owner and its registration in one transaction is canceled by the record that came first.
func TestADeliveryIsCanceledOnce(t *testing.T) {
	alpha, operator := decide.Actor{Sub: "u", Broker: "alpha"}, decide.Actor{Sub: "operator", Broker: "venue"}
	for name, erasedFirst := range map[string]bool{"the owner first": true, "the registration first": false} {
		t.Run(name, func(t *testing.T) {
			r := projectiontest.NewRegistrar(t, 11)
			do := func(by decide.Actor, payload decide.Payload) {
				t.Helper()
				if refused := r.Do(by, payload); refused != "" {
					t.Fatalf("%T is refused: %s", payload, refused)
				}
			}
			ref := owner.Ref{Type: owner.PersonType, ID: r.ID()}
			hook := r.ID()
			do(operator, &onboarding.SetRetention{})
			do(alpha, &onboarding.RegisterOwner{Ref: ref, ExternalID: make([]byte, 32), Fields: r.Sealed()})
			do(alpha, &onboarding.CreateWebhook{ID: hook, URL: "https://receiver.example/", All: true, Key: r.SigningKey()})
			do(alpha, &onboarding.AddDocument{Ref: ref, ID: r.ID(), Category: "id_document", Orientation: document.Orientations()[0], Name: r.Sealed(), Source: "files/x", SHA256: make([]byte, 32), Size: 1, Format: "pdf",
				ValidUntil: r.Entries[len(r.Entries)-1].Record.Time + 40*scalar.Day})
			r.Pass(20 * scalar.Day) // it expires soon: a notice, and a delivery of it
			if len(r.Deliveries) == 0 {
				t.Fatal("no delivery")
			}
			steps := []func(){
				func() { do(operator, &onboarding.EraseOwner{Ref: ref, Reason: r.Sealed()}) },
				func() { do(alpha, &onboarding.DeleteWebhook{ID: hook}) },
			}
			if !erasedFirst {
				slices.Reverse(steps)
			}
			for _, step := range steps {
				step()
			}
			want := digests(t, cut(t, "onboarding", readmodels.Onboarding(), r.Entries, func() int { return 1 }, never))
			same(t, digests(t, cut(t, "onboarding", readmodels.Onboarding(), r.Entries, func() int { return len(r.Entries) }, never)), want)
		})
	}
}

// A change of a row that is not there is none that the journal knows of: the transaction is given up and tried again.
func TestAChangeOfNothingIsNotCommitted(t *testing.T) {
	entries := projectiontest.NewVenue(21).Entries(300)
	pool := project(t, entries[:200], 0)
	if _, err := pool.Exec(t.Context(), "DELETE FROM orders"); err != nil {
		t.Fatal(err)
	}
	tries := make(attempts, 2)
	_, stop := start(t, pool, projectiontest.NewLog(entries...), tries)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 { // the second comes when the first has failed
		select {
		case <-tries:
		case <-ctx.Done():
			t.Fatal("it is not tried again")
		}
	}
	if c, err := projections.ReadCheckpoint(t.Context(), pool, "trading", 0); err != nil || !c.Position.Equal(entries[199].Position) {
		t.Errorf("the checkpoint is at %v, %v", c.Position, err)
	}
	stop()
}

// attempts tells of the first batches that are made.
type attempts chan struct{}

func (attempts) Name() string     { return "attempts" }
func (attempts) Tables() []string { return nil }

func (a attempts) Project([]record.Entry, *projections.Batch) {
	select {
	case a <- struct{}{}:
	default: // the test is over
	}
}
