package live

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

// ack acknowledges a request, or one topic of the request.
type ack struct {
	Op      string         `json:"op"`
	Channel string         `json:"channel,omitzero"`
	ID      jsontext.Value `json:"id,omitzero"`
}

// failure is an error message.
type failure struct {
	Op      string         `json:"op"`
	Code    Code           `json:"code"`
	Message string         `json:"message"`
	Args    []string       `json:"args"`
	ID      jsontext.Value `json:"id,omitzero"`
}

// encode encodes a message, with its handwritten encoder if it has one. Messages never fail to encode.
func encode(v any) []byte {
	var b []byte
	var err error
	if m, ok := v.(interface{ AppendJSON([]byte) ([]byte, error) }); ok {
		b, err = m.AppendJSON(make([]byte, 0, wire.OrderSize))
	} else {
		b, err = json.Marshal(v)
	}
	if err != nil {
		panic("live: a message has no JSON form: " + err.Error())
	}
	return b
}

func errorMessage(code Code, message string, topics ...string) []byte {
	return errorReply(nil, code, message, topics...)
}

func errorReply(id jsontext.Value, code Code, message string, topics ...string) []byte {
	if topics == nil {
		topics = []string{}
	}
	return encode(failure{"error", code, message, topics, id})
}
