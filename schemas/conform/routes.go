package conform

import "strings"

// Compare compares the described routes with the registered ones, which write parameters as :name. It returns the
// registered routes that are not described, and the described routes that are not registered.
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

// Braces replaces parameters like :name in a path by {name}.
func Braces(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, ":") {
			parts[i] = "{" + p[1:] + "}"
		}
	}
	return strings.Join(parts, "/")
}
