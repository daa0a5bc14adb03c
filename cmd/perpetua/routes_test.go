package main

import (
	"context"
	"log/slog"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/schemas/conform"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// TestRoutesAndDescriptionAgree holds every route of the whole program against the OpenAPI file, in both directions.
func TestRoutesAndDescriptionAgree(t *testing.T) {
	s, err := parseSettings("test", []string{"--listen", "127.0.0.1:0"}, stdio{env: func(string) (string, bool) { return "", false }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	n, err := openNode(context.Background(), nodeConfig{settings: s, log: slog.New(slog.DiscardHandler), id: "n", roles: allRoles(),
		brokers: []string{"127.0.0.1:1"}, databaseURL: func() string { return "postgres://nobody@127.0.0.1:1/none" }, box: box})
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	api, err := conform.NewOpenAPI(schemas.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	var registered []conform.Route
	for _, r := range n.server.Handler.(*echo.Echo).Routes() {
		if r.Path == peerPath {
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
