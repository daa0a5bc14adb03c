package schemas

import _ "embed"

// AsyncAPI is the description of the WebSocket interface: AsyncAPI 3, as YAML. It refers to schemas of OpenAPI; package
// bundle makes a description that stands alone.
//
//go:embed asyncapi/asyncapi.yaml
var AsyncAPI []byte
