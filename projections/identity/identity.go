// Package identity is the read model of brokers and users. It holds no password in any form: what a login needs is
// read from a fold of the journal.
package identity

import (
	"context"
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

//go:embed insert_brokers.sql
var insertBrokers string

//go:embed upsert_users.sql
var upsertUsers string

// Projection keeps the tables brokers and users.
type Projection struct{}

// Name returns "identity".
func (Projection) Name() string { return "identity" }

// Tables returns the tables of brokers and users.
func (Projection) Tables() []string {
	return []string{"brokers", "users"}
}

// user is a user and the sequences of its first and last record in a batch.
type user struct {
	*identity.User
	created, sequence int64
}

type broker struct {
	*identity.Broker
	sequence int64
}

// Project queues the brokers and the last state of the users that the entries change.
func (Projection) Project(entries []journal.Entry, batch *projections.Batch) {
	var brokers []broker
	var users projections.Latest[string, user]
	for _, entry := range entries {
		at := entry.Record.Sequence
		put := func(u *identity.User) {
			if old, again := users.Put(u.Username, user{u, at, at}); again {
				users.Put(u.Username, user{u, old.created, at})
			}
		}
		for _, event := range entry.Record.Events {
			switch e := event.(type) {
			case *identity.BrokerRegistered:
				brokers = append(brokers, broker{&e.Broker, at})
			case *identity.UserRegistered:
				put(&e.User)
			case *identity.UserChanged:
				put(&e.User)
			}
		}
	}
	if len(brokers) > 0 {
		batch.Queue(insertBrokers, c.Args(brokers,
			c.Text(func(r *broker) string { return r.Broker.Broker }),
			c.Text(func(r *broker) string { return r.Name }),
			c.Time(func(r *broker) scalar.Time { return r.Created }),
			c.Int(func(r *broker) int64 { return r.sequence }))...)
	}
	if rows := users.Rows(); len(rows) > 0 {
		limit := func(r *user) identity.RateLimit {
			if r.RateLimit == nil {
				return identity.RateLimit{}
			}
			return *r.RateLimit
		}
		batch.Queue(upsertUsers, c.Args(rows,
			c.Text(func(r *user) string { return r.Username }),
			c.Text(func(r *user) string { return r.Broker }),
			c.NullText(func(r *user) string { return r.CustomerCode }),
			c.Text(func(r *user) string { return strings.Join(r.Scopes, " ") }),
			c.Bool(func(r *user) bool { return r.IsActive }),
			c.Bool(func(r *user) bool { return r.IsVerified }),
			c.Int(func(r *user) int64 { return limit(r).PerSecond }),
			c.Int(func(r *user) int64 { return limit(r).Burst }),
			c.Time(func(r *user) scalar.Time { return r.Created }),
			c.Time(func(r *user) scalar.Time { return r.Updated }),
			c.Int(func(r *user) int64 { return r.created }),
			c.Int(func(r *user) int64 { return r.sequence }))...)
	}
}

// Brokers returns a numbered page of the brokers, newest first, and how many there are.
func Brokers(ctx context.Context, db projections.DB, size, offset int) (rows []identity.Broker, total int, asOf int64, err error) {
	return projections.List[identity.Broker]{Journal: "identity", From: "brokers", Order: "sequence DESC",
		Columns: "broker, name, created",
		Scan: func(row pgx.CollectableRow, b *identity.Broker, key ...any) error {
			return row.Scan(append([]any{&b.Broker, &b.Name, c.IntoTime(&b.Created)}, key...)...)
		}}.Numbered(ctx, db, size, offset)
}

// Users returns a numbered page of a broker's users, or with broker "" of everybody's, newest first, and how many there
// are. Their PasswordHash is nil.
func Users(ctx context.Context, db projections.DB, broker string, size, offset int) (rows []identity.User, total int, asOf int64, err error) {
	l := users()
	l.Where.AndText("broker", broker)
	return l.Numbered(ctx, db, size, offset)
}

// User returns a user, whose PasswordHash is nil.
func User(ctx context.Context, db projections.DB, username string) (u identity.User, found bool, asOf int64, err error) {
	l := users()
	l.Where.And("username = ?", username)
	return l.One(ctx, db)
}

func users() projections.List[identity.User] {
	return projections.List[identity.User]{Journal: "identity", From: "users", Order: "created_sequence DESC",
		Columns: "username, broker, customer_code, scopes, is_active, is_verified, rate_per_second, rate_burst, created, updated",
		Scan: func(row pgx.CollectableRow, u *identity.User, key ...any) error {
			var perSecond, burst *int64
			err := row.Scan(append([]any{&u.Username, &u.Broker, c.IntoText(&u.CustomerCode), &u.Scopes, &u.IsActive,
				&u.IsVerified, &perSecond, &burst, c.IntoTime(&u.Created), c.IntoTime(&u.Updated)}, key...)...)
			if perSecond != nil && burst != nil {
				u.RateLimit = &identity.RateLimit{PerSecond: *perSecond, Burst: *burst}
			}
			return err
		}}
}
