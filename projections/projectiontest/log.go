package projectiontest

import (
	"context"
	"fmt"
	"sync"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Log is a projections.Log in memory. Like a journal's reader, its readers hold the position that they start from
// against the log.
type Log struct {
	// Chunk is how many entries a Poll returns at most; 0 means all there are.
	Chunk int

	mu      sync.Mutex
	entries []record.Entry
	more    chan struct{}
	readers int
}

// NewLog returns a log of the entries.
func NewLog(entries ...record.Entry) *Log {
	return &Log{entries: entries, more: make(chan struct{})}
}

// Append adds entries.
func (l *Log) Append(entries ...record.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, entries...)
	close(l.more)
	l.more = make(chan struct{})
}

// Readers returns how many readers were opened.
func (l *Log) Readers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.readers
}

// From implements projections.Log.
func (l *Log) From(at record.Position) projections.Reader {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers++
	return &reader{log: l, at: at}
}

// Tip implements projections.Log.
func (l *Log) Tip(context.Context) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == 0 {
		return 0, nil
	}
	return l.entries[len(l.entries)-1].Position.Offset + 1, nil
}

type reader struct {
	log      *Log
	at       record.Position
	verified bool
}

// Poll implements projections.Reader.
func (r *reader) Poll(ctx context.Context) ([]record.Entry, error) {
	for {
		r.log.mu.Lock()
		entries, more := r.log.entries, r.log.more
		r.log.mu.Unlock()
		if err := r.verify(entries); err != nil {
			return nil, err
		}
		next := entries[r.at.Sequence+1:]
		if len(next) > 0 {
			if n := r.log.Chunk; n > 0 && len(next) > n {
				next = next[:n]
			}
			r.at = next[len(next)-1].Position
			return next, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-more:
		}
	}
}

func (r *reader) verify(entries []record.Entry) error {
	if r.verified || r.at.IsBefore() {
		return nil
	}
	found := record.Before
	if s := r.at.Sequence; s < int64(len(entries)) {
		found = entries[s].Position
	}
	if !found.Equal(r.at) {
		return &record.DivergedError{Journal: "trading", Have: r.at, Found: found, Reason: fmt.Sprint("the log has ", len(entries), " records")}
	}
	r.verified = true
	return nil
}

// Close implements projections.Reader.
func (r *reader) Close() {}
