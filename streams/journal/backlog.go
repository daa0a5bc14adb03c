package journal

import (
	"crypto/sha256"
	"runtime"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// The limits of a piece. A piece is a run of records that one goroutine decodes.
const (
	pieceRecords = 256
	pieceBytes   = 256 << 10 // total size of the values, unless a single value is larger
)

// backlog holds the records that a reader has fetched and its chain has not processed yet.
//
// A reader at the tip fetches at most one piece. The chain then hashes and decodes its records as it processes them. A
// reader that is behind fetches more. Then several goroutines hash and decode pieces ahead of the chain, one piece
// each, because the hash and the decoded record depend on the value alone. The validity of a record and the reason why
// a record is broken depend on the order of the records: the chain decides those sequentially.
type backlog struct {
	registry *decide.Registry
	piece    int             // records in a piece
	rest     []*kgo.Record   // records of pieces that are not started
	stored   []Stored        // the same records, if they come from the history; else nil
	workers  []*decodeWorker // one more than may run at the same time: the caller still reads the piece it took last
	begun    int             // pieces started since the workers were made
	taken    int             // pieces taken, of those started
	under    sync.WaitGroup  // the running decode goroutines
}

// decodeWorker decodes one piece after another.
type decodeWorker struct {
	decoder *record.Decoder
	taken
	done chan struct{}
}

// taken is a piece as the chain processes it.
type taken struct {
	records []*kgo.Record
	stored  []Stored         // the same records, if they come from the history; else nil
	seen    []record.Decoded // the decoded form of each value, if the piece was decoded ahead; else nil
}

func newBacklog(registry *decide.Registry) *backlog {
	return &backlog{registry: registry, piece: pieceRecords}
}

// empty reports whether all records that were put have been taken.
func (b *backlog) empty() bool { return len(b.rest) == 0 && b.begun == b.taken }

// put adds fetched records. The backlog must be empty.
func (b *backlog) put(records []*kgo.Record) { b.rest, b.stored = records, nil }

// putStored is put for records of the history.
func (b *backlog) putStored(stored []Stored) {
	records := make([]*kgo.Record, len(stored))
	for i := range stored {
		records[i] = stored[i].Record
	}
	b.rest, b.stored = records, stored
}

// peek returns the record that first would take.
func (b *backlog) peek() *kgo.Record { return b.rest[0] }

// first takes one record of the topic. No piece may be in progress.
func (b *backlog) first() *kgo.Record {
	k := b.rest[0]
	b.rest = b.rest[1:]
	return k
}

// next takes a piece. Its slices are valid until the next call. plain says that decoding ahead would be wasted work.
func (b *backlog) next(plain bool) taken {
	if b.begun == b.taken {
		if n := b.cut(); plain || n == len(b.rest) || !b.widen() {
			b.workers = nil // they would retain their decoded records
			return b.take(n)
		}
	}
	for len(b.rest) > 0 && b.begun-b.taken < len(b.workers)-1 {
		b.begin()
	}
	// The caller still uses the piece that it took last. So all workers but one may be in progress, and the next piece is
	// decoded by the worker before that one, which is free.
	l := b.workers[b.taken%len(b.workers)]
	<-l.done
	b.taken++
	if len(b.rest) > 0 {
		b.begin()
	}
	return l.taken
}

// take removes n records from the rest.
func (b *backlog) take(n int) (t taken) {
	t.records, b.rest = b.rest[:n], b.rest[n:]
	if b.stored != nil {
		t.stored, b.stored = b.stored[:n], b.stored[n:]
	}
	return t
}

// drop waits for the running goroutines and discards all records.
func (b *backlog) drop() {
	b.under.Wait()
	b.rest, b.stored, b.workers, b.begun, b.taken = nil, nil, nil, 0, 0
}

// cut returns the number of records in the next piece.
func (b *backlog) cut() int {
	bytes := 0
	for n, k := range b.rest {
		if bytes += len(k.Value); n == b.piece || n > 0 && bytes > pieceBytes {
			return n
		}
	}
	return len(b.rest)
}

// widen makes the workers for decoding ahead on all processors, and reports whether there is more than one processor. No
// piece may be in progress.
func (b *backlog) widen() bool {
	width := runtime.GOMAXPROCS(0)
	if width > 1 && len(b.workers) != width+1 {
		b.workers, b.begun, b.taken = make([]*decodeWorker, width+1), 0, 0
		for i := range b.workers {
			b.workers[i] = &decodeWorker{decoder: record.NewDecoder(b.registry), done: make(chan struct{}, 1)}
		}
	}
	return width > 1
}

// begin starts a goroutine that decodes the next piece.
func (b *backlog) begin() {
	l := b.workers[b.begun%len(b.workers)]
	seen := l.seen
	l.taken = b.take(b.cut())
	l.seen = seen[:0]
	b.begun++
	b.under.Go(func() {
		l.decode()
		l.done <- struct{}{}
	})
}

func (l *decodeWorker) decode() {
	for i, k := range l.records {
		var s record.Decoded
		if l.stored != nil {
			s.Hash = l.stored[i].Hash
		} else {
			s.Hash = sha256.Sum256(k.Value)
		}
		if r, err := l.decoder.Decode(k.Value); err == nil {
			s.Record = r
		}
		l.seen = append(l.seen, s)
	}
}
