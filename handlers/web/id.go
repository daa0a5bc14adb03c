package web

import (
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// NewID makes a UUIDv7: 48 bits of milliseconds, the rest random.
func NewID() decide.ID {
	var id decide.ID
	rand.Read(id[:]) // never fails
	ms := uint64(time.Now().UnixMilli())
	binary.BigEndian.PutUint64(id[:], ms<<16|0x7000|binary.BigEndian.Uint64(id[:])&0x0fff)
	id[8] = id[8]&0x3f | 0x80
	return id
}
