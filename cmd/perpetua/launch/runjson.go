package launch

import (
	"sync"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
)

// runJSON writes the run.json of a node. Postgres may come back at another port before the node is ready, when the file must not
// exist, and while it is written.
type runJSON struct {
	path string

	mu       sync.Mutex
	describe func() local.RunFile // nil until write is called
}

// write writes the file for the first time and returns its content.
func (f *runJSON) write(describe func() local.RunFile) (local.RunFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.describe = describe
	r := describe()
	return r, local.WriteRunFile(f.path, r)
}

// rewrite writes the file again if it has been written.
func (f *runJSON) rewrite() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.describe == nil {
		return nil
	}
	return local.WriteRunFile(f.path, f.describe())
}
