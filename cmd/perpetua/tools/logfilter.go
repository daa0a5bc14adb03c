package tools

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// logFilter selects the records that `perpetua log` prints.
type logFilter struct {
	from, to       int64
	kind, customer string
}

// check returns a usage error if no record of the journal can pass the filter.
func (f logFilter) check(j journals.Journal) error {
	types := recordTypes(j)
	switch {
	case f.from < 0:
		return settings.Usagef("--from takes a sequence from 0 on, not %d", f.from)
	case f.to < f.from:
		return settings.Usagef("--to is the last sequence, and %d is below %d of --from", f.to, f.from)
	case f.kind == "" || slices.Contains(types, f.kind):
		return nil
	}
	for _, other := range journals.All() {
		if slices.Contains(recordTypes(other), f.kind) {
			return settings.Usagef("--type: the journal %s has no %q: did you mean --journal %s?", j.Name(), f.kind, other.Name())
		}
	}
	if near := settings.Nearest(f.kind, types, len(f.kind)/3); near != "" {
		return settings.Usagef("--type: the journal %s has no %q: did you mean %s?", j.Name(), f.kind, near)
	}
	return settings.Usagef("--type takes the type of a command or an event of the journal %s, such as %s, not %q",
		j.Name(), types[0], f.kind)
}

// recordTypes returns the types that the commands and events in the journal's records may have.
func recordTypes(j journals.Journal) []string {
	types := append([]string{}, j.Payloads.Types()...)
	for _, s := range slices.Concat(j.Rules.Registry().Shapes(), record.Shapes().Shapes()) {
		types = append(types, s.Type)
	}
	return types
}

// passes reports whether a record passes the filter.
func (f logFilter) passes(e record.Entry) bool {
	if e.Record.Sequence < f.from {
		return false
	}
	return (f.kind == "" || f.hasType(e)) && (f.customer == "" || f.concerns(e))
}

func (f logFilter) hasType(e record.Entry) bool {
	if e.Record.Command.Type == f.kind {
		return true
	}
	for _, event := range e.Record.Events {
		if event.EventType() == f.kind {
			return true
		}
	}
	return false
}

// concerns reports whether any customer_code in the record is the filter's customer.
func (f logFilter) concerns(e record.Entry) bool {
	if e.Record.Command.Actor.Customer == f.customer {
		return true
	}
	var record any
	if err := json.Unmarshal(e.Value, &record); err != nil {
		return false
	}
	return names(record, f.customer)
}

func names(v any, customer string) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if s, ok := member.(string); ok && name == "customer_code" && s == customer || names(member, customer) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if names(item, customer) {
				return true
			}
		}
	}
	return false
}
