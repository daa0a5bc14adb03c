package seal

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// KeyLifetime is the time for which a node may use a key after reading it. It bounds the time from the destruction of a
// key to its last use on any node.
const KeyLifetime = 3 * time.Second

// cachedKeys is the maximum number of keys that a node holds in memory.
const cachedKeys = 4096

// keyCache holds keys in memory, each for KeyLifetime.
type keyCache struct {
	load    func(ctx context.Context, owner string) (*Box, error)
	elapsed func() time.Duration // a monotonic clock
	loading singleflight.Group

	mu       sync.Mutex
	keys     map[string]cachedKey
	forgot   int  // number of calls of forget
	sweeping bool // a sweep is scheduled
}

type cachedKey struct {
	box  *Box
	read time.Duration // on elapsed, before the store was asked
}

func newKeyCache(load func(context.Context, string) (*Box, error)) *keyCache {
	start := time.Now()
	return &keyCache{load: load, elapsed: func() time.Duration { return time.Since(start) }, keys: make(map[string]cachedKey)}
}

// get returns an owner's key. It asks the store unless the cached key was read within KeyLifetime.
func (c *keyCache) get(ctx context.Context, owner string) (*Box, error) {
	c.mu.Lock()
	k, held := c.keys[owner]
	c.mu.Unlock()
	if held && c.elapsed()-k.read < KeyLifetime {
		return k.box, nil
	}
	// Concurrent requests for one owner share one read. A caller that gives up must not cancel it for the others, so
	// the read has the values of the first caller's context but not its end. The store has a time limit.
	asked := c.loading.DoChan(owner, func() (any, error) { return c.fetch(context.WithoutCancel(ctx), owner) })
	select {
	case r := <-asked:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*Box), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// fetch reads a key and caches it.
func (c *keyCache) fetch(ctx context.Context, owner string) (*Box, error) {
	// The time is taken before the read: a tombstone that is written while the answer is in flight counts from its
	// writing.
	read := c.elapsed()
	c.mu.Lock()
	forgot := c.forgot
	c.mu.Unlock()
	box, err := c.load(ctx, owner)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forgot != forgot { // the key may have been destroyed since it was read
		return box, nil
	}
	if len(c.keys) >= cachedKeys {
		for another := range c.keys { // an arbitrary key: each is read again soon anyway
			delete(c.keys, another)
			break
		}
	}
	c.keys[owner] = cachedKey{box, read}
	if !c.sweeping {
		c.sweeping = true
		time.AfterFunc(KeyLifetime, c.sweep)
	}
	return box, nil
}

// sweep drops expired keys, which may never be requested again. It schedules itself again while keys remain.
func (c *keyCache) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for owner, k := range c.keys {
		if c.elapsed()-k.read >= KeyLifetime {
			delete(c.keys, owner)
		}
	}
	if c.sweeping = len(c.keys) > 0; c.sweeping {
		time.AfterFunc(KeyLifetime, c.sweep)
	}
}

// forget drops a key. A concurrent read does not put it back.
func (c *keyCache) forget(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgot++
	delete(c.keys, owner)
	c.loading.Forget(owner)
}
