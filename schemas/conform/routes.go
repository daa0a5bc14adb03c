package conform

import "strings"

// Compare holds the described routes against the registered ones, whose parameters are written as :name. It returns
// what is registered and not described, and what is described and not registered.
func (o *OpenAPI) Compare(registered []Route) (undescribed, unregistered []Route) {
	known := make(map[Route]bool)
	for _, r := range registered {
		r.Path = Braces(r.Path)
		known[r] = true
		described := false
		for _, d := range o.routes {
			described = described || d == r
		}
		if !described {
			undescribed = append(undescribed, r)
		}
	}
	for _, d := range o.routes {
		if !known[d] {
			unregistered = append(unregistered, d)
		}
	}
	return undescribed, unregistered
}

// Braces writes a path with parameters like :name with {name}.
func Braces(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, ":") {
			parts[i] = "{" + p[1:] + "}"
		}
	}
	return strings.Join(parts, "/")
}
