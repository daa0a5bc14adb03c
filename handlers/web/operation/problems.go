package operation

import (
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// Problem returns the problem for an error of this request.
func (a Request) Problem(err error) problem.Problem {
	p := *problem.Of(err) // copy, because requests may share the original
	p.RequestID = a.ID
	p.Instance = a.transport.Target() // a URI reference; the unescaped path may not be valid text
	return p
}

// PartProblem returns the problem of one part of a request that is answered part by part. An error of the
// server is logged with the request.
func (a Request) PartProblem(err error) *problem.Problem {
	p := a.Problem(err)
	a.Problems = append(a.Problems, p.Code)
	if p.Failed() {
		a.Failures = append(a.Failures, err)
	}
	return &p
}
