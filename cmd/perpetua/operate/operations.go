package operate

import (
	"net/http"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/entitlement"
)

// Operation is an operator's command: perpetua admin GROUP VERB. Its arguments are the path parameters, in the order of
// the path.
type Operation struct {
	Group, Verb string
	Method      string
	Path        string   // parameters as :name
	Filters     []string // parameters of the query, each a flag
	Body        Body
	Help        string // description in one line
}

// Body says whether an operation sends JSON, or another file. It comes from a file, from stdin, or from the command line.
type Body int

// The kinds of bodies.
const (
	NoBody Body = iota
	OptionalBody
	NeedsBody
	NeedsFile // a file with a JSON object on each line
)

// mediaType returns the media type of the body.
func (b Body) mediaType() string {
	if b == NeedsFile {
		return "application/x-ndjson"
	}
	return "application/json"
}

const base = "/admin/v1"

// past is the parameter of reads that may be as of a past record.
const past = "as_of"

var paging = []string{"page", "size"}

func list(group, path, help string, filters ...string) Operation {
	return Operation{group, "list", http.MethodGet, base + path, append(filters, paging...), NoBody, help}
}

func show(group, path, help string) Operation {
	return Operation{group, "show", http.MethodGet, base + path, nil, NoBody, help}
}

func create(group, path, help string) Operation {
	return Operation{group, "create", http.MethodPost, base + path, nil, NeedsBody, help}
}

func change(group, path, help string) Operation {
	return Operation{group, "change", http.MethodPatch, base + path, nil, NeedsBody, help}
}

func post(group, verb, path string, body Body, help string) Operation {
	return Operation{group, verb, http.MethodPost, base + path, nil, body, help}
}

func put(group, verb, path, help string) Operation {
	return Operation{group, verb, http.MethodPut, base + path, nil, NeedsBody, help}
}

// Operations lists all operations by group. There is one for each route of the operator's interface.
func Operations() []Operation {
	return slices.Concat(venueOperations(), systemOperations(), catalogueOperations(), triggerOperations(), deliveryOperations(), ownerOperations("person"), ownerOperations("corporate"))
}

func venueOperations() []Operation {
	return []Operation{
		list("brokers", "/brokers", "list the brokers, newest first"),
		create("brokers", "/brokers", `register a broker: {"broker","name"}`),
		list("users", "/users", "list the users, newest first"),
		create("users", "/users", `register a user: {"username","password","broker","scopes", …}`),
		change("users", "/users/:username", `change a user: {"password"?,"scopes"?,"is_active"?, …}`),
		list("api-keys", "/users/:username/api-keys", "list a user's API keys"),
		change("api-keys", "/users/:username/api-keys/:id", `set a key's rate limit: {"rate_limit":{"per_second","burst"}}; null for that of the user`),
		list("instruments", "/instruments", "list the instruments, newest first"),
		create("instruments", "/instruments", "list a new instrument for trading"),
		show("instruments", "/instruments/:symbol", "show an instrument"),
		change("instruments", "/instruments/:symbol", "change an instrument's status or parameters"),
		{"instruments", "withdraw", http.MethodDelete, base + "/instruments/:symbol", nil, NoBody, "delist an instrument that has no open position, and cancel its orders"},
		post("index-prices", "set", "/index-prices/:symbol", NeedsBody, `set the index price of an instrument: {"price"}`),
		post("deposits", "make", "/customers/:customer_code/deposits", NeedsBody, `record a deposit: {"currency","amount","reference_id"}`),
		post("withdrawals", "request", "/customers/:customer_code/withdrawals", NeedsBody, `record a withdrawal that is to be paid out: {"currency","amount","reference_id"}`),
		post("withdrawals", "complete", "/withdrawals/:code/complete", NoBody, "record that a withdrawal was paid out"),
		post("withdrawals", "cancel", "/withdrawals/:code/cancel", NoBody, "cancel a withdrawal that was not paid out"),
		put("margins", "set", "/customers/:customer_code/margin-profile", `set an account's margins: {"leverage"} or {"initial_margin","maintenance_margin"}`),
		put("fees", "set", "/customers/:customer_code/fee-profile/:symbol", `set an account's fees for an instrument: {"maker_fee","taker_fee"}`),
		{"imports", "make", http.MethodPost, base + "/imports", []string{"dry_run"}, NeedsFile, "import opening balances and positions from a file; --dry-run true only checks it"},
		list("imports", "/imports", "list the imported files, newest first"),
		show("imports", "/imports/:sha256", "show the import of the file with this hash"),
		show("insurance", "/insurance", "show the insurance fund"),
		list("margin-ranking", "/margin-ranking", "list the accounts nearest to liquidation; --as-of POSITION lists them as of that record", "risk_state", past),
		post("insurance", "deposit", "/insurance/deposits", NeedsBody, `deposit into the insurance fund: {"amount","reference_id"}`),
	}
}

