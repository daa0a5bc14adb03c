// Package operate is the operator's interface on the command line. perpetua admin GROUP VERB calls one route under /admin/v1
// over REST, as a user with the scope operator. It has no other access. The commands follow from the table of operations.
//
// It calls the venue that runs on the data folder, with the address and the operator's password in run.json. Or it calls the
// venue that PERPETUA_ADMIN_URL names, as PERPETUA_ADMIN_USER with PERPETUA_ADMIN_PASSWORD, or with PERPETUA_ADMIN_TOKEN,
// which may be an API key. JSON is read from a file or stdin and written to stdout; problems are written to stderr.
package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// line is the parsed command line of an operation.
type line struct {
	operation *Operation
	data      string
	user      string
	key       string // Idempotency-Key; "" for a new one
	text      string // text of the body
	filters   map[string]*string
	arguments []string
}

// Command runs an operation. args are GROUP VERB and its arguments, with flags anywhere after the verb. There is at least one.
func Command(ctx context.Context, args []string, std settings.IO) error {
	operation, err := find(args, std.Err)
	if err != nil {
		return err
	}
	l, err := parse(operation, args[2:], std)
	if err != nil {
		return err
	}
	body, err := l.body(std.In)
	if err != nil {
		return err
	}
	c, err := connect(ctx, l, std)
	if err != nil {
		return err
	}
	answer, err := c.do(ctx, operation.Method, l.target(), content{operation.Body.mediaType(), body}, l.key)
	if err != nil {
		return err
	}
	return printAnswer(std.Out, answer)
}

// find returns the operation that args name.
func find(args []string, help io.Writer) (*Operation, error) {
	all := Operations()
	if strings.HasPrefix(args[0], "-") {
		return nil, settings.Usagef("flags come after GROUP VERB (perpetua admin help lists them)")
	}
	if !slices.ContainsFunc(all, func(o Operation) bool { return o.Group == args[0] }) {
		return nil, settings.Usagef("there is no group %q (perpetua admin help lists the groups and their verbs)", args[0])
	}
	if len(args) == 1 || args[1] == "-h" || args[1] == "--help" || args[1] == "help" {
		if len(args) == 1 {
			return nil, settings.Usagef("admin %s: a verb is needed: %s", args[0], strings.Join(verbs(args[0]), ", "))
		}
		List(help, args[0])
		return nil, flag.ErrHelp
	}
	at := slices.IndexFunc(all, func(o Operation) bool { return o.Group == args[0] && o.Verb == args[1] })
	if at < 0 {
		return nil, settings.Usagef("admin %s has no verb %q: it has %s", args[0], args[1], strings.Join(verbs(args[0]), ", "))
	}
	return &all[at], nil
}

// verbs returns the verbs of a group.
func verbs(group string) (out []string) {
	for _, o := range Operations() {
		if o.Group == group {
			out = append(out, o.Verb)
		}
	}
	return out
}

// List writes the operations of a group, or all if group is "".
func List(w io.Writer, group string) {
	fmt.Fprint(w, `usage: perpetua admin GROUP VERB [ARGUMENT…] [FILE | - | --json TEXT] [flags]

FILE holds the body of the request; - is the standard input. The venue is the one that runs on the folder of --data, or at
the address in $PERPETUA_ADMIN_URL. perpetua admin GROUP VERB -h lists the flags.

`)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, o := range Operations() {
		if group == "" || group == o.Group {
			fmt.Fprintf(table, "  %s\t%s\n", o.usage(), o.Help)
		}
	}
	_ = table.Flush() // an error on the terminal is ignored
}

