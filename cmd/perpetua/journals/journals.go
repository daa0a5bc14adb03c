// Package journals is the one table of the journals: everything that a node or a tool has to know of each, found by its
// name. What else there is of a journal (an owner, a fold, rows, snapshots, tools) follows from its entry, so a new
// journal is a new entry. The order of the entries means nothing.
package journals

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
)

// The journals that handlers and seeds are written for. They have to be in a node's table.
const (
	Identity   = "identity"
	Trading    = "trading"
	Onboarding = "onboarding"
)

// Journal is the entry of one journal. All but the rules may be left out.
type Journal struct {
	Rules decide.Rules // which also say its name
	// Codec is how its states are saved. Without one there are no snapshots, and every fold begins with genesis.
	Codec decide.StateCodec
	// Projections are what is kept of it in Postgres, in the order in which a runner must apply them.
	Projections []projections.Projection
	// Compare holds its rows against a fold of it at a sequence and returns what differs; readmodels.ErrMoved if the rows
	// stand elsewhere.
	Compare func(ctx context.Context, pool *pgxpool.Pool, state decide.State, sequence int64) ([]string, error)
	// Payloads knows the payloads of its commands.
	Payloads *decide.Payloads
	// FromNodes are the types of its commands that other nodes may send to its owner: those that make a venue before there
	// is a user to make it, and those that tell what a node itself has seen.
	FromNodes []string
}

// Name returns the name of the journal.
func (j Journal) Name() string { return j.Rules.Journal() }

// Table is the entries of all journals.
type Table []Journal

// All returns the journals of this build.
func All() Table {
	return Table{
		{
			Rules:       identity.Rules(),
			Codec:       identity.Codec(),
			Projections: readmodels.Identity(),
			Payloads:    identity.Payloads(),
			FromNodes: []string{identity.CommandAddSigningKey, identity.CommandRegisterBroker, identity.CommandRegisterUser,
				identity.CommandChangeUser, identity.CommandUseAPIKey, identity.CommandReplaceKeys},
			Compare: func(ctx context.Context, pool *pgxpool.Pool, state decide.State, sequence int64) ([]string, error) {
				return readmodels.CompareIdentity(ctx, pool, state.(*identity.State), sequence)
			},
		},
		{
			Rules:       trading.Rules(),
			Codec:       trading.Codec(),
			Projections: readmodels.Trading(),
			Compare: func(ctx context.Context, pool *pgxpool.Pool, state decide.State, sequence int64) ([]string, error) {
				return readmodels.Compare(ctx, pool, state.(*trading.State), sequence)
			},
			Payloads: trading.Payloads(),
			FromNodes: []string{trading.CommandListInstrument, trading.CommandRegisterCustomer, trading.CommandOpenSession, trading.CommandKeepGateway,
				trading.CommandEndSession, decide.CommandActivateRules},
		},
		{
			Rules:       onboarding.Rules(),
			Codec:       onboarding.Codec(),
			Projections: readmodels.Onboarding(),
			Compare: func(ctx context.Context, pool *pgxpool.Pool, state decide.State, sequence int64) ([]string, error) {
				return readmodels.CompareOnboarding(ctx, pool, state.(*onboarding.State), sequence)
			},
			Payloads: onboarding.Payloads(),
			FromNodes: []string{onboarding.CommandCreateQuestionnaire, onboarding.CommandAddVersion, onboarding.CommandPublishQuestionnaire,
				onboarding.CommandCreateEntitlement, onboarding.CommandRecordAttempt, onboarding.CommandRecordAttempts, onboarding.CommandConfirmKey,
				onboarding.CommandAddDocument, decide.CommandActivateRules},
		},
	}
}

// Of returns the entry of a journal. A name that is not in the table is an error in the words of the command line.
func (t Table) Of(name string) (Journal, error) {
	i := slices.IndexFunc(t, func(j Journal) bool { return j.Name() == name })
	if i < 0 {
		return Journal{}, settings.Usagef("there is no journal %q", name)
	}
	return t[i], nil
}

// Names returns the names of all journals.
func (t Table) Names() []string {
	names := make([]string, len(t))
	for i, j := range t {
		names[i] = j.Name()
	}
	return names
}

// Rules returns the rules of all journals.
func (t Table) Rules() []decide.Rules {
	rules := make([]decide.Rules, len(t))
	for i, j := range t {
		rules[i] = j.Rules
	}
	return rules
}

// Newest returns the highest rules that this build knows, by journal.
func (t Table) Newest() map[string]int {
	out := make(map[string]int, len(t))
	for _, j := range t {
		out[j.Name()] = j.Rules.Newest()
	}
	return out
}
