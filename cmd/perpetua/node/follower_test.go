package node

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestReadUpToEndsWithTheLog asks for records that the log has lost.
func TestReadUpToEndsWithTheLog(t *testing.T) {
	client := journaltest.NewClient(t, "trading")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := journal.NewReader(client, journaltest.Words{Name: "trading"}, 0, record.Before)
	if entries, err := readUpTo(ctx, r, 3); !errors.Is(err, journal.ErrNoRecord) {
		t.Errorf("%d records, %v", len(entries), err)
	}
}
