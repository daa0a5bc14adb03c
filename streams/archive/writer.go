package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Writer archives the records of a topic. It applies the rule of validity itself. It is not safe for concurrent use, but several
// writers may archive the same topic at the same time. A writer may crash between any two writes; the next one continues after
// the last manifest. It writes nothing over a tail that holds other records than the topic, or more of them. Such a tail is an *Error
// around a *record.DivergedError.
type Writer struct {
	archive *Archive
	codec   *codec
	chain   *record.Chain
	log     log
	term    int64
	shift   int64 // added to the offsets of the topic

	replaces bool // the bucket has let a tail be replaced

	current *pending
	full    bool    // the current range is complete, and not sealed because of an error
	entries []entry // of the current chunk
	bytes   int     // of their values
}

// maxPending is how many chunks' worth of compressed bytes a writer holds of a range that is not full. Only a topic with far more
// records that readers skip than valid ones comes near.
const maxPending = 16

// pending is a range that is not sealed.
type pending struct {
	Manifest
	content *content
	hashes  []record.Hash // of the valid records
	heads   []chunkHead
	chunks  []byte
}

// NewWriter returns a writer that continues after the last full range. It replaces a damaged tail (see OpenRanges), and a last manifest
// that is cut.
func NewWriter(ctx context.Context, cfg Config) (*Writer, error) {
	a, err := openRanges(ctx, cfg, true)
	if err != nil {
		return nil, err
	}
	c := cfg.codec
	if c == nil {
		if c, err = newCodec(); err != nil {
			return nil, err
		}
	}
	w := &Writer{archive: a, codec: c, chain: record.NewHeadChain(cfg.Journal, cfg.Partition, record.Before)}
	w.log.journal, w.log.partition = cfg.Journal, cfg.Partition
	if m, _ := a.last(); m != nil {
		at := m.Base.Before()
		at.Offset = m.LastOffset
		w.chain = record.NewHeadChain(cfg.Journal, cfg.Partition, at)
		w.chain.SetID(m.Base.JournalID)
		w.log.id, w.log.partitions, w.term = m.Base.JournalID, m.Base.Partitions, m.Base.Term
	}
	w.chain.UseCache(cfg.Encoded)
	w.begin()
	return w, nil
}

// Next returns the lowest offset that the writer needs next.
func (w *Writer) Next() int64 {
	if w.current.LastOffset >= 0 {
		return w.current.LastOffset + 1
	}
	if m, _ := w.archive.last(); m != nil {
		return m.LastOffset + 1
	}
	return 0
}

// begin starts the next range.
func (w *Writer) begin() {
	n := int64(len(w.archive.sealed))
	_, previous := w.archive.last()
	w.current = &pending{content: newContent(), Manifest: Manifest{Range: n, First: n * w.archive.cfg.rangeSize(), Start: w.chain.Position().Hash,
		FirstOffset: -1, LastOffset: -1, Previous: previous}}
	w.entries, w.bytes = nil, 0
}

// Position returns the position of the last valid record. The writer takes the records after it.
func (w *Writer) Position() record.Position { return w.chain.Position() }

// Align tells a writer that has taken no record of this topic yet at which offset the topic holds the record at the writer's
// position. In a topic that was copied or restored, offsets may be lower than in the one that was archived before. The archive then
// continues the former offsets.
func (w *Writer) Align(found int64) {
	w.shift = max(0, w.Next()-1-found)
}

