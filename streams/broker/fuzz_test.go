package broker

import (
	"bytes"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// encode makes a segment of one batch for each byte string, whose records'
// content the scan does not look at.
func encode(first int64, contents ...[]byte) []byte {
	var all []byte
	for i, content := range contents {
		b := kmsg.RecordBatch{
			FirstOffset: first, Length: int32(headerSize - lengthFrom + len(content)), Magic: 2,
			LastOffsetDelta: int32(i % 3), NumRecords: int32(i%3) + 1,
			FirstTimestamp: int64(i), MaxTimestamp: int64(i), ProducerID: 7, Records: content,
		}
		raw := b.AppendTo(nil)
		b.CRC = int32(crc32.Checksum(raw[atAttributes:], castagnoli))
		all = b.AppendTo(all)
		first += int64(b.NumRecords)
	}
	return all
}

// scanned returns the sizes of the batches found, the tail and the error.
func scanned(content []byte, next int64) (sizes []int64, end tail, err error) {
	end, err = scanSegment(bytes.NewReader(content), int64(len(content)), next, func(b batch) error {
		sizes = append(sizes, b.size)
		return nil
	})
	return sizes, end, err
}

// Whatever the file holds, the scan ends without a panic, accounts for every
// byte, and accepts only what a decoder of batches accepts.
func FuzzScanSegment(f *testing.F) {
	f.Add(int64(0), encode(0, []byte("one"), []byte("two"), nil, bytes.Repeat([]byte("x"), 300)))
	f.Add(int64(5), encode(5, []byte("one"), []byte("two"))[:80])
	f.Add(int64(0), []byte{})
	f.Add(int64(0), make([]byte, 200))
	f.Fuzz(func(t *testing.T, next int64, content []byte) {
		sizes, end, err := scanned(content, next)
		if err != nil {
			damage := (*damage)(nil)
			if !errors.As(err, &damage) || damage.at < 0 || damage.at >= int64(len(content)) {
				t.Fatalf("%v in %d bytes", err, len(content))
			}
			return
		}
		at := int64(0)
		for _, size := range sizes {
			var b kmsg.RecordBatch
			raw := content[at : at+size]
			if err := b.ReadFrom(raw); err != nil {
				t.Fatal(err)
			}
			if b.FirstOffset != next || b.CRC != int32(crc32.Checksum(raw[atAttributes:], castagnoli)) {
				t.Fatalf("accepted a batch at offset %d where %d comes next", b.FirstOffset, next)
			}
			next += int64(b.NumRecords)
			at += size
		}
		if end.at != at || end.at+end.size != int64(len(content)) {
			t.Fatalf("%+v after %d of %d bytes", end, at, len(content))
		}
	})
}

// One changed byte of an intact segment is never taken for the end of the log.
func FuzzFlip(f *testing.F) {
	f.Add([]byte("one"), []byte("two"), []byte("three"), uint16(70), byte(1))
	f.Add([]byte{}, []byte{}, bytes.Repeat([]byte{0}, 100), uint16(140), byte(0x80))
	f.Fuzz(func(t *testing.T, a, b, c []byte, at uint16, by byte) {
		content := encode(3, a, b, c)
		if sizes, end, err := scanned(content, 3); err != nil || len(sizes) != 3 || end.size != 0 {
			t.Fatalf("an intact segment: %v %v %v", sizes, end, err)
		}
		if by == 0 {
			return
		}
		content[int(at)%len(content)] ^= by
		if _, end, err := scanned(content, 3); err == nil {
			t.Fatalf("byte %d changed: accepted, with the tail %+v", int(at)%len(content), end)
		}
	})
}
