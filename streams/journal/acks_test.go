package journal

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// TestAnAckSaysWhetherARecordIsTooLarge for the topic, or for a segment of it.
func TestAnAckSaysWhetherARecordIsTooLarge(t *testing.T) {
	q := newAcks()
	for i, c := range []struct {
		err      error
		tooLarge bool
	}{
		{nil, false}, {kerr.InvalidRecord, false}, {kerr.MessageTooLarge, true}, {fmt.Errorf("produce: %w", kerr.RecordListTooLarge), true},
	} {
		q.put(int64(i), -1, c.err, notCounted)
		if got, _ := q.take(nil, nil); len(got) != 1 || got[0].TooLarge != c.tooLarge {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
}
