package operation

import (
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// NewID returns a UUIDv7: 48 bits of milliseconds, the rest random.
func NewID() scalar.ID {
	var random [16]byte
	rand.Read(random[:]) // never returns an error
	return timed(random, time.Now())
}

// NewIDs returns two IDs. It is cheaper than two calls of NewID.
func NewIDs() (a, b scalar.ID) {
	var random [32]byte
	rand.Read(random[:]) // never returns an error
	now := time.Now()
	return timed([16]byte(random[:16]), now), timed([16]byte(random[16:]), now)
}

func timed(id scalar.ID, now time.Time) scalar.ID {
	binary.BigEndian.PutUint64(id[:], uint64(now.UnixMilli())<<16|0x7000|binary.BigEndian.Uint64(id[:])&0x0fff)
	id[8] = id[8]&0x3f | 0x80
	return id
}
