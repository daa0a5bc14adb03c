package launch

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/node"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/monitor"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

const (
	checkpointEvery  = 10 * time.Second
	checkpointWithin = 10 * time.Second // of a request
	// checkpointGrace is how long the node may lack records that a checkpoint covers. The venue signs a record after it is in the log.
	checkpointGrace = time.Minute
	// checkpointStale is the age at which checkpoints are reported as stale in the node's log.
	checkpointStale = 10 * time.Minute
	// checkpointState is the file in the data folder with the last good checkpoint.
	checkpointState = "checkpoint.json"
)

// checkpoints compares the signed checkpoints of the transparency log of the journal trading with each other, and their size with
// the log that the node reads. The node cannot compute their roots, because it does not have the venue's secret.
type checkpoints struct {
	places  []string
	key     string
	brokers bool // the node follows the brokers, and should have all records soon
	policy  *transparency.Policy
	file    string
	log     *slog.Logger

	contradiction atomic.Pointer[string] // the venue has signed what cannot be true; final
	lacking       atomic.Pointer[string] // the node lacks records that were signed
}

// open completes the checkpoints with the settings. It returns a usage error.
func (c *checkpoints) open(venue string, s *settings.Settings) (err error) {
	switch {
	case c.key == "" && len(c.places) == 0:
		return nil
	case c.key == "":
		return settings.Usagef("--tlog-url needs --tlog-key")
	case venue == "" && len(c.places) == 0:
		return settings.Usagef("--tlog-key needs --venue-url or --tlog-url")
	}
	if _, err := note.NewVerifier(c.key); err != nil {
		return settings.Usagef("--tlog-key: %v", err)
	}
	if !strings.Contains(c.key, "/tlog/"+journals.Trading+"/0/") {
		return settings.Usagef("--tlog-key takes the key of the log /tlog/%s/0", journals.Trading)
	}
	if venue != "" {
		c.places = append([]string{venue + "/tlog/" + journals.Trading + "/0"}, c.places...)
	}
	if c.policy, err = s.Witnesses(); err != nil {
		return err
	}
	if c.policy == nil {
		c.policy = transparency.NewPolicy()
	}
	if c.policy, err = c.policy.ForLog(c.key); err != nil {
		return settings.Usagef("--tlog-key: %v", err)
	}
	c.brokers = len(s.Brokers()) > 0
	return nil
}

// Halt implements node.Following.Halt.
func (c *checkpoints) Halt(journal string) string {
	if why := c.contradiction.Load(); why != nil && journal == journals.Trading {
		return *why
	}
	return ""
}

// Fault implements node.Following.Fault.
func (c *checkpoints) Fault() string {
	for _, f := range []*string{c.contradiction.Load(), c.lacking.Load()} {
		if f != nil {
			return *f
		}
	}
	return ""
}

// run compares checkpoints until the context ends, or until they contradict each other.
func (c *checkpoints) run(ctx context.Context, n *node.Node) error {
	if c.policy == nil {
		return nil
	}
	state, err := monitor.ReadState(c.file, c.policy)
	if err != nil {
		return err
	}
	m := monitor.New(monitor.Config{Places: c.places, Policy: c.policy, Stale: checkpointStale, Client: &http.Client{Timeout: checkpointWithin}, Now: time.Now})
	var since time.Time
	for {
		report, next := m.Check(ctx, state)
		if ctx.Err() != nil {
			return nil
		}
		for _, a := range report.Alarms {
			c.log.Warn("a checkpoint is not as it should be", "alarm", a.Kind, "place", a.Place, "error", a.Message)
		}
		if report.Serious() {
			text := fmt.Sprintf("%s: the venue's signed checkpoints contradict each other or what was signed before", journals.Trading)
			c.contradiction.Store(&text)
			n.AlarmOfFollower(journals.Trading, fmt.Errorf("%s: %v", text, report.Alarms))
			return nil // the state stays the good one, so the next start finds it again
		}
		if state = next; len(report.Alarms) == 0 {
			if err := state.Write(c.file); err != nil {
				return err
			}
		}
		since = c.compareSize(n, report.Records, since)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(checkpointEvery):
		}
	}
}

// compareSize notes whether the node has lacked records that a checkpoint covers for too long. since is when it began to lack some,
// or zero.
func (c *checkpoints) compareSize(n *node.Node, records int64, since time.Time) time.Time {
	fold, err := n.Fold(journals.Trading)
	if err != nil || !c.brokers || fold.Position().Sequence+1 >= records {
		c.lacking.Store(nil)
		return time.Time{}
	}
	if since.IsZero() {
		return time.Now()
	}
	if time.Since(since) > checkpointGrace {
		text := fmt.Sprintf("%s: a signed checkpoint covers %d records, and the log that this node reads ends before", journals.Trading, records)
		c.lacking.Store(&text)
	}
	return since
}
