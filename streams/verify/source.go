package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
)

// Message is one record of a topic, which readers may skip.
type Message struct {
	Offset int64
	Value  []byte
	Hash   record.Hash // SHA-256 of the value, if Hashed
	Hashed bool        // the source has computed and verified the hash
	// Kafka has the key, the headers and the timestamp. It is nil if the source has not stored them because they are those that
	// a writer gives to the value.
	Kafka *kgo.Record
}

// Skip passes a message that readers skip to a Tear.
func (m *Message) Skip(t *record.Tear, name string) {
	if m.Kafka != nil {
		journal.Skip(t, name, m.Kafka)
		return
	}
	t.Skip(m.Offset, m.Value, func(record.Entry) error { return nil })
}

// Source is the log to verify.
type Source interface {
	// Base returns where a trimmed log begins, or nil for one that begins with its genesis or is empty.
	Base(ctx context.Context) (*record.Base, error)
	// Open returns a reader of the messages from the first one to the current end of the log.
	Open(ctx context.Context) (Batches, error)
}

// Batches returns the messages of a log in the order of their offsets.
type Batches interface {
	// Next returns at least one message, or io.EOF at the end. A *DamageError says that the source is damaged. Any other error
	// says nothing about the log. The messages MUST NOT be changed.
	Next(ctx context.Context) ([]Message, error)
	Close()
}

// DamageError says that a source is not in its form, so that the records at a place can't be read.
type DamageError struct {
	Sequence int64 // of the first record that may be affected; -1 for the next one after those that were read
	Err      error
}

// Error returns the text of the cause.
func (e *DamageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *DamageError) Unwrap() error { return e.Err }

// The bounds of a batch that is gathered from single records.
const (
	batchRecords = 256
	batchBytes   = 1 << 20
)

// FromLog returns the source of a log in a topic or in a file.
func FromLog(log transfer.Log) Source { return logSource{log} }

type logSource struct{ transfer.Log }

// Base returns the base. A file that is damaged before the first record is reported by its reader.
func (s logSource) Base(ctx context.Context) (*record.Base, error) {
	b, err := s.Log.Base(ctx)
	if isLineError(err) {
		return nil, nil
	}
	return b, err
}

// Open implements Source.
func (s logSource) Open(ctx context.Context) (Batches, error) {
	records, err := s.Records(ctx)
	if err != nil {
		return nil, err
	}
	return &logBatches{Records: records}, nil
}

type logBatches struct {
	transfer.Records
	err error
}

// Next implements Batches.
func (b *logBatches) Next(ctx context.Context) ([]Message, error) {
	if b.err != nil {
		return nil, b.err
	}
	batch, size := make([]Message, 0, batchRecords), 0
	for len(batch) < batchRecords && size < batchBytes {
		r, err := b.Records.Next(ctx)
		if err == nil && r.Partition != 0 {
			err = &DamageError{-1, fmt.Errorf("the record at offset %d is of partition %d", r.Offset, r.Partition)}
		}
		if err != nil {
			if isLineError(err) {
				err = &DamageError{-1, err}
			}
			if b.err = err; len(batch) == 0 {
				return nil, err
			}
			break
		}
		batch = append(batch, Message{Offset: r.Offset, Value: r.Value, Kafka: r})
		size += len(r.Value)
	}
	return batch, nil
}

func isLineError(err error) bool {
	var line *transfer.LineError
	return errors.As(err, &line)
}

// FromArchive returns the source of an archive. An archive begins with the genesis.
func FromArchive(a *archive.Archive) Source { return archiveSource{a} }

type archiveSource struct{ archive *archive.Archive }

// Base implements Source.
func (archiveSource) Base(context.Context) (*record.Base, error) { return nil, nil }

// Open implements Source.
func (s archiveSource) Open(ctx context.Context) (Batches, error) {
	chunks, err := s.archive.Chunks(ctx)
	if err != nil {
		return nil, err
	}
	return &archiveBatches{chunks: chunks}, nil
}

type archiveBatches struct {
	chunks *archive.Chunks
	chunk  archive.Chunk
	next   int // record of the chunk
}

// Close implements Batches.
func (b *archiveBatches) Close() { b.chunks.Close() }

// Next implements Batches.
func (b *archiveBatches) Next(ctx context.Context) ([]Message, error) {
	for b.next == b.chunk.Len() {
		c, err := b.chunks.Next(ctx)
		var damage *archive.Error
		if errors.As(err, &damage) {
			err = &DamageError{damage.Sequence, err}
		}
		if err != nil {
			return nil, err
		}
		b.chunk, b.next = c, 0
	}
	batch := make([]Message, min(batchRecords, b.chunk.Len()-b.next))
	for i := range batch {
		m := &batch[i]
		m.Offset, m.Value, m.Hash, m.Kafka = b.chunk.Record(b.next)
		m.Hashed = true
		b.next++
	}
	return batch, nil
}

// Damaged returns the source of an archive that can't be opened.
func Damaged(err *archive.Error) Source { return damaged{err} }

type damaged struct{ err *archive.Error }

// Base implements Source.
func (damaged) Base(context.Context) (*record.Base, error) { return nil, nil }

// Open implements Source.
func (d damaged) Open(context.Context) (Batches, error) { return d, nil }

// Next implements Batches.
func (d damaged) Next(context.Context) ([]Message, error) {
	return nil, &DamageError{max(0, d.err.Sequence), d.err}
}

// Close implements Batches.
func (damaged) Close() {}
