package history

import (
	"slices"
)

// perByte estimates the memory of a state, in bytes per byte of the encoded state.
const perByte = 4

// cache keeps the moments that were used last. It is not safe for concurrent use.
type cache struct {
	most    int64 // bytes
	bytes   int64
	moments []*cached // least recently used first
}

type cached struct {
	*moment
	key
	bytes int64
}

// exactly returns the moment of a key, or nil.
func (c *cache) exactly(k key) *moment {
	for i, x := range c.moments {
		if x.Shard == k.Shard && x.sequence == k.sequence && (x.key.next || !k.next) {
			c.moments = append(slices.Delete(c.moments, i, i+1), x)
			return x.moment
		}
	}
	return nil
}

// below returns the last moment at or below a key, or nil.
func (c *cache) below(k key) (nearest *moment) {
	for _, x := range c.moments {
		if x.Shard == k.Shard && x.sequence <= k.sequence && (nearest == nil || nearest.at.Sequence < x.sequence) {
			nearest = x.moment
		}
	}
	return nearest
}

// add keeps a moment with a state of an encoded size, and drops others until the limit is kept. The new one stays in any case.
func (c *cache) add(k key, m *moment, size int) {
	c.moments = slices.DeleteFunc(c.moments, func(x *cached) bool {
		same := x.Shard == k.Shard && x.sequence == k.sequence
		if same {
			c.bytes -= x.bytes
		}
		return same
	})
	x := &cached{m, k, int64(size)*perByte + int64(len(m.next.Value))}
	c.moments = append(c.moments, x)
	c.bytes += x.bytes
	for c.bytes > c.most && len(c.moments) > 1 {
		c.bytes -= c.moments[0].bytes
		c.moments = slices.Delete(c.moments, 0, 1)
	}
}
