package transparency

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// Policy says which checkpoints a verifier accepts: the keys of logs, one of which must have signed, and the witnesses that must
// have cosigned (c2sp.org/tlog-policy).
type Policy struct {
	Logs      []LogKey // empty if the policy leaves the choice of the logs to the application
	Witnesses []Witness
	// Now returns the time, which says whether a key has retired. nil stands for time.Now.
	Now func() time.Time

	groups []group
	quorum string
}

// Witness is a witness of a policy.
type Witness struct {
	Name string // in the policy
	Key  WitnessKey
	URL  string // its submission prefix; empty if the policy names none
}

// group is satisfied if at least threshold members are. A member is a witness or an earlier group.
type group struct {
	name      string
	threshold int
	members   []string
}

const (
	noQuorum = "none"
	// maxPolicy bounds a policy in bytes, and maxDefinitions the logs, witnesses, and groups in it.
	maxPolicy      = 256 << 10
	maxDefinitions = 256
)

// NewPolicy returns the policy of checkpoints that one of the keys has signed, without witnesses.
func NewPolicy(logs ...note.Verifier) *Policy {
	p := &Policy{quorum: noQuorum}
	for _, v := range logs {
		p.Logs = append(p.Logs, LogKey{Verifier: v})
	}
	return p
}

func (p *Policy) now() time.Time {
	if p.Now == nil {
		return time.Now()
	}
	return p.Now()
}

// ParsePolicy reads a policy. Its errors name the line.
func ParsePolicy(text []byte) (*Policy, error) {
	if len(text) > maxPolicy {
		return nil, fmt.Errorf("a policy has at most %d bytes, not %d", maxPolicy, len(text))
	}
	p := new(policyParser)
	for number := 1; len(text) > 0; number++ {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		text = rest
		err := p.line(string(line))
		if err == nil && !ended {
			err = errors.New("the line does not end: the file is cut off")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if p.quorum == "" {
		return nil, errors.New("a policy has a line that begins with quorum")
	}
	return &p.Policy, nil
}

type policyParser struct {
	Policy
	keys   [][]byte // public keys so far
	listed []string // members of groups so far
}

// line reads a line without its end.
func (p *policyParser) line(line string) error {
	if i := strings.IndexFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }); i >= 0 {
		return fmt.Errorf("column %d: a control character", i+1)
	}
	fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
		return nil
	}
	if len(p.Logs)+len(p.Witnesses)+len(p.groups) == maxDefinitions {
		return fmt.Errorf("a policy has at most %d logs, witnesses, and groups", maxDefinitions)
	}
	kind, fields := fields[0], fields[1:]
	switch {
	case kind == "log" && (len(fields) == 1 || len(fields) == 2):
		return p.log(fields[0])
	case kind == "witness" && (len(fields) == 2 || len(fields) == 3):
		return p.witness(fields)
	case kind == "group" && len(fields) >= 3:
		return p.group(fields[0], fields[1], fields[2:])
	case kind == "quorum" && len(fields) == 1:
		return p.setQuorum(fields[0])
	}
	return errors.New("a line is log KEY [URL], witness NAME KEY [URL], group NAME all|any|NUMBER MEMBERS, or quorum NAME")
}

func (p *policyParser) log(key string) error {
	v, err := note.NewVerifier(key)
	if err != nil {
		return fmt.Errorf("the key of a log: %w", err)
	}
	p.Logs = append(p.Logs, LogKey{Verifier: v})
	return p.unique(key)
}

// unique returns an error if another key has the same public key.
func (p *policyParser) unique(key string) error {
	material := []byte(strings.SplitN(key, "+", 3)[2]) // the key is valid; its base64 may contain "+"
	if slices.ContainsFunc(p.keys, func(k []byte) bool { return bytes.Equal(k, material) }) {
		return errors.New("the key occurs a second time")
	}
	p.keys = append(p.keys, material)
	return nil
}

