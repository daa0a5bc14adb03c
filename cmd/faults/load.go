package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	requestTime = 12 * time.Second // a little more than a node waits for a command's outcome
	orderTime   = 2 * time.Minute  // after which a client gives up an order
	maxOpen     = 3000             // orders without an answer; beyond that no new ones are placed
	firstWait   = 100 * time.Millisecond
	longestWait = 2 * time.Second
	cancelEvery = 400 // a client cancels its resting orders after this many orders
)

// acceptance is the arrival of an answer that accepts an order.
type acceptance struct {
	at  time.Time
	api int // the API node that answered
}

// answer is the final outcome of an order as the client received it.
type answer struct {
	reference string
	code      string // of the order
	sequence  int64  // of its record
	rejected  bool
}

// load places orders at a steady rate, whether or not earlier ones were answered: while the venue does not answer,
// orders wait like those of real clients, and the first one that succeeds shows that the venue is back. An order
// without an answer, or with an answer that asks for a retry, is sent again with the same reference until its outcome
// is known.
type load struct {
	venue  *venue
	apis   []*node
	seed   uint64
	rate   int
	codes  []string // of the customers
	broker *token

	mu       sync.Mutex
	accepted []acceptance
	answers  []answer
	open     map[string]bool // orders that were sent and have no outcome yet, by reference
	unknown  []string        // references of orders that were given up
	lastWord []string        // result of the last attempt of each
	retries  int
	skipped  int              // orders not placed because too many had no answer
	strange  map[string]int   // number of answers that no client should receive, by answer
	codesOf  map[string]int64 // number of 503 answers, by code
}

// token is a login that is renewed regularly.
type token struct {
	v        *venue
	user     string
	mu       sync.Mutex
	value    string
	obtained time.Time
}

// tokenAge is the age at which a token is renewed, well before it expires.
const tokenAge = 20 * time.Minute

// get returns a token of the user. Any API node may issue it.
func (t *token) get(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.value != "" && time.Since(t.obtained) < tokenAge {
		return t.value, nil
	}
	var last error
	for _, api := range t.v.of("api") {
		asking, cancel := context.WithTimeout(ctx, requestTime)
		value, err := t.login(asking, api)
		cancel()
		if err == nil {
			t.value, t.obtained = value, time.Now()
			return value, nil
		}
		last = err
	}
	if t.value != "" && last != nil {
		return t.value, nil // the token is still valid for a while
	}
	return "", last
}

func (t *token) login(ctx context.Context, api *node) (string, error) {
	form := url.Values{"username": {t.user}, "password": {t.v.passwords[t.user]}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, api.url()+"/auth/jwt/login", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := t.v.http.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var body struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<16)).Decode(&body); err != nil {
		return "", fmt.Errorf("login of %s: %d: %w", t.user, response.StatusCode, err)
	}
	if body.Token == "" {
		return "", fmt.Errorf("login of %s: %d", t.user, response.StatusCode)
	}
	return body.Token, nil
}

