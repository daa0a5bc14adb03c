package broker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A segment file is a sequence of record batches (Kafka's message format 2). These are the offsets, in bytes from the
// start of a batch, of the header fields that the scan reads. Numbers are big-endian.
const (
	atLength          = 8  // int32, number of bytes after this field
	atLeaderEpoch     = 12 // int32, not covered by the checksum; always 0 here
	atMagic           = 16 // int8, not covered by the checksum; always 2
	atChecksum        = 17 // CRC-32C of all bytes after it
	atAttributes      = 21 // int16
	atLastOffsetDelta = 23 // int32
	atMaxTimestamp    = 35 // int64
	atRecordCount     = 57 // int32
	headerSize        = 61

	// lengthFrom is the position of the first byte that the length field counts.
	lengthFrom = 12
	// maxBatchBytes bounds a batch. It is far above the journals' 4 MiB and far below the lengths that a damaged field
	// can claim.
	maxBatchBytes = 64 << 20

	attributeTransactional = 0x10
	attributeControl       = 0x20
)

// damage describes damage at one byte of a segment or index.
type damage struct {
	at     int64
	reason string
}

func (f *damage) Error() string { return fmt.Sprintf("byte %d: %s", f.at, f.reason) }

// batch describes one intact batch.
type batch struct {
	at           int64 // position of its first byte in the file
	size         int64
	lastOffset   int64
	maxTimestamp int64
	attributes   uint16
}

// tail is the incomplete batch after a segment's last complete one.
type tail struct {
	at   int64 // length of the segment without the tail
	size int64 // 0 without a tail
}

// scanSegment reads a whole segment of the given size. Its first batch must have the offset next. It calls found for
// each batch and returns the tail after the last complete one. It returns damage as a *damage.
//
// A returned tail is provably the beginning of one batch that was cut off, as far as its bytes can show: its header
// fields are correct, the checksum does not match a shorter batch (which would mean a damaged length), and no further
// batch begins inside it.
func scanSegment(file io.ReaderAt, size, next int64, found func(batch) error) (tail, error) {
	in := bufio.NewReaderSize(io.NewSectionReader(file, 0, size), 1<<16)
	header := make([]byte, headerSize)
	for at := int64(0); ; {
		h := header[:min(headerSize, size-at)]
		if len(h) == 0 {
			return tail{at: at}, nil
		}
		if _, err := io.ReadFull(in, h); err != nil {
			return tail{}, fmt.Errorf("read at byte %d: %w", at, err)
		}
		if f := checkHeader(h, at, next); f != nil {
			return tail{}, f
		}
		if n := declared(h); len(h) >= atLeaderEpoch && (n < headerSize-lengthFrom || n > maxBatchBytes) {
			return tail{}, explain(file, size, at, next, &damage{at + atLength, fmt.Sprintf("no batch has a length of %d", n)})
		}
		if len(h) < headerSize || at+lengthFrom+declared(h) > size {
			return tail{at: at, size: size - at}, checkTail(file, size, at, next)
		}
		b := batch{
			at:           at,
			size:         lengthFrom + declared(h),
			lastOffset:   next + lastOffsetDelta(h),
			maxTimestamp: int64(binary.BigEndian.Uint64(h[atMaxTimestamp:])),
			attributes:   binary.BigEndian.Uint16(h[atAttributes:]),
		}
		sum, err := checksum(in, h[atAttributes:], b.size-headerSize)
		if err != nil {
			return tail{}, fmt.Errorf("read at byte %d: %w", at, err)
		}
		if sum != binary.BigEndian.Uint32(h[atChecksum:]) {
			return tail{}, explain(file, size, at, next, &damage{at, fmt.Sprintf("the batch of %d bytes that starts here does not match its checksum", b.size)})
		}
		if f := checkCounts(h, at); f != nil {
			return tail{}, f
		}
		if err := found(b); err != nil {
			return tail{}, err
		}
		at, next = at+b.size, b.lastOffset+1
	}
}

// declared returns the length field of a header, or 0 if the header is cut off before the field's end.
func declared(h []byte) int64 {
	if len(h) < atLeaderEpoch {
		return 0
	}
	return int64(int32(binary.BigEndian.Uint32(h[atLength:])))
}

// lastOffsetDelta returns the difference between a batch's last and first offset.
func lastOffsetDelta(h []byte) int64 { return int64(binary.BigEndian.Uint32(h[atLastOffsetDelta:])) }

// checkHeader checks the fields that the checksum does not cover. A truncated header is checked as far as it goes.
func checkHeader(h []byte, at, next int64) *damage {
	var want [atChecksum]byte
	binary.BigEndian.PutUint64(want[:], uint64(next))
	want[atMagic] = 2
	for i := range min(len(h), len(want)) {
		if i >= atLength && i < atLeaderEpoch || h[i] == want[i] {
			continue
		}
		switch {
		case i < atLength:
			return &damage{at + int64(i), fmt.Sprintf("the batch has offset %s instead of %d", field(h, 0, atLength), next)}
		case i < atMagic:
			return &damage{at + int64(i), fmt.Sprintf("the batch has leader epoch %s instead of 0", field(h, atLeaderEpoch, atMagic))}
		default:
			return &damage{at + int64(i), fmt.Sprintf("the batch has format %d instead of 2", h[atMagic])}
		}
	}
	return nil
}

// field formats a number of the header. If the header is cut off inside it, field formats the bytes that exist.
func field(h []byte, from, to int) string {
	if len(h) < to {
		return fmt.Sprintf("%x…", h[from:])
	}
	n := uint64(0)
	for _, b := range h[from:to] {
		n = n<<8 | uint64(b)
	}
	return fmt.Sprint(n)
}

// checkCounts checks that a batch has records and that their number agrees with its offsets.
func checkCounts(h []byte, at int64) *damage {
	delta := int32(binary.BigEndian.Uint32(h[atLastOffsetDelta:]))
	count := int32(binary.BigEndian.Uint32(h[atRecordCount:]))
	if count < 1 || delta != count-1 {
		return &damage{at + atRecordCount, fmt.Sprintf("the batch has %d records and a last offset delta of %d", count, delta)}
	}
	return nil
}

// checkTail distinguishes a batch that a crash cut off from a complete batch with a damaged length field, and from
// damage that hides further batches.
func checkTail(file io.ReaderAt, size, at, next int64) error {
	if size-at > maxBatchBytes {
		return &damage{at + atLength, "the batch that starts here claims more than the rest of the segment, which is more than any batch has"}
	}
	rest := make([]byte, size-at)
	if _, err := file.ReadAt(rest, at); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read at byte %d: %w", at, err)
	}
	if len(rest) < headerSize {
		return nil
	}
	if f := checkCounts(rest, at); f != nil {
		return f
	}
	if length, ok := rightLength(rest, next); ok {
		return wrongLength(rest, at, length)
	}
	for i := headerSize; i+headerSize <= len(rest); i++ {
		if intactBatch(rest[i:], next) {
			return &damage{at + atLength, fmt.Sprintf("the batch runs past the end of the segment, and an intact one starts inside it at byte %d", at+int64(i))}
		}
	}
	return nil
}

