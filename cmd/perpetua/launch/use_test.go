package launch

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

func TestMain(m *testing.M) {
	os.Exit(projectiontest.Main(m))
}

// TestANodeRefusesAPostgresThatItMustNotUse at its start, and waits for one that does not answer.
func TestANodeRefusesAPostgresThatItMustNotUse(t *testing.T) {
	at := projectiontest.VenueURL(t)
	if _, err := projectiontest.Open(t, at).Exec(t.Context(), "CREATE SCHEMA other"); err != nil {
		t.Fatal(err)
	}
	elsewhere := at + "?search_path=other"
	if strings.Contains(at, "?") {
		elsewhere = at + "&search_path=other"
	}
	var other *projections.OtherSchemaError
	for name, c := range map[string]struct {
		url     string
		refuses func(error) bool
		warns   bool
	}{
		"as it must be":           {at, func(err error) bool { return err == nil }, false},
		"a pooler by session":     {(&projectiontest.Pooler{URL: at}).Start(t), func(err error) bool { return err == nil }, false},
		"a pooler by transaction": {(&projectiontest.Pooler{URL: at, Shares: true}).Start(t), func(err error) bool { return errors.Is(err, projections.ErrSharedSession) }, false},
		"another search_path":     {elsewhere, func(err error) bool { return errors.As(err, &other) && other.Home == "public" }, false},
		"none that answers":       {"postgres://nobody@127.0.0.1:1/none", func(err error) bool { return err == nil }, true},
	} {
		pool, err := projections.Open(t.Context(), c.url)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		for range 5 { // Postgres may be late on a busy machine
			log.Reset()
			if _, err = checkUse(t.Context(), pool, slog.New(slog.NewTextHandler(&log, nil))); (log.Len() > 0) == c.warns {
				break
			}
		}
		if !c.refuses(err) {
			t.Errorf("%s: %v", name, err)
		}
		if warns := log.Len() > 0; warns != c.warns {
			t.Errorf("%s: %s", name, &log)
		}
		pool.Close()
	}
}
