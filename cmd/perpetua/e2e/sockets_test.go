package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// socketCrowd is a venue with a book that moves and sockets by the thousand, which a process of their own holds.
type socketCrowd struct {
	*bookMover
	cfg loaderConfig

	cmd     *exec.Cmd
	in      io.WriteCloser
	mu      sync.Mutex
	report  loaderReport // the last
	gone    bool         // nothing more comes
	highest int64        // bytes of memory that the node had at most
}

// TestThousandsOfSockets: every socket on a node gets every update of a book that moves, all the same bytes in the same order,
// the hundredth part of them parses each and has the book of the log at each sequence, and those that stop reading are closed
// for that and nobody else. What the sockets hold of memory, the node gives back.
// PERPETUA_TEST_SOCKETS sets how many there are.
func TestThousandsOfSockets(t *testing.T) {
	sockets := int(fromEnvironment(t, "PERPETUA_TEST_SOCKETS", 300))
	seed := fromEnvironment(t, "PERPETUA_TEST_SEED", rand.Uint64())
	t.Logf("%d sockets, seed %d", sockets, seed)
	c := &socketCrowd{cfg: loaderConfig{Checking: max(10, sockets/100), Stuck: max(5, sockets/500)}}
	c.cfg.Counting = sockets - c.cfg.Checking - c.cfg.Stuck
	allowFiles(t, uint64(sockets+500))
	c.bookMover = newBookMover(t, startVenue(t, "--debug-listen", "127.0.0.1:0"), seed)
	c.move(100, nil)
	c.quiet() // or sockets that come now would not all begin with the same book
	before := c.v.use()
	c.start()
	c.await("all sockets to be open", func(r loaderReport) bool { return r.Open })
	idle := c.v.use()
	began, sent := time.Now(), c.v.scrape().value("perpetua_live_messages_sent_total")
	for round := 0; round < 5 || c.slow() < c.cfg.Stuck; round++ {
		if round == 100 {
			t.Fatalf("after %d rounds %d sockets were closed as slow, want %d", round, c.slow(), c.cfg.Stuck)
		}
		c.move(100, nil)
		c.arrived()
	}
	c.quiet()
	c.arrived()
	took, busy := time.Since(began), c.v.use()
	sent = c.v.scrape().value("perpetua_live_messages_sent_total") - sent
	result := c.end()
	c.check(&result)
	waitFor(t, "the sockets to be gone", func() bool { return c.v.scrape().value("perpetua_live_sessions") == 0 })
	after := c.v.use()
	t.Logf("%d updates to each of %d sockets in %v: %.0f messages/s, %.2f µs of the node's processor time for each", result.Messages, sockets, took, sent/took.Seconds(),
		float64((busy.processor-idle.processor).Microseconds())/sent)
	t.Logf("memory of the node, resident and live on heap and stacks: before %v, with the sockets idle %v, under load %v (%d MB resident at most), afterwards %v: %.1f kB live a socket",
		before, idle, busy, c.highest>>20, after, float64(idle.live-before.live)/float64(sockets)/1024)
	c.checkMemory(sockets, before, idle, busy, after)
}

// start starts the loader.
func (c *socketCrowd) start() {
	c.t.Helper()
	c.cfg.URL, c.cfg.Token = c.v.WebSocket, c.v.token("broker-a")
	c.cmd = exec.Command(os.Args[0])
	c.cmd.Env = append(os.Environ(), asLoader+"=1")
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.cmd.Stderr = os.Stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		c.t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.read(out)
	}()
	c.t.Cleanup(func() {
		c.in.Close()
		_ = c.cmd.Process.Kill() // unless it has ended by itself
		<-ended
		_ = c.cmd.Wait()
	})
	c.tell(c.cfg)
}

