package peer

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// here is a node's own owners with a given answer.
type here struct{ err error }

func (h here) Submit(context.Context, string, decide.Command) (submit.Result, error) {
	return submit.Result{}, h.err
}

func (h here) SubmitAll(_ context.Context, _ string, cs []decide.Command) []submit.Outcome {
	return allFail(cs, h.err)
}

// TestNextOwner: a command goes on to the next owner after a node that turns out not to be one, and to no more than a few.
func TestNextOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		owns := true
		p := newPair(t, o, func(s *ServerConfig, _ *ClientConfig) {
			standing := s.Term
			s.Term = func(ctx context.Context, id submit.Shard) (Term, bool, error) {
				term, _, err := standing(ctx, id)
				return term, owns, err
			}
		})
		asked := 0
		var next func(context.Context) *submit.ElsewhereError
		next = func(context.Context) *submit.ElsewhereError {
			asked++
			owns = asked == 2
			return &submit.ElsewhereError{URL: ownerURL, Next: next}
		}
		owns = false
		p.Here = here{err: next(t.Context())}
		if _, err := p.say(t.Context(), "found"); err != nil || asked != 2 {
			t.Errorf("%v after %d", err, asked)
		}
		asked, owns = 10, false
		p.owner.take() // ends the stream
		if _, err := p.say(t.Context(), "not found"); !isNotAccepted(err) || asked != 10+maxOwners-1 {
			t.Errorf("%v after %d", err, asked)
		}
		equal(t, o.words(), []string{"found"})
	})
}

// TestNoStream: if no stream can be opened, a command is not accepted, and the reason says why.
func TestNoStream(t *testing.T) {
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.EnableHTTP2 = true
	untrusted.StartTLS()
	defer untrusted.Close()
	owner := newOwner(t)
	for name, c := range map[string]struct {
		url    string
		change func(*ClientConfig)
		unread bool
		reason string
	}{
		"an untrusted certificate": {url: untrusted.URL, reason: x509.UnknownAuthorityError{}.Error()},
		"an unknown log": {url: ownerURL, reason: "no broker answers", change: func(c *ClientConfig) {
			c.Log = func(context.Context, string) (string, error) { return "", errors.New("no broker answers") }
		}},
		"an unknown venue": {url: ownerURL, reason: "which venue", change: func(c *ClientConfig) { c.Venue = func() string { return "" } }},
		"an unread log":    {url: ownerURL, reason: "read nothing", unread: true},
		"a refused connection": {url: ownerURL, reason: "refused", change: func(c *ClientConfig) {
			c.Dial = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
			}
		}},
		"a broken connection": {url: ownerURL, reason: "opens no stream", change: func(c *ClientConfig) {
			c.Dial = func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				far.Close()
				return near, nil
			}
		}},
	} {
		try := func() error {
			config := clientConfig(&network{})
			config.Dial = nil
			if c.change != nil {
				c.change(&config)
			}
			client := NewClient(config)
			defer client.Close()
			if !c.unread {
				owner.follow(client)
			}
			r := &Router{Here: here{&submit.ElsewhereError{URL: c.url}}, Client: client}
			_, err := r.Submit(t.Context(), testJournal, command("hello"))
			return err
		}
		// A busy machine may take longer for the first handshake than a client waits for it.
		for limit := time.Now().Add(time.Minute); ; {
			err := try()
			var busy *submit.NotAcceptedError
			if errors.As(err, &busy) && strings.Contains(busy.Reason, c.reason) {
				break
			}
			if !errors.As(err, &busy) || time.Now().After(limit) {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
	}
}

// TestWithoutStreams: an owner that serves no streams gets no commands. They are not accepted, and the reason names the owner.
func TestWithoutStreams(t *testing.T) {
	for name, old := range map[string]*http.Server{
		"without the route":   {Handler: http.NotFoundHandler(), Protocols: protocols(true)},
		"without HTTP/2":      {Handler: http.NotFoundHandler(), Protocols: protocols(false)},
		"of another protocol": {Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }), Protocols: protocols(true)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPairWith(t, newOwner(t), old)
				for range 2 { // the second time the node is not asked again
					out := p.SubmitAll(t.Context(), testJournal, []decide.Command{command("a"), command("b")})
					for _, o := range out {
						var busy *submit.NotAcceptedError
						if !errors.As(o.Err, &busy) || !strings.Contains(busy.Reason, ownerURL) {
							t.Errorf("%v", o.Err)
						}
						// A server of HTTP/1.1 may only close the connection, as one that dies does.
						if old.Protocols.UnencryptedHTTP2() && busy.RetryAfter != withoutStreams {
							t.Errorf("to be tried again after %v", busy.RetryAfter)
						}
					}
					if len(out) != 2 {
						t.Errorf("%d outcomes", len(out))
					}
				}
			})
		})
	}
}
