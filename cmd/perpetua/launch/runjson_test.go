package launch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// killer is the log of a venue. It kills the venue's Postgres once the first journal is assigned to the node. The node is not ready
// then, since the line is written before the term begins.
type killer struct {
	mu     sync.Mutex
	log    bytes.Buffer
	killed bool
	err    error
}

var startedPostgres = regexp.MustCompile(`msg="embedded Postgres started".* pid=(\d+)`)

func (k *killer) Write(line []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log.Write(line)
	if !k.killed && bytes.Contains(line, []byte("msg=assigned")) {
		k.killed, k.err = true, k.kill()
	}
	return len(line), nil
}

func (k *killer) kill() error {
	found := startedPostgres.FindSubmatch(k.log.Bytes())
	if found == nil {
		return errors.New("no line tells the process id of Postgres")
	}
	pid, err := strconv.Atoi(string(found[1]))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

func (k *killer) said() (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.log.String(), k.err
}

// announcement is the standard output of a venue. Its channel is closed when the venue says that it is ready.
type announcement struct {
	once  sync.Once
	ready chan struct{}
}

func (a *announcement) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("Perpetua is ready")) {
		a.once.Do(func() { close(a.ready) })
	}
	return len(b), nil
}

// TestPostgresDiesWhileAVenueStarts kills the embedded Postgres before the venue is ready. It is started again, as at any other time.
func TestPostgresDiesWhileAVenueStarts(t *testing.T) {
	dir, err := projectiontest.Folder("perpetua-launch-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	data := filepath.Join(dir, "data")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	log, out := &killer{}, &announcement{ready: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, []string{"--data", data, "--listen", "127.0.0.1:0", "--demo=false"}, settings.IO{Out: out, Err: log, Env: func(string) (string, bool) { return "", false }})
	}()
	select {
	case <-out.ready:
	case err := <-ended:
		said, _ := log.said()
		t.Fatalf("the venue ended: %v\n%s", err, said)
	}
	if r, ok, err := local.ReadRunFile(filepath.Join(data, "run.json")); err != nil || !ok || !strings.HasPrefix(r.DatabaseURL, "postgres://") {
		t.Errorf("run.json of the venue: %+v, %v, %v", r, ok, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if said, err := log.said(); err != nil || strings.Count(said, "the embedded Postgres died") != 1 {
		t.Errorf("%v; the venue said:\n%s", err, said)
	}
}
