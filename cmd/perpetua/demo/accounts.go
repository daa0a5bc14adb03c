package demo

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// The broker and user of the demo.
const (
	brokerName = "demo"
	userName   = "demo"
)

// NewcomerFunds is the deposit of the newcomer, in USDC.
const NewcomerFunds = 100_000

const (
	// funds is the deposit at the start, in USDC. It is repeated when less than reserve is available.
	funds = 250_000
	// reserve is the minimum of available funds, in USDC.
	reserve = 100_000
)

// customers returns all accounts of the demo.
func customers() []string {
	var all []string
	for _, k := range makers() {
		all = append(all, k.customer)
	}
	return append(all, takers()...)
}

// password derives the password of the demo's user from the operator's, so that it need not be stored.
func password(operators string) string {
	sum := hmac.New(sha256.New, []byte(operators))
	sum.Write([]byte("perpetua demo user"))
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// open creates the missing objects of the demo: broker, user, customers and their first deposits.
func (d *demo) open(ctx context.Context) error {
	if err := d.admin(ctx, http.MethodPost, "/admin/v1/brokers", map[string]any{"broker": brokerName, "name": "Demo market"}); err != nil {
		return err
	}
	err := d.makeUser(ctx, http.MethodPost, "/admin/v1/users", map[string]any{"username": userName, "password": d.user.password,
		"broker": brokerName, "scopes": []string{"trade", "read"}})
	if err != nil {
		return err
	}
	if err := d.logIn(ctx); err != nil {
		return err
	}
	if err := d.welcome(ctx); err != nil {
		return err
	}
	for _, customer := range customers() {
		r, err := d.rest.do(ctx, d.user, http.MethodPost, "/v1/customers", map[string]any{"customer_code": customer}, 0)
		if err != nil {
			return err
		}
		if err := r.err("customer " + customer); err != nil && r.status != http.StatusConflict {
			return err
		}
		if err := d.deposit(ctx, customer, "demo-first"); err != nil {
			return err
		}
	}
	return nil
}

// admin sends a request that can succeed only once. An earlier success counts.
func (d *demo) admin(ctx context.Context, method, path string, body any) error {
	_, err := d.once(ctx, method, path, body)
	return err
}

// makeUser is admin for the demo's user. It stores the position from which on the user can log in.
func (d *demo) makeUser(ctx context.Context, method, path string, body any) error {
	r, err := d.once(ctx, method, path, body)
	if err == nil {
		d.user.made = r.position
	}
	return err
}

func (d *demo) once(ctx context.Context, method, path string, body any) (reply, error) {
	r, err := d.rest.do(ctx, d.operator, method, path, body, 0)
	if err != nil || r.status == http.StatusConflict {
		return r, err
	}
	return r, r.err(method + " " + path)
}

// welcome registers and funds the newcomer, once. A changed password of the broker is only logged, because the demo can
// trade without the newcomer.
func (d *demo) welcome(ctx context.Context) error {
	n := d.newcomer
	if n.Customer == "" {
		return nil
	}
	broker := &user{name: n.Broker, password: n.Password}
	if _, err := d.rest.login(ctx, broker); errors.Is(err, errCredentials) {
		d.log.Warn("nobody is registered to trade with by hand: the broker's password is another", "broker", n.Broker)
		return nil
	}
	r, err := d.rest.do(ctx, broker, http.MethodPost, "/v1/customers", map[string]any{"customer_code": n.Customer, "name": "Yours to trade with"}, 0)
	if err != nil {
		return err
	}
	if err := r.err("customer " + n.Customer); err != nil && r.status != http.StatusConflict {
		return err
	}
	if err := d.depositOf(ctx, n.Customer, NewcomerFunds, "demo-newcomer"); err != nil {
		return err
	}
	d.broker = broker
	return d.introduce(ctx)
}

// logIn logs in the demo's user. If the operator's password has changed since the user was created, logIn changes the
// user's password first.
func (d *demo) logIn(ctx context.Context) error {
	_, err := d.rest.login(ctx, d.user)
	if errors.Is(err, errCredentials) {
		if err := d.makeUser(ctx, http.MethodPatch, "/admin/v1/users/"+userName, map[string]any{"password": d.user.password}); err != nil {
			return err
		}
		_, err = d.rest.login(ctx, d.user)
	}
	if errors.Is(err, errCredentials) {
		return err
	}
	return nil // requests are repeated until other errors are over
}

func (d *demo) deposit(ctx context.Context, customer, reference string) error {
	return d.depositOf(ctx, customer, funds, reference)
}

func (d *demo) depositOf(ctx context.Context, customer string, amount int, reference string) error {
	r, err := d.rest.do(ctx, d.operator, http.MethodPost, "/admin/v1/customers/"+customer+"/deposits",
		map[string]any{"currency": "USDC", "amount": strconv.Itoa(amount), "reference_id": reference}, 0)
	if err != nil {
		return err
	}
	d.last = max(d.last, r.sequence)
	return r.err("deposit for " + customer)
}

// topUp makes a deposit for every customer with less than the reserve available.
func (d *demo) topUp(ctx context.Context) error {
	for _, customer := range customers() {
		r, err := d.rest.do(ctx, d.user, http.MethodGet, "/v1/customers/"+customer+"/account-summary", nil, d.last)
		if err == nil {
			err = r.err("account of " + customer)
		}
		if err != nil {
			return err
		}
		var summary []struct {
			Available fixed.Money `json:"available_margin"`
		}
		if err := json.Unmarshal(r.body, &summary); err != nil || len(summary) == 0 {
			return fmt.Errorf("account of %s: %.200s", customer, r.body)
		}
		if summary[0].Available >= reserve*fixed.Money(fixed.Pow10(8)) {
			continue
		}
		if err := d.deposit(ctx, customer, d.unique("demo")); err != nil {
			return err
		}
	}
	return nil
}
