package peer

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestForeignLog: there is no stream, and nothing is decided, if the two nodes differ in the log, the journal, the venue or the
// secret, as a copy of the venue does whose log names the original's owner.
func TestForeignLog(t *testing.T) {
	for name, change := range map[string]func(*ServerConfig, *ClientConfig){
		"log": func(_ *ServerConfig, c *ClientConfig) {
			c.Log = func(context.Context, string) (string, error) { return "copy", nil }
		},
		"venue":  func(_ *ServerConfig, c *ClientConfig) { c.Venue = func() string { return "copy" } },
		"secret": func(_ *ServerConfig, c *ClientConfig) { c.Key = []byte("another") },
		"journal": func(s *ServerConfig, _ *ClientConfig) {
			standing := s.Term
			s.Term = func(ctx context.Context, id submit.Shard) (Term, bool, error) {
				term, ok, err := standing(ctx, id)
				term.Journal[0]++
				return term, ok, err
			}
		},
		"taken record": func(s *ServerConfig, _ *ClientConfig) {
			standing := s.Term
			s.Term = func(ctx context.Context, id submit.Shard) (Term, bool, error) {
				term, ok, err := standing(ctx, id)
				term.Taken[0]++
				return term, ok, err
			}
		},
		"an earlier term": func(s *ServerConfig, _ *ClientConfig) {
			standing := s.Term
			s.Term = func(ctx context.Context, id submit.Shard) (Term, bool, error) {
				term, ok, err := standing(ctx, id)
				term.Number--
				return term, ok, err
			}
		},
		"no term": func(s *ServerConfig, _ *ClientConfig) {
			s.Term = func(context.Context, submit.Shard) (Term, bool, error) { return Term{}, false, nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, newOwner(t), change)
				if _, err := p.say(t.Context(), "hello"); !isNotAccepted(err) {
					t.Errorf("%v", err)
				}
				equal(t, p.owner.words(), nil)
			})
		})
	}
}

// TestForms: a command that the owner's build does not know, or not entirely, is not accepted.
func TestForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		c := command("hello")
		c.Payload = &struct{ Word, Tone string }{"hello", "loud"}
		if _, err := p.Submit(t.Context(), testJournal, c); !isNotAccepted(err) {
			t.Errorf("an unknown member: %v", err)
		}
		c.Type = "shout"
		if _, err := p.Submit(t.Context(), testJournal, c); !isNotAccepted(err) {
			t.Errorf("an unknown type: %v", err)
		}
		equal(t, p.owner.words(), nil)
	})
}

// TestRevisions: a node of build 0.1.0, which lists no forms, and one of this build have streams to each other.
func TestRevisions(t *testing.T) {
	for name, c := range map[string]struct{ node, owner bool }{"an older owner": {node: true}, "an older node": {owner: true}, "both": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOwner(t)
				n := &network{connections: make(chan net.Conn), closed: make(chan struct{})}
				p := &pair{owner: o, server: NewServer(serverConfig(o)), network: n}
				web := &http.Server{Protocols: protocols(true), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !c.node {
						r.Header.Del(revisionHeader)
					}
					if !c.owner {
						r.Header.Del(revisionHeader)
						w = withoutRevision{w}
					}
					p.server.ServeHTTP(w, r)
				})}
				p.connect(t, o, web, clientConfig(n))
				if _, err := p.say(t.Context(), "hello"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// withoutRevision answers as a build that knows no revisions.
type withoutRevision struct{ http.ResponseWriter }

func (w withoutRevision) WriteHeader(status int) {
	w.Header().Del(revisionHeader)
	w.ResponseWriter.WriteHeader(status)
}

func (w withoutRevision) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestARevisionIsNotLowered: somebody between the nodes cannot have them use an older revision than both know.
func TestARevisionIsNotLowered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		n := &network{connections: make(chan net.Conn), closed: make(chan struct{})}
		p := &pair{owner: o, server: NewServer(serverConfig(o)), network: n}
		web := &http.Server{Protocols: protocols(true), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.server.ServeHTTP(withoutRevision{w}, r)
		})}
		p.connect(t, o, web, clientConfig(n))
		if _, err := p.say(t.Context(), "hello"); !isNotAccepted(err) {
			t.Errorf("%v", err)
		}
		equal(t, o.words(), nil)
	})
}