// Add takes the next record of the topic, and seals the range if the record completes it. The writer keeps the record, which MUST
// NOT be changed. If the range is complete after an error, Seal can be tried again. After any other error the writer MUST NOT be
// used.
func (w *Writer) Add(ctx context.Context, r *kgo.Record) error {
	if w.full {
		return errors.New("archive: the last range is not sealed")
	}
	if w.shift > 0 {
		moved := *r
		moved.Offset += w.shift
		r = &moved
	}
	if r.Offset < w.Next() {
		return fmt.Errorf("archive: the record at offset %d comes after that at %d", r.Offset, w.Next()-1)
	}
	e := entry{kafka: r, sequence: -1, prev: w.chain.Position().Hash}
	got, ok, err := w.chain.Admit(r.Offset, r.Value)
	if err != nil {
		return err
	}
	var head *record.Record
	if ok {
		e.sequence, e.hash = got.Position.Sequence, got.Position.Hash
		if head = w.chain.Head(); head == nil {
			head = got.Record
		}
		if err := w.follow(head, r.Value); err != nil {
			return err
		}
	} else {
		e.hash = sha256.Sum256(r.Value)
		head, _ = record.DecodeHead(r.Value)
	}
	e.plain = head != nil && isPlain(w.log, r, head)
	w.add(e)
	if t := w.archive.tail; ok && t.Position().Sequence == e.sequence {
		if err := w.agree(ctx, t); err != nil {
			return err
		}
	}
	if held := len(w.current.chunks); held > maxPending*w.archive.cfg.chunkSize() {
		return fmt.Errorf("archive: the records after record %d take %d bytes and do not fill a range: %d of them are valid, and readers skip %d",
			w.current.First-1, held, w.current.Records, w.current.Skipped)
	}
	if w.bytes >= w.archive.cfg.chunkSize() || len(w.entries) == maxChunkRecords {
		if err := w.current.flush(w, w.entries); err != nil {
			return err
		}
		w.entries, w.bytes = nil, 0
	}
	if ok && e.sequence == w.current.First+w.archive.cfg.rangeSize()-1 {
		w.full = true
		return w.Seal(ctx)
	}
	return nil
}

// Full reports whether the current range is complete and not sealed, because sealing failed.
func (w *Writer) Full() bool { return w.full }

// follow takes from a valid record what the manifest says of it.
func (w *Writer) follow(head *record.Record, value []byte) error {
	w.current.LastTime = head.Time
	if head.Command.Type != record.TypeGenesis && head.Command.Type != record.TypeTermStarted {
		return nil
	}
	r, err := record.Decode(decide.NewRegistry(), value)
	if err != nil {
		return fmt.Errorf("archive: record %d: %w", head.Sequence, err)
	}
	switch event := r.Events[0].(type) {
	case *record.Genesis:
		w.log.id, w.log.partitions = event.JournalID, event.Partitions
	case *record.TermStarted:
		if event.Term != w.term+1 {
			return w.chain.Broken(w.chain.Position().Offset, head.Sequence, fmt.Sprintf("it opens term %d after term %d", event.Term, w.term), nil)
		}
		w.term = event.Term
	}
	return nil
}

func (w *Writer) add(e entry) {
	p := w.current
	if p.FirstOffset < 0 {
		p.FirstOffset = e.kafka.Offset
	}
	p.LastOffset = e.kafka.Offset
	p.Values += int64(len(e.kafka.Value))
	if e.sequence >= 0 {
		p.Records++
		p.hashes = append(p.hashes, e.hash)
	} else {
		p.Skipped++
	}
	p.content.add(&e)
	w.entries, w.bytes = append(w.entries, e), w.bytes+len(e.kafka.Value)
}

// flush encodes a chunk.
func (p *pending) flush(w *Writer, entries []entry) error {
	if len(entries) == 0 {
		return nil
	}
	head, facts, values, err := w.codec.encode(w.log, entries)
	if err != nil {
		return err
	}
	head.First = p.First
	for _, h := range p.heads {
		head.First += int64(h.valid)
	}
	for _, e := range entries {
		if e.sequence >= 0 {
			head.valid++
		}
	}
	p.heads = append(p.heads, head)
	p.chunks = append(append(p.chunks, facts...), values...)
	return nil
}

// finish sets what the manifest says of all records.
func (w *Writer) finish(p *pending) {
	p.Base = record.Base{Journal: w.log.journal, Partition: w.log.partition, Partitions: w.log.partitions, JournalID: w.log.id,
		Sequence: p.First + p.Records, Prev: w.chain.Position().Hash, Term: w.term}
	copy(p.Content[:], p.content.sum.Sum(nil))
}

