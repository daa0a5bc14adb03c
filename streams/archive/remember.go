package archive

import (
	"slices"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// stamp is the entry of a manifest in the list of the bucket.
type stamp struct {
	listed bool
	time   time.Time
	size   int64
}

func (s stamp) equal(o stamp) bool {
	return s.listed && o.listed && s.time.Equal(o.time) && s.size == o.size
}

// memories has the verified manifests of full ranges that this process has read. They never change, and a reader below the base
// of a log opens the archive several times.
var memories = struct {
	sync.Mutex
	of map[archiveKey]memorized
}{of: make(map[archiveKey]memorized)}

// archiveKey names an archive, and the bucket and the key that its manifests were verified with.
type archiveKey struct {
	store     Store
	box       *seal.Box
	folder    string
	rangeSize int64
}

type memorized struct {
	sealed []Sealed
	stamps []stamp
}

func (c *Config) memoryKey() archiveKey {
	return archiveKey{c.Store, c.Box, c.folder(), c.rangeSize()}
}

// remembered returns the manifests that were read before and that the bucket lists as they were then, from the first one on.
func remembered(c *Config, listed []stamp) []Sealed {
	memories.Lock()
	defer memories.Unlock()
	m := memories.of[c.memoryKey()]
	n := 0
	for n < min(len(m.stamps), len(listed)) && m.stamps[n].equal(listed[n]) {
		n++
	}
	return slices.Clone(m.sealed[:n])
}

// remember keeps verified manifests.
func remember(c *Config, sealed []Sealed, listed []stamp) {
	memories.Lock()
	defer memories.Unlock()
	memories.of[c.memoryKey()] = memorized{slices.Clone(sealed), listed}
}