func (p *policyParser) witness(fields []string) error {
	if err := p.fresh(fields[0]); err != nil {
		return err
	}
	key, err := ParseWitnessKey(fields[1])
	if err != nil {
		return fmt.Errorf("the key of the witness %s: %w", fields[0], err)
	}
	w := Witness{Name: fields[0], Key: key}
	if len(fields) == 3 {
		at, err := url.Parse(fields[2])
		if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
			return fmt.Errorf("%q is not the URL of a witness", fields[2])
		}
		w.URL = strings.TrimSuffix(fields[2], "/")
	}
	p.Witnesses = append(p.Witnesses, w)
	return p.unique(fields[1])
}

func (p *policyParser) group(name, threshold string, members []string) error {
	if err := p.fresh(name); err != nil {
		return err
	}
	g := group{name: name, members: members}
	switch threshold {
	case "all":
		g.threshold = len(members)
	case "any":
		g.threshold = 1
	default:
		n, err := strconv.Atoi(threshold)
		if err != nil || n < 1 || n > len(members) || strconv.Itoa(n) != threshold {
			return fmt.Errorf("the threshold is all, any, or a number from 1 to %d, not %q", len(members), threshold)
		}
		g.threshold = n
	}
	for _, m := range members {
		if !p.defined(m) {
			return fmt.Errorf("%q is not defined above", m)
		}
		if slices.Contains(p.listed, m) {
			return fmt.Errorf("%q is a member of a group a second time", m)
		}
		p.listed = append(p.listed, m)
	}
	p.groups = append(p.groups, g)
	return nil
}

func (p *policyParser) setQuorum(name string) error {
	if p.quorum != "" {
		return errors.New("a second quorum")
	}
	if name != noQuorum && !p.defined(name) {
		return fmt.Errorf("%q is not defined above", name)
	}
	p.quorum = name
	return nil
}

// fresh returns an error if a name cannot be defined.
func (p *policyParser) fresh(name string) error {
	if name == noQuorum || p.defined(name) {
		return fmt.Errorf("the name %q is taken", name)
	}
	return nil
}

func (p *policyParser) defined(name string) bool {
	return slices.ContainsFunc(p.Witnesses, func(w Witness) bool { return w.Name == name }) ||
		slices.ContainsFunc(p.groups, func(g group) bool { return g.name == name })
}

// ForLog returns a policy that replaces the logs by the keys of one log, a list in the form of ParseLogKeys. A checkpoint MUST be
// signed by one of them. If the policy has logs, only those keys count that it has too, and there MUST be one.
func (p *Policy) ForLog(keys string) (*Policy, error) {
	listed, err := ParseLogKeys(keys)
	if err != nil {
		return nil, err
	}
	one := *p
	one.Logs = slices.DeleteFunc(listed, func(k LogKey) bool {
		return len(p.Logs) > 0 && !slices.ContainsFunc(p.Logs, func(l LogKey) bool { return l.Name() == k.Name() && l.KeyHash() == k.KeyHash() })
	})
	if len(one.Logs) == 0 {
		name, _, _ := strings.Cut(strings.TrimSpace(keys), "+")
		return nil, fmt.Errorf("the policy does not have the log %s with this key", name)
	}
	return &one, nil
}

// NeedsWitnesses reports whether the quorum has a witness.
func (p *Policy) NeedsWitnesses() bool { return p.quorum != noQuorum }

// satisfied reports whether the quorum is met by witnesses with the given names.
func (p *Policy) satisfied(names []string) bool {
	if p.quorum == noQuorum {
		return true
	}
	names = slices.Clone(names)
	for _, g := range p.groups { // members of a group are defined before it
		count := 0
		for _, m := range g.members {
			if slices.Contains(names, m) {
				count++
			}
		}
		if count >= g.threshold {
			names = append(names, g.name)
		}
	}
	return slices.Contains(names, p.quorum)
}
