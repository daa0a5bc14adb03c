package transparency

import "fmt"

// Covers returns the number of records that a checkpoint of a log covers if quorum or more of the policy's witnesses have cosigned it,
// and otherwise 0. It verifies the log's signature and the cosignatures. The policy's own quorum does not count.
func (p *Policy) Covers(of Origin, c Checkpoint, quorum int) (records int64, err error) {
	if c.Size == 0 {
		return 0, nil
	}
	own, err := p.ForLog(c.Verifier)
	if err != nil {
		return 0, fmt.Errorf("transparency: the cosigned checkpoint of %v: %w", of, err)
	}
	o, err := own.OpenSigned(c.Note)
	if err != nil {
		return 0, fmt.Errorf("transparency: the cosigned checkpoint of %v: %w", of, err)
	}
	if o.Origin != of.String() {
		return 0, fmt.Errorf("transparency: the cosigned checkpoint of %v is of %s", of, o.Origin)
	}
	witnesses := make(map[string]bool, len(o.Cosigned))
	for _, c := range o.Cosigned {
		witnesses[c.Witness] = true
	}
	if len(witnesses) < quorum {
		return 0, nil
	}
	return o.Size, nil
}
