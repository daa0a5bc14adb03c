package term

// readIndex delays refusals, the answers of an owner that leave no record. It is named after the read index of Raft.
//
// Other answers need none: a record of an owner that was superseded never becomes valid, so its answer is never sent. A
// refusal has no record. The owner may have been paused, or the group may have given the shard to another node that cannot
// reach this node's port. The other node may then have acknowledged a command that makes the refusal wrong, and this
// owner's reader may be the last to see it. So a refusal is answered only when two conditions hold: the brokers have
// reported the end of the log after the decision, and every record before that end is this term's own or was passed by its
// reader. A term taken before the decision has its term record before that end.
//
// One question for the end is open at any time. It covers all refusals decided before it was asked.
type readIndex struct {
	held fifo[deferredReply] // in the order of their decisions
	// covered is how many of held were decided before the latest question. The answer counts for no other.
	covered  int
	question uint64 // the number of the latest question; an answer to another one is late
	end      int64  // the reported end while refusals that it covers are held; -1 before the answer
}

// deferRefusal delays a refusal.
func (m *Machine) deferRefusal(h deferredReply) {
	m.t.index.held.push(h)
	m.askEnd()
}

// askEnd asks for the end on behalf of the refusals not yet covered, unless an earlier question still has refusals waiting.
func (m *Machine) askEnd() {
	if x := &m.t.index; x.covered == 0 && x.held.len() > 0 {
		m.questions++
		x.covered, x.end, x.question = x.held.len(), -1, m.questions
		m.out.AskEnd = m.questions
	}
}

// popRefusal returns the next refusal that may be answered: its tip is complete, and the log is accounted for up to the
// reported end.
func (m *Machine) popRefusal() (h deferredReply, ok bool) {
	x, f := &m.t.index, &m.t.flight
	if x.covered == 0 || x.end < 0 || x.end > f.accounted() || x.held.peek().tip > f.last.Sequence {
		return deferredReply{}, false
	}
	x.covered--
	h = x.held.pop()
	m.askEnd()
	return h, true
}

// onLogEnd processes the reported end of the log.
func (m *Machine) onLogEnd(in LogEnd) {
	if m.t.index.covered == 0 || in.Question != m.t.index.question {
		return
	}
	m.t.index.end = in.Offset
	m.release()
}