func systemOperations() []Operation {
	return []Operation{
		list("signing-keys", "/signing-keys", "list the keys that sign tokens"),
		post("signing-keys", "add", "/signing-keys", NoBody, "add a key, which signs new tokens after a few seconds"),
		{"signing-keys", "retire", http.MethodDelete, base + "/signing-keys/:kid", nil, NoBody, "retire a key; the tokens that it signed are refused from then on"},
		list("due", "/due", "list the due work of each journal, and the work that was set aside"),
		{"due", "put-back", http.MethodPost, base + "/due/:entry/put-back", []string{"journal"}, NoBody, "try work again that was set aside"},
		post("rules", "activate", "/rules/:journal", NeedsBody, `activate the next rules of a journal: {"rules"}`),
		show("four-eyes", "/four-eyes/:journal", "show which actions of a journal need two persons"),
		put("four-eyes", "set", "/four-eyes/:journal", `set which actions of a journal need two persons: {"rules":[{"action","threshold"?}],"proposal_seconds"?}`),
		list("proposals", "/four-eyes/:journal/proposals", "list the proposals, newest first; --status open lists those that wait for a second person", "status"),
		show("proposals", "/four-eyes/:journal/proposals/:id", "show a proposal"),
		post("proposals", "confirm", "/four-eyes/:journal/proposals/:id/confirm", NoBody, "confirm a proposal of another user, which then takes effect"),
		post("proposals", "reject", "/four-eyes/:journal/proposals/:id/reject", OptionalBody, `reject a proposal of another user: {"reason"?}`),
		post("proposals", "withdraw", "/four-eyes/:journal/proposals/:id/withdraw", OptionalBody, `withdraw your own proposal: {"reason"?}`),
		post("commitments", "rotate", "/commitments/:journal/rotate", NoBody, "make a new secret for the record roots of a journal, from the next record on"),
		post("commitments", "disclose", "/commitments/:journal/disclose", NeedsBody, `record who gets the epoch keys of a span of records, and print them: {"from","to","recipient"}`),
		post("checkpoint-keys", "rotate", "/checkpoint-keys/:journal/rotate", NoBody, "make a new key for the checkpoints of a journal; the old and the new one both sign for 30 days"),
		list("journals", "/journals", "show the position of each journal and of its readers"),
		{"journals", "records", http.MethodGet, base + "/journals/:journal/records", []string{"after", "page_size"}, NoBody, "list the last records of a journal"},
	}
}

func catalogueOperations() []Operation {
	return []Operation{
		list("questionnaires", "/questionnaires", "list the questionnaires, published or not, newest first"),
		create("questionnaires", "/questionnaires", `create a questionnaire: {"name","description","owner_type","owner_type_id"?}`),
		show("questionnaires", "/questionnaires/:id", "show a questionnaire with all its versions"),
		change("questionnaires", "/questionnaires/:id", "change a questionnaire's name or description"),
		post("questionnaires", "add-version", "/questionnaires/:id/versions", NeedsBody, `add a version: {"questions":[{"label","value","question_type","position", …}]}`),
		post("questionnaires", "publish", "/questionnaires/:id/publish", OptionalBody, `publish the newest version, or the one in FILE: {"version_number"}`),
		post("questionnaires", "unpublish", "/questionnaires/:id/unpublish", NoBody, "withdraw a questionnaire with all its versions"),
		list("entitlements", "/entitlements", "list the entitlements, newest first"),
		create("entitlements", "/entitlements", `create an entitlement: {"name","owner_type","approval","questionnaires":[{"questionnaire_id","position"}], …}`),
		show("entitlements", "/entitlements/:id", "show an entitlement"),
		change("entitlements", "/entitlements/:id", "change an entitlement, for triggers that begin later"),
		show("retention", "/retention", "show how long data is kept"),
		put("retention", "set", "/retention", `set how long data is kept: {"seconds"}`),
	}
}

// triggerOperations returns a verb for each action of an operator on a trigger.
func triggerOperations() []Operation {
	out := []Operation{
		list("triggers", "/entitlement_triggers", "list the cases of all owners; --status 'pending|ongoing|blocked' --sort asc lists the open ones, oldest first",
			"status", "tenant", "owner_id", "entitlement_id", "sort"),
		{"triggers", "show", http.MethodGet, base + "/entitlement_triggers/:id", []string{past}, NoBody, "show a trigger with its open requirements and its timeline"},
	}
	for _, a := range entitlement.Actions() {
		if a == entitlement.Start { // only the venue performs it
			continue
		}
		out = append(out, post("triggers", strings.ReplaceAll(string(a), "_", "-"), "/entitlement_triggers/:id/"+string(a), NeedsBody, actionHelp(a)))
	}
	return out
}

