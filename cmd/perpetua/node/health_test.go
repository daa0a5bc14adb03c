package node

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// readiness waits until /readyz answers with a status and each role, or none, for a reason that holds the word.
func (b *bench) readiness(t *testing.T, n *Node, status string, reasons map[string]string) {
	t.Helper()
	eventually(t, "/readyz to say "+status, func() string {
		var s state
		code := b.get(t, n.URL()+"/readyz", &s)
		if want := map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[status == "ready"]; s.Status != status || code != want {
			return s.Status
		}
		for _, role := range n.Roles.Names() {
			reason, wanted := reasons[role]
			said := strings.Join(s.Roles[role].Because, "; ")
			if wanted == s.Roles[role].Ready || !strings.Contains(said, reason) {
				return role + ": " + said
			}
		}
		return ""
	})
}

// every role of a node for a reason.
func every(reason string) map[string]string {
	reasons := make(map[string]string)
	for _, role := range allRoles().Names() {
		reasons[role] = reason
	}
	return reasons
}

func TestReadyzIsNotLatched(t *testing.T) {
	var broken atomic.Pointer[error]
	b := newBench(t, journals.All())
	b.config.Services = func() error {
		if err := broken.Load(); err != nil {
			return *err
		}
		return nil
	}
	n := b.start(t)
	b.readiness(t, n, "starting", nil)
	n.Announce()
	b.readiness(t, n, "ready", nil)

	b.rows.Away(true)
	const away = "Postgres has not answered since"
	b.readiness(t, n, "unready", map[string]string{"api": away, "projector": away, "sender": away})
	b.rows.Away(false)
	b.readiness(t, n, "ready", nil)

	full := errors.New("no space left on device")
	broken.Store(&full)
	b.readiness(t, n, "unready", every("the embedded broker has stopped"))
	broken.Store(nil)
	b.readiness(t, n, "ready", nil)

	b.broker.Close()
	b.readiness(t, n, "unready", every("trading: its log has been out of reach since"))
}

// TestReadyzOfNodesOnPostgres has nodes without the rows whose roles work in Postgres.
func TestReadyzOfNodesOnPostgres(t *testing.T) {
	b := newBench(t, journals.All())
	b.config.Roles = Roles{Engine: true, Live: true, TLog: true, Sender: true}
	n := b.start(t)
	n.Announce()
	b.readiness(t, n, "ready", nil)
	b.rows.Away(true)
	const away = "Postgres has not answered since"
	b.readiness(t, n, "unready", map[string]string{"tlog": away, "sender": away})
	b.rows.Away(false)
	b.readiness(t, n, "ready", nil)
}

// TestReadyzWithoutTables drops tables while nothing is written. Each role that works with one of them is not ready.
func TestReadyzWithoutTables(t *testing.T) {
	b := newBench(t, journals.All())
	b.config.Roles = allRoles()
	b.config.Roles.TLog = true
	n := b.start(t)
	n.Announce()
	b.readiness(t, n, "ready", nil)
	db := projectiontest.Open(t, b.config.DatabaseURL())
	for _, c := range []struct {
		drop  string
		roles []string
	}{
		{"TABLE perpetua_jobs.river_job", []string{"projector", "sender"}},
		{"TABLE signed_trees", []string{"api", "projector", "sender", "tlog"}},
	} {
		if _, err := db.Exec(t.Context(), "DROP "+c.drop+" CASCADE"); err != nil {
			t.Fatal(err)
		}
		reasons := make(map[string]string)
		for _, role := range c.roles {
			reasons[role] = "Postgres lacks the tables"
		}
		b.readiness(t, n, "unready", reasons)
	}
}

// TestReadyzWithoutAnOwner has an engine beside a node that has none: when it stops, nobody owns the journals.
func TestReadyzWithoutAnOwner(t *testing.T) {
	b := newBench(t, journals.All())
	b.config.Alone = false
	engine := b.config
	engine.ID, engine.Roles = "engine", Roles{Engine: true}
	owner, stop := b.run(t, engine)
	b.config.Roles = Roles{API: true, Projector: true, Live: true}
	n := b.start(t)
	n.Announce()
	owner.Announce()
	b.readiness(t, n, "ready", nil)
	b.readiness(t, owner, "ready", nil)
	stop()
	b.readiness(t, n, "unready", every("identity: no node owns it with a valid term"))
	engine.ID = "next"
	b.run(t, engine)
	b.readiness(t, n, "ready", nil)
}

