package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// headerForwarded marks a request that a node passed on to the owner of its journal. Its value is the command's id
// and a proof, by the key that the nodes share, that a node wrote it: so the id that the first node may have to name
// in an OUTCOME_UNKNOWN is the id of the record. Without a good proof the mark still counts, the id does not.
const headerForwarded = "X-Perpetua-Forwarded"

const forwardedKey = "web.forwarded"

// forwardedCommand returns the command id that another node gave to the request, or none.
func forwardedCommand(c echo.Context) decide.ID {
	id, _ := c.Get(forwardedKey).(decide.ID)
	return id
}

// passOn sends a request whose journal another node owns to that node, once. The handler has failed with an
// ElsewhereError before it wrote anything, and Body has kept the body.
func passOn(o Options) echo.MiddlewareFunc {
	transport := o.Transport
	if transport == nil {
		transport = &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
			MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second, ResponseHeaderTimeout: 15 * time.Second,
		}
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			mark := c.Request().Header.Get(headerForwarded)
			if mark != "" {
				c.Set(forwardedKey, provenCommand(o.ForwardKey, mark, c.Request()))
			}
			err := next(c)
			var elsewhere *journal.ElsewhereError
			if !errors.As(err, &elsewhere) || c.Response().Committed {
				return err
			}
			target, parseErr := url.Parse(elsewhere.URL)
			if mark != "" || parseErr != nil || target.Host == "" {
				return err // answered NOT_ACCEPTED
			}
			return forward(c, target, transport, o.ForwardKey)
		}
	}
}

func forward(c echo.Context, target *url.URL, transport http.RoundTripper, key []byte) error {
	id := commandOf(c)
	if id.IsZero() {
		id = NewID()
	}
	var failed error
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
			r.SetXForwarded()
			r.Out.Host = r.In.Host
			r.Out.Header.Set(headerForwarded, id.String()+"."+proof(key, id, r.In))
		},
		ModifyResponse: func(r *http.Response) error {
			for name := range c.Response().Header() { // set here already, by this node
				r.Header.Del(name)
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	proxy.ServeHTTP(c.Response(), c.Request())
	if failed == nil {
		return nil
	}
	var op *net.OpError
	if errors.As(failed, &op) && op.Op == "dial" {
		return notAcceptedProblem(time.Second).Because(failed) // nothing was sent
	}
	return OutcomeUnknown(id).Because(failed)
}

func proof(key []byte, id decide.ID, r *http.Request) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(id[:])
	mac.Write([]byte(r.Method + " " + r.URL.RequestURI()))
	return hex.EncodeToString(mac.Sum(nil))
}

func provenCommand(key []byte, mark string, r *http.Request) decide.ID {
	text, given, _ := strings.Cut(mark, ".")
	id, err := decide.ParseID(text)
	if err != nil || len(key) == 0 || !hmac.Equal([]byte(given), []byte(proof(key, id, r))) {
		return decide.ID{}
	}
	return id
}
