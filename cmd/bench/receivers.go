package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/handlers/webhooks"
)

// receiversConfig configures the receivers: their number, and the file to write their certificate to.
type receiversConfig struct {
	Count int
	CA    string
}

// receiversReady contains the URLs of the receivers, and one of a receiver that reads requests and never answers.
type receiversReady struct {
	URLs []string
	Dead string
}

// received is the answer to a call: the number of requests so far, and the bodies of some of them.
type received struct {
	Count  int64
	Bodies []string
}

// bodiesKept is the number of bodies that the receivers keep.
const bodiesKept = 256

// receiversChild runs all receivers of webhooks in one process. Each reads a request and acknowledges it.
func receiversChild(_ context.Context, cfg receiversConfig, in *json.Decoder, out *json.Encoder) error {
	certificate, err := vouched(cfg.CA)
	if err != nil {
		return err
	}
	r := &receivers{}
	var ready receiversReady
	stop := func() error { return nil }
	for n := range cfg.Count + 1 {
		handler := r.acknowledge
		if n == cfg.Count {
			handler = silence
		}
		url, closed, err := serveTLS(http.HandlerFunc(handler), certificate)
		if err != nil {
			return errors.Join(err, stop())
		}
		before := stop
		stop = func() error { return errors.Join(closed(), before()) }
		if n == cfg.Count {
			ready.Dead = url
		} else {
			ready.URLs = append(ready.URLs, url)
		}
	}
	err = answerAll(in, out, ready, func(struct{}) (received, error) { return r.received(), nil })
	return errors.Join(err, stop())
}

type receivers struct {
	count  atomic.Int64
	mu     sync.Mutex
	bodies []string
}

func (r *receivers) acknowledge(_ http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil || r.count.Add(1) > bodiesKept {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies = append(r.bodies, string(body))
}

func (r *receivers) received() received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return received{r.count.Load(), r.bodies}
}

// silence reads a request and does not answer until its sender has given up.
func silence(_ http.ResponseWriter, request *http.Request) {
	_, _ = io.Copy(io.Discard, request.Body)
	<-request.Context().Done()
	panic(http.ErrAbortHandler)
}

// serveTLS serves HTTPS on a free port until stop is called.
func serveTLS(handler http.Handler, certificate tls.Certificate) (url string, stop func() error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	return "https://" + listener.Addr().String() + "/", func() error { return errors.Join(server.Close(), ignoreClosed(<-served)) }, nil
}

// vouched returns a self-signed certificate for 127.0.0.1, and writes it to a file.
func vouched(file string) (c tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return c, err
	}
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key},
		os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600)
}

// posterConfig configures the poster child.
type posterConfig struct {
	URLs   []string
	CA     string
	Bodies []string
}

// posterRequest asks for a number of posts. The answer is their number per second.
type posterRequest struct {
	Count  int
	Signed bool // with two signatures, like deliveries
}

// posterChild posts bodies with the sender's client, and the same number in flight to each receiver. It records
// nothing.
func posterChild(ctx context.Context, cfg posterConfig, in *json.Decoder, out *json.Encoder) error {
	authority, err := os.ReadFile(cfg.CA)
	if err != nil {
		return err
	}
	d := webhooks.Dialing{Roots: x509.NewCertPool(), Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	d.Roots.AppendCertsFromPEM(authority)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	p := poster{posterConfig: cfg, client: d.Client(webhooks.PerReceiver, webhooks.Within), key: key}
	return answerAll(in, out, struct{}{}, func(round posterRequest) (float64, error) { return p.postAll(ctx, round) })
}

type poster struct {
	posterConfig
	client *http.Client
	key    ed25519.PrivateKey
}

// postAll distributes posts over the receivers and returns their number per second.
func (p *poster) postAll(ctx context.Context, round posterRequest) (float64, error) {
	start := time.Now()
	each := max(1, round.Count/(len(p.URLs)*webhooks.PerReceiver))
	g, ctx := errgroup.WithContext(ctx)
	for n := range len(p.URLs) * webhooks.PerReceiver {
		g.Go(func() error {
			for i := range each {
				if err := p.post(ctx, p.URLs[n%len(p.URLs)], p.Bodies[(n+i)%len(p.Bodies)], round.Signed); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	return float64(each*len(p.URLs)*webhooks.PerReceiver) / time.Since(start).Seconds(), err
}

func (p *poster) post(ctx context.Context, url, body string, signed bool) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if signed {
		for _, name := range []string{webhooks.HeaderSignature, webhooks.HeaderStandardSignature} {
			r.Header.Set(name, base64.StdEncoding.EncodeToString(ed25519.Sign(p.key, []byte(body))))
		}
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("a post was answered %d", answer.StatusCode)
	}
	return err
}
