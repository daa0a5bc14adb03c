package node

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

type submitFunc func(context.Context, string, decide.Command) (submit.Result, error)

func (f submitFunc) Submit(ctx context.Context, name string, c decide.Command) (submit.Result, error) {
	return f(ctx, name, c)
}

// TestAnotherNodesRecordIsTheAnswer sends a document to the owner of the journal, which is another node: the record that answers
// comes back as it is there, since the upload's own answer is made of it.
func TestAnotherNodesRecordIsTheAnswer(t *testing.T) {
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	sent := &onboarding.AddDocument{Ref: owner.Ref{Type: owner.PersonType, ID: scalar.ID{1}}, ID: scalar.ID{2}, Category: "poa", Orientation: "front",
		Name: onboarding.Sealed("sealed"), Source: "documents/02/x", SHA256: make([]byte, 32), Size: 3, Format: "pdf", ValidUntil: scalar.Second}
	there := newPeers(submitFunc(func(_ context.Context, _ string, c decide.Command) (submit.Result, error) {
		p := c.Payload.(*onboarding.AddDocument)
		event := &onboarding.DocumentAdded{Document: onboarding.Document{ID: p.ID, Ref: p.Ref, Category: p.Category, Orientation: p.Orientation, Source: p.Source,
			SHA256: p.SHA256, Size: p.Size, Format: p.Format, ValidUntil: p.ValidUntil, Created: 5}, Name: p.Name}
		made := &record.Record{Sequence: 7, Time: 5, Command: c.Recorded(), Outcome: decide.Accepted, Events: []decide.Event{event}}
		return submit.Result{Position: record.LogPosition{Journal: "onboarding", Sequence: 7}, Entry: &record.Entry{Record: made}, Repeated: true}, nil
	}), journals.All(), box)
	e := echo.New()
	e.POST(peerPath, there.serve)
	server := httptest.NewServer(e)
	defer server.Close()
	here := newPeers(submitFunc(func(context.Context, string, decide.Command) (submit.Result, error) {
		return submit.Result{}, &submit.ElsewhereError{URL: server.URL}
	}), journals.All(), box)
	got, err := here.Submit(t.Context(), "onboarding", decide.Command{ID: scalar.ID{3}, Type: sent.CommandType(), Actor: decide.Actor{Sub: "a", Broker: "alpha"}, Payload: sent})
	if err != nil {
		t.Fatal(err)
	}
	added, ok := got.Entry.Record.Events[0].(*onboarding.DocumentAdded)
	if !ok || !got.Repeated || got.Position.Sequence != 7 || got.Entry.Record.Sequence != 7 {
		t.Fatalf("%+v", got)
	}
	if added.ID != sent.ID || added.Ref != sent.Ref || string(added.Name) != "sealed" || added.Source != sent.Source || len(added.SHA256) != 32 || added.Size != 3 ||
		added.Category != "poa" || added.ValidUntil != scalar.Second || added.Created != 5 {
		t.Errorf("%+v", added)
	}
	if answer, err := http.Post(server.URL+peerPath, "application/json", nil); err != nil || answer.StatusCode == http.StatusOK {
		t.Errorf("without a proof: %v, %v", answer, err)
	}
}

// TestConnectionsToNodesAreKept: as many commands at a time as a sender has go over the connections that those before them used.
func TestConnectionsToNodesAreKept(t *testing.T) {
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	const atOnce = 32
	var together sync.WaitGroup // all of a round are under way before the first is answered
	there := newPeers(submitFunc(func(context.Context, string, decide.Command) (submit.Result, error) {
		together.Done()
		together.Wait()
		return submit.Result{Position: record.LogPosition{Journal: "onboarding", Sequence: 7}}, nil
	}), journals.All(), box)
	e := echo.New()
	e.POST(peerPath, there.serve)
	server := httptest.NewUnstartedServer(e)
	var made atomic.Int64
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			made.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	here := newPeers(submitFunc(func(context.Context, string, decide.Command) (submit.Result, error) {
		return submit.Result{}, &submit.ElsewhereError{URL: server.URL}
	}), journals.All(), box)
	defer here.client.CloseIdleConnections()
	attempt := &onboarding.RecordAttempt{ID: scalar.ID{1}, Number: 1}
	for range 5 {
		together.Add(atOnce)
		var round errgroup.Group
		for n := range atOnce {
			round.Go(func() error {
				_, err := here.Submit(t.Context(), "onboarding", decide.Command{ID: scalar.ID{byte(n)}, Type: attempt.CommandType(), Actor: decide.Actor{System: "sender"}, Payload: attempt})
				return err
			})
		}
		if err := round.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if n := made.Load(); n != atOnce {
		t.Errorf("%d connections for 5 rounds of %d commands", n, atOnce)
	}
}
