package record

import (
	"crypto/rand"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// NewCommandID returns a new UUID of version 7 with the time t in milliseconds and 74 random bits.
func NewCommandID(t time.Time) scalar.ID {
	var id scalar.ID
	_, _ = rand.Read(id[6:]) // never fails: it ends the program instead
	ms := t.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}
