package tools

import (
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// TestTheCheckOfABrokerIsTold prints a line at most every few seconds, and none of a short check.
func TestTheCheckOfABrokerIsTold(t *testing.T) {
	const all = 40_000_000
	for name, c := range map[string]struct {
		speed int64 // in bytes a second
		want  []string
	}{
		"long": {5_000_000, []string{"checking the embedded log: 15 of 40 MB", "checking the embedded log: 30 of 40 MB",
			"40 MB of the embedded log are checked; opening it takes as long"}},
		"short": {20_000_000, nil},
	} {
		var lines []string
		now := time.Unix(1e9, 0)
		tell := tellChecked(func(line string) { lines = append(lines, line) }, func() time.Time { return now })
		for at := int64(1_000_000); at <= all; at += 1_000_000 {
			now = time.Unix(1e9, 0).Add(time.Duration(at) * time.Second / time.Duration(c.speed))
			tell(at, all)
		}
		if !slices.Equal(lines, c.want) {
			t.Errorf("a %s check: %q", name, lines)
		}
	}
}

// TestABrokerTellsOfItsCheck checks that the calls reach the end of the log.
func TestABrokerTellsOfItsCheck(t *testing.T) {
	all, _, _ := termsOf("trading", 50, 0)
	var checked, of int64
	dir := filledFolder(t, all, 64<<10, func(*broker.Broker, *journal.Client, base.Folder) {})
	b, err := broker.Start(t.Context(), broker.Config{Dir: filepath.Join(dir, "kafka"), Logger: slog.New(slog.DiscardHandler),
		Checked: func(bytes, all int64) { checked, of = bytes, all }})
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	if checked == 0 || checked != of {
		t.Errorf("%d of %d bytes were checked", checked, of)
	}
}
