package projections_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// TestSettingsOfAPoolInTheURL: Postgres refuses a connection with a parameter that it does not know.
func TestSettingsOfAPoolInTheURL(t *testing.T) {
	u, err := url.Parse(projectiontest.MigratedURL(t))
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery += "&pool_max_conns=3&application_name=x%20y"
	pool := projectiontest.Open(t, u.String())
	if err := projections.Ping(t.Context(), pool); err != nil || pool.Config().MaxConns != 3 {
		t.Errorf("a pool of %d: %v", pool.Config().MaxConns, err)
	}
	if c, err := pgx.ParseConfig(projections.PlainURL(u.String())); err != nil || c.RuntimeParams["pool_max_conns"] != "" || c.RuntimeParams["application_name"] != "x y" {
		t.Errorf("the plain URL has the parameters %v: %v", c.RuntimeParams, err)
	}
	conn, err := projections.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	_, remove, err := projections.OpenScratch(t.Context(), u.String(), "audited")
	if err != nil {
		t.Fatal(err)
	}
	remove()
}

// TestPingOfNothing: the error is one line, with the address and without the password.
func TestPingOfNothing(t *testing.T) {
	pool, err := projections.Open(t.Context(), "postgres://u:secret@127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	err = projections.Ping(t.Context(), pool)
	if err == nil || !strings.HasPrefix(err.Error(), "Postgres at 127.0.0.1:1 cannot be used: ") || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
