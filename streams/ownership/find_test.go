package ownership

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestAwayBrokersAreToldOfOnce has many requests ask who owns a journal while no broker is there.
func TestAwayBrokersAreToldOfOnce(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	gone := fake.ListenAddrs()
	fake.Close()
	var log bytes.Buffer
	c, err := journal.NewClient(journal.Config{Brokers: gone, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, err := NewFinder(c, nil, "", "trading")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 3 {
		var refused *submit.NotAcceptedError
		if _, err := f.Submit(t.Context(), "trading", decide.Command{}); !errors.As(err, &refused) {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("told %d times: %s", n, &log)
	}
	f.tell(nil)
	f.tell(nil)
	if n := strings.Count(log.String(), "found again"); n != 1 {
		t.Errorf("told %d times that they are back: %s", n, &log)
	}
}
