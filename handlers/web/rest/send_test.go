package rest

import (
	"context"
	"crypto/ed25519"
	stdjson "encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// foldAt is a fold of the identity journal that stands at a sequence. wait is how it is waited for.
type foldAt struct {
	record.Follower
	sequence int64
	wait     func(ctx context.Context, sequence int64) error
}

func (f foldAt) Position() record.Position { return record.Position{Sequence: f.sequence} }

func (f foldAt) Wait(ctx context.Context, sequence int64) error {
	if sequence <= f.sequence {
		return nil
	}
	return f.wait(ctx, sequence)
}

var newKey = access.NewSecret()

// keyHolder is the identity state with the user u, who has the new key.
type keyHolder struct{ access.Identities }

func (keyHolder) Account(name string) (access.Account, bool) {
	return access.Account{Active: true, Broker: "alpha", Scopes: []string{"read", "trade"}}, name == "u"
}

func (keyHolder) APIKey(hash [32]byte) (access.APIKey, bool) {
	return access.APIKey{ID: scalar.ID{1}, Username: "u", Scopes: []string{"read", "trade"}}, hash == access.HashOf(newKey)
}

func (keyHolder) PublicKey(string) (ed25519.PublicKey, bool) { return nil, false }

// keyHolders verifies the new key.
func keyHolders() *access.Tokens { return access.NewTokens(keyHolder{}, "perpetua", time.Now) }

// written is an answer as it is sent.
type written string

func (w written) AppendJSON(b []byte) ([]byte, error) { return append(b, w...), nil }

// send sends a thing to a server and reads the answer.
func send(t *testing.T, url string, headers ...string) (int, http.Header, map[string]any) {
	t.Helper()
	r, err := http.NewRequest("POST", url, strings.NewReader(`{"name":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(operation.HeaderIdempotencyKey, "k1")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := stdjson.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return resp.StatusCode, resp.Header, answer
}

// TestForwardedRequestsAreRefused: a node of build 0.1.0 that forwards whole requests gets an answer that it passes to its client,
// which may send the request again. Nothing is submitted.
func TestForwardedRequestsAreRefused(t *testing.T) {
	submitted := 0
	e := serve(t, Options{}, func(c echo.Context) error {
		_, err := operation.Submit(RequestOf(c), submitFunc(func(decide.Command) (submit.Result, error) {
			submitted++
			return submit.Result{}, nil
		}), "trading", decide.Command{})
		return err
	})
	mark := operation.NewID().String() + ".00." + operation.NewID().String() + ".7.203.0.113.5"
	for path, want := range map[string]string{"/v1/things": `"code":"NOT_ACCEPTED"`, "/api/v1/things": `{"detail":"NOT_ACCEPTED"}`} {
		w := ask(e, "POST", path, `{}`, headerForwarded, mark)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %v %s", path, w.Code, w.Header(), w.Body)
		}
	}
	if submitted > 0 {
		t.Errorf("%d commands were submitted", submitted)
	}
}
