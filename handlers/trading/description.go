package trading

import (
	"fmt"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/schemas"
)

// description serves the OpenAPI file of the program's REST interface in YAML and JSON.
type description struct {
	asJSON func() ([]byte, error)
}

// documentAge is the caching time of the description.
const documentAge = time.Minute

func newDescription() *description {
	return &description{sync.OnceValues(func() ([]byte, error) {
		text, err := yaml.YAMLToJSON(schemas.OpenAPI)
		if err != nil {
			return nil, fmt.Errorf("the OpenAPI file: %w", err)
		}
		return text, nil
	})}
}

func (d *description) yaml(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	return rest.Cached(c, documentAge, "application/yaml", schemas.OpenAPI)
}

func (d *description) json(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	text, err := d.asJSON()
	if err != nil {
		return err
	}
	return rest.Cached(c, documentAge, echo.MIMEApplicationJSON, text)
}
