package web

import (
	"context"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// Own remembers the latest position of a journal that this node answered to each user, so that what the user reads next
// holds at least that: whoever writes sees what it wrote, also without X-Min-Log-Position. All tokens of a user count as
// one. A nil Own remembers nothing.
type Own struct {
	journal string

	mu     sync.Mutex
	latest map[string]int64 // by username
}

// maxOwn bounds how many users are remembered. Of those beyond, some are forgotten, who then read what there is.
const maxOwn = 16384

// NewOwn makes the memory of what was answered of a journal.
func NewOwn(name string) *Own { return &Own{journal: name, latest: make(map[string]int64)} }

// note remembers what a request was answered as of.
func (o *Own) note(a Ask, p journal.LogPosition) {
	if o == nil || a.principal == nil || p.Journal != o.journal || p.Partition != 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	user := a.principal.Username
	if last, known := o.latest[user]; known && last >= p.Sequence {
		return
	}
	if len(o.latest) >= maxOwn {
		spare := maxOwn / 4
		for other := range o.latest {
			if spare--; spare < 0 {
				break
			}
			delete(o.latest, other)
		}
	}
	o.latest[user] = p.Sequence
}

// noteHeader is note for the answer of another node.
func (o *Own) noteHeader(a Ask, h http.Header) {
	if o == nil {
		return
	}
	if p, err := journal.ParseLogPosition(h.Get(HeaderLogPosition)); err == nil {
		o.note(a, p)
	}
}

// of returns the sequence that the user has been answered, -1 for none.
func (o *Own) of(a Ask) int64 {
	if o == nil || a.principal == nil {
		return -1
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if last, known := o.latest[a.principal.Username]; known {
		return last
	}
	return -1
}

// Await waits, up to two seconds, until the source has reached what the user was answered, and if the request names a
// position, that one: only then is it an error if the time was not enough.
func (o *Own) Await(c echo.Context, source Waiter) error {
	if err := Await(c, o.journal, source); err != nil {
		return err
	}
	if last := o.of(AskOf(c)); last >= 0 {
		ctx, cancel := context.WithTimeout(c.Request().Context(), waitLimit)
		defer cancel()
		_ = source.Wait(ctx, last) // what there is by then is the answer, and says what it is as of
	}
	return nil
}
