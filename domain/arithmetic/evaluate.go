package arithmetic

import (
	"fmt"
	"math/big"
	"strings"
)

// Check computes a line's formula from its values, and returns an error unless the result is the line's.
func (l Line) Check() error {
	values := make(map[string]string, len(l.Values))
	for _, v := range l.Values {
		values[v.Name] = v.Text
	}
	got, err := Evaluate(l.Formula, values)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %q: %w", l.Name, l.Formula, err)
	case !same(got, l.Result):
		return fmt.Errorf("%s: %q with %v is %s and not %s", l.Name, l.Formula, l.Values, got, l.Result)
	}
	return nil
}

// same reports whether two results are the same number, or the same truth.
func same(a, b string) bool {
	x, number := new(big.Rat).SetString(a)
	y, too := new(big.Rat).SetString(b)
	return a == b || number && too && x.Cmp(y) == 0
}

// Evaluate computes a formula. The result is a number as Text prints it, or true or false. It is an error if a value is
// unused or missing.
func Evaluate(formula string, values map[string]string) (result string, err error) {
	p := &parser{tokens: tokens(formula), values: values, used: make(map[string]bool)}
	defer func() {
		if r := recover(); r != nil {
			wrong, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			err = wrong
		}
	}()
	n, truth := p.either()
	if p.next() != "" {
		p.fail("it does not end at %q", p.tokens[p.at])
	}
	for name := range values {
		if !p.used[name] {
			p.fail("%s is not used", name)
		}
	}
	if n == nil {
		return Truth(truth), nil
	}
	return Text(n), nil
}

type syntaxError struct{ error }

// parser evaluates while it parses. Its methods panic with a syntaxError.
type parser struct {
	tokens []string
	at     int
	values map[string]string
	used   map[string]bool
}

// tokens splits a formula into names, numbers, and signs.
func tokens(formula string) (list []string) {
	word := func(c rune) bool {
		return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z'
	}
	for rest := strings.TrimSpace(formula); rest != ""; rest = strings.TrimSpace(rest) {
		n := 0
		for n < len(rest) && word(rune(rest[n])) {
			n++
		}
		if n == 0 {
			n = 1
			if len(rest) > 1 && rest[1] == '=' && (rest[0] == '<' || rest[0] == '>') {
				n = 2
			}
		}
		list, rest = append(list, rest[:n]), rest[n:]
	}
	return list
}

func (p *parser) fail(format string, args ...any) {
	panic(syntaxError{fmt.Errorf(format, args...)})
}

// next returns the next token, or "" at the end.
func (p *parser) next() string {
	if p.at == len(p.tokens) {
		return ""
	}
	return p.tokens[p.at]
}

// take skips the next token if it is one of these, and returns it.
func (p *parser) take(signs ...string) string {
	t := p.next()
	for _, s := range signs {
		if t == s {
			p.at++
			return t
		}
	}
	return ""
}

func (p *parser) demand(sign string) {
	if p.take(sign) == "" {
		p.fail("%q comes where %q must", p.next(), sign)
	}
}

// either parses conditions joined by "or", or a number.
func (p *parser) either() (*big.Rat, bool) {
	n, truth := p.both()
	for p.take("or") != "" {
		m, other := p.both()
		if n != nil || m != nil {
			p.fail("or joins conditions")
		}
		truth = truth || other
	}
	return n, truth
}

// both parses comparisons joined by "and", or a number.
func (p *parser) both() (*big.Rat, bool) {
	n, truth := p.comparison()
	for p.take("and") != "" {
		m, other := p.comparison()
		if n != nil || m != nil {
			p.fail("and joins conditions")
		}
		truth = truth && other
	}
	return n, truth
}

func (p *parser) comparison() (*big.Rat, bool) {
	left := p.sum()
	sign := p.take("<", "<=", ">", ">=", "=")
	if sign == "" {
		return left, false
	}
	order := left.Cmp(p.sum())
	switch sign {
	case "<":
		return nil, order < 0
	case "<=":
		return nil, order <= 0
	case ">":
		return nil, order > 0
	case ">=":
		return nil, order >= 0
	}
	return nil, order == 0
}

func (p *parser) sum() *big.Rat {
	n := p.product()
	for {
		switch p.take("+", "-") {
		case "+":
			n = new(big.Rat).Add(n, p.product())
		case "-":
			n = new(big.Rat).Sub(n, p.product())
		default:
			return n
		}
	}
}

func (p *parser) product() *big.Rat {
	n := p.factor()
	for {
		switch p.take("*", "/") {
		case "*":
			n = new(big.Rat).Mul(n, p.factor())
		case "/":
			by := p.factor()
			if by.Sign() == 0 {
				p.fail("it divides by zero")
			}
			n = new(big.Rat).Quo(n, by)
		default:
			return n
		}
	}
}

func (p *parser) factor() *big.Rat {
	switch {
	case p.take("-") != "":
		return new(big.Rat).Neg(p.factor())
	case p.take("(") != "":
		n := p.sum()
		p.demand(")")
		return n
	}
	name := p.next()
	if name == "" {
		p.fail("it ends too early")
	}
	p.at++
	if p.take("(") != "" {
		args := []*big.Rat{p.sum()}
		for p.take(",") != "" {
			args = append(args, p.sum())
		}
		p.demand(")")
		return p.call(name, args)
	}
	text, known := p.values[name]
	if !known {
		if text = name; name[0] < '0' || name[0] > '9' {
			p.fail("there is no value for %s", name)
		}
	}
	p.used[name] = true
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		p.fail("%q is not a number", text)
	}
	return n
}

func (p *parser) call(name string, args []*big.Rat) *big.Rat {
	n := args[0]
	switch name {
	case "min", "max":
		for _, a := range args[1:] {
			if (a.Cmp(n) < 0) == (name == "min") {
				n = a
			}
		}
		return n
	case "abs":
		if len(args) != 1 {
			p.fail("abs has one argument")
		}
		return new(big.Rat).Abs(n)
	}
	if len(args) != 2 || !args[1].IsInt() || args[1].Sign() < 0 || args[1].Num().BitLen() > 8 {
		p.fail("%s has a number and its decimals as arguments", name)
	}
	unit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), args[1].Num(), nil))
	scaled := new(big.Rat).Mul(n, unit)
	whole, rest := new(big.Int).QuoRem(scaled.Num(), scaled.Denom(), new(big.Int)) // toward zero
	sign := int64(rest.Sign())
	switch name {
	case "floor":
		sign = min(sign, 0)
	case "ceil":
		sign = max(sign, 0)
	case "truncate":
		sign = 0
	case "away":
	case "half_even":
		twice := rest.Abs(rest).Lsh(rest, 1).Cmp(scaled.Denom())
		if twice < 0 || twice == 0 && whole.Bit(0) == 0 {
			sign = 0
		}
	default:
		p.fail("there is no function %s", name)
	}
	whole.Add(whole, big.NewInt(sign))
	return new(big.Rat).Quo(new(big.Rat).SetInt(whole), unit)
}
