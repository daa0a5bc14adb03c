package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/peer"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// certificate makes an authority and a certificate for the loopback interface, and returns the names of their files.
func certificate(t *testing.T) (authority, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	make := func(c, parent *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if signer == nil {
			signer = own
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &own.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		return der, own
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	rootDER, rootKey := make(root, root, nil)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "engine"}, NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	leafDER, leafKey := make(leaf, root, rootKey)
	private, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	return write("ca.pem", "CERTIFICATE", rootDER), write("cert.pem", "CERTIFICATE", leafDER), write("key.pem", "PRIVATE KEY", private)
}

// submitBroker submits a command from a node.
func submitBroker(ctx context.Context, n *Node, name string) error {
	payload := &identity.RegisterBroker{Broker: name, Name: "A broker"}
	_, err := n.Submitter().Submit(ctx, journals.Identity, decide.Command{ID: operation.NewID(), Type: payload.CommandType(),
		Actor: decide.Actor{System: "seed"}, Payload: payload})
	return err
}

// TestCommandsOverTLS: an engine with a port for other nodes serves them there alone, with TLS, and a node that trusts its
// authority sends commands there over a stream. A node that does not has no command decided.
func TestCommandsOverTLS(t *testing.T) {
	all := newBench(t, journals.All())
	all.config.Alone = false
	authority, cert, key := certificate(t)
	begin := func(id string, roles Roles, change func(c *Config)) *Node {
		c := all.config
		settings := *c.Settings
		c.Settings, c.ID, c.Roles = &settings, id, roles
		change(&c)
		n, _ := all.run(t, c)
		return n
	}
	owner := begin("owner", Roles{Engine: true, Projector: true}, func(c *Config) {
		c.Settings.Peer.Listen, c.Settings.Peer.Cert, c.Settings.Peer.Key, c.Settings.Peer.CA = "127.0.0.1:0", cert, key, authority
	})
	if !strings.HasPrefix(owner.URL(), "https://") || !strings.HasPrefix(owner.ClientURL(), "http://") {
		t.Fatalf("the owner is at %s and %s", owner.URL(), owner.ClientURL())
	}
	trusting := begin("trusting", Roles{API: true}, func(c *Config) { c.Settings.Peer.CA = authority })
	tries := 0
	eventually(t, "a broker", func() string {
		tries++
		if err := submitBroker(t.Context(), trusting, fmt.Sprintf("trusting%d", tries)); err != nil {
			return err.Error()
		}
		return ""
	})
	if got := testutil.ToFloat64(trusting.engine.streams.Collectors()[1]); got == 0 {
		t.Error("no command went over a stream")
	}
	other := begin("other", Roles{API: true}, func(*Config) {})
	eventually(t, "a node that does not trust the authority finds the owner", func() string {
		err := submitBroker(t.Context(), other, "other")
		var busy *submit.NotAcceptedError
		switch {
		case !errors.As(err, &busy):
			t.Fatalf("a command for an owner whose authority is not trusted: %v", err)
		case !strings.Contains(busy.Reason, x509.UnknownAuthorityError{}.Error()):
			return busy.Reason
		}
		return ""
	})
	if got := testutil.ToFloat64(other.engine.streams.Collectors()[1]); got != 0 {
		t.Errorf("%v commands went over streams", got)
	}

	for _, path := range []string{peer.Path, termPath, rulesPath} {
		r, err := http.Post(owner.ClientURL()+path, "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != http.StatusNotFound {
			t.Errorf("%s on the port of the clients: %s", path, r.Status)
		}
	}
	encryption, err := (trusting.Settings).PeerClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: encryption}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{"/healthz": http.StatusNotFound, rulesPath: http.StatusOK} {
		r, err := client.Get(owner.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("%s on the port of the nodes: %s", path, r.Status)
		}
	}
}

// cable is a connection between a node and the brokers that can be cut.
type cable struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex
	cut  bool
	open []net.Conn
}

func (c *cable) connect(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, address)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		if err == nil {
			conn.Close()
		}
		return nil, errors.New("the cable is cut")
	}
	c.open = append(slices.DeleteFunc(c.open, func(c net.Conn) bool { return c == nil }), conn)
	return conn, err
}

// set cuts or mends the cable.
func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		if conn != nil && cut {
			conn.Close()
		}
	}
	if c.cut = cut; cut {
		c.open = nil
	}
}

// runOnCable runs an owner, and a node that reaches the brokers over a cable.
func runOnCable(t *testing.T, log *slog.Logger) (*Node, *cable) {
	t.Helper()
	all := newBench(t, journals.All())
	all.config.Alone = false
	c := all.config
	c.ID, c.Roles = "owner", Roles{Engine: true, Projector: true}
	all.run(t, c)
	cut := &cable{dial: all.config.Dial}
	c = all.config
	c.ID, c.Roles, c.Dial, c.Logger = "node", Roles{API: true}, cut.connect, log
	n, _ := all.run(t, c)
	return n, cut
}

// TestANodeWithoutBrokersAdmitsNothing: a node that has lost the brokers, and so would not learn that a key is revoked, has no
// command decided after a while, although it still reaches the owner. When the brokers are back, it does.
func TestANodeWithoutBrokersAdmitsNothing(t *testing.T) {
	n, cut := runOnCable(t, slog.New(slog.DiscardHandler))
	lost := func(err error) bool {
		var busy *submit.NotAcceptedError
		return errors.As(err, &busy) && strings.Contains(busy.Reason, "lost contact with the brokers")
	}
	admitted := func(name string) func() string {
		return func() string {
			if err := submitBroker(t.Context(), n, name); err != nil {
				return err.Error()
			}
			return ""
		}
	}
	eventually(t, "a command to be decided", admitted("before"))
	cut.set(true)
	eventually(t, "a command to be refused", func() string {
		if err := submitBroker(t.Context(), n, "during"); !lost(err) {
			return "it is not"
		}
		return ""
	})
	cut.set(false)
	eventually(t, "a command to be decided again", admitted("after"))
}
