// Package identity is the read model of brokers and users. It contains no passwords in any form: logins use a fold of
// the journal.
package identity

import (
	"context"

	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Projection maintains the tables brokers and users.
var Projection = projections.NewProjection("identity", project, brokers.Name, users.Name)

// Broker is a broker with the sequence of the record that created it.
type Broker struct {
	identity.Broker
	Sequence int64
}

// User is a user with the sequences of the records that created it and last changed it. PasswordHash is nil.
type User struct {
	identity.User
	Made     int64
	Sequence int64

	limit identity.RateLimit // zero: none
}

type (
	brokerRow = projections.Row[Broker]
	userRow   = projections.Row[User]
)

var brokers = &projections.Table[Broker]{
	Name: "brokers", Journal: "identity",
	Columns: []c.Column[brokerRow]{
		c.Text("broker", func(r *brokerRow) *string { return &r.Value.Broker.Broker }),
		c.Text("name", func(r *brokerRow) *string { return &r.Value.Name }),
		c.Time("created", func(r *brokerRow) *scalar.Time { return &r.Value.Created }),
		c.Int("sequence", func(r *brokerRow) *int64 { return &r.Value.Sequence }),
	},
}

var users = &projections.Table[User]{
	Name: "users", Journal: "identity",
	Columns: []c.Column[userRow]{
		c.Text("username", func(r *userRow) *string { return &r.Value.Username }).Key(),
		c.Text("broker", func(r *userRow) *string { return &r.Value.Broker }),
		c.NullText("customer_code", func(r *userRow) *string { return &r.Value.CustomerCode }),
		c.Words("scopes", func(r *userRow) *[]string { return &r.Value.Scopes }),
		c.Bool("is_active", func(r *userRow) *bool { return &r.Value.IsActive }),
		c.Bool("is_verified", func(r *userRow) *bool { return &r.Value.IsVerified }),
		c.NullInt("rate_per_second", func(r *userRow) *int64 { return &r.Value.limit.PerSecond }),
		c.NullInt("rate_burst", func(r *userRow) *int64 { return &r.Value.limit.Burst }),
		c.Time("created", func(r *userRow) *scalar.Time { return &r.Value.Created }).Fixed(),
		c.Time("updated", func(r *userRow) *scalar.Time { return &r.Value.Updated }),
		c.Int("created_sequence", func(r *userRow) *int64 { return &r.Value.Made }).Fixed(),
		c.Int("sequence", func(r *userRow) *int64 { return &r.Value.Sequence }),
	},
	Loaded: func(r *userRow) error {
		if limit := r.Value.limit; limit != (identity.RateLimit{}) {
			r.Value.RateLimit = &limit
		}
		return nil
	},
}

// project adds the brokers, and the last state of each user that the entries change.
func project(entries []record.Entry, batch *projections.Batch) {
	registered := brokers.Copy(batch)
	var changed projections.Latest[string, userRow]
	for _, entry := range entries {
		at := entry.Record.Sequence
		put := func(u *identity.User) {
			r, again := changed.Slot(u.Username)
			made := at
			if again {
				made = r.Value.Made
			}
			r.Value = User{User: *u, Made: made, Sequence: at}
			if u.RateLimit != nil {
				r.Value.limit = *u.RateLimit
			}
		}
		for _, event := range entry.Record.Events {
			switch e := event.(type) {
			case *identity.BrokerRegistered:
				registered.Add(&brokerRow{Value: Broker{e.Broker, at}})
			case *identity.UserRegistered:
				put(&e.User)
			case *identity.UserChanged:
				put(&e.User)
			}
		}
	}
	users.Upsert(batch, changed.Rows())
}

// Brokers returns a numbered page of the brokers, newest first, and the total number of brokers.
func Brokers(ctx context.Context, db projections.DB, size, offset int) (rows []Broker, total int, asOf int64, err error) {
	return projections.List[Broker]{Table: brokers, Order: "sequence DESC"}.Numbered(ctx, db, size, offset)
}

// Users returns a numbered page of the users, newest first, and the total number of users.
func Users(ctx context.Context, db projections.DB, size, offset int) (rows []User, total int, asOf int64, err error) {
	return projections.List[User]{Table: users, Order: "created_sequence DESC"}.Numbered(ctx, db, size, offset)
}

// AllBrokers returns the table of brokers.
func AllBrokers() *projections.Table[Broker] { return brokers }

// AllUsers returns the table of users.
func AllUsers() *projections.Table[User] { return users }
