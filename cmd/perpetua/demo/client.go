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
	// tokenAge is when a token is replaced, well before it expires.
	tokenAge = 20 * time.Minute
	// patience is how often a request is repeated that the server fails to answer, other than by asking to come back.
	patience = 5
)

// user is somebody who logs in.
type user struct {
	name, password string
	made           string // the position in the log that the user, or the password, was made at; "" where nobody knows

	mu    sync.Mutex
	token string
	since time.Time
}

// client speaks REST. A request that is not answered, or answered with 429 or 503, is repeated after a while, the
// longer the more often: every request of the demo may be sent again.
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

// reply is what a request was answered with.
type reply struct {
	status   int
	body     []byte
	sequence int64 // of the record that the answer is about or as of, −1 if it says nothing
	position string
}

// code is that of a problem.
func (r reply) code() string {
	var problem struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(r.body, &problem)
	return problem.Code
}

// err is what the reply says went wrong, nil for success.
func (r reply) err(what string) error {
	if r.status < 300 {
		return nil
	}
	return fmt.Errorf("%s: %d %.300s", what, r.status, r.body)
}

// do sends a request as a user, nil for nobody, until it is answered. asOf makes a read wait until it shows that record;
// 0 for none. The only error is the context's.
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

// try sends a request once. after is how long the server asks to wait.
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

// errCredentials says that a password is wrong.
var errCredentials = errors.New("wrong username or password")

// login returns the user's token, a new one if there is none or it is old.
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
	// Logins follow the log. Without the position, one right after the user was made is told that the password is wrong.
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

// health logs trouble when it begins and when it is over, for each of its places.
type health struct {
	log *slog.Logger

	mu  sync.Mutex
	ill map[string]bool
}

// The places of trouble.
const (
	requests = "requests"
	socket   = "socket"
)

func (h *health) unwell(place string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ill[place] {
		h.log.Warn("the demo market waits for the venue", "for", place, "error", err)
	}
	h.ill[place] = true
}

func (h *health) well(place string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ill[place] {
		h.log.Info("the demo market goes on", "after", place)
	}
	h.ill[place] = false
}

// position is the text of a position in the trading log.
func position(sequence int64) string { return "trading/0@" + strconv.FormatInt(sequence, 10) }

// record reads a position as an answer or a message carries it: the record's sequence, −1 if it is no position, and
// whether the record is told in full with it. "trading/0@123.2" is that of a message which others of its record follow.
func record(position string) (sequence int64, whole bool) {
	_, number, _ := strings.Cut(position, "@")
	number, _, part := strings.Cut(number, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return -1, false
	}
	return n, !part
}

// wait lets time pass.
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
