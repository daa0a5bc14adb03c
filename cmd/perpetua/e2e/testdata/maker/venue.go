package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/shopspring/decimal"

	"example.org/maker/client"
)

// patience is how long the maker waits for the venue, which may be killed and started again meanwhile.
const patience = 3 * time.Minute

// venue is the REST interface, by the generated client.
type venue struct {
	runFile  string
	customer string
	key      string // the API key
}

// addresses are what run.json says.
type addresses struct {
	REST      string `json:"rest"`
	WebSocket string `json:"websocket"`
	Users     []struct {
		Username string `json:"username"`
		Password string `json:"password"`
	} `json:"users"`
}

// at reads run.json: after a restart the venue is at another address.
func (v *venue) at() (a addresses, err error) {
	text, err := os.ReadFile(v.runFile)
	if err != nil {
		return a, notNow{err} // it is there once the venue is ready
	}
	return a, json.Unmarshal(text, &a)
}

// client returns a client of the venue where it is now, which sends a token.
func (v *venue) client(token string) (*client.ClientWithResponses, error) {
	a, err := v.at()
	if err != nil {
		return nil, err
	}
	authorize := func(_ context.Context, r *http.Request) error {
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return nil
	}
	return client.NewClientWithResponses(a.REST, client.WithRequestEditorFn(authorize), client.WithHTTPClient(&http.Client{Timeout: 30 * time.Second}))
}

// notNow says that the venue did not answer, or not yet.
type notNow struct{ error }

// insist calls the venue until it answers.
func insist(ctx context.Context, call func() error) error {
	for end := time.Now().Add(patience); ; {
		err := call()
		var later notNow
		if err == nil || !errors.As(err, &later) || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// answered sorts answers: wanted, to be asked for again, and wrong.
func answered(response *http.Response, body []byte, want int) error {
	switch response.StatusCode {
	case want:
		return nil
	case http.StatusServiceUnavailable, http.StatusPreconditionFailed, http.StatusTooManyRequests:
		return notNow{fmt.Errorf("%d %s", response.StatusCode, body)}
	}
	return fmt.Errorf("%s %s: %d %s", response.Request.Method, response.Request.URL.Path, response.StatusCode, body)
}

// makeKey logs in as a user and makes an API key for the account alone.
func (v *venue) makeKey(ctx context.Context, username string) error {
	return insist(ctx, func() error {
		a, err := v.at()
		if err != nil {
			return err
		}
		form := client.LoginForm{Username: username}
		for _, u := range a.Users {
			if u.Username == username {
				form.Password = u.Password
			}
		}
		anonymous, err := v.client("")
		if err != nil {
			return err
		}
		login, err := anonymous.LoginWithFormdataBodyWithResponse(ctx, nil, form)
		if err != nil {
			return notNow{err}
		}
		if err := answered(login.HTTPResponse, login.Body, http.StatusOK); err != nil {
			return err
		}
		person, err := v.client(login.JSON200.AccessToken)
		if err != nil {
			return err
		}
		entry := client.APIKeyEntry{Name: "market maker", CustomerCode: &v.customer, Scopes: []client.Scope{client.ScopeTrade, client.ScopeRead}}
		made, err := person.CreateAPIKeyWithResponse(ctx, nil, entry)
		if err != nil {
			return notNow{err}
		}
		if err := answered(made.HTTPResponse, made.Body, http.StatusCreated); err != nil {
			return err
		}
		v.key = *made.JSON201.Key
		return nil
	})
}

// instruments returns the instruments that are open, by symbol.
func (v *venue) instruments(ctx context.Context) (all []client.Instrument, err error) {
	return all, insist(ctx, func() error {
		c, err := v.client(v.key)
		if err != nil {
			return err
		}
		got, err := c.ListInstrumentsWithResponse(ctx, nil)
		if err != nil {
			return notNow{err}
		}
		if err := answered(got.HTTPResponse, got.Body, http.StatusOK); err != nil {
			return err
		}
		all = *got.JSON200
		return nil
	})
}

// state returns what the venue says of the account now.
func (v *venue) state(ctx context.Context) (s *state, err error) {
	return s, insist(ctx, func() error {
		c, err := v.client(v.key)
		if err != nil {
			return err
		}
		got, err := c.GetStateWithResponse(ctx, v.customer, nil)
		if err != nil {
			return notNow{err}
		}
		if err := answered(got.HTTPResponse, got.Body, http.StatusOK); err != nil {
			return err
		}
		s, err = newState(got.JSON200)
		return err
	})
}

func newState(a *client.AccountState) (*state, error) {
	s := &state{position: a.Position, positions: make(map[string]decimal.Decimal), balance: decimal.RequireFromString(a.AccountSummaries[0].Balance)}
	var err error
	if s.sequence, err = sequenceOf(a.Position); err != nil {
		return nil, err
	}
	for _, o := range a.OpenOrders {
		s.orders = append(s.orders, orderOf(&o))
	}
	for _, p := range a.Positions {
		s.positions[p.Symbol] = decimal.RequireFromString(p.Amount)
	}
	return s, nil
}

// orderOf is an order of the REST interface as the topic orders has it.
func orderOf(o *client.Order) order {
	out := order{Code: o.Code, Symbol: o.Symbol, Action: string(o.Action), Status: string(o.Status), Amount: decimal.RequireFromString(o.Amount),
		FilledAmount: decimal.RequireFromString(o.FilledAmount), FilledQuote: decimal.RequireFromString(o.FilledQuote),
		ReferenceID: o.ReferenceId, Sequence: o.Sequence}
	if o.LimitPrice != nil {
		price := decimal.RequireFromString(*o.LimitPrice)
		out.LimitPrice = &price
	}
	return out
}

// trades returns the codes of all trades of the account, oldest first.
func (v *venue) trades(ctx context.Context) (codes []string, err error) {
	size, ascending := 1000, client.ListTradesParamsSort("asc")
	params := &client.ListTradesParams{PageSize: &size, Sort: &ascending}
	for more := true; more; {
		err := insist(ctx, func() error {
			c, err := v.client(v.key)
			if err != nil {
				return err
			}
			got, err := c.ListTradesWithResponse(ctx, v.customer, params)
			if err != nil {
				return notNow{err}
			}
			if err := answered(got.HTTPResponse, got.Body, http.StatusOK); err != nil {
				return err
			}
			for _, t := range got.JSON200.Records {
				codes = append(codes, t.Code)
			}
			more, params.After = got.JSON200.ResponseMetadata.HasNext, got.JSON200.ResponseMetadata.EndCursor
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return codes, nil
}
