// Package journals is the table of the journals. It holds everything that nodes and tools need for each journal, by
// name: an owner, a fold, rows, snapshots and tools follow from the entry, so a new journal needs only a new entry. The
// order of the entries has no meaning.
package journals

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
)

// The names of the journals that handlers and seeds use. A node's table must contain them.
const (
	Identity   = "identity"
	Trading    = "trading"
	Onboarding = "onboarding"
)

// Journal is the entry of one journal. Only Rules is required.
type Journal struct {
	Rules decide.Rules // contains the journal's name
	// Codec encodes the journal's states. If it is nil, the journal has no snapshots, and every fold starts at genesis.
	Codec decide.StateCodec
	// Projections write the journal's rows in Postgres, in the order in which a runner must apply them.
	Projections []projections.Projection
	// Compare compares the journal's rows with a fold at a sequence and returns the differences. It returns
	// readmodels.ErrMoved if the rows are at another sequence.
	Compare func(ctx context.Context, pool *pgxpool.Pool, state decide.State, sequence int64) ([]string, error)
	// Payloads creates the payloads of the journal's commands.
	Payloads *decide.Payloads
}

// Name returns the name of the journal.
func (j Journal) Name() string { return j.Rules.Journal() }

// Table holds the entries of all journals.
type Table []Journal

// All returns the journals of this build.
func All() Table {
	return Table{
		{
			Rules:       identity.Rules(),
			Codec:       identity.Codec(),
			Projections: readmodels.Identity(),
			Payloads:    identity.Payloads(),
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
		},
		{
			Rules:       onboarding.Rules(),
			Codec:       onboarding.Codec(),
			Projections: readmodels.Onboarding(),
			Compare: func(ctx context.Context, pool *pgxpool.Pool, state decide.State, sequence int64) ([]string, error) {
				return readmodels.CompareOnboarding(ctx, pool, state.(*onboarding.State), sequence)
			},
			Payloads: onboarding.Payloads(),
		},
	}
}

// Of returns the entry of a journal. If there is none, the error is a usage error.
func (t Table) Of(name string) (Journal, error) {
	i := slices.IndexFunc(t, func(j Journal) bool { return j.Name() == name })
	if i < 0 {
		return Journal{}, settings.Usagef("there is no journal %q: they are %s", name, strings.Join(t.Names(), ", "))
	}
	return t[i], nil
}

// Only returns the table with the entry of one journal alone, or the whole table for "".
func (t Table) Only(name string) (Table, error) {
	if name == "" {
		return t, nil
	}
	j, err := t.Of(name)
	return Table{j}, err
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

// Newest returns the highest rules number that this build supports, by journal.
func (t Table) Newest() map[string]int {
	out := make(map[string]int, len(t))
	for _, j := range t {
		out[j.Name()] = j.Rules.Newest()
	}
	return out
}
