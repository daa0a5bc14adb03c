package rest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// An empty parameter names nothing: no handler sees it.
func TestPathWithEmptyParameter(t *testing.T) {
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	e.GET("/v1/customers/:customer_code/orders", func(c echo.Context) error {
		return c.String(http.StatusOK, "customer "+Param(c, "customer_code"))
	})
	if w := ask(e, http.MethodGet, "/v1/customers//orders", ""); w.Code != http.StatusNotFound || problemIn(t, w)["code"] != "NOT_FOUND" {
		t.Errorf("an empty customer: %d %s", w.Code, w.Body)
	}
	if w := ask(e, http.MethodGet, "/v1/customers/A/orders", ""); w.Code != http.StatusOK || w.Body.String() != "customer A" {
		t.Errorf("a customer: %d %s", w.Code, w.Body)
	}
}

// A path that is not text still gets a whole problem, whose instance is a URI reference.
func TestProblemOfPathThatIsNotText(t *testing.T) {
	e := serve(t, Options{}, func(echo.Context) error { return problem.NotFound("NO_SUCH_THING", "There is no such thing.") })
	for _, code := range []string{"%FF", "%00", "%ED%A0%80", "a%2Fb"} {
		w := ask(e, http.MethodGet, "/v1/things/"+code, "")
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %q", code, w.Code, w.Body)
			continue
		}
		if instance, _ := problemIn(t, w)["instance"].(string); !strings.EqualFold(instance, "/v1/things/"+code) {
			t.Errorf("%s: the instance is %q", code, instance)
		}
	}
}
