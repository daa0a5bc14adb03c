package seal

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// KeyLifetime is how long a node goes on to use a key after it read it: the longest time from the destruction of a key to
// the last use of it, on any node.
const KeyLifetime = 3 * time.Second

// cachedKeys is how many keys a node holds in memory.
const cachedKeys = 4096

// keyCache holds keys in memory, each KeyLifetime long.
type keyCache struct {
	load    func(ctx context.Context, owner string) (*Box, error)
	loading singleflight.Group

	mu       sync.Mutex
	keys     map[string]cachedKey
	sweeping bool // a sweep is to come
}

type cachedKey struct {
	box  *Box
	read time.Time // when the store was asked
}

func newKeyCache(load func(context.Context, string) (*Box, error)) *keyCache {
	return &keyCache{load: load, keys: make(map[string]cachedKey)}
}

// get returns an owner's key, from the store where it was not read a short while ago.
func (c *keyCache) get(ctx context.Context, owner string) (*Box, error) {
	c.mu.Lock()
	k, held := c.keys[owner]
	c.mu.Unlock()
	if held && time.Since(k.read) < KeyLifetime {
		return k.box, nil
	}
	// Many requests about one owner ask once. Whoever gives up does not take the answer from the others, so the question has
	// the values of the first's context and not its end; the store has a patience of its own.
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

// fetch reads a key and keeps it.
func (c *keyCache) fetch(ctx context.Context, owner string) (*Box, error) {
	// The time before the question: a tombstone that is written while the answer is on its way counts from then on.
	read := time.Now()
	box, err := c.load(ctx, owner)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.keys) >= cachedKeys {
		for another := range c.keys { // any one: each is read again soon anyway
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

// sweep drops the keys whose time is over, which nobody may ever ask for again, and comes again while there are others.
func (c *keyCache) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for owner, k := range c.keys {
		if time.Since(k.read) >= KeyLifetime {
			delete(c.keys, owner)
		}
	}
	if c.sweeping = len(c.keys) > 0; c.sweeping {
		time.AfterFunc(KeyLifetime, c.sweep)
	}
}

// forget drops a key. One that is being read meanwhile may come back for the rest of its time.
func (c *keyCache) forget(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, owner)
}
