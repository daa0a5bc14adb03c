package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// object is a JSON object as it came: numbers as they were written.
type object map[string]any

// text returns a member as text: a string without its quotes, null as "null", "" for none.
func (o object) text(member string) string {
	switch v := o[member].(type) {
	case nil:
		if _, there := o[member]; there {
			return "null"
		}
		return ""
	case string:
		return v
	case []any, map[string]any:
		b, _ := json.Marshal(v)
		return string(b)
	default:
		return fmt.Sprint(v)
	}
}

// kind returns what a member is: string, number, boolean, null, array, object, or "" for none.
func (o object) kind(member string) string {
	v, there := o[member]
	switch v.(type) {
	case string:
		return "string"
	case json.Number:
		return "number"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	if there {
		return "null"
	}
	return ""
}

// members lists an object's members in the order of the alphabet.
func (o object) members() []string { return slices.Sorted(maps.Keys(o)) }

// reading is what checks read with, and the values that the check at work has read.
type reading struct {
	*desk
	values []string
}

// note keeps a value for the report.
func (c *reading) note(format string, args ...any) {
	c.values = append(c.values, fmt.Sprintf(format, args...))
}

// equal notes a value and wants it to be another.
func (c *reading) equal(name, got, want string) {
	c.t.Helper()
	c.note("%s=%s", name, got)
	if got != want {
		c.t.Errorf("%s is %q, want %q", name, got, want)
	}
}

// like notes a value and wants it to have a form.
func (c *reading) like(name, got, form string) {
	c.t.Helper()
	c.note("%s=%s", name, got)
	if !regexp.MustCompile(form).MatchString(got) {
		c.t.Errorf("%s is %q, want %s", name, got, form)
	}
}

// parse reads an answer or a message.
func (c *reading) parse(raw []byte, out any) {
	c.t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(out); err != nil {
		c.t.Fatalf("%v: %.500s", err, raw)
	}
}

// one reads an object, as broker-a and as of everything that was written before.
func (c *conformance) one(path string) (o object) {
	c.t.Helper()
	c.parse(c.must(200, "broker-a", http.MethodGet, path, nil, c.written()...).Body, &o)
	return o
}

// all reads a list, bare or a page of records, in the same way.
func (c *conformance) all(path string) (list []object) {
	c.t.Helper()
	raw := c.must(200, "broker-a", http.MethodGet, path, nil, c.written()...).Body
	if bytes.HasPrefix(raw, []byte("[")) {
		c.parse(raw, &list)
		return list
	}
	var page struct{ Records []object }
	c.parse(raw, &page)
	return page.Records
}

// written returns the headers that have a read wait for all that was written.
func (c *conformance) written() []string {
	c.t.Helper()
	return []string{"X-Min-Log-Position", c.must(200, "broker-a", http.MethodGet, "/v1/customers/ANNA/state", nil).Header.Get("X-Log-Position")}
}

// send sends a request as broker-a and returns the answer, an object.
func (c *conformance) send(status int, method, path, body string) (o object) {
	c.t.Helper()
	return c.sendAs(status, "broker-a", method, path, body)
}

// sendAs sends a request and returns the answer, an object.
func (c *reading) sendAs(status int, user, method, path, body string, headers ...string) (o object) {
	c.t.Helper()
	var content any
	if body != "" {
		content = body
	}
	c.parse(c.must(status, user, method, path, content, headers...).Body, &o)
	return o
}

// faults returns what a problem of status 400 finds wrong, as "field CODE".
func (c *conformance) faults(a answer) (out []string) {
	c.t.Helper()
	var problem struct {
		Code   string
		Errors []struct{ Field, Code string }
	}
	c.parse(a.Body, &problem)
	if a.Status != 400 || problem.Code != "VALIDATION_FAILED" {
		c.t.Errorf("%d %s", a.Status, a.Body)
	}
	for _, e := range problem.Errors {
		out = append(out, e.Field+" "+e.Code)
	}
	return out
}

// refused wants a GET to be a 400 with these faults.
func (c *conformance) refused(path string, faults ...string) {
	c.t.Helper()
	got := c.faults(c.do("broker-a", http.MethodGet, path, nil))
	c.equal("GET "+path, strings.Join(got, ", "), strings.Join(faults, ", "))
}

// on returns what a socket was told on a channel.
func (c *conformance) on(socket *livetest.Client, channel string) (out []object) {
	c.t.Helper()
	for _, m := range socket.On(channel) {
		var o object
		c.parse(m.Raw, &o)
		out = append(out, o)
	}
	return out
}

// told waits for a message on a channel that is as it is wanted, the first of them.
func (c *conformance) told(socket *livetest.Client, channel, what string, is func(object) bool) (found object) {
	c.t.Helper()
	waitFor(c.t, what, func() bool {
		all := c.on(socket, channel)
		i := slices.IndexFunc(all, is)
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

// A source is a set of objects that facts are about.
type source struct {
	name string
	read func() []object
}

// typed is a check of a member: wherever it is, it is of one of these kinds, and each kind was seen.
func (c *reading) typed(member string, kinds []string, from ...source) func() {
	return func() {
		seen := make(map[string]int)
		for _, s := range from {
			there := 0
			for _, o := range s.read() {
				kind := o.kind(member)
				if kind == "" {
					continue
				}
				if !slices.Contains(kinds, kind) {
					c.t.Errorf("%s of %s is a %s: %v", member, s.name, kind, o)
				}
				if seen[kind]++; seen[kind] == 1 {
					c.note("%s=%s", member, o.text(member))
				}
				there++
			}
			c.note("%s ×%d in %s", strings.Join(kinds, " or "), there, s.name)
			if there == 0 {
				c.t.Errorf("no %s of %s has %s", kinds, s.name, member)
			}
		}
		for _, kind := range kinds {
			if seen[kind] == 0 {
				c.t.Errorf("%s was never a %s", member, kind)
			}
		}
	}
}

// among is a check of a member: it has these values and no others, and had each of them.
func (c *reading) among(member string, values []string, from ...source) func() {
	return func() {
		for _, s := range from {
			seen := make(map[string]int)
			for _, o := range s.read() {
				if v := o.text(member); v != "" {
					seen[v]++
				}
			}
			got := slices.Sorted(maps.Keys(seen))
			c.note("%s of %s: %v", member, s.name, seen)
			if want := slices.Sorted(slices.Values(values)); !slices.Equal(got, want) {
				c.t.Errorf("%s of %s had the values %v, want %v", member, s.name, got, want)
			}
		}
	}
}

// only is a check of a member: it is there, and not null, exactly in those objects that are such and such. Both sorts were seen.
func (c *reading) only(member, otherwise string, such func(object) bool, from ...source) func() {
	return func() {
		for _, s := range from {
			with, without := 0, 0
			for _, o := range s.read() {
				v := o.text(member)
				switch is := such(o); {
				case is && (v == "" || v == "null"), !is && v != otherwise:
					c.t.Errorf("%s of %s is %q in %v", member, s.name, v, o)
				case is:
					if with++; with == 1 {
						c.note("%s=%s", member, v)
					}
				default:
					without++
				}
			}
			c.note("there ×%d, %q ×%d in %s", with, otherwise, without, s.name)
			if with == 0 || without == 0 {
				c.t.Errorf("%s of %s: %d with and %d without", member, s.name, with, without)
			}
		}
	}
}

// exactly is a check of objects: these are their members, and perhaps some that may be absent.
func (c *reading) exactly(always, perhaps string, from source) func() {
	return func() {
		may := strings.Fields(perhaps)
		objects := from.read()
		for _, o := range objects {
			got := slices.DeleteFunc(o.members(), func(m string) bool { return slices.Contains(may, m) })
			if want := slices.Sorted(slices.Values(strings.Fields(always))); !slices.Equal(got, want) {
				c.t.Fatalf("%s has %v, want %v", from.name, got, want)
			}
		}
		if len(objects) == 0 {
			c.t.Fatalf("there are no %s", from.name)
		}
		c.note("%d %s with %s", len(objects), from.name, strings.Join(objects[0].members(), ", "))
	}
}

// together is a check made of several.
func together(checks ...func()) func() {
	return func() {
		for _, holds := range checks {
			holds()
		}
	}
}
