package history

import (
	"slices"
)

// perByte estimates the memory of a state, in bytes per byte of the encoded state.
const perByte = 4

// cache keeps the moments that were used last. It is not safe for concurrent use.
type cache struct {
	most  int64 // bytes
	bytes int64
	kept  []*cached // least recently used first
}

type cached struct {
	*moment
	key
	bytes int64
}

// exactly returns the moment of a key, or nil.
func (c *cache) exactly(k key) *moment {
	for i, x := range c.kept {
		if x.Shard == k.Shard && x.sequence == k.sequence && (x.key.next || !k.next) {
			c.kept = append(slices.Delete(c.kept, i, i+1), x)
			return x.moment
		}
	}
	return nil
}

// below returns the last moment at or below a key, or nil.
func (c *cache) below(k key) (nearest *moment) {
	for _, x := range c.kept {
		if x.Shard == k.Shard && x.sequence <= k.sequence && (nearest == nil || nearest.at.Sequence < x.sequence) {
			nearest = x.moment
		}
	}
	return nearest
}

// add keeps a moment with a state of an encoded size, and drops others until the limit is kept. The new one stays in any case.
func (c *cache) add(k key, m *moment, size int) {
	c.kept = slices.DeleteFunc(c.kept, func(x *cached) bool {
		same := x.Shard == k.Shard && x.sequence == k.sequence
		if same {
			c.bytes -= x.bytes
		}
		return same
	})
	x := &cached{m, k, int64(size)*perByte + int64(len(m.next.Value))}
	c.kept = append(c.kept, x)
	c.bytes += x.bytes
	for c.bytes > c.most && len(c.kept) > 1 {
		c.bytes -= c.kept[0].bytes
		c.kept = slices.Delete(c.kept, 0, 1)
	}
}
