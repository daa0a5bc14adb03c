package broker_test

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/broker"
)

// TestScanTellsProgress: a start that reads a log of several segments says how far it is.
func TestScanTellsProgress(t *testing.T) {
	dir, _ := segmentedLog(t)
	var said bytes.Buffer
	b, err := broker.Start(t.Context(), broker.Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(&said, nil))}.WithTellEvery(time.Nanosecond))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_, size, _ := strings.Cut(said.String(), " of=")
	size, _, _ = strings.Cut(size, "\n")
	lines := strings.Count(said.String(), `msg="checking the embedded log" bytes=`)
	if strings.Count(said.String(), `msg="opening the embedded log, which takes as long as the check" bytes=`+size+"\n") != 1 {
		t.Errorf("no line about the opening after the check:\n%s", said.String())
	}
	if n, err := strconv.Atoi(size); err != nil || n < segmented*100 || lines < 3 || !strings.Contains(said.String(), "bytes="+size+" of="+size+"\n") {
		t.Errorf("%d lines, to %q bytes:\n%s", lines, size, said.String())
	}
}
