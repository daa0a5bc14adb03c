package trading

// Snapshot of prices and instants. Both directions are in this file, since each is a few lines.

// saveInstants writes the instants that some position has not posted, and the holders in their order.
func (v *saver) saveInstants() {
	v.Int(v.fixed)
	for _, i := range v.listing {
		v.Len(len(i.instants))
		for _, x := range i.instants {
			v.Int(x.number)
			v.Byte(byte(x.kind))
			v.Int(int64(x.time))
			v.Int(x.mark)
			v.Int(x.rate)
			v.Int(int64(x.left))
			v.Int(x.posting.arrival)
		}
		v.Len(i.holders.length)
		for h := i.holders.first; h != nil; h = h.behind {
			v.Uint(v.positionNumbers[h])
			v.Int(h.posted)
		}
	}
}

// loadInstants reads them. The positions that owe an instant follow from the last instant that each has posted.
func (v *loader) loadInstants() {
	v.fixed = v.Int()
	for _, i := range v.listing {
		for range v.Len(7) {
			x := &instant{number: v.Int(), kind: instantKind(v.Byte()), instrument: i, time: v.when(), mark: v.Int(), rate: v.Int(), left: v.money()}
			x.posting = &dueEntry{time: x.time, kind: duePosting, arrival: v.Int(), instant: x}
			if x.kind >= instantKinds {
				v.Fail(errContradiction)
				return
			}
			i.instants = append(i.instants, x)
			v.outstanding++
			v.due.alternating.heap = append(v.due.alternating.heap, x.posting)
		}
		for range v.Len(2) {
			n := v.Index(len(v.positions))
			if v.Err() != nil {
				return
			}
			h := v.positions[n]
			if h.instrument != i || h.size == 0 || h.before != nil || i.holders.first == h {
				v.Fail(errContradiction)
				return
			}
			h.posted = v.Int()
			i.holders.push(h)
			for _, x := range i.instants {
				if x.number > h.posted {
					x.owing++
				}
			}
		}
		for _, x := range i.instants {
			if x.owing == 0 {
				v.Fail(errContradiction)
				return
			}
		}
	}
}

// save writes the inputs of an instrument's mark price.
func (p *prices) save(v *saver) {
	v.Int(p.indexPrice)
	v.Int(int64(p.indexTime))
	p.window.Pack(&v.Writer)
	v.Bool(p.stale)
	p.premiums.Pack(&v.Writer)
	v.Int(p.minute)
	v.Int(p.rate)
	v.saveEntry(p.guard)
	v.saveEntry(p.funding)
}

func (p *prices) load(v *loader, i *instrument) {
	p.indexPrice, p.indexTime = v.Int(), v.when()
	p.window.Unpack(v.Reader)
	p.stale = v.Bool()
	p.premiums.Unpack(v.Reader)
	p.minute, p.rate = v.Int(), v.Int()
	p.guard, p.funding = v.blockingEntry(dueStaleGuard, i), v.blockingEntry(dueFunding, i)
}

// blockingEntry reads a due entry of the blocking list, or nil.
func (v *loader) blockingEntry(kind dueKind, i *instrument) *dueEntry {
	e := v.loadEntry()
	if e != nil {
		e.kind, e.instrument = kind, i
		v.due.blocking.heap = append(v.due.blocking.heap, e)
	}
	return e
}

// whichInstrument reads the index of an instrument. It returns nil if the index is invalid.
func (v *loader) whichInstrument() *instrument {
	if n := v.Index(len(v.listing)); v.Err() == nil {
		return v.listing[n]
	}
	return nil
}

// entryOf reads the index of an instrument and returns a due entry of that instrument.
func (v *loader) entryOf(entry func(*instrument) *dueEntry) *dueEntry {
	if i := v.whichInstrument(); i != nil {
		return entry(i)
	}
	return nil
}
