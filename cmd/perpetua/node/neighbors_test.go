package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

type termFunc func(context.Context, ownership.Question) (ownership.Term, error)

func (f termFunc) Term(ctx context.Context, q ownership.Question) (ownership.Term, error) {
	return f(ctx, q)
}

// boxOf returns the secrets of a venue.
func boxOf(t *testing.T, venue byte) *seal.Box {
	t.Helper()
	key := make([]byte, seal.KeySize)
	key[0] = venue
	box, err := seal.New(key)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// startTerms serves the terms of a node of a venue.
func startTerms(t *testing.T, venue byte, own termFunc) string {
	t.Helper()
	e := echo.New()
	e.POST(termPath, termServer{own, newTermKey(boxOf(t, venue))}.serve)
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	return s.URL
}

func TestNodesTellEachOtherTheirTerms(t *testing.T) {
	here := newNeighbors(boxOf(t, 1))
	want := ownership.Term{Stamp: 1 << 62, Log: "cluster/topic", Serving: true,
		Standing: term.Standing{Term: 7, Taken: record.Hash{1, 2, 31: 3}, Journal: scalar.ID{5}}}
	silent := errors.New("silent")
	question := ownership.Question{Journal: "trading", Partition: 3, Engine: "n2", LastAnswer: 1<<62 - 1}
	own := func(_ context.Context, q ownership.Question) (ownership.Term, error) {
		switch {
		case q == question:
			return want, nil
		case q.Journal == "identity":
			return ownership.Term{}, silent
		}
		return ownership.Term{Stamp: 5}, nil
	}
	there := startTerms(t, 1, own)
	if got, err := here.Term(t.Context(), there, question); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	got, err := here.Term(t.Context(), there, ownership.Question{Journal: "trading"})
	if err != nil || got != (ownership.Term{Stamp: 5}) {
		t.Errorf("without a term: %+v, %v", got, err)
	}
	if _, err := here.Term(t.Context(), there, ownership.Question{Journal: "identity"}); !errors.Is(err, ownership.ErrSilent) {
		t.Errorf("of a goroutine that is silent: %v", err)
	}
	older := httptest.NewServer(http.NotFoundHandler())
	defer older.Close()
	for name, url := range map[string]string{"an older build": older.URL, "another venue": startTerms(t, 2, own)} {
		if _, err := here.Term(t.Context(), url, question); !errors.Is(err, ownership.ErrNoSuchQuestion) {
			t.Errorf("%s answers: %v", name, err)
		}
	}
}

// TestATermIsProven: an answer that is made up, altered or of another question is no answer.
func TestATermIsProven(t *testing.T) {
	key := newTermKey(boxOf(t, 1))
	own := startTerms(t, 1, func(context.Context, ownership.Question) (ownership.Term, error) {
		return ownership.Term{Log: "l", Serving: true, Standing: term.Standing{Term: 7}}, nil
	})
	var recorded, proof string
	for name, answer := range map[string]func(http.ResponseWriter){
		"no proof": func(w http.ResponseWriter) { w.Write([]byte(`{"serving":true,"term":7}`)) },
		"bad proof": func(w http.ResponseWriter) {
			w.Header().Set(peerProof, "00")
			w.Write([]byte(`{"serving":true,"term":7}`))
		},
		"an answer of before": func(w http.ResponseWriter) {
			w.Header().Set(peerProof, proof)
			w.Write([]byte(recorded))
		},
	} {
		recorded = `{"nonce":"00","serving":true,"log":"l","term":7,"taken":"` + strings.Repeat("0", 64) + `"}`
		proof = proofOf(key, []byte(recorded))
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
		if got, err := newNeighbors(boxOf(t, 1)).Term(t.Context(), s.URL, ownership.Question{Journal: "trading"}); err == nil || got.Serving {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		s.Close()
	}
	response, err := http.Post(own+termPath, "application/json", strings.NewReader(`{"nonce":"00","journal":"trading"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK || response.Header.Get(peerProof) != "" {
		t.Errorf("a stranger is answered %s", response.Status)
	}
}

// TestQuestionsOverTLSUseHTTP1: a lost connection fails no other question.
func TestQuestionsOverTLSUseHTTP1(t *testing.T) {
	asked := make(chan string, 1)
	there := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Proto
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	there.EnableHTTP2 = true
	there.StartTLS()
	defer there.Close()
	here := newNeighbors(boxOf(t, 1))
	authorities := x509.NewCertPool()
	authorities.AddCert(there.Certificate())
	trust(here.client, &tls.Config{RootCAs: authorities})
	if _, err := here.Term(t.Context(), there.URL, ownership.Question{Journal: "trading"}); !errors.Is(err, ownership.ErrSilent) {
		t.Fatal(err)
	}
	if got := <-asked; got != "HTTP/1.1" {
		t.Errorf("a question comes over %s", got)
	}
}

// TestNodesAskEachOtherWithoutAProxy: a proxy of the environment is for the world outside, and need not reach the nodes.
func TestNodesAskEachOtherWithoutAProxy(t *testing.T) {
	if newNeighbors(boxOf(t, 1)).client.Transport.(*http.Transport).Proxy != nil {
		t.Error("questions to other nodes go through a proxy")
	}
}
