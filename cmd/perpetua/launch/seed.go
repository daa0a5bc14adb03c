package launch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/node"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/login"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// venueBroker is the venue itself as a broker, and the first one to be registered.
const venueBroker = "venue"

// seeder activates the newest rules of a new venue and creates the first brokers, users, signing key and instruments,
// and with the demo the questionnaires and entitlements. Its commands have fixed keys and create objects that can exist
// only once, so they apply once even if several nodes send them repeatedly.
type seeder struct {
	node *node.Node
	demo bool
}

// seedActor is the actor of these commands.
func seedActor() decide.Actor { return decide.Actor{System: "seed"} }

// seed creates what is missing and returns the users with their passwords, which are stored at usersPath.
func (s *seeder) seed(ctx context.Context, usersPath string) ([]local.User, error) {
	if err := s.newestRules(ctx); err != nil {
		return nil, err
	}
	if err := s.signingKey(ctx); err != nil {
		return nil, err
	}
	for _, b := range []identity.RegisterBroker{
		{Broker: venueBroker, Name: "The venue"}, {Broker: "alpha", Name: "Alpha"}, {Broker: "beta", Name: "Beta"},
	} {
		var there bool
		if err := s.viewIdentity(func(state *identity.State) { _, there = state.Broker(b.Broker) }); err != nil {
			return nil, err
		}
		if err := s.once(ctx, there, journals.Identity, identity.CommandRegisterBroker, b.Broker, &b); err != nil {
			return nil, err
		}
	}
	users, err := s.users(ctx, usersPath)
	if err != nil {
		return nil, err
	}
	if err := s.instruments(ctx); err != nil {
		return nil, err
	}
	return users, s.onboarding(ctx)
}

