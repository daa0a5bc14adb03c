// Package monitor compares the checkpoints that several sources serve for one transparency log, with each other and with the last
// one that was good. It raises an alarm at a fork, a log that shrinks, a checkpoint that is not signed as it should be, and one
// that is stale.
//
// Any two checkpoints are compared by a proof of consistency, which is made from the tiles of the source with the larger one. The
// tiles are verified against that checkpoint's root.
package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// The kinds of alarms.
const (
	Fork        = "fork"        // two checkpoints of which neither extends the other
	Shrink      = "shrink"      // a source serves a smaller tree than before
	Stale       = "stale"       // a source has served nothing new for too long
	Signature   = "signature"   // a checkpoint is not signed, or not cosigned, as the policy asks
	Unproven    = "unproven"    // the tiles of a source do not prove its checkpoint
	Unreachable = "unreachable" // a source does not answer
)

// Alarm says what is wrong with a source.
type Alarm struct {
	Kind    string `json:"kind"`
	URL     string `json:"place"`
	Message string `json:"message"`
}

// Config configures a Monitor.
type Config struct {
	URLs   []string // URLs of the log, like https://venue.example/tlog/trading/0
	Policy *transparency.Policy
	// Stale is the age at which a checkpoint is stale. If the policy has witnesses, the age is that of the last cosignature; otherwise,
	// it is the time since the log last grew.
	Stale  time.Duration
	Client *http.Client
	Now    func() time.Time
}

// Monitor compares checkpoints.
type Monitor struct{ cfg Config }

// New returns a monitor.
func New(cfg Config) *Monitor { return &Monitor{cfg} }

// Report is the result of a check.
type Report struct {
	Time    time.Time `json:"time"`
	Origin  string    `json:"origin"`
	Records int64     `json:"records"` // of the largest checkpoint
	Root    string    `json:"root"`
	Alarms  []Alarm   `json:"alarms"`
}

// seen is a checkpoint at a source.
type seen struct {
	url      string // empty for the remembered one
	cosigned bool   // it is the source's last cosigned one, and not its last one
	note     []byte
	*transparency.Opened
}

// Check asks all sources, compares what they serve, and returns the state to remember. If there are alarms other than Stale and
// Unreachable, the state is the old one. If a source does not serve the tiles that prove a checkpoint, the remembered checkpoint is
// the old one, so that a fork is found once the tiles are served.
func (m *Monitor) Check(ctx context.Context, old State) (Report, State) {
	old = old.clone() // an empty one has no format
	r := Report{Time: m.cfg.Now().UTC(), Alarms: []Alarm{}}
	all, alarms := m.fetch(ctx)
	r.Alarms = append(r.Alarms, alarms...)
	next := old.clone()
	for _, s := range all {
		m.against(&r, old, next, s)
	}
	m.withheld(&r, next, all)
	if old.remembered != nil {
		all = append(all, seen{"", false, []byte(old.Checkpoint), old.remembered})
	}
	if len(all) == 0 {
		if r.serious() {
			return r, old
		}
		return r, next
	}
	best := slices.MaxFunc(all, func(a, b seen) int { return int(a.Size - b.Size) })
	r.Origin, r.Records, r.Root = best.Origin, best.Size, best.Root.String()
	proven := true
	var compared, unproven []string // URLs
	for _, s := range all {
		compared = append(compared, s.url)
		if !m.compare(ctx, &r, s, best, m.holders(next, best)) {
			proven = false
			unproven = append(unproven, cmp.Or(best.url, s.url))
		}
	}
	for _, s := range all {
		isFirst := old.remembered == nil && s.url == best.url && s.cosigned == best.cosigned
		if !isFirst && (s.Size != best.Size || !s.needsTiles(old, best)) {
			continue
		}
		if !m.hasTiles(ctx, &r, s, isFirst) {
			proven = false
			unproven = append(unproven, s.url)
		}
	}
	if r.serious() {
		return r, old
	}
	if proven {
		next.Checkpoint, next.remembered = string(best.note), best.Opened
	}
	m.unproven(&r, next, compared, unproven)
	return r, next
}

