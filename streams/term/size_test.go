package term

import (
	"testing"
	"time"
)

// TestRefusedSize refuses records as large as one that was refused, for ten seconds.
func TestRefusedSize(t *testing.T) {
	m := newRig(t).m
	for _, c := range []struct {
		at      time.Duration
		noted   int // 0 for none
		bytes   int
		refuses bool
	}{
		{at: 0, bytes: 1 << 20},
		{at: 1, noted: 2000, bytes: 2000, refuses: true},
		{at: 2, bytes: 1999},
		{at: 3, noted: 1000, bytes: 1500, refuses: true},
		{at: 4, noted: 3000, bytes: 1500, refuses: true}, // the smallest counts
		{at: 3 + refusedFor, bytes: 1000, refuses: true},
		{at: 4 + refusedFor, bytes: 1000},
		{at: 5 + refusedFor, noted: 3000, bytes: 1500},
	} {
		m.now.Mono = c.at
		if m.out = new(Output); c.noted > 0 {
			m.noteRefusedSize(c.noted)
		}
		if got := m.size.refuses(c.at, c.bytes); got != c.refuses {
			t.Errorf("at %v: refuses %d bytes: %t", c.at, c.bytes, got)
		}
	}
}