// newestRules activates the newest rules of a new venue's journals. In an existing venue an operator activates rules:
// another node may not support them and would stop at that record.
func (s *seeder) newestRules(ctx context.Context) error {
	// Brokers are registered after the rules are activated. So if the first start is interrupted in between, the next
	// one activates the rules again.
	var there bool
	err := s.viewIdentity(func(state *identity.State) { _, there = state.Broker(venueBroker) })
	if err != nil || there {
		return err
	}
	for name, newest := range journals.All().Newest() {
		fold, err := s.node.Fold(name)
		if err != nil {
			return err
		}
		var active int
		fold.View(func(state decide.State, _ record.Position) {
			active = state.(decide.Facts).ActiveRules()
		})
		for n := active + 1; n <= newest; n++ {
			if err := s.once(ctx, false, name, decide.CommandActivateRules, fmt.Sprint("rules-", n), &decide.ActivateRules{Rules: n}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *seeder) signingKey(ctx context.Context) error {
	var there bool
	err := s.viewIdentity(func(state *identity.State) { there = len(state.Keys()) > 0 })
	if err != nil || there {
		return err
	}
	key, err := login.NewSigningKey(s.node.Box)
	if err != nil {
		return fmt.Errorf("signing key: %w", err)
	}
	return s.once(ctx, false, journals.Identity, identity.CommandAddSigningKey, "first", key)
}

// users registers the preset users that the identity journal lacks. Passwords are written to the folder before the
// users are registered, so that a crash in between loses none. If the journal has the users and the folder has no
// passwords, the users get new passwords, which are written once they are in force. If the venue has no operator then who can
// change users, its first one becomes that again.
func (s *seeder) users(ctx context.Context, path string) ([]local.User, error) {
	users, fresh, err := local.KeptUsers(path)
	if err != nil {
		return nil, err
	}
	known := 0
	err = s.viewIdentity(func(state *identity.State) {
		for _, u := range users {
			if _, ok := state.User(u.Username); ok {
				known++
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if fresh && known == 0 {
		if err := local.WriteUsers(path, users); err != nil {
			return nil, err
		}
	}
	for _, u := range users {
		if err := s.user(ctx, u, fresh); err != nil {
			return nil, err
		}
	}
	if fresh && known > 0 {
		s.node.Logger.Warn("the file of the first users' passwords was missing: these users have new passwords", "file", path, "users", known)
		return users, local.WriteUsers(path, users)
	}
	return users, nil
}

func (s *seeder) user(ctx context.Context, u local.User, fresh bool) error {
	var there bool
	err := s.viewIdentity(func(state *identity.State) { _, there = state.User(u.Username) })
	if err != nil || there && !fresh {
		return err
	}
	hash, err := login.SealPassword(s.node.Box, u.Username, u.Password, s.node.Settings.PasswordMemory)
	if err != nil {
		return fmt.Errorf("password of %s: %w", u.Username, err)
	}
	if there {
		change := &identity.ChangeUser{Username: u.Username, PasswordHash: hash}
		if err := s.restore(u, change); err != nil {
			return err
		}
		return s.send(ctx, journals.Identity, decide.Command{ID: operation.NewID(), Type: identity.CommandChangeUser, Actor: seedActor(), Payload: change})
	}
	return s.once(ctx, false, journals.Identity, identity.CommandRegisterUser, u.Username, &identity.RegisterUser{
		Username: u.Username, Broker: u.Broker, Scopes: u.Scopes, IsActive: true, IsVerified: true, PasswordHash: hash})
}

// restore makes a change of the preset operator activate it and lift its limit to one account, unless the venue has an active operator
// of all accounts. Otherwise no one could activate a user any more.
func (s *seeder) restore(u local.User, change *identity.ChangeUser) error {
	if !slices.Contains(u.Scopes, identity.ScopeOperator) {
		return nil
	}
	return s.viewIdentity(func(state *identity.State) {
		for _, other := range state.Users() {
			if other.IsActive && other.Has(identity.ScopeOperator) && other.CustomerCode == "" {
				return
			}
		}
		active := true
		change.IsActive, change.Scopes, change.CustomerCode = &active, u.Scopes, new(string)
	})
}

func (s *seeder) instruments(ctx context.Context) error {
	venue, err := s.node.Fold(journals.Trading)
	if err != nil {
		return err
	}
	for _, i := range presetInstruments(s.demo) {
		var there bool
		venue.View(func(state decide.State, _ record.Position) {
			_, there = state.(*trading.State).Instrument(i.Symbol)
		})
		if err := s.once(ctx, there, journals.Trading, trading.CommandListInstrument, i.Symbol, &trading.ListInstrument{Instrument: i}); err != nil {
			return err
		}
	}
	return nil
}

func (s *seeder) viewIdentity(view func(*identity.State)) error {
	fold, err := s.node.Fold(journals.Identity)
	if err != nil {
		return err
	}
	login.View(fold, view)
	return nil
}

// once submits a command with a fixed key, unless the object exists (there). If another node was faster, that is a
// success.
func (s *seeder) once(ctx context.Context, there bool, name, kind, key string, payload any) error {
	if there {
		return nil
	}
	print := sha256.Sum256([]byte(kind + " " + key))
	err := s.send(ctx, name, decide.Command{ID: operation.NewID(), Type: kind, Actor: seedActor(), Payload: payload,
		Metadata: decide.Metadata{Key: "seed." + key, Fingerprint: hex.EncodeToString(print[:16])}})
	var refused *submit.RefusedError
	if errors.As(err, &refused) && refused.Refusal.Kind == decide.Conflict {
		return nil
	}
	return err
}

// send submits a command until it is decided, and waits until the follower of the journal has applied the record.
func (s *seeder) send(ctx context.Context, name string, c decide.Command) error {
	fold, err := s.node.Fold(name)
	if err != nil {
		return err
	}
	for {
		r, err := s.node.Submitter().Submit(ctx, name, c)
		var busy *submit.NotAcceptedError
		var unknown *submit.OutcomeUnknownError // repeating the command is safe: it has a fixed key or the same effect
		switch {
		case errors.As(err, &busy), errors.As(err, &unknown):
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", c.Type, err)
		}
		return fold.Wait(ctx, r.Position.Sequence)
	}
}

// presetInstruments returns the instruments that are listed at the first start, in order. Only in the demo do index
// prices become stale, because only the demo updates them. The demo also has one instrument with funding every minute,
// so that users can observe it.
func presetInstruments(demo bool) []market.Instrument {
	perpetual := func(underlying, tick, step, most string) market.Instrument {
		i := market.Instrument{
			Symbol: underlying + "USDC_PERP", Underlying: underlying, QuoteCurrency: "USDC", SettlementCurrency: "USDC",
			Status: market.Open, PriceTick: exact(tick), AmountStep: exact(step), MinAmount: exact(step), MaxAmount: exact(most),
			ContractSize: exact("1"), InitMarginReq: exact("5.00"), MaintMarginReq: exact("2.50"), MaxLeverage: 13,
			FundingIntervalSeconds: 3600, PriceBand: exact("5.00"), LimitBand: exact("20.00"), MakerFee: exact("2"), TakerFee: exact("5"),
		}
		if demo {
			i.IndexStaleSeconds = 10
		}
		return i
	}
	all := []market.Instrument{
		perpetual("BTC", "0.1", "0.001", "1000"),
		perpetual("ETH", "0.01", "0.01", "10000"),
		perpetual("SOL", "0.001", "0.1", "100000"),
	}
	if demo {
		all[2].FundingIntervalSeconds = 60
	}
	return all
}

// exact parses a decimal constant of this program.
func exact(s string) fixed.Decimal {
	d, err := fixed.ParseDecimal(s)
	if err != nil {
		panic(fmt.Sprintf("perpetua: %q is no decimal: %v", s, err))
	}
	return d
}
