package journal

import (
	"context"
	"math"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// RawReader reads all records of one partition from a position on, also those that a Reader skips. It verifies its position as a
// Reader does, and it follows the chain without decoding events. It reads the topic alone: after a position before the base of a
// trimmed log its error is a *record.TrimmedError, even if the client has a History. It is not safe for concurrent use.
type RawReader struct {
	reader  *Reader
	records []*kgo.Record // read and not returned yet
}

// NewRawReader returns a reader of the records after from. It connects at the first call.
func NewRawReader(client *Client, rules decide.Rules, partition int32, from record.Position) *RawReader {
	r := &RawReader{reader: NewReader(client, rules, partition, from)}
	r.reader.chain.DecodeFrom(math.MaxInt64)
	r.reader.raw = func(k *kgo.Record) { r.records = append(r.records, k) }
	return r
}

// Locate finds the position that the reader was made with, and returns it with its offset in the log. In a trimmed log it may be the
// position before the base, and its offset is then the one before that of the base. Locate MUST be called before Poll. It retries
// errors of the brokers without limit. Its errors are those of Reader.Poll.
func (r *RawReader) Locate(ctx context.Context) (record.Position, error) {
	at := r.reader.Position()
	r.reader.found = at.Offset
	for len(r.records) == 0 && !r.reader.atTip() {
		if _, _, err := r.reader.advance(ctx, true); err != nil && len(r.records) == 0 {
			return at, err
		}
	}
	at.Offset = r.reader.found
	return at, nil
}

// Poll waits for records and returns at least one. Its errors are those of Reader.Poll. After an error of the context it may be
// called again.
func (r *RawReader) Poll(ctx context.Context) ([]*kgo.Record, error) {
	for len(r.records) == 0 {
		if _, _, err := r.reader.Next(ctx); err != nil && len(r.records) == 0 {
			return nil, err
		}
	}
	out := r.records
	r.records = nil
	return out, nil
}

// Position returns the position of the last valid record that the reader has read, or the one before the first.
func (r *RawReader) Position() record.Position { return r.reader.Position() }

// AtTip reports whether all records were returned that the log had when the brokers last answered.
func (r *RawReader) AtTip() bool { return len(r.records) == 0 && r.reader.atTip() }

// NextOffset returns the lowest offset of the records that Poll has not returned.
func (r *RawReader) NextOffset() int64 {
	if len(r.records) > 0 {
		return r.records[0].Offset
	}
	return r.reader.next
}

// Close closes the connections.
func (r *RawReader) Close() { r.reader.Close() }
