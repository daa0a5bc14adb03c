package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/projections/postgres"
)

// answersEach is the number of answers in a questionnaire response, and responsesEach the number of different responses
// that a client repeats.
const (
	answersEach   = 20
	responsesEach = 16
)

// asking lists the types of the questions, which are used in rotation. Documents are left out, because only answers are
// measured.
var asking = []string{"text", "integer", "bool", "country", "single_choice", "multiple_choice", "text"}

// onboarded holds the persons of a venue, their questions, and their responses.
type onboarded struct {
	persons   []string
	questions []question
	posts     [][]post // by person
}

type question struct {
	ID      string `json:"id"`
	Type    string `json:"question_type"`
	Options []struct {
		ID string `json:"id"`
	} `json:"options"`
}

// measureResponses measures responses to a questionnaire with every role, synced: validated, sealed with the key of the
// person, in the log, and on their way to the rows.
func measureResponses(ctx context.Context, b *bench) error {
	v, err := b.newVenue(ctx, "--sync=true")
	if err != nil {
		return err
	}
	o, token, err := v.onboard(ctx)
	if err != nil {
		v.discard()
		return err
	}
	ours, err := b.newTarget(ctx, loadConfig{URL: v.REST, Token: token, Posts: o.posts}, v.PID, v.discard)
	if err != nil {
		return err
	}
	defer ours.close()
	first, err := ours.drive(clients, b.round/4)
	if err != nil {
		return err
	}
	theirs, err := b.responsesRival(ctx, o, first.Sample)
	if err != nil {
		return err
	}
	defer theirs.close()
	return b.pairCaughtUp(Row{Measure: fmt.Sprintf("responses of %d answers, sealed, %d connections, everything live, synced", answersEach, clients), Unit: "responses/s",
		Against: "handler + Postgres transaction in clear", Aim: atLeast(1.5)},
		"response", ours, theirs, func() (time.Duration, error) { return v.answersHeld(ctx, o.persons[0]) })
}

// responsesRival starts the usual handler and a load child that sends it the same requests.
func (b *bench) responsesRival(ctx context.Context, o *onboarded, answer []byte) (*target, error) {
	server, err := postgres.Start(ctx, postgres.Config{Dir: filepath.Join(b.dir, "responses-postgres"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	var ready rivalReady
	rival, err := b.child(ctx, "responses", responsesConfig{rivalConfig{answer, server.URL()}, o.persons, o.questions}, &ready)
	if err != nil {
		server.Close()
		return nil, err
	}
	return b.newTarget(ctx, loadConfig{URL: ready.URL, Token: "t", Posts: o.posts}, rival.cmd.Process.Pid, rival.stop, func() { server.Close() })
}

// onboard registers a person for each connection and publishes a questionnaire.
func (v *venue) onboard(ctx context.Context) (*onboarded, string, error) {
	token, err := v.token(ctx, "broker-a")
	if err != nil {
		return nil, "", err
	}
	questionnaire, err := v.made(ctx, "operator", "/admin/v1/questionnaires", map[string]string{"name": "Bench", "owner_type": "person"})
	if err != nil {
		return nil, "", err
	}
	at := "/admin/v1/questionnaires/" + questionnaire
	content, err := v.do(ctx, "operator", http.MethodPost, at+"/versions", draft())
	if err != nil {
		return nil, "", err
	}
	var version struct{ Questions []question }
	if err := json.Unmarshal(content, &version); err != nil {
		return nil, "", err
	}
	if _, err := v.do(ctx, "operator", http.MethodPost, at+"/publish", nil); err != nil {
		return nil, "", err
	}
	o := &onboarded{questions: version.Questions}
	for n := range clients {
		person, err := v.made(ctx, "broker-a", "/api/v1/persons", map[string]string{"external_id": fmt.Sprint("bench-", n), "first_name": "Bench", "last_name": fmt.Sprint(n)})
		if err != nil {
			return nil, "", err
		}
		o.persons = append(o.persons, person)
		var posts []post
		for i := range responsesEach {
			posts = append(posts, post{"/api/v1/persons/" + person + "/questionnaires/" + questionnaire + "/response", answered(o.questions, n*responsesEach+i)})
		}
		o.posts = append(o.posts, posts)
	}
	return o, token, nil
}

// made creates an object with a POST and returns its id.
func (v *venue) made(ctx context.Context, user, path string, body any) (string, error) {
	content, err := v.do(ctx, user, http.MethodPost, path, body)
	if err != nil {
		return "", err
	}
	var made struct{ ID string }
	return made.ID, json.Unmarshal(content, &made)
}

// answersHeld waits until the rows have all responses, and returns how long that took.
func (v *venue) answersHeld(ctx context.Context, person string) (time.Duration, error) {
	start := time.Now()
	if _, err := v.do(ctx, "broker-a", http.MethodPatch, "/api/v1/persons/"+person, map[string]string{"first_name": "Bench"}); err != nil {
		return 0, err
	}
	return v.rowsHold(ctx, start, "/api/v1/persons/"+person)
}

type drafted struct {
	Label    string    `json:"label"`
	Value    string    `json:"value"`
	Type     string    `json:"question_type,omitempty"`
	Position int       `json:"position"`
	Options  []drafted `json:"options,omitempty"`
}

// draft returns a questionnaire version.
func draft() any {
	var questions []drafted
	for i := range answersEach {
		q := drafted{Label: fmt.Sprint("Question ", i), Value: fmt.Sprint("q", i), Type: asking[i%len(asking)], Position: i + 1}
		if strings.HasSuffix(q.Type, "choice") {
			for j := range 5 {
				q.Options = append(q.Options, drafted{Label: fmt.Sprint("Option ", j), Value: fmt.Sprint("o", j), Position: j + 1})
			}
		}
		questions = append(questions, q)
	}
	return map[string]any{"questions": questions}
}

// answered returns a response to the questions, a different one for each n.
func answered(questions []question, n int) string {
	var b strings.Builder
	b.WriteString(`{"answers":[`)
	for i, q := range questions {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"question_id":%q,`, q.ID)
		switch q.Type {
		case "text":
			fmt.Fprintf(&b, `"answer_text":"What response %d says to question %d, in a sentence."}`, n, i)
		case "integer":
			fmt.Fprintf(&b, `"answer_integer":%d}`, n+i)
		case "bool":
			fmt.Fprintf(&b, `"answer_boolean":%t}`, (n+i)%2 == 0)
		case "country":
			b.WriteString(`"answer_country":"DEU"}`)
		case "single_choice":
			fmt.Fprintf(&b, `"answer_option_id":%q}`, q.Options[n%len(q.Options)].ID)
		case "multiple_choice":
			fmt.Fprintf(&b, `"answer_option_ids":[%q,%q]}`, q.Options[0].ID, q.Options[1+n%(len(q.Options)-1)].ID)
		}
	}
	b.WriteString("]}")
	return b.String()
}

// responsesConfig configures the usual handler.
type responsesConfig struct {
	rivalConfig
	Persons   []string
	Questions []question
}

// responseTables is the smallest schema of a service that only uses Postgres.
const responseTables = `
CREATE TABLE persons (id uuid PRIMARY KEY, tenant text NOT NULL);
CREATE TABLE responses (id uuid PRIMARY KEY, person_id uuid NOT NULL REFERENCES persons, questionnaire_id uuid NOT NULL,
	created timestamptz NOT NULL DEFAULT now());
