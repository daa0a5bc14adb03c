package schemas

import _ "embed"

// OpenAPI is the description of the REST interface: OpenAPI 3.1, as YAML.
//
//go:embed openapi/openapi.yaml
var OpenAPI []byte
