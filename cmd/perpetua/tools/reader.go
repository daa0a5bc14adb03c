package tools

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"net/url"
	"regexp"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/postgres"
)

// readerName matches the valid names of a reader. They need no quotes in SQL or in a URL.
var readerName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// reader is the JSON output of Reader.
type reader struct {
	Name string `json:"name"`
	URL  string `json:"url"` // including the password
}

// Reader creates a database user with read access to the read models, except sealed columns, and prints the URL to
// connect with. An existing reader gets a new password.
func Reader(ctx context.Context, args []string, std settings.IO) error {
	var name string
	var asJSON bool
	var timeout time.Duration
	s, err := settings.Parse("admin reader", args, std, func(fs *flag.FlagSet) {
		fs.StringVar(&name, "name", "", "name of the user")
		fs.DurationVar(&timeout, "timeout", time.Minute, "time after which a query of the user is ended")
		settings.JSONFlag(fs, &asJSON)
	})
	if err != nil {
		return err
	}
	if !readerName.MatchString(name) {
		return settings.Usagef("--name is needed: small letters, digits and _, at most 63 of them, a letter first")
	}
	if timeout < time.Millisecond {
		return settings.Usagef("--timeout must be at least 1ms")
	}
	address, stop, err := findDatabase(ctx, s)
	if err != nil {
		return err
	}
	defer stop()
	admin := address
	if s.DatabaseURL == "" { // the venue's database user may not create users
		if admin, err = postgres.AdminURL((&local.Folder{Dir: s.Data}).Path("postgres"), address); err != nil {
			return err
		}
	}
	db, err := projections.Connect(ctx, admin)
	if err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	if err := needTables(ctx, db, db.Config()); err != nil {
		return err
	}
	password := rand.Text()
	if err := projections.AddReader(ctx, db, name, password, timeout); err != nil {
		return err
	}
	u, err := url.Parse(projections.PlainURL(address))
	if err != nil {
		return fmt.Errorf("the database URL: %w", err)
	}
	u.User = url.UserPassword(name, password)
	if asJSON {
		return std.PrintJSON(reader{name, u.String()})
	}
	fmt.Fprintln(std.Out, u)
	return nil
}
