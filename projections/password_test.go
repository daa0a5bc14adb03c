package projections_test

import (
	"net/url"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// TestPasswordsAreChecked: the server of projectiontest.Main, which hashes passwords once, refuses another password.
func TestPasswordsAreChecked(t *testing.T) {
	if os.Getenv(projectiontest.URLVariable) != "" {
		t.Skip("another server need not ask for a password")
	}
	at := projectiontest.URL(t)
	for _, of := range []string{at, projectiontest.Admin(t, at)} {
		u, err := url.Parse(of)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.Connect(t.Context(), projectiontest.As(t, of, u.User.Username(), "another"))
		if err == nil {
			_ = conn.Close(t.Context())
		}
		if code(err) != "28P01" {
			t.Errorf("%s with another password: %v", u.User.Username(), err)
		}
	}
}