// stuck is a projection that can't be applied while it is on.
type stuck struct{ on *atomic.Bool }

func (stuck) Name() string     { return "stuck" }
func (stuck) Tables() []string { return nil }
func (s stuck) Project(_ []record.Entry, batch *projections.Batch) {
	if s.on.Load() {
		batch.Change(1, `UPDATE checkpoints SET journal = journal WHERE journal = 'none'`)
	}
}

func TestReadyzWithFailingProjections(t *testing.T) {
	on := new(atomic.Bool)
	words := journals.Journal{Rules: journaltest.Words{Name: "words"}, Projections: []projections.Projection{stuck{on}}}
	b := newBench(t, append(journals.All(), words))
	n := b.start(t)
	n.Announce()
	b.readiness(t, n, "ready", nil)
	on.Store(true)
	n.submit(t, "words", journaltest.Say("hello"))
	const reason = "words: its rows can't be written"
	b.readiness(t, n, "unready", map[string]string{"api": reason, "projector": reason})
	on.Store(false)
	b.readiness(t, n, "ready", nil)
}

// TestReadyzLooksAtTheRowsOfOthers has a single node that answers reads without writing the rows, as a node of `run` does that lacks the
// role. Nobody writes them.
func TestReadyzLooksAtTheRowsOfOthers(t *testing.T) {
	b := newBench(t, journals.All())
	b.config.Roles = Roles{Engine: true, API: true}
	n := b.start(t)
	n.Announce()
	eventually(t, "the rows are known to be behind", func() string {
		said := strings.Join(n.rowFaults(time.Now().Add(2*stillAfter)), "; ")
		for _, name := range journals.All().Names() {
			if !strings.Contains(said, name+": its rows are behind") {
				return said
			}
		}
		return ""
	})
	b.rows.Away(true)
	b.readiness(t, n, "unready", map[string]string{"api": "Postgres has not answered since"})
}

// TestReadyzWhileAnotherNodeWritesTheRows has a node that only answers reads beside one that owns the journals and writes the rows.
func TestReadyzWhileAnotherNodeWritesTheRows(t *testing.T) {
	for _, alone := range []bool{false, true} {
		b := newBench(t, journals.All())
		writer := b.config
		writer.ID, writer.Alone, writer.Roles = "writer", false, Roles{Engine: true, Projector: true}
		w, _ := b.run(t, writer)
		w.Announce()
		b.readiness(t, w, "ready", nil)
		b.config.Alone, b.config.Roles = alone, Roles{API: true}
		n := b.start(t)
		n.Announce()
		b.readiness(t, n, "ready", nil)
		eventually(t, "the rows are known to be current", func() string {
			for _, f := range n.followers {
				f.pace.mu.Lock()
				at := f.pace.at
				f.pace.mu.Unlock()
				if folded := f.fold.Position().Sequence; folded < 0 || at < folded {
					return fmt.Sprintf("%s: the rows are at %d, and the fold at %d", f.Name(), at, folded)
				}
			}
			return ""
		})
		if faults := n.rowFaults(time.Now()); len(faults) > 0 {
			t.Errorf("alone %v: %v", alone, faults)
		}
	}
}

// TestPace tells rows that catch up from rows that stand still, for a node that does not write them itself.
func TestPace(t *testing.T) {
	var p pace
	start := time.Unix(1e9, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	still := func(seconds int, want bool) {
		t.Helper()
		if since, still := p.still(at(seconds)); still != want {
			t.Errorf("after %d s the rows stand still: %v, since %v", seconds, still, since)
		}
	}
	still(0, false) // never looked at
	p.note(at(0), 5, 5)
	p.note(at(60), 5, 5)
	still(65, false) // nothing to apply
	for s := range 30 {
		p.note(at(60+s), int64(5+s/5), 100)
	}
	still(89, false) // behind, and on their way
	p.note(at(100), 10, 100)
	still(100, true)
	p.note(at(101), 11, 100)
	still(101, false)
}