CREATE TABLE answers (response_id uuid NOT NULL REFERENCES responses, question_id uuid NOT NULL, value jsonb NOT NULL, PRIMARY KEY (response_id, question_id));
CREATE INDEX responses_by_person ON responses (person_id, created);`

// given is a response as a plain handler decodes it.
type given struct {
	Answers []map[string]any `json:"answers"`
}

// responsesChild is the usual implementation: a handler that checks that each question exists, and one Postgres
// transaction that checks the person's tenant and inserts the response and its answers in clear. The transaction is
// durable before the handler answers.
func responsesChild(ctx context.Context, cfg responsesConfig, in *json.Decoder, out *json.Encoder) error {
	pool, err := durablePool(ctx, cfg.DatabaseURL, responseTables)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, "INSERT INTO persons SELECT unnest($1::text[])::uuid, 'alpha'", cfg.Persons); err != nil {
		return err
	}
	known := make(map[string]bool)
	for _, q := range cfg.Questions {
		known[q.ID] = true
	}
	length := strconv.Itoa(len(cfg.Answer))
	e := echo.New()
	e.POST("/api/v1/persons/:person_id/questionnaires/:questionnaire_id/response", func(c echo.Context) error {
		var g given
		if err := c.Echo().JSONSerializer.Deserialize(c, &g); err != nil {
			return err
		}
		if err := respond(c.Request().Context(), pool, known, c.Param("person_id"), c.Param("questionnaire_id"), &g); err != nil {
			return err
		}
		c.Response().Header().Set(echo.HeaderContentLength, length) // otherwise a long response would be sent in chunks
		return c.JSONBlob(http.StatusCreated, cfg.Answer)
	})
	return serveRival(e, in, out)
}

func respond(ctx context.Context, pool *pgxpool.Pool, known map[string]bool, person, questionnaire string, g *given) error {
	var questions, values []string
	for _, a := range g.Answers {
		question, _ := a["question_id"].(string)
		if !known[question] {
			return fmt.Errorf("there is no question %s", question)
		}
		delete(a, "question_id")
		value, err := json.Marshal(a)
		if err != nil {
			return err
		}
		questions, values = append(questions, question), append(values, string(value))
	}
	var id [16]byte
	rand.Read(id[:]) // never fails
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var tenant string
		if err := tx.QueryRow(ctx, "SELECT tenant FROM persons WHERE id = $1::text::uuid FOR SHARE", person).Scan(&tenant); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO responses (id, person_id, questionnaire_id) VALUES ($1, $2::text::uuid, $3::text::uuid)", id, person, questionnaire); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO answers (response_id, question_id, value) SELECT $1, q::uuid, v::jsonb FROM unnest($2::text[], $3::text[]) AS u (q, v)", id, questions, values)
		return err
	})
}
