package tools

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
)

// lines tells when a line was written.
type lines chan struct{}

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- struct{}{}:
	default:
	}
	return len(b), nil
}

// TestARebuildEndsWhereTheLogLosesItsEnd cuts off what a runner has not come to yet, and would wait for.
func TestARebuildEndsWhereTheLogLosesItsEnd(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
	defer stop()
	rules := journaltest.Words{Name: "trading"}
	client, said := oneWord(ctx, t, rules)
	told := make(lines, 1)
	r := &rebuild{client: client, out: told}
	idle := projections.Config{Log: projections.NewLog(client, rules, 0), Journal: rules.Name}.Runner() // it applies nothing
	followed := make(chan error, 1)
	go func() { followed <- r.follow(ctx, rules, idle) }()
	select {
	case <-told: // it knows by now how far the log goes
	case err := <-followed:
		t.Fatal(err)
	}
	journaltest.Cut(t, client, rules.Name, said.Position.Sequence)
	var diverged *journal.DivergedError
	if err := <-followed; !errors.As(err, &diverged) {
		t.Error(err)
	}
}
