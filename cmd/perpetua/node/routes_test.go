package node

import (
	"context"
	"log/slog"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/schemas/conform"
	"github.com/perpetua-exchange/perpetua/streams/peer"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// TestRoutesAndDescriptionAgree holds every route of the whole program against the OpenAPI file, in both directions.
func TestRoutesAndDescriptionAgree(t *testing.T) {
	s, err := settings.Parse("test", []string{"--listen", "127.0.0.1:0", "--data", t.TempDir()}, settings.IO{Env: func(string) (string, bool) { return "", false }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	n, err := Open(context.Background(), Config{Settings: s, Journals: journals.All(), Logger: slog.New(slog.DiscardHandler), ID: "n", Roles: allRoles(),
		Brokers: []string{"127.0.0.1:1"}, DatabaseURL: func() string { return "postgres://nobody@127.0.0.1:1/none" }, Box: box})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	api, err := conform.NewOpenAPI(schemas.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	var registered []conform.Route
	for _, r := range n.serving.server.Handler.(port).Routes() {
		if r.Path == olderPath || r.Path == rulesPath || r.Path == termPath || r.Path == peer.Path {
			continue // between nodes; no interface
		}
		registered = append(registered, conform.Route{Method: r.Method, Path: r.Path})
	}
	undescribed, unregistered := api.Compare(registered)
	for _, r := range undescribed {
		t.Errorf("%v is served and not described", r)
	}
	for _, r := range unregistered {
		t.Errorf("%v is described and not served", r)
	}
	if len(registered) < 40 {
		t.Errorf("only %d routes are registered", len(registered))
	}
}