// parse parses the command line after the verb.
func parse(o *Operation, args []string, std settings.IO) (*line, error) {
	env := func(name, preset string) string {
		if v, ok := std.Env(name); ok && v != "" {
			return v
		}
		return preset
	}
	l := &line{operation: o, filters: make(map[string]*string)}
	fs := flag.NewFlagSet("perpetua admin "+o.Group+" "+o.Verb, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&l.data, "data", env("PERPETUA_DATA", "data"), "data folder of the venue [$PERPETUA_DATA]")
	fs.StringVar(&l.user, "user", env("PERPETUA_ADMIN_USER", "operator"), "user who gives the command [$PERPETUA_ADMIN_USER]")
	for _, name := range o.Filters {
		l.filters[name] = fs.String(strings.ReplaceAll(name, "_", "-"), "", "parameter "+name+" of the request")
	}
	if o.Method != "GET" {
		fs.StringVar(&l.key, "idempotency-key", "", "key of the request: a second call with the same key gets the first answer (default: a new key)")
	}
	if o.Body == OptionalBody || o.Body == NeedsBody {
		fs.StringVar(&l.text, "json", "", "body of the request, in place of FILE")
	}
	for { // flags may be before, between and after the arguments
		if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
			var flags []*flag.Flag
			fs.VisitAll(func(f *flag.Flag) { flags = append(flags, f) })
			std.About = o.Help
			settings.PrintUsage(std, "admin", o.usage()+" [flags]", flags)
			return nil, err
		} else if err != nil {
			return nil, settings.FlagError("admin "+o.Group+" "+o.Verb, err)
		}
		if fs.NArg() == 0 {
			return l, l.check()
		}
		l.arguments, args = append(l.arguments, fs.Arg(0)), fs.Args()[1:]
	}
}

// check returns an error if the number of arguments is wrong.
func (l *line) check() error {
	given, least := len(l.arguments), len(l.operation.parameters())
	most := least
	if l.operation.Body != NoBody && l.text == "" {
		most++
	}
	if l.operation.Body >= NeedsBody && l.text == "" {
		least++
	}
	if given < least || given > most {
		return settings.Usagef("usage: perpetua admin %s [flags]", l.operation.usage())
	}
	return nil
}

// body returns the JSON body of the request, or nil for none.
func (l *line) body(stdin io.Reader) ([]byte, error) {
	rest := l.arguments[len(l.operation.parameters()):]
	switch {
	case l.text != "":
		return []byte(l.text), nil
	case len(rest) == 0:
		return nil, nil
	case rest[0] == "-":
		return io.ReadAll(stdin)
	}
	return os.ReadFile(rest[0])
}

// target returns the path of the request with its query.
func (l *line) target() string {
	target := l.operation.Path
	for i, name := range l.operation.parameters() {
		target = strings.Replace(target, ":"+name, url.PathEscape(l.arguments[i]), 1)
	}
	query := url.Values{}
	for name, value := range l.filters {
		if *value != "" {
			query.Set(name, *value)
		}
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return target
}

// connect finds the venue and logs in.
func connect(ctx context.Context, l *line, std settings.IO) (*client, error) {
	env := func(name string) string { v, _ := std.Env(name); return v }
	c := newClient(env("PERPETUA_ADMIN_URL"))
	password, from := env("PERPETUA_ADMIN_PASSWORD"), "PERPETUA_ADMIN_PASSWORD"
	if c.base == "" {
		path := filepath.Join(l.data, "run.json")
		file, ok, err := local.ReadRunFile(path)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("nothing runs on the data folder %s: start it, name another with --data, or set PERPETUA_ADMIN_URL", l.data)
		}
		c.base = file.REST
		if at := slices.IndexFunc(file.Users, func(u local.User) bool { return u.Username == l.user }); at >= 0 && password == "" {
			password, from = file.Users[at].Password, path+", which has the first passwords: if it was changed, set PERPETUA_ADMIN_PASSWORD"
		}
	}
	c.token = env("PERPETUA_ADMIN_TOKEN")
	switch {
	case c.token != "":
		return c, nil
	case password == "":
		return nil, fmt.Errorf("the password of %s is not known: set PERPETUA_ADMIN_PASSWORD, or PERPETUA_ADMIN_TOKEN", l.user)
	}
	err := c.login(ctx, l.user, password)
	var refused *Problem
	if errors.As(err, &refused) && refused.Code == "LOGIN_BAD_CREDENTIALS" {
		return nil, fmt.Errorf("the venue refuses the password of %s from %s", l.user, from)
	}
	return c, err
}

// printAnswer writes a response: JSON indented, anything else, such as a zip, unchanged.
func printAnswer(w io.Writer, answer []byte) error {
	var indented bytes.Buffer
	if json.Indent(&indented, answer, "", "  ") == nil {
		answer = append(bytes.TrimRight(indented.Bytes(), "\n"), '\n')
	}
	_, err := w.Write(answer)
	return err
}