// newLoad creates funded customers and sets an index price.
func newLoad(ctx context.Context, v *venue, o options) (*load, error) {
	l := &load{venue: v, apis: v.of("api"), seed: o.seed, rate: o.rate, broker: &token{v: v, user: "broker-a"}, open: make(map[string]bool),
		strange: make(map[string]int), codesOf: make(map[string]int64)}
	operator := &token{v: v, user: "operator"}
	if err := l.must(ctx, operator, "/admin/v1/index-prices/BTCUSDC_PERP", map[string]any{"price": "65000"}); err != nil {
		return nil, err
	}
	for i := range o.clients {
		code := fmt.Sprintf("C%d", i+1)
		l.codes = append(l.codes, code)
		if err := l.must(ctx, l.broker, "/v1/customers", map[string]any{"customer_code": code}); err != nil {
			return nil, err
		}
		deposit := map[string]any{"currency": "USDC", "amount": "50000000", "reference_id": "fund-" + code}
		if err := l.must(ctx, operator, "/admin/v1/customers/"+code+"/deposits", deposit); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// must sends a request of the setup until it succeeds. A node may not have seen a user that another node has created.
func (l *load) must(ctx context.Context, as *token, path string, body any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	for {
		r, err := l.send(ctx, as, l.apis[0], http.MethodPost, path, content, fmt.Sprintf("setup-%x", sha256.Sum256(content)))
		if err == nil && r.status < 300 {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("%d %.300s", r.status, r.body)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", path, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// reply is an HTTP response.
type reply struct {
	status   int
	body     []byte
	position string
	after    time.Duration
}

func (l *load) send(ctx context.Context, as *token, api *node, method, path string, body []byte, key string) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	bearer, err := as.get(ctx)
	if err != nil {
		return reply{}, err
	}
	request, err := http.NewRequestWithContext(ctx, method, api.url()+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key[:min(len(key), 64)])
	}
	response, err := l.venue.http.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	r := reply{status: response.StatusCode, position: response.Header.Get("X-Log-Position")}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		r.after = min(time.Duration(seconds)*time.Second, longestWait)
	}
	r.body, err = io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return r, err
}

// run places orders until the context ends, and then waits for the outcomes of the pending ones.
func (l *load) run(ctx context.Context) {
	var orders sync.WaitGroup
	defer orders.Wait()
	random := rand.New(rand.NewPCG(l.seed, 1))
	tick := time.NewTicker(time.Second / time.Duration(l.rate))
	defer tick.Stop()
	// Orders that are pending when the load ends are sent until their outcome is known.
	finishing := context.WithoutCancel(ctx)
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		customer := l.codes[i%len(l.codes)]
		if (i/len(l.codes)+1)%cancelEvery == 0 {
			orders.Go(func() { l.cancelAll(finishing, customer, i) })
			continue
		}
		reference := fmt.Sprintf("f-%d-%d", l.seed, i)
		body := orderBody(random, reference)
		if !l.begin(reference) {
			continue
		}
		orders.Go(func() { l.place(finishing, customer, reference, body, i) })
	}
}

// begin notes an order that is about to be sent. It reports false if too many have no answer.
func (l *load) begin(reference string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= maxOpen {
		l.skipped++
		return false
	}
	l.open[reference] = true
	return true
}

// orderBody draws an order near the index price, so that about half of them trade immediately.
func orderBody(random *rand.Rand, reference string) []byte {
	side, sign := "buy", -1
	if random.IntN(2) == 0 {
		side, sign = "sell", 1
	}
	price := 650000 + sign*(random.IntN(60)-30)
	body, _ := json.Marshal(map[string]any{"symbol": "BTCUSDC_PERP", "action": side, "type": "limit", "reference_id": reference,
		// Strings cannot fail to encode.
		"amount": fmt.Sprintf("0.%03d", 1+random.IntN(9)), "limit_price": fmt.Sprintf("%d.%d", price/10, price%10)})
	return body
}

// place sends an order until its outcome is known, or until it is given up.
func (l *load) place(ctx context.Context, customer, reference string, body []byte, i int) {
	ctx, cancel := context.WithTimeout(ctx, orderTime)
	defer cancel()
	wait := firstWait
	for attempt := 0; ; attempt++ {
		which := (i + attempt) % len(l.apis)
		r, err := l.send(ctx, l.broker, l.apis[which], http.MethodPost, "/v1/customers/"+customer+"/orders", body, "")
		if err == nil && l.settle(reference, r, which) {
			return
		}
		if err == nil {
			err = fmt.Errorf("%d %.200s", r.status, r.body)
		}
		l.mu.Lock()
		l.retries++
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			l.giveUp(reference, fmt.Sprintf("after %d attempts: %v", attempt+1, err))
			return
		case <-time.After(max(wait, r.after)):
		}
		wait = min(2*wait, longestWait)
	}
}

// settle records an answer. It reports whether the answer is the order's outcome.
func (l *load) settle(reference string, r reply, api int) bool {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r.status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		l.codesOf[problemCode(r.body)]++
		return false
	}
	a, err := readAnswer(reference, r)
	if err != nil {
		l.note(r)
		if !errors.Is(err, errNoOrder) {
			return false
		}
		delete(l.open, reference)
		return true
	}
	l.answers = append(l.answers, a)
	if r.status != http.StatusUnprocessableEntity {
		l.accepted = append(l.accepted, acceptance{now, api})
	}
	delete(l.open, reference)
	return true
}

// errNoOrder reports that the venue refused a request without creating an order, so it acknowledged nothing.
var errNoOrder = errors.New("no order came of the request")

