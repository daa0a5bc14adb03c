package blob

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestCreate has several create the same blob: one does, and nobody replaces it.
func TestCreate(t *testing.T) {
	ctx := t.Context()
	for _, url := range []string{URLOf(t.TempDir()), "mem://"} {
		s := NewStore(openTest(t, url))
		var won atomic.Int64
		var creating sync.WaitGroup
		for i := range 8 {
			creating.Go(func() {
				created, err := s.Create(ctx, "a/b", fmt.Append(nil, i), time.Minute)
				if err != nil {
					t.Error(err)
				}
				if created && won.Add(int64(i)+1) != int64(i)+1 {
					t.Errorf("%s: two have created it", url)
				}
			})
		}
		creating.Wait()
		got, err := s.Read(ctx, "a/b", 10)
		if err != nil || string(got) != fmt.Sprint(won.Load()-1) {
			t.Errorf("%s: it holds %q: %v; created by %d", url, got, err, won.Load()-1)
		}
		left, err := s.List(ctx, "")
		if err != nil || len(left) != 1 {
			t.Errorf("%s: %d blobs, %v", url, len(left), err)
		}
		if err := s.Write(ctx, "a/b", []byte("new"), time.Minute); err != nil {
			t.Errorf("%s: it can't be replaced: %v", url, err)
		}
	}
}
