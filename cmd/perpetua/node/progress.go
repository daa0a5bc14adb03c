package node

import (
	"context"
	"sync"
	"time"
)

// tellEvery is the time between two lines of the progress of a node that catches up.
const tellEvery = 10 * time.Second

// tellProgress logs at intervals how far the followers are that had not caught up, until stop is called. After a start without a
// snapshot or with new rows, a long log takes many minutes.
func (n *Node) tellProgress(every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var telling sync.WaitGroup
	telling.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		last := make(map[string][2]int64)
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for _, f := range n.followers {
				at := [2]int64{f.fold.Position().Sequence, f.rows.Position().Sequence}
				if before, known := last[f.Name()]; known && before != at {
					n.Logger.Info("catching up with the log", "journal", f.Name(), "followed", at[0], "rows", at[1])
				}
				last[f.Name()] = at
			}
		}
	})
	return func() { cancel(); telling.Wait() }
}
