package broker

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// castagnoli is the table of CRC-32C, the checksum of record batches.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum continues the checksum of head over the next n bytes of in.
func checksum(in io.Reader, head []byte, n int64) (uint32, error) {
	sum := crc32.Update(0, castagnoli, head)
	buffer := make([]byte, min(n, 1<<15))
	for n > 0 {
		part := buffer[:min(n, int64(len(buffer)))]
		if _, err := io.ReadFull(in, part); err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, castagnoli, part)
		n -= int64(len(part))
	}
	return sum, nil
}

// explain makes the location of damage more exact if it can. If a batch's checksum matches another length, the length
// field is damaged. If the checksum would match with a single byte changed, that byte is damaged.
func explain(file io.ReaderAt, size, at, next int64, f *damage) error {
	rest := make([]byte, min(size-at, maxBatchBytes))
	if n, err := file.ReadAt(rest, at); err != nil && !errors.Is(err, io.EOF) || n < headerSize {
		return f
	}
	if length, ok := rightLength(rest, next); ok {
		return wrongLength(rest, at, length)
	}
	end := lengthFrom + declared(rest)
	if end < headerSize || end > int64(len(rest)) {
		return f
	}
	if i, ok := singleByte(rest[atChecksum:end]); ok {
		return &damage{at + atChecksum + int64(i), f.reason + "; it would if this one byte of it were different"}
	}
	return f
}

// singleByte finds the one byte that, if changed, would make b, a stored checksum and the bytes it covers, consistent.
// It returns false if no byte or several bytes qualify.
//
// A CRC is linear: the difference between the stored and the computed sum depends only on the position of the change
// and on the bits changed. So the difference is run backward through the register, byte by byte from the end. Wherever
// it equals a table entry, a change of that byte explains it.
func singleByte(b []byte) (int, bool) {
	stored, covered := binary.BigEndian.Uint32(b), b[4:]
	difference := stored ^ crc32.Checksum(covered, castagnoli)
	where, count := 0, 0
	for i := range 4 {
		if difference&^(0xff<<(24-8*i)) == 0 {
			where, count = i, count+1
		}
	}
	// The high bytes of the table's entries are all different, so they identify the entry that made a register.
	var entry [256]byte
	for i, t := range castagnoli {
		entry[t>>24] = byte(i)
	}
	for i := len(covered) - 1; i >= 0 && count < 2; i-- {
		low := entry[difference>>24]
		if castagnoli[low] == difference {
			where, count = 4+i, count+1
		}
		difference = (difference^castagnoli[low])<<8 | uint32(low)
	}
	return where, count == 1
}
