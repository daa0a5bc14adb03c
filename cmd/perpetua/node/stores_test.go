package node

import (
	"net/url"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// TestEarlierTime: data is old enough by both clocks, whichever of them is behind.
func TestEarlierTime(t *testing.T) {
	address := projectiontest.VenueURL(t)
	setUp := projectiontest.Open(t, address)
	for name, off := range map[string]time.Duration{"behind": -24 * time.Hour, "ahead": 24 * time.Hour} {
		t.Run("Postgres is "+name, func(t *testing.T) {
			if _, err := setUp.Exec(t.Context(), `CREATE SCHEMA `+name+`; CREATE FUNCTION `+name+`.clock_timestamp() RETURNS timestamptz
				RETURN pg_catalog.clock_timestamp() + interval '`+off.String()+`'`); err != nil {
				t.Fatal(err)
			}
			s := stores{brief: projectiontest.Open(t, searching(t, address, name))}
			if theirs, err := s.postgresTime(t.Context()); err != nil || (time.Since(theirs)+off).Abs() > time.Hour {
				t.Fatalf("Postgres says %v: %v", theirs, err)
			}
			want := time.Now().Add(min(off, 0))
			if got, err := s.earlierTime(t.Context()); err != nil || got.Sub(want).Abs() > time.Hour {
				t.Errorf("%v, want about %v: %v", got, want, err)
			}
		})
	}
}

// searching returns the URL of a database whose sessions find the functions of a schema before those of Postgres.
func searching(t *testing.T, address, schema string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", schema+",pg_catalog")
	u.RawQuery = q.Encode()
	return u.String()
}
