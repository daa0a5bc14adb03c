package tools

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/monitor"
)

// monitorWithin bounds each request to a URL.
const monitorWithin = 10 * time.Second

// monitorRequest holds the flags of Monitor.
type monitorRequest struct {
	trust
	urls         []string
	state        string
	stale, every time.Duration
	json         bool
}

// Monitor compares the checkpoints of one transparency log at several URLs. It fails at an alarm.
func Monitor(ctx context.Context, args []string, std settings.IO) error {
	var r monitorRequest
	rest, err := settings.ParseOwn("monitor", "--url URL [--url URL] --key KEY [flags]", args, std, func(fs *flag.FlagSet) {
		r.declare(fs)
		fs.Func("url", "`URL` of the log, like https://venue.example/tlog/trading/0; once for each place", func(url string) error {
			r.urls = append(r.urls, url)
			return monitor.CheckURL(url)
		})
		fs.StringVar(&r.state, "state", "", "file that remembers the last good checkpoint (default: nothing is remembered)")
		fs.DurationVar(&r.stale, "stale", 10*time.Minute, "age at which a checkpoint is stale: of its cosignatures if the policy has witnesses, else of its last growth")
		fs.DurationVar(&r.every, "every", 0, "check again after this time, until an alarm; a place that does not answer is only reported (default: check once)")
		settings.JSONFlag(fs, &r.json)
	})
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return settings.Usagef("unexpected argument %q", rest[0])
	case len(r.urls) == 0:
		return settings.Usagef("--url is needed")
	}
	policy, err := r.open()
	if err != nil {
		return err
	}
	state := monitor.State{}
	if r.state != "" {
		if state, err = monitor.ReadState(r.state, policy); err != nil {
			return err
		}
	}
	m := monitor.New(monitor.Config{URLs: r.urls, Policy: policy, Stale: r.stale, Client: &http.Client{Timeout: monitorWithin}, Now: time.Now})
	return r.watch(ctx, m, state, std.Out)
}

// watch checks once, or until an alarm.
func (r *monitorRequest) watch(ctx context.Context, m *monitor.Monitor, state monitor.State, out io.Writer) error {
	for {
		report, next := m.Check(ctx, state)
		if ctx.Err() != nil {
			return nil // interrupted
		}
		if err := r.print(out, report); err != nil {
			return err
		}
		if state = next; r.state != "" {
			if err := state.Write(r.state); err != nil {
				return err
			}
		}
		alarms := 0
		for _, a := range report.Alarms {
			if r.every == 0 || a.Kind != monitor.Unreachable {
				alarms++
			}
		}
		switch {
		case alarms > 0:
			return fmt.Errorf("%d alarms", alarms)
		case r.every == 0:
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(r.every):
		}
	}
}

// print writes a line for each alarm, or one if all is well. As JSON, it writes one line for each check.
func (r *monitorRequest) print(out io.Writer, report monitor.Report) error {
	if r.json {
		return json.NewEncoder(out).Encode(report)
	}
	for _, a := range report.Alarms {
		if _, err := fmt.Fprintf(out, "ALARM %s at %s: %s\n", a.Kind, a.URL, a.Message); err != nil {
			return err
		}
	}
	if len(report.Alarms) > 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "%s: %d records, root %s, at %d places\n", report.Origin, report.Records, report.Root, len(r.urls))
	return err
}