// unproven raises Stale at sources once tiles have failed to prove their checkpoints for too long. Otherwise, a source could
// sign a fork, let it grow, and withhold the tiles, which is only Unreachable. It could also serve a fork that is behind the
// remembered checkpoint if no source serves the tiles of that. A source that served no checkpoint this time has proven nothing.
func (m *Monitor) unproven(r *Report, next State, compared, failed []string) {
	for url, p := range next.Sources {
		switch {
		case slices.Contains(failed, url):
			if p.UnprovenAt.IsZero() {
				p.UnprovenAt = r.Time
			}
		case slices.Contains(compared, url):
			p.UnprovenAt = time.Time{}
		}
		next.Sources[url] = p
	}
	for _, url := range m.cfg.URLs {
		if at := next.Sources[url].UnprovenAt; !at.IsZero() && r.Time.Sub(at) > m.cfg.Stale {
			r.Alarms = append(r.Alarms, Alarm{Stale, url, "no tiles have proven its checkpoint since " + at.Format(time.RFC3339)})
		}
	}
}

// serious reports whether there are alarms other than Stale and Unreachable.
func (r *Report) serious() bool {
	return slices.ContainsFunc(r.Alarms, func(a Alarm) bool { return a.Kind != Stale && a.Kind != Unreachable })
}

// fetch reads the checkpoints of all sources.
func (m *Monitor) fetch(ctx context.Context) (all []seen, alarms []Alarm) {
	found, failed := make([][]seen, len(m.cfg.URLs)), make([][]Alarm, len(m.cfg.URLs))
	var group sync.WaitGroup
	for i, url := range m.cfg.URLs {
		group.Go(func() { found[i], failed[i] = m.fetchURL(ctx, url) })
	}
	group.Wait()
	return slices.Concat(found...), slices.Concat(failed...)
}

// fetchURL reads the last checkpoint of a source and, if the policy has witnesses, the last one that they cosigned.
func (m *Monitor) fetchURL(ctx context.Context, url string) (all []seen, alarms []Alarm) {
	names := []string{"checkpoint"}
	if m.cfg.Policy.NeedsWitnesses() {
		names = append(names, "cosigned-checkpoint")
	}
	for i, name := range names {
		open := m.cfg.Policy.OpenSigned
		if i > 0 {
			open = m.cfg.Policy.Open
		}
		note, err := get(ctx, m.cfg.Client, url+"/"+name, maxCheckpoint)
		if err != nil {
			alarms = append(alarms, Alarm{Unreachable, url, err.Error()})
			continue
		}
		o, err := open(note)
		if err != nil {
			alarms = append(alarms, Alarm{Signature, url, name + ": " + err.Error()})
			continue
		}
		all = append(all, seen{url, i > 0, note, o})
	}
	return all, alarms
}

// against compares a checkpoint with what its source served before, and notes it.
func (m *Monitor) against(r *Report, old, next State, s seen) {
	alarm := func(kind, format string, args ...any) {
		r.Alarms = append(r.Alarms, Alarm{kind, s.url, fmt.Sprintf(format, args...)})
	}
	known, now := old.Sources[s.url], next.Sources[s.url]
	before := known.Records
	if s.cosigned {
		before, now.Cosigned, now.CosignedAt = known.Cosigned, s.Size, s.newest()
	}
	if s.Size < before {
		alarm(Shrink, "it has %d records, and had %d before", s.Size, before)
	}
	switch {
	case s.cosigned:
		if at := s.newest(); r.Time.Sub(at) > m.cfg.Stale {
			alarm(Stale, "the last cosignature is of %s", at.Format(time.RFC3339))
		}
	case s.Size > before || known.Since.IsZero():
		now.Records, now.Since = s.Size, r.Time
	case !m.cfg.Policy.NeedsWitnesses() && r.Time.Sub(known.Since) > m.cfg.Stale:
		alarm(Stale, "it has had %d records since %s", s.Size, known.Since.Format(time.RFC3339))
	}
	next.Sources[s.url] = now
}

// withheld raises Stale at each source that served no cosigned checkpoint, if its last cosignature is too old.
func (m *Monitor) withheld(r *Report, next State, all []seen) {
	for _, url := range m.cfg.URLs {
		if !m.cfg.Policy.NeedsWitnesses() || slices.ContainsFunc(all, func(s seen) bool { return s.cosigned && s.url == url }) {
			continue
		}
		p := next.Sources[url]
		if p.CosignedAt.IsZero() {
			p.CosignedAt = r.Time
			next.Sources[url] = p
		}
		if r.Time.Sub(p.CosignedAt) > m.cfg.Stale {
			r.Alarms = append(r.Alarms, Alarm{Stale, url, "it serves no cosigned checkpoint, and had none since " + p.CosignedAt.Format(time.RFC3339)})
		}
	}
}

