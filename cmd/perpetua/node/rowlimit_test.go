package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
)

// TestReadsLeaveConnections: reads that hang, as those of a locked table do, leave the node's own work connections to Postgres.
func TestReadsLeaveConnections(t *testing.T) {
	n := newBench(t, journals.All()).start(t)
	f, err := n.followers.of("trading")
	if err != nil {
		t.Fatal(err)
	}
	most := int(n.stores.pool.Config().MaxConns)
	hanging, end := context.WithCancel(t.Context())
	var reads sync.WaitGroup
	var ended atomic.Int32
	for range 2 * most {
		reads.Go(func() {
			b := new(pgx.Batch)
			b.Queue("SELECT pg_sleep(3600)")
			var late *pgconn.ConnectError // on a busy machine
			if err := n.rowsOf(f).DB.SendBatch(hanging, b).Close(); !errors.As(err, &late) {
				ended.Add(1)
			}
		})
	}
	defer reads.Wait()
	defer end()
	eventually(t, "reads that hang", func() string {
		if running := int(n.stores.pool.Stat().AcquiredConns()); running < readers(most) {
			return fmt.Sprintf("%d connections are in use", running)
		}
		return ""
	})
	if _, err := n.stores.pool.Exec(t.Context(), "SELECT 1"); err != nil || ended.Load() > 0 {
		t.Errorf("the node's own query: %v, after %d reads had ended", err, ended.Load())
	}
}

func TestReaders(t *testing.T) {
	for connections, want := range map[int]int{1: 1, 2: 1, 3: 2, 4: 3, 16: 12, 32: 24} {
		if got := readers(connections); got != want {
			t.Errorf("clients use %d of %d connections, want %d", got, connections, want)
		}
	}
}
