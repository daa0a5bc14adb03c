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
	real := newRealRecords(t, 25*scalar.Second)
	e, err := columns.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	chunk, err := e.Encode(real.v.id, real.values)
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

// newRealRecords returns the records of a market around a settlement, without those that open it, which are in no proportion to so
// short a load.
func newRealRecords(t *testing.T, span scalar.Time) *realRecords {
	morning := scalar.TimeOf(time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC))
	v := openVenue(t, 7, morning-10*scalar.Second)
	c := openCrowd(v, 7, 60, trading.Rules().Newest())
	l := &realRecords{t: t, v: v, decoder: record.NewDecoder(trading.Rules().Registry()), first: v.tip.Sequence + 1, prev: v.tip.Hash}
	v.log.Each = l.add
	for c.now < morning+span {
		c.second()
	}
	return l
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
	if r.Command.Metadata.Fingerprint != "" {
		r.Command.Metadata.Fingerprint = hex.EncodeToString(text[16:])
		if r.Command.Metadata.Key == "" {
			r.Command.Metadata.Key = hex.EncodeToString(text[8:15])
		}
	}
	again, err := record.Encode(nil, r)
	if err != nil {
		l.t.Fatal(err)
	}
	l.values = append(l.values, columns.Value{Bytes: again, Sequence: l.first + int64(len(l.values)), Prev: l.prev.String()})
	l.prev = sha256.Sum256(again)
}

// TestArchiveSpeed prints how fast one core verifies an archive of a market's records, and how fast it hashes their values. It
// runs only if PERPETUA_TEST_ARCHIVE_MINUTES names a span of market.
func TestArchiveSpeed(t *testing.T) {
	minutes := setting(t, "PERPETUA_TEST_ARCHIVE_MINUTES", 0)
	if minutes == 0 {
		t.Skip("PERPETUA_TEST_ARCHIVE_MINUTES is not set")
	}
	real := newRealRecords(t, scalar.Time(minutes)*scalar.Minute)
	e, err := columns.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	n, bytes := len(real.values), 0
	sequences := make([]int64, n)
	for i, v := range real.values {
		sequences[i], bytes = v.Sequence, bytes+len(v.Bytes)
	}
	began := time.Now()
	chunk, err := e.Encode(real.v.id, real.values)
	if err != nil {
		t.Fatal(err)
	}
	encoding := time.Since(began)
	d, err := columns.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	verifying, hashing := time.Hour, time.Hour
	for range 5 {
		began = time.Now()
		out, err := d.Decode(real.v.id, sequences, chunk, bytes)
		if err != nil {
			t.Fatal(err)
		}
		prev, from := real.values[0].Prev, 0
		for i, end := range out.Ends {
			copy(out.Bytes[out.Prev[i]:], prev)
			sum := sha256.Sum256(out.Bytes[from:end])
			prev, from = hex.EncodeToString(sum[:]), end
		}
		verifying = min(verifying, time.Since(began))
		if prev != real.prev.String() {
			t.Fatal("the chain ends with another hash")
		}
		began = time.Now()
		for _, v := range real.values {
			sha256.Sum256(v.Bytes)
		}
		hashing = min(hashing, time.Since(began))
	}
	rate := func(d time.Duration) float64 { return float64(n) / d.Seconds() }
	t.Logf("%d records of %d bytes, %.2f %% in columns: %.0f encoded a second, %.0f verified, %.0f hashed; verifying takes %.1f times as long as hashing",
		n, bytes/n, 100*float64(len(chunk))/float64(bytes), rate(encoding), rate(verifying), rate(hashing), verifying.Seconds()/hashing.Seconds())
}
