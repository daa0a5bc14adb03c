package node

import (
	"context"
	"errors"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestANodeWithNewerRowsIsNeverReady: the rows of one journal are ahead of the log that the other nodes serve. A node ends before it
// is ready, whatever its role.
func TestANodeWithNewerRowsIsNeverReady(t *testing.T) {
	b := newBench(t, journals.All())
	b.start(t)
	other := projectiontest.MigratedURL(t)
	if _, err := projectiontest.Open(t, other).Exec(t.Context(), `INSERT INTO checkpoints (journal, partition, log_offset, sequence, hash, time)
		VALUES ('onboarding', 0, 1000, 1000, sha256('a'), now())`); err != nil {
		t.Fatal(err)
	}
	for name, roles := range map[string]Roles{"engine": {Engine: true}, "live": {Live: true}, "sender": {Sender: true}, "tlog": {TLog: true}} {
		c := b.config
		c.ID, c.Roles, c.Alone = name, roles, false
		c.DatabaseURL = func() string { return other }
		n, err := Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		ready := false
		err = n.RunUntil(ctx, func(ctx context.Context) error {
			err := n.CatchUp(ctx)
			ready = err == nil
			return err
		})
		cancel()
		n.Close()
		var diverged *record.DivergedError
		if !errors.As(err, &diverged) || diverged.Journal != journals.Onboarding || ready {
			t.Errorf("%s: ready is %v, and the node ended with %v", name, ready, err)
		}
	}
}
