package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/handlers/webhooks"
	"github.com/perpetua-exchange/perpetua/streams/trace/export"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// CheckSettings validates the text of all settings of a node and returns every error. It opens no connection and changes nothing.
func CheckSettings(s *settings.Settings) (wrong []error) {
	check := func(err error) {
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	_, err := s.Logger(io.Discard)
	check(err)
	_, err = s.Seed()
	check(err)
	_, err = ParseRoles(s.Roles)
	check(err)
	check(checkAddress("--listen", s.HTTP.Listen))
	if s.HTTP.Debug != "" {
		check(checkDebugAddress(s.HTTP.Debug))
	}
	_, err = s.KafkaTLSConfig()
	check(err)
	if s.Stores.ArchiveKey != "" {
		_, err = settings.ReadKey("archive-key-file", s.Stores.ArchiveKey)
		check(err)
	}
	if s.Peer.Listen != "" {
		check(checkAddress("--peer-listen", s.Peer.Listen))
	}
	_, err = s.PeerServerTLS()
	check(err)
	check(s.CheckAdvertise())
	_, err = s.PeerClientTLS()
	check(err)
	_, err = s.KafkaOptions()
	check(err)
	check(s.CheckKafka())
	check(s.CheckDatabase())
	check(checkTraceEndpoint(s))
	_, _, err = snapshotPace(s)
	check(err)
	_, err = s.TrustedProxies()
	check(err)
	_, _, err = s.PublicRateLimit()
	check(err)
	_, err = s.Scanner()
	check(err)
	_, err = s.TrimPolicy()
	check(err)
	_, err = s.HistoryAge()
	check(err)
	_, _, err = s.PublicDataAge()
	check(err)
	_, err = s.TilesAge()
	check(err)
	_, err = s.Lifetime()
	check(err)
	_, err = tailEvery(s)
	check(err)
	_, err = keyOverlap(s)
	check(err)
	_, err = retries(s)
	check(err)
	_, err = receiversOf(s)
	check(err)
	_, err = traceRatio(s)
	check(err)
	_, err = s.Witnesses()
	check(err)
	check(checkOpenLogs(s))
	if err := transparency.CheckHost(s.TLog.Host); err != nil {
		check(settings.Usagef("--tlog-host: %v", err))
	}
	return append(wrong, s.CheckStores()...)
}

// checkAddress validates an address to listen on.
func checkAddress(flag, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return settings.Usagef("%s takes an address like 127.0.0.1:8080, not %q", flag, address)
	}
	return nil
}

func checkDebugAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return settings.Usagef("--debug-listen takes an address like 127.0.0.1:6060, not %q", address)
	}
	if !isLoopback(host) {
		return settings.Usagef("--debug-listen takes an address of the loopback interface, like 127.0.0.1:6060, not %q", address)
	}
	return nil
}

// CheckPorts fails if a port of the node is in use. It closes the ports again, so that connections are refused until the node serves.
func CheckPorts(ctx context.Context, s *settings.Settings) error {
	for _, a := range []struct{ flag, address string }{{"--listen", s.HTTP.Listen}, {"--peer-listen", s.Peer.Listen}, {"--debug-listen", s.HTTP.Debug}} {
		if a.address == "" {
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.address)
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%s: another process listens on %s: stop it or choose another address", a.flag, a.address)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a.flag, err)
		}
		if err := l.Close(); err != nil {
			return fmt.Errorf("%s: %w", a.flag, err)
		}
	}
	return nil
}

// snapshotPace returns the number of records and the time between two snapshots.
func snapshotPace(s *settings.Settings) (records int64, interval time.Duration, err error) {
	records, err = strconv.ParseInt(s.Snapshots.Records, 10, 64)
	if err != nil || records < 0 {
		return 0, 0, settings.Usagef("--snapshot-records takes a number of records, or 0, not %q", s.Snapshots.Records)
	}
	interval, err = time.ParseDuration(s.Snapshots.Interval)
	if err != nil || interval <= 0 {
		return 0, 0, settings.Usagef("--snapshot-interval takes a time like 10m, not %q", s.Snapshots.Interval)
	}
	return records, interval, nil
}

// keyOverlap returns how long the old key of a webhook signs together with the new one.
func keyOverlap(s *settings.Settings) (time.Duration, error) {
	overlap, err := time.ParseDuration(s.Webhooks.KeyOverlap)
	if err != nil || overlap < 0 || overlap > maxOverlap {
		return 0, settings.Usagef("--webhook-key-overlap: %q is not a time from 0s to 720h", s.Webhooks.KeyOverlap)
	}
	return overlap, nil
}

// retries returns the retry schedule of webhooks.
func retries(s *settings.Settings) (schedule webhook.Schedule, err error) {
	if schedule, err = webhooks.ParseSchedule(s.Webhooks.Retries); err != nil {
		return nil, settings.Usagef("--webhook-retries: %v", err)
	}
	return schedule, nil
}

// checkTraceEndpoint validates the URL of the collector of traces.
func checkTraceEndpoint(s *settings.Settings) error {
	if err := export.CheckEndpoint(s.Trace.Endpoint); err != nil {
		return settings.Usagef("--trace-endpoint: %v", err)
	}
	return nil
}

// traceRatio returns the share of commands that are traced.
func traceRatio(s *settings.Settings) (float64, error) {
	ratio, err := strconv.ParseFloat(s.Trace.Ratio, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return 0, settings.Usagef("--trace-ratio takes a number from 0 to 1, not %q", s.Trace.Ratio)
	}
	return ratio, nil
}
