package verify

import "errors"

// collect is the fifth stage: it takes the results of the spans in the order of the log.
func (v *verification) collect(spans <-chan *span) error {
	var failed error
	tree, done := v.Checkpoint.tree(), int64(0)
	for s := range spans {
		<-s.done
		failed = errors.Join(failed, s.err)
		v.report.Decided.add(&s.decided)
		v.report.Snapshots += s.equal
		if failed == nil && tree != nil {
			tree.add(v, s.roots)
		}
		if done += int64(s.count); v.Progress != nil && v.limit.Load() == maxSequence {
			v.Progress(done)
		}
	}
	if failed == nil && tree != nil {
		tree.end(v)
	}
	return failed
}
