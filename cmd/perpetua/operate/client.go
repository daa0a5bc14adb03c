package operate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/web"
)

const (
	requestTime = 5 * time.Minute // an export is streamed
	// tries is how often a request is sent that the venue does not decide, and firstWait how long is waited in between at first.
	tries     = 6
	firstWait = 250 * time.Millisecond
	maxAnswer = 256 << 20
)

// client asks one venue as one user.
type client struct {
	base, token string
	http        *http.Client
}

func newClient(base string) *client {
	return &client{base: strings.TrimSuffix(base, "/"), http: &http.Client{Timeout: requestTime}}
}

// problem is an answer that says what went wrong.
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Errors []struct {
		Field   string `json:"field"`
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"errors"`
}

// Error tells it in a line, and each fault of the request in one more.
func (p *problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s: %s", p.Status, p.Code, p.Detail)
	for _, f := range p.Errors {
		fmt.Fprintf(&b, "\n  %s %s: %s", cmp.Or(f.Field, "the request"), f.Code, f.Message)
	}
	return b.String()
}

func (c *client) login(ctx context.Context, user, password string) error {
	form := url.Values{"username": {user}, "password": {password}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/auth/jwt/login", strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := c.send(r)
	if err != nil {
		return fmt.Errorf("log in as %s: %w", user, err)
	}
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(answer, &token); err != nil {
		return fmt.Errorf("log in as %s: %w", user, err)
	}
	c.token = token.AccessToken
	return nil
}

// do sends a request until it is decided: what is repeated has the same key, so it is done once.
func (c *client) do(ctx context.Context, method, target string, body []byte, key string) ([]byte, error) {
	if method != http.MethodGet && key == "" {
		key = web.NewID().String()
	}
	wait := firstWait
	for try := 1; ; try++ {
		r, err := http.NewRequestWithContext(ctx, method, c.base+target, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+c.token)
		if key != "" {
			r.Header.Set(web.HeaderIdempotencyKey, key)
		}
		if body != nil {
			r.Header.Set("Content-Type", "application/json")
		}
		answer, err := c.send(r)
		var p *problem
		refused := errors.As(err, &p)
		undecided := refused && (p.Status == http.StatusServiceUnavailable && p.Code != "FENCED" || p.Status == http.StatusTooManyRequests)
		if err == nil || refused && !undecided || try == tries {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
		wait *= 2
	}
}

// send sends a request once. What the venue refuses is a *problem.
func (c *client) send(r *http.Request) ([]byte, error) {
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode < http.StatusMultipleChoices {
		return content, nil
	}
	return nil, problemOf(answer.StatusCode, content)
}

// problemOf reads a problem in either of the two shapes that the venue has; the status always stands.
func problemOf(status int, content []byte) *problem {
	p := &problem{}
	if json.Unmarshal(content, p) != nil {
		p = &problem{Detail: strconv.Quote(string(content[:min(len(content), 300)]))}
	}
	p.Status = status
	if p.Code == "" {
		p.Code, p.Detail = cmp.Or(p.Detail, http.StatusText(status)), http.StatusText(status)
	}
	return p
}
