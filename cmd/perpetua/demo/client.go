package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	requestTime  = 10 * time.Second
	firstBackoff = 250 * time.Millisecond
	lastBackoff  = 10 * time.Second
	// tokenAge is the age at which a token is replaced, well before it expires.
	tokenAge = 20 * time.Minute
	// patience is the number of server errors, other than 503, after which a request is not repeated.
	patience = 5
)

// user is a user of the demo.
type user struct {
	name, password string
	made           string // log position at which the user or the password was recorded; "" if unknown

	mu    sync.Mutex
	token string
	since time.Time
}

// client sends REST requests. It repeats a request that is not answered, or is answered with 429 or 503, with growing
// delays: every request of the demo is safe to repeat.
type client struct {
	base  string
	agent string
	http  *http.Client
	health
}

func newClient(base, agent string, log *slog.Logger) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute}
	return &client{base: base, agent: agent, http: &http.Client{Transport: transport}, health: health{log: log, ill: make(map[string]bool)}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// reply is the response to a request.
type reply struct {
	status   int
	body     []byte
	sequence int64 // sequence of the record that the response refers to or is as of, −1 if it names none
	position string
}

// code returns the code of a problem.
func (r reply) code() string {
	var problem struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(r.body, &problem)
	return problem.Code
}

// err returns the error that the reply reports, or nil for success.
func (r reply) err(what string) error {
	if r.status < 300 {
		return nil
	}
	return fmt.Errorf("%s: %d %.300s", what, r.status, r.body)
}

// do sends a request as a user, nil for none, until it is answered. A read with asOf waits until it reflects that
// record; 0 for no wait. The only error is that of the context.
func (c *client) do(ctx context.Context, u *user, method, path string, body any, asOf int64) (reply, error) {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return reply{}, err
		}
	}
	backoff := firstBackoff
	for failures := 0; ; {
		r, after, err := c.try(ctx, u, method, path, content, asOf)
		if ctx.Err() != nil {
			return reply{}, ctx.Err()
		}
		switch {
		case err == nil && r.status < 500 && r.status != http.StatusTooManyRequests && r.status != http.StatusPreconditionFailed:
			c.well(requests)
			return r, nil
		case err == nil && r.status >= 500 && r.status != http.StatusServiceUnavailable:
			if failures++; failures == patience {
				return r, nil
			}
		}
		if err == nil {
			err = r.err(method + " " + path)
		}
		c.unwell(requests, err)
		if err := wait(ctx, max(after, backoff)); err != nil {
			return reply{}, err
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// try sends a request once. after is the delay that the server asks for.
func (c *client) try(ctx context.Context, u *user, method, path string, body []byte, asOf int64) (r reply, after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, 0, err
	}
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	if asOf > 0 {
		request.Header.Set("X-Min-Log-Position", position(asOf))
	}
	if u != nil {
		token, err := c.login(ctx, u)
		if err != nil {
			return reply{}, 0, err
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	r, after, err = c.send(request)
	if u != nil && r.status == http.StatusUnauthorized {
		u.forget()
		return r, after, errors.New("the token is not valid any more")
	}
	return r, after, err
}

func (c *client) send(request *http.Request) (reply, time.Duration, error) {
	request.Header.Set("User-Agent", c.agent)
	response, err := c.http.Do(request)
	if err != nil {
		return reply{}, 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	if err != nil {
		return reply{}, 0, err
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	position := response.Header.Get("X-Log-Position")
	at, _ := record(position)
	return reply{response.StatusCode, body, at, position}, time.Duration(seconds) * time.Second, nil
}

// errCredentials reports a wrong username or password.
var errCredentials = errors.New("wrong username or password")

// login returns the user's token, a new one if there is none or the old one has reached tokenAge.
func (c *client) login(ctx context.Context, u *user) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.token != "" && time.Since(u.since) < tokenAge {
		return u.token, nil
	}
	form := url.Values{"username": {u.name}, "password": {u.password}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/auth/jwt/login", strings.NewReader(form))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	// Logins are read from a follower. Without the position, a login right after the user was created could fail.
	if u.made != "" {
		request.Header.Set("X-Min-Log-Position", u.made)
	}
	r, _, err := c.send(request)
	if err != nil {
		return "", err
	}
	var grant struct {
		AccessToken string `json:"access_token"`
	}
	if r.status == http.StatusBadRequest {
		return "", fmt.Errorf("login of %s: %w", u.name, errCredentials)
	}
	if json.Unmarshal(r.body, &grant) != nil || grant.AccessToken == "" {
		return "", fmt.Errorf("login of %s: status %d", u.name, r.status)
	}
	u.token, u.since = grant.AccessToken, time.Now()
	return u.token, nil
}

func (u *user) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.token = ""
}

// health logs when a failure begins and when it ends, for each source.
type health struct {
	log *slog.Logger

	mu  sync.Mutex
	ill map[string]bool
}

// The sources of failures.
const (
	requests = "requests"
	socket   = "socket"
)

func (h *health) unwell(source string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ill[source] {
		h.log.Warn("the demo market waits for the venue", "for", source, "error", err)
	}
	h.ill[source] = true
}

func (h *health) well(source string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ill[source] {
		h.log.Info("the demo market goes on", "after", source)
	}
	h.ill[source] = false
}

// position formats a position in the trading log.
func position(sequence int64) string { return "trading/0@" + strconv.FormatInt(sequence, 10) }

// record parses a position in a response or message. It returns the record's sequence, −1 if the text is not a
// position, and whether this message completes the record. In "trading/0@123.2", further messages of the same record
// follow.
func record(position string) (sequence int64, whole bool) {
	_, number, _ := strings.Cut(position, "@")
	number, _, part := strings.Cut(number, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return -1, false
	}
	return n, !part
}

// wait sleeps for a duration or until the context ends.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