// TestUnknownCommands: a node does not send what the owner has said that it does not know. It sends the rest.
func TestUnknownCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := FormsOf(decide.NewPayloads(func() decide.Payload { return new(say) }))
		p := newPair(t, newOwner(t), func(s *ServerConfig, c *ClientConfig) {
			s.Forms = func(string) []Form { return said }
			c.Forms = func(string) []Form { return append([]Form{{Type: "shout", Hash: 1}}, said...) }
		})
		if _, err := p.say(t.Context(), "first"); err != nil {
			t.Error(err)
		}
		sent := testutil.ToFloat64(p.Client.metrics.commands)
		c := command("hello")
		c.Type = "shout"
		if _, err := p.Submit(t.Context(), testJournal, c); !isNotAccepted(err) {
			t.Errorf("an unknown type: %v", err)
		}
		if now := testutil.ToFloat64(p.Client.metrics.commands); now != sent {
			t.Errorf("%v commands were sent", now-sent)
		}
		if _, err := p.say(t.Context(), "second"); err != nil {
			t.Error(err)
		}
		equal(t, p.owner.words(), []string{"first", "second"})
	})
}

// Outer and outer are embedded in the payloads of TestFormHashes, which declaredForm is another one of.
type (
	Outer struct {
		A string `json:"a"`
	}
	outer struct {
		A string `json:"a"`
	}
	declaredForm struct {
		A string `json:"a"`
		B *struct{ N int }
	}
)

func (*declaredForm) FormHash() uint64 { return 1 }

// TestFormHashes: the hash of a form depends on everything that makes two builds encode a payload differently, and on nothing else.
func TestFormHashes(t *testing.T) {
	type word string
	type inner struct{ N int }
	want := hashOf(&struct {
		A string `json:"a"`
		B *inner
	}{})
	for name, c := range map[string]struct {
		payload any
		same    bool
	}{
		"the same": {&struct {
			A string `json:"a"`
			B *inner
		}{}, true},
		"another named kind": {&struct {
			A word `json:"a"`
			B *inner
		}{}, true},
		"another name": {&struct {
			A string `json:"b"`
			B *inner
		}{}, false},
		"another kind": {&struct {
			A int `json:"a"`
			B *inner
		}{}, false},
		"one member more": {&struct {
			A string `json:"a"`
			B *inner
			C bool
		}{}, false},
		"another member of a member": {&struct {
			A string `json:"a"`
			B *struct{ M int }
		}{}, false},
		"a type with its own form": {&struct {
			A scalar.ID `json:"a"`
			B *inner
		}{}, false},
		"the same name of another field": {&struct {
			X string `json:"a"`
			Y *inner `json:"B"`
		}{}, true},
		"a member that is left out": {&struct {
			A string `json:"a"`
			C string `json:"-"`
			B *inner
		}{}, true},
		"a member that may be left out": {&struct {
			A string `json:"a,omitzero"`
			B *inner
		}{}, false},
		"an embedded struct": {&struct {
			Outer
			B *inner
		}{}, true},
		"an embedded struct that is not exported": {&struct {
			outer
			B *inner
		}{}, true},
		"an embedded struct with a name": {&struct {
			Outer `json:"outer"`
			B     *inner
		}{}, false},
		"a field that is not exported": {&struct {
			A string `json:"a"`
			b string
			B *inner
		}{}, true},
		"a declared form": {&declaredForm{}, false},
	} {
		if got := hashOf(c.payload); (got == want) != c.same {
			t.Errorf("%s: the hash is %x beside %x", name, got, want)
		}
	}
}

// TestARepeatedHelloTakesNoCredit: what a stream is granted counts once the node has proved that it has the key.
func TestARepeatedHelloTakesNoCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		if _, err := p.say(t.Context(), "hello"); err != nil {
			t.Fatal(err)
		}
		hi := hello{wire: wire, node: "n", incarnation: newNonce(), nonce: newNonce(), shard: testShard}
		c := p.Client.newTransport()
		defer c.CloseIdleConnections()
		body, to := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ownerURL+Path, body)
		if err != nil {
			t.Fatal(err)
		}
		go to.Write(appendFrame(nil, newProver(secret, toOwner), kindHello, hi.visit))
		response, err := c.RoundTrip(r)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", response, err)
		}
		synctest.Wait()
		p.server.mu.Lock()
		granted := p.server.granted[testShard]
		p.server.mu.Unlock()
		if granted != maxCommands {
			t.Errorf("%d commands are granted to one stream and a hello", granted)
		}
		to.Close()
		response.Body.Close()
	})
}
