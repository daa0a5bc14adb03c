package schemas

import _ "embed"

// AsyncAPI is the description of the WebSocket interface: AsyncAPI 3, as YAML.
//
//go:embed asyncapi/asyncapi.yaml
var AsyncAPI []byte
