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
		list("brokers", "/brokers", "brokers, newest first"),
		create("brokers", "/brokers", `a broker: {"broker","name"}`),
		list("users", "/users", "users, newest first"),
		create("users", "/users", `a user: {"username","password","broker","scopes", …}`),
		change("users", "/users/:username", "what is sent of a user, such as is_active or password"),
		list("api-keys", "/users/:username/api-keys", "a user's keys"),
		change("api-keys", "/users/:username/api-keys/:id", `a key's rate limit: {"rate_limit":{"per_second","burst"}}, null for its user's`),
		list("instruments", "/instruments", "instruments, newest first"),
		create("instruments", "/instruments", "an instrument"),
		show("instruments", "/instruments/:symbol", "an instrument"),
		change("instruments", "/instruments/:symbol", "an instrument's status and parameters"),
		{"instruments", "withdraw", http.MethodDelete, base + "/instruments/:symbol", nil, NoBody, "an instrument without an open position; its orders are canceled"},
		post("index-prices", "set", "/index-prices/:symbol", NeedsBody, `the index price of an instrument: {"price"}`),
		post("deposits", "make", "/customers/:customer_code/deposits", NeedsBody, `a deposit: {"currency","amount","reference_id"}`),
		post("withdrawals", "request", "/customers/:customer_code/withdrawals", NeedsBody, `a withdrawal: {"currency","amount","reference_id"}`),
		post("withdrawals", "complete", "/withdrawals/:code/complete", NoBody, "a withdrawal that was paid out"),
		post("withdrawals", "cancel", "/withdrawals/:code/cancel", NoBody, "a withdrawal that will not be paid out"),
		put("margins", "set", "/customers/:customer_code/margin-profile", `an account's margins: {"leverage"} or {"initial_margin","maintenance_margin"}`),
		put("fees", "set", "/customers/:customer_code/fee-profile/:symbol", `an account's fees: {"maker_fee","taker_fee"}`),
		{"imports", "make", http.MethodPost, base + "/imports", []string{"dry_run"}, NeedsFile, "opening balances and positions from a file; --dry-run true: only checks it"},
		list("imports", "/imports", "the files that were imported, newest first"),
		show("imports", "/imports/:sha256", "the import of the file with a hash"),
		show("insurance", "/insurance", "the insurance fund"),
		list("margin-ranking", "/margin-ranking", "the accounts nearest to liquidation; --as-of POSITION: as they were after a record", "risk_state", past),
		post("insurance", "deposit", "/insurance/deposits", NeedsBody, `into the insurance fund: {"amount","reference_id"}`),
	}
}

func systemOperations() []Operation {
	return []Operation{
		list("signing-keys", "/signing-keys", "the keys that sign tokens"),
		post("signing-keys", "add", "/signing-keys", NoBody, "a new key, which signs from a few seconds later on"),
		{"signing-keys", "retire", http.MethodDelete, base + "/signing-keys/:kid", nil, NoBody, "a key, with every token that it signed"},
		list("due", "/due", "what is due in each journal, and what was set aside"),
		{"due", "put-back", http.MethodPost, base + "/due/:entry/put-back", []string{"journal"}, NoBody, "work that was set aside, to be tried again"},
		post("rules", "activate", "/rules/:journal", NeedsBody, `the next rules of a journal: {"rules"}`),
		show("four-eyes", "/four-eyes/:journal", "which actions of a journal need two persons"),
		put("four-eyes", "set", "/four-eyes/:journal", `which actions of a journal need two persons: {"rules":[{"action","threshold"?}],"proposal_seconds"?}`),
		list("proposals", "/four-eyes/:journal/proposals", "what waits, or waited, for a second person, newest first", "status"),
		show("proposals", "/four-eyes/:journal/proposals/:id", "a proposal"),
		post("proposals", "confirm", "/four-eyes/:journal/proposals/:id/confirm", NoBody, "a proposal of another user, which takes effect"),
		post("proposals", "reject", "/four-eyes/:journal/proposals/:id/reject", OptionalBody, `a proposal of another user: {"reason"?}`),
		post("proposals", "withdraw", "/four-eyes/:journal/proposals/:id/withdraw", OptionalBody, `one's own proposal: {"reason"?}`),
		post("commitments", "rotate", "/commitments/:journal/rotate", NoBody, "a new secret for the record roots of a journal from the next record on"),
		post("commitments", "disclose", "/commitments/:journal/disclose", NeedsBody, `the epoch keys of a span of records, after recording who gets them: {"from","to","recipient"}`),
		post("checkpoint-keys", "rotate", "/checkpoint-keys/:journal/rotate", NoBody, "a new key for the checkpoints of a journal; both sign for 30 days"),
		list("journals", "/journals", "where each journal and its readers stand"),
		{"journals", "records", http.MethodGet, base + "/journals/:journal/records", []string{"after", "page_size"}, NoBody, "the last records of a journal"},
	}
}

