package node

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/journal"
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

// awayUntil is a source that does not answer before a time, and then knows no position.
type awayUntil time.Time

func (a awayUntil) Positions(context.Context, string, int32) ([]record.Position, error) {
	if time.Now().Before(time.Time(a)) {
		return nil, errors.New("away")
	}
	return nil, nil
}

// TestTheRowsWaitForPostgres: without Postgres, the journals may grow and the rows may not. A node says so once.
func TestTheRowsWaitForPostgres(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := journal.NewClient(journal.Config{Brokers: []string{"127.0.0.1:1"}}) // nothing is known, so nothing is read
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		var log bytes.Buffer
		rows := awayUntil(time.Now().Add(time.Hour))
		c := &comparison{client: client, journals: journals.All(), known: []journal.Known{rows}, rows: rows,
			log: slog.New(slog.NewTextHandler(&log, nil)), asked: make(chan struct{}), rowed: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- c.run(t.Context()) }()
		if !c.waitAsked(t.Context()) {
			t.Error("the journals wait too")
		}
		<-c.rowed
		if time.Now().Before(time.Time(rows)) {
			t.Error("rows are written before they were compared")
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := bytes.Count(log.Bytes(), []byte("\n")); n != 1 {
			t.Errorf("%d lines are logged:\n%.1000s", n, log.Bytes())
		}
	})
}

// TestAStopDuringTheComparison: a comparison that a stop has ended allows nothing.
func TestAStopDuringTheComparison(t *testing.T) {
	client, err := journal.NewClient(journal.Config{Brokers: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	rows := awayUntil(time.Now().Add(time.Hour))
	c := &comparison{client: client, journals: journals.All(), known: []journal.Known{rows}, rows: rows, log: slog.New(slog.DiscardHandler),
		asked: make(chan struct{}), rowed: make(chan struct{})}
	if err := c.run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	select {
	case <-c.asked:
		t.Error("the journals may grow")
	default:
	}
}