// rightLength searches for the length with which the batch at the start of rest matches its checksum. It considers only
// ends at which the file ends or the next batch begins: in a long rest, some length would match the checksum by chance.
func rightLength(rest []byte, next int64) (int64, bool) {
	var follower [8]byte
	binary.BigEndian.PutUint64(follower[:], uint64(next)+uint64(binary.BigEndian.Uint32(rest[atLastOffsetDelta:]))+1)
	want := binary.BigEndian.Uint32(rest[atChecksum:])
	sum := crc32.Update(0, castagnoli, rest[atAttributes:headerSize])
	for end := headerSize; ; end++ {
		if sum == want {
			after := rest[end:]
			n := min(len(after), len(follower))
			if string(after[:n]) == string(follower[:n]) && (len(after) <= atMagic || after[atMagic] == 2) {
				return int64(end - lengthFrom), true
			}
		}
		if end == len(rest) {
			return 0, false
		}
		sum = ^(castagnoli[byte(^sum)^rest[end]] ^ (^sum >> 8))
	}
}

func wrongLength(h []byte, at, length int64) *damage {
	var want [4]byte
	binary.BigEndian.PutUint32(want[:], uint32(length))
	i := 0
	for i < 3 && h[atLength+i] == want[i] {
		i++
	}
	return &damage{at + atLength + int64(i), fmt.Sprintf("the batch claims a length of %d, and its checksum holds for %d", declared(h), length)}
}

// intactBatch reports whether b starts with a complete batch at an offset above after.
func intactBatch(b []byte, after int64) bool {
	if b[atMagic] != 2 || binary.BigEndian.Uint32(b[atLeaderEpoch:]) != 0 {
		return false
	}
	offset, end := int64(binary.BigEndian.Uint64(b)), lengthFrom+declared(b)
	if offset <= after || end < headerSize || end > int64(len(b)) {
		return false
	}
	return crc32.Checksum(b[atAttributes:end], castagnoli) == binary.BigEndian.Uint32(b[atChecksum:])
}