func deliveryOperations() []Operation {
	return []Operation{
		list("deliveries", "/webhook_deliveries", "list the webhook deliveries, newest first; --status dead lists those that were given up", "status", "webhook_id", "owner_id"),
		show("deliveries", "/webhook_deliveries/:id", "show a delivery with its attempts"),
		post("deliveries", "replay", "/webhook_deliveries/:id/replay", NoBody, "send a delivery again that has ended, or now if it waits for its retry"),
	}
}

func actionHelp(a entitlement.Action) string {
	const reasonBody = `{"code","reason","internal_reason"?}`
	switch a {
	case entitlement.RequestInformation:
		return `have questionnaires answered again: {"code","reason","internal_reason"?,"questionnaire_ids"}`
	case entitlement.CompleteVideoIdentification:
		return `record the outcome of a video identification: {"code","reason","internal_reason"?,"outcome","external_reference"?}`
	case entitlement.RequestVideoIdentification:
		return "ask the owner for a video identification: " + reasonBody
	case entitlement.Block:
		return "block a trigger, as a compliance hold: " + reasonBody
	case entitlement.Release:
		return "release a blocked trigger: " + reasonBody
	}
	return string(a) + " a trigger, which ends it: " + reasonBody
}

// ownerOperations returns the operations on persons or corporates.
func ownerOperations(kind string) []Operation {
	group, one := kind+"s", "/"+kind+"s/:"+kind+"_id"
	get := func(verb, path, help string, filters ...string) Operation {
		return Operation{group, verb, http.MethodGet, base + one + path, filters, NoBody, help}
	}
	return []Operation{
		list(group, "/"+group, "list the "+group+" of all tenants, newest first; --state restricted lists those that are to be erased", "tenant", "state"),
		{group, "show", http.MethodGet, base + one, []string{past}, NoBody, "show a " + kind},
		get("documents", "/documents", "list the documents of a "+kind, "page", "size", past),
		get("document", "/documents/:document_id", "show a document of a "+kind, past),
		get("link", "/documents/:document_id/download_link", "print a link to the file of a document, which is valid for a limited time"),
		{group, "change-document", http.MethodPatch, base + one + "/documents/:document_id", nil, NeedsBody, `change a document: {"category"?,"valid_until"?}; null for no end`},
		get("export", "/export", "write everything that is stored about a "+kind+" to the standard output, as a zip file"),
		get("responses", "/responses", "list the responses of a "+kind, "page", "size", past),
		get("response", "/responses/:response_id", "show a response of a "+kind, past),
		get("receipt", "/responses/:response_id/receipt", "print the receipt of a response of a "+kind+": a proof that the log has it"),
		get("triggers", "/entitlement_triggers", "list the triggers of a "+kind, "page", "size", past),
		get("trigger", "/entitlement_triggers/:trigger_id", "show a trigger of a "+kind, past),
		get("timeline", "/entitlement_triggers/:trigger_id/timeline", "list the events of a trigger of a "+kind, past),
		get("explain", "/entitlement_triggers/:trigger_id/explain", "explain the last change of a trigger of a "+kind+"; --sequence N explains another record about it", "sequence"),
		get("pending", "/pending_requirements", "list what a "+kind+" has to answer", past),
		get("explain-pending", "/pending_requirements/explain", "explain why a "+kind+" has to answer it, and since which record"),
		post(group, "erase", one+"/erase", NeedsBody, `hide a `+kind+` now, and erase it after the retention time: {"reason"}`),
		post(group, "hold", one+"/hold", NeedsBody, `hold a `+kind+`, so that it is not erased: {"reason"}`),
		post(group, "release-hold", one+"/release-hold", NeedsBody, `release the hold on a `+kind+`: {"reason"}`),
		get("erasure", "/erasure", "show the certificate of the erasure of a "+kind),
	}
}

// parameters returns the names of the parameters of the operation's path.
func (o *Operation) parameters() (names []string) {
	for part := range strings.SplitSeq(o.Path, "/") {
		if name, ok := strings.CutPrefix(part, ":"); ok {
			names = append(names, name)
		}
	}
	return names
}

// usage returns the syntax of the operation on the command line.
func (o *Operation) usage() string {
	var b strings.Builder
	b.WriteString(o.Group + " " + o.Verb)
	for _, name := range o.parameters() {
		b.WriteString(" " + strings.ToUpper(name))
	}
	switch o.Body {
	case OptionalBody:
		b.WriteString(" [FILE]")
	case NeedsBody, NeedsFile:
		b.WriteString(" FILE")
	}
	return b.String()
}