// Seal writes the object and then the manifest of the current range, if that is complete. It writes neither if the tail is of another
// history. Add calls it; after an error it may be called again. An error that is an *Error stays.
func (w *Writer) Seal(ctx context.Context) error {
	if !w.full {
		return nil
	}
	// Another writer may have written a tail since this one has opened the archive. Readers ignore the tail of a full range.
	tail, err := w.archive.readTail(ctx)
	if err != nil {
		return err
	}
	if err := w.agree(ctx, tail); err != nil {
		return err
	}
	p := w.current
	if err := p.flush(w, w.entries); err != nil {
		return err
	}
	w.entries, w.bytes = nil, 0
	w.finish(p)
	if err := w.putObject(ctx, p, false, w.archive.cfg.create); err != nil {
		return err
	}
	sealed, err := w.putManifest(ctx, &p.Manifest)
	if err != nil {
		return err
	}
	w.archive.sealed = append(w.archive.sealed, *sealed)
	w.full = false
	w.begin()
	return nil
}

// maxNames is the number of names that an object may have.
const maxNames = 10

// putObject creates the object of a range, or of a tail. If one exists, it must hold the same records, and the manifest then describes
// that one. A damaged one, which no manifest names yet, stays: another writer may be replacing it, and would name its own object by its
// hash. The object then gets another name, which writers try in the same order.
func (w *Writer) putObject(ctx context.Context, p *pending, tail bool, create func(ctx context.Context, key string, content []byte) (bool, error)) error {
	cfg := &w.archive.cfg
	first := cfg.objectKey(&p.Manifest, tail)
	for n := 1; ; n++ {
		if p.Object = first; n > 1 {
			p.Object += fmt.Sprintf("-%d", n)
		}
		b, err := sealObject(cfg, p.Object, w.log, p.heads, p.chunks)
		if err != nil {
			return err
		}
		created, err := create(ctx, p.Object, b)
		if err != nil {
			return err
		}
		if !created {
			b, err = w.readBack(ctx, &p.Manifest)
		}
		var wrong *Error
		if errors.As(err, &wrong) && wrong.Damage == Damaged && n < maxNames {
			continue
		}
		if err != nil {
			return err
		}
		p.Hash, p.Bytes = sha256.Sum256(b), int64(len(b))
		return nil
	}
}

// readBack reads an object that another writer, or this one before a crash, has created, and verifies that it holds the records of a
// manifest. It has another nonce, so its bytes differ.
func (w *Writer) readBack(ctx context.Context, m *Manifest) ([]byte, error) {
	cfg := &w.archive.cfg
	b, err := cfg.Store.Read(ctx, m.Object, maxBlob)
	if err != nil {
		return nil, fmt.Errorf("archive: reading %s: %w", m.Object, err)
	}
	o, err := openObject(cfg, m, b)
	if err != nil {
		return nil, err
	}
	d, err := w.archive.decoders()
	if err != nil {
		return nil, err
	}
	return b, o.verify(ctx, d)
}

var errOther = errors.New("it stands for other records than those of the topic")

// putManifest creates a manifest. If one exists, it must describe the same records, unless it is cut. It then replaces that one, as
// every writer would do with the same bytes.
func (w *Writer) putManifest(ctx context.Context, m *Manifest) (*Sealed, error) {
	cfg := &w.archive.cfg
	key := cfg.manifestKey(m.Range)
	b, err := m.encode(cfg.macKey(), manifestMagic)
	if err != nil {
		return nil, err
	}
	created, err := cfg.create(ctx, key, b)
	if err != nil {
		return nil, err
	}
	if !created {
		if b, err = cfg.Store.Read(ctx, key, maxManifest); err != nil {
			return nil, fmt.Errorf("archive: reading %s: %w", key, err)
		}
	}
	s, err := w.archive.parse(key, b)
	if isCut(err) {
		if b, err = m.encode(cfg.macKey(), manifestMagic); err != nil {
			return nil, err
		}
		if err = cfg.Store.Write(ctx, key, b, writeWithin); err != nil {
			return nil, err
		}
		s, err = w.archive.parse(key, b)
	}
	if err == nil && !s.same(m) {
		err = &Error{Key: key, Sequence: m.First, Damage: Forked, Err: errOther}
	}
	return s, err
}
