package launch

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
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
	urls    []string
	key     string // a verifier key, or the list of the keys of the log
	given   bool   // --tlog-key was named
	brokers bool   // the node follows the brokers, and should have all records soon
	policy  *transparency.Policy
	file    string
	log     *slog.Logger

	fork    atomic.Pointer[string] // the venue has signed two histories; final
	doubt   atomic.Pointer[string] // a source serves what is not signed, or not proven, or less than before
	lacking atomic.Pointer[string] // the node lacks records that were signed
}

// open completes the checkpoints with the settings. It returns a usage error.
func (c *checkpoints) open(venue string, s *settings.Settings) (err error) {
	switch {
	case !c.given && len(c.urls) == 0:
		return nil
	case !c.given:
		return settings.Usagef("--tlog-url needs --tlog-key")
	case venue == "" && len(c.urls) == 0:
		return settings.Usagef("--tlog-key needs --venue-url or --tlog-url")
	}
	keys, err := transparency.ParseLogKeys(c.key)
	if err != nil {
		return settings.Usagef("--tlog-key: %v", err)
	}
	if !strings.Contains(keys[0].Name(), "/tlog/"+journals.Trading+"/0/") {
		return settings.Usagef("--tlog-key takes the key of the log /tlog/%s/0", journals.Trading)
	}
	if venue != "" {
		c.urls = append([]string{venue + "/tlog/" + journals.Trading + "/0"}, c.urls...)
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
	if why := c.fork.Load(); why != nil && journal == journals.Trading {
		return *why
	}
	return ""
}

// Fault is one of node.Following.Faults.
func (c *checkpoints) Fault() string {
	for _, f := range []*string{c.fork.Load(), c.doubt.Load(), c.lacking.Load()} {
		if f != nil {
			return *f
		}
	}
	return ""
}

// run compares checkpoints until the context ends, or until two of them contradict each other. tip returns the number of records
// that the node has verified, and alarm raises the alarm of a journal.
func (c *checkpoints) run(ctx context.Context, tip func() int64, alarm func(journal string, wrong error)) error {
	if c.policy == nil {
		return nil
	}
	state, err := monitor.ReadState(c.file, c.policy)
	if err != nil {
		return err
	}
	m := monitor.New(monitor.Config{URLs: c.urls, Policy: c.policy, Stale: checkpointStale, Client: &http.Client{Timeout: checkpointWithin}, Now: time.Now})
	var since time.Time
	for {
		report, next := m.Check(ctx, state)
		if ctx.Err() != nil {
			return nil
		}
		if c.judge(report.Alarms, alarm) {
			return nil // the state stays the good one, so the next start finds the fork again
		}
		state = next // the old one if an alarm makes this one doubtful
		if err := state.Write(c.file); err != nil {
			return err
		}
		since = c.compareSize(tip(), report.Records, since)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(checkpointEvery):
		}
	}
}

// judge reports whether the venue has signed two histories. Only that is proven by its signatures: a source may also serve
// something else, or something old.
func (c *checkpoints) judge(alarms []monitor.Alarm, alarm func(journal string, wrong error)) (forked bool) {
	var doubt *string
	for _, a := range alarms {
		c.log.Warn("a checkpoint is not as it should be", "alarm", a.Kind, "url", a.URL, "error", a.Message)
		switch a.Kind {
		case monitor.Fork:
			text := journals.Trading + ": the venue has signed checkpoints of two histories"
			c.fork.Store(&text)
			alarm(journals.Trading, fmt.Errorf("%s: %s: %s", text, a.URL, a.Message))
			return true
		case monitor.Shrink, monitor.Signature, monitor.Unproven:
			text := fmt.Sprintf("%s: a place serves a checkpoint that is not as it should be (%s)", journals.Trading, a.Kind)
			doubt = &text
		}
	}
	c.doubt.Store(doubt)
	return false
}

// compareSize notes whether the node has lacked records that a checkpoint covers for too long. since is when it began to lack some,
// or zero.
func (c *checkpoints) compareSize(verified, records int64, since time.Time) time.Time {
	if !c.brokers || verified >= records {
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
