package live

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxTopics = 100 // in one request
	maxTopic  = 128 // bytes of one topic
	maxID     = 64  // bytes of an ID, including quotes
)

// request is a parsed request.
type request struct {
	op           string
	args         []string
	id           jsontext.Value // a string or a number; nil if missing
	customer     string         // data.customer_code
	positions    bool           // data.positions
	token        string         // data.token
	cancels      bool           // data.cancel_on_disconnect
	resumeFrom   string
	object, data members
}

// members holds the raw members of an object.
type members map[string]jsontext.Value

// shapes lists the members that each operation allows in addition to op and id.
var shapes = map[string]struct{ request, data []string }{
	opSubscribe:    {[]string{"args", "data", "resume_from"}, []string{"customer_code", "positions"}},
	opUnsubscribe:  {[]string{"args"}, nil},
	opAuthenticate: {[]string{"data"}, []string{"token", "cancel_on_disconnect"}},
	opPing:         {},
}

// parseRequest parses a request strictly: unknown or repeated members, null, and data after the object are errors.
// With an error it still returns a valid ID, so that the error message can contain it.
func parseRequest(raw []byte) (*request, error) {
	r := &request{}
	if err := json.Unmarshal(raw, &r.object); err != nil || r.object == nil {
		return r, malformed(err)
	}
	if id, ok := r.object["id"]; ok {
		if k := id.Kind(); k != '"' && k != '0' || len(id) > maxID {
			return r, fmt.Errorf("id must be a string or a number of at most %d bytes", maxID)
		}
		r.id = id
	}
	return r, r.read()
}

// idOf returns a request's ID without parsing the rest. It returns nil if the ID is missing or invalid.
func idOf(raw []byte) (id jsontext.Value) {
	cut := cutter{raw: raw}
	defer cut.done()
	for cut.next() {
		if string(cut.name) != "id" {
			continue
		}
		if k := cut.value.Kind(); cut.again || k != '"' && k != '0' || len(cut.value) > maxID {
			return nil
		}
		id = cut.value
	}
	if cut.err != nil {
		return nil
	}
	return id
}

func (r *request) read() error {
	if err := r.object.value("op", &r.op); err != nil {
		return err
	}
	shape, known := shapes[r.op]
	if !known {
		return fmt.Errorf("op must be one of %s", strings.Join(Operations(), ", "))
	}
	if err := r.object.only("", r.op, append([]string{"op", "id"}, shape.request...)); err != nil {
		return err
	}
	if err := r.object.value("data", &r.data); err != nil {
		return err
	}
	if err := r.data.only("data.", r.op, shape.data); err != nil {
		return err
	}
	for _, err := range []error{
		r.object.value("args", &r.args), r.object.value("resume_from", &r.resumeFrom),
		r.data.within("data.", "customer_code", &r.customer), r.data.within("data.", "positions", &r.positions),
		r.data.within("data.", "token", &r.token), r.data.within("data.", "cancel_on_disconnect", &r.cancels),
	} {
		if err != nil {
			return err
		}
	}
	return r.check()
}

// check validates what the JSON types do not.
func (r *request) check() error {
	switch r.op {
	case opSubscribe, opUnsubscribe:
		if len(r.args) == 0 || len(r.args) > maxTopics {
			return fmt.Errorf("args must hold 1 to %d topics", maxTopics)
		}
		if slices.ContainsFunc(r.args, func(t string) bool { return t == "" || len(t) > maxTopic }) {
			return fmt.Errorf("a topic has 1 to %d bytes", maxTopic)
		}
	case opAuthenticate:
		if r.token == "" {
			return errors.New("data.token is required")
		}
	}
	if _, there := r.data["customer_code"]; there && r.customer == "" {
		return errors.New("data.customer_code must not be empty")
	}
	if _, there := r.object["resume_from"]; there && r.resumeFrom == "" {
		return errors.New("resume_from must not be empty")
	}
	return nil
}

// only returns an error if the object has a member that op does not allow.
func (m members) only(prefix, op string, allowed []string) error {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(allowed, name) {
			return fmt.Errorf("%s takes no field %.64q", op, prefix+name)
		}
	}
	return nil
}

// value reads a member into v. It returns an error for another type, and leaves v unchanged if the member is absent.
func (m members) value(name string, v any) error { return m.within("", name, v) }

// within is value for nested members.
func (m members) within(prefix, name string, v any) error {
	raw, there := m[name]
	if !there {
		return nil
	}
	if raw.Kind() != 'n' && !hasNull(raw) && json.Unmarshal(raw, v) == nil {
		return nil
	}
	kind := "a string"
	switch v.(type) {
	case *bool:
		kind = "true or false"
	case *[]string:
		kind = "an array of strings"
	case *members:
		kind = "an object"
	}
	return fmt.Errorf("%s must be %s", prefix+name, kind)
}

// hasNull reports whether an array contains null, which would be decoded as an empty string.
func hasNull(raw jsontext.Value) bool {
	var items []jsontext.Value
	return raw.Kind() == '[' && json.Unmarshal(raw, &items) == nil &&
		slices.ContainsFunc(items, func(v jsontext.Value) bool { return v.Kind() == 'n' })
}

// malformed returns the error for a message that cannot be parsed.
func malformed(err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return errors.New("a field is given twice")
	case errors.As(err, &syntax):
		return fmt.Errorf("the message is not valid JSON at byte %d", syntax.ByteOffset)
	}
	return errors.New("the message must be a JSON object")
}
