package journal

// The bounds of what an owner remembers of its latest records.
const (
	recentRecords = 8192
	recentBytes   = 32 << 20
)

// recent holds the latest records of a partition without a gap, to answer repeated commands from memory.
type recent struct {
	entries []Entry
	bytes   int
}

func (r *recent) add(e Entry) {
	if n := len(r.entries); n > 0 && r.entries[n-1].Position.Sequence+1 != e.Position.Sequence {
		*r = recent{}
	}
	r.entries = append(r.entries, e)
	r.bytes += len(e.Value)
	for len(r.entries) > recentRecords || (r.bytes > recentBytes && len(r.entries) > 1) {
		r.bytes -= len(r.entries[0].Value)
		r.entries[0] = Entry{}
		r.entries = r.entries[1:]
	}
}

func (r *recent) find(sequence int64) (Entry, bool) {
	if len(r.entries) == 0 {
		return Entry{}, false
	}
	i := sequence - r.entries[0].Position.Sequence
	if i < 0 || i >= int64(len(r.entries)) {
		return Entry{}, false
	}
	return r.entries[i], true
}