// read takes in what the loader reports, until it ends.
func (c *socketCrowd) read(out io.Reader) {
	dec := json.NewDecoder(out)
	for {
		var r loaderReport
		err := dec.Decode(&r)
		c.mu.Lock()
		if c.gone = err != nil; c.gone {
			c.mu.Unlock()
			return
		}
		c.report = r
		c.mu.Unlock()
	}
}

func (c *socketCrowd) tell(what any) {
	c.t.Helper()
	if err := json.NewEncoder(c.in).Encode(what); err != nil {
		c.t.Fatal(err)
	}
}

// await waits until the loader reports what is wanted.
func (c *socketCrowd) await(what string, wanted func(loaderReport) bool) (r loaderReport) {
	c.t.Helper()
	waitForWord(c.t, what, func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		r = c.report
		switch {
		case r.Error != "":
			c.t.Fatalf("the loader: %s", r.Error)
		case wanted(r):
			return ""
		case c.gone:
			c.t.Fatal("the loader has ended")
		}
		return fmt.Sprintf("the sockets are at %d, and %d messages behind that at most; the record is %d", r.Sequence, r.Behind, c.marked)
	})
	return r
}

// arrived waits until all sockets but the stuck ones have what there is.
func (c *socketCrowd) arrived() {
	c.t.Helper()
	c.await("the last update to arrive everywhere", func(r loaderReport) bool {
		c.highest = max(c.highest, residentOf(c.v.cmd.Process.Pid))
		return r.Sequence >= c.marked && r.Behind == 0
	})
}

// slow returns how many sockets were closed because they read too slowly.
func (c *socketCrowd) slow() int {
	return int(c.v.scrape().value("perpetua_live_slow_consumers_total"))
}

// end has the loader compare what the sockets got.
func (c *socketCrowd) end() loaderResult {
	c.t.Helper()
	c.tell(loaderEnd{c.marked})
	return c.await("the loader's result", func(r loaderReport) bool { return r.Result.Messages > 0 }).Result
}

// check holds the result against the log.
func (c *socketCrowd) check(r *loaderResult) {
	c.t.Helper()
	if n := c.slow(); n != c.cfg.Stuck {
		c.t.Errorf("%d sockets were closed as slow, want the %d stuck ones", n, c.cfg.Stuck)
	}
	if len(r.Told) != c.cfg.Stuck {
		c.t.Errorf("%d stuck sockets, want %d", len(r.Told), c.cfg.Stuck)
	}
	for _, told := range r.Told {
		if told != "SLOW_CONSUMER, then 1008 SLOW_CONSUMER" {
			c.t.Errorf("a stuck socket was closed with %s", told)
		}
	}
	had := span{end: r.End}
	for _, b := range r.Books {
		had.visits = append(had.visits, visit{b.Sequence, b.Digest})
	}
	if int64(len(had.visits)) != r.Messages+1 || r.Messages < 200 {
		c.t.Errorf("%d books by %d updates", len(had.visits), r.Messages)
	}
	if err := foldBook(c.t, c.v, c.marked, nil).check(had); err != nil {
		c.t.Error(err)
	}
}

// checkMemory wants what the sockets cost bounded. Small numbers are lost in what a node has anyway.
func (c *socketCrowd) checkMemory(sockets int, before, idle, busy, after nodeUse) {
	c.t.Helper()
	if sockets < 1000 {
		return
	}
	const each, slack = 64 << 10, 256 << 20
	if held := idle.live - before.live; held > int64(sockets)*each {
		c.t.Errorf("%d idle sockets hold %d bytes each, want at most %d", sockets, held/int64(sockets), each)
	}
	if held := busy.live - idle.live; held > slack {
		c.t.Errorf("under load the node holds %d MB more than with idle sockets", held>>20)
	}
	if held := after.live - before.live; held > slack {
		c.t.Errorf("without the sockets the node holds %d MB more than before them", held>>20)
	}
	if c.highest > 4<<30 {
		c.t.Errorf("the node took %d MB", c.highest>>20)
	}
}