// readAnswer reads the order in an answer: the body of a 200 or 201, or the rejected order in the problem of a 422. It returns an
// error if the answer is not about the order with the reference, or has no position in the log.
func readAnswer(reference string, r reply) (answer, error) {
	body := r.body
	switch r.status {
	case http.StatusOK, http.StatusCreated:
	case http.StatusUnprocessableEntity:
		var problem struct{ Order json.RawMessage }
		if json.Unmarshal(body, &problem) != nil || len(problem.Order) == 0 {
			return answer{}, errNoOrder
		}
		body = problem.Order
	default:
		return answer{}, fmt.Errorf("the status is %d", r.status)
	}
	var order struct {
		Code      string `json:"code"`
		Reference string `json:"reference_id"`
		Status    string `json:"status"`
	}
	if err := json.Unmarshal(body, &order); err != nil {
		return answer{}, err
	}
	if order.Reference != reference {
		return answer{}, fmt.Errorf("the order is %q", order.Reference)
	}
	_, text, _ := strings.Cut(r.position, "@")
	sequence, err := strconv.ParseInt(text, 10, 64)
	return answer{reference, order.Code, sequence, order.Status == "rejected"}, err
}

// note counts an answer that no client should receive.
func (l *load) note(r reply) { l.strange[fmt.Sprintf("%d %s", r.status, problemCode(r.body))]++ }

func problemCode(body []byte) string {
	var problem struct{ Code string }
	_ = json.Unmarshal(body, &problem) // without a problem, the code stays empty
	return problem.Code
}

func (l *load) giveUp(reference, last string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, reference)
	l.unknown = append(l.unknown, reference)
	l.lastWord = append(l.lastWord, last)
}

// cancelAll cancels a customer's resting orders, so that the book stays small.
func (l *load) cancelAll(ctx context.Context, customer string, i int) {
	ctx, cancel := context.WithTimeout(ctx, orderTime)
	defer cancel()
	for attempt := 0; ; attempt++ {
		r, err := l.send(ctx, l.broker, l.apis[(i+attempt)%len(l.apis)], http.MethodDelete, "/v1/customers/"+customer+"/orders", nil, fmt.Sprintf("cancel-%d", i))
		if err == nil && r.status == http.StatusOK {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(longestWait):
		}
	}
}

// longestGap returns the longest time between two accepted orders, of all gaps that ended after from and began before
// to. one is the longest such gap at any single API node. A gap that has not ended at to ends there.
func (l *load) longestGap(from, to time.Time) (all, one time.Duration) {
	l.mu.Lock()
	accepted := slices.Clone(l.accepted)
	l.mu.Unlock()
	slices.SortFunc(accepted, func(a, b acceptance) int { return a.at.Compare(b.at) })
	all = longest(accepted, from, to)
	for api := range l.apis {
		sameAPI := slices.DeleteFunc(slices.Clone(accepted), func(a acceptance) bool { return a.api != api })
		one = max(one, longest(sameAPI, from, to))
	}
	return all, one
}

// idle returns the names of the API nodes that accepted no order between two times. The victims are brokers and engines, so
// every API node must accept orders while one of these is away.
func (l *load) idle(from, to time.Time) (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, api := range l.apis {
		if !slices.ContainsFunc(l.accepted, func(a acceptance) bool { return a.api == i && a.at.After(from) && a.at.Before(to) }) {
			names = append(names, api.name)
		}
	}
	return names
}

// longest returns the longest time between two acceptances that overlaps from to to.
func longest(accepted []acceptance, from, to time.Time) time.Duration {
	last, gap := from, time.Duration(0)
	for _, a := range accepted {
		switch {
		case !a.at.After(from):
			last = a.at
			continue
		case a.at.After(to):
			return max(gap, a.at.Sub(last))
		}
		gap, last = max(gap, a.at.Sub(last)), a.at
	}
	return max(gap, to.Sub(last))
}

// acceptedSince returns how many orders were accepted after a time.
func (l *load) acceptedSince(t time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, a := range slices.Backward(l.accepted) {
		if !a.at.After(t) {
			break
		}
		n++
	}
	return n
}

// awaitAccepted waits until the venue has accepted orders after a time.
func (l *load) awaitAccepted(ctx context.Context, since time.Time, orders int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for l.acceptedSince(since) < orders {
		select {
		case <-ctx.Done():
			return errors.New("the venue does not accept orders")
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}
