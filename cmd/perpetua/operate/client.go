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

	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
)

const (
	requestTime = 5 * time.Minute // an export is streamed
	// tries is the maximum number of attempts at a request that the venue does not decide, and firstWait the first
	// delay between them.
	tries     = 6
	firstWait = 250 * time.Millisecond
	maxAnswer = 256 << 20
)

// client sends requests to one venue as one user.
type client struct {
	base, token string
	http        *http.Client
}

func newClient(base string) *client {
	return &client{base: strings.TrimSuffix(base, "/"), http: &http.Client{Timeout: requestTime}}
}

// Problem is an error response of a venue.
type Problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Errors []struct {
		Field   string `json:"field"`
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"errors"`
}

// Error returns a line for the problem and one more for each error in the request. A detail that only repeats the error is left out.
func (p *Problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", p.Status, p.Code)
	if len(p.Errors) != 1 || !strings.Contains(p.Detail, p.Errors[0].Message) {
		fmt.Fprintf(&b, ": %s", p.Detail)
	}
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

// content is the body of a request. It has no body if the bytes are nil.
type content struct {
	mediaType string
	bytes     []byte
}

// do sends a request until it is decided. Repetitions have the same key, so the operation is done once.
func (c *client) do(ctx context.Context, method, target string, body content, key string) ([]byte, error) {
	if method != http.MethodGet && key == "" {
		key = operation.NewID().String()
	}
	wait := firstWait
	for try := 1; ; try++ {
		r, err := http.NewRequestWithContext(ctx, method, c.base+target, bytes.NewReader(body.bytes))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+c.token)
		if key != "" {
			r.Header.Set(operation.HeaderIdempotencyKey, key)
		}
		if body.bytes != nil {
			r.Header.Set("Content-Type", body.mediaType)
		}
		answer, err := c.send(r)
		var p *Problem
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

// send sends a request once. If the venue refuses it, the error is a *problem.
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

// problemOf decodes a problem in either of the venue's two formats. The status is always that of the response.
func problemOf(status int, content []byte) *Problem {
	p := &Problem{}
	if json.Unmarshal(content, p) != nil {
		p = &Problem{Detail: strconv.Quote(string(content[:min(len(content), 300)]))}
	}
	p.Status = status
	if p.Code == "" {
		p.Code, p.Detail = cmp.Or(p.Detail, http.StatusText(status)), http.StatusText(status)
	}
	return p
}
