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
	// maxWait is the longest time for which a client waits because the venue asks for it.
	maxWait   = 30 * time.Second
	maxAnswer = 256 << 20
)

// client sends requests to one venue as one user.
type client struct {
	base, token string
	http        *http.Client
	pause       func(ctx context.Context, d time.Duration) error
}

func newClient(base string) *client {
	return &client{base: strings.TrimSuffix(base, "/"), http: &http.Client{Timeout: requestTime}, pause: pause}
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
	// RetryAfter is the time for which the venue asks to wait before the request is repeated, or 0.
	RetryAfter time.Duration `json:"-"`
}

// Error returns a line for the problem and one more for each error in the request. A detail that only repeats the error is left out.
func (p *Problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", p.Status, p.Code)
	if len(p.Errors) != 1 || !strings.Contains(p.Detail, p.Errors[0].Message) {
		fmt.Fprintf(&b, ": %s", p.Detail)
	}
	if p.RetryAfter > 0 {
		fmt.Fprintf(&b, "\n  the venue asks to repeat the request after %v", p.RetryAfter)
	}
	for _, f := range p.Errors {
		fmt.Fprintf(&b, "\n  %s %s: %s", cmp.Or(f.Field, "the request"), f.Code, f.Message)
	}
	return b.String()
}

// login gets a token. It repeats the request unless the venue refuses it or does not respond: its address may be wrong.
func (c *client) login(ctx context.Context, user, password string) error {
	form := url.Values{"username": {user}, "password": {password}}
	answer, err := c.repeat(ctx, undecided, func() (*http.Request, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/auth/jwt/login", strings.NewReader(form.Encode()))
		if err == nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return r, err
	})
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
	return c.repeat(ctx, func(err error) bool { return unreached(err) || undecided(err) }, func() (*http.Request, error) {
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
		return r, nil
	})
}

// unreached reports whether the error is not a response of the venue.
func unreached(err error) bool { return !errors.As(err, new(*Problem)) }

// undecided reports whether the venue has not decided a request and the same request may succeed later.
func undecided(err error) bool {
	var p *Problem
	return errors.As(err, &p) && (p.Status == http.StatusServiceUnavailable && p.Code != "FENCED" || p.Status == http.StatusTooManyRequests)
}

// repeat sends a request until it succeeds or the error is not one of those after which again is true, at most tries times. The delay
// between two attempts is Retry-After or longer. If Retry-After is over maxWait, repeat returns. It returns the error of the last
// attempt.
func (c *client) repeat(ctx context.Context, again func(error) bool, request func() (*http.Request, error)) ([]byte, error) {
	least := firstWait
	for try := 1; ; try++ {
		r, err := request()
		if err != nil {
			return nil, err
		}
		answer, err := c.send(r)
		if err == nil || !again(err) || try == tries {
			return answer, err
		}
		wait := least
		var p *Problem
		if errors.As(err, &p) {
			wait = max(wait, p.RetryAfter)
		}
		if wait > maxWait {
			return nil, err
		}
		if err := c.pause(ctx, wait); err != nil {
			return nil, err
		}
		least *= 2
	}
}

// pause waits for d, or until the context ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// send sends a request once. If the venue refuses it, the error is a *Problem.
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
	p := problemOf(answer.StatusCode, content)
	p.RetryAfter = retryAfter(answer.Header.Get("Retry-After"), time.Now())
	return nil, p
}

// maxRetryAfter is the longest time that retryAfter returns.
const maxRetryAfter = 24 * time.Hour

// retryAfter returns the time to wait that a header Retry-After names: a number of seconds or a date, which proxies send. It is 0 if
// the header names none, or a date that is not later than now. It is rounded up to seconds.
func retryAfter(header string, now time.Time) time.Duration {
	seconds, err := strconv.ParseUint(header, 10, 64)
	switch {
	case err == nil && seconds <= uint64(maxRetryAfter/time.Second):
		return time.Duration(seconds) * time.Second
	case err == nil, errors.Is(err, strconv.ErrRange):
		return maxRetryAfter
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return (min(max(0, at.Sub(now)), maxRetryAfter) + time.Second - 1).Truncate(time.Second)
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
