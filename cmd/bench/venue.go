package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// venue is a `perpetua run` in a separate process and folder, with funded customers.
type venue struct {
	dir       string
	cmd       *exec.Cmd
	log       *os.File
	exited    chan struct{}
	ended     func()   // what it runs on, to be stopped after it; nil for nothing
	REST      string   `json:"rest"`
	WebSocket string   `json:"websocket"`
	Kafka     []string `json:"kafka"`
	PID       int      `json:"pid"`
	Database  string   `json:"database_url"`
	Users     []struct{ Username, Password string }
	tokens    map[string]string
	positions map[string]string // by journal, from the latest response that named one
}

// All measures use one instrument and prices around one middle.
const (
	symbol    = "BTCUSDC_PERP"
	middle    = 65_000
	customers = 64
	funds     = "100000000"
)

func customerCode(n int) string { return fmt.Sprintf("BENCH-%02d", n%customers) }

// startVenue starts a venue in a folder, with the default settings of `perpetua run` and args, and waits until it is
// ready.
func (b *bench) startVenue(ctx context.Context, dir string, args ...string) (*venue, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	args = append([]string{"run", "--data", dir, "--listen", "127.0.0.1:0", "--demo=false"}, args...)
	cmd, log, err := b.command(ctx, "venue", b.binary, args...)
	if err != nil {
		return nil, err
	}
	v := &venue{dir: dir, cmd: cmd, log: log, exited: make(chan struct{}), tokens: make(map[string]string), positions: make(map[string]string)}
	path := filepath.Join(dir, "run.json")
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a venue: %w", err)
	}
	go func() {
		_ = cmd.Wait()
		close(v.exited)
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if content, err := os.ReadFile(path); err == nil && json.Unmarshal(content, v) == nil && v.PID == cmd.Process.Pid {
			return v, nil
		}
		select {
		case <-v.exited:
			return nil, fmt.Errorf("the venue ended before it was ready%s", tail(log.Name()))
		case <-ctx.Done():
			<-v.exited
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

// newVenue starts a venue in a new folder and funds its customers.
func (b *bench) newVenue(ctx context.Context, args ...string) (*venue, error) {
	dir, err := os.MkdirTemp(b.dir, "venue-*")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	v, err := b.startVenue(ctx, dir, args...)
	if err != nil {
		return nil, err
	}
	if err := v.fund(ctx); err != nil {
		v.stop()
		return nil, err
	}
	return v, nil
}

// stop stops the venue as Ctrl-C does.
func (v *venue) stop() {
	_ = v.cmd.Process.Signal(os.Interrupt)
	<-v.exited
	v.log.Close()
	if v.ended != nil {
		v.ended()
	}
}

// discard ends the venue and removes its folder.
func (v *venue) discard() {
	v.stop()
	os.RemoveAll(v.dir)
}

func (v *venue) fund(ctx context.Context) error {
	if _, err := v.do(ctx, "operator", http.MethodPost, "/admin/v1/index-prices/"+symbol, map[string]string{"price": fmt.Sprint(middle)}); err != nil {
		return err
	}
	for n := range customers {
		code := customerCode(n)
		if _, err := v.do(ctx, "broker-a", http.MethodPost, "/v1/customers", map[string]string{"customer_code": code}); err != nil {
			return err
		}
		if _, err := v.do(ctx, "operator", http.MethodPost, "/admin/v1/customers/"+code+"/deposits",
			map[string]string{"currency": "USDC", "amount": funds, "reference_id": "fund-" + code}); err != nil {
			return err
		}
	}
	return nil
}

// do sends a request and returns the response's body. Any status other than 2xx is an error.
func (v *venue) do(ctx context.Context, user, method, path string, body any) ([]byte, error) {
	token, err := v.token(ctx, user)
	if err != nil {
		return nil, err
	}
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	r, err := http.NewRequestWithContext(ctx, method, v.REST+path, content)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if at := v.positions[journalOf(path)]; method == http.MethodGet && at != "" {
		r.Header.Set("X-Min-Log-Position", at)
	}
	return v.send(r)
}

func (v *venue) send(r *http.Request) ([]byte, error) {
	content, header, err := sendOnce(http.DefaultClient, r)
	if err != nil {
		return content, err
	}
	if p := header.Get("X-Log-Position"); r.Method != http.MethodGet && p != "" {
		name, _, _ := strings.Cut(p, "/")
		v.positions[name] = p
	}
	return content, nil
}

// sendOnce sends a request and returns the response's body and header. Any status other than 2xx is an error.
func sendOnce(client *http.Client, r *http.Request) ([]byte, http.Header, error) {
	answer, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	content, err := readBody(answer)
	if err == nil && answer.StatusCode/100 != 2 {
		err = &statusError{r.Method + " " + r.URL.Path, answer.StatusCode, content}
	}
	return content, answer.Header, err
}

// readBody returns the body of a response. If the response has a Content-Length, readBody allocates the memory once, as
// the rivals do that know how many rows they read. A slice that grows to a page of candles would be copied many times.
func readBody(answer *http.Response) ([]byte, error) {
	if answer.ContentLength < 0 {
		return io.ReadAll(answer.Body)
	}
	content := make([]byte, answer.ContentLength)
	n, err := io.ReadFull(answer.Body, content)
	return content[:n], err
}

// journalOf returns the journal that a response is based on.
func journalOf(path string) string {
	if strings.HasPrefix(path, "/api/v1/") {
		return "onboarding"
	}
	return "trading"
}

// statusError reports an unexpected status.
type statusError struct {
	request string
	status  int
	body    []byte
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s: status %d: %.500s", e.request, e.status, e.body)
}

// token returns an access token of a preset user.
func (v *venue) token(ctx context.Context, user string) (string, error) {
	if t := v.tokens[user]; t != "" {
		return t, nil
	}
	form := url.Values{"username": {user}}
	for _, u := range v.Users {
		if u.Username == user {
			form.Set("password", u.Password)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, v.REST+"/auth/jwt/login", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	content, err := v.send(r)
	if err != nil {
		return "", err
	}
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		return "", err
	}
	v.tokens[user] = answer.AccessToken
	return answer.AccessToken, nil
}

// caughtUp waits until the read models include every acknowledged record, and returns how long that took.
func (v *venue) caughtUp(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	if _, err := v.do(ctx, "operator", http.MethodPost, "/admin/v1/index-prices/"+symbol, map[string]string{"price": fmt.Sprint(middle)}); err != nil {
		return 0, err
	}
	return v.rowsHold(ctx, start, "/v1/customers")
}

// rowsHold waits until a path's rows include the last write, and returns how long that took.
func (v *venue) rowsHold(ctx context.Context, start time.Time, path string) (time.Duration, error) {
	for {
		_, err := v.do(ctx, "broker-a", http.MethodGet, path, nil)
		var status *statusError
		if errors.As(err, &status) && status.status == http.StatusPreconditionFailed {
			continue // the server waited two seconds before that response
		}
		return time.Since(start), err
	}
}