func catalogueOperations() []Operation {
	return []Operation{
		list("questionnaires", "/questionnaires", "questionnaires, published or not, newest first"),
		create("questionnaires", "/questionnaires", `a questionnaire: {"name","description","owner_type","owner_type_id"?}`),
		show("questionnaires", "/questionnaires/:id", "a questionnaire with all its versions"),
		change("questionnaires", "/questionnaires/:id", "a questionnaire's name or description"),
		post("questionnaires", "add-version", "/questionnaires/:id/versions", NeedsBody, `what is asked: {"questions":[{"label","value","question_type","position", …}]}`),
		post("questionnaires", "publish", "/questionnaires/:id/publish", OptionalBody, `the newest version, or another: {"version_number"}`),
		post("questionnaires", "unpublish", "/questionnaires/:id/unpublish", NoBody, "a questionnaire with all its versions"),
		list("entitlements", "/entitlements", "entitlements, newest first"),
		create("entitlements", "/entitlements", `an entitlement: {"name","owner_type","approval","questionnaires":[{"questionnaire_id","position"}], …}`),
		show("entitlements", "/entitlements/:id", "an entitlement"),
		change("entitlements", "/entitlements/:id", "an entitlement, for triggers that begin later"),
		show("retention", "/retention", "how long data is kept"),
		put("retention", "set", "/retention", `how long data is kept: {"seconds"}`),
	}
}

// triggerOperations returns a verb for each action of an operator on a trigger.
func triggerOperations() []Operation {
	out := []Operation{
		list("triggers", "/entitlement_triggers", "the cases of all owners; --status 'pending|ongoing|blocked' --sort asc: what waits, oldest first",
			"status", "tenant", "owner_id", "entitlement_id", "sort"),
		{"triggers", "show", http.MethodGet, base + "/entitlement_triggers/:id", []string{past}, NoBody, "a trigger with what is open of it and its timeline"},
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
		list("deliveries", "/webhook_deliveries", "deliveries of webhooks, newest first; --status 'dead' for those that were given up", "status", "webhook_id", "owner_id"),
		show("deliveries", "/webhook_deliveries/:id", "a delivery with its attempts"),
		post("deliveries", "replay", "/webhook_deliveries/:id/replay", NoBody, "a delivery that is over, to be tried again"),
	}
}

func actionHelp(a entitlement.Action) string {
	const said = `{"code","reason","internal_reason"?}`
	switch a {
	case entitlement.RequestInformation:
		return `questionnaires that have to be answered again: {"code","reason","internal_reason"?,"questionnaire_ids"}`
	case entitlement.CompleteVideoIdentification:
		return `how it went: {"code","reason","internal_reason"?,"outcome","external_reference"?}`
	case entitlement.RequestVideoIdentification:
		return "the owner is asked for one: " + said
	case entitlement.Block:
		return "a trigger, as a compliance hold: " + said
	case entitlement.Release:
		return "a blocked trigger: " + said
	case entitlement.Approve, entitlement.Reject:
		return "a trigger, which ends with that: " + said
	}
	return "a trigger, which ends with a failure: " + said
}

// ownerOperations returns the operations on persons or corporates.
func ownerOperations(kind string) []Operation {
	group, one := kind+"s", "/"+kind+"s/:"+kind+"_id"
	get := func(verb, path, help string, filters ...string) Operation {
		return Operation{group, verb, http.MethodGet, base + one + path, filters, NoBody, help}
	}
	return []Operation{
		list(group, "/"+group, group+" of all tenants, newest first; --state 'restricted' for those that are to be erased", "tenant", "state"),
		{group, "show", http.MethodGet, base + one, []string{past}, NoBody, "a " + kind},
		get("documents", "/documents", "what a "+kind+" has uploaded", "page", "size", past),
		get("document", "/documents/:document_id", "one document of a "+kind, past),
		get("link", "/documents/:document_id/download_link", "where the file of a document can be had for a while"),
		{group, "change-document", http.MethodPatch, base + one + "/documents/:document_id", nil, NeedsBody, `what a document is for, or when it ends: {"category","valid_until"}, null for never`},
		get("export", "/export", "everything held about a "+kind+", as a zip to stdout"),
		get("responses", "/responses", "what a "+kind+" has answered", "page", "size", past),
		get("response", "/responses/:response_id", "one response of a "+kind, past),
		get("receipt", "/responses/:response_id/receipt", "the proof that a response of a "+kind+" is in the log"),
		get("triggers", "/entitlement_triggers", "what a "+kind+" has asked for", "page", "size", past),
		get("trigger", "/entitlement_triggers/:trigger_id", "one trigger of a "+kind, past),
		get("timeline", "/entitlement_triggers/:trigger_id/timeline", "every event of a trigger of a "+kind, past),
		get("explain", "/entitlement_triggers/:trigger_id/explain", "why a trigger of a "+kind+" changed last; --sequence N: why another record about it is as it is", "sequence"),
		get("pending", "/pending_requirements", "what a "+kind+" has to answer", past),
		get("explain-pending", "/pending_requirements/explain", "why a "+kind+" has to answer it, and since which record"),
		post(group, "erase", one+"/erase", NeedsBody, `a `+kind+`, hidden now and erased when the law's time is over: {"reason"}`),
		post(group, "hold", one+"/hold", NeedsBody, `a `+kind+`, not to be erased: {"reason"}`),
		post(group, "release-hold", one+"/release-hold", NeedsBody, `a `+kind+` that was held: {"reason"}`),
		get("erasure", "/erasure", "the certificate of the erasure of a "+kind),
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
