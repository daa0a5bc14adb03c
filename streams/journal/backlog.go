package journal

import (
	"crypto/sha256"
	"runtime"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// The bounds of a piece: what is decoded together, and by one goroutine.
const (
	pieceRecords = 256
	pieceBytes   = 256 << 10 // of their values, unless a single one is larger
)

// backlog is what a reader has fetched and its chain has not come to yet.
//
// One piece of records, which is all that comes at a time to a reader at the tip, is left to the chain, which hashes
// and decodes as it goes. Where there is more the reader is behind: then the pieces are hashed and decoded ahead of the
// chain, each by a goroutine and a few of them at a time, since both depend on a value alone. What the values say in
// their order (which of them are valid, and what is wrong with one) is the chain's to find out, one after the other.
type backlog struct {
	registry *decide.Registry
	piece    int            // records of a piece
	rest     []*kgo.Record  // not begun
	lanes    []*lane        // one more than are under way at a time: the last one taken is still being read
	begun    int            // pieces, since the lanes were made
	taken    int            // of them
	under    sync.WaitGroup // those who decode
}

// lane is where one piece at a time is decoded.
type lane struct {
	decoder *record.Decoder
	records []*kgo.Record
	seen    []record.Decoded
	done    chan struct{}
}

func newBacklog(registry *decide.Registry) *backlog {
	return &backlog{registry: registry, piece: pieceRecords}
}

// empty reports whether everything that was put was taken.
func (b *backlog) empty() bool { return len(b.rest) == 0 && b.begun == b.taken }

// put adds what was fetched. The backlog must be empty.
func (b *backlog) put(records []*kgo.Record) { b.rest = records }

// first takes one record. None may be under way.
func (b *backlog) first() *kgo.Record {
	k := b.rest[0]
	b.rest = b.rest[1:]
	return k
}

// next takes a piece, with what each of its values is if that was decoded; both are good until the next call. plain
// says that decoding ahead would be a waste.
func (b *backlog) next(plain bool) ([]*kgo.Record, []record.Decoded) {
	if b.begun == b.taken {
		if n := b.cut(); plain || n == len(b.rest) || !b.widen() {
			records := b.rest[:n]
			b.rest, b.lanes = b.rest[n:], nil // which would keep what they have decoded
			return records, nil
		}
	}
	for len(b.rest) > 0 && b.begun-b.taken < len(b.lanes)-1 {
		b.begin()
	}
	// The caller has still the piece that it took last in its hands. So one lane less than there are is under way, and the
	// next piece goes into the lane before that, which nobody reads.
	l := b.lanes[b.taken%len(b.lanes)]
	<-l.done
	b.taken++
	if len(b.rest) > 0 {
		b.begin()
	}
	return l.records, l.seen
}

// drop forgets everything.
func (b *backlog) drop() {
	b.under.Wait()
	b.rest, b.lanes, b.begun, b.taken = nil, nil, 0, 0
}

// cut returns how many of the records are the next piece.
func (b *backlog) cut() int {
	bytes := 0
	for n, k := range b.rest {
		if bytes += len(k.Value); n == b.piece || n > 0 && bytes > pieceBytes {
			return n
		}
	}
	return len(b.rest)
}

// widen makes as many lanes as there are processors to decode ahead with, and reports whether there is more than one.
// Nothing may be under way.
func (b *backlog) widen() bool {
	width := runtime.GOMAXPROCS(0)
	if width > 1 && len(b.lanes) != width+1 {
		b.lanes, b.begun, b.taken = make([]*lane, width+1), 0, 0
		for i := range b.lanes {
			b.lanes[i] = &lane{decoder: record.NewDecoder(b.registry), done: make(chan struct{}, 1)}
		}
	}
	return width > 1
}

// begin has a goroutine decode the next piece.
func (b *backlog) begin() {
	n, l := b.cut(), b.lanes[b.begun%len(b.lanes)]
	l.records, b.rest = b.rest[:n], b.rest[n:]
	b.begun++
	b.under.Go(func() {
		l.decode()
		l.done <- struct{}{}
	})
}

func (l *lane) decode() {
	l.seen = l.seen[:0]
	for _, k := range l.records {
		s := record.Decoded{Hash: sha256.Sum256(k.Value)}
		if r, err := l.decoder.Decode(k.Value); err == nil {
			s.Record = r
		}
		l.seen = append(l.seen, s)
	}
}
