package history

import (
	"slices"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/snapshot"
)

// missing returns the sequences at which the maker makes snapshots next, in ascending order. These come first: the multiples of
// Forever, the multiples of Every among the last Forever records, and the young ones of an older codec. Where the end of a stretch is
// missing, those before it that are kept for ever come with it, because their records are read anyway. If none of these are left,
// those of the last stretch that lacks some come.
func (m *Maker) missing(saved []snapshot.Saved, tip int64, now time.Time, t *tries) []int64 {
	have := make(map[int64]bool)
	for _, s := range saved {
		if s.Codec >= m.cfg.Codec.Version() {
			have[s.Position.Sequence] = true
		}
	}
	d := m.distances(saved)
	want := m.recent(tip)
	for _, s := range saved {
		if at := s.Position.Sequence; at <= tip && m.wanted(s, d, tip, now) {
			want = append(want, at)
		}
	}
	for end := m.cfg.Forever; end <= tip; end += m.cfg.Forever {
		if want = append(want, end); !have[end] {
			want = append(want, d.between(end)...)
		}
	}
	lacks := func(want []int64) []int64 {
		slices.Sort(want)
		return t.left(slices.DeleteFunc(slices.Compact(want), func(at int64) bool { return have[at] }))
	}
	list := lacks(want)
	for end := tip - tip%m.cfg.Forever; len(list) == 0 && end > 0; end -= m.cfg.Forever {
		list = lacks(d.between(end))
	}
	return list
}

// recent returns the multiples of Every among the last Forever records.
func (m *Maker) recent(tip int64) (list []int64) {
	for at := tip - tip%m.cfg.Every; at > max(0, tip-m.cfg.Forever); at -= m.cfg.Every {
		list = append(list, at)
	}
	return list
}

// endOf returns the end of the stretch of a sequence, which is a multiple of forever.
func endOf(at, forever int64) int64 { return (at + forever - 1) / forever * forever }

// distances are the records between two snapshots that are kept for ever, by the multiple of forever at the end of a stretch. The
// size of the snapshot there decides, so all nodes decide the same. Where there is none yet, the distance is forever.
type distances struct {
	forever int64
	of      map[int64]int64
}

// before returns the distance before a multiple of forever.
func (d distances) before(end int64) int64 {
	if of, ok := d.of[end]; ok {
		return of
	}
	return d.forever
}

// between returns the sequences inside a stretch at which a snapshot is kept for ever.
func (d distances) between(end int64) (list []int64) {
	for at := end - d.forever + d.before(end); at < end; at += d.before(end) {
		list = append(list, at)
	}
	return list
}

// keeps reports whether a snapshot after a record is kept for ever.
func (d distances) keeps(at int64) bool { return at%d.before(endOf(at, d.forever)) == 0 }

// distances returns the smallest distances at which the snapshots do not take more than Spend. Of several codecs, the newest one
// decides: the snapshots of the others are deleted, and those that an older build still makes must not change the distance.
func (m *Maker) distances(saved []snapshot.Saved) distances {
	d := distances{m.cfg.Forever, make(map[int64]int64)}
	codecs := make(map[int64]int)
	for _, s := range saved {
		if end := s.Position.Sequence; end%m.cfg.Forever == 0 && s.Codec >= codecs[end] {
			codecs[end], d.of[end] = s.Codec, m.distance(s.Bytes)
		}
	}
	return d
}

// distance returns the smallest distance at which snapshots of a size do not take more than Spend.
func (m *Maker) distance(bytes int64) int64 {
	of := m.cfg.Every
	for of < m.cfg.Forever && (m.cfg.Forever%of != 0 || bytes > m.cfg.Spend*of) {
		of += m.cfg.Every
	}
	return of
}

// wanted reports whether a snapshot is kept, apart from its codec.
func (m *Maker) wanted(s snapshot.Saved, d distances, tip int64, now time.Time) bool {
	at := s.Position.Sequence
	return d.keeps(at) || at%m.cfg.Every == 0 && (at > tip-m.cfg.Forever || now.Sub(s.Written) <= m.cfg.Keep)
}

// old returns the snapshots that are not kept any more: by age, or because there is one of a newer codec.
func (m *Maker) old(saved []snapshot.Saved, tip int64, now time.Time) (old []snapshot.Saved) {
	newest := make(map[int64]int)
	for _, s := range saved {
		newest[s.Position.Sequence] = max(newest[s.Position.Sequence], s.Codec)
	}
	distances := m.distances(saved)
	for _, s := range saved {
		if !m.wanted(s, distances, tip, now) || s.Codec < newest[s.Position.Sequence] && s.Codec < m.cfg.Codec.Version() {
			old = append(old, s)
		}
	}
	return old
}
