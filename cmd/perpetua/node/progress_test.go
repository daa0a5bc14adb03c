package node

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/records"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
)

// lines is a log that a test reads while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestCatchingUpIsTold: a node that follows a log says how far it is, for the journals that move and no others.
func TestCatchingUpIsTold(t *testing.T) {
	words := journals.Journal{Rules: journaltest.Words{Name: "words"}, Codec: wordsCodec{},
		Projections: []projections.Projection{records.Projection{Journal: "words"}}}
	b := newBench(t, append(journals.All(), words))
	var said lines
	b.config.Logger = slog.New(slog.NewTextHandler(&said, nil))
	n := b.start(t)
	stop := n.tellProgress(time.Millisecond)
	eventually(t, "a line of progress", func() string {
		n.submit(t, "words", journaltest.Say("hello"))
		if !strings.Contains(said.String(), `msg="catching up with the log" journal=words followed=`) {
			return "there is none"
		}
		return ""
	})
	stop()
	if strings.Contains(said.String(), `catching up with the log" journal=trading`) {
		t.Errorf("a journal that stands still is told of:\n%s", said.String())
	}
}