// newest returns the time of the last cosignature.
func (s *seen) newest() (at time.Time) {
	for _, c := range s.Cosigned {
		if c.Time.After(at) {
			at = c.Time
		}
	}
	return at
}

// holders returns the sources that may have the tiles of the largest checkpoint. If that is the remembered one, these are all, and
// first those that served the largest trees.
func (m *Monitor) holders(state State, best seen) []string {
	if best.url != "" {
		return []string{best.url}
	}
	return slices.SortedStableFunc(slices.Values(m.cfg.URLs), func(a, b string) int {
		return cmp.Compare(state.Sources[b].Records, state.Sources[a].Records)
	})
}

// compare raises an alarm unless the largest checkpoint extends another one. It returns true if that was proven by the tiles of a
// holder.
func (m *Monitor) compare(ctx context.Context, r *Report, s, best seen, holders []string) bool {
	url := cmp.Or(s.url, best.url)
	fork := func(why string) bool {
		r.Alarms = append(r.Alarms, Alarm{Fork, url, why})
		return false
	}
	switch {
	case s.Origin != best.Origin:
		return fork(fmt.Sprintf("it has the log %s, and not %s", s.Origin, best.Origin))
	case s.Size == best.Size && s.Root != best.Root:
		return fork(fmt.Sprintf("of size %d, the roots %v and %v are signed", s.Size, s.Root, best.Root))
	case s.Size == best.Size, s.Size == 0:
		return true
	}
	var failed []Alarm
	for _, holder := range holders {
		tiles := &tiles{ctx: ctx, client: m.cfg.Client, url: holder}
		proof, err := tlog.ProveTree(best.Size, s.Size, tlog.TileHashReader(best.Tree(), tiles))
		switch {
		case err == nil && tlog.CheckTree(proof, best.Size, best.Root, s.Size, s.Root) != nil:
			return fork(fmt.Sprintf("the tree of %d records at %s does not extend that of %d records with the root %v", best.Size, holder, s.Size, s.Root))
		case err == nil:
			return true
		case tiles.failed != nil:
			failed = append(failed, Alarm{Unreachable, holder, tiles.failed.Error()})
		default:
			failed = append(failed, Alarm{Unproven, holder, err.Error()})
		}
	}
	// A source with a smaller tree than the remembered one need not have its tiles, and its own are not wrong because of that.
	if best.url != "" {
		r.Alarms = append(r.Alarms, failed...)
	}
	return false
}

// needsTiles reports whether a source serves a new checkpoint of the largest size, and nothing has read its tiles.
func (s *seen) needsTiles(old State, best seen) bool {
	switch {
	case s.url == "", s.cosigned: // nobody serves it, or its source serves a later one
		return false
	case old.remembered == nil:
		return true
	case s.url == best.url && 0 < old.remembered.Size && old.remembered.Size < s.Size:
		return false // the proof of consistency was made from them
	}
	return old.Sources[s.url].Records != s.Size
}

// hasTiles raises Unproven if the last tiles of each level at a source give another root than its checkpoint. A source may serve
// checkpoints without tiles, unless they are needed.
func (m *Monitor) hasTiles(ctx context.Context, r *Report, s seen, needed bool) bool {
	if s.Size == 0 {
		return true
	}
	tiles := &tiles{ctx: ctx, client: m.cfg.Client, url: s.url}
	_, err := tlog.TileHashReader(s.Tree(), tiles).ReadHashes([]int64{tlog.StoredHashIndex(0, s.Size-1)})
	kind := Unproven
	switch {
	case err == nil, tiles.failed != nil && !needed:
		return true
	case tiles.failed != nil:
		kind = Unreachable
	}
	r.alarmOnce(Alarm{kind, s.url, err.Error()})
	return false
}

// alarmOnce adds an alarm unless the source has one of the kind.
func (r *Report) alarmOnce(a Alarm) {
	if !slices.ContainsFunc(r.Alarms, func(b Alarm) bool { return a.Kind == b.Kind && a.URL == b.URL }) {
		r.Alarms = append(r.Alarms, a)
	}
}

// CheckURL returns an error if a URL cannot be that of a log.
func CheckURL(url string) error {
	if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") || strings.HasSuffix(url, "/") {
		return errors.New("the URL of a log is like https://venue.example/tlog/trading/0")
	}
	return nil
}
