package reference_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/archive/columns"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestArchiveOfAMarket measures how many bytes an archive takes for the records of a short market with a settlement and
// liquidations. The load has counters for ids of commands and for fingerprints; here they are random, as in a venue, and every
// client sends a key.
func TestArchiveOfAMarket(t *testing.T) {
	morning := scalar.TimeOf(time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC))
	v := openVenue(t, 7, morning-10*scalar.Second)
	c := openCrowd(v, 7, 60) // what opens the market is in no proportion to so short a load
	real := realRecords{t: t, v: v, decoder: record.NewDecoder(trading.Rules().Registry()), first: v.tip.Sequence + 1, prev: v.tip.Hash}
	v.log.Each = real.add
	for c.now < morning+25*scalar.Second {
		c.second()
	}
	e, err := columns.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	chunk, err := e.Encode(v.id, real.values)
	if err != nil {
		t.Fatal(err)
	}
	var plain []byte
	for _, value := range real.values {
		plain = append(plain, value.Bytes...)
	}
	zstdSize := func(level zstd.EncoderLevel) int {
		z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level))
		if err != nil {
			t.Fatal(err)
		}
		return len(z.EncodeAll(plain, nil))
	}
	n := len(real.values)
	archived := len(chunk) + 4*n + 32*n/256 // with what the object keeps of the hashes
	per := func(bytes int) float64 { return float64(bytes) / float64(n) }
	t.Logf("%d records of %.0f bytes: %.1f in the archive, %.1f with zstd-3, %.1f with zstd's best level", n, per(len(plain)), per(archived),
		per(zstdSize(zstd.SpeedDefault)), per(zstdSize(zstd.SpeedBestCompression)))
	if part := float64(archived) / float64(len(plain)); part > 0.055 {
		t.Errorf("the archive takes %.2f %% of the values", 100*part)
	}
}

// realRecords are the records of a load, with random ids and keys in place of counters.
type realRecords struct {
	t       *testing.T
	v       *venue
	decoder *record.Decoder
	values  []columns.Value
	first   int64
	prev    record.Hash
}

func (l *realRecords) add(value []byte) {
	r, err := l.decoder.Decode(value)
	if err != nil {
		l.t.Fatal(err)
	}
	text := sha256.Sum256(value) // as good as random
	r.Prev = l.prev
	copy(r.Command.ID[:], text[:])
	ms := int64(r.Time) / 1000
	for i := range 6 {
		r.Command.ID[i] = byte(ms >> (40 - 8*i))
	}
	r.Command.ID[6], r.Command.ID[8] = r.Command.ID[6]&0x0f|0x70, r.Command.ID[8]&0x3f|0x80
	if r.Command.Kept.Fingerprint != "" {
		r.Command.Kept.Fingerprint = hex.EncodeToString(text[16:])
		if r.Command.Kept.Key == "" {
			r.Command.Kept.Key = hex.EncodeToString(text[8:15])
		}
	}
	again, err := record.Encode(nil, r)
	if err != nil {
		l.t.Fatal(err)
	}
	l.values = append(l.values, columns.Value{Bytes: again, Sequence: l.first + int64(len(l.values)), Prev: l.prev.String()})
	l.prev = sha256.Sum256(again)
}
